"""Executions over time: a task's life with a lane for each, the strip of all tasks on Home, and the last of a task.

The first two are linear in time, with now in sight.
"""

from __future__ import annotations

import zoneinfo
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.chart_axis import draw_picture, draw_vertical, element, group, percent
from cloudsched.dashboard.status import BAD, OPEN, show_status
from cloudsched.dashboard.times import ClockChange, find_clock_changes, write_duration
from cloudsched.domain.documents.execution import NOT_RUN_STATUSES, ExecutionStatus

if TYPE_CHECKING:
    from markupsafe import Markup

_TOP, _LANE, _BAR = 20, 22, 10
LANES: Final = 8
DUE: Final = 3
"""The numbers of the latest executions and of the due occurrences that are shown."""
_TICKS: Final = 7
_STEPS: Final = tuple(
    timedelta(seconds=seconds)
    for seconds in (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400)
)
_LONGEST_WITH_CHANGES: Final = timedelta(days=800)
_LAST_TICK: Final = 0.86
_NARROWEST, _LETTER, _AXIS_SHIFT, _SPACE, _ROW = 270, 7.2, 3, 4, 14
"""In pixels: a chart on a screen 320 wide, and of an axis a letter, a label's distance from its line, the least space
between two labels, and a row of them."""
_CHARACTER: Final = 0.009
"""The largest width of a letter, as a part of the chart. It keeps labels from crossing the now line."""
_LABEL_SIDE: Final = 0.8
"""From this place on, a label stands before its mark."""


@dataclass(frozen=True, slots=True)
class Noted:
    """A change of a task or an exception to its schedule: a pause, an edit, a skip."""

    at: datetime
    word: str
    end: datetime | None = None
    """The end of a pause. None for an instant."""


@dataclass(frozen=True, slots=True)
class Lived:
    """An execution in the chart."""

    start: datetime
    end: datetime | None
    """Its end. None while it is open."""
    status: str
    word: str


def draw_life(
    lived: list[Lived],
    due: list[datetime],
    now: datetime,
    zone: zoneinfo.ZoneInfo,
    window: tuple[datetime, datetime] | None = None,
    noted: Sequence[Noted] = (),
) -> Markup:
    """Return the chart of the latest executions, the earliest first, and of due ones, or of a part of that time.

    Changes lie behind them: pauses with their lengths, edits and skips as lines, with their words below.
    """
    start, end = window or find_span(lived, due, now)
    lived = [each for each in lived[-LANES:] if each.start <= end and (each.end or max(now, each.start)) >= start]
    due = [each for each in due[:DUE] if start <= each <= end]
    has_now = start <= now <= end

    def at(instant: datetime) -> float:
        return (instant - start) / (end - start)

    bottom = _TOP + _LANE * (max(len(lived), 1) + bool(due)) + 10
    changes = [] if end - start > _LONGEST_WITH_CHANGES else find_clock_changes(start, end, zone)
    seen = [each for each in noted if each.at <= end and (each.end or each.at) >= start]
    top = bottom + _ROW * bool(changes)  # now may be near a change: their labels stand in a row each
    height = top + _ROW * bool(seen)
    marks = [
        *_draw_noted(seen, start, end, height),
        *draw_ticks(start, end, zone, height),
        *draw_changes(changes, start, end, height, y=top - 2),
    ]
    for lane, each in enumerate(lived):
        marks.append(_draw_lane(each, _TOP + 6 + lane * _LANE, at(each.start), at(each.end or now), at(now)))
    y = _TOP + 6 + len(lived) * _LANE
    for instant in due:
        inner = element("circle", cls="o", r=5)
        marks.append(element("svg", inner, x=percent(at(instant)), y=y + 5, overflow="visible"))
    if due:
        marks.append(element("text", "due", x=percent(at(due[0])), dx=10, y=y + 9))
    if has_now:
        side = "end" if at(now) > _LABEL_SIDE else "start"
        shift = -5 if side == "end" else 5
        marks += [
            draw_vertical("nowl", at(now), 14, height),
            element("text", "now", cls="nowt", x=percent(at(now)), dx=shift, y=bottom - 2, text_anchor=side),
        ]
    return draw_picture(height, *marks)


