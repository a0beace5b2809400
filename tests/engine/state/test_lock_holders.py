"""Only the end of a run releases its lock: neither a stale dispatch nor an executor that lost the run does."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cloudsched import App, Context, Schedule
from cloudsched.domain.transitions.claim import Claim, on_dispatch
from cloudsched.domain.transitions.planning import Dispatch
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.errors import VersionConflict
from cloudsched.testing import Simulation

MINUTE = timedelta(minutes=1)


def test_a_stale_dispatch_does_not_release_the_lock_of_an_open_run(app: App, sim: Simulation) -> None:
    """A dispatch of an older revision that arrives during the run is dropped, and the run keeps its lock."""
    held: list[int] = []

    @app.handler("hold")
    def hold() -> None:
        assert sim.redeliver(stale).action == "dropped"
        held.append(len(app.container.store.load_lock("door").lock.holders))

    at = sim.now + MINUTE
    app.create(id="t", owner="ada", title="T", handler="hold", schedule=Schedule.once(at), lock_key="door")
    (sent,) = sim.pending()
    stale = sent
    app.update("t", title="New")
    sim.advance_to(at)
    assert held == [1]


def test_an_executor_that_lost_a_run_does_not_release_its_lock(app: App, sim: Simulation) -> None:
    """Cancelling the wait of a run has no effect while the run is in progress: it keeps its lock."""
    held: list[int] = []

    @app.handler("hold")
    def hold(ctx: Context) -> None:
        app.container.locks.cancel("door", "t", ctx.execution_id, ctx.now())  # as a late finisher does
        held.append(len(app.container.store.load_lock("door").lock.holders))

    app.create(id="t", owner="ada", title="T", handler="hold", lock_key="door")
    sim.advance(10 * MINUTE)
    assert app.container.store.load_lock("door").lock.is_empty
    assert held == [1]


def test_a_handler_is_not_called_once_its_lease_has_ended(app: App, sim: Simulation) -> None:
    """If a process stalls between its claim and the call, the attempt times out and the next one runs."""
    calls: list[int] = []

    @app.handler("it", retry=1, expected_duration=MINUTE)
    def it(ctx: Context) -> None:
        calls.append(ctx.attempt)

    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:30:00")
    app.create(id="t", owner="ada", title="T", handler="it", schedule=hourly, overlap="allow")
    real = sim.queue.create

    def refuse_once(message: QueueMessage) -> None:
        real(message)
        sim.queue.create = real  # type: ignore[method-assign]
        sim.clock.advance(2 * MINUTE)

    sim.queue.create = refuse_once  # type: ignore[method-assign]
    sim.advance_to(sim.now + timedelta(minutes=50))
    (execution,) = sim.executions("t")
    assert calls == [2]
    assert [one.status for one in execution.attempts] == ["TIMED_OUT", "SUCCEEDED"]


def test_a_duplicate_delivery_does_not_enqueue_a_run_in_progress(app: App, sim: Simulation) -> None:
    """A delivery that read the task before the run was claimed conflicts when it asks for the lock afterwards."""
    held: list[int] = []

    @app.handler("hold")
    def hold(ctx: Context) -> None:
        dispatch = Dispatch.from_wire(json.loads(body))
        decision = on_dispatch(before, dispatch, ctx.now(), "theirs")
        assert isinstance(decision, Claim)
        assert decision.run
        with pytest.raises(VersionConflict):
            app.container.locks.acquire(before, decision.run, dispatch, ctx.now())  # as a duplicate does
        held.append(len(app.container.store.load_lock("door").lock.holders))

    before = app.create(id="t", owner="ada", title="T", handler="hold", lock_key="door")
    (sent,) = sim.pending()
    body = sent.body
    sim.advance(10 * MINUTE)
    assert held == [1]
