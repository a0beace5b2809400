"""No user has mail sent to an address that is not shown to be theirs, by any door."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest
from tests.cases import try_each
from tests.doors.acts import RECORDS, Act
from tests.doors.doors import DOORS, FRONT, Door
from tests.doors.world import ACTORS, OWNED, WORLDS, World
from tests.web.callers import DAY

from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import CloudschedError
from cloudsched.people.wiring import PeopleWiring

ALL_DOORS: Final = (FRONT, *DOORS)
VICTIM: Final = "eve@example.com"
PEOPLE_ACTS: Final = [each for each in RECORDS if "person" in each.operation]


def store(world: World, *, verified: bool = True) -> None:
    """Store an address of Ada's, as an admin does."""
    known = PersonSpec.model_validate({"email": {"address": "ada@example.com", "verified": verified}})
    PeopleWiring.of(world.app.container).people.put("ada", known, by=OWN_CODE, may_remove=True)


def mail_all(world: World) -> list[str]:
    """Have a result sent to everybody by mail; return the addresses that get one."""
    for owner in sorted({*OWNED.values(), "bob"} - {"system"}):
        world.app.create(owner=owner, title="T", handler="open", payload={}, delivery_channels=["EMAIL"])
    world.sim.advance(4 * DAY)
    return [each.address for each in world.sim.sent("EMAIL")]


@pytest.mark.parametrize("door", ALL_DOORS, ids=lambda each: each.name)
@try_each("act", PEOPLE_ACTS)
def test_what_a_user_does_sends_mail_to_no_new_address(door: Door, act: Act) -> None:
    """Nor does what they do with a record that has an address of theirs; only an admin says whose an address is."""
    if door.why_not(act) is not None:
        return
    for who in [each for each in door.actors if each in ACTORS and each != "admin"]:
        for is_proven in (False, True):
            with WORLDS.enter(act.state) as (world, target):
                if is_proven:
                    store(world)
                door.attempt(world, who, act, target)
                assert {*mail_all(world)} <= ({"ada@example.com"} if is_proven else set()), who


@pytest.mark.parametrize("in_part", [False, True])
@pytest.mark.parametrize("stored", [None, False, True])
@pytest.mark.parametrize("says", [None, False, True])
@pytest.mark.parametrize("address", [VICTIM, "ada@example.com", "Ada@example.com"])
def test_a_client_with_a_users_key_proves_nothing(
    address: str, *, stored: bool | None, says: bool | None, in_part: bool
) -> None:
    """Whatever is stored before: only the very address that was verified before stays so, and 403 says so."""
    with WORLDS.enter("records") as (world, _):
        if stored is not None:
            store(world, verified=stored)
        contact: dict[str, Any] = {"address": address, **({} if says is None else {"verified": says})}
        stays = stored is True and address == "ada@example.com"
        is_refused = says is True and not stays
        ada = world.client("ada")
        save = ada.update_person if in_part else partial(ada.put_person, replace=True)
        if is_refused:
            with pytest.raises(CloudschedError, match="Only an admin"):
                save("ada", email=contact)
        else:
            assert save("ada", email=contact).email.verified is stays  # type: ignore[union-attr]
        assert mail_all(world) == (["ada@example.com"] if stays or (stored and is_refused) else [])


def test_an_address_that_was_left_is_no_longer_verified() -> None:
    """Who goes back to it has to show again that it is theirs, and a deletion forgets it as well."""
    with WORLDS.enter("records") as (world, _):
        ada = world.client("ada")
        for leave in (lambda: ada.update_person("ada", email={"address": VICTIM}), lambda: ada.delete_person("ada")):
            store(world)
            leave()
            assert ada.put_person("ada", email={"address": "ada@example.com"}).email.verified is False  # type: ignore[union-attr]
        assert mail_all(world) == []
