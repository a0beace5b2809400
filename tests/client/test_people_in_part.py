"""A person is changed in part at every door, and nothing of them is lost without a word."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from click.testing import CliRunner
from tests.client.harness import Flaky, catch_error
from tests.web.callers import MINUTE

from cloudsched.app import AsyncApp
from cloudsched.cli.main import cloudsched
from cloudsched.client import Client
from cloudsched.domain.documents.person import Device, EmailContact, Person, PersonPatch, PersonSpec
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import InvalidInput, NotFound, PreconditionFailed
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

WHOLE: Final[dict[str, Any]] = {
    "name": "Ada Lovelace",
    "email": {"address": "ada@example.com", "verified": True},
    "devices": [{"token": "phone"}, {"token": "tablet"}],
    "webhook": {"url": "https://example.com/hook", "verified": True},
    "telegram": {"id": "4711", "verified": True},
    "slack": {"id": "U012AB3CD", "verified": True},
    "timezone": "Europe/Paris",
    "locale": "fr-FR",
    "channels": {"REMINDER": ["EMAIL", "WEB"], "REPORT": []},
}
OTHERS: Final[dict[str, Any]] = {
    "name": "Ada",
    "email": {"address": "ada@example.org", "verified": False},
    "devices": [{"token": "phone"}],
    "webhook": {"url": "https://example.org/hook", "verified": False},
    "telegram": {"id": "4712", "verified": False},
    "slack": {"id": "W012AB3CD", "verified": False},
    "timezone": "America/New_York",
    "locale": "de",
    "channels": {"REMINDER": ["EMAIL", "WEB"], "REPORT": ["WEB"]},
}
"""Another value of each field, as it is then stored."""
assert WHOLE.keys() == OTHERS.keys() == PersonSpec.model_fields.keys() == PersonPatch.model_fields.keys()
UNSET: Final[dict[str, Any]] = PersonSpec().model_dump(mode="json", by_alias=True)

Change = Callable[..., Any]
ADA_IS_STORED = pytest.mark.usefixtures("secret")


def show(sim: Simulation) -> dict[str, Any]:
    """Return what is stored of Ada."""
    stored = sim.app.person("ada")
    return {name: stored.model_dump(mode="json", by_alias=True)[name] for name in WHOLE}


@pytest.fixture
def secret(sim: Simulation) -> str:
    """Store all of Ada, and return the secret of her webhook."""
    made = sim.app.put_person("ada", **WHOLE).webhook_secret
    assert made is not None
    return made


@pytest.fixture(params=["app", "async app", "client", "command"])
def change(request: pytest.FixtureRequest, sim: Simulation) -> Iterator[Change]:
    """What changes Ada in part, at each door."""
    with _open_door(request, sim) as door:
        yield door


@contextmanager
def _open_door(request: pytest.FixtureRequest, sim: Simulation) -> Iterator[Change]:
    match request.param:
        case "app":
            yield lambda **changes: sim.app.update_person("ada", **changes)
        case "async app":
            yield lambda **changes: asyncio.run(AsyncApp(sim.app).update_person("ada", **changes))
        case "client":
            with Client(request.getfixturevalue("url")) as client:
                yield lambda **changes: client.update_person("ada", **changes)
        case _:
            url = request.getfixturevalue("url")

            def run(**changes: Any) -> None:
                given = [f"--set={name}={json.dumps(value)}" for name, value in changes.items()]
                done = CliRunner().invoke(cloudsched, ["people", "--url", url, "update", "ada", *given])
                if done.exception is not None:
                    raise done.exception

            yield run


@ADA_IS_STORED
def test_a_change_in_part_keeps_all_else(sim: Simulation, change: Change) -> None:
    """Each field alone, to another value and to nothing: all others are as they were, at every door."""
    for name, value in OTHERS.items():
        before = show(sim)
        change(**{name: value})
        assert show(sim) == {**before, name: value}
        change(**{name: None})
        assert show(sim) == {**before, name: UNSET[name]}
    assert show(sim) == UNSET


@ADA_IS_STORED
def test_a_category_is_changed_alone(sim: Simulation, change: Change) -> None:
    """Who has ended mails of one kind does not get them again because another kind was changed."""
    change(channels={"ANALYSIS": ["EMAIL"]})
    assert show(sim)["channels"] == {**WHOLE["channels"], "ANALYSIS": ["EMAIL"]}
    change(channels={"REPORT": None})
    assert show(sim)["channels"] == {"REMINDER": ["EMAIL", "WEB"], "ANALYSIS": ["EMAIL"]}
    change(channels={})
    assert "REMINDER" in show(sim)["channels"]


@ADA_IS_STORED
def test_what_is_misspelled_is_refused_with_the_right_name(sim: Simulation, change: Change) -> None:
    """Also if it is set to nothing, inside a contact, and among categories; nothing of the rest is changed."""
    for changes, words in (
        ({"emial": None, "name": "B"}, "email"),
        ({"tz": "Asia/Tokyo", "name": "B"}, "timezone"),
        ({"email": {"adress": "b@example.com"}, "name": "B"}, "address"),
        ({"email": "b@example.com"}, '"address": …'),
        ({"webhook": "https://example.org/"}, '"url": …'),
        ({"devices": ["phone"]}, '"token": …'),
        ({"phone": "+331"}, "no channel to a phone number"),
        ({"channels": {"REMINDERS": None}, "name": "B"}, "REMINDER"),
        ({"timezone": "Europe/Pari"}, "Europe/Paris"),
    ):
        with pytest.raises(InvalidInput) as refused:
            change(**changes)
        assert words in str(refused.value)
    assert show(sim) == WHOLE


def test_nobody_is_made_by_a_change(sim: Simulation, change: Change) -> None:
    """A phone that reports its zone after its owner's data were erased leaves nothing behind."""
    for _ in range(2):
        with pytest.raises(NotFound, match="PUT or put_person"):
            change(timezone="Europe/Paris")
        with pytest.raises(NotFound):
            sim.app.person("ada")
        sim.app.put_person("ada", **WHOLE)
        PeopleWiring.of(sim.app.container).person_jobs.erase("ada", by=OWN_CODE)
        sim.advance(MINUTE)


