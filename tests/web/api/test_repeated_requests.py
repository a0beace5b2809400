"""A request whose answer was lost, sent again when its words mean something else: nothing is done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.authorities import A_USER
from tests.doors.world import WORLDS, World, headers_of
from tests.instants import about
from tests.verb_requests import REQUESTS
from tests.web.callers import DAY, GREETING, HOUR, MINUTE, Answer
from tests.web.conftest import Call, create, fetch

from cloudsched import (
    App,
    Context,
)
from cloudsched.adapters.sqlite.sweep import SqliteSweep
from cloudsched.domain.documents.task import MAX_REQUESTS, MAX_UNNAMED_REQUESTS, TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.errors import StoreUnavailable, Unauthenticated
from cloudsched.testing import Simulation

WORDS: list[Any] = [
    None,
    "now",
    {"delay": "PT2S"},
    "in 2 seconds",
    "PT2S",
    "in 10 minutes",
    "today at 0:30",
    "at 0:30",
    "every 10 minutes until today at 0:35",
    "2027-01-01T00:30:00Z",
]
"""What means another instant, or none, an hour later; and what always means the same. None is now."""
Send = tuple[str, dict[str, Any], dict[str, str]]


def by_id(task: dict[str, Any]) -> Send:
    return "/v1/tasks", {**task, "id": "pay-42"}, {}


def by_key(task: dict[str, Any]) -> Send:
    return "/v1/tasks", task, {"Idempotency-Key": "k"}


def by_payload(task: dict[str, Any]) -> Send:
    """Let the handler make the id; the key says that it is the same request."""
    return "/v1/tasks", {**task, "handler": "rebuild"}, {"Idempotency-Key": "k"}


def batch_by_id(task: dict[str, Any]) -> Send:
    return "/v1/tasks/batchCreate", {"tasks": [{**task, "id": "pay-42"}]}, {}


def batch_by_key(task: dict[str, Any]) -> Send:
    return "/v1/tasks/batchCreate", {"tasks": [task]}, {"Idempotency-Key": "k"}


def batch_by_both(task: dict[str, Any]) -> Send:
    """Give one task an id, and the others none: the key is theirs."""
    return "/v1/tasks/batchCreate", {"tasks": [{**task, "id": "t"}, task]}, {"Idempotency-Key": "k"}


CREATIONS = [by_id, by_key, by_payload, batch_by_id, batch_by_key, batch_by_both]


@pytest.fixture
def app() -> Iterator[App]:
    """The app of these tests: of one handler, the tasks' ids come from their payloads."""
    from cloudsched import App, Settings  # noqa: PLC0415 - beside what it makes

    app = App(Settings())
    app.handler("greet", access="users", draft="Greets")(_greet)
    app.handler("fails")(_fail)
    app.handler("calls")(_call_another)
    app.handler("rebuild", task_id=lambda payload: f"rebuild-{payload['name']}")(_greet)
    yield app
    app.close()


def _greet(payload: dict[str, Any]) -> str:
    return f"hello {payload.get('name')}"


def _fail(payload: dict[str, Any]) -> None:
    raise ValueError(payload)


def _call_another(ctx: Context) -> None:
    ctx.call("greet", {"name": "Bo"}, jitter=DAY).result()


def list_tasks(sim: Simulation) -> list[tuple[str, int, TaskStatus]]:
    """Return each task with how often it has run."""
    tasks = sorted(sim.app.tasks(TaskQuery()).items, key=lambda each: each.id)
    return [(each.id, len(sim.executions(each.id)), each.status) for each in tasks]


def results_of(answer: Answer) -> list[tuple[int, dict[str, Any]]]:
    """Return the status and the task of each that was asked for."""
    content = answer.json
    if "results" in content:
        return [(each["status"], each.get("task", each)) for each in content["results"]]
    return [(answer.status_code, content)]


