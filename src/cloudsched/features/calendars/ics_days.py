"""The days that iCalendar files take: those of their events, joined, for ten years ahead.

`ics_files` reads a file's components, and `ics_events` says what its events mean.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.allowance import DISPATCH_STEPS, limit_search
from cloudsched.domain.schedules.calendar_days import MAX_INTERVALS, to_date, to_day
from cloudsched.errors import InvalidInput, SearchLimitReached

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.features.calendars.ics_events import Days

MAX_TEXT: Final = 2_000_000
"""The most characters of iCalendar that are read."""
MAX_EVENTS: Final = 3_000
"""The most events and rules of a file."""
MAX_DATES: Final = 10_000
"""The most dates that a file may add or leave out, in its lines RDATE and EXDATE."""
YEARS_AHEAD: Final = 10
"""The number of years ahead for which an event that recurs is followed."""
_BYTE_ORDER_MARK: Final = "\ufeff"
_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_FOLD: Final = re.compile(rb"(?:\r\n?|\n)[ \t]")
_CHARACTER: Final = re.compile(rb"[\xc2-\xf4](?:[\x80-\xbf]|(?:\r\n?|\n)[ \t](?=[\x80-\xbf]|[\r\n]))+")
"""A character of several octets, which folds may split."""


def decode_ics(content: bytes) -> str:
    """Return a file's text: UTF-8, whose characters a fold may split, or else Windows' encoding."""
    if content.startswith(_UTF_16):
        return content.decode("utf-16", "replace")
    content = _CHARACTER.sub(
        lambda found: b"".join(_FOLD.findall(found[0])) + _FOLD.sub(b"", found[0]),
        content,
    )
    for encoding in ("utf-8-sig", "cp1252"):
        with suppress(UnicodeDecodeError):
            return content.decode(encoding)
    return content.decode("latin-1")


def read_ics_days(text: str, today: date) -> list[tuple[date, date, str]]:
    """Return the intervals of days of a calendar's events, from the year before today on.

    Raises:
        InvalidInput: The file is broken, or one of its events is. The error names the line, and the event.
        ModuleNotFoundError: A zone has a name of Windows, and the package that knows these is not installed.
    """
    if len(text) > MAX_TEXT:
        raise InvalidInput("ics", f"has {len(text)} characters", f"At most {MAX_TEXT}.")
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if "BEGIN:VCALENDAR" not in text[:2000].upper():
        raise InvalidInput("ics", "is no iCalendar text", "It begins with BEGIN:VCALENDAR.")
    from cloudsched.features.calendars.ics_events import list_series  # noqa: PLC0415 - only a file needs it
    from cloudsched.features.calendars.ics_files import read_calendars  # noqa: PLC0415 - the same

    first = to_day(date(today.year - 1, 1, 1))
    last = to_day(date(today.year + YEARS_AHEAD, 12, 31))
    found: set[Days] = set()
    try:
        with limit_search(DISPATCH_STEPS):
            for series in list_series(read_calendars(text, MAX_EVENTS, MAX_DATES)):
                found.update(days for days in series.iter_days(first, last) if days.last >= first)
    except SearchLimitReached as error:
        raise InvalidInput(
            "ics",
            "has rules that take too long to follow",
            "Give fewer events that recur.",
        ) from error
    joined = _join(sorted(found))
    if len(joined) > MAX_INTERVALS:
        raise InvalidInput("ics", f"has more than {MAX_INTERVALS} days and intervals", "Give fewer.")
    return [(to_date(each.first), to_date(each.last), each.name) for each in joined]


def _join(found: Iterable[Days]) -> list[Days]:
    """Join days of the same name that are next to each other, in the order of days."""
    joined: list[Days] = []
    open_ends: dict[str, int] = {}
    for days in found:
        at = open_ends.get(days.name)
        if at is not None and days.first <= joined[at].last + 1:
            joined[at] = joined[at]._replace(last=max(joined[at].last, days.last))
        else:
            open_ends[days.name] = len(joined)
            joined.append(days)
    return joined
