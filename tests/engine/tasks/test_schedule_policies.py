"""The schedule policies (overlap, catch-up, jitter, expiration, limits) and what each leaves in the executions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.conftest import MakeTask
from tests.engine.harness import HOUR, MINUTE, SECOND

from cloudsched import App, Cancel, Context, Execution, Fail, Schedule, Settings, Snooze, Task, TaskDraft
from cloudsched.domain.documents.task import Backfill
from cloudsched.domain.transitions.lifecycle import start_next_backfill, with_changes
from cloudsched.errors import InvalidInput, NotAllowed
from cloudsched.testing import START, Simulation

HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T01:00:00")
app = App(Settings())
called: list[tuple[str, datetime]] = []
answer: list[Callable[[Context], object]] = []


@app.handler("work", retry=False)
def work(ctx: Context) -> object:
    called.append((ctx.execution_id, ctx.now()))
    return answer[0](ctx)


@pytest.fixture(name="app")
def reset_app() -> App:
    """Return this module's app; its handler succeeds, and has not been called."""
    called.clear()
    answer[:] = [lambda _: "done"]
    return app


def make(**more: Any) -> Task:
    fields = {"id": "t", "handler": "work", "schedule": HOURLY, **more}
    return app.create(TaskDraft.of(**fields))


def hours(executions: list[Execution], status: str) -> list[float]:
    """Return the scheduled times of the executions of a status, in hours from the start."""
    return [(one.scheduled_for - START) / HOUR for one in executions if one.status == status]


def test_until_is_inclusive_and_completes_the_task(sim: Simulation) -> None:
    """An occurrence exactly at `until` runs, a later one does not, and the task is COMPLETED."""
    make(until=START + 3 * HOUR)
    sim.advance(10 * HOUR)
    assert hours(sim.executions("t"), "SUCCEEDED") == [1, 2, 3]
    assert app.get("t").status == "COMPLETED"


def test_max_runs_ends_the_task_until_it_is_raised(sim: Simulation) -> None:
    """After `max_runs` runs it is COMPLETED, and `upcoming` lists none beyond them. Raised, it continues from now."""
    make(max_runs=2)
    assert len(app.upcoming("t", 10)) == 2
    sim.advance(4.5 * HOUR)
    assert hours(sim.executions("t"), "SUCCEEDED") == [1, 2]
    assert app.get("t").status == "COMPLETED"
    app.update("t", max_runs=3)
    sim.advance(4 * HOUR)
    assert hours(sim.executions("t"), "SUCCEEDED") == [1, 2, 5]


def keep_busy(span: timedelta) -> Callable[[Context], object]:
    """Return a behaviour of the handler that keeps the first run open for `span`."""
    until: list[datetime] = []

    def snooze(ctx: Context) -> object:
        until.append(ctx.now() + span)
        return Snooze(until[0]) if ctx.now() < until[0] else "done"

    return snooze


@pytest.mark.parametrize(("overlap", "due"), [("SKIP", []), ("BUFFER", [3])])
def test_what_overlap_skips_is_not_upcoming(sim: Simulation, overlap: str, due: list[float]) -> None:
    """While a run is open, `upcoming` has of what has come due only what is to run: the rest is SKIPPED at its end."""
    answer[:] = [keep_busy(2.7 * HOUR)]
    make(overlap=overlap)
    sim.advance(3.5 * HOUR)
    assert [(at - START) / HOUR for at in app.upcoming("t", 3)] == [*due, 4, 5, 6][:3]
    sim.advance(0.4 * HOUR)
    assert hours(sim.executions("t"), "SUCCEEDED") == [1, *due]
    assert hours(sim.executions("t"), "SKIPPED") == [2]


def test_pause_holds_a_waiting_attempt(sim: Simulation) -> None:
    """A waiting attempt does not start while its task is paused, and starts after the resume."""
    answer[:] = [keep_busy(20 * MINUTE)]
    make()
    sim.advance(1.1 * HOUR)
    app.pause("t")
    sim.advance(HOUR)
    assert len(called) == 1
    app.resume("t")
    sim.advance(timedelta(0))
    assert hours(sim.executions("t"), "SUCCEEDED") == [1]


def test_backfill_runs_a_past_range_once_in_order(sim: Simulation) -> None:
    """Start and end are included; runs follow one another, oldest first, as BACKFILL; the plan is not moved."""
    make(schedule=Schedule(rrule="FREQ=HOURLY", dtstart="2026-12-01T00:00:00"))
    sim.advance(0.5 * HOUR)
    app.backfill("t", START - 3 * HOUR, START - HOUR)
    with pytest.raises(NotAllowed, match="already"):
        app.backfill("t", START - 3 * HOUR, START - HOUR)
    sim.advance(HOUR)
    found = sim.executions("t")
    by_hand = [one for one in found if one.trigger == "BACKFILL"]
    assert [(one.scheduled_for - START) / HOUR for one in by_hand] == [-3, -2, -1]
    starts = [one.started_at for one in by_hand if one.started_at]
    assert starts == sorted(starts)
    assert [(one.scheduled_for - START) / HOUR for one in found if one.trigger == "SCHEDULE"] == [0, 1]


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (-1, -2)])
def test_a_backfill_without_occurrences_is_refused(sim: Simulation, start: float, end: float) -> None:
    """The range is in the future, or ends before it starts."""
    make(schedule=Schedule(rrule="FREQ=HOURLY", dtstart="2026-12-31T00:00:00"))
    with pytest.raises(InvalidInput):
        app.backfill("t", START + start * HOUR, START + end * HOUR)
    assert sim.counts.commits == 1


@pytest.mark.parametrize(("start", "end"), [(-100, -90), (0.2, 0.4)])
def test_a_backfill_without_occurrences_says_which_range_has_some(sim: Simulation, start: float, end: float) -> None:
    """It is before the first, or after the last that is past. Whoever widens it as advised is not refused again."""
    make(schedule=Schedule(rrule="FREQ=HOURLY", dtstart="2026-12-31T00:00:00"))
    sim.advance(HOUR / 2)
    with pytest.raises(InvalidInput, match="Widen the range to include 2026-12-31T00:00:00"):
        app.backfill("t", START + start * HOUR, START + end * HOUR)
    app.backfill("t", START + min(start, -24) * HOUR, START + max(end, -24) * HOUR)


def test_an_occurrence_that_is_due_when_a_run_starts_is_a_backlog(sim: Simulation) -> None:
    """`catchUp: all` runs it: it came due at the instant at which the run started, and not while the run was open."""
    answer[:] = [lambda _: sim.clock.advance(5 * SECOND) if len(called) == 1 else "done"]
    make(catch_up="all", overlap="skip")
    (first,) = sim.pending()
    sim.clock.move_to(first.at + HOUR)
    sim.queue.deliver_due()
    assert hours(sim.executions("t"), "SKIPPED") == []
    assert hours(sim.executions("t"), "SUCCEEDED") == [1, 2]


def test_a_cancelled_run_is_neither_a_failure_nor_a_success(sim: Simulation) -> None:
    """Two failures with a cancelled run between them are two in a row, and pause the task."""
    outcomes = [Fail("no"), Cancel("not today"), Fail("no")]
    answer[:] = [lambda _: outcomes[len(called) - 1]]
    make(pause_after_failures=2)
    sim.advance(2.5 * HOUR)
    assert (app.get("t").status, app.get("t").consecutive_failures) == ("ACTIVE", 1)
    sim.advance(HOUR)
    assert app.get("t").status == "PAUSED"


@pytest.mark.parametrize("jitter", [timedelta(0), 20 * MINUTE])
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
