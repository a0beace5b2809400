"""Finished tasks and their executions are kept for their retention, and no longer."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.engine.harness import Simulate
from tests.engine.tasks.test_schedule_forms import app

from cloudsched import App, Schedule, Settings
from cloudsched.errors import NotFound
from cloudsched.testing import START, Simulation

IN_A_MINUTE = Schedule.once(START + timedelta(minutes=1))

__all__ = ["app"]  # a fixture


def test_a_finished_task_is_purged_with_its_executions_after_its_retention(simulate: Simulate, app: App) -> None:
    """It exists until then; minutes later the task and its executions are removed, and no wake-up is left."""
    sim = simulate(retention=timedelta(days=7))
    task = app.create(owner="ada", title="Tick", handler="tick", schedule=IN_A_MINUTE)
    sim.advance(timedelta(days=7))
    assert len(sim.executions(task.id)) == 1
    sim.advance(timedelta(minutes=3))
    with pytest.raises(NotFound):
        app.get(task.id)
    assert app.container.store.load_execution(task.id, "20270101T000100Z") is None
    assert app.container.store.next_wakeup() is None


def test_what_has_ended_is_there_a_year_later(simulate: Simulate, app: App) -> None:
    """By default, a task and its record are an audit trail of more than a year; a shorter life is the task's own."""
    sim = simulate(retention=Settings().retention)
    task = app.create(owner="ada", title="Tick", handler="tick", schedule=IN_A_MINUTE)
    short = app.create(owner="ada", title="T", handler="tick", schedule=IN_A_MINUTE, retention=timedelta(hours=1))
    sim.advance(timedelta(days=366))
    assert [each.status for each in sim.executions(task.id)] == ["SUCCEEDED"]
    with pytest.raises(NotFound):
        app.get(short.id)
    sim.advance(timedelta(days=366))
    with pytest.raises(NotFound):
        app.get(task.id)


@pytest.mark.parametrize("retention", [None, timedelta(days=30)])
def test_a_task_s_own_retention_overrides_the_setting(
    simulate: Simulate, app: App, retention: timedelta | None
) -> None:
    """The retention of the task takes precedence; null keeps the task for ever."""
    sim = simulate(retention=timedelta(days=1))
    task = app.create(owner="ada", title="Tick", handler="tick", schedule=IN_A_MINUTE, retention=retention)
    sim.advance(timedelta(days=29))
    assert app.get(task.id).status == "COMPLETED"


def test_an_unfinished_task_is_never_purged(simulate: Simulate, app: App) -> None:
    """A recurring, a paused and a rescheduled task all outlive their retention."""
    sim = simulate(retention=timedelta(days=1))
    daily = app.create(owner="ada", title="Daily", handler="tick", schedule=Schedule.every(timedelta(days=1)))
    paused = app.create(owner="ada", title="Paused", handler="tick", schedule=IN_A_MINUTE)
    app.pause(paused.id)
    again = app.create(owner="ada", title="Again", handler="tick", schedule=IN_A_MINUTE)
    sim.advance(timedelta(hours=20))
    app.update(again.id, schedule=Schedule.once(START + timedelta(days=9)))
    sim.advance(timedelta(days=8))
    assert [app.get(task.id).status for task in (daily, paused, again)] == ["ACTIVE", "PAUSED", "ACTIVE"]


def test_executions_are_kept_for_the_execution_retention_of_their_task(sim: Simulation, app: App) -> None:
    """A daily task that keeps records for two days has two after a week; the sweep returns how many it removed."""
    kept = timedelta(days=2)
    task = app.create(owner="ada", title="Tick", handler="tick", schedule=IN_A_MINUTE, execution_retention=kept)
    app.update(task.id, schedule=Schedule.every(timedelta(days=1), start=START + timedelta(hours=1)))
    sim.advance(timedelta(days=7))
    assert app.sweep().expired == 5
    assert len(sim.executions(task.id)) == 2
