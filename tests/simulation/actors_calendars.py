"""What clients do with calendars: they give schedules some, and change the days of these while tasks run."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched import App, Schedule
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.engine.authority import OWN_CODE
from cloudsched.features.calendars.documents import Calendar
from cloudsched.features.calendars.wiring import CalendarsWiring

if TYPE_CHECKING:
    from tests.simulation.world import World


CALENDARS = ("closed", "holidays")
CALENDAR_SHARE = 0.35
"""The probability that a change is one of a calendar."""
_RULES = ("FREQ=HOURLY;INTERVAL=6", "FREQ=DAILY;BYHOUR=0,9,23", "FREQ=WEEKLY;BYDAY=MO,SA,SU;BYHOUR=2", "FREQ=DAILY")


def require_calendars(world: World, app: App) -> None:
    for name in CALENDARS:
        if world.real_store.records.load(Calendar, name) is None:
            put_days(world, app, name)


def put_days(world: World, app: App, name: str | None = None) -> None:
    """Give a calendar random days of the weeks around now."""
    today = world.now.date()
    chosen = [today + timedelta(days) for days in range(-2, 12) if world.random.random() < 0.3]
    CalendarsWiring.of(app.container).calendars.put(
        name or world.random.choice(CALENDARS), SYSTEM_OWNER, days=[(day, day, "Feast") for day in chosen], by=OWN_CODE
    )


def schedule_with_calendars(world: World) -> Schedule:
    choose = world.random.choice
    start = (world.now - timedelta(days=choose([0, 3, 40]))).replace(tzinfo=None, microsecond=0)
    names = choose([("closed",), ("holidays",), ("closed", "holidays"), ("weekends", "closed")])
    return Schedule.model_validate(
        {
            "rrule": choose(_RULES),
            "dtstart": start.isoformat(),
            "timezone": choose(["UTC", "Europe/Paris", "America/New_York"]),
            "calendars": [{"id": name, "on": choose(["skip", "skip", "before", "after"])} for name in names],
            "businessDay": choose([None, None, None, None, 1, -1]),
        }
    )
