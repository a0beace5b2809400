"""Parse and format dates, local times and instants in ISO 8601, extended or basic as in iCalendar."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import NamedTuple

from cloudsched.errors import InvalidSchedule

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- wall-clock seconds have no zone
UTC_EPOCH = EPOCH.replace(tzinfo=timezone.utc)  # noqa: UP017 -- datetime.UTC is the same object
FIRST_YEAR = 1583
LAST_YEAR = 9998
LAST_INSTANT = datetime(LAST_YEAR, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)  # noqa: UP017 -- as above
"""The last instant that a document can hold. Python's last year is left free, so that any zone can show
it."""

_MOMENT = re.compile(
    r"(\d{4})-?(\d{2})-?(\d{2})(?:[T ](\d{2}):?(\d{2})(?::?(\d{2})(?:\.0+)?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?\Z",
    re.ASCII | re.IGNORECASE,
)
_CANONICAL = len("2027-01-31T09:00:00")


class Moment(NamedTuple):
    """A parsed time.

    Attributes:
        wall: Seconds since 1970 as shown by a clock.
        offset: Seconds east of UTC if the text named an offset.
        is_date: The text was a date without a time.
    """

    wall: int
    offset: int | None
    is_date: bool

    def isoformat(self) -> str:
        """Return the canonical text."""
        when = EPOCH + timedelta(seconds=self.wall)
        if self.is_date:
            return when.date().isoformat()
        if self.offset is None:
            return when.isoformat()
        return when.replace(tzinfo=timezone(timedelta(seconds=self.offset))).isoformat().replace("+00:00", "Z")


@lru_cache(maxsize=4096)
def parse_moment(text: str, field: str) -> Moment:
    """Parse a date, a local time or an instant, to the second."""
    hint = "write it like 2027-01-31T09:00:00"
    if len(text) == _CANONICAL and text[4] == text[7] == "-" and text[10] == "T" and text[13] == text[16] == ":":
        with suppress(ValueError):  # the problem is reported below
            when = datetime.fromisoformat(text)
            if FIRST_YEAR <= when.year <= LAST_YEAR:
                return Moment(wall_seconds(when), None, is_date=False)
    result = _MOMENT.match(text.strip())
    if not result:
        raise InvalidSchedule(field, f"{text[:40]!r} is not a date or time, to the second", hint)
    *numbers, offset = result.groups()
    year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise InvalidSchedule(field, f"the year {year} is out of range", f"{FIRST_YEAR} to {LAST_YEAR}")
    try:
        when = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 -- the offset is kept beside it
    except ValueError as error:
        raise InvalidSchedule(field, f"{text[:40]!r}: {error}", hint) from None
    return Moment(wall_seconds(when), _parse_offset(offset), numbers[3] is None)


def to_utc(instant: datetime) -> datetime:
    """Return an aware datetime in UTC. Raises ValueError for years that no document can hold."""
    if FIRST_YEAR <= instant.year <= LAST_YEAR:
        if instant.tzinfo is UTC:
            moved = instant
        else:
            moved = instant.astimezone(UTC)
        if FIRST_YEAR <= moved.year <= LAST_YEAR:
            return moved
    raise ValueError(f"the year is not in {FIRST_YEAR} to {LAST_YEAR}")


def add_duration(instant: datetime, duration: timedelta) -> datetime:
    """Return an instant this much later, but no later than a document can hold."""
    if duration >= LAST_INSTANT - instant:
        return LAST_INSTANT
    return instant + duration


def wall_seconds(when: datetime) -> int:
    """Return a naive datetime as seconds since 1970 on the clock, without its microseconds."""
    elapsed = when - EPOCH
    return elapsed.days * 86_400 + elapsed.seconds


def utc_seconds(when: datetime) -> int:
    """Return an aware datetime as whole seconds since 1970 UTC, rounded down."""
    elapsed = when - UTC_EPOCH
    return elapsed.days * 86_400 + elapsed.seconds


def _parse_offset(text: str | None) -> int | None:
    if not text:
        return None
    if text in "zZ":
        return 0
    hours = int(text[1:3])
    minutes = int(text[3:].lstrip(":") or 0)
    seconds = hours * 3600 + minutes * 60
    return -seconds if text[0] == "-" else seconds


def reject_number(value: object) -> object:
    """Refuse seconds since 1970, as a number or as text, where an instant is meant."""
    is_number = isinstance(value, int | float) or (isinstance(value, str) and value[4:5] != "-")
    if is_number:
        raise ValueError("is not an instant such as 2027-01-01T09:00:00Z")
    return value
