"""Finished tasks and their executions are kept for their retention, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, Simulate
from tests.engine.tasks.test_schedule_forms import app

from cloudsched import App, Schedule, Settings
from cloudsched.errors import InvalidInput, NotAllowed, NotFound
from cloudsched.testing import START, Simulation

HOURLY = Schedule.every(HOUR, start=START + MINUTE)
IN_A_MINUTE = Schedule.once(START + MINUTE)

__all__ = ["app"]  # a fixture


def test_a_finished_task_is_purged_with_its_executions_after_its_retention(simulate: Simulate, app: App) -> None:
    """It exists until then; minutes later the task and its executions are removed, and no wake-up is left.

    A task's own retention takes precedence; null keeps it for ever.
    """
    sim = simulate(retention=7 * DAY)
    task = app.create(handler="tick", schedule=IN_A_MINUTE)
    kept = [app.create(handler="tick", schedule=IN_A_MINUTE, retention=own).id for own in (None, 30 * DAY)]
    sim.advance(7 * DAY)
    assert len(sim.executions(task.id)) == 1
    sim.advance(3 * MINUTE)
    with pytest.raises(NotFound):
        app.get(task.id)
    assert app.container.store.load_execution(task.id, "20270101T000100Z") is None
    sim.advance(22 * DAY)
    assert [app.get(each).status for each in kept] == ["COMPLETED"] * 2
    sim.advance(2 * DAY)
    assert app.container.store.sweep.next_wakeup() is None


def test_what_has_ended_is_there_a_year_later(simulate: Simulate, app: App) -> None:
    """By default, a task and its record are an audit trail of more than a year; a shorter life is the task's own."""
    sim = simulate(retention=Settings().retention)
    task = app.create(handler="tick", schedule=IN_A_MINUTE)
    short = app.create(handler="tick", schedule=IN_A_MINUTE, retention=HOUR)
    sim.advance(366 * DAY)
    assert [each.status for each in sim.executions(task.id)] == ["SUCCEEDED"]
    with pytest.raises(NotFound):
        app.get(short.id)
    sim.advance(366 * DAY)
    with pytest.raises(NotFound):
        app.get(task.id)


def test_an_unfinished_task_is_never_purged(simulate: Simulate, app: App) -> None:
    """A recurring, a paused and a rescheduled task all outlive their retention."""
    sim = simulate(retention=DAY)
    daily = app.create(handler="tick", schedule=Schedule.every(DAY))
    paused = app.create(handler="tick", schedule=IN_A_MINUTE)
    app.pause(paused.id)
    again = app.create(handler="tick", schedule=IN_A_MINUTE)
    sim.advance(20 * HOUR)
    app.update(again.id, schedule=Schedule.once(START + 9 * DAY))
    sim.advance(8 * DAY)
    assert [app.get(task.id).status for task in (daily, paused, again)] == ["ACTIVE", "PAUSED", "ACTIVE"]


def test_executions_are_kept_for_the_execution_retention_of_their_task(sim: Simulation, app: App) -> None:
    """A daily task that keeps records for two days has two after a week; the sweep returns how many it removed."""
    kept = 2 * DAY
    task = app.create(handler="tick", schedule=IN_A_MINUTE, execution_retention=kept)
    app.update(task.id, schedule=Schedule.every(DAY, start=START + HOUR))
    sim.advance(7 * DAY)
    assert app.sweep().expired == 5
    assert len(sim.executions(task.id)) == 2


def live_on(app: App, sim: Simulation, chance: Random) -> str:
    """Return the id of a task with some retention, after a random life by hand."""
    retention = chance.choice([7 * DAY, 30 * DAY, 31 * DAY, 5 * HOUR])
    fields: dict[str, Any] = {"schedule": IN_A_MINUTE} if chance.random() < 0.8 else {"schedule": HOURLY, "max_runs": 2}
    if chance.random() < 0.2:
        fields["execution_retention"] = 3 * DAY
    task_id = app.create(handler="tick", retention=retention, **fields).id
    verbs: list[Callable[[], object]] = [
        lambda: app.trigger(task_id),
        lambda: app.pause(task_id),
        lambda: app.resume(task_id),
        lambda: app.cancel(task_id),
        lambda: app.update(task_id, title="Tock"),
        lambda: app.update(task_id, schedule=sim.now + timedelta(hours=chance.randrange(1, 30))),
        lambda: app.update(task_id, retention=chance.choice([None, 8 * DAY, 40 * DAY])),
        lambda: sim.advance(timedelta(minutes=chance.randrange(90))),
        lambda: sim.advance(timedelta(days=chance.randrange(9))),
    ]
    for verb in chance.choices(verbs, k=chance.randrange(9)):
        with suppress(NotAllowed, NotFound, InvalidInput):
            verb()
    return task_id


