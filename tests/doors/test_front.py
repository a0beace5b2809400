"""What the other doors are compared with: the API itself refuses what is not a person's to do, and changes nothing."""

from __future__ import annotations

import pytest
from tests.cases import try_each
from tests.doors.acts import ACTS, CREATIONS, EDITS, FROM_SERVERS_ALONE, VERBS, WORK, Act
from tests.doors.doors import DONE
from tests.doors.outcomes import enter_front, leave
from tests.doors.world import WORLDS

from cloudsched.domain.documents.builtin_handlers import ASSISTANT_HANDLER
from cloudsched.domain.documents.children import CHILDREN_HANDLER
from cloudsched.domain.documents.script import SCRIPT_HANDLER

STARTS = ("resume", "trigger", "trigger with a payload", "retry", "backfill")
REPLACED = {"edit the handler"}
"""What makes another task of it, which the user could have created."""
CLAIMS = [each.name for each in WORK]
JUDGED_LATER = {"a callback to anybody", "a ping to anybody"}
"""What is checked when it is used: a user's callback goes to endpoints of their own alone, a ping to allowed hosts."""


@try_each("act", [each for each in (*CREATIONS, *EDITS) if each.asks_for in FROM_SERVERS_ALONE])
def test_a_user_does_not_get_what_only_servers_may_ask_for(act: Act) -> None:
    """Neither in a new task nor by an edit, of their own task and of one that a server wrote for them."""
    if act.asks_for in JUDGED_LATER:
        return
    for origin in act.origins:
        outcome = enter_front("ada", act.name, origin)
        assert outcome.status != DONE, origin
        assert outcome.stored == leave(origin, act.state), origin


@pytest.mark.parametrize("who", ["bob", "reader", "viewer", "worker"])
@try_each("act", [each for each in (*EDITS, *VERBS) if each.state != "none"])
def test_only_the_owner_and_admins_change_a_task(act: Act, who: str) -> None:
    """A stranger learns nothing of it either."""
    if who not in act.actors:
        return
    for origin in act.origins:
        outcome = enter_front(who, act.name, origin)
        assert (outcome.status != DONE, outcome.stored) == (True, leave(origin, act.state)), origin
        assert who != "bob" or not outcome.seen


@try_each("act", [each for each in (*EDITS, *VERBS, *WORK) if each.origins])
def test_a_user_does_nothing_with_what_is_another_s(act: Act) -> None:
    """Whether it is another user's or the system's."""
    for origin in set(act.origins) & {"other", "system"}:
        outcome = enter_front("ada", act.name, origin)
        assert outcome.stored == leave(origin, act.state), origin
        assert not outcome.seen, origin


@try_each("name", [*STARTS, *(each.name for each in EDITS if each.name not in REPLACED), *CLAIMS])
def test_a_user_neither_starts_nor_writes_nor_does_what_a_server_wrote_for_them(name: str) -> None:
    """They may read, pause, cancel and delete it."""
    act = next(each for each in ACTS if each.name == name)
    outcome = enter_front("ada", name, "served")
    assert outcome.stored == leave("served", act.state)


@try_each("name", ["pause", "cancel", "delete_task", *STARTS])
def test_an_owner_has_their_own_tasks(name: str) -> None:
    """What they may not do with a server's they may do with theirs: the refusals above are not for everything."""
    assert enter_front("ada", name, "own").status == DONE
    assert enter_front("admin", name, "served").status == DONE


def test_every_handler_of_the_system_is_listed() -> None:
    """A new one is no user's to name, unless it runs what users may name anyway."""
    with WORLDS.enter("own", "none") as (world, _):
        built_in = set(world.app.container.registry._built_in)  # noqa: SLF001 - nothing else lists them
    listed = {fields.get("handler") for fields in FROM_SERVERS_ALONE.values()}
    assert built_in - {CHILDREN_HANDLER, SCRIPT_HANDLER, ASSISTANT_HANDLER} <= listed
