"""`allowedVerbs` says what the API would do.

For each caller, kind of task and state, a verb is in it if and only if the API accepts it and something changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.verb_requests import REQUESTS
from tests.web.callers import DAY, HOUR, PEOPLE, RoleHarness, make_keys

from cloudsched import App, Context, Schedule, Settings
from cloudsched.domain.documents.authority import TRUSTED_CODE, Requesters, SenderRole
from cloudsched.domain.documents.children import Child
from cloudsched.domain.documents.delivery_channels import DELIVERY_HANDLER
from cloudsched.domain.documents.event import Event
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Lease, Run, Suspension
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.task import Backfill, Parent, Task, TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.features.locks.fields import LockScope
from cloudsched.testing import START, Simulation

PAST = START - 3 * DAY
HOURLY = Schedule.every(HOUR, start=PAST)
LATER = Schedule.every(HOUR, start=START + DAY)
CHANGES: dict[Verb, tuple[str, str, object]] = {
    Verb.EDIT: ("PATCH", "", {"title": "Another"}),
    Verb.DELETE: ("DELETE", "", None),
    **{
        verb: ("POST", path, body)
        for verb, (path, body) in REQUESTS.items()
        if verb not in {Verb.RETRY, Verb.CANCEL_RUN}
    },
    Verb.BACKFILL: ("POST", "/backfill", {"start": PAST.isoformat(), "end": START.isoformat()}),
}
"""How a task is changed. A retry, and a cancel of one run, are of an execution."""
CALL = Parent(task_id="top", execution_id="e", step=1, depth=1)
KINDS: dict[str, dict[str, Any]] = {
    "users'": {},
    "servers'": {"handler": "closed"},
    "coming": {"schedule": LATER},
    "once": {"schedule": Schedule.once(START + HOUR)},
    "too urgent for users": {"handler": "modest", "priority": Priority.HIGH},
    "own lock": {"lock_key": "k", "lock_scope": LockScope.OWNER},
    "operator's lock": {"lock_key": "k"},
    "children": {"handler": None, "children": (Child(handler="open"),)},
    "servers' children": {"handler": None, "children": (Child(handler="open"), Child(handler="closed"))},
    "for workers": {"pull": "gpu"},
}
"""What tasks are created with, by the app's own code."""
REMADE: dict[str, dict[str, Any]] = {
    "code's call": {"parent": CALL},
    "owner's call": {"parent": CALL.model_copy(update={"is_owners": True})},
    "delivery": {"handler": DELIVERY_HANDLER},
    "of a handler that is gone": {"handler": "gone"},
}
"""What other kinds differ in, which nobody can ask for."""
LEASE = Lease(token_hash="x", started_at=START, until=START + HOUR)  # noqa: S106 - no password


def make_run(number: int = 0, **fields: Any) -> Run:
    return Run(execution_id=f"run-{number}", scheduled_for=START, due_at=START, **fields)


def waits_for(name: str) -> Run:
    """Return a run whose handler waits for an event of its owner."""
    waiting = Suspension(at=START, reason="waits", events=(name,), senders=(SenderRole.OWNER,))
    return make_run(suspension=waiting, steps=1)


FULL = tuple(Event(name="other", at=START, sender=TRUSTED_CODE, token=str(n)) for n in range(20))
OVER = {"next_execution_time": None}
PAUSED = {"status": TaskStatus.PAUSED, **OVER}
STATES: dict[str, dict[str, Any]] = {
    "active": {},
    "running": {"runs": (make_run(lease=LEASE),)},
    "busy": {"runs": tuple(make_run(n, lease=LEASE) for n in range(20))},
    "backfilling": {"backfill": Backfill(requested_at=START, next_at=PAST, until=START), "runs": (make_run(),)},
    "full of events": {"events": FULL, "runs": (make_run(lease=LEASE),)},
    "full of events, and waits for one": {"events": FULL, "runs": (waits_for("approved"),)},
    "paused": PAUSED,
    "paused by its user": {**PAUSED, "paused_by": Requesters.USERS},
    "paused as gone": {**PAUSED, "is_paused_as_gone": True},
    "completed": {"status": TaskStatus.COMPLETED, **OVER},
    "failed": {"status": TaskStatus.FAILED, **OVER},
    "expired": {"status": TaskStatus.EXPIRED, **OVER},
    "cancelled": {"status": TaskStatus.CANCELLED, **OVER},
    "cancelled, and still running": {"status": TaskStatus.CANCELLED, **OVER, "runs": (make_run(lease=LEASE),)},
}

MAIN_STATES = ("active", "full of events", "paused", "paused by its user", "failed")
"""States that meet every kind of task; the others need not, since kinds matter only to the right to start."""


app = App(Settings())
"""Handlers open to users, to servers only, and open with limits."""


def work(ctx: Context) -> None:
    pass


app.handler("open", access="users")(work)
app.handler("closed")(work)
app.handler("modest", access="users", user_max_priority=Priority.LOW)(work)


