"""A forecast is what is billed later, if everything goes as it assumes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from cloudsched import App, Schedule, Settings, TaskDraft
from cloudsched.domain.recurrence.allowance import limit_search
from cloudsched.domain.transitions.forecast import forecast_task
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

START = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture
def sim() -> Iterator[Simulation]:
    app = App(Settings())

    @app.handler("tick")
    def tick() -> None: ...

    with Simulation(app, start=START) as simulation:
        yield simulation


def make(sim: Simulation, rule: str = "FREQ=HOURLY", **more: object) -> str:
    schedule = Schedule(rrule=rule, dtstart="2027-01-01T00:30:00", timezone="Europe/Paris")
    fields = {"owner": "ada", "title": "T", "handler": "tick", "schedule": schedule, **more}
    return sim.app.create(TaskDraft.of(**fields)).id


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"lock_key": "door"},
        {"rule": "FREQ=DAILY;BYDAY=MO,WE"},
        {"rule": "FREQ=DAILY", "until": START + timedelta(days=4)},
        {"max_runs": 7},
        {"pull": "gpu"},
        {"rule": "FREQ=SECONDLY;INTERVAL=1200", "max_runs": 50},
    ],
    ids=str,
)
def test_a_forecast_agrees_with_what_is_billed(sim: Simulation, more: dict[str, str]) -> None:
    """Reads, writes, deletions, dispatches and executions of eight days, across the task's clock."""
    task_id = make(sim, **more)
    if "pull" in more:
        sim.add_worker("gpu")
    forecast = forecast_task(sim.app.get(task_id), sim.now, sim.now + timedelta(days=8))
    before = sum(each.counts.writes for each in sim.app.get(task_id).usage)
    sim.advance(timedelta(days=8))
    used = [each.counts for each in sim.app.get(task_id).usage]
    assert not forecast.is_extrapolated
    assert forecast.counts.executions == forecast.occurrences == sum(each.executions for each in used)
    assert forecast.counts.writes == sum(each.writes for each in used) - before
    assert forecast.counts.deletes == sum(each.deletes for each in used)
    assert forecast.counts.reads == sum(each.reads for each in used)
    assert forecast.counts.dispatches == sum(each.dispatches for each in used)


def test_waiting_beyond_the_horizon_is_forecast(sim: Simulation) -> None:
    """A hop for every thirty days, as the store and the queue are asked for it."""
    make(sim, "FREQ=YEARLY;INTERVAL=2")
    (task,) = sim.app.tasks().items
    sim.advance(timedelta(days=1))
    task = sim.app.get(task.id)
    forecast = forecast_task(task, sim.now, sim.now + timedelta(days=300))
    before = sim.counts.copy()
    sim.advance(timedelta(days=300))
    spent = sim.counts.since(before)
    assert (forecast.counts.reads, forecast.counts.dispatches) == (spent.reads, spent.dispatches) == (10, 10)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=MINUTELY", 30 * 1440),
        ("FREQ=MINUTELY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10,11,12,13,14,15,16", 21 * 480),
        ("FREQ=SECONDLY", 30 * 86_400),
    ],
)
def test_what_runs_very_often_is_extrapolated(sim: Simulation, rule: str, expected: int) -> None:
    """From whole weeks, so that days without runs are in it; within a twentieth. Not all of them are looked at."""
    with limit_search(300_000):
        forecast = forecast_task(sim.app.get(make(sim, rule)), sim.now, sim.now + timedelta(days=30))
    assert forecast.is_extrapolated or rule.endswith("16")
    assert forecast.occurrences == pytest.approx(expected, rel=0.05)


def test_what_does_not_run_costs_nothing(sim: Simulation) -> None:
    """Paused tasks, and those that run once, later; estimates of queries go with the occurrences."""
    task_id = make(sim, query_per_execution=2.5, tokens_per_execution=10)
    forecast = forecast_task(sim.app.get(task_id), sim.now, sim.now + timedelta(days=1))
    assert (forecast.counts.estimated_queries, forecast.counts.estimated_tokens) == (60, 240)
    sim.app.pause(task_id)
    assert forecast_task(sim.app.get(task_id), sim.now, sim.now + timedelta(days=30)).occurrences == 0
    once = sim.app.create(owner="ada", title="T", handler="tick", schedule=sim.now + timedelta(days=40))
    assert forecast_task(once, sim.now, sim.now + timedelta(days=30)).counts.executions == 0
    assert forecast_task(once, sim.now, sim.now + timedelta(days=41)).occurrences == 1
