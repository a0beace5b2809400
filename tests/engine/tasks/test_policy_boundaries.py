"""Schedule policies at their boundaries: the very instant, a cancelled run between two failures, work of two kinds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.conftest import MakeTask

from cloudsched import App, Cancel, Context, Fail, Schedule, Settings
from cloudsched.domain.documents.task import Backfill
from cloudsched.domain.transitions.lifecycle import start_next_backfill, with_changes
from cloudsched.testing import START, Simulation

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T01:00:00")


@pytest.fixture
def script() -> list[Callable[[Context], object]]:
    """The handler's behaviour, run by run; after that it succeeds."""
    return []


@pytest.fixture
def app(script: list[Callable[[Context], object]]) -> App:
    app = App(Settings())

    @app.handler("work", retry=False)
    def work(ctx: Context) -> object:
        return script.pop(0)(ctx) if script else "done"

    return app


def make(app: App, **more: Any) -> None:
    app.create(id="t", owner="ada", title="Work", handler="work", schedule=HOURLY, **more)


def hours(sim: Simulation, status: str) -> list[float]:
    """Return the scheduled times of the executions of a status, in hours from the first occurrence."""
    first = START.replace(hour=1, minute=0)
    return [(one.scheduled_for - first) / HOUR for one in sim.executions("t") if one.status == status]


def test_an_occurrence_that_is_due_when_a_run_starts_is_a_backlog(
    app: App, sim: Simulation, script: list[Callable[[Context], object]]
) -> None:
    """`catchUp: all` runs it: it came due at the instant at which the run started, and not while the run was open."""
    script.append(lambda _: sim.clock.advance(5 * SECOND))
    make(app, catch_up="all", overlap="skip")
    (first,) = sim.pending()
    sim.clock.move_to(first.at + HOUR)
    sim.queue.deliver_due()
    assert hours(sim, "SKIPPED") == []
    assert hours(sim, "SUCCEEDED") == [0, 1]


def test_a_cancelled_run_is_neither_a_failure_nor_a_success(
    app: App, sim: Simulation, script: list[Callable[[Context], object]]
) -> None:
    """Two failures with a cancelled run between them are two in a row, and pause the task."""
    script += [lambda _: Fail("no"), lambda _: Cancel("not today"), lambda _: Fail("no")]
    make(app, pause_after_failures=2)
    sim.advance_to(START.replace(hour=2, minute=30))
    assert (app.get("t").status, app.get("t").consecutive_failures) == ("ACTIVE", 1)
    sim.advance(HOUR)
    assert app.get("t").status == "PAUSED"


@pytest.mark.parametrize("jitter", [timedelta(0), timedelta(minutes=20)])
def test_a_scheduled_occurrence_that_is_due_comes_before_a_backfill(make_task: MakeTask, jitter: timedelta) -> None:
    """The next run of a backfill starts until the very instant at which the scheduled occurrence is due."""
    now = datetime.fromisoformat("2027-01-01T09:00:00Z")
    task = make_task(
        id="t",
        at=now + HOUR,
        schedule=HOURLY,
        is_one_time=False,
        jitter=jitter,
        backfill=Backfill(requested_at=now, next_at=now - 4 * HOUR, until=now - 2 * HOUR),
    )
    starts_at = with_changes(task, now).wake_at
    assert starts_at
    assert start_next_backfill(task, starts_at).runs == ()
    (run,) = start_next_backfill(task, starts_at - timedelta(microseconds=1)).runs
    assert run.scheduled_for == now - 4 * HOUR
