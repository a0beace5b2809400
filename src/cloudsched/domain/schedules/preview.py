"""Preview a schedule's occurrences, with the effects of clock changes."""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from cloudsched.domain.recurrence.iso8601 import utc_seconds
from cloudsched.domain.recurrence.time_zones import Zone, find_zone, load_shown

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule

MAX_PREVIEW = 1000


class ClockChange(StrEnum):
    """The effect of a clock change on an occurrence."""

    SHIFTED = "shifted"
    """The local time of the schedule does not exist on that day. The occurrence is as much later as the
    clocks jump."""
    REPEATED = "repeated"
    """The clock shows this local time twice."""
    CHANGED = "changed"
    """The offset differs from the previous occurrence's. The local time is as scheduled."""


class Preview(NamedTuple):
    """One occurrence: the instant in UTC, the local time, and the effect of a clock change on it."""

    at: datetime
    local: datetime
    clock_change: ClockChange | None

    def to_wire(self) -> dict[str, str | None]:
        """Return the JSON form."""
        return {
            "utc": self.at.isoformat().replace("+00:00", "Z"),
            "local": self.local.isoformat(),
            "clockChange": self.clock_change and self.clock_change.value,
        }


def preview(schedule: Schedule, start: datetime, count: int) -> list[Preview]:
    """Return the next occurrences strictly later than ``start``, at most ``count`` and at most 1,000."""
    clock = load_shown(schedule.timezone)
    zone = find_zone(schedule.timezone)
    if schedule.is_now:
        return [Preview(start, start.astimezone(clock), None)]

    unshifted = schedule.copy_unchecked(gap="SKIP")
    previews = []
    before = start.astimezone(clock)

    for at in schedule.upcoming(start, min(count, MAX_PREVIEW)):
        local = at.astimezone(clock)
        change: ClockChange | None = None
        near = _find_nearby_change(zone, utc_seconds(at))
        if near > 0 and schedule.at is None and not unshifted.occurs(at):
            change = ClockChange.SHIFTED
        elif near < 0:
            change = ClockChange.REPEATED
        elif local.utcoffset() != before.utcoffset():
            change = ClockChange.CHANGED
        previews.append(Preview(at, local, change))
        before = local

    return previews


def _find_nearby_change(zone_table: Zone, instant: int) -> int:
    """Return 1 within a gap's width after it, -1 within either half of a fold, else 0."""
    table = zone_table.table_for(instant + 100_000)
    at = bisect_right(table.changes, instant)
    for number in range(max(at - 1, 0), min(at + 1, len(table.changes))):
        width = table.offsets[number + 1] - table.offsets[number]
        since = instant - table.changes[number]
        if width > 0 and 0 <= since < width:
            return 1
        if width < 0 and width <= since < -width:
            return -1
    return 0
