"""A trigger with another payload: that run has it to its end, and the task stays as it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from tests.authorities import as_user
from tests.engine.harness import DAY, MINUTE, only_run

from cloudsched import App, Context, ExecutionStatus, RetryPolicy, Schedule, Settings, Task
from cloudsched.domain.documents.json_limits import MAX_DOCUMENT_BYTES, MAX_PAYLOAD, document_size, stored_size
from cloudsched.domain.documents.task import MAX_REQUESTS
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.domain.transitions.manual_verbs import find_triggered
from cloudsched.domain.transitions.run_records import MAX_SPEC_BYTES
from cloudsched.errors import Forbidden, InvalidInput, KeyReused
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.testing import Simulation

YEARLY = Schedule(rrule="FREQ=YEARLY", dtstart="2030-01-01T00:30:00")


class Row(BaseModel):
    """What the handlers take."""

    n: int = 0
    text: str = ""


class Seen:
    """What the handlers got, and whether they fail."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.tasks: list[Any] = []
        self.failed: list[tuple[Any, Any]] = []
        self.is_broken = False


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def app(seen: Seen) -> App:
    app = App(Settings())

    def note_failure(task: Task, execution: Any) -> None:  # noqa: ANN401 - an execution
        seen.failed.append((task.payload, execution.payload))

    @app.handler("work", access="users", retry=RetryPolicy(max_retries=1), on_failure=note_failure)
    def work(ctx: Context, row: Row) -> int:
        seen.rows.append(row.n)
        seen.tasks.append(ctx.task.payload)
        if seen.is_broken:
            raise ValueError("broken")
        return row.n

    @app.handler("private")
    def private(row: Row) -> int:
        return row.n

    @app.handler("gpu-work", pull="gpu")
    def gpu_work(row: Row) -> int:
        seen.rows.append(row.n)
        return row.n

    return app


def create(app: App, handler: str = "work", **fields: Any) -> Task:
    return app.create(handler=handler, payload={"n": 1}, schedule=YEARLY, **fields)


def test_only_that_run_has_it(sim: Simulation, app: App, seen: Seen) -> None:
    """The handler and its context get the run's payload; a later run gets the task's, which has not changed."""
    task = create(app)
    app.trigger(task.id, Row(n=7))
    sim.advance(MINUTE)
    app.trigger(task.id)
    sim.advance(MINUTE)
    assert seen.rows == [7, 1]
    assert seen.tasks == [{"n": 7, "text": ""}, {"n": 1}]
    assert [each.payload for each in sim.executions(task.id)] == [{"n": 7, "text": ""}, None]
    assert app.get(task.id).payload == {"n": 1}
    assert app.get(task.id).revision == task.revision


def test_its_retries_have_it_and_a_retry_by_hand_too(sim: Simulation, app: App, seen: Seen) -> None:
    """Also after the task's own payload was edited; and what is called on failure is told of it."""
    task = create(app)
    seen.is_broken = True
    app.trigger(task.id, {"n": 7})
    sim.advance(DAY)
    assert seen.rows == [7, 7]
    assert seen.failed == [({"n": 7}, {"n": 7})]
    failed = only_run(sim, task)
    assert (failed.status, failed.payload) == (ExecutionStatus.FAILED, {"n": 7})
    app.update(task.id, payload={"n": 2})
    seen.is_broken = False
    app.retry(task.id, failed.id)
    sim.advance(MINUTE)
    assert seen.rows == [7, 7, 7]
    ended = only_run(sim, task)
    assert (ended.content, ended.payload) == (7, {"n": 7})


def test_a_claim_that_is_given_up_keeps_it(sim: Simulation, app: App) -> None:
    """The next worker gets it."""
    task = create(app, "gpu-work")
    app.trigger(task.id, {"n": 7})
    sim.advance(timedelta(0))
    for _ in range(2):
        (claim,) = PullWiring.of(app.container).work_queue.claim(WorkerFilter("gpu"), THIS_PROCESS)
        assert claim.run.payload == {"n": 7}
        PullWiring.of(app.container).worker_claims.release_by_token(
            task.id, claim.run.execution_id, claim.lease_token, "no"
        )


