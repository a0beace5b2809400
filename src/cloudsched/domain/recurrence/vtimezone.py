"""The zones of an iCalendar text: by the name in TZID, or as VTIMEZONE defines them (RFC 5545, 3.6.5)."""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.expand import LAST_SECOND
from cloudsched.domain.recurrence.iso8601 import wall_seconds
from cloudsched.domain.recurrence.recurrence_set import RuleStream
from cloudsched.domain.recurrence.rrule import parse_rule
from cloudsched.domain.recurrence.time_zones import Zone
from cloudsched.domain.recurrence.wall_clock import WallClock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_PARTS: Final = 3
"""The most parts of an IANA name."""
_MAX_CHANGES: Final = 1_000
"""The most clock changes that are followed."""
_LAST_CHANGE: Final = wall_seconds(datetime(2100, 1, 1))  # noqa: DTZ001 - on any clock


class Observance(NamedTuple):
    """A STANDARD or DAYLIGHT: the offset from some clock changes on, in seconds east of UTC."""

    start: int
    """Its DTSTART, in seconds since 1970 on the clock before the change."""
    before: int
    after: int
    dates: Sequence[int] = ()
    """Its RDATEs, on the same clock."""
    rules: Sequence[str] = ()


def build_zone(name: str, observances: Sequence[Observance]) -> Zone:
    """Return the zone of a VTIMEZONE. Raises InvalidSchedule if a rule cannot be read."""
    found: set[tuple[int, int]] = set()
    for each in observances:
        clock = WallClock(Zone(name, [], [each.before], None, 0), "SHIFT", "FIRST")
        onsets = {wall - each.before for wall in (each.start, *each.dates)}
        for rule in each.rules:
            stream = RuleStream(parse_rule(rule), each.start, clock, "ELAPSED")
            onset = stream.first_from(-LAST_SECOND)
            while onset is not None and onset < _LAST_CHANGE and len(onsets) < _MAX_CHANGES:
                onsets.add(onset)
                onset = stream.first_from(onset + 1)
        found |= {(onset, each.after) for onset in onsets}

    changes = sorted(found)
    first = min(observances, key=lambda each: each.start)
    return Zone(
        name,
        [at for at, _ in changes],
        [first.before, *(after for _, after in changes)],
        None,
        changes[-1][0],
    )


def find_zone(tzid: str) -> str | None:
    """Return the IANA name in a TZID such as ``/example.org/Europe/Berlin``, or None if there is none."""
    parts = tzid.strip("/").split("/")[-_MOST_PARTS:]
    names = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((name for name in names if time_zones.in_use.knows(name)), None)


def find_windows_zone(tzid: str) -> str | None:
    """Return the IANA name for one of Windows, such as ``W. Europe Standard Time``, or None if it is none."""
    return _read_windows_zones().get(tzid)


def find_equal_zone(zone: Zone, since: int, likely: str) -> str | None:
    """Return a well-known name, or the likely one, of a zone with the same clock from an instant on."""
    wanted = _list_changes(zone, since)
    names = (likely, *_read_windows_zones().values())
    return next((name for name in names if _list_changes(time_zones.find_zone(name), since) == wanted), None)


def _read_windows_zones() -> Mapping[str, str]:
    from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON  # noqa: PLC0415 - slow to import, and an extra

    return WINDOWS_TO_OLSON


def _list_changes(zone: Zone, since: int) -> list[tuple[float, int]]:
    table = zone.table_for(since)
    first = bisect_right(table.changes, since)
    spend_steps(len(table.changes) - first)
    found: list[tuple[float, int]] = [(since, table.offsets[first])]
    for at, after in zip(table.changes[first:], table.offsets[first + 1 :], strict=True):
        if after != found[-1][1] and at < _LAST_CHANGE:
            found.append((at, after))
    return found
