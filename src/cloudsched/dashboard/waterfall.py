"""What an execution did, as rows: attempts of its handler, steps, sleeps, waits and calls.

A `Scale` places them from left to right, and compresses the gaps between them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.svg import element, group, percent
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.zoom import clip

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterable, Iterator, Sequence

    from markupsafe import Markup

    from cloudsched.dashboard.api import Json


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


_FOLDED: Final = 3
"""More neighbours of one kind and name that succeeded than this are one row."""
_WAITS: Final = frozenset({"SLEEP", "EVENT"})
_HEIGHT: Final = 32
_AXIS: Final = 40
_LEAST_LABELLED: Final = 0.05


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in a row: ``past``, ``fail``, ``run``, ``wait``, or ``due`` for what lies ahead."""

    start: datetime
    end: datetime
    kind: str


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """One row, or several that were folded."""

    number: int
    """The step's number; 0 for the handler."""
    kind: str
    name: str
    status: str
    bars: tuple[Bar, ...]
    took: timedelta
    count: int = 1
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All rows on one scale."""

    rows: tuple[WaterfallRow, ...]
    scale: Scale
    now: datetime
    running_for: timedelta
    """How long anything in it ran."""
    is_open: bool
    whole: Scale
    """That of all of the execution, of which `scale` may show a part."""

    @property
    def has_now(self) -> bool:
        """Return whether now is in sight."""
        start, end = self.scale.span
        return self.is_open and start <= self.now <= end

    @property
    def gaps_text(self) -> str:
        """The compressed stretches, in words."""
        gaps = [gap for gap in self.scale.gaps if not gap.is_future]
        if not gaps:
            return ""
        idle = sum((gap.duration for gap in gaps), timedelta(0))
        count = "1 gap" if len(gaps) == 1 else f"{len(gaps)} gaps"
        return f"{count} compressed: {write_duration(idle)} in which nothing ran"


def make_waterfall(
    record: Json, now: datetime, *, true_scale: bool = False, window: Interval | None = None
) -> Waterfall:
    """Return an execution's rows and their scale; with a window, those of this part, without the gaps outside it."""
    is_open = not record.get("finishedAt")
    start = parse_instant(record.get("startedAt") or record["scheduledFor"])
    end = max(start, now if is_open else parse_instant(record["finishedAt"]))
    steps = record.get("steps", [])
    waits = merge(_interval(step, now) for step in steps if step["kind"] in _WAITS)
    tries = [(parse_instant(each["startedAt"]), parse_instant(each["finishedAt"]), each) for each in record["attempts"]]
    handler = [
        Bar(begin, finish, _bar_kind(each["status"]))
        for first, last, each in tries
        for begin, finish in subtract((first, last), waits)
    ]
    if record["status"] == "RUNNING":
        last_end = max((finish for _, finish, _ in tries), default=start)
        handler += [Bar(begin, finish, "run") for begin, finish in subtract((last_end, end), waits)]
    rows = [_handler_row(record, handler), *_fold(_step_row(step, now) for step in steps)]
    known_end = _find_known_end(record, steps) if is_open else None
    running = [(bar.start, bar.end) for row in rows for bar in row.bars if bar.kind not in {"wait", "due"}]
    busy = sum((finish - begin for begin, finish in merge(running)), timedelta(0))
    whole = make_scale(running, start, end, known_end=known_end, true=true_scale)
    part = clip(window, *whole.span)
    if part is None:
        return Waterfall(tuple(rows), whole, now, busy, is_open, whole)
    begin, finish = part
    ahead = min(known_end, finish) if known_end is not None and finish > end else None
    scale = make_scale(
        [each for each in running if each[1] >= begin and each[0] <= finish],
        min(begin, end),
        min(finish, end),
        known_end=ahead,
        true=true_scale,
    )
    shown = [rows[0], *(row for row in rows[1:] if any(bar.end >= begin and bar.start <= finish for bar in row.bars))]
    return Waterfall(tuple(shown), scale, now, busy, is_open, whole)


def subtract(interval: Interval, holes: list[Interval]) -> Iterator[Interval]:
    """Yield what remains of an interval without some others, which are in order and apart."""
    begin, end = interval
    for first, last in holes:
        if last <= begin or first >= end:
            continue
        if first > begin:
            yield begin, first
        begin = max(begin, last)
    if begin <= end:
        yield begin, end


def draw_ground(waterfall: Waterfall) -> tuple[Markup, Markup]:
    """Return what all rows have: the gaps below their bars, and now above them."""
    return group(*_draw_gaps(waterfall.scale, _HEIGHT)), _draw_now(waterfall, _HEIGHT) if waterfall.has_now else group()


def draw_row(row: WaterfallRow, scale: Scale, ground: tuple[Markup, Markup]) -> Markup:
    """Return a row's bars on what `draw_ground` returns. What failed is half as high, and lower."""
    marks = [ground[0]]
    start, end = scale.span
    for bar in row.bars:
        if bar.end < start or bar.start > end:
            continue
        left, right = scale.place(bar.start), scale.place(bar.end)
        width = percent(right - left) if right - left > 0.003 else "3"  # noqa: PLR2004 - three pixels at least
        y, height = (17, 9) if bar.kind == "fail" else (10, 12)
        css = {"past": "f-past", "fail": "f-fail", "run": "f-run", "wait": "hatched", "due": "o w"}[bar.kind]
        fill = {"fill": "url(#hatch)"} if bar.kind == "wait" else {}
        marks.append(element("rect", cls=css, x=percent(left), y=y, width=width, height=height, **fill))
    return element("svg", *marks, ground[1], cls="c", height=_HEIGHT, **{"aria-hidden": "true"})


