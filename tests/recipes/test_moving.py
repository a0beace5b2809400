"""Moving from Celery beat and APScheduler: the tasks run when the jobs did, and call the same functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from celery import Celery
from celery.schedules import crontab, schedule
from tests.instants import DAY, HOUR, MINUTE, SECOND
from tests.recipes.conftest import Load

from cloudsched import Schedule
from cloudsched.testing import Simulation

PAGE = "../run/migrate.md"
MONDAY = datetime(2027, 3, 1, tzinfo=UTC)
calls: list[tuple[object, ...]] = []


def note(*args: object, **kwargs: object) -> str:
    """A job."""
    calls.append((*args, kwargs))
    return "noted"


class Sunset(schedule):  # type: ignore[misc]
    """A schedule that Celery computes, as its `solar` does."""


@pytest.fixture(autouse=True)
def _forget() -> None:
    calls.clear()


def provide(monkeypatch: pytest.MonkeyPatch, module: str, **names: object) -> None:
    stub = ModuleType(module)
    vars(stub).update(names)
    monkeypatch.setitem(sys.modules, module, stub)


def beat(monkeypatch: pytest.MonkeyPatch, load: Load, **entries: dict[str, Any]) -> ModuleType:
    celery = Celery("shop", broker="memory://")
    celery.conf.timezone = "Europe/Paris"
    celery.task(name="shop.note")(note)
    celery.conf.beat_schedule = entries
    provide(monkeypatch, "celery_app", celery=celery)
    return load(f"{PAGE}#Celery beat", "handlers")


def test_the_entries_of_beat_call_their_celery_tasks(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Crontabs in Celery's zone, intervals, arguments; no worker and no broker is asked."""
    module = beat(
        monkeypatch,
        load,
        nightly={"task": "shop.note", "schedule": crontab(hour="2", minute="30"), "args": (1, "a")},
        often={"task": "shop.note", "schedule": 21_600.0, "kwargs": {"x": 1}},
        interval={"task": "shop.note", "schedule": schedule(12 * HOUR)},
    )
    with Simulation(module.app, MONDAY) as sim:
        sim.advance(DAY - SECOND)
        (nightly,) = sim.executions("beat-nightly")
        assert (f"{nightly.scheduled_for:%H:%M}", nightly.content) == ("01:30", "noted")
        assert len(sim.executions("beat-often")) == 4
        assert len(sim.executions("beat-interval")) == 2
        assert (1, "a", {}) in calls
        assert ({"x": 1},) in calls


@pytest.mark.parametrize(
    "when",
    [
        crontab(),
        crontab(minute="0", hour="*/3,8-17"),
        crontab(minute=5, hour=7, day_of_week="mon-fri"),
        crontab(minute="0", hour="0", day_of_month="1-7,15"),
        crontab(minute="0", hour="12", month_of_year="*/3"),
    ],
    ids=str,
)
def test_a_crontab_of_celery_means_the_same(when: crontab, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """For five weeks, each minute is an occurrence exactly if it is in all of Celery's sets."""
    text = beat(monkeypatch, load).to_schedule(when)
    parsed = Schedule.parse(text)
    minutes = (MONDAY + timedelta(minutes=number) for number in range(35 * 1440))
    expected = [
        at
        for at in minutes
        if at.minute in when.minute
        and at.hour in when.hour
        and at.isoweekday() % 7 in when.day_of_week
        and at.day in when.day_of_month
        and at.month in when.month_of_year
    ]
    assert parsed.between(MONDAY - SECOND, MONDAY + 35 * DAY) == expected


@pytest.mark.parametrize("when", [crontab(day_of_month="1", day_of_week="mon"), Sunset(DAY)], ids=str)
def test_what_celery_alone_can_say_is_refused(when: object, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather than run at other times."""
    with pytest.raises(ValueError, match="declare it by hand"):
        beat(monkeypatch, load).to_schedule(when)


def aps(monkeypatch: pytest.MonkeyPatch, load: Load, fill: Callable[[BackgroundScheduler], object]) -> ModuleType:
    scheduler = BackgroundScheduler(timezone="Europe/Paris")
    fill(scheduler)
    provide(monkeypatch, "jobs", scheduler=scheduler)
    return load(f"{PAGE}#APScheduler", "handlers")


def test_the_jobs_of_apscheduler_call_their_functions(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cron in the trigger's zone, intervals from their start, and single dates, with their arguments."""

    def fill(scheduler: BackgroundScheduler) -> None:
        scheduler.add_job(note, "cron", hour=9, args=["cron"], id="cron")
        scheduler.add_job(note, "interval", hours=8, start_date=MONDAY, kwargs={"a": 1}, id="interval")
        scheduler.add_job(note, "date", run_date=MONDAY + 5 * HOUR, id="date")

    module = aps(monkeypatch, load, fill)
    with Simulation(module.app, MONDAY - MINUTE) as sim:
        sim.advance(23 * HOUR)
        assert [f"{each.scheduled_for:%H:%M}" for each in sim.executions("cron")] == ["08:00"]
        assert [f"{each.scheduled_for:%H}" for each in sim.executions("interval")] == ["00", "08", "16"]
        assert [f"{each.scheduled_for:%H}" for each in sim.executions("date")] == ["05"]
        assert sorted(map(repr, calls)) == sorted(map(repr, [("cron", {}), *[({"a": 1},)] * 3, ({},)]))


@pytest.mark.parametrize(
    "fields",
    [
        {"minute": "*/10"},
        {"hour": "8-18/2", "minute": "5,35", "day_of_week": "sat,6"},
        {"hour": 3, "day_of_week": "mon-fri/2"},
        {"day": "last"},
        {"day": "1,15", "hour": 12},
    ],
    ids=str,
)
def test_a_cron_trigger_means_the_same(fields: dict[str, Any], load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first twenty times are those of APScheduler itself, across a change of the clocks."""
    trigger = CronTrigger(**fields, timezone="America/New_York")
    parsed = aps(monkeypatch, load, lambda _: None).to_schedule(trigger)
    at = datetime(2027, 3, 10, 0, 0, 1, tzinfo=UTC)
    expected, previous = [], None
    for _ in range(20):
        previous = trigger.get_next_fire_time(previous, previous or at)
        expected.append(previous.astimezone(UTC))
    found = [at]
    for _ in range(20):
        found.append(parsed.next_after(found[-1]))
    assert found[1:] == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"second": "*/5"},
        {"day": 1, "day_of_week": "mon"},
        {"day": "2nd fri"},
        {"day_of_week": "*/2"},
        {"jitter": 5},
    ],
    ids=str,
)
def test_what_apscheduler_alone_can_say_is_refused(
    fields: dict[str, Any], load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rather than run at other times."""
    with pytest.raises(ValueError, match="declare it by hand"):
        aps(monkeypatch, load, lambda _: None).to_schedule(CronTrigger(**fields))
