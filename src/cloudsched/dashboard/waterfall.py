"""The parts of an execution as rows: attempts of its handler, steps, sleeps, waits and calls.

A `Scale` places them from left to right, and compresses the gaps between them.
"""

from __future__ import annotations

import math
import zoneinfo
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.chart_axis import clip, draw_picture, draw_vertical, element, group, percent
from cloudsched.dashboard.life_chart import find_ticks
from cloudsched.dashboard.times import parse_instant, write_duration

if TYPE_CHECKING:
    from markupsafe import Markup

    from cloudsched.dashboard.visit import Json

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
        part = (at - self.start) / self.duration if self.duration else 0.0
        return self.left + self.width * min(1.0, max(0.0, part))


@dataclass(frozen=True, slots=True)
class Scale:
    """The places of instants on the axis."""

    stretches: tuple[Stretch, ...]

    @property
    def gaps(self) -> tuple[Stretch, ...]:
        """Return the stretches that are compressed."""
        return tuple(stretch for stretch in self.stretches if stretch.is_gap)

    def place(self, at: datetime) -> float:
        """Return an instant's place as a fraction of the width. One outside the axis lies at its end."""
        index = max(0, bisect_right(self.stretches, at, key=lambda stretch: stretch.start) - 1)
        return self.stretches[index].place(at)

    def find_instant(self, place: float) -> datetime:
        """Return the instant at a place: the reverse of `place`."""
        index = max(0, bisect_right(self.stretches, place, key=lambda stretch: stretch.left) - 1)
        stretch = self.stretches[index]
        part = (place - stretch.left) / stretch.width if stretch.width else 0.0
        return stretch.start + stretch.duration * min(1.0, max(0.0, part))

    @property
    def span(self) -> Interval:
        """Return the axis's beginning and end."""
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

    The end is now, or that of the execution. If its wait has a known end, that is one more gap from there. With `true`,
    nothing is compressed.
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
_AXIS: Final = 54
_LEAST_LABELLED: Final = 0.05


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in a row: ``past``, ``fail``, ``run``, the name of a wait, or ``due`` for the future."""

    start: datetime
    end: datetime
    kind: str


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """One row, or several that were folded."""

    number: int
    """The step's number. 0 for the handler."""
    kind: str
    name: str
    status: str
    bars: tuple[Bar, ...]
    took: timedelta
    count: int = 1
    tries: int = 0
    waited: timedelta = timedelta(0)
    """The time that it waited between its tries."""


WAITS: Final = {
    "calls": "its calls ran",
    "lock": "waited for its lock",
    "retry": "waited for the next try",
    "wait": "was suspended",
    "queue": "was queued",
}
"""The states of an execution while none of its code runs, the most telling first: the names of bars, in words."""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """All rows on one scale."""

    rows: tuple[WaterfallRow, ...]
    scale: Scale
    now: datetime
    sums: Mapping[str, timedelta]
    """The time that its own code ran (``ran``), and the time of each wait, by the names in `WAITS`. They add up to all
    of its time, from the instant at which it was due or requested to its end, or to now."""
    is_open: bool
    whole: Scale
    """The scale of the whole execution, of which `scale` may show a part."""

    @property
    def has_now(self) -> bool:
        """Return whether now is in sight."""
        start, end = self.scale.span
        return self.is_open and start <= self.now <= end

    @property
    def gaps_text(self) -> str:
        """Return the compressed stretches, in words."""
        gaps = [gap for gap in self.scale.gaps if not gap.is_future]
        if not gaps:
            return ""
        idle = sum((gap.duration for gap in gaps), timedelta(0))
        count = "1 gap" if len(gaps) == 1 else f"{len(gaps)} gaps"
        return f"{count} compressed: {write_duration(idle)} in which nothing ran"