@pytest.mark.parametrize("words", WORDS, ids=str)
@pytest.mark.parametrize("creation", CREATIONS, ids=lambda each: each.__name__)
def test_a_creation_that_is_sent_again_changes_nothing(
    sim: Simulation, call: Call, creation: Callable[[dict[str, Any]], Send], words: object
) -> None:
    """It is answered by the tasks as they are now, though its words mean another instant or one that has passed."""
    zone = {"timezone": "UTC"} if isinstance(words, str) else {}
    path, body, headers = creation({**GREETING, "schedule": words, **zone})
    made = results_of(call("POST", path, body, headers=headers))
    assert [status for status, _ in made] == [201] * len(made)
    sim.advance(HOUR)
    ran = list_tasks(sim)
    again = results_of(call("POST", path, body, headers=headers))
    assert [status for status, _ in again] == [200] * len(made)
    for _, task in again:
        told = task.pop("readBack")
        assert told["description"]
        assert "doubts" in task.pop("receipt")
        assert task.items() <= fetch(call, f"/v1/tasks/{task['id']}").items()
    sim.advance(HOUR)
    assert list_tasks(sim) == ran
    assert {status for *_, status in ran} == {TaskStatus.COMPLETED}
    assert {count for _, count, _ in ran} == {3 if str(words).startswith("every") else 1}


@pytest.mark.parametrize("creation", CREATIONS, ids=lambda each: each.__name__)
def test_a_creation_that_is_sent_again_undoes_no_edit(
    sim: Simulation, call: Call, creation: Callable[[dict[str, Any]], Send]
) -> None:
    """What somebody has changed since stays, also a cancel, and nothing is written."""
    path, body, headers = creation({**GREETING, "schedule": "in 30 minutes"})
    made = [task["id"] for _, task in results_of(call("POST", path, body, headers=headers))]
    for task_id in made:
        call("PATCH", f"/v1/tasks/{task_id}", {"title": "Edited", "schedule": "in 3 days"})
    sim.advance(HOUR)
    writes = sim.counts.writes
    again = results_of(call("POST", path, body, headers=headers))
    assert [task["title"] for _, task in again] == ["Edited"] * len(made)
    assert sim.counts.writes == writes
    for task_id in made:
        call("POST", f"/v1/tasks/{task_id}/cancel")
    call("POST", path, body, headers=headers)
    assert {status for *_, status in list_tasks(sim)} == {TaskStatus.CANCELLED}


def test_another_creation_with_the_id_is_an_edit(sim: Simulation, call: Call) -> None:
    """Also of the first one's words, once another creation has edited the task in between."""
    first, second = ({**GREETING, "id": "t", "schedule": words} for words in ("in 1 hour", "in 3 hours"))
    for body in (first, second):
        call("POST", "/v1/tasks", body)
    sim.advance(HOUR)
    assert list_tasks(sim) == [("t", 0, TaskStatus.ACTIVE)]
    assert call("POST", "/v1/tasks", first).json["nextExecutionTime"] == "2027-01-01T02:00:00Z"
    assert call("POST", "/v1/tasks", {**first, "owner": "bob"}).json["field"] == "id"
    sim.advance(HOUR)
    assert list_tasks(sim) == [("t", 1, TaskStatus.COMPLETED)]


@pytest.mark.parametrize("words", ["in 10 minutes", "one hour later", "PT10M", None], ids=str)
def test_an_edit_under_if_match_is_made_once(sim: Simulation, call: Call, words: str | None) -> None:
    """Sent again with the same ETag, it gets the task as it is, also once others have changed or run it."""
    seen = create(call, id="t", schedule="in 30 minutes").headers["ETag"]
    patch = {"title": "Later", **({} if words is None else {"schedule": words})}

    def edit() -> Answer:
        return call("PATCH", "/v1/tasks/t", patch, headers={"If-Match": seen})

    first = edit()
    sim.advance(MINUTE)
    assert edit().json == first.json
    call("PATCH", "/v1/tasks/t", {"description": "Theirs"})
    checked = call("PATCH", "/v1/tasks/t?validateOnly=true", patch, headers={"If-Match": seen})
    assert (checked.status_code, checked.json["description"]) == (200, "Theirs")
    again = edit()
    assert (again.status_code, again.json["description"]) == (200, "Theirs")
    sim.advance(3 * HOUR)
    assert edit().status_code == 200
    sim.advance(3 * HOUR)
    assert list_tasks(sim) == [("t", 1, TaskStatus.COMPLETED)]


