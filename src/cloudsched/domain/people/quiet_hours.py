"""Quiet hours: when they end, by the clock where the person is.

A moment is quiet if the clock on the wall shows a time from `from` (included) to `until` (excluded). So at a clock
change

* forward, quiet hours that would end in the gap end at the change, when the clock shows a later time;
* back, what was no longer quiet is so again if the clock shows such a time again.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.time_zones import EPOCH, load_zone

if TYPE_CHECKING:
    from cloudsched.domain.documents.person import QuietHours

_DAY: Final = 86_400
_SECOND: Final = timedelta(seconds=1)


def quiet_until(hours: QuietHours, timezone: str, at: datetime) -> datetime:
    """Return the first instant, not before `at`, that is not quiet: `at` itself, or the end of the quiet hours."""
    zone = load_zone(timezone)
    start, until = _to_seconds(hours.start), _to_seconds(hours.until)
    length = (until - start) % _DAY
    seconds = first = (at - EPOCH) // _SECOND
    while True:
        table = zone.table_for(seconds)
        number = bisect_right(table.changes, seconds)
        wall = (seconds + table.offsets[number]) % _DAY
        since_start = (wall - start) % _DAY
        if since_start >= length:
            return at if seconds == first else datetime.fromtimestamp(seconds, UTC)
        end = seconds + length - since_start
        change = table.changes[number] if number < len(table.changes) else table.end
        if end < change:
            return datetime.fromtimestamp(end, UTC)
        seconds = int(change)


def _to_seconds(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 3600 + int(minutes) * 60
