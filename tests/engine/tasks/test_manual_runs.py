"""Runs that are asked for by hand: each request once, and each with an id of its own."""

from __future__ import annotations

from datetime import timedelta

from cloudsched import App, Context, ExecutionStatus, Schedule, Settings
from cloudsched.domain.transitions import lifecycle
from cloudsched.testing import Simulation

app = App(Settings())


@app.handler("count")
def count(ctx: Context) -> str:
    return ctx.execution_id


HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2026-12-31T00:30:00")


def test_two_requests_in_one_instant_are_two_executions() -> None:
    """A task that is triggered again at the same instant, as on a clock that stands, runs again under another id."""
    with Simulation(app) as sim:
        task = app.create(owner="ada", title="Count", handler="count", schedule=HOURLY)
        for _ in range(3):
            app.trigger(task.id)
            sim.advance(timedelta(0))
        found = sim.executions(task.id)
        assert len({one.id for one in found}) == 3
        assert {one.status for one in found} == {ExecutionStatus.SUCCEEDED}


def test_a_request_that_is_heard_twice_runs_once() -> None:
    """A commit that took effect although its answer was lost is not made again under another id."""
    with Simulation(app) as sim:
        task = app.create(owner="ada", title="Count", handler="count", schedule=HOURLY)
        later = sim.now + timedelta(seconds=1)
        once = lifecycle.trigger(task, sim.now, "request").task
        assert lifecycle.trigger(once, later, "request").task is once
        assert len(lifecycle.trigger(once, later, "another").task.runs) == 2
        asked = lifecycle.backfill(task, task.created_at - timedelta(hours=2), task.created_at, sim.now, "request").task
        again = lifecycle.backfill(asked, task.created_at - timedelta(hours=2), task.created_at, later, "request").task
        assert again is asked


def test_the_same_range_can_be_run_again() -> None:
    """Two backfills of one range, also within one instant, are executions of their own, and none is run twice."""
    with Simulation(app) as sim:
        task = app.create(owner="ada", title="Count", handler="count", schedule=HOURLY)
        for _ in range(2):
            app.backfill(task.id, sim.now - timedelta(hours=3), sim.now)
            sim.advance(timedelta(0))
        found = sim.executions(task.id)
        assert len(found) == 6
        assert len({one.id for one in found}) == 6
        assert len({one.scheduled_for for one in found}) == 3
