"""A waterfall's scale: what runs shares one scale, and long idle gaps between it are compressed."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHORTEST_GAP: Final = timedelta(seconds=30)
_SHARE_OF_RUNNING: Final = 4
_GAP, _GAP_A_DECADE, _LEAST, _MOST, _ALL_GAPS = 0.08, 0.02, 0.06, 0.14, 0.45
_LEAST_LINEAR: Final = 0.025
"""The least width of a stretch between gaps, so that its date can be read."""

Interval = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the axis: linear inside, not to scale if it is a gap."""

    start: datetime
    end: datetime
    left: float
    """Where it begins, as a fraction of the width."""
    width: float
    is_gap: bool
    is_future: bool = False
    """Whether it leads from now to a known end."""

    @property
    def duration(self) -> timedelta:
        """Its length in time."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Scale:
    """Where an instant lies on the axis."""

    stretches: tuple[Stretch, ...]

    @property
    def gaps(self) -> tuple[Stretch, ...]:
        """The stretches that are compressed."""
        return tuple(stretch for stretch in self.stretches if stretch.is_gap)

    def place(self, at: datetime) -> float:
        """Return an instant's place as a fraction of the width; one outside the axis lies at its end."""
        index = max(0, bisect_right(self.stretches, at, key=lambda stretch: stretch.start) - 1)
        stretch = self.stretches[index]
        part = (at - stretch.start) / stretch.duration if stretch.duration else 0.0
        return stretch.left + stretch.width * min(1.0, max(0.0, part))

    def find_instant(self, place: float) -> datetime:
        """Return which instant lies at a place: what `place` reverses."""
        index = max(0, bisect_right(self.stretches, place, key=lambda stretch: stretch.left) - 1)
        stretch = self.stretches[index]
        part = (place - stretch.left) / stretch.width if stretch.width else 0.0
        return stretch.start + stretch.duration * min(1.0, max(0.0, part))

    @property
    def span(self) -> Interval:
        """The axis's beginning and end."""
        return self.stretches[0].start, self.stretches[-1].end


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of intervals, in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def make_scale(
    running: Iterable[Interval],
    start: datetime,
    end: datetime,
    *,
    known_end: datetime | None = None,
    true: bool = False,
) -> Scale:
    """Return the scale of an execution.

    Args:
        running: When anything in view runs.
        start: Where the axis begins.
        end: Its present end: now, or the end of the execution.
        known_end: What it waits for, if that has a known end: one more gap, from `end` on.
        true: Whether nothing is compressed.
    """
    last = known_end if known_end is not None and known_end > end else None
    if true or start >= end:
        final = max(last or end, start + timedelta(milliseconds=1))
        return Scale((Stretch(start, final, 0.0, 1.0, is_gap=False),))
    clipped = [(max(begin, start), min(finish, end)) for begin, finish in running]
    merged = merge(pair for pair in clipped if pair[0] <= pair[1])
    busy = sum((finish - begin for begin, finish in merged), timedelta(0))
    cuts: list[tuple[datetime, datetime, bool]] = []
    at = start
    for begin, finish in [*merged, (end, end)]:
        if begin - at > SHORTEST_GAP and begin - at > busy / _SHARE_OF_RUNNING:
            cuts.append((at, begin, True))
        elif begin > at:
            cuts.append((at, begin, False))
        if (begin, finish) != (end, end):
            cuts.append((begin, finish, False))
        at = max(at, finish)
    if last is not None:
        cuts.append((end, last, True))
    return Scale(_lay_out(_join(cuts), end))


def _join(cuts: Sequence[tuple[datetime, datetime, bool]]) -> list[tuple[datetime, datetime, bool]]:
    joined: list[tuple[datetime, datetime, bool]] = []
    for begin, finish, is_gap in cuts:
        if joined and not is_gap and not joined[-1][2]:
            joined[-1] = (joined[-1][0], finish, False)
        else:
            joined.append((begin, finish, is_gap))
    return joined


def _lay_out(cuts: Sequence[tuple[datetime, datetime, bool]], now: datetime) -> tuple[Stretch, ...]:
    wanted = [gap_width(finish - begin) if is_gap else 0.0 for begin, finish, is_gap in cuts]
    shrink = min(1.0, _ALL_GAPS / sum(wanted)) if sum(wanted) else 1.0
    linear = [finish - begin for begin, finish, is_gap in cuts if not is_gap]
    all_linear = sum(linear, timedelta(0))
    free = 1.0 - sum(wanted) * shrink
    least = min(_LEAST_LINEAR, free / len(linear)) if linear else 0.0
    if not all_linear and any(wanted):  # what ran took no time: gaps share the width, but for its dates
        least = min(_LEAST_LINEAR, 0.5 / len(linear)) if linear else 0.0
        free = least * len(linear)
        shrink = (1.0 - free) / sum(wanted)
    spread = max(0.0, free - least * len(linear))
    stretches = []
    left = 0.0
    for (begin, finish, is_gap), gap in zip(cuts, wanted, strict=True):
        share = (finish - begin) / all_linear if all_linear else 1 / max(1, len(linear))
        width = gap * shrink if is_gap else least + spread * share
        stretches.append(Stretch(begin, finish, left, width, is_gap, is_future=begin >= now and is_gap))
        left += width
    return tuple(stretches)


def gap_width(duration: timedelta) -> float:
    """Return the width that a gap asks for, as a fraction: it grows with the gap, within bounds."""
    hours = max(duration.total_seconds() / 3600, 1e-9)
    return min(_MOST, max(_LEAST, _GAP + _GAP_A_DECADE * math.log10(hours)))