def test_another_edit_of_a_state_that_has_gone_is_refused(sim: Simulation, call: Call) -> None:
    """Another content, and another ETag, are other edits; and one that names any state is made each time."""
    seen = create(call, id="t", schedule="in 30 minutes").headers["ETag"]
    later = {"schedule": "one hour later"}
    call("PATCH", "/v1/tasks/t", later, headers={"If-Match": seen})
    assert call("PATCH", "/v1/tasks/t", {"schedule": "2 hours later"}, headers={"If-Match": seen}).status_code == 412
    assert call("PATCH", "/v1/tasks/t", later, headers={"If-Match": f'"x", {seen}'}).status_code == 412
    for _ in range(2):
        assert call("PATCH", "/v1/tasks/t", later, headers={"If-Match": "*"}).status_code == 200
    later_by_three = about([sim.now + timedelta(hours=3, minutes=30)])
    assert sim.app.upcoming("t") == later_by_three


def test_a_task_remembers_a_few_edits(call: Call) -> None:
    """Its latest, so that what it stores is bounded; an earlier one is refused as before."""
    seen = [create(call, id="t", schedule="in 30 minutes").headers["ETag"]]
    for number in range(MAX_REQUESTS + 1):
        edit = call("PATCH", "/v1/tasks/t", {"title": f"{number}"}, headers={"If-Match": seen[-1]})
        seen.append(edit.headers["ETag"])
    statuses = [
        call("PATCH", "/v1/tasks/t", {"title": f"{number}"}, headers={"If-Match": seen[number]}).status_code
        for number in range(MAX_REQUESTS + 1)
    ]
    assert statuses == [412] + [200] * MAX_REQUESTS


def test_other_requests_make_a_task_forget_no_creation(sim: Simulation, call: Call) -> None:
    """However many there are: the creation that is sent again undoes no edit."""
    for path, body, headers in (creation({**GREETING, "schedule": "in 5 hours"}) for creation in (by_id, by_key)):
        task_id = call("POST", path, body, headers=headers).json["id"]
        call("PATCH", f"/v1/tasks/{task_id}", {"title": "Edited"})
        for number in range(MAX_REQUESTS + 1):
            call("POST", f"/v1/tasks/{task_id}/trigger")
            call("POST", f"/v1/tasks/{task_id}/trigger", headers={"Idempotency-Key": f"{number}"})
            sim.advance(timedelta(0))
        assert call("POST", path, body, headers=headers).json["title"] == "Edited"
        assert len(sim.app.get(task_id).recent_requests) == MAX_REQUESTS + MAX_UNNAMED_REQUESTS + 1


# ── All other changes ──────────────────────────────────────────────────────────────────────────────────────────────


VERBS: dict[str, tuple[str, dict[str, Any] | None]] = {
    **{verb.word: request for verb, request in REQUESTS.items() if verb is not Verb.CANCEL_RUN},
    "trigger": ("/trigger", {"payload": {"name": "Bo"}}),
    "backfill": ("/backfill", {"start": "2027-01-01T01:00:00Z", "end": "2027-01-01T03:00:00Z"}),
    "send": ("/events/x", {"payload": 1, "early": True}),
}

OTHERS: dict[str, dict[str, Any]] = {
    "retry": {"fromStep": 1},
    "backfill": {"end": "2027-01-01T02:00:00Z"},
    "snooze": {"duration": "20 minutes"},
}


def prepare(call: Call, sim: Simulation, verb: str, schedule: str = "every hour from 2027-01-01T01:00Z") -> str:
    """Make a task of which something has failed; return its ETag."""
    create(call, id="t", handler="fails", schedule=schedule, retry={"maxRetries": 0})
    sim.advance(timedelta(hours=3, minutes=30))
    if verb == "resume":
        call("POST", "/v1/tasks/t/pause")
    return str(call("GET", "/v1/tasks/t").headers["ETag"])


def count_attempts(sim: Simulation) -> Counter[str]:
    """Return how many attempts have been made, by what asked for their runs."""
    counts = Counter[str]()
    for each in sim.executions("t"):
        counts[each.trigger] += each.attempt_count
    return counts


