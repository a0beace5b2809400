"""A plain walk over the calendar: the local times that a rule in Python names, with no recurrence library at all."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta

On = Callable[[date], bool]

NOW = datetime(2026, 11, 20, 10, 17)  # noqa: DTZ001 -- a Friday, local to ZONE
ZONE = "Europe/Paris"
MO, TU, WE, TH, FR, SA, SU = range(7)


def walk(on: On, times: Sequence[str], count: int = 8, start: date | None = None, end: date | None = None) -> list[str]:
    """Return the next local times after NOW on days that pass, from ``start`` on and until ``end``."""
    found: list[str] = []
    day = max(start or NOW.date(), NOW.date())
    limit = day + timedelta(days=366 * 12)
    while len(found) < count and day < limit and (end is None or day <= end):
        if on(day):
            for text in sorted(times):
                at = datetime.combine(day, time.fromisoformat(text))
                if at > NOW:
                    found.append(at.isoformat())
        day += timedelta(days=1)
    return found[:count]


def every(start: str = "", minutes: int = 0, count: int = 8) -> list[str]:
    """Return times a fixed number of minutes apart, after NOW."""
    at = datetime.fromisoformat(start) if start else NOW
    found: list[str] = []
    while len(found) < count:
        if at > NOW:
            found.append(at.isoformat())
        at += timedelta(minutes=minutes)
    return found


def wd(*days: int) -> On:
    return lambda day: day.weekday() in days


def dom(*numbers: int) -> On:
    """Days of the month; negative from its end."""

    def on(day: date) -> bool:
        return day.day in numbers or day.day - monthrange(day.year, day.month)[1] - 1 in numbers

    return on


def nth(number: int, *days: int) -> On:
    """The nth such weekday of the month; negative from its end."""

    def on(day: date) -> bool:
        if day.weekday() not in days:
            return False
        left = monthrange(day.year, day.month)[1] - day.day
        return (day.day - 1) // 7 + 1 == number or -(left // 7) - 1 == number

    return on


def nth_of(number: int, days: Sequence[int]) -> On:
    """The nth day of the month among those weekdays together, as for working days."""

    def on(day: date) -> bool:
        last = monthrange(day.year, day.month)[1]
        among = [n for n in range(1, last + 1) if day.replace(day=n).weekday() in days]
        return day.day == among[number - 1 if number > 0 else number]

    return on


def month(*numbers: int) -> On:
    return lambda day: day.month in numbers


def both(*tests: On) -> On:
    return lambda day: all(test(day) for test in tests)


def but(test: On) -> On:
    return lambda day: not test(day)


def weeks(interval: int, first: str) -> On:
    """Every so many weeks, counted in weeks from Monday on."""
    begin = date.fromisoformat(first)
    monday = begin - timedelta(days=begin.weekday())
    return lambda day: day >= begin and (day - monday).days // 7 % interval == 0


def apart(interval: int, first: str) -> On:
    """Every so many days."""
    begin = date.fromisoformat(first)
    return lambda day: day >= begin and (day - begin).days % interval == 0


def months_apart(interval: int, first: str) -> On:
    begin = date.fromisoformat(first)
    return lambda day: (
        (day.year - begin.year) * 12 + day.month - begin.month >= 0
        and (((day.year - begin.year) * 12 + day.month - begin.month) % interval == 0)
    )


def any_day(_: date) -> bool:
    return True


WORK = wd(MO, TU, WE, TH, FR)
WEEKEND = wd(SA, SU)
