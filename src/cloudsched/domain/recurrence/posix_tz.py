"""The rule that a time zone follows after the last clock change that its file lists.

A TZif file ends with such a rule in the form of the POSIX ``TZ`` variable (RFC 8536, section 3.3.1), for example
``EST5EDT,M3.2.0,M11.1.0``: two offsets and the two days of each year on which the clocks change between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
SECONDS_A_DAY = 86_400

_NAME = r"(?:[A-Za-z]+|<[^>]+>)"
_OFFSET = r"[+-]?\d{1,3}(?::\d{2}){0,2}"
_FOOTER = re.compile(rf"{_NAME}({_OFFSET})(?:{_NAME}({_OFFSET})?,([^,]+),([^,]+))?\Z")


@dataclass(frozen=True, slots=True)
class ChangeDay:
    """One of the two days of a year on which the clocks change, and the local time at which they do.

    Attributes:
        form: ``M`` for the nth weekday of a month, ``J`` for a day of the year that never counts 29 February,
            an empty string for a zero-based day of the year that does.
        numbers: Month, week and weekday (Sunday is 0) for ``M``, one number for the others.
        time: Seconds after local midnight; below 0 or above a day is allowed.
    """

    form: str
    numbers: tuple[int, ...]
    time: int

    def local_seconds(self, year: int) -> int:
        """Return the local time of the change in ``year``, in seconds since 1970 as read on the clock before it."""
        if self.form == "M":
            month, week, weekday = self.numbers
            first = date(year, month, 1).toordinal()
            day = first + (weekday - first) % 7 + 7 * (week - 1)
            following = date(year + month // 12, month % 12 + 1, 1).toordinal()
            while day >= following:
                day -= 7
        elif self.form == "J":
            number = self.numbers[0]
            day = date(2001, 1, 1).toordinal() + number - 1
            day = date.fromordinal(day).replace(year=year).toordinal()
        else:
            day = date(year, 1, 1).toordinal() + self.numbers[0]
        return (day - EPOCH_ORDINAL) * SECONDS_A_DAY + self.time


@dataclass(frozen=True, slots=True)
class Footer:
    """A parsed rule: the standard offset in seconds east of UTC and, where there is one, the summer offset."""

    standard: int
    summer: int | None = None
    starts: ChangeDay | None = None
    ends: ChangeDay | None = None

    def changes(self, year: int) -> list[tuple[int, int]]:
        """Return the year's clock changes as (UTC seconds, offset from then on), in order."""
        if self.summer is None or self.starts is None or self.ends is None:
            return []
        return sorted(
            [
                (self.starts.local_seconds(year) - self.standard, self.summer),
                (self.ends.local_seconds(year) - self.summer, self.standard),
            ]
        )


def parse_footer(text: str) -> Footer:
    """Parse the footer of a TZif file.

    Raises:
        ValueError: The text is not of the form that RFC 8536 allows.
    """
    result = _FOOTER.match(text)
    if not result:
        raise ValueError(f"{text!r} is not a POSIX TZ rule")
    standard, summer, starts, ends = result.groups()
    east = -_parse_seconds(standard)
    if starts is None:
        return Footer(east)
    return Footer(
        east, -_parse_seconds(summer) if summer else east + 3600, _parse_change_day(starts), _parse_change_day(ends)
    )


def _parse_change_day(text: str) -> ChangeDay:
    day, _, time = text.partition("/")
    form = day[0] if day[0] in "MJ" else ""
    numbers = tuple(int(number) for number in day.removeprefix(form).split("."))
    return ChangeDay(form, numbers, _parse_seconds(time) if time else 2 * 3600)


def _parse_seconds(text: str) -> int:
    hours, *rest = text.lstrip("+-").split(":")
    minutes, seconds = [*map(int, rest), 0, 0][:2]
    total = int(hours) * 3600 + minutes * 60 + seconds
    return -total if text.startswith("-") else total