def draw_axis(waterfall: Waterfall, zone: zoneinfo.ZoneInfo) -> Markup:
    """Return the axis: the date where a stretch begins, and each gap's true duration."""
    marks = [*_draw_gaps(waterfall.scale, _AXIS)]
    is_after_gap = False
    for stretch in waterfall.scale.stretches:
        css = "strong alt" if is_after_gap else "strong"  # where it is narrow, the second of two has no room
        is_after_gap = stretch.is_gap
        if stretch.is_gap:
            marks.append(_draw_duration(stretch, waterfall, css))
        elif stretch.left < 0.9:  # noqa: PLR2004 - room for a label
            local = stretch.start.astimezone(zone)
            x = percent(stretch.left)
            marks.append(element("text", f"{local.day} {local:%b}", cls="strong alt", x=x, dx=2, y=15))
            if stretch.width > _LEAST_LABELLED:
                marks.append(element("text", f"{local:%H:%M:%S %z}", cls="alt", x=x, dx=2, y=32))
    if waterfall.has_now:
        marks.append(_draw_now(waterfall, _AXIS))
    return element("svg", *marks, cls="c", height=_AXIS, **{"aria-hidden": "true"})


def _draw_duration(gap: Stretch, waterfall: Waterfall, css: str) -> Markup:
    """Return how long a gap is, in its middle; beside now, on its own side of the line."""
    text = write_duration(gap.duration)
    if waterfall.has_now and waterfall.now in {gap.start, gap.end}:
        x, is_past = percent(waterfall.scale.place(waterfall.now)), gap.end == waterfall.now
        side, shift = ("end", -4) if is_past else ("start", 4)
        return element("text", text, cls=css, x=x, dx=shift, y=15, text_anchor=side)
    return element("text", text, cls=css, x=percent(gap.left + gap.width / 2), y=15, text_anchor="middle")


def _draw_now(waterfall: Waterfall, height: int) -> Markup:
    x = percent(waterfall.scale.place(waterfall.now))
    return element("line", cls="nowl", x1=x, x2=x, y1=0, y2=height)


def _draw_gaps(scale: Scale, height: int) -> Iterator[Markup]:
    for gap in scale.gaps:
        left, right = percent(gap.left), percent(gap.left + gap.width)
        ground = element("rect", cls="f-sunk", x=left, y=0, width=percent(gap.width), height=height)
        edges = (element("line", cls="torn", x1=x, x2=x, y1=0, y2=height) for x in (left, right))
        yield group(ground, *edges)


def _handler_row(record: Json, bars: list[Bar]) -> WaterfallRow:
    took = sum((bar.end - bar.start for bar in bars), timedelta(0))
    return WaterfallRow(0, "runs", "The handler", record["status"], tuple(bars), took, tries=len(record["attempts"]))


def _step_row(step: Json, now: datetime) -> WaterfallRow:
    begin, finish = _interval(step, now)
    is_waiting = step["status"] == "WAITING"
    if step["kind"] in _WAITS:
        bars = [Bar(begin, finish, "wait")]
        due = parse_instant(step["dueAt"]) if step.get("dueAt") else None
        if is_waiting and due is not None and due > now:
            bars.append(Bar(now, due, "due"))
    else:
        bars = [Bar(begin, finish, "run" if is_waiting else _bar_kind(step["status"]))]
    name = step.get("name") or step["kind"].lower()
    tries = step.get("attempts", 0)
    return WaterfallRow(
        step["number"], step["kind"].lower(), name, step["status"], tuple(bars), finish - begin, tries=tries
    )


def _fold(rows: Iterator[WaterfallRow]) -> Iterator[WaterfallRow]:
    def is_alike(row: WaterfallRow) -> tuple[str, str, int]:
        return row.kind, row.name, 0 if row.status == "SUCCEEDED" else row.number

    for _, neighbours in groupby(rows, key=is_alike):
        same = list(neighbours)
        if len(same) <= _FOLDED:
            yield from same
            continue
        spans = merge((bar.start, bar.end) for row in same for bar in row.bars)
        bars = tuple(Bar(begin, finish, same[0].bars[0].kind) for begin, finish in spans)
        took = sum((bar.end - bar.start for bar in bars), timedelta(0))
        yield WaterfallRow(same[0].number, same[0].kind, same[0].name, "SUCCEEDED", bars, took, count=len(same))


def _interval(step: Json, now: datetime) -> Interval:
    begin = parse_instant(step["startedAt"])
    return begin, max(begin, parse_instant(step["finishedAt"]) if step.get("finishedAt") else now)


def _bar_kind(status: str) -> str:
    return "past" if status == "SUCCEEDED" else "fail"


def _find_known_end(record: Json, steps: list[Json]) -> datetime | None:
    ends = [parse_instant(step["dueAt"]) for step in steps if step["status"] == "WAITING" and step.get("dueAt")]
    if record.get("nextAttemptAt"):
        ends.append(parse_instant(record["nextAttemptAt"]))
    return min(ends, default=None)