def test_a_webhooks_secret_is_in_the_answer_and_survives_other_changes(
    sim: Simulation, client: Client, secret: str
) -> None:
    """Only a new URL makes one. Neither a change of something else nor the same URL once more shows or replaces it."""
    secrets = PeopleWiring.of(sim.app.container).people.webhook_secrets
    assert secrets.current("ada") == (secret,)
    assert sim.app.person("ada").webhook_secret is None
    for answer in (
        sim.app.update_person("ada", timezone="Asia/Tokyo", webhook={"url": WHOLE["webhook"]["url"]}),
        client.update_person("ada", name="B"),
    ):
        assert answer.webhook_secret is None
        assert answer.webhook is not None
        assert answer.webhook.verified
    assert secrets.current("ada") == (secret,)
    made = client.update_person("ada", webhook={"url": "https://example.org/"})
    assert secrets.current("ada") == (made.webhook_secret,) != (secret,)
    again = sim.app.update_person("ada", webhook=WHOLE["webhook"])
    assert secrets.current("ada") == (again.webhook_secret,)
    assert str(again.webhook_secret) not in repr(again)
    stored = PeopleWiring.of(sim.app.container).people.get("ada")
    assert str(again.webhook_secret) not in stored.to_stored_json()


@pytest.fixture(params=["app", "client"])
def put(request: pytest.FixtureRequest, sim: Simulation) -> Iterator[Change]:
    """What stores Ada in place of what there was."""
    if request.param == "app":
        yield lambda **fields: sim.app.put_person("ada", **fields)
    else:
        with Client(request.getfixturevalue("url")) as client:
            yield lambda **fields: client.put_person("ada", **fields)


@ADA_IS_STORED
def test_what_would_remove_something_has_to_say_so(sim: Simulation, put: Change) -> None:
    """Whatever is left out, emptied or cut; the refusal names it, and says how to change the rest alone."""
    cut = {"devices": [{"token": "tablet"}], "channels": {"REMINDER": ["EMAIL"]}}
    for name in WHOLE:
        rest = {other: value for other, value in WHOLE.items() if other != name}
        emptied = {**rest, name: UNSET[name]}
        for fields in (
            rest,
            *([{**rest, name: cut[name]}] if name in cut else []),
            *([emptied] * (name != "timezone")),
        ):
            with pytest.raises(InvalidInput, match="would be removed") as refused:
                put(**fields)
            assert refused.value.field == name
            assert "update_person('ada', " in refused.value.hint
            with pytest.raises(PreconditionFailed):
                put(**fields, etag='"other"', replace=True)
            assert show(sim) == WHOLE
        put(**rest, replace=True)
        assert show(sim) == {**WHOLE, name: UNSET[name]}
        put(**WHOLE)
        put(**rest, etag=f'"{sim.app.person("ada").etag}"')
        assert show(sim) == {**WHOLE, name: UNSET[name]}
        put(**WHOLE)


