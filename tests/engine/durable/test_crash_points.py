"""What a durable handler may rely on if a death, a conflict or a cancel happens at one particular moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, Create, elsewhere, register_work_handler, run_to_end

from cloudsched import App, Context, Task
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.commit import Commit, Committed, VersionedTask
from cloudsched.engine.child_tasks import ChildTasks, FindCaller
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.engine.ports.procedure import Procedure
from cloudsched.errors import StoreUnavailable, VersionConflict
from cloudsched.testing import START, Simulation


def inject_conflict(patch: pytest.MonkeyPatch, which: Callable[[Task], bool], then: Callable[[], object]) -> None:
    """Let the first matching commit take effect and report a conflict, as a commit that was sent twice does."""
    commit, made = SqliteStore.commit, list[Task]()

    def commit_twice(store: SqliteStore, change: Commit) -> VersionedTask:
        committed = commit(store, change)
        if made or not which(change.task):
            return committed
        made.append(change.task)
        then()
        raise VersionConflict("itself")

    patch.setattr(SqliteStore, "commit", commit_twice)


def test_a_commit_that_conflicts_with_itself_consumes_one_event(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one of that name is not taken for the one that it took."""
    register_work_handler(app, lambda ctx: [ctx.wait_for("more"), ctx.wait_for("more")])
    task = create(schedule=START + DAY)
    for number in range(2):
        app.send_event(task.id, "more", number, early=True)
    inject_conflict(monkeypatch, lambda task: len(task.events) == 1, lambda: None)
    execution = run_to_end(sim, task)
    assert execution.content == [0, 1]


def test_an_event_is_not_consumed_under_an_expired_lease(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes it stands still for too long; it is neither recorded as taken nor lost, and the next one takes it."""
    register_work_handler(app, lambda ctx: [ctx.wait_for("more"), ctx.wait_for("more", timeout=timedelta(0))])
    record, stood_still = Attempt.append_journal, list[object]()
    task = create(schedule=START + DAY, expected_duration=MINUTE)
    app.send_event(task.id, "more", 1, early=True)

    def record_late(held: Attempt, *arguments: Any) -> Task | None:
        if not stood_still:
            stood_still.append(None)
            sim.clock.move_to(held.task.runs[0].wake_at)
        return record(held, *arguments)

    monkeypatch.setattr(Attempt, "append_journal", record_late)
    execution = run_to_end(sim, task)
    assert [step.result for step in execution.steps] == [1, None]
    assert [step.status for step in execution.steps] == ["SUCCEEDED", "TIMED_OUT"]


@pytest.mark.parametrize("is_taken", [True, False])
def test_an_event_whose_commit_conflicts_with_itself_is_stored_once(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch, *, is_taken: bool
) -> None:
    """This holds whether or not the event is still there when the sender reads the task again."""
    register_work_handler(app, lambda ctx: ctx.wait_for("more"))
    task = create()
    sim.advance(MINUTE)
    with monkeypatch.context() as patch:
        meanwhile = 10 * MINUTE if is_taken else timedelta(0)
        inject_conflict(patch, lambda task: len(task.events) == 1, lambda: sim.advance(meanwhile))
        app.send_event(task.id, "more", 1)
    assert len(app.get(task.id).events) == (0 if is_taken else 1)


def test_a_manual_retry_makes_a_call_that_was_only_recorded(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not mistaken for a call whose task was deleted."""
    app.handler("fine")(lambda: "fine")
    register_work_handler(app, lambda ctx: ctx.call("fine").result())
    task = create(retry={"maxRetries": 0})
    with monkeypatch.context() as patch:
        patch.setattr(ChildTasks, "create", lambda *_: 1 / 0)
        sim.advance(MINUTE)
    assert [e.status for e in sim.executions(task.id)] == ["FAILED"]
    app.retry(task.id)
    execution = run_to_end(sim, task)
    assert (execution.status, execution.content) == ("SUCCEEDED", "fine")


def test_a_call_that_ended_before_it_was_made_again_is_not_awaited(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent died after making the call; the next attempt finds it finished, and continues at once."""
    app.handler("fine")(lambda: "fine")
    register_work_handler(app, lambda ctx: ctx.call("fine").result())
    task = create(expected_duration=30 * MINUTE)
    with monkeypatch.context() as patch:
        crash_before_finish(patch, task)
        sim.advance(MINUTE)
    execution = run_to_end(sim, task)
    assert (execution.content, execution.finished_at) == ("fine", START + 30 * MINUTE)


def crash_before_finish(patch: pytest.MonkeyPatch, task: Task) -> None:
    """Let the executors of a task die before they can say how its handler ended."""
    finish = Attempt.finish

    def die(held: Attempt, *arguments: Any) -> Procedure[Committed | None]:
        if held.task.id == task.id:
            raise StoreUnavailable("The executor", "it died")
        return finish(held, *arguments)

    patch.setattr(Attempt, "finish", die)


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_a_call_made_while_its_task_is_cancelled_or_deleted_is_cancelled(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch, verb: str, *, dies: bool
) -> None:
    """The call is recorded, then its task is cancelled or deleted: it is not made any more; also if its maker dies."""

    @app.handler("nap")
    def nap(ctx: Context) -> None:
        ctx.sleep(30 * DAY)

    register_work_handler(app, lambda ctx: ctx.call("nap").result())
    made = list[Task]()
    make = ChildTasks.create

    def make_late(nesting: ChildTasks, call: Task, find_caller: FindCaller) -> bool:
        made.append(call)
        elsewhere(getattr(app, verb), task.id)
        return make(nesting, call, find_caller)

    monkeypatch.setattr(ChildTasks, "create", make_late)
    task = create()
    if dies:
        crash_before_finish(monkeypatch, task)
    sim.advance(10 * MINUTE)
    (call,) = made
    assert app.container.store.load(call.id) is None
    stored = app.container.store.load(task.id)
    assert (stored is None) == (verb == "delete")
    assert stored is None or not stored.task.deferred


def test_a_handler_whose_journal_is_gone_repeats_nothing(app: App, sim: Simulation, create: Create) -> None:
    """Its task was deleted between its claim and its first read of the journal."""
    done = list[object]()

    def call(ctx: Context) -> None:
        if done:
            elsewhere(app.delete, ctx.task.id)
            sim.clock.advance(DAY)
            app.sweep()
        ctx.step("once", done.append, 1)
        ctx.sleep(DAY)

    register_work_handler(app, call)
    task = create()
    sim.run_until_idle()
    assert app.container.store.load(task.id) is None
    assert done == [1]
