"""Draws the rows of a waterfall, and the axis above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.charts.svg import draw_beside, draw_picture, draw_vertical, element, group, percent
from cloudsched.dashboard.charts.time_ticks import find_ticks
from cloudsched.dashboard.times import write_duration

if TYPE_CHECKING:
    import zoneinfo
    from collections.abc import Iterator

    from markupsafe import Markup

    from cloudsched.dashboard.charts.waterfall_rows import Waterfall, WaterfallRow
    from cloudsched.dashboard.charts.waterfall_scale import AxisSegment, Scale

_HEIGHT: Final = 32
_AXIS: Final = 54
_LEAST_LABELLED: Final = 0.05
"""Narrower segments have no times, as a part of the width."""
_LEAST_WIDTH: Final = 440
"""In pixels: the least width of an axis on a screen that is wider than a phone's."""
_WIDTHS: Final = {"": 270, "alt": _LEAST_WIDTH}
"""The least width of an axis, by the class of labels that it shows: all screens, and those wider than a phone's."""
_DATE: Final = 48
"""In pixels: the width of a date."""
_LETTER: Final = 7.6
"""In pixels: the width of a letter of a duration."""
_SPACE: Final = 6
"""In pixels: the least space between two durations."""
_BEGINNING: Final = 110
"""In pixels: the width of a segment's first time."""
_TICK_LABEL: Final = 62
"""In pixels: the width of a tick's label."""
_CSS: Final = {
    "past": "f-past",
    "fail": "f-fail",
    "run": "f-run",
    "wait": "hatched",
    "calls": "hatched calls",
    "retry": "again",
    "lock": "locked",
    "queue": "queued",
    "worker": "queued worker",
    "lost": "queued lost",
    "due": "o w",
}
_FILLS: Final = {
    kind: {"fill": pattern}
    for kind, pattern in {"wait": "url(#hatch)", "calls": "url(#hatch)", "lock": "url(#gapped)"}.items()
}


def draw_background(waterfall: Waterfall, zone: zoneinfo.ZoneInfo) -> tuple[Markup, Markup]:
    """Return the common background of all rows: the gaps below their bars, and now above them."""
    ticks = [
        draw_vertical("ax", segment.place(at), 0, _HEIGHT)
        for segment in waterfall.scale.segments
        if not segment.is_gap and segment.width > _LEAST_LABELLED
        for at, _ in find_ticks(segment.start, segment.end, zone)
    ]
    return group(*_draw_gaps(waterfall.scale, _HEIGHT), *ticks), group(*_draw_now(waterfall, _HEIGHT))


def draw_row(row: WaterfallRow, scale: Scale, background: tuple[Markup, Markup]) -> Markup:
    """Return a row's bars on the background from `draw_background`. Failures are half as high, and lower."""
    below, above = background
    start, end = scale.span
    marks = [below]

    for bar in row.bars:
        if bar.end < start or bar.start > end:
            continue
        left = scale.place(bar.start)
        width = scale.place(bar.end) - left
        shape = {"y": 17, "height": 9} if bar.kind == "fail" else {"y": 10, "height": 12}
        marks.append(
            element(
                "rect",
                cls=_CSS[bar.kind],
                x=percent(left),
                y=shape["y"],
                width=percent(width) if width > 0.003 else "3",  # noqa: PLR2004 - three pixels at least
                height=shape["height"],
                **_FILLS.get(bar.kind, {}),
            )
        )
    return draw_picture(_HEIGHT, *marks, above)


class _LabelRow:
    """A row of labels: where the next has room, on the narrowest screen and on others."""

    def __init__(self) -> None:
        self._free = dict.fromkeys(_WIDTHS, 0.0)

    def choose(self, place: float, size: float, end: float = 1.0) -> str | None:
        """Return the class of a label that has room until `end`. None if it has none on any screen."""
        fits = [
            css
            for css, width in _WIDTHS.items()
            if self._free[css] <= place * width and place * width + size <= end * width + _SPACE
        ]
        for css in fits:
            self._free[css] = place * _WIDTHS[css] + size
        return fits[0] if fits else None


