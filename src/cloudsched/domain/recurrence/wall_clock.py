"""Convert wall-clock times to instants, with the policies for clock changes.

When clocks go forward, some local times do not exist (a *gap*). When they go back, some occur twice (a
*fold*).

``gap``
    - ``shift``: a time in the gap is read with the offset before it, so that 02:30 fires at 03:30. RFC 5545,
      section 3.3.5. Its erratum 4271 confirms that this holds for recurrences too, against 3.3.10.
    - ``skip``: a time in the gap does not fire, and COUNT does not count it.
``fold``
    - ``first``: the first of the two. RFC 5545, section 3.3.5.
    - ``last``: the second.
    - ``both``: one occurrence each.

Whole skipped or repeated days are gaps and folds like any other. Two times that the policies map to one
instant are one occurrence.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import Literal, NamedTuple

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.expand import DAY, WallTimes
from cloudsched.domain.recurrence.time_zones import Offsets, Zone, find_zone

Gap = Literal["SHIFT", "SKIP"]
Fold = Literal["FIRST", "LAST", "BOTH"]

_MAX_CLOCK_CHANGE = 30 * 3600  # longer than any clock change


class _OffsetIntervals(NamedTuple):
    table: Offsets
    boundaries: list[int]
    offsets: list[tuple[int, ...]]


class WallClock:
    """The clock of one zone under one pair of policies.

    The time line is cut into intervals. In each, the occurrences are the schedule's wall-clock times read
    with each of the interval's offsets. Usually there is one. After a gap, whose times are shifted there,
    there are two. There are none where a fold's repeated times do not fire.
    """

    def __init__(self, zone_table: Zone, gap: Gap, fold: Fold) -> None:
        self.zone = zone_table
        self.gap: Gap = gap
        self.fold: Fold = fold
        self._intervals = self._build_intervals(zone_table.table_for(0))

    def first_from(self, times: WallTimes, instant: int) -> int | None:
        """Return the first instant, not before ``instant``, on which one of the wall-clock times falls."""
        while True:
            spend_steps()
            intervals = self._intervals_for(instant)
            at = bisect_right(intervals.boundaries, instant)
            end: float = intervals.table.end
            if at < len(intervals.boundaries):
                end = intervals.boundaries[at]

            offsets = intervals.offsets[at]
            best: int | None = None
            following: int | None = None
            for offset in offsets:
                wall = times.first_from(instant + offset)
                if wall is None:
                    continue
                if wall - offset < end and (best is None or wall - offset < best):
                    best = wall - offset
                if following is None or wall < following:
                    following = wall
            if best is not None or end == float("inf"):
                return best

            # No wall-clock time lies between here and `following`. Beyond a clock change that is certain only
            # if the interval was longer than the change.
            is_certain = offsets and end - instant > _MAX_CLOCK_CHANGE
            if is_certain and following is None:
                return None
            instant = int(end)
            if is_certain and following is not None:
                instant = max(instant, following - self.zone.largest)

    def walls_at(self, instant: int) -> tuple[int, ...]:
        """Return the wall-clock times that mean an instant: the one shown, and any that a gap shifted there."""
        intervals = self._intervals_for(instant)
        offsets = intervals.offsets[bisect_right(intervals.boundaries, instant)]
        return tuple(instant + offset for offset in offsets)

    def instants(self, wall: int) -> tuple[int, ...]:
        """Return the instants of one wall-clock time: one, none (a skipped gap) or two (both of a fold)."""
        table = self.zone.table_for(wall + 2 * DAY)
        low = bisect_right(table.changes, wall - self.zone.largest - 1)
        high = bisect_right(table.changes, wall - self.zone.smallest)
        result = []
        for at in range(low, high + 1):
            instant = wall - table.offsets[at]
            if bisect_right(table.changes, instant) == at:  # then this offset is in force
                result.append(instant)

        if not result:
            return () if self.gap == "SKIP" else (self._shift_gap(table, wall, low, high),)
        if self.fold == "BOTH":
            return tuple(sorted(set(result)))
        if self.fold == "FIRST":
            return (min(result),)
        return (max(result),)

    def is_second(self, instant: int, wall: int) -> bool:
        """Return whether an instant is the second one of a time that fires twice."""
        if self.fold != "BOTH":
            return False
        both = self.instants(wall)
        return len(both) > 1 and both[-1] == instant

    def find(self, wall: int, offset: int, near: int) -> int:
        """Return the instant of a wall-clock time, also of one that a gap skips.

        Of two, it is the one with that offset, or else the one nearer to another instant.
        """
        found = self.instants(wall)
        if len(found) == 1:
            return found[0]
        if wall - offset in found:
            return wall - offset
        return min(found, key=lambda each: abs(each - near))

    @staticmethod
    def _shift_gap(table: Offsets, wall: int, low: int, high: int) -> int:
        for at in range(low, high):
            if table.changes[at] + table.offsets[at] <= wall < table.changes[at] + table.offsets[at + 1]:
                return wall - table.offsets[at]
        return wall - table.offsets[low]

    def _intervals_for(self, instant: int) -> _OffsetIntervals:
        table = self.zone.table_for(instant)
        if table is not self._intervals.table:
            self._intervals = self._build_intervals(table)
        return self._intervals

    def _build_intervals(self, table: Offsets) -> _OffsetIntervals:
        """Cut the time line where the zone's offset, or the policies' reading of it, changes."""
        spend_steps(len(table.changes))
        shifted: list[tuple[int, int, int]] = []  # from, until, offset before the gap
        silent: list[tuple[int, int]] = []

        for at, change in enumerate(table.changes):
            before = table.offsets[at]
            after = table.offsets[at + 1]
            if after > before and self.gap == "SHIFT":
                shifted.append((change, change + after - before, before))
            elif after < before and self.fold == "FIRST":
                silent.append((change, change + before - after))
            elif after < before and self.fold == "LAST":
                silent.append((change - (before - after), change))

        cuts = sorted({*table.changes, *(edge for span in (*shifted, *silent) for edge in span[:2])})
        offsets: list[tuple[int, ...]] = [(table.offsets[0],)]
        for cut in cuts:
            own = table.offsets[bisect_right(table.changes, cut)]
            offsets.append((own,))

        for start, until, before in shifted:
            for at in range(bisect_right(cuts, start), bisect_right(cuts, until - 1) + 1):
                offsets[at] = (*offsets[at], before)

        for start, until in silent:
            for at in range(bisect_right(cuts, start), bisect_right(cuts, until - 1) + 1):
                offsets[at] = offsets[at][1:]

        return _OffsetIntervals(table, cuts, offsets)


@lru_cache(maxsize=1024)
def clock_of(zone: Zone, gap: Gap = "SHIFT", fold: Fold = "FIRST") -> WallClock:
    """Return the clock of a zone."""
    return WallClock(zone, gap, fold)


def wall_clock(zone_name: str, gap: Gap = "SHIFT", fold: Fold = "FIRST") -> WallClock:
    """Return the clock of a zone by name, or one at UTC if the data do not know it."""
    return clock_of(find_zone(zone_name), gap, fold)