def _draw_noted(noted: Sequence[Noted], start: datetime, end: datetime, height: int) -> Iterator[Markup]:
    """Yield the changes. A word that would touch the previous one on the narrowest screen is left out."""
    free = 0.0
    for each in sorted(noted, key=lambda one: one.at):
        left, right = ((min(max(at, start), end) - start) / (end - start) for at in (each.at, each.end or each.at))
        if each.end is None:
            yield draw_vertical("did", left, 14, height)
        else:
            yield element("rect", cls="paused", x=percent(left), y=14, width=percent(right - left), height=height - 14)
        width = len(each.word) * _LETTER + _AXIS_SHIFT
        is_last = left > _LAST_TICK
        begin = left * _NARROWEST - (width if is_last else 0)
        if begin >= free:
            free = begin + width + _SPACE
            yield _draw_label(each.word, left, "chgt", y=height - 2)


def find_span(lived: list[Lived], due: list[datetime], now: datetime) -> tuple[datetime, datetime]:
    """Return the start and the end of the chart: all that it shows, and now, with a little room on both sides."""
    lived, due = lived[-LANES:], due[:DUE]
    instants = [now, *(each.start for each in lived), *(each.end for each in lived if each.end), *due]
    first, last = min(instants), max(instants)
    room = max((last - first) / 25, timedelta(seconds=1))
    return first - room, last + room


def _draw_lane(each: Lived, y: int, left: float, right: float, now: float) -> Markup:
    is_open = each.status in OPEN
    left, right = max(left, 0.0), min(right, 1.0)
    width = percent(max(right - left, 0.003))
    if each.status == "SUSPENDED":
        bar = element("rect", cls="hatched", fill="url(#hatch)", x=percent(left), y=y, width=width, height=_BAR)
    else:
        css = "f-run" if is_open else "f-fail" if each.status in BAD else "f-past"
        low = each.status in BAD
        bar = element("rect", cls=css, x=percent(left), y=y + 4 * low, width=width, height=_BAR - 2 * low)
    is_crossing = right < now < right + len(each.word) * _CHARACTER
    is_before = right > _LABEL_SIDE or is_crossing or left < now - 0.2 < right
    x, anchor, shift = (left, "end", -6) if is_before and left > 0.15 else (right, "start", 6)  # noqa: PLR2004
    return group(bar, element("text", each.word, x=percent(x), dx=shift, y=y + 9, text_anchor=anchor))


def draw_ticks(start: datetime, end: datetime, zone: zoneinfo.ZoneInfo, height: int) -> Iterator[Markup]:
    """Yield a line at each round time, with its label. The last label stands before its line, so that it stays inside.

    A label that would touch the previous one on the narrowest screen is left out there.
    """
    free = 0.0
    for tick, label in find_ticks(start, end, zone):
        place = (tick - start) / (end - start)
        width = len(label) * _LETTER + _AXIS_SHIFT
        is_last = place > _LAST_TICK
        left = place * _NARROWEST - (width if is_last else 0)
        css = "wide" if left < free else ""
        free = free if css else left + width + _SPACE
        yield draw_vertical("ax", place, 14, height) + _draw_label(label, place, css, y=10)


def draw_changes(
    changes: Iterable[ClockChange], start: datetime, end: datetime, height: int, *, y: int
) -> Iterator[Markup]:
    """Yield a line at each clock change, with the hours by which clocks go forward."""
    for change in changes:
        place = (change.at - start) / (end - start)
        hours = change.shift.total_seconds() / 3600
        yield draw_vertical("chg", place, 14, height) + _draw_label(f"{hours:+g} h", place, "chgt", y=y)


def _draw_label(text: str, place: float, css: str, *, y: int) -> Markup:
    side, shift = ("end", -_AXIS_SHIFT) if place > _LAST_TICK else ("start", _AXIS_SHIFT)
    classes = {"cls": css} if css else {}
    return element("text", text, **classes, x=percent(place), dx=shift, y=y, text_anchor=side)