@ADA_IS_STORED
def test_what_removes_nothing_needs_no_permission(sim: Simulation, put: Change) -> None:
    """Another value in place of the old one, and one more; what is the same is not even written."""
    before = sim.app.person("ada")
    assert put(**WHOLE).etag.strip('"') == before.etag
    assert sim.app.person("ada") == before
    more = {"devices": [*WHOLE["devices"], {"token": "browser"}]}
    for name, value in {**OTHERS, **more, "timezone": "UTC"}.items():
        put(**{**WHOLE, name: value})
        assert show(sim)[name] == value
        sim.app.put_person("ada", **WHOLE, replace=True)


@ADA_IS_STORED
def test_changes_at_the_same_time_are_all_kept(sim: Simulation, client: Client) -> None:
    """One that another overtakes is decided again; with an etag it is refused, and overwrites nothing."""
    others: list[dict[str, Any]] = [{"locale": "de"}, {"channels": {"REPORT": ["WEB"]}}, {"timezone": "Asia/Tokyo"}]

    def overtake(_: object) -> None:
        if others:
            sim.app.update_person("ada", **others.pop())

    people = PeopleWiring.of(sim.app.container).people
    seen = client.person("ada").etag
    people.change("ada", PersonPatch(name="B"), by=OWN_CODE, check=overtake)
    assert not others
    assert show(sim) == {**WHOLE, "name": "B", "locale": "de", "timezone": "Asia/Tokyo", "channels": OTHERS["channels"]}
    updates: tuple[Change, ...] = (sim.app.update_person, client.update_person)
    for update in updates:
        with pytest.raises(PreconditionFailed):
            update("ada", devices=[{"token": "browser"}], etag=seen)
    assert show(sim)["devices"] == WHOLE["devices"]


def test_a_change_that_is_refused_late_takes_no_secret_away(sim: Simulation, secret: str) -> None:
    """It is refused because another one overtook it: the secret that it has made already replaces none."""
    people = PeopleWiring.of(sim.app.container).people
    other = {"url": "https://example.org/"}
    passes = iter([lambda: sim.app.update_person("ada", name="B")])

    def expect_the_first_state(current: Person | None) -> None:
        if current is None or current.name != WHOLE["name"]:
            raise PreconditionFailed("The person")

    make = people.webhook_secrets.replace

    def make_and_be_overtaken(owner: str, url: str) -> str:
        made = make(owner, url)
        next(passes, lambda: None)()
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people.webhook_secrets, "replace", make_and_be_overtaken)
        with pytest.raises(PreconditionFailed):
            people.change(
                "ada", PersonPatch.model_validate({"webhook": other}), by=OWN_CODE, check=expect_the_first_state
            )
    found = PeopleWiring.of(sim.app.container).recipients.find("ada", "WEBHOOK", "OTHERS")
    assert isinstance(found, tuple)
    assert [each.secrets for each in found] == [(secret,)]


@ADA_IS_STORED
def test_a_change_whose_answer_is_lost_succeeds_when_it_is_repeated(
    sim: Simulation, client: Client, flaky: Flaky, waits: list[float]
) -> None:
    """Though its etag is that of the state before: what it asks for is there already."""
    flaky.loses = True
    flaky.fail(503)
    client.update_person("ada", etag=client.person("ada").etag, name="B")
    flaky.fail(503)
    client.put_person("ada", etag=client.person("ada").etag, name="C")
    assert waits
    assert show(sim) == {**UNSET, "name": "C"}


@ADA_IS_STORED
def test_models_are_taken_as_fields(sim: Simulation, client: Client) -> None:
    """By the app and by the clients, like their JSON."""
    sim.app.update_person("ada", devices=(Device.model_validate({"token": "a"}),))
    client.update_person("ada", email=EmailContact(address="b@example.com"))
    assert (show(sim)["devices"], show(sim)["email"]["address"]) == ([{"token": "a"}], "b@example.com")


@ADA_IS_STORED
def test_a_test_meets_what_production_refuses(sim: Simulation) -> None:
    """`add_person` fills no contacts in again for somebody who is stored, so a test of a loss fails."""
    assert "update_person" in str(catch_error(lambda: sim.add_person("ada", timezone="Asia/Tokyo")))
    assert "update_person" in str(catch_error(lambda: sim.app.put_person("ada", timezone="Asia/Tokyo")))
    assert show(sim) == WHOLE
    sim.app.put_person("ada", name="Ada", replace=True)
    assert "update_person" in str(catch_error(lambda: sim.add_person("ada", name="Ada")))
    assert show(sim) == {**UNSET, "name": "Ada"}
