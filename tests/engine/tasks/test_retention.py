"""Ended tasks are kept as long as they say, and no longer."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cloudsched import App, Schedule, Settings
from cloudsched.errors import NotFound
from cloudsched.testing import START, Simulation

app = App(Settings())
IN_A_MINUTE = Schedule.once(START + timedelta(minutes=1))


@app.handler("tick")
def tick() -> None:
    """Succeed."""


def test_an_ended_task_is_removed_with_its_executions_after_its_retention() -> None:
    """Until then it is there; a minute after, nothing of it is left, and nothing waits for it."""
    with Simulation(app, retention=timedelta(days=7)) as sim:
        task = app.create(owner="ada", title="Tick", handler="tick", schedule=IN_A_MINUTE)
        sim.advance(timedelta(days=7))
        assert len(sim.executions(task.id)) == 1
        sim.advance(timedelta(minutes=3))
        with pytest.raises(NotFound):
            app.get(task.id)
        assert app.store.load_execution(task.id, "20270101T000100Z") is None
        assert app.store.next_wakeup() is None


@pytest.mark.parametrize("retention", [None, timedelta(days=30)])
def test_a_task_of_its_own_retention_outlives_the_setting(retention: timedelta | None) -> None:
    """What the caller says goes before the setting; null keeps the task for ever."""
    with Simulation(app, retention=timedelta(days=1)) as sim:
        task = app.create(owner="ada", title="Tick", handler="tick", schedule=IN_A_MINUTE, retention=retention)
        sim.advance(timedelta(days=29))
        assert app.get(task.id).status == "COMPLETED"


def test_a_task_that_lives_is_never_removed() -> None:
    """A recurring task outlives any retention, and so does one that was paused or given a new schedule in time."""
    with Simulation(app, retention=timedelta(days=1)) as sim:
        daily = app.create(owner="ada", title="Daily", handler="tick", schedule=Schedule.every(timedelta(days=1)))
        paused = app.create(owner="ada", title="Paused", handler="tick", schedule=IN_A_MINUTE)
        app.pause(paused.id)
        again = app.create(owner="ada", title="Again", handler="tick", schedule=IN_A_MINUTE)
        sim.advance(timedelta(hours=20))
        app.update(again.id, schedule=Schedule.once(START + timedelta(days=9)))
        sim.advance(timedelta(days=8))
        assert [app.get(task.id).status for task in (daily, paused, again)] == ["ACTIVE", "PAUSED", "ACTIVE"]


def test_executions_are_kept_as_long_as_their_task_says() -> None:
    """A daily task that keeps its records for two days has two after a week; the sweep says how many it removed."""
    with Simulation(app) as sim:
        kept = timedelta(days=2)
        task = app.create(owner="ada", title="Tick", handler="tick", schedule=IN_A_MINUTE, execution_retention=kept)
        app.update(task.id, schedule=Schedule.every(timedelta(days=1), start=START + timedelta(hours=1)))
        sim.advance(timedelta(days=7))
        assert app.sweep().expired == 5
        assert len(sim.executions(task.id)) == 2