class World(RoleHarness):
    """An API with a key for each role, and tasks in states that the test chooses."""

    made = 0

    def create(self, kind: str) -> Task:
        """Return a task of a kind, which is a pattern for others."""
        fields: dict[str, Any] = {"owner": "ada", "title": kind, "handler": "open", "schedule": HOURLY}
        fields |= KINDS.get(kind, {})
        if fields["handler"] is None:
            del fields["handler"]
        task = self.sim.app.create(**fields)
        return task.model_copy(update=REMADE.get(kind, {}))

    def copy(self, pattern: Task, state: dict[str, Any], records: tuple[Execution, ...] = ()) -> str:
        """Store a task like another one, in another state; return its id."""
        self.made += 1
        task = pattern.model_copy(update={**state, "id": f"t{self.made}"})
        records = tuple(each.model_copy(update={"task_id": task.id}) for each in records)
        self.sim.app.container.store.commit(Commit(task, None, records))
        return task.id

    def has_changed(self, task_id: str, before: Task) -> bool:
        stored = self.sim.app.container.store.load(task_id)
        return stored is None or stored.task != before


@pytest.fixture
def world(simulate: Callable[..., Simulation]) -> World:
    keys, access = make_keys(PEOPLE)
    return World(simulate(access=access), keys)


@pytest.mark.parametrize("kind", [*KINDS, *REMADE])
def test_verb_is_allowed_if_and_only_if_api_accepts_it(world: World, kind: str) -> None:
    """Whatever role, kind of task and state, a verb is offered exactly if it is accepted and changes the task."""
    pattern = world.create(kind)
    states = STATES if kind in {"users'", "once"} else {name: STATES[name] for name in MAIN_STATES}
    cases = {*itertools.product(states, ("ada", "admin")), *itertools.product(("active", "paused"), PEOPLE)}
    for state, who in sorted(cases):
        fields = STATES[state]
        task_id = world.copy(pattern, fields)
        answer = world.ask(who, "GET", f"/v1/tasks/{task_id}")
        allowed = set(answer.json.get("allowedVerbs", ()))
        accepted = set()
        for verb, (method, path, body) in CHANGES.items():
            stored = world.sim.app.container.store.load(task_id)
            assert stored is not None
            sent = world.ask(who, method, f"/v1/tasks/{task_id}{path}", body)
            if sent.status_code < 400 and world.has_changed(task_id, stored.task):
                accepted.add(verb.value)
                task_id = world.copy(pattern, fields)
        assert allowed == accepted, f"{who}, {kind}, {state}"


def test_paused_task_past_its_only_instant_cannot_be_resumed(world: World) -> None:
    """Time alone takes `resume` away: the only instant of a paused task has passed."""
    task_id = world.copy(world.create("once"), PAUSED)
    assert "resume" in world.ask("ada", "GET", f"/v1/tasks/{task_id}").json["allowedVerbs"]
    world.sim.advance(2 * HOUR)
    assert "resume" not in world.ask("ada", "GET", f"/v1/tasks/{task_id}").json["allowedVerbs"]
    assert world.ask("ada", "POST", f"/v1/tasks/{task_id}/resume").status_code == 409


@pytest.mark.parametrize("kind", ["users'", "servers'", "operator's lock", "code's call", "servers' children"])
def test_execution_is_offered_for_retry_if_and_only_if_api_retries_it(world: World, kind: str) -> None:
    """Whatever the role, the task's state and the execution's status, `retry` is in its verbs exactly if accepted."""
    pattern = world.create(kind)
    statuses = [each for each in ExecutionStatus if each.is_final]
    states = STATES if kind == "users'" else {name: STATES[name] for name in MAIN_STATES}
    for state, status in itertools.product(states, statuses):
        fields = STATES[state]
        record = Execution(id="e1", task_id="", owner="ada", scheduled_for=PAST, status=status)
        task_id = world.copy(pattern, fields, (record,))
        for who in ("viewer", "ada", "admin"):
            answer = world.ask(who, "GET", f"/v1/tasks/{task_id}/executions/e1").json
            listed = world.ask(who, "GET", f"/v1/tasks/{task_id}/executions").json["executions"]
            shown = [each["allowedVerbs"] for each in listed if each["id"] == "e1"]
            sent = world.ask(who, "POST", f"/v1/tasks/{task_id}/retry", {"executionId": "e1"})
            assert ("retry" in answer["allowedVerbs"]) == (sent.status_code == 200), f"{who}, {kind}, {state}, {status}"
            assert shown == [answer["allowedVerbs"]]
            if sent.status_code == 200:
                task_id = world.copy(pattern, fields, (record,))