def find_ticks(start: datetime, end: datetime, zone: zoneinfo.ZoneInfo) -> Iterator[tuple[datetime, str]]:
    """Yield round wall-clock times between two instants, with their labels. Midnight shows the date."""
    span = end - start
    step = next((step for step in _STEPS if span / step <= _TICKS), None)
    local = start.astimezone(zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    if step is None:
        yield from _find_month_ticks(midnight, start, end, zone)
        return
    tick, until = midnight, end.astimezone(zone).replace(tzinfo=None)
    earliest = start.astimezone(zone).replace(tzinfo=None)
    tick += step * max(0, (earliest - midnight) // step)
    while tick <= until:
        if tick >= earliest:
            if step < timedelta(minutes=1):
                text = f"{tick:%H:%M:%S}"
            else:
                text = f"{tick:%H:%M}" if (tick.hour, tick.minute) != (0, 0) else f"{tick.day} {tick:%b}"
            yield tick.replace(tzinfo=zone), text
        tick += step


def _find_month_ticks(
    first: datetime, start: datetime, end: datetime, zone: zoneinfo.ZoneInfo
) -> Iterator[tuple[datetime, str]]:
    months = max(1, round((end - start).days / 30 / _TICKS))
    tick = first.replace(day=1)
    while (at := tick.replace(tzinfo=zone)) <= end:
        if at >= start:
            yield at, f"{tick:%b %Y}" if tick.month <= months or (end - start).days > 900 else f"{tick:%b}"  # noqa: PLR2004
        month = tick.month - 1 + months
        tick = tick.replace(year=tick.year + month // 12, month=month % 12 + 1)


_STRIP_TOP, _ABOVE, _BELOW = 18, 56, 24
_LATE_TOP, _LATE_TALL = 14, 30
_GAP: Final = 0.08
"""The empty part of a bar's place, so that bars stand apart."""
_STRIP_LABEL_SIDE: Final = 0.23
"""From this place on, a label stands before its mark. On a narrow chart it would cross the now line."""


@dataclass(frozen=True, slots=True)
class Bar:
    """The past and due runs in one part of the time."""

    start: datetime
    end: datetime
    good: int = 0
    bad: int = 0
    due: int = 0


def make_bars(
    good: Iterable[datetime], bad: Iterable[datetime], start: datetime, end: datetime, *, bins: int
) -> list[Bar]:
    """Return equal bars of a span, with the past runs in each."""
    ran, failed = sorted(good), sorted(bad)
    edges = [start + (end - start) * index / bins for index in range(bins + 1)]
    return [
        Bar(first, last, _count_between(ran, first, last), _count_between(failed, first, last))
        for first, last in pairwise(edges)
    ]


def count_due(bars: Iterable[Bar], due: Iterable[datetime]) -> list[Bar]:
    """Return the bars with the due runs in each."""
    left = sorted(due)
    return [replace(each, due=_count_between(left, each.start, each.end)) for each in bars]


def _count_between(ordered: Sequence[datetime], start: datetime, end: datetime) -> int:
    return bisect_left(ordered, end) - bisect_left(ordered, start)


def draw_strip(
    bars: Sequence[Bar], now: datetime, reach: timedelta, zone: zoneinfo.ZoneInfo, known_until: datetime | None
) -> Markup:
    """Return the chart of as much time before now as after it. All bars have one scale.

    A bar never crosses now: past runs end at the line, and due ones begin there. The time after `known_until`, for
    which due runs are not known, is hatched. None if all are known.
    """
    start, end = now - reach, now + reach
    most = max([1, *(max(each.good, each.bad, each.due) for each in bars)])
    base, height = _STRIP_TOP + _ABOVE, _STRIP_TOP + _ABOVE + _BELOW
    marks = list(draw_ticks(start, end, zone, height))
    marks.append(element("line", cls="base", x1=0, x2="100%", y1=base, y2=base))
    if known_until is not None and known_until < end:
        x, width = percent((known_until - start) / (end - start)), percent((end - known_until) / (end - start))
        hatched = {"cls": "hatched", "fill": "url(#hatch)"}
        marks.append(element("rect", **hatched, x=x, width=width, y=_STRIP_TOP, height=_ABOVE))
    for each in bars:
        gap = (each.end - each.start) * _GAP
        left, right = each.start + gap, each.end - gap
        past = (max(left, start), min(right, now))
        future = (max(left, now), min(right, end))
        for count, (first, last), css in ((each.good, past, "f-past"), (each.due, future, "o")):
            if count:
                tall = max(3.0, _ABOVE * count / most)
                marks.append(_draw_bar(css, first, last, start, end, y=base - tall, height=tall))
        if each.bad:
            tall = max(4.0, _BELOW * each.bad / most)
            marks.append(_draw_bar("f-fail", *past, start, end, y=base, height=tall))
    marks.append(element("line", cls="nowl", x1="50%", x2="50%", y1=12, y2=height))
    marks.append(element("text", f"most in a bar: {most:,}", x="100%", y=height - 2, text_anchor="end"))
    return draw_picture(height, *marks)


def _draw_bar(
    css: str, first: datetime, last: datetime, start: datetime, end: datetime, *, y: float, height: float
) -> Markup:
    span = end - start
    width = percent(max((last - first) / span, 0.002))  # what began this second is seen, too
    return element("rect", cls=css, x=percent((first - start) / span), width=width, y=y, height=height)


def draw_lateness(
    starts: Sequence[tuple[datetime, timedelta]], now: datetime, reach: timedelta, zone: zoneinfo.ZoneInfo
) -> Markup:
    """Return the delay of each occurrence's start, on the same axis as the strip above it, with a stem for each."""
    start, end = now - reach, now + reach
    shown = [(at, late) for at, late in starts if start <= at <= now]
    most = max((late for _, late in shown), default=timedelta(0))
    base = _LATE_TOP + _LATE_TALL
    marks = []
    for at, late in shown:
        tall = 2.0 + (_LATE_TALL - 2) * (late / most if most else 0)
        x = percent((at - start) / (end - start))
        marks.append(element("rect", cls="f-past", x=x, width=2, y=base - tall, height=tall))
    marks.append(element("line", cls="base", x1=0, x2="50%", y1=base, y2=base))
    if most:
        at = next(at for at, late in shown if late == most)
        place = (at - start) / (end - start)
        is_near = place > _STRIP_LABEL_SIDE
        side, shift = ("end", -5) if is_near else ("start", 5)
        label = f"{write_duration(most)} at {at.astimezone(zone):%H:%M}"
        marks.append(element("text", label, x=percent(place), dx=shift, y=_LATE_TOP - 2, text_anchor=side))
    marks.append(element("line", cls="nowl", x1="50%", x2="50%", y1=0, y2=base + 6))
    return draw_picture(base + 8, *marks)


MARKS: Final = 12
"""The largest number of marks."""
_STEP, _WIDE, _LINE = 7, 5, 12
_GOOD_TALL, _BAD_TALL, _NOT_RUN_TALL = 9, 8, 1
_FILLS: Final[dict[str, str]] = {ExecutionStatus.RUNNING: "f-run", ExecutionStatus.RETRYING: "f-retry"}


def draw_runs(statuses: Sequence[str]) -> Markup:
    """Return the marks of executions, the earliest first. The latest is at the right."""
    shown = statuses[-MARKS:]
    first = MARKS - len(shown)
    parts = [element("line", cls="base", x1=0, x2=_STEP * MARKS, y1=_LINE, y2=_LINE)]
    for index, status in enumerate(shown):
        parts += _draw_mark(status, (first + index) * _STEP)
    return element("svg", *parts, cls="runs", role="img", aria_label=write_runs(statuses))


def write_runs(statuses: Sequence[str]) -> str:
    """Return the same in words, such as ``Last 12: 9 succeeded, 3 failed, the last two in a row``."""
    shown = statuses[-MARKS:]
    if not shown:
        return "Nothing has run yet"
    if len(shown) == 1:
        return f"The last one: {show_status(shown[0]).word.lower()}"
    counts = Counter(show_status(each).word.lower() for each in shown)
    if len(counts) == 1:
        return f"Last {len(shown)}: all {next(iter(counts))}"
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    in_a_row = len(list(takewhile(lambda each: each in BAD, reversed(shown))))
    return f"Last {len(shown)}: {said}" + (f", the last {in_a_row} in a row" if in_a_row > 1 else "")


def _draw_mark(status: str, left: int) -> list[Markup]:
    if status in BAD:
        return [element("rect", cls="f-fail", x=left, y=_LINE, width=_WIDE, height=_BAD_TALL)]
    top = _LINE - _GOOD_TALL
    if status == "SUSPENDED":
        hatched = element("rect", x=left, y=top, width=_WIDE, height=_GOOD_TALL, fill="url(#hatch)")
        frame = element(
            "rect", cls="o w", x=left + 0.5, y=top + 0.5, width=_WIDE - 1, height=_GOOD_TALL - 1, fill_opacity=0
        )
        return [hatched, frame]
    tall = _NOT_RUN_TALL if status in NOT_RUN_STATUSES else _GOOD_TALL
    return [element("rect", cls=_FILLS.get(status, "f-past"), x=left, y=_LINE - tall, width=_WIDE, height=tall)]
