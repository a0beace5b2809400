"""The days of a calendar.

A calendar is stored as text, a line for each day or interval, so that a schedule can carry it. Planning with
it then depends on the task's document alone, and the calendar need not be read again. For example::

    weekdays SA,SU
    2027-07-14 Bastille Day
    2027-08-02/2027-08-20 Summer closing
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_INTERVALS: Final = 1000
"""The most days and intervals of one calendar."""
MAX_CONTENT: Final = 32_000
"""The most bytes of the text of one calendar, and of that of all calendars of a schedule together."""
MAX_DAY_NAME: Final = 80
WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WEEKDAY_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKENDS: Final = "weekends"
"""The id of the calendar that everybody has: Saturdays and Sundays."""
WEEKENDS_CONTENT: Final = "weekdays SA,SU"
_FIRST_ORDINAL: Final = date(1970, 1, 1).toordinal()
_THURSDAY: Final = 3  # the day of the week of day 0


class Interval(NamedTuple):
    """Days from one to another, both included, counted from 1970-01-01, and their name."""

    first: int
    last: int
    name: str


@dataclass(frozen=True, slots=True)
class CalendarDays:
    """The days of a calendar: sorted intervals that do not overlap, and days of the week (0 is Monday)."""

    weekdays: frozenset[int]
    intervals: Sequence[Interval]

    def find(self, day: int) -> str | None:
        """Return the name of a day that the calendar has, or None if it does not have it."""
        at = bisect_right(self.intervals, day, key=lambda interval: interval.first) - 1
        if at >= 0 and day <= self.intervals[at].last:
            return self.intervals[at].name
        weekday = weekday_of(day)
        if weekday not in self.weekdays:
            return None
        return _WEEKDAY_NAMES[weekday]

    def next_from(self, day: int) -> int | None:
        """Return the calendar's first day from a day on, or None if it has no more."""
        if self.find(day) is not None:
            return day
        later = [day + ahead for ahead in range(1, 7) if weekday_of(day + ahead) in self.weekdays][:1]
        at = bisect_right(self.intervals, day, key=lambda interval: interval.first)
        return min((*later, *(each.first for each in self.intervals[at : at + 1])), default=None)


def weekday_of(day: int) -> int:
    """Return a day's day of the week, 0 for Monday."""
    return (day + _THURSDAY) % 7


def to_day(value: date) -> int:
    """Return a date as the number of days since 1970-01-01."""
    return value.toordinal() - _FIRST_ORDINAL


def to_date(day: int) -> date:
    """Return the date of a number of days since 1970-01-01."""
    return date.fromordinal(day + _FIRST_ORDINAL)


def format_days(weekdays: Iterable[str], intervals: Iterable[tuple[date, date, str]]) -> str:
    """Return the text of a calendar. The first of several intervals names a day that they share."""
    lines = list[str]()
    chosen = [name for name in WEEKDAYS if name in set(weekdays)]
    if chosen:
        lines.append(f"weekdays {','.join(chosen)}")
    given = sorted((to_day(first), to_day(last), name) for first, last, name in intervals)
    if len(given) > MAX_INTERVALS:
        raise InvalidInput("days", f"has {len(given)} days and intervals", f"At most {MAX_INTERVALS}.")

    end = None
    for first, last, name in given:
        if last < first:
            problem = f"has an interval that ends on {to_date(last)}, before it begins on {to_date(first)}"
            raise InvalidInput("days", problem, "Give the first day first.")
        start = first if end is None else max(first, end + 1)
        if start > last:
            continue
        end = last
        until = f"/{to_date(last)}" if last > start else ""
        lines.append(f"{to_date(start)}{until} {_to_line(name)}".rstrip())

    content = "\n".join(lines)
    if len(content.encode()) > MAX_CONTENT:
        raise InvalidInput("days", f"has {len(content.encode())} bytes of text", f"At most {MAX_CONTENT}.")
    return content


def _to_line(name: str) -> str:
    printable = "".join(each if each.isprintable() else " " for each in name)
    return " ".join(printable.split())[:MAX_DAY_NAME].strip()


@lru_cache(maxsize=256)
def parse_days(content: str) -> CalendarDays:
    """Parse the text of a calendar, once for each version of it. Raises ValueError if it is none."""
    weekdays = frozenset[int]()
    intervals = list[Interval]()
    for line in content.split("\n") if content else ():
        head, _, rest = line.partition(" ")
        if head == "weekdays":
            weekdays = frozenset(WEEKDAYS.index(name) for name in rest.split(","))
            continue
        first, _, last = head.partition("/")
        start = to_day(date.fromisoformat(first))
        intervals.append(Interval(start, to_day(date.fromisoformat(last)) if last else start, rest))
    return CalendarDays(weekdays, tuple(intervals))
