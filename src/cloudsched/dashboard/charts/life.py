"""A task's life: a lane for each of its latest executions, linear in time, with now in sight."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from cloudsched.dashboard.charts.svg import LATE_MARK, draw_beside, draw_picture, draw_vertical, element, group, percent
from cloudsched.dashboard.charts.time_ticks import Row, draw_changes, draw_label, draw_ticks
from cloudsched.dashboard.status import BAD, OPEN
from cloudsched.dashboard.times import find_clock_changes
from cloudsched.domain.documents.execution import NOT_RUN_STATUSES, ExecutionStatus

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterator, Sequence

LANES: Final = 8
"""The number of the latest executions that are shown."""
DUE: Final = 3
"""The number of due occurrences that are shown."""
_TOP: Final = 20
_LANE: Final = 22
_BAR: Final = 10
_TICK_TOP: Final = 14
_ROW: Final = 14
"""In pixels: the height of a row of labels."""
_LEAST_WIDTH: Final = 3
"""In pixels: the least width of a bar."""
_SHORT: Final = 0.01
"""A bar of this part of the chart may be narrower than that on a phone."""
_LONGEST_WITH_CHANGES: Final = timedelta(days=800)
_CHARACTER: Final = 0.009
"""The largest width of a letter, as a part of the chart. It keeps labels from crossing the now line."""
_LABEL_SIDE: Final = 0.8
"""From this place on, a label stands before its mark."""
_DUE_WORD: Final = 0.15
"""The width of a mark with its word, as a part of the narrowest chart."""
_LEAST_BEFORE: Final = 0.15
"""Before this place, there is no room for a label before its mark."""
_NEAR_NOW: Final = 0.2
"""Bars that end in this part of the chart before now have their labels before them."""


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

    Changes lie behind them: pauses with their lengths, edits and skips as lines, with their words below. Empty if there
    is nothing of all this.
    """
    if not (lived or due or noted):
        return Markup("")
    start, end = window or find_span(lived, due, now, noted)

    def place(at: datetime) -> float:
        return (at - start) / (end - start)

    lived = [each for each in lived[-LANES:] if each.start <= end and (each.end or max(now, each.start)) >= start]
    due = [each for each in due[:DUE] if start <= each <= end]
    seen = [each for each in noted if each.at <= end and (each.end or each.at) >= start]
    changes = []
    if end - start <= _LONGEST_WITH_CHANGES:
        changes = find_clock_changes(start, end, zone)

    # now may be near a change: their labels stand in a row each
    bottom = _TOP + _LANE * (max(len(lived), 1) + bool(due)) + 10
    top = bottom + _ROW * bool(changes)
    height = top + _ROW * bool(seen)

    marks = [
        *_draw_noted(seen, start, end, height, place(now)),
        *draw_ticks(start, end, zone, height),
        *draw_changes(changes, start, end, height, y=top - 2, now=place(now)),
    ]
    for lane, each in enumerate(lived):
        y = _TOP + 6 + lane * _LANE
        marks.append(_draw_lane(each, y, place(each.start), place(each.end or now), place(now)))
    marks += _draw_due([(place(each), each <= now) for each in due], _TOP + 6 + len(lived) * _LANE)
    if start <= now <= end:
        marks.append(draw_vertical("nowl", place(now), 14, height))
        is_before = place(now) > _LABEL_SIDE
        marks.append(draw_beside("now", place(now), 5, is_before=is_before, y=bottom - 2, css="nowt"))
    return draw_picture(height, *marks)


def find_span(
    lived: list[Lived], due: list[datetime], now: datetime, noted: Sequence[Noted] = ()
) -> tuple[datetime, datetime]:
    """Return the start and the end of the chart: all that it shows, and now, with a little room on both sides.

    Without any run it has the changes of the task.
    """
    instants = [now, *due[:DUE]]
    if not lived:
        instants += [each.at for each in noted]
    for each in lived[-LANES:]:
        instants += [each.start, each.end or each.start]
    first = min(instants)
    last = max(instants)
    room = max((last - first) / 25, timedelta(seconds=1))
    return first - room, last + room


def _draw_noted(noted: Sequence[Noted], start: datetime, end: datetime, height: int, now: float) -> Iterator[Markup]:
    """Yield the changes. A word that would touch the previous one on the narrowest screen is omitted."""
    row = Row()
    for each in sorted(noted, key=lambda one: one.at):
        left = _place_within(each.at, start, end)
        if each.end is None:
            yield draw_vertical("did", left, _TICK_TOP, height)
        else:
            width = percent(_place_within(each.end, start, end) - left)
            yield element("rect", cls="paused", x=percent(left), y=_TICK_TOP, width=width, height=height - _TICK_TOP)
        if row.take(each.word, left, now):
            yield draw_label(each.word, left, "chgt", y=height - 2, now=now)


def _place_within(at: datetime, start: datetime, end: datetime) -> float:
    return (min(max(at, start), end) - start) / (end - start)


def _draw_lane(each: Lived, y: int, left: float, right: float, now: float) -> Markup:
    left = max(left, 0.0)
    right = min(right, 1.0)
    width = right - left
    if each.status == ExecutionStatus.SUSPENDED:
        return _draw_bar("hatched", left, width, fill="url(#hatch)", y=y, height=_BAR)  # the legend has its word
    if each.status in NOT_RUN_STATUSES:
        bar = element("path", cls="skipped", d=f"M0 {y + 1}l4 4-4 4m5-8l4 4-4 4")
        bar = element("svg", bar, x=percent(left), overflow="visible")
    elif each.status in OPEN:
        bar = _draw_bar("f-run", left, width, y=y, height=_BAR)
    elif each.status in BAD:
        bar = _draw_bar("f-fail", left, width, y=y + 4, height=_BAR - 2)
    else:
        bar = _draw_bar("f-past", left, width, y=y, height=_BAR)

    css = "" if each.status in OPEN else "alt"
    would_cross = right < now < right + len(each.word) * _CHARACTER
    if (right > _LABEL_SIDE or would_cross or left < now - _NEAR_NOW < right) and left > _LEAST_BEFORE:
        return group(bar, draw_beside(each.word, left, 6, is_before=True, y=y + 9, css=css))
    if right > _LABEL_SIDE:  # it fills the chart: there is no room for its word
        return bar
    return group(bar, draw_beside(each.word, right, 6, is_before=False, y=y + 9, css=css))


def _draw_bar(css: str, left: float, width: float, **looks: str | int) -> Markup:
    """Return a run as a bar, which is wide enough to be seen on the narrowest screen."""
    bar = element("rect", cls=css, x=percent(left), width=percent(width), **looks)
    if width > _SHORT:
        return bar
    return group(bar, element("rect", cls=css, x=percent(left), width=_LEAST_WIDTH, **looks))


def _draw_due(places: Sequence[tuple[float, bool]], y: int) -> Iterator[Markup]:
    """Draw what is to come, at each place of the chart. It is late if its time has come."""
    for at, is_late in places:
        shape = LATE_MARK if is_late else element("circle", cls="o one", r=5)
        yield element("svg", shape, x=percent(at), y=y + 5, overflow="visible")
    if not places:
        return
    at, is_late = places[0]
    has_room = len(places) == 1 or places[1][0] - at > _DUE_WORD
    if not has_room and places[-1][0] < 1 - _DUE_WORD:  # the next mark would be in its word on a phone
        (at, is_late), has_room = places[-1], True
    yield element("text", "due", cls="" if has_room else "wide", x=percent(at), dx=10, y=y + 9)
