"""Governments change clocks while tasks are planned: nothing is lost, run twice, or run at a wrong hour."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.instants import DAY, HOUR, MINUTE
from tests.zone_data import CAIRO, MEXICO, load_release

from cloudsched import App, Schedule, Task
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.planning import name_occurrence
from cloudsched.testing import Simulation

SUMMER = datetime(2027, 5, 1, tzinfo=UTC)


def old() -> AbstractContextManager[None]:
    """Be a process with the data of 2022a."""
    return time_zones.use(load_release("2022a"))


def new() -> AbstractContextManager[None]:
    """Be a process with the data of 2023c."""
    return time_zones.use(load_release("2023c"))


@pytest.fixture
def sim() -> Iterator[Simulation]:
    app = App()

    @app.handler("note")
    def note() -> None:
        pass

    with Simulation(app, start=SUMMER - DAY) as sim:
        yield sim


def create(sim: Simulation, schedule: Schedule, **fields: Any) -> Task:
    return sim.app.create(owner="ada", title="T", handler="note", schedule=schedule, **fields)


def daily(zone: str = MEXICO, rule: str = "FREQ=DAILY", **fields: Any) -> Schedule:
    return Schedule(rrule=rule, dtstart="2025-05-01T09:00:00", timezone=zone, **fields)


def sweep(sim: Simulation) -> None:
    sim.app.container.many_tasks.sweep(sim.app.sweep)


def runs(sim: Simulation, task: Task) -> list[tuple[str, str]]:
    """Return when each execution ran, in UTC, and its id."""
    records = sorted(sim.executions(task.id), key=lambda each: each.scheduled_for)
    return [(f"{each.started_at:%m-%d %H:%M}", each.id) for each in records if each.started_at is not None]


@pytest.mark.parametrize("rule", ["FREQ=YEARLY", "FREQ=MONTHLY", "FREQ=DAILY"])
def test_an_occurrence_that_has_run_does_not_run_again_at_its_new_instant(sim: Simulation, rule: str) -> None:
    """What ran at 14:00 UTC as 09:00 in Mexico is the same occurrence when new data say that 09:00 is 15:00 UTC."""
    with old():
        task = create(sim, daily(rule=rule), catch_up={"mode": "all"})
        sim.advance_to(SUMMER + timedelta(hours=14, minutes=30))
    with new():
        sim.advance_to(SUMMER + 23 * HOUR)
        assert [run for run in runs(sim, task) if run[0] >= "05-01"] == [
            ("05-01 14:00", "20270501T090000-America.Mexico_City")
        ]
        sim.advance_to(SUMMER + 366 * DAY)
        assert {run[0][-5:] for run in runs(sim, task) if run[0] > "05-02"} <= {"15:00"}


@pytest.mark.parametrize(("zone", "old_hour", "new_hour"), [(MEXICO, 14, 15), (CAIRO, 7, 6)], ids=["later", "earlier"])
def test_the_sweep_moves_what_is_to_come(sim: Simulation, zone: str, old_hour: int, new_hour: int) -> None:
    """A sweep with newer data plans a task again, before any dispatch, also to an earlier instant."""
    with old():
        task = create(sim, daily(zone))
        sweep(sim)
    with new():
        sim.advance(10 * MINUTE)
        sweep(sim)
        moved = sim.app.get(task.id)
        assert task.next_execution_time == SUMMER - DAY + timedelta(hours=old_hour)
        assert moved.next_execution_time == SUMMER - DAY + timedelta(hours=new_hour)
        assert moved.revision == task.revision
        assert (moved.history[-1].action, moved.history[-1].reason) == (
            Action.MOVED,
            f"moved by tzdata 2023c: 09:00 is {new_hour:02}:00 UTC, not {old_hour:02}:00 UTC, from 2027-04-30",
        )
        sim.advance_to(SUMMER + 23 * HOUR)
        assert [at for at, _ in runs(sim, task)] == [f"04-30 {new_hour:02}:00", f"05-01 {new_hour:02}:00"]


def test_a_process_with_older_data_moves_nothing_back(sim: Simulation) -> None:
    """It runs what newer data have planned, at its instant and by its name, and marks what it plans itself."""
    with new():
        task = create(sim, daily())
        sweep(sim)
    with old():
        sweep(sim)
        sim.app.update(task.id, title="Another")
        assert sim.app.get(task.id).next_execution_time == SUMMER - DAY + 15 * HOUR
        sim.advance_to(SUMMER + 23 * HOUR)
        assert runs(sim, task) == [
            ("04-30 15:00", "20270430T090000-America.Mexico_City"),
            ("05-01 15:00", "20270501T090000-America.Mexico_City"),
        ]
        stale = sim.app.get(task.id)
        assert stale.zone_plan is not None
        assert stale.zone_plan.is_stale
        assert stale.wake_at == stale.updated_at
    with new():
        sweep(sim)
        plan = sim.app.get(task.id).zone_plan
        assert plan is not None
        assert not plan.is_stale


def test_a_task_made_by_an_outdated_process_is_found(sim: Simulation) -> None:
    """A process with older data that knows of newer ones marks what it makes; the sweep plans it with the newer."""
    with new():
        sweep(sim)
    with old():
        sim.advance(6 * MINUTE)
        sweep(sim)
        task = create(sim, daily())
    with new():
        sim.advance(2 * MINUTE)
        sweep(sim)
        assert sim.app.get(task.id).next_execution_time == SUMMER - DAY + 15 * HOUR


def test_a_release_that_is_rolled_back_gives_way(sim: Simulation) -> None:
    """A day after a process with newer data was seen last, the older ones plan with what they have."""
    with new():
        task = create(sim, daily())
        sweep(sim)
    with old():
        sim.advance(timedelta(days=1, minutes=10))
        sweep(sim)
        assert sim.app.get(task.id).next_execution_time == SUMMER + 14 * HOUR


def test_one_time_at_a_local_time_keeps_its_hour(sim: Simulation) -> None:
    """Said as "1 May at 9:00 in Mexico", it is at 9:00 there by whichever data; an instant stays where it is."""
    with old():
        local = create(sim, Schedule.parse("2027-05-01T09:00", timezone=MEXICO))
        instant = create(sim, Schedule.once(SUMMER + 14 * HOUR, timezone=MEXICO))
        sweep(sim)
    with new():
        sim.advance(10 * MINUTE)
        sweep(sim)
        sim.advance_to(SUMMER + DAY)
        assert runs(sim, local) == [("05-01 15:00", "20270501T090000-America.Mexico_City")]
        assert runs(sim, instant) == [("05-01 14:00", "20270501T140000Z")]


def test_what_came_due_before_a_pause_keeps_its_hours(sim: Simulation) -> None:
    """Occurrences that wait for the end of a pause are the same ones after the data have changed."""
    with old():
        task = create(sim, daily(), catch_up={"mode": "all"})
        sim.queue.is_down = True
        sim.clock.move_to(SUMMER + timedelta(days=2, hours=16))
        sim.app.pause(task.id)
        sim.queue.is_down = False
    with new():
        sim.app.resume(task.id)
        sim.advance(2 * DAY)
        assert [name[:8] for _, name in runs(sim, task)] == ["20270430", *(f"2027050{day}" for day in range(1, 6))]


def test_a_zone_that_the_data_no_longer_know(sim: Simulation) -> None:
    """Its task goes on at the offset that was known last; it can be read, paused, resumed, edited and cancelled."""
    with old():
        task, other = create(sim, daily()), create(sim, daily())
    with time_zones.use(load_release("2023c", without=MEXICO)):
        sweep(sim)
        sim.advance(DAY)
        assert runs(sim, task) == [("04-30 14:00", "20270430T090000-America.Mexico_City")]
        assert sim.app.upcoming(task.id, 2) == [SUMMER + 14 * HOUR, SUMMER + timedelta(days=1, hours=14)]
        sim.app.pause(task.id)
        sim.app.resume(task.id)
        assert sim.app.tasks().items
        sim.app.update(task.id, schedule=daily("America/Bogota"))
        assert sim.app.get(task.id).next_execution_time == SUMMER + 14 * HOUR
        sim.app.cancel(other.id)


def test_another_instant_takes_the_place_of_a_local_time(sim: Simulation) -> None:
    """A patch that names an instant is not overruled by the local time that the schedule had."""
    task = create(sim, Schedule.parse("2027-05-01T09:00", timezone=MEXICO))
    edited = sim.app.patch(task.id, {"schedule": {"at": "2027-05-02T10:00:00Z"}})
    assert (edited.schedule.local, edited.next_execution_time) == (None, SUMMER + timedelta(days=1, hours=10))


@pytest.mark.parametrize("minutes", range(5, 180, 25))
@pytest.mark.parametrize(("zone", "hour"), [(MEXICO, 13), (CAIRO, 5)], ids=["later", "earlier"])
@pytest.mark.parametrize("kind", ["dates", "hours"])
def test_local_times_that_move_past_instants_lose_none(
    sim: Simulation, kind: str, zone: str, hour: int, minutes: int
) -> None:
    """Whenever the new data come, each local time and each instant beside it runs once, also after an edit."""
    begin = SUMMER + timedelta(hours=hour)
    local = "FREQ=DAILY;BYHOUR=8,9,10;BYMINUTE=0,30;BYSECOND=0"
    more: dict[str, Any] = {"rrule": (local, "FREQ=HOURLY;INTERVAL=2;BYSECOND=0")}
    if kind == "dates":
        dates = [(begin + timedelta(minutes=each)).isoformat() for each in (7, 67, 69, 77, 127, 187)]
        more = {"rrule": local, "rdates": dates}
    schedule = Schedule(dtstart="2022-01-29T00:19:00", timezone=zone, **more)
    with old():
        task = create(sim, schedule, catch_up={"mode": "all"})
        sim.advance_to(begin + timedelta(minutes=minutes))
    with new():
        for _ in range(3):
            sweep(sim)
            sim.advance(MINUTE)
        sim.app.update(task.id, title="Another", until=SUMMER + 4 * DAY)
        sim.advance_to(SUMMER + 2 * DAY)
        names = [each.id for each in sim.executions(task.id)]
        assert len(names) == len({*names})
        due = sim.app.get(task.id).schedule.between(SUMMER - DAY / 2, SUMMER + 2 * DAY - DAY / 2)
        assert {name_occurrence(schedule, at) for at in due} <= {*names}
        assert len(due) > 10
