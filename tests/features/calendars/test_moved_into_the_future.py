"""An occurrence whose day has passed is not lost, if calendars move it to now or later."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time
from random import Random
from zoneinfo import ZoneInfo

import pytest
from dateutil.relativedelta import relativedelta
from dateutil.rrule import rrulestr
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
        yield day, move(day, policy, is_free)


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


FREQUENCIES = ("yearly", "monthly", "weekly", "daily", "hourly")
TIME = ";BYHOUR=9;BYMINUTE=30;BYSECOND=0"
CHOICES = {
    "yearly": f";BYMONTH=1,2,12;BYMONTHDAY=1,2{TIME}",
    "monthly": f";BYMONTHDAY=1,3,-1{TIME}",
    "weekly": f";BYDAY=SA,SU,TU{TIME}",
    "daily": "",
    "hourly": "",
}


def expand(frequency: str, interval: int, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the times of a rule from a year before its start on, in the rhythm that its start gives."""
    steps = min(interval, 20_000) if frequency == "hourly" else min(interval, 900)  # no earlier one is near
    counts = {"hourly": 10_000, "daily": 400, "weekly": 60, "monthly": 14, "yearly": 2}
    back = (counts[frequency] // steps + 1) * steps
    if frequency == "yearly":
        begin = start.replace(year=start.year - back, month=1, day=1)
    elif frequency == "monthly":
        begin = start.replace(day=1) - relativedelta(months=back)
    elif frequency == "weekly":
        begin = start - start.weekday() * DAY - back * 7 * DAY
    else:
        begin = start - back * (DAY if frequency == "daily" else HOUR)
    rule = f"FREQ={frequency.upper()};INTERVAL={steps}{CHOICES[frequency]}"
    yield from rrulestr(rule, dtstart=begin).between(start - 380 * DAY, end, inc=True)


def move(day: date, policy: str | int, is_free: Callable[[date], bool]) -> date | None:
    """Return the day to which a day moves, found by a walk."""
    if isinstance(policy, int):
        free = [
            to for number in range(monthrange(day.year, day.month)[1]) if is_free(to := day.replace(day=number + 1))
        ]
        number = policy - 1 if policy > 0 else policy
        return free[number] if -len(free) <= number < len(free) else None
    while not is_free(day):
        day += DAY if policy == "AFTER" else -DAY
    return day


@pytest.mark.parametrize("policy", [1, 10, -1, "AFTER", "BEFORE"])
@pytest.mark.parametrize("seed", range(12))
def test_every_rhythm_keeps_what_is_to_come_or_says_what_it_loses(policy: str | int, seed: int) -> None:
    """Its times are those that dateutil finds, moved one by one. A start that was given loses some, and names them."""
    chance = Random(f"rhythm {policy} {seed}")  # noqa: S311
    names = chance.sample(FREQUENCIES, chance.choice([1, 1, 2]))
    intervals = [chance.choice([1, 2, 3, 7, 88, 100, 500]) if name != "hourly" else 7 for name in names]
    rules = [
        f"FREQ={name.upper()};INTERVAL={interval}{CHOICES[name]}"
        for name, interval in zip(names, intervals, strict=True)
    ]
    moment = START + (chance.randrange(24 * 70) + 0.5) * HOUR
    closed = START.date() + chance.randrange(60) * DAY
    holidays = {closed + number * DAY for number in range(chance.choice([1, 3, 9]))}
    calendars = ["weekends", "fr"]
    adjusted: dict[str, object] = {"calendars": calendars, "businessDay": policy}
    if isinstance(policy, str):
        adjusted = {"calendars": [{"id": name, "on": policy} for name in calendars]}

    def is_free(day: date) -> bool:
        return day.weekday() < 5 and day not in holidays

    with Simulation(App(), start=START) as sim:
        sim.app.handler("log")(lambda: None)
        put(sim, *sorted(holidays))
        sim.clock.move_to(moment)
        plain = sim.app.create(
            id="p", owner="system", handler="log", schedule=Schedule.model_validate({"rrule": rules})
        )
        own = plain.schedule.dtstart
        assert own is not None
        start, end = datetime.fromisoformat(own), datetime.fromisoformat(own) + 20 * DAY
        after, ahead = start.replace(tzinfo=UTC), end.replace(tzinfo=UTC)
        moved = {
            datetime.combine(to, at.time(), UTC)
            for name, interval in zip(names, intervals, strict=True)
            for at in expand(name, interval, start, end + 400 * DAY)
            if (to := move(at.date(), policy, is_free)) is not None
        }
        wanted = sorted(at for at in moved if after <= at < ahead)
        for given in ({}, {"dtstart": own}):
            schedule = Schedule.model_validate({"rrule": rules, **adjusted, **given})
            task = sim.app.create(id=f"t{len(given)}", owner="system", handler="log", schedule=schedule)
            found = task.schedule.between(after, ahead)
            lost = [at for at in wanted if at not in found]
            assert set(found) <= set(wanted)
            assert given or not lost
            if not given:
                again = sim.app.create(id="t0", owner="system", handler="log", schedule=schedule)
                assert again.schedule == task.schedule
            for at in lost[:3]:
                assert any(f"{at:%Y-%m-%d}" in each for each in task.assumed), (at, task.assumed)
