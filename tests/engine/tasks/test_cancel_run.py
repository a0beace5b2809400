"""One run is cancelled: it ends with one record, whatever it was doing, and its task goes on."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, elsewhere, run_to_end
from tests.features.pull.harness import claim, claim_keys, claims_of, finish, give_back, require_claim

from cloudsched import App, Context, Execution, Schedule, Task, TaskStatus
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.verbs import Action
from cloudsched.errors import CloudschedError, LeaseLost, NotAllowed, NotFound, VersionConflict
from cloudsched.testing import START, Simulation

STATES = (
    "runs",
    "runs on a worker",
    "waits for a retry",
    "sleeps",
    "waits for an event",
    "waits for a call",
    "offered",
)


@pytest.fixture
def app(app: App) -> App:
    @app.handler("fails", retry=5)
    def fails() -> None:
        raise OSError("down")

    @app.handler("sleeps")
    def sleeps(ctx: Context) -> None:
        ctx.sleep(DAY)

    @app.handler("asks")
    def asks(ctx: Context) -> None:
        ctx.wait_for("approved")

    @app.handler("calls")
    def calls(ctx: Context) -> None:
        ctx.call("calls again").result()

    @app.handler("calls again")
    def calls_again(ctx: Context) -> None:
        ctx.call("asks").result()

    app.handler("work", pull="gpu")(lambda: None)
    return app


HANDLERS = {
    "waits for a retry": "fails",
    "sleeps": "sleeps",
    "waits for an event": "asks",
    "waits for a call": "calls",
    "runs on a worker": "work",
    "offered": "work",
}


def begin(sim: Simulation, state: str, **more: Any) -> tuple[Task, str]:
    """Create an hourly task of which one run is in a state; return it with that run's id."""
    if state == "runs":
        seen: list[str] = []

        @sim.app.handler("hangs")
        def hangs(ctx: Context) -> str:
            if not seen:
                seen.append(ctx.execution_id)
                elsewhere(sim.app.cancel_run, "t", ctx.execution_id)
            return "late"

    handler = HANDLERS.get(state, "hangs")
    sim.app.create(id="t", handler=handler, schedule=Schedule.every(HOUR, start=START), **more)
    sim.advance(MINUTE)
    if state == "runs on a worker":
        require_claim(sim)
    if state == "runs":
        return sim.app.get("t"), seen[0]
    task = sim.app.get("t")
    return task, task.runs[0].execution_id


def record(sim: Simulation, run: str) -> Execution:
    found = sim.app.container.store.load_execution("t", run)
    assert found is not None
    return found


@pytest.mark.parametrize("state", STATES)
def test_it_ends_once_and_its_task_goes_on(sim: Simulation, state: str) -> None:
    """The same again changes nothing, and says so; what comes late changes nothing either; the next run comes."""
    task, run = begin(sim, state)
    if state != "runs":
        task = sim.app.cancel_run("t", run)
    ended = record(sim, run)
    assert (ended.status, ended.message) == (ExecutionStatus.CANCELLED, "Cancelled by the app's own code.")
    assert (task.status, task.runs, task.events, task.deferred) == (TaskStatus.ACTIVE, (), (), False)
    assert task.next_execution_time == START + HOUR
    assert [each.action for each in task.history if each.execution_id == run] == [Action.RUN_CANCELLED]

    again = sim.app.cancel_run("t", run)
    assert (again, record(sim, run)) == (task, ended)
    sim.advance(50 * MINUTE)
    assert record(sim, run) == ended
    sim.advance(20 * MINUTE)
    later = [each for each in sim.executions("t") if each.id != run]
    assert later or sim.app.get("t").runs, "its schedule has stopped"
    assert record(sim, run) == ended


def test_a_report_of_its_worker_is_refused_as_after_a_lost_lease(sim: Simulation) -> None:
    """A result, a failure, a release and a heartbeat, each also if nobody signs in."""
    sim.app.create(id="t", handler="work", schedule=Schedule.once(START))
    sim.advance(MINUTE)
    found = require_claim(sim)
    sim.app.cancel_run("t", found.run.execution_id)
    assert claims_of(sim).heartbeat(*claim_keys(found)).is_cancelled
    for report in (finish, give_back):
        with pytest.raises(LeaseLost):
            report(sim, found)
    assert record(sim, found.run.execution_id).content is None
    assert sim.app.get("t").status is TaskStatus.CANCELLED