@pytest.mark.parametrize("seed", range(200))
def test_no_record_outlives_its_task_nor_goes_before_it(simulate: Simulate, app: App, seed: int) -> None:
    """Whatever was done by hand: as long as the task is there, so are its records, and afterwards none of them is.

    A store that removes each document alone, at the instant that it says, removes a task and all of its records.
    """
    sim = simulate(retention=30 * DAY)
    task_id = live_on(app, sim, Random(seed))  # noqa: S311 - the same on every machine
    for _ in range(4):
        sim.advance(10 * DAY)
        stored = app.container.store.load(task_id)
        records = app.container.store.search.list_executions(task_id, limit=100).items
        if stored is None:
            assert records == []
            return
        own = timedelta(days=3 if stored.task.execution_retention else -1)
        kept = {each.expire_at for each in records if each.expire_at != (each.finished_at or START) + own}
        at = stored.task.expire_at
        assert kept <= {at}, "a record is left behind, or lost before its task"
        assert at is None or stored.task.wake_at is None
    if (task := app.get(task_id)).has_ended and task.retention is not None:
        sim.advance(95 * DAY)
        assert app.container.store.load(task_id) is None
        assert app.container.store.search.list_executions(task_id, limit=100).items == []


def test_all_records_of_a_task_are_kept_as_long_as_it_is(simulate: Simulate, app: App) -> None:
    """Also those of several runs that one cancel has ended, after the task was started again."""
    sim = simulate(retention=9 * DAY)
    task = app.create(handler="tick", pull="gpu", schedule=Schedule.once(START), overlap="ALLOW")
    for _ in range(2):
        app.trigger(task.id)
        sim.advance(MINUTE)
    app.cancel(task.id)
    records = {each.id for each in sim.executions(task.id)}
    assert len(records) > 1
    app.update(task.id, schedule=sim.now + 60 * DAY)
    sim.advance(50 * DAY)
    assert {each.id for each in sim.executions(task.id)} == records


def test_a_record_with_a_longer_life_goes_with_its_task(simulate: Simulate, app: App) -> None:
    """Nobody would find it any more: neither a list nor who erases its owner. So no store removes the task alone."""
    sim = simulate()
    life: dict[str, Any] = {"retention": 40 * DAY, "execution_retention": 90 * DAY}
    task = app.create(handler="tick", schedule=IN_A_MINUTE, **life)
    sim.advance(DAY)
    assert app.get(task.id).expire_at is None
    sim.advance(40 * DAY)
    assert app.container.store.load(task.id) is None
    assert app.container.store.search.list_executions(task.id, limit=10).items == []


def test_what_was_used_outlives_its_task_after_an_outage(simulate: Simulate, app: App) -> None:
    """Nothing was swept nor summed up for longer than the tasks are kept, and the first sweep removes them."""
    sim = simulate()
    life: dict[str, Any] = {"owner": "ada", "handler": "tick", "retention": 8 * DAY}
    app.create(**life, schedule=IN_A_MINUTE)
    app.create(**life, schedule=HOURLY, max_runs=2)
    sim.clock.advance(MINUTE)
    sim.queue.deliver_due()
    sim.clock.advance(HOUR)
    sim.queue.deliver_due()
    sim.clock.advance(9 * DAY)
    assert app.sweep().purged == 2
    sheets = sim.app.container.engine.usage().list_sheets("ada", f"{START:%Y-%m}")
    assert sum(mark.counts.executions for sheet in sheets for mark in sheet.sums) == 3
