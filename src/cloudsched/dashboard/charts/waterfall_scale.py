"""The time axis of a waterfall: linear where something ran, and compressed in the gaps between."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SHORTEST_GAP: Final = timedelta(seconds=30)
_SHARE_OF_RUNNING: Final = 4
"""A gap is longer than all that ran, divided by this."""
_GAP: Final = 0.08
"""The width that a gap of an hour asks for."""
_GAP_A_DECADE: Final = 0.02
"""What one that is ten times as long asks for besides."""
_LEAST: Final = 0.06
_MOST: Final = 0.14
_ALL_GAPS: Final = 0.45
_LEAST_LINEAR: Final = 0.025
"""The least width of a segment between gaps, so that its date can be read."""

Interval = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class AxisSegment:
    """A part of the axis: linear inside, not to scale if it is a gap."""

    start: datetime
    end: datetime
    left: float
    """Its left end, as a fraction of the width."""
    width: float
    is_gap: bool
    is_future: bool = False
    """True if it leads from now to a known end."""

    @property
    def duration(self) -> timedelta:
        """Return its length in time."""
        return self.end - self.start

    def place(self, at: datetime) -> float:
        """Return an instant's place as a fraction of the axis's width. One outside lies at its end."""
        if not self.duration:
            return self.left
        return self.left + self.width * _clamp((at - self.start) / self.duration)

    def find_instant(self, place: float) -> datetime:
        """Return the instant at a place: the reverse of `place`."""
        if not self.width:
            return self.start
        return self.start + self.duration * _clamp((place - self.left) / self.width)


def _clamp(part: float) -> float:
    return min(1.0, max(0.0, part))


@dataclass(frozen=True, slots=True)
class Scale:
    """The places of instants on the axis."""

    segments: tuple[AxisSegment, ...]

    @property
    def gaps(self) -> tuple[AxisSegment, ...]:
        """Return the segments that are compressed."""
        return tuple(segment for segment in self.segments if segment.is_gap)

    def place(self, at: datetime) -> float:
        """Return an instant's place as a fraction of the width. One outside the axis lies at its end."""
        index = max(0, bisect_right(self.segments, at, key=lambda segment: segment.start) - 1)
        return self.segments[index].place(at)

    def find_instant(self, place: float) -> datetime:
        """Return the instant at a place: the reverse of `place`."""
        index = max(0, bisect_right(self.segments, place, key=lambda segment: segment.left) - 1)
        return self.segments[index].find_instant(place)

    @property
    def span(self) -> Interval:
        """Return the axis's beginning and end."""
        return self.segments[0].start, self.segments[-1].end


class _Cut(NamedTuple):
    """A part of the time, before its width is known."""

    start: datetime
    end: datetime
    is_gap: bool

    @property
    def duration(self) -> timedelta:
        return self.end - self.start


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

    The end is now, or that of the execution. If its wait has a known end, that is one more gap from there. With `true`,
    nothing is compressed.
    """
    last = max(known_end or end, end)
    if true or start >= end:
        final = max(last, start + timedelta(milliseconds=1))
        return Scale((AxisSegment(start, final, 0.0, 1.0, is_gap=False),))

    clipped = [(max(begin, start), min(finish, end)) for begin, finish in running]
    cuts = _cut(merge(pair for pair in clipped if pair[0] <= pair[1]), start, end)
    if last > end:
        cuts.append(_Cut(end, last, is_gap=True))
    return Scale(_lay_out(cuts, end))


def _cut(busy: Sequence[Interval], start: datetime, end: datetime) -> list[_Cut]:
    """Return a span divided into gaps, which are long, and what lies between them."""
    ran = sum((finish - begin for begin, finish in busy), timedelta(0))
    shortest = max(SHORTEST_GAP, ran / _SHARE_OF_RUNNING)
    cuts: list[_Cut] = []

    def add(begin: datetime, finish: datetime, *, is_gap: bool) -> None:
        if cuts and not is_gap and not cuts[-1].is_gap:
            cuts[-1] = cuts[-1]._replace(end=finish)
        else:
            cuts.append(_Cut(begin, finish, is_gap))

    at = start
    for begin, finish in busy:
        if begin > at:
            add(at, begin, is_gap=begin - at > shortest)
        if begin < end:
            add(begin, finish, is_gap=False)
        at = finish
    if end > at:
        add(at, end, is_gap=end - at > shortest)
    return cuts


def _lay_out(cuts: Sequence[_Cut], now: datetime) -> tuple[AxisSegment, ...]:
    """Return the parts of the time with their widths: gaps by their lengths, the others in the room that is left."""
    linear = [cut.duration for cut in cuts if not cut.is_gap]
    all_linear = sum(linear, timedelta(0))
    wanted = sum(gap_width(cut.duration) for cut in cuts if cut.is_gap)
    count = max(1, len(linear))

    free = 1.0 - min(wanted, _ALL_GAPS)
    least = min(_LEAST_LINEAR, free / count)
    if wanted and not all_linear:  # what ran took no time: gaps share the width, but for its dates
        least = min(_LEAST_LINEAR, 0.5 / count)
        free = least * len(linear)
    spread = max(0.0, free - least * len(linear))

    segments = []
    left = 0.0
    for cut in cuts:
        if cut.is_gap:
            width = gap_width(cut.duration) * (1.0 - free) / wanted
        elif all_linear:
            width = least + spread * (cut.duration / all_linear)
        else:
            width = least + spread / count
        segments.append(
            AxisSegment(cut.start, cut.end, left, width, cut.is_gap, is_future=cut.start >= now and cut.is_gap)
        )
        left += width
    return tuple(segments)


def gap_width(duration: timedelta) -> float:
    """Return the width that a gap asks for, as a fraction: it grows with the gap, within bounds."""
    hours = max(duration.total_seconds() / 3600, 1e-9)
    return min(_MOST, max(_LEAST, _GAP + _GAP_A_DECADE * math.log10(hours)))