def test_what_cannot_be_cancelled_is_refused(sim: Simulation) -> None:
    """One that has ended, one that does not exist, and one of a task that does not."""
    sim.app.handler("quick")(lambda: "done")
    sim.app.create(id="t", handler="quick", schedule=Schedule.once(START))
    ended = run_to_end(sim, "t")
    before = sim.app.get("t")
    for task_id, run, error in (("t", ended.id, NotAllowed), ("t", "20300101T000000Z", NotFound), ("u", "x", NotFound)):
        with pytest.raises(error):
            sim.app.cancel_run(task_id, run)
    assert (sim.app.get("t"), record(sim, ended.id).status) == (before, ExecutionStatus.SUCCEEDED)


def test_its_calls_are_cancelled_at_any_depth_and_no_others(sim: Simulation) -> None:
    """The calls of another run of the same task go on."""
    _, run = begin(sim, "waits for a call", overlap="allow")
    sim.advance(HOUR)
    assert len(sim.app.get("t").runs) == 2
    sim.app.cancel_run("t", run)
    tree = sim.app.tree("t")
    ends = {
        (each.task.parent.execution_id == run, call.status)
        for each in tree.children
        if each.task.parent is not None
        for call in (each.task, *(below.task for below in each.children))
    }
    assert ends == {(True, TaskStatus.CANCELLED), (False, TaskStatus.ACTIVE)}


def test_a_sweep_cancels_its_calls_if_the_process_dies_in_between(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit was made, and nothing after it."""
    _, run = begin(sim, "waits for a call")
    scheduler = sim.app._scheduler  # noqa: SLF001 - the process dies there
    with monkeypatch.context() as patch:
        patch.setattr(scheduler._child_tasks, "cancel_calls", lambda _: 1 / 0)  # noqa: SLF001 - the same
        with pytest.raises(ZeroDivisionError):
            sim.app.cancel_run("t", run)
    (child,) = sim.app.tree("t").children
    assert child.task.status is TaskStatus.ACTIVE
    sim.advance(3 * MINUTE)
    sim.app.sweep()
    (child,) = sim.app.tree("t").children
    assert child.task.status is TaskStatus.CANCELLED
    assert not sim.app.get("t").deferred


@pytest.mark.parametrize("state", ["waits", "runs on a worker", "waits for a retry"])
def test_its_lock_goes_to_whoever_waits(sim: Simulation, state: str) -> None:
    """At once, or as soon as a handler that may still run can no longer do so: never while it has its lease."""
    sim.app.handler("next")(lambda: "done")
    until = timedelta(0)
    if state == "waits":
        sim.app.create(id="first", handler="work", lock_key="k", schedule=Schedule.once(START), priority="HIGH")
        _, run = begin(sim, "offered", lock_key="k")
        holder = require_claim(sim)
        assert holder.task.id == "first"
        assert claim(sim) is None  # it waits for the lock now
    else:
        task, run = begin(sim, state, lock_key="k")
        lease = task.runs[0].lease
        until = timedelta(0) if lease is None else lease.until - sim.now
    sim.app.create(id="next", handler="next", lock_key="k")
    sim.app.cancel_run("t", run)
    if state == "waits":
        finish(sim, holder)
    if until:
        sim.advance(until - MINUTE)
        assert sim.executions("next") == [], "two handlers ran with one lock"
    sim.advance(3 * MINUTE)
    sim.app.sweep()
    sim.advance(MINUTE)
    assert [each.status for each in sim.executions("next")] == [ExecutionStatus.SUCCEEDED]


def test_it_is_decided_again_after_a_conflict(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the run ends by itself meanwhile, that counts, and whoever cancels it is told."""
    sim.app.create(id="t", handler="work", schedule=Schedule.once(START))
    sim.advance(MINUTE)
    found = require_claim(sim)

    def finish_first(*_: object, **__: object) -> None:
        monkeypatch.undo()
        finish(sim, found)
        raise VersionConflict("task t")

    monkeypatch.setattr(sim.app.container.store, "commit", finish_first)
    with pytest.raises(NotAllowed, match="SUCCEEDED"):
        sim.app.cancel_run("t", found.run.execution_id)


@pytest.mark.parametrize("text", ["", ".", "../x", "x" * 3000, "\x00", "20270101T000000Z/../x"])
def test_a_text_that_is_no_id_is_refused(sim: Simulation, text: str) -> None:
    """Users choose what they send."""
    begin(sim, "sleeps")
    with pytest.raises(CloudschedError):
        sim.app.cancel_run("t", text)
