"""Each process sees in the store whether due work starts. What has to wait for something else is no fault."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Self

import pytest
from tests.engine.harness import HOUR, MINUTE

from cloudsched import App, Context, Schedule, Settings, Snooze
from cloudsched.engine.sweep.due_work import LOOK_SECONDS, STALL_SECONDS, DueWork, ExecutorState
from cloudsched.engine.sweep.shard_sweeps import SweepNotes
from cloudsched.engine.sweep.sweeper import Sweep
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.testing import START, Simulation


class Observer:
    """A process that looks every few seconds at a store whose tasks another one runs, or nobody."""

    def __init__(self) -> None:
        self.app = App(Settings())
        self.app.handler("work")(self.run)
        self.sim = Simulation(self.app)
        self.seconds = 0.0
        self.note = ExecutorState()
        self.own: ExecutorState | None = None

    def run(self, ctx: Context) -> Snooze | None:
        return Snooze(HOUR) if ctx.task.id == "snoozed" else None

    def __enter__(self) -> Self:
        self.sim.__enter__()
        container = self.app.container
        self.work = DueWork(container.store, container.clock, lambda: self.seconds, lambda: self.note)
        return self

    def __exit__(self, *error: object) -> None:
        self.sim.__exit__(None, None, None)

    def look(
        self, seconds: float = STALL_SECONDS + 2 * LOOK_SECONDS, meanwhile: Callable[[], object] | None = None
    ) -> str:
        """Look for a while in which nobody delivers anything. Return the problem."""
        for _ in range(int(seconds / LOOK_SECONDS)):
            self.seconds += LOOK_SECONDS
            self.sim.clock.advance(timedelta(seconds=LOOK_SECONDS))
            if meanwhile is not None:
                meanwhile()
            self.work.look(self.own)
        return self.work.problem

    def create(self, task_id: str = "t", **fields: Any) -> None:
        usual = {"id": task_id, "handler": "work", "schedule": Schedule.once(self.sim.now)}
        self.app.create(**{**usual, **fields})


def test_due_work_that_nobody_starts_is_a_fault_until_some_starts() -> None:
    with Observer() as it:
        it.create("a")
        assert it.look(STALL_SECONDS) == ""
        problem = it.look()
        assert f"since {START.replace(tzinfo=None)} UTC" in problem
        assert "frozen" in problem
        it.sim.queue.deliver_due()
        assert it.look(LOOK_SECONDS) == ""


def test_it_says_how_many_handlers_hang_here_or_where_the_tasks_run() -> None:
    """Not which: the problem is told to whoever asks whether the process is ready."""
    said = "16 handlers hang, since 2026-07-01 09:00:00 UTC"
    hanging = "16 handlers hang: 'fetch' (16), since 2026-07-01 09:00:00 UTC"
    with Observer() as it:
        it.create()
        it.own = ExecutorState(hanging)
        assert it.look().endswith(said)
        it.own, it.note = None, ExecutorState(hanging)
        assert it.look(2 * LOOK_SECONDS).endswith(said)


def test_a_backlog_of_which_some_starts_is_only_late() -> None:
    with Observer() as it:
        for number in range(40):
            it.create(f"t{number}")

        messages = iter(it.sim.pending())

        def start_one() -> None:
            it.sim.redeliver(next(messages))

        assert it.look(100, start_one) == ""


def test_threads_that_are_busy_are_no_fault() -> None:
    with Observer() as it:
        it.create()
        it.own = ExecutorState(is_busy=True)
        assert it.look() == ""
        it.own = ExecutorState()
        assert it.look() != ""


def pause(it: Observer) -> None:
    it.create()
    it.app.pause("t")


def offer(it: Observer) -> None:
    it.create(pull="gpu")
    it.sim.queue.deliver_due()


def wait_for_a_lock(it: Observer) -> None:
    it.create("a", lock_key="door", pull="gpu")
    it.create("b", lock_key="door")
    it.sim.queue.deliver_due()
    PullWiring.of(it.app.container).work_queue.claim(WorkerFilter("gpu"), THIS_PROCESS)
    it.sim.queue.deliver_due()


def snooze(it: Observer) -> None:
    it.create("snoozed")
    it.sim.queue.deliver_due()


def run_for_long(it: Observer) -> None:
    it.create(schedule=Schedule.every(MINUTE, start=it.sim.now), pull="gpu")
    it.sim.queue.deliver_due()
    PullWiring.of(it.app.container).work_queue.claim(WorkerFilter("gpu"), THIS_PROCESS)


@pytest.mark.parametrize("scene", [pause, offer, wait_for_a_lock, snooze, run_for_long])
def test_what_waits_for_something_else_is_no_fault(scene: Callable[[Observer], None]) -> None:
    with Observer() as it:
        scene(it)
        assert it.look(120) == ""


def test_a_process_that_stood_still_looks_again_before_it_complains() -> None:
    with Observer() as it:
        it.create()
        it.look(LOOK_SECONDS)
        it.seconds += 1000
        assert it.look(LOOK_SECONDS) == ""


def test_a_process_knows_from_a_note_what_hangs_in_the_one_that_runs_the_tasks_and_not_from_an_old_one() -> None:
    with Observer() as it:
        store, clock = it.app.container.store, it.app.container.clock
        state = ExecutorState("1 handler hangs: 'fetch', since 2026-07-01 09:00:00 UTC", is_busy=True)
        SweepNotes(store, clock, lambda: state).run(Sweep)
        other = SweepNotes(store, clock, ExecutorState)
        assert other.find_state() == state
        it.sim.clock.advance(3 * MINUTE)
        assert other.find_state() == ExecutorState()
