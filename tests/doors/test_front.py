"""What the other doors are compared with: the API itself refuses what is not a person's to do, and changes nothing."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import pytest
from tests.cases import try_each
from tests.doors.acts import (
    ACTS,
    CREATIONS,
    EDITS,
    FROM_SERVERS_ALONE,
    MANY,
    READS_OF_A_DAY,
    READS_OF_A_TASK,
    READS_OF_LISTS,
    RECORDS,
    VERBS,
    WORK,
    Act,
)
from tests.doors.doors import DONE
from tests.doors.outcomes import enter_front, leave
from tests.doors.world import WORLDS, Target, headers_of
from tests.web.callers import DAY

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.children import CHILDREN_HANDLER
from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.domain.documents.system_tasks import ASSISTANT_HANDLER
from cloudsched.web.api.operations import OPERATIONS

HOOK = "https://bank.example"
STARTS = ("resume", "trigger", "trigger with a payload", "retry", "backfill")
WRITTEN = frozenset(each.name for each in OPERATIONS if each.method == "PUT")
"""The operations that store, under a name, what tasks may refer to."""
REFERENCES: dict[str, dict[str, Any]] = {
    "put_script": {"script": {"name": "scr"}},
    "put_calendar": {"schedule": {"rrule": "FREQ=DAILY;BYHOUR=9", "timezone": "UTC", "calendars": [{"id": "cal"}]}},
    "put_person": {"onCompletion": {"webhook": f"{HOOK}/internal"}},
    "put_budget": {"queryPerExecution": 1},
}
"""How a task refers to what each of these stores."""
ENDS_IT = {"pause", "cancel", "delete_task", "erase a person"}
"""What ends or holds a server's task: its owner may."""
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


READS: Final = (*READS_OF_A_TASK, *READS_OF_A_DAY, *READS_OF_LISTS, *RECORDS, *MANY)
OF_THEIR_OWN: Final = {"batch_create_tasks", "draft_task"}


@try_each("act", [each for each in READS if each.operation not in OF_THEIR_OWN])
def test_a_stranger_sees_and_changes_nothing(act: Act) -> None:
    """Neither a task and what ran, nor a list, nor a record, nor many at once, whether they name its owner or not."""
    for origin in act.origins:
        outcome = enter_front("bob", act.name, origin)
        assert (outcome.stored, outcome.seen) == (leave(origin, act.state), frozenset()), origin
        assert outcome.status != DONE or not act.names_owner, origin


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


def run_servers_task(handler: str | None, act: Act | None) -> tuple[int, list[dict[str, Any]], list[Any]]:
    """Let a server's task for Ada refer to all that there is, and Ada act; return what has run, and what was posted."""
    with WORLDS.enter() as (world, _):
        world.prepare("served", "records")
        for owner, url in (("ada", "https://ada.example"), ("system", HOOK)):
            person = {"name": owner, "webhook": {"url": url, "verified": True}}
            assert world.ask("PUT", f"/v1/people/{owner}?replace=true", person, headers_of("admin")).status_code in {
                200,
                201,
            }
        script = {"source": "return input", "owner": "ada"}
        assert world.ask("PUT", "/v1/scripts/scr", script, headers_of("admin")).status_code == HTTPStatus.OK
        body: dict[str, Any] = {"owner": "ada", "title": "Charge", "payload": {"text": "a server's"}}
        for fields in REFERENCES.values():
            body |= fields
        if handler is not None:
            body = {**body, "handler": handler, "script": None}
        made = world.ask("POST", "/v1/tasks", body, headers_of("admin")).get_json()
        status = 0
        if act is not None:
            method, path, sent = act.request(Target("served", "ada", made["id"]))
            status = world.ask(method, path, sent, headers_of("ada")).status_code
        world.sim.advance(4 * DAY)
        ran = world.ask("GET", f"/v1/tasks/{made['id']}/executions", headers=headers_of("admin")).get_json()
        messages = [(each.address, each.message) for each in world.sim.sent("COMPLETION")]
        posted = [(address, each.data["executionId"]) for address, each in messages]
        return status, ran.get("executions", []), posted


@pytest.mark.parametrize("handler", [None, "open"])
def test_what_a_user_does_is_no_server_s_result(handler: str | None) -> None:
    """A server's next runs are as without it; or their records say that they are the user's, and nothing vouches."""
    _, usual, posted = run_servers_task(handler, None)
    before = {each["id"]: (each["status"], each.get("content")) for each in usual}
    result = {"text": "a server's"} if handler is None else "result of Charge"
    assert ("SUCCEEDED", result) in before.values()
    assert len(posted) == len(usual)

    def check(act: Act) -> None:
        status, ran, told = run_servers_task(handler, act)
        if act.name in ENDS_IT and status < HTTPStatus.BAD_REQUEST:
            return
        own = [each for each in ran if each.get("definedBy") != Requesters.USERS]
        asked = [(each["status"], each.get("content")) for each in own if each["trigger"] == "MANUAL"]
        planned = {each["id"]: (each["status"], each.get("content")) for each in own if each["trigger"] == "SCHEDULE"}
        assert planned.items() <= before.items()
        assert all(each in before.values() for each in asked)
        assert before.keys() <= {each["id"] for each in ran} or len(own) < len(ran)
        assert {f"{HOOK}/internal"} >= {address for address, _ in told}
        assert {each["id"] for each in own} >= {execution for _, execution in told}

    try_each("act", [each for each in (*RECORDS, *VERBS, *EDITS) if each.state in {"active", "records"}])(check)()


def test_every_kind_of_what_tasks_refer_to_is_listed() -> None:
    """A new operation that stores something under a name joins the table above."""
    assert set(REFERENCES) == WRITTEN


def test_every_handler_of_the_system_is_listed() -> None:
    """A new one is no user's to name, unless it runs what users may name anyway."""
    with WORLDS.enter() as (world, _):
        built_in = set(world.app.container.registry._built_in)  # noqa: SLF001 - nothing else lists them
    listed = {fields.get("handler") for fields in FROM_SERVERS_ALONE.values()}
    assert built_in - {CHILDREN_HANDLER, SCRIPT_HANDLER, ASSISTANT_HANDLER} <= listed
