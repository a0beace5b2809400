"""A commit is a value: decided again after a conflict, joined with another, and made on what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.engine.harness import HOUR, MINUTE

from cloudsched import App, Context, Schedule
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.execution import Execution, ExecutionStatus
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import Commit, Committed, VersionedTask
from cloudsched.errors import StoreUnavailable, VersionConflict
from cloudsched.testing import START, Simulation


@pytest.fixture
def sim(app: App) -> Iterator[Simulation]:
    app.handler("work")(lambda: None)
    with Simulation(app) as made:
        app.create(id="t", owner="ada", title="before", handler="work", schedule=Schedule.once(START + HOUR))
        yield made


def rename(stored: VersionedTask | None, title: str) -> Commit:
    assert stored is not None
    return Commit(stored.task.model_copy(update={"title": title}), stored)


def test_a_decision_is_made_again_on_what_is_stored_after_a_conflict(sim: Simulation) -> None:
    """The other's change stays, and the second decision has seen it."""
    committer, load = sim.app.container.engine.committer, lambda: sim.app.container.store.load("t")
    seen = list[str]()

    def decide(stored: VersionedTask | None) -> Commit:
        assert stored is not None
        seen.append(stored.task.title)
        if len(seen) == 1:
            sim.app.update("t", title="theirs")
        return rename(stored, f"{stored.task.title} and ours")

    committed = committer.apply("task t", load, decide)
    assert isinstance(committed, Committed)
    assert seen == ["before", "theirs"]
    assert sim.app.get("t").title == committed.stored.task.title == "theirs and ours"


def test_what_is_decided_instead_of_a_commit_is_returned(sim: Simulation) -> None:
    """Nothing is written then, and what was read already is not read again."""
    before = sim.counts.copy()
    seen = sim.app.container.engine.committer.apply("task t", pytest.fail, lambda read: f"saw {read}", "it")
    assert seen == "saw it"
    assert sim.counts.since(before) == type(before)()


def test_a_change_that_others_make_superfluous_is_left_out(sim: Simulation) -> None:
    """It is tried once, on what was read: theirs stays. Without theirs it is made, and its write is counted."""
    committer, store = sim.app.container.engine.committer, sim.app.container.store
    read = store.load("t")
    assert read is not None
    sim.app.update("t", title="theirs")
    assert committer.try_to_change(read, sim.now, deferred=True) is None
    assert not sim.app.get("t").deferred
    now = store.load("t")
    assert now is not None
    marked = committer.try_to_change(now, sim.now, deferred=True)
    assert marked is not None
    assert sim.app.get("t") == marked
    assert (marked.deferred, marked.title) == (True, "theirs")
    assert marked.usage[-1].counts.writes == now.task.usage[-1].counts.writes + 1


class Checked(SqliteStore):
    """A store that checks of each commit that it was decided on what is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong = list[Task]()
        self.conflicts = 0

    def commit(self, commit: Commit) -> VersionedTask:
        stored = {each.task.id: self.load(each.task.id) for each in (commit, *commit.others)}
        if self.conflicts and commit.executions:
            self.conflicts -= 1
            raise VersionConflict("a test's")
        committed = super().commit(commit)
        for each in (commit, *commit.others):
            found = stored[each.task.id]
            if (found and found.task) != (each.base and each.base.task):
                self.wrong.append(each.task)
        return committed


@pytest.mark.parametrize("conflicts", [0, 2])
def test_the_base_of_each_commit_is_the_task_as_it_was_stored(conflicts: int) -> None:
    """Also with what the handler logs: a store may write only what differs."""
    app, calls = App(), list[int]()

    @app.handler("work", retry=1)
    def work(ctx: Context) -> str:
        calls.append(len(calls))
        ctx.progress("half")
        if len(calls) == 1:
            raise ValueError("once")
        return "done"

    with closing(Checked()) as store, Simulation(app, store=store) as sim:
        store.conflicts = conflicts
        app.create(id="t", handler="work", schedule=Schedule.every(HOUR))
        sim.advance(2.5 * HOUR)
        assert [each.status for each in sim.executions("t")] == [ExecutionStatus.SUCCEEDED] * 3
    assert len(calls) == 4
    assert not store.wrong


@pytest.mark.parametrize("fails", ["before", "after"])
def test_a_failure_hook_is_called_for_each_commit_that_is_tried(fails: str) -> None:
    """Right before it: a hook may be called twice, but no failure is stored of which it was not told."""
    app, told, lost = App(), list[ExecutionStatus](), [True]

    def tell(_: Task, execution: Execution) -> None:
        told.append(execution.status)

    @app.handler("work", retry=False, on_failure=tell)
    def work() -> None:
        raise ValueError("never works")

    class Losing(SqliteStore):
        def commit(self, commit: Commit) -> VersionedTask:
            is_end = any(each.status is ExecutionStatus.FAILED for each in commit.executions)
            assert told or not is_end, "stored, and nobody was told"
            if is_end and lost and fails == "before":
                lost.clear()
                raise VersionConflict("a test's")
            committed = super().commit(commit)
            if is_end and lost:
                lost.clear()
                raise StoreUnavailable("The store", "its answer was lost")
            return committed

    with closing(Losing()) as store, Simulation(app, store=store) as sim:
        app.create(id="t", handler="work", schedule=Schedule.once(START + MINUTE))
        sim.advance(HOUR)
        assert [each.status for each in sim.executions("t")] == [ExecutionStatus.FAILED]
    assert told == [ExecutionStatus.FAILED] * (2 if fails == "before" else 1)
