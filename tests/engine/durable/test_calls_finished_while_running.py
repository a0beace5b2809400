"""Calls that end while their parent is at work: it is not replayed for each of them, and misses the last of none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import SECOND, Create, only_run, register_work_handler

from cloudsched import App, Context
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.engine.child_tasks import ChildTasks
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.errors import StoreUnavailable
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.testing import START, Simulation

MANY = 200


class ReplayHookStore(SqliteStore):
    """A store that does something whenever the journal of the task ``job`` is read."""

    def __init__(self) -> None:
        super().__init__()
        self.at_replay: Callable[[], object] = lambda: None

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        entries = super().load_journal(task_id, execution_id)
        if task_id == "job":
            self.at_replay()
        return entries


@pytest.fixture
def app(app: App) -> App:
    """Return an app with calls that a worker runs when the test requests it."""
    app.handler("part", pull="w")(lambda: 1)
    return app


def finish_one_call(app: App, queue: str = "w") -> bool:
    """Let a worker of a queue run one call; return False if no call is waiting."""
    for claim in PullWiring.of(app.container).work_queue.claim(WorkerFilter(queue), THIS_PROCESS):
        started = PullWiring.of(app.container).worker_claims.start(claim)
        assert started
        PullWiring.of(app.container).worker_claims.finish(started, run_procedure(app.container.executor.call(started)))
        return True
    return False


def offer_and_finish_one(sim: Simulation) -> bool:
    """Offer the calls that are made, and let one of them end."""
    sim.queue.deliver_due()
    return finish_one_call(sim.app)


def test_a_call_that_ends_during_a_replay_causes_no_further_replay(app: App, create: Create) -> None:
    """Of so many calls, one ends in each replay, and the others while nothing runs."""
    replays = list[object]()

    def call(ctx: Context) -> int:
        replays.append(None)
        return sum(ctx.gather(*[ctx.call("part") for _ in range(MANY)]))

    register_work_handler(app, call)
    with closing(ReplayHookStore()) as store, Simulation(app, store=store) as sim:
        create(id="job")
        sim.advance(timedelta(milliseconds=1))
        store.at_replay = lambda: finish_one_call(app)
        before = sim.counts.copy()
        for _ in range(3):
            sim.advance(app.get("job").runs[0].due_at - sim.now)
        assert len(replays) == 4
        assert sim.counts.since(before).reads < 10 * MANY
        while finish_one_call(app):
            sim.advance(timedelta(milliseconds=1))
        assert (app.get("job").status, len(replays)) == ("COMPLETED", 5)


@pytest.mark.parametrize("others", [["other"], ["other", "later", "later", "later"]])
def test_a_call_that_ended_does_not_resume_a_parent_that_waits_for_another(
    app: App, sim: Simulation, create: Create, others: list[str]
) -> None:
    """It ended while the parent ran, which then waits for one other call: that one resumes it, and nothing before.

    Not even if later calls are in progress as well.
    """
    replays = list[object]()

    def call(ctx: Context) -> int:
        replays.append(None)
        _, other, *_ = [ctx.call("part", pull=queue) for queue in ["w", *others]]
        assert ctx.step("one ends", offer_and_finish_one, sim)
        result: int = other.result()
        return result

    register_work_handler(app, call)
    create(id="job")
    sim.advance(timedelta(milliseconds=1))
    assert (len(replays), app.get("job").runs[0].due_at > sim.now) == (1, True)
    assert finish_one_call(app, "other")
    sim.advance(timedelta(milliseconds=1))
    execution = only_run(sim, "job")
    assert (execution.content, len(replays)) == (1, 2)


@pytest.mark.parametrize("count", [2, 30])
def test_the_last_call_may_finish_while_its_parent_polls(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Its notification changes nothing, since another came first; the parent resumes without waiting for its poll."""
    look = ChildTasks.calls_in_progress

    def look_and_end(nesting: ChildTasks, *args: Any) -> set[int]:
        found = look(nesting, *args)
        while finish_one_call(app):
            pass
        return found

    def call(ctx: Context) -> int:
        calls = [ctx.call("part") for _ in range(count)]
        assert ctx.step("one ends", offer_and_finish_one, sim)
        return sum(ctx.gather(*calls))

    monkeypatch.setattr(ChildTasks, "calls_in_progress", look_and_end)
    register_work_handler(app, call)
    create(id="job")
    sim.advance(SECOND)
    execution = only_run(sim, "job")
    assert (execution.content, execution.finished_at) == (count, START)


def test_a_parent_that_cannot_poll_its_calls_resumes_at_once(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store does not say what runs; its end is committed none the less."""

    def fail(*_: object) -> set[int]:
        raise StoreUnavailable("The store", "503")

    def call(ctx: Context) -> int:
        calls = [ctx.call("part") for _ in range(2)]
        assert ctx.step("one ends", offer_and_finish_one, sim)
        monkeypatch.setattr(ChildTasks, "calls_in_progress", fail)
        return sum(ctx.gather(*calls))

    register_work_handler(app, call)
    create(id="job")
    sim.queue.deliver_due()
    monkeypatch.undo()
    while finish_one_call(app):
        pass
    sim.advance(SECOND)
    execution = only_run(sim, "job")
    assert execution.content == 2
