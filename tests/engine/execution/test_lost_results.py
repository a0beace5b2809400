"""An executor whose result is discarded, or whose commit took effect although the store reported a failure."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.harness import HOUR

from cloudsched import App, Context, Schedule
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.errors import VersionConflict
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