@pytest.mark.parametrize(
    ("payload", "field"),
    [({"n": "x"}, "payload.n"), ({"m": 1}, "payload.m"), ([1], "payload"), ({"text": "x" * MAX_PAYLOAD}, "payload")],
    ids=["wrong type", "unknown", "no object", "too large"],
)
def test_what_the_task_could_not_have_is_refused(sim: Simulation, app: App, payload: object, field: str) -> None:
    """By the handler's model and by the limits of a payload; nothing runs."""
    task = create(app)
    with pytest.raises(InvalidInput) as refused:
        app.trigger(task.id, payload)
    assert refused.value.field == field
    sim.advance(MINUTE)
    assert sim.executions(task.id) == []


def test_a_user_may_not_set_the_payload_of_a_servers_handler(sim: Simulation, app: App) -> None:
    """As by an edit."""
    theirs = create(app)
    as_user(app).trigger(theirs.id, {"n": 2})
    task = create(app, "private")
    with pytest.raises((InvalidInput, Forbidden)):
        as_user(app).trigger(task.id, {"n": 2})
    sim.advance(MINUTE)
    assert (len(sim.executions(theirs.id)), len(sim.executions(task.id))) == (1, 0)


def test_open_payloads_fit_the_tasks_document(sim: Simulation, app: App) -> None:
    """Triggers are refused before the document is full, and edits that leave the runs no room; then all runs run."""
    task = create(app)
    large = {"text": "x" * 100_000}
    accepted = MAX_SPEC_BYTES // stored_size(large)
    for _ in range(accepted):
        app.trigger(task.id, large)
    with pytest.raises(InvalidInput, match="no room"):
        app.trigger(task.id, large)
    with pytest.raises(InvalidInput, match="no room"):
        app.update(task.id, payload=large)
    assert document_size(("tasks", task.id), app.get(task.id).to_stored()) < MAX_DOCUMENT_BYTES
    sim.advance(MINUTE)
    assert [each.status for each in sim.executions(task.id)] == [ExecutionStatus.SUCCEEDED] * accepted


def test_a_result_that_leaves_no_room_for_it_is_kept_instead(sim: Simulation, app: App) -> None:
    """The record says that the payload was left out; the run succeeds."""

    @app.handler("numbers")
    def numbers(_row: dict[str, Any]) -> list[int]:
        return [1] * 110_000

    task = app.create(handler="numbers", payload={}, schedule=YEARLY)
    app.trigger(task.id, {"numbers": [1] * 30_000})
    sim.advance(MINUTE)
    ended = only_run(sim, task)
    assert (ended.status, ended.payload, ended.has_unrecorded_payload) == (ExecutionStatus.SUCCEEDED, None, True)


def test_a_key_starts_one_run(sim: Simulation, app: App, seen: Seen) -> None:
    """However often and however late it is used, among other triggers; another payload with it is refused."""
    task = create(app)
    mark = RequestMark.of_name(["ada", "k"], {"n": 7})
    app.marked(mark).trigger(task.id, {"n": 7})
    app.trigger(task.id, {"n": 8})
    app.marked(mark).trigger(task.id, {"n": 7})
    sim.advance(MINUTE)
    app.marked(mark).trigger(task.id, {"n": 7})
    app.cancel(task.id)
    repeated = app.marked(mark).trigger(task.id, {"n": 7})
    assert find_triggered(repeated, mark) in {each.id for each in sim.executions(task.id)}
    sim.advance(MINUTE)
    assert sorted(seen.rows) == [7, 8]
    with pytest.raises(KeyReused):
        app.marked(RequestMark.of_name(["ada", "k"], {"n": 8})).trigger(task.id, {"n": 8})
    assert RequestMark.of_name(["bob", "k"], {"n": 8}).find(repeated) is None


def test_the_latest_keys_are_remembered(sim: Simulation, app: App) -> None:
    """So many, and no more."""
    task = create(app)
    marks = [RequestMark.of_name(number) for number in range(MAX_REQUESTS + 1)]
    for mark in marks:
        app.marked(mark).trigger(task.id)
        sim.advance(timedelta(0))
    found = app.get(task.id)
    assert [mark.is_repeat_on(found) for mark in marks] == [False, *[True] * MAX_REQUESTS]