def draw_axis(waterfall: Waterfall, zone: zoneinfo.ZoneInfo) -> Markup:
    """Return the axis: dates, times, and the gaps' durations, each where a screen has room for it."""
    marks = [*_draw_gaps(waterfall.scale, _AXIS)]
    dates, times = _LabelRow(), _LabelRow()
    free_gap = 0.0
    for segment in waterfall.scale.segments:
        if segment.is_gap:
            half = len(write_duration(segment.duration)) * _LETTER / 2
            middle = (segment.left + segment.width / 2) * _LEAST_WIDTH
            if middle - half >= free_gap or middle - half < 0:
                free_gap = middle + half + _SPACE
                marks.append(_draw_duration(segment, waterfall))
        if not segment.is_gap or not segment.left:
            marks += _draw_start(segment, zone, dates, times)
    return draw_picture(_AXIS, *marks, *_draw_now(waterfall, _AXIS))


def _draw_start(segment: AxisSegment, zone: zoneinfo.ZoneInfo, dates: _LabelRow, times: _LabelRow) -> Iterator[Markup]:
    """Yield the date and the time at which a segment begins, and its ticks. Beside a narrow one, there is its date."""
    local = segment.start.astimezone(zone)
    is_narrow = segment.width <= _LEAST_LABELLED
    place = segment.left + segment.width * is_narrow  # the edge of the gap after it would strike through the date
    css = dates.choose(place, _DATE)
    if css is not None:
        yield _draw_label(f"{local.day} {local:%b}", place, f"strong {css}", y=15)
    if is_narrow:
        return
    css = times.choose(segment.left, _BEGINNING)
    if css is not None:
        yield _draw_label(f"{local:%H:%M:%S %z}", segment.left, css, y=32)
    if not segment.is_gap:
        yield from _draw_ticks(segment, zone, times)


def _draw_label(text: str, place: float, css: str, *, y: int) -> Markup:
    classes = {"cls": css.strip()} if css else {}
    return element("text", text, **classes, x=percent(place), dx=2, y=y)


def _draw_ticks(segment: AxisSegment, zone: zoneinfo.ZoneInfo, times: _LabelRow) -> Iterator[Markup]:
    """Yield round times in a segment: a line each, with its label where that has room."""
    for at, label in find_ticks(segment.start, segment.end, zone):
        place = segment.place(at)
        yield draw_vertical("ax", place, 36, _AXIS)
        css = times.choose(place, _TICK_LABEL, segment.left + segment.width)
        if css is not None:
            yield _draw_label(label, place, css, y=32)


def _draw_duration(gap: AxisSegment, waterfall: Waterfall) -> Markup:
    """Return a gap's duration, in its middle. Beside now, it is on its own side of the line."""
    text = write_duration(gap.duration)
    if waterfall.has_now and waterfall.now in {gap.start, gap.end}:
        place = waterfall.scale.place(waterfall.now)
        return draw_beside(text, place, 4, is_before=gap.end == waterfall.now, y=48, css="strong")
    if (gap.left + gap.width / 2) * _WIDTHS[""] < len(text) * _LETTER / 2:  # it would begin outside on a phone
        return draw_beside(text, gap.left, 2, is_before=False, y=48, css="strong")
    return element("text", text, cls="strong", x=percent(gap.left + gap.width / 2), y=48, text_anchor="middle")


def _draw_now(waterfall: Waterfall, height: int) -> Iterator[Markup]:
    if waterfall.has_now:
        yield draw_vertical("nowl", waterfall.scale.place(waterfall.now), 0, height)


def _draw_gaps(scale: Scale, height: int) -> Iterator[Markup]:
    for gap in scale.gaps:
        background = element("rect", cls="f-sunk", x=percent(gap.left), y=0, width=percent(gap.width), height=height)
        edges = (draw_vertical("torn", at, 0, height) for at in (gap.left, gap.left + gap.width))
        yield group(background, *edges)
