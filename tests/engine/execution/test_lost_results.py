"""An executor whose result is discarded, or whose commit took effect although the store reported a failure."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.harness import HOUR, MINUTE
from tests.features.pull.harness import load_waiters

from cloudsched import App, Context, Schedule
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.errors import VersionConflict
from cloudsched.features.locks.lock import Lock, VersionedLock, Waiter
from cloudsched.testing import Simulation

HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T01:00:00")


def lose_answers(monkeypatch: pytest.MonkeyPatch, is_lost: Callable[[Commit], bool]) -> list[str]:
    """Let some commits take effect and report a conflict; return the list of their tasks."""
    commit, lost = SqliteStore.commit, list[str]()

    def commit_and_conflict(store: SqliteStore, change: Commit) -> VersionedTask:
        result = commit(store, change)
        if is_lost(change):
            lost.append(change.task.id)
            raise VersionConflict("the task")
        return result

    monkeypatch.setattr(SqliteStore, "commit", commit_and_conflict)
    return lost


def test_the_next_occurrence_is_dispatched_although_the_answer_to_the_commit_was_lost(
    app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The retried commit conflicts with itself; the executor takes its lease for lost, and no sweep is needed."""
    lose_answers(monkeypatch, lambda change: change.task.last_execution_id is not None)
    app.handler("work")(lambda: "done")
    app.create(id="t", handler="work", schedule=HOURLY)
    (first,) = sim.pending()
    sim.clock.move_to(first.at)
    sim.queue.deliver_due()
    assert [each.status for each in sim.executions("t")] == ["SUCCEEDED"]
    assert [each.at - first.at for each in sim.pending()] == [HOUR]


def test_a_parent_gets_a_result_although_the_answer_to_its_commit_was_lost(
    app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor of the call takes its lease for lost, and tells the parent all the same; no sweep is needed."""
    lose_answers(monkeypatch, lambda change: change.task.parent is not None and change.task.has_ended)
    app.handler("work")(lambda: "done")

    @app.handler("parent")
    def parent(ctx: Context) -> object:
        return ctx.call("work").result()

    app.create(id="t", handler="parent", schedule=Schedule.once(sim.now))
    sim.queue.deliver_due()
    assert [(each.status, each.content) for each in sim.executions("t")] == [("SUCCEEDED", "done")]


def test_an_executor_that_lost_its_run_takes_it_off_the_wait_list(app: App, sim: Simulation) -> None:
    """A late duplicate dispatch may have enqueued the run after its end; only the executor removes it at once."""
    wait_lists: list[list[str]] = []

    def waiting_ids() -> list[str]:
        return [one.task_id for one in load_waiters(app.container.store, "door")]

    @app.handler("hold", retry=False, expected_duration=MINUTE)
    def hold(ctx: Context) -> None:
        sim.clock.advance(3 * MINUTE)
        app.sweep()
        sim.queue.deliver_due()  # records that the lease has ended, and frees the lock
        enqueue(app, ctx)
        wait_lists.append(waiting_ids())

    app.create(id="t", handler="hold", schedule=Schedule.once(sim.now), lock_key="door")
    sim.queue.deliver_due()
    wait_lists.append(waiting_ids())
    assert [each.status for each in sim.executions("t")] == ["TIMED_OUT"]
    assert wait_lists == [["t"], []]


def enqueue(app: App, ctx: Context) -> None:
    """Add the run to the wait list of its lock, as a duplicate does that read the task before the run was claimed."""
    stored = app.container.store.locks.load("door")
    waiter = Waiter(
        task_id=ctx.task.id,
        execution_id=ctx.execution_id,
        revision=1,
        scheduled_for=ctx.scheduled_for,
        attempt=1,
        due_at=ctx.scheduled_for,
        limit=1,
        priority=ctx.task.priority,
    )
    lock: Lock = stored.lock.model_copy(update={"waiters": (waiter,)})
    app.container.store.locks.commit(VersionedLock(lock, stored.version))