def make_waterfall(
    record: Json, now: datetime, *, true_scale: bool = False, window: Interval | None = None
) -> Waterfall:
    """Return an execution's rows and their scale. With a window, only those in it, without the gaps outside."""
    is_open = not record.get("finishedAt")
    started = parse_instant(record.get("startedAt") or record["scheduledFor"])
    is_planned = record.get("trigger", "SCHEDULE") == "SCHEDULE"
    start = min(started, parse_instant(record["scheduledFor"])) if is_planned else started
    end = max(start, now if is_open else parse_instant(record["finishedAt"]))
    steps = record.get("steps", [])
    handler, parts = _divide(record, start, end, now)
    rows = [_handler_row(record, handler, parts), *_fold(_step_row(step, now) for step in steps)]
    known_end = _find_known_end(record, steps) if is_open else None
    running = [(bar.start, bar.end) for row in rows for bar in row.bars if bar.kind not in {*WAITS, "due"}]
    sums = dict.fromkeys(("ran", *WAITS), timedelta(0))
    for begin, finish, kind in parts:
        sums[kind] += finish - begin
    whole = make_scale(running, start, end, known_end=known_end, true=true_scale)
    part = clip(window, *whole.span)
    if part is None:
        return Waterfall(tuple(rows), whole, now, sums, is_open, whole)
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
    return Waterfall(tuple(shown), scale, now, sums, is_open, whole)


def _divide(
    record: Json, start: datetime, end: datetime, now: datetime
) -> tuple[list[Bar], list[tuple[datetime, datetime, str]]]:
    """Return the bars of the handler's attempts, and all of the time, divided into its running code and its waits."""
    steps, attempts = record.get("steps", []), record["attempts"]
    tries = [(parse_instant(each["startedAt"]), parse_instant(each["finishedAt"]), each) for each in attempts]
    suspended = merge(_interval(step, now) for step in steps if step["kind"] in _WAITS)
    retried = list(_list_retries(steps, now))
    idle = merge([*suspended, *retried])
    handler = [
        Bar(begin, finish, _bar_kind(each["status"]))
        for first, last, each in tries
        for begin, finish in subtract((first, last), idle)
    ]
    if record["status"] == "RUNNING":
        begin = parse_instant(record["startedAt"]) if record.get("startedAt") else start
        last_end = max((finish for _, finish, _ in tries), default=begin)
        over = (_interval(step, now) for step in steps if step["kind"] == "CALL" and step["status"] != "WAITING")
        handler += [Bar(begin, finish, "run") for begin, finish in subtract((last_end, end), merge([*idle, *over]))]
    ran = [(bar.start, bar.end) for bar in handler]
    ran += [each for step in steps if step["kind"] == "STEP" for each in _list_tries(step, now)]
    following = [*(begin for begin, _, _ in tries[1:]), end][: len(tries)]
    retried += [
        (last, max(last, then))
        for (_, last, each), then in zip(tries, following, strict=True)
        if each["status"] != "SUCCEEDED"
    ]
    locked = [
        (parse_instant(each["lockWaitedSince"]), begin) for begin, _, each in tries if each.get("lockWaitedSince")
    ]
    waits: dict[str, list[Interval]] = {
        "ran": merge(ran),
        "calls": merge(_interval(step, now) for step in steps if step["kind"] == "CALL"),
        "lock": merge(locked),
        "retry": merge(retried),
        "wait": suspended,
    }
    cuts = sorted({start, end, *(at for spans in waits.values() for span in spans for at in span if start < at < end)})
    begins = {name: [span[0] for span in spans] for name, spans in waits.items()}
    parts: list[tuple[datetime, datetime, str]] = []
    for begin, finish in pairwise(cuts):
        kind = "queue"
        for name, spans in waits.items():
            found = bisect_right(begins[name], begin) - 1
            if found >= 0 and spans[found][1] >= finish:
                kind = name
                break
        if parts and parts[-1][2] == kind:
            parts[-1] = (parts[-1][0], finish, kind)
        else:
            parts.append((begin, finish, kind))
    return handler, parts


def _list_tries(step: Json, now: datetime) -> list[Interval]:
    """Return the intervals in which a step's function ran. If it was never retried, that is all of its time."""
    tries = [(parse_instant(each["startedAt"]), parse_instant(each["finishedAt"])) for each in step.get("tries", ())]
    if step["status"] == "WAITING" and not tries:
        return [_interval(step, now)]
    return tries or [_interval(step, now)]


