"""The parts of a time by which runs are counted: the days, hours or quarters of an hour of a zone's clock."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.run_counts import PartLength
from cloudsched.domain.recurrence.iso8601 import utc_seconds
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MAX_PARTS: Final = 200
"""The most parts: a week of hours, two days of quarters, half a year of days."""
_LENGTHS: Final = {PartLength.HOUR: 3600, PartLength.QUARTER: 900}


def split_time(since: datetime, until: datetime, zone: ZoneInfo, per: PartLength) -> list[datetime]:
    """Return the edges of the parts from `since` to `until`. The first and the last part may be shorter.

    Raises InvalidInput if they are too many.
    """
    edges = [since]
    while edges[-1] < until:
        if len(edges) > MAX_PARTS:
            raise InvalidInput("until", f"gives more than {MAX_PARTS} parts", "Ask for longer ones.")
        edges.append(min(until, _find_next_edge(edges[-1], zone, per)))
    return edges


def _find_next_edge(start: datetime, zone: ZoneInfo, per: PartLength) -> datetime:
    local = start.astimezone(zone)
    if per is not PartLength.DAY:
        wall = utc_seconds(start) + int((local.utcoffset() or timedelta(0)).total_seconds())
        return start.replace(microsecond=0) + timedelta(seconds=_LENGTHS[per] - wall % _LENGTHS[per])

    day = local.date()
    midnight = start
    while midnight <= start:  # a zone may skip a day as a whole
        day += timedelta(days=1)
        midnight = datetime.combine(day, time(), zone).astimezone(UTC)
    return midnight