@pytest.mark.parametrize(
    "kind", ["users'", "servers'", "operator's lock", "for workers", "code's call", "owner's call"]
)
def test_execution_is_offered_to_be_cancelled_if_and_only_if_api_does_it(world: World, kind: str) -> None:
    """Whoever may cancel the task may cancel one run of it, and nobody else: no viewer, no worker, no other user."""
    pattern = world.create(kind)
    final = Execution(id="run-0", task_id="", owner="ada", scheduled_for=PAST, status=ExecutionStatus.FAILED)
    for (state, fields), who in itertools.product(STATES.items(), PEOPLE):
        records = () if fields.get("runs") else (final,)
        task_id = world.copy(pattern, fields, records)
        answer = world.ask(who, "GET", f"/v1/tasks/{task_id}/executions/run-0").json
        stored = world.sim.app.container.store.load(task_id)
        assert stored is not None
        sent = world.ask(who, "POST", f"/v1/tasks/{task_id}/cancelRun", {"executionId": "run-0"})
        is_offered = "cancelRun" in answer.get("allowedVerbs", ())
        has_record = answer.get("id") == "run-0"
        is_done = sent.status_code == 200 and world.has_changed(task_id, stored.task)
        assert is_offered == is_done or not has_record, f"{who}, {kind}, {state}: {sent.json}"
        assert is_done <= bool(fields.get("runs"))
        if is_done:
            ask = partial(world.ask, who, "POST", f"/v1/tasks/{task_id}/cancelRun", {"executionId": "run-0"})
            again, stale = ask(), ask(**{"If-Match": '"stale"'})
            assert (again.status_code, stale.status_code) == (200, 412)


def test_execution_whose_steps_are_gone_is_not_offered(world: World) -> None:
    """Completed steps would run again: who gets it is told, and the retry is refused."""
    record = Execution(
        id="e1", task_id="", owner="ada", scheduled_for=PAST, status=ExecutionStatus.FAILED, steps_reference="gone"
    )
    task_id = world.copy(world.create("users'"), {}, (record,))
    assert world.ask("ada", "GET", f"/v1/tasks/{task_id}/executions/e1").json["allowedVerbs"] == []
    assert world.ask("ada", "POST", f"/v1/tasks/{task_id}/retry", {"executionId": "e1"}).status_code == 409


def test_open_execution_takes_events(world: World) -> None:
    """An open execution offers `sendEvent` and `cancelRun`, and no retry; so the API does."""
    task_id = world.copy(world.create("users'"), {"runs": (waits_for("approved"),)})
    answer = world.ask("ada", "GET", f"/v1/tasks/{task_id}/executions/run-0").json
    assert answer["allowedVerbs"] == ["sendEvent", "cancelRun"]
    assert world.ask("ada", "POST", f"/v1/tasks/{task_id}/retry", {"executionId": "run-0"}).status_code == 409
    sent = world.ask("ada", "POST", f"/v1/tasks/{task_id}/events/approved", {"executionId": "run-0"})
    assert sent.status_code == 200


def test_lists_and_changes_say_the_same(world: World) -> None:
    """A list's tasks have the verbs that each has alone, and so has the answer to a change."""
    for kind in ("users'", "servers'", "own lock"):
        world.copy(world.create(kind), {})
    for who in ("ada", "viewer", "admin"):
        for task in world.ask(who, "GET", "/v1/tasks").json["tasks"]:
            alone = world.ask(who, "GET", f"/v1/tasks/{task['id']}").json
            assert task["allowedVerbs"] == alone["allowedVerbs"]
    paused = world.ask("ada", "POST", "/v1/tasks/t1/pause").json
    assert "resume" in paused["allowedVerbs"]
    assert "pause" not in paused["allowedVerbs"]


def test_executions_of_all_tasks_say_what_is_known_without_reading_their_tasks(world: World) -> None:
    """What is listed is right; it is missing only of what failed, for who may change tasks; and it costs no read."""
    listed: dict[str, Any] = {"owner": "ada", "handler": "open"}
    record = Execution(id="e1", task_id="", scheduled_for=PAST, status=ExecutionStatus.FAILED, **listed)
    done = record.model_copy(update={"id": "e2", "status": ExecutionStatus.SUCCEEDED})
    world.copy(world.create("users'"), {"runs": (waits_for("approved"),)}, (record, done))
    for who in ("ada", "reader", "viewer", "admin"):
        before = world.sim.counts.copy()
        world.sim.app.find_executions(ExecutionQuery(owner="ada" if who in {"ada", "reader"} else None))
        plain = world.sim.counts.copy()
        found = world.ask(who, "GET", "/v1/executions").json["executions"]
        assert world.sim.counts.since(plain).reads == plain.since(before).reads
        assert [each["id"] for each in found] == ["e1", "run-0", "e2"]
        for each in found:
            alone = world.ask(who, "GET", f"/v1/tasks/{each['taskId']}/executions/{each['id']}").json
            may_change = who in {"ada", "admin"}
            known = None if each["id"] == "e1" and may_change else alone["allowedVerbs"]
            assert each.get("allowedVerbs") == known
