"""Manual runs and backfills: each request runs once, and each execution has an id of its own."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.authorities import as_user
from tests.engine.harness import HOUR

from cloudsched import App, Context, ExecutionStatus, Schedule
from cloudsched.errors import Forbidden
from cloudsched.testing import Simulation

HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2026-12-31T00:30:00")


@pytest.fixture
def app(app: App) -> App:
    @app.handler("count")
    def count(ctx: Context) -> str:
        return ctx.execution_id

    return app


def test_two_triggers_at_one_instant_are_two_executions(sim: Simulation, app: App) -> None:
    """A task that is triggered again at the same instant of the clock runs again under another id."""
    task = app.create(handler="count", schedule=HOURLY)
    for _ in range(3):
        app.trigger(task.id)
        sim.advance(timedelta(0))
    found = sim.executions(task.id)
    assert len({one.id for one in found}) == 3
    assert {one.status for one in found} == {ExecutionStatus.SUCCEEDED}


def test_the_same_range_can_be_backfilled_again(sim: Simulation, app: App) -> None:
    """Two backfills of one range have separate executions, even at one instant, and none of them runs twice."""
    task = app.create(handler="count", schedule=HOURLY)
    for _ in range(2):
        app.backfill(task.id, sim.now - 3 * HOUR, sim.now)
        sim.advance(timedelta(0))
    found = sim.executions(task.id)
    assert len(found) == 6
    assert len({one.id for one in found}) == 6
    assert len({one.scheduled_for for one in found}) == 3


@pytest.mark.parametrize("verb", ["trigger", "backfill"])
def test_a_user_starts_only_what_users_may_ask_for(sim: Simulation, app: App, verb: str) -> None:
    """A server's handler in one's own task is not one's own to run, once or for a range of the past; nothing runs."""
    task = app.create(handler="count", schedule=HOURLY)
    past = () if verb == "trigger" else (sim.now - 3 * HOUR, sim.now)
    with pytest.raises(Forbidden, match="only servers"):
        getattr(as_user(app), verb)(task.id, *past)
    sim.advance(timedelta(0))
    assert sim.executions(task.id) == []