def _list_retries(steps: Iterable[Json], now: datetime) -> Iterator[Interval]:
    """Yield the intervals in which steps waited for another try."""
    for step in steps:
        if step["kind"] != "STEP" or not step.get("tries"):
            continue
        tries = _list_tries(step, now)
        begin = parse_instant(step["startedAt"])
        if begin < tries[0][0]:  # the first tries are not kept
            yield begin, tries[0][0]
        yield from ((finish, then) for (_, finish), (then, _) in pairwise(tries))
        if step["status"] == "WAITING":
            yield tries[-1][1], max(tries[-1][1], now)


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


_CSS: Final = {
    "past": "f-past",
    "fail": "f-fail",
    "run": "f-run",
    "wait": "hatched",
    "calls": "hatched",
    "retry": "again",
    "lock": "locked",
    "queue": "queued",
    "due": "o w",
}
_FILLS: Final = {"wait": "url(#hatch)", "calls": "url(#hatch)", "lock": "url(#gapped)"}


def draw_ground(waterfall: Waterfall, zone: zoneinfo.ZoneInfo) -> tuple[Markup, Markup]:
    """Return the common ground of all rows: the gaps below their bars, and now above them."""
    ticks = [
        draw_vertical("ax", stretch.place(at), 0, _HEIGHT)
        for stretch in waterfall.scale.stretches
        if not stretch.is_gap and stretch.width > _LEAST_LABELLED
        for at, _ in find_ticks(stretch.start, stretch.end, zone)
    ]
    ground = group(*_draw_gaps(waterfall.scale, _HEIGHT), *ticks)
    return ground, _draw_now(waterfall, _HEIGHT) if waterfall.has_now else group()


def draw_row(row: WaterfallRow, scale: Scale, ground: tuple[Markup, Markup]) -> Markup:
    """Return a row's bars on the ground of `draw_ground`. Failures are half as high, and lower."""
    marks = [ground[0]]
    start, end = scale.span
    for bar in row.bars:
        if bar.end < start or bar.start > end:
            continue
        left, right = scale.place(bar.start), scale.place(bar.end)
        width = percent(right - left) if right - left > 0.003 else "3"  # noqa: PLR2004 - three pixels at least
        y, height = (17, 9) if bar.kind == "fail" else (10, 12)
        css = _CSS[bar.kind]
        fill = {"fill": _FILLS[bar.kind]} if bar.kind in _FILLS else {}
        marks.append(element("rect", cls=css, x=percent(left), y=y, width=width, height=height, **fill))
    return draw_picture(_HEIGHT, *marks, ground[1])


def draw_axis(waterfall: Waterfall, zone: zoneinfo.ZoneInfo) -> Markup:
    """Return the axis: dates, times, and the gaps' durations, each where the narrowest screen has room for it."""
    marks = [*_draw_gaps(waterfall.scale, _AXIS)]
    free_date = free_gap = 0.0
    for stretch in waterfall.scale.stretches:
        left = stretch.left * _LEAST_WIDTH
        x = percent(stretch.left)
        if stretch.is_gap:
            text = write_duration(stretch.duration)
            middle, half = (stretch.left + stretch.width / 2) * _LEAST_WIDTH, len(text) * _LETTER / 2
            if middle - half >= free_gap or middle - half < 0:
                free_gap = middle + half + _SPACE
                marks.append(_draw_duration(stretch, waterfall))
            continue
        local = stretch.start.astimezone(zone)
        if left >= free_date and stretch.left < 0.9:  # noqa: PLR2004 - room for a label
            free_date = left + _DATE
            marks.append(element("text", f"{local.day} {local:%b}", cls="strong alt", x=x, dx=2, y=15))
        if stretch.width > _LEAST_LABELLED and stretch.left < 0.9:  # noqa: PLR2004 - likewise
            marks.append(element("text", f"{local:%H:%M:%S %z}", cls="alt", x=x, dx=2, y=32))
            marks += _draw_ticks(stretch, zone)
    if waterfall.has_now:
        marks.append(_draw_now(waterfall, _AXIS))
    return draw_picture(_AXIS, *marks)


_DATE, _LETTER, _SPACE = 48, 7.6, 6
"""In pixels: the width of a date, that of a duration's letter, and the least space between two of them."""
_BEGINNING, _TICK_LABEL, _LEAST_WIDTH = 110, 62, 440
"""In pixels: the widths of a stretch's first time and of a tick's label, and the least width of an axis with labels."""


