"""An occurrence whose day has passed is not lost, if calendars move it to now or later."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from random import Random
from zoneinfo import ZoneInfo

import pytest
from tests.engine.harness import DAY, HOUR
from tests.features.calendars.test_calendar_changes import put

from cloudsched import App, Schedule
from cloudsched.testing import START, Simulation

SHOWN = 4
DAYS: dict[str, Callable[[date, date], bool]] = {
    "FREQ=MONTHLY;BYMONTHDAY=1": lambda day, _: day.day == 1,
    "FREQ=MONTHLY;BYMONTHDAY=-1": lambda day, _: day.day == monthrange(day.year, day.month)[1],
    "FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=15": lambda day, now: day.day == 15 and (day.month - now.month) % 2 == 0,
    "FREQ=WEEKLY;BYDAY=SA": lambda day, _: day.weekday() == 5,
    "FREQ=WEEKLY;BYDAY=SU,WE": lambda day, _: day.weekday() in {2, 6},
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=27": lambda day, _: (day.month, day.day) == (2, 27),
    "FREQ=DAILY": lambda *_: True,
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SA": lambda day, now: (
        day.weekday() == 5 and (day - now + now.weekday() * DAY).days // 7 % 2 == 0
    ),
    "FREQ=HOURLY;BYDAY=SA": lambda day, _: day.weekday() == 5,
    "FREQ=SECONDLY;BYDAY=SU,WE;BYMINUTE=0;BYSECOND=0": lambda day, _: day.weekday() in {2, 6},
}


def list_moved(
    is_due: Callable[[date, date], bool], is_free: Callable[[date], bool], policy: str | int, now: datetime
) -> Iterator[tuple[date, date | None]]:
    """Yield each day of a rule, from long before now on, with the day to which it moves."""
    for day in (now.date() + number * DAY for number in range(-370, 2500)):
        if not is_due(day, now.date()):
            continue
        if isinstance(policy, int):
            days = [day.replace(day=number + 1) for number in range(monthrange(day.year, day.month)[1])]
            free = [each for each in days if is_free(each)]
            number = policy - 1 if policy > 0 else policy
            yield day, free[number] if -len(free) <= number < len(free) else None
            continue
        to = day
        while not is_free(to):
            to += DAY if policy == "AFTER" else -DAY
        yield day, to


@pytest.mark.parametrize("how", ["created", "edited"])
@pytest.mark.parametrize("rule", list(DAYS))
@pytest.mark.parametrize("policy", [3, -1, "AFTER", "BEFORE"])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_is_still_to_come_is_lost(rule: str, policy: str | int, seed: int, how: str) -> None:
    """It plans what a walk over all days finds, whatever the hour, and with an end or a number of times, too."""
    chance = Random(f"{rule} {policy} {seed}")  # noqa: S311
    zone = ZoneInfo(chance.choice(["UTC", "Europe/Paris", "America/New_York"]))
    holidays = {START.date() + chance.randrange(80) * DAY for _ in range(4)}
    closed = START.date() + chance.randrange(60) * DAY
    holidays |= {closed + number * DAY for number in range(chance.choice([1, 9, 25]))}
    ends = chance.choice(["", "", ";COUNT=3", ";UNTIL=20270720T230000"])
    hour, moment = chance.choice([0, 9, 17]), START + (chance.randrange(24 * 70) + 0.5) * HOUR
    if isinstance(policy, int) and not rule.startswith("FREQ=MONTHLY"):
        ends = ""  # several days of a month are one day then, and each counts
    with Simulation(App(), start=START) as sim:
        sim.app.handler("log")(lambda: None)
        put(sim, *sorted(holidays))
        names = ["weekends", "fr"]
        calendars = names if isinstance(policy, int) else [{"id": name, "on": policy} for name in names]
        schedule = Schedule.model_validate(
            {
                "rrule": f"{rule};BYHOUR={hour}{ends}",
                "timezone": zone.key,
                "calendars": calendars,
                "businessDay": policy if isinstance(policy, int) else None,
            }
        )
        if how == "edited":
            sim.app.create(id="t", owner="system", handler="log", schedule="every year on 31 December at noon")
        sim.clock.move_to(moment)
        now = sim.now.astimezone(zone).replace(tzinfo=None)

        def is_free(day: date) -> bool:
            return day.weekday() < 5 and day not in holidays

        moved = [
            (day, datetime.combine(to, time(hour)))
            for day, to in list_moved(DAYS[rule], is_free, policy, now)
            if to is not None and (datetime.combine(to, time(hour)) >= now or datetime.combine(day, time(hour)) >= now)
        ]
        if ends.startswith(";COUNT"):
            moved = moved[:3]
        if ends.startswith(";UNTIL"):
            moved = [each for each in moved if each[0] <= date(2027, 7, 20)]
        wanted = sorted({at.replace(tzinfo=zone).astimezone(UTC) for _, at in moved if at >= now})
        if not wanted:
            return
        if how == "edited":
            sim.app.update("t", schedule=schedule)
        else:
            sim.app.create(id="t", owner="system", handler="log", schedule=schedule)
        assert sim.app.upcoming("t", SHOWN) == wanted[:SHOWN]