@pytest.mark.parametrize("named_by", ["key", "state"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_is_sent_again_is_done_once(sim: Simulation, call: Call, verb: str, named_by: str) -> None:
    """Also once it is over, others have undone it, and somebody has changed the task: nothing is written then."""
    seen = prepare(call, sim, verb)
    path, body = f"/v1/tasks/t{VERBS[verb][0]}", VERBS[verb][1]
    headers = {"If-Match": seen} if named_by == "state" else {"Idempotency-Key": "k"}
    assert call("POST", path, body, headers=headers).status_code == 200
    call("POST", f"/v1/tasks/t/{'pause' if verb == 'resume' else 'resume'}")
    theirs = {"title": "Theirs", "schedule": {"at": "2027-01-04T00:00:00Z"}}
    assert call("PATCH", "/v1/tasks/t", theirs).status_code == 200
    sim.advance(HOUR)
    ran, stored, writes = count_attempts(sim), fetch(call, "/v1/tasks/t"), sim.counts.writes
    again = call("POST", path, body, headers=headers)
    assert (again.status_code, again.json["title"]) == (200, "Theirs")
    assert sim.counts.writes == writes
    assert fetch(call, "/v1/tasks/t") == stored
    sim.advance(HOUR)
    assert count_attempts(sim) == ran
    if named_by == "state":
        assert call("POST", path, body, headers={"If-Match": f'{seen}, "x"'}).status_code == 412


@pytest.mark.parametrize("verb", ["retry", "backfill", "snooze", "send"])
def test_another_key_is_another_request_of_a_verb(sim: Simulation, call: Call, verb: str) -> None:
    """It is done once more; the same key with another content is refused, and changes nothing."""
    prepare(call, sim, verb, "at 01:00" if verb == "retry" else "every day at 01:00")
    path, body = f"/v1/tasks/t{VERBS[verb][0]}", VERBS[verb][1]
    before = count_attempts(sim).total()
    for key in ("a", "b", "a"):
        said = {**(body or {}), "payload": key} if verb == "send" else body  # the same payload would be the same answer
        assert call("POST", path, said, headers={"Idempotency-Key": key}).status_code == 200
        sim.advance(HOUR)
    reused = {"payload": "c"} if verb == "send" else {**(body or {}), **OTHERS[verb]}
    assert call("POST", path, reused, headers={"Idempotency-Key": "a"}).status_code == 422
    if verb == "send":
        assert len(sim.app.get("t").events) == 2
    else:
        assert count_attempts(sim).total() == before + 2
    assert call("POST", path, body, headers={"Idempotency-Key": "a\tb"}).status_code == 400
    assert call("PATCH", "/v1/tasks/t?validateOnly=true", {}, headers={"Idempotency-Key": "a\tb"}).status_code == 400


@pytest.mark.parametrize("verb", ["pause", "snooze", "retry"])
def test_a_keyed_verb_that_changed_nothing_is_known_too(sim: Simulation, call: Call, verb: str) -> None:
    """It was so already; sent again when it is no longer so, it changes nothing, and the history tells of it once."""
    prepare(call, sim, verb, "every day at 01:00")
    path, body = f"/v1/tasks/t{VERBS[verb][0]}", VERBS[verb][1]
    call("POST", path, body)
    assert call("POST", path, body, headers={"Idempotency-Key": "k"}).status_code == 200
    call("POST", "/v1/tasks/t/resume")
    sim.advance(HOUR)
    ran, stored = count_attempts(sim), fetch(call, "/v1/tasks/t")
    assert call("POST", path, body, headers={"Idempotency-Key": "k"}).status_code == 200
    sim.advance(HOUR)
    assert (count_attempts(sim), fetch(call, "/v1/tasks/t")) == (ran, stored)
    entries = fetch(call, "/v1/tasks/t/history")["entries"]
    assert Counter(each["action"] for each in entries).most_common(1)[0][1] == 1


@pytest.mark.parametrize("named_by", ["key", "state"])
def test_a_deletion_that_was_cut_short_is_finished_by_its_repetition(
    sim: Simulation, call: Call, named_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what the first answer would have said; another deletion, and one of what is gone, find nothing."""
    seen = prepare(call, sim, "delete")
    headers = {"If-Match": seen} if named_by == "state" else {"Idempotency-Key": "k"}
    with monkeypatch.context() as patch:
        patch.setattr(SqliteSweep, "purge", _die)
        assert call("DELETE", "/v1/tasks/t", headers=headers).status_code == 503
    assert sim.app.container.store.load("t") is not None
    assert call("GET", "/v1/tasks/t").status_code == 404
    for other in ({}, {"If-Match": '"x"'}, {"Idempotency-Key": "other"}):
        assert call("DELETE", "/v1/tasks/t", headers=other).status_code == 404
    assert call("DELETE", "/v1/tasks/t", headers=headers).status_code == 204
    assert sim.app.container.store.load("t") is None
    assert call("DELETE", "/v1/tasks/t", headers=headers).status_code == 404


def _die(*_: object) -> None:
    raise StoreUnavailable("the store", "it is gone")


def test_an_expired_credential_finishes_no_deletion(
    sim: Simulation, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked again at the repetition, as before any change."""
    prepare(call, sim, "delete")
    mark = RequestMark.of_name("k", None)
    with monkeypatch.context() as patch:
        patch.setattr(SqliteSweep, "purge", _die)
        with pytest.raises(StoreUnavailable):
            sim.app.marked(mark).delete("t")
    expired = replace(A_USER, is_valid=lambda: False)
    with pytest.raises(Unauthenticated):
        sim.app.acting_with(expired).marked(mark).delete("t")
    assert sim.app.container.store.load("t") is not None
    sim.app.acting_with(A_USER).marked(mark).delete("t")
    assert sim.app.container.store.load("t") is None


def test_a_deletion_of_an_earlier_task_is_not_one_of_the_next(sim: Simulation, call: Call) -> None:
    """A task of the same id, made since, is another one."""
    seen = prepare(call, sim, "delete")
    assert call("DELETE", "/v1/tasks/t", headers={"If-Match": seen}).status_code == 204
    prepare(call, sim, "delete")
    assert call("DELETE", "/v1/tasks/t", headers={"If-Match": seen}).status_code == 412


def test_a_cancel_that_is_sent_again_leaves_what_was_started_since(sim: Simulation, call: Call, app: App) -> None:
    """A task that was rescheduled after its cancel keeps its calls, also while its dispatch is yet to be sent."""
    create(call, id="t", handler="calls", payload={}, schedule="in 1 hour")
    key = {"Idempotency-Key": "k"}
    call("POST", "/v1/tasks/t/cancel", headers=key)
    call("PATCH", "/v1/tasks/t", {"schedule": "in 2 hours"})
    sim.advance(timedelta(hours=2, minutes=1))
    stored = app.container.store.load("t")
    assert stored is not None
    app.container.engine.committer.try_to_change(stored, sim.now, deferred=True)
    assert call("POST", "/v1/tasks/t/cancel", headers=key).status_code == 200
    child = next(each for each in app.tasks(TaskQuery()).items if each.parent)
    assert child.status is TaskStatus.ACTIVE


# ── Whose request it is ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def world() -> Iterator[World]:
    """A world with several people, in which there is nothing yet."""
    with WORLDS.enter() as (world, _):
        world.has_records = True  # nobody uses it again
        yield world


def test_a_repetition_shows_nobody_what_is_not_theirs(world: World) -> None:
    """The same request by somebody else is one of their own, or refused as it always is.

    The same content from a server is a request of its own: what it names, it names with a server's rights.
    """
    body = {"handler": "open", "schedule": "in 30 minutes", "id": "pay-42", "lockKey": "press"}
    made = world.ask("POST", "/v1/tasks", body, headers_of("ada")).get_json()
    theirs = world.ask("POST", "/v1/tasks", body, headers_of("bob"))
    assert (theirs.status_code, theirs.get_json()["id"] == made["id"]) == (201, False)
    named = {**body, "id": made["id"], "owner": "ada"}
    assert world.ask("POST", "/v1/tasks", named, headers_of("bob")).status_code == 403
    assert world.ask("POST", "/v1/tasks", {**body, "id": made["id"]}, headers_of("bob")).status_code == 201
    for who in ("reader", "viewer", "worker", "delegate"):
        assert world.ask("POST", "/v1/tasks", body, headers_of(who)).status_code == 403
    assert world.ask("POST", "/v1/tasks", {**body, "owner": "ada"}, headers_of("ada")).status_code == 200
    assert world.ask("POST", "/v1/tasks", named, headers_of("admin")).get_json()["lockScope"] == "GLOBAL"


def test_an_edit_is_known_from_its_own_caller_only(world: World) -> None:
    """Two callers who make the same edit of the same state are two: the second one is told that it has changed."""
    body = {"handler": "open", "schedule": "in 30 minutes", "id": "t"}
    made = world.ask("POST", "/v1/tasks", body, headers_of("ada"))
    path, seen = f"/v1/tasks/{made.get_json()['id']}", {"If-Match": made.headers["ETag"]}
    later = {"schedule": "one hour later"}
    statuses = [
        world.ask("PATCH", path, later, {**headers_of(who), **seen}).status_code
        for who in ("ada", "admin", "bob", "viewer", "ada")
    ]
    assert statuses == [200, 412, 404, 403, 200]
    acting = {**headers_of("delegate"), "X-On-Behalf-Of": "ada", **seen}
    assert world.ask("PATCH", path, later, acting).status_code == 412


SIDES: dict[str, dict[str, str]] = {
    "ada": headers_of("ada"),
    "admin": headers_of("admin"),
    "delegate": {**headers_of("delegate"), "X-On-Behalf-Of": "ada"},
}
"""The sides that may change Ada's task: she, servers, and servers that act for her."""


@pytest.mark.parametrize("kind", ["keys", "states", "events", "unnamed"])
@pytest.mark.parametrize("stranger", SIDES)
@pytest.mark.parametrize("side", SIDES)
def test_a_side_s_requests_are_remembered_whatever_others_ask(
    world: World, side: str, stranger: str, kind: str
) -> None:
    """No other side displaces one, however it names its changes, and neither do one's own that have no name."""
    if side == stranger and kind in {"keys", "states"}:
        pytest.skip("a side displaces its own names")
    fields = {"handler": "open", "schedule": "every day at 23:00", "id": "t"}
    task_id = world.ask("POST", "/v1/tasks", fields, headers_of("ada")).get_json()["id"]
    path, asked = f"/v1/tasks/{task_id}", {**SIDES[side], "Idempotency-Key": "invoice-7"}
    first = world.ask("POST", f"{path}/trigger", None, asked).get_json()["triggered"]
    for number in range(MAX_REQUESTS + 1):
        headers = dict(SIDES[stranger])
        if kind == "states":
            headers["If-Match"] = world.ask("GET", path, None, headers).headers["ETag"]
        elif kind == "keys":
            headers["Idempotency-Key"] = f"{number}"
        if kind == "events":
            answer = world.ask("POST", f"{path}/events/own", {"payload": number, "early": True}, headers)
            assert answer.status_code in {200, 409}
        elif kind == "unnamed":
            assert world.ask("POST", f"{path}/trigger", None, headers).status_code == 200
            world.sim.advance(timedelta(0))
        else:
            assert world.ask("PATCH", path, {"title": f"{number}"}, headers).status_code == 200
            assert world.ask("POST", f"{path}/{'resume' if number % 2 else 'pause'}", None, headers).status_code in {
                200,
                412,
            }
    again = world.ask("POST", f"{path}/trigger", None, asked)
    assert (again.status_code, again.get_json()["triggered"]) == (200, first)


@pytest.mark.parametrize("verb", ["trigger", "snooze", "backfill"])
def test_a_key_is_of_its_own_caller(world: World, verb: str) -> None:
    """The same key of a user, an admin and servers that act for the user names a request of each."""
    body = {"handler": "open", "schedule": "every day at 23:00", "id": "t"}
    task_id = world.ask("POST", "/v1/tasks", body, headers_of("ada")).get_json()["id"]
    world.sim.advance(DAY)
    before = len(world.sim.executions(task_id))
    content = {"start": "2027-01-01T23:00:00Z", "end": "2027-01-01T23:00:00Z"} if verb == "backfill" else None
    delegates = [{**headers_of(who), "X-On-Behalf-Of": "ada"} for who in ("delegate", "admin")]
    callers = [headers_of("ada"), headers_of("admin"), *delegates]
    for _ in range(2):
        for caller in callers:
            asked = {**caller, "Idempotency-Key": "k"}
            assert world.ask("POST", f"/v1/tasks/{task_id}/{verb}", content, asked).status_code == 200
            world.sim.advance(HOUR)
    assert len(world.sim.executions(task_id)) == before + len(callers)
    for stranger in ("bob", "reader", "viewer", "worker"):
        asked = {**headers_of(stranger), "Idempotency-Key": "k"}
        assert world.ask("POST", f"/v1/tasks/{task_id}/{verb}", content, asked).status_code in {403, 404}