def _draw_ticks(stretch: Stretch, zone: zoneinfo.ZoneInfo) -> Iterator[Markup]:
    """Yield round times in a stretch: a line each, with its label where that has room on the narrowest screen."""
    free = stretch.left * _LEAST_WIDTH + _BEGINNING
    end = (stretch.left + stretch.width) * _LEAST_WIDTH
    for at, label in find_ticks(stretch.start, stretch.end, zone):
        place = stretch.place(at)
        yield draw_vertical("ax", place, 36, _AXIS)
        if free <= place * _LEAST_WIDTH <= end - _TICK_LABEL:
            free = place * _LEAST_WIDTH + _TICK_LABEL
            yield element("text", label, cls="alt", x=percent(place), dx=2, y=32)


def _draw_duration(gap: Stretch, waterfall: Waterfall) -> Markup:
    """Return a gap's duration, in its middle. Beside now, it is on its own side of the line."""
    text = write_duration(gap.duration)
    if waterfall.has_now and waterfall.now in {gap.start, gap.end}:
        x, is_past = percent(waterfall.scale.place(waterfall.now)), gap.end == waterfall.now
        side, shift = ("end", -4) if is_past else ("start", 4)
        return element("text", text, cls="strong", x=x, dx=shift, y=48, text_anchor=side)
    return element("text", text, cls="strong", x=percent(gap.left + gap.width / 2), y=48, text_anchor="middle")


def _draw_now(waterfall: Waterfall, height: int) -> Markup:
    return draw_vertical("nowl", waterfall.scale.place(waterfall.now), 0, height)


def _draw_gaps(scale: Scale, height: int) -> Iterator[Markup]:
    for gap in scale.gaps:
        ground = element("rect", cls="f-sunk", x=percent(gap.left), y=0, width=percent(gap.width), height=height)
        edges = (draw_vertical("torn", at, 0, height) for at in (gap.left, gap.left + gap.width))
        yield group(ground, *edges)


def _handler_row(record: Json, bars: list[Bar], parts: Iterable[tuple[datetime, datetime, str]]) -> WaterfallRow:
    took = sum((bar.end - bar.start for bar in bars), timedelta(0))
    waits = [Bar(begin, finish, kind) for begin, finish, kind in parts if kind != "ran"]
    drawn = tuple(sorted([*waits, *bars], key=lambda bar: bar.start))
    waited = sum((bar.end - bar.start for bar in waits), timedelta(0))
    tries = len(record["attempts"]) + record.get("omittedAttempts", 0)
    return WaterfallRow(0, "runs", "The handler", record["status"], drawn, took, tries=tries, waited=waited)


def _step_row(step: Json, now: datetime) -> WaterfallRow:
    begin, finish = _interval(step, now)
    is_waiting = step["status"] == "WAITING"
    due = parse_instant(step["dueAt"]) if is_waiting and step.get("dueAt") else None
    ahead = [Bar(now, due, "due")] if due is not None and due > now else []
    waited = timedelta(0)
    if step["kind"] in _WAITS:
        bars = [Bar(begin, finish, "wait"), *ahead]
    elif step["kind"] == "STEP" and step.get("tries"):
        tries = _list_tries(step, now)
        last = "fail" if is_waiting else _bar_kind(step["status"])
        bars = [Bar(*each, "fail") for each in tries[:-1]] + [Bar(*tries[-1], last)]
        pauses = list(_list_retries([step], now))
        waited = sum((end - start for start, end in pauses), timedelta(0))
        bars = sorted([*bars, *(Bar(*each, "retry") for each in pauses)], key=lambda bar: bar.start) + ahead
        finish = begin + sum((end - start for start, end in tries), timedelta(0))
    else:
        bars = [Bar(begin, finish, "run" if is_waiting else _bar_kind(step["status"]))]
    kind, took, tried = step["kind"].lower(), finish - begin, step.get("attempts", 0)
    name = step.get("name") or kind
    return WaterfallRow(step["number"], kind, name, step["status"], tuple(bars), took, tries=tried, waited=waited)


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
