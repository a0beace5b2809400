"""A day as a row: bars for busy tasks, marks with names in lanes for others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.calendar.labels import SHIFT, TIERS, OccurrenceMark, Placed, place_marks
from cloudsched.dashboard.charts.svg import LATE_MARK, draw_beside, draw_picture, draw_vertical, element, group, percent
from cloudsched.dashboard.times import DAY, WallDay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from cloudsched.dashboard.calendar.entries import Bin

_HOURS: Final = range(0, 24, 2)
_LANE: Final = 18
_ABOVE: Final = 26
"""In pixels: the room of bars above their line."""
_BELOW: Final = 12
"""In pixels: the room of failures below it."""
_ROOM: Final = 4
_TEXT: Final = 14
"""In pixels: the height of a row of text."""
_LEAST: Final = 68
"""The least height of a row, which has the day's name and its counts."""
_GAP: Final = 0.03
"""The empty part of a bin, so that bars stand apart."""
_UNITS: Final = 9600
"""The width of a day in the units of its bars."""
_UNDER: Final = 8
"""In pixels: a tail is so much lower where its label stands above it."""
_SHAPES: Final = {
    "ran": element("circle", cls="f-past one", r=4.5),
    "failed": element("path", cls="failx", d="M-4-4l8 8M4-4l-8 8"),
    "skipped": element("path", cls="skipped", d="M-5-4l4 4-4 4M1-4l4 4-4 4"),
    "open": element("circle", cls="opened", r=4.5) + element("path", cls="opened", d="M0-4.5a4.5 4.5 0 0 0 0 9z"),
    "offered": element("path", cls="overdue tray", d="M-4.5 1h2.6l.8 1.5h2.2l.8-1.5h2.6M-4.5 1v3.2h9V1L3-4h-6z"),
    "late": LATE_MARK,
    "due": element("circle", cls="o one", r=4.5),
}
"""The marks of occurrences, by their kinds."""


@dataclass(frozen=True, slots=True)
class DayBar:
    """The numbers of a part of a day, with the list that has them."""

    left: float
    right: float
    found: Bin
    href: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """What a day's row shows."""

    day: WallDay
    name: str
    marks: Sequence[OccurrenceMark]
    bars: Sequence[DayBar]
    most: int
    """The end of the scale of all days."""
    now: float | None
    lanes: int
    more_href: str


def draw_day(row: DayRow) -> Markup:
    """Return a day's row."""
    placed, hidden = place_marks(row.marks, row.now, row.lanes)
    has_bars = bool(row.bars)
    used = max((each.lane + 1 for each in placed), default=0)
    more_lane = 0 if has_bars else max(used, 1) * any(hidden)
    base = max(used + bool(more_lane), 1) * _LANE + _ROOM + _ABOVE * has_bars
    below = base + _BELOW * has_bars + _TEXT * bool(row.day.spans)
    height = max(below + 2, _LEAST)

    scenery = [draw_vertical("ax", hour / 24, 0, height) for hour in _HOURS]
    scenery += _draw_spans(row.day, height, y=height - 3)
    if has_bars:
        scenery.append(_draw_bars(row, base))
        scenery.append(element("line", cls="base", x1=0, x2="100%", y1=base + 0.5, y2=base + 0.5))
    if row.now is not None:
        scenery.append(draw_vertical("nowl", row.now, 0, height))

    bars = [_link_bar(each, base, is_first=index == 0) for index, each in enumerate(row.bars)]
    first = next((each.mark for each in placed if not each.tier), None)  # one that screens of all widths show
    links = [_draw_mark(each, is_first=each.mark is first and not bars) for each in placed]
    if more_lane:
        links += _draw_more(hidden, row, more_lane * _LANE + 13, is_first=not links)
    hidden_scenery = element("g", *scenery, **{"aria-hidden": "true"})
    return element("svg", hidden_scenery, *bars, *links, cls="c", height=height, role="group", aria_label=row.name)


def _draw_more(hidden: Sequence[int], row: DayRow, y: int, *, is_first: bool) -> Iterator[Markup]:
    """Yield the number of marks without room: once, or for each width of the screen."""
    is_same = len(set(hidden)) == 1
    for tier, count in enumerate(hidden):
        if not count or (is_same and tier > 0):
            continue
        text = element("text", f"+{count}", x="100%", y=y, text_anchor="end")
        attributes = {"href": row.more_href, "aria_label": f"{count} more on {row.name}"}
        if not is_same:
            attributes["cls"] = f"m{tier}"
        yield element("a", text, **attributes, **_order(is_first=is_first))


def _order(*, is_first: bool) -> dict[str, str]:
    """Return the attributes of a link in a row: the Tab key stops at the first one."""
    return {} if is_first else {"tabindex": "-1"}


def _draw_bars(row: DayRow, base: int) -> Markup:
    """Return the bars of a day: what ran, was skipped or is late, then what is due. What failed is below.

    A bar never crosses now: past runs end at the line, and due ones begin there.
    """
    paths: dict[str, list[str]] = {css: [] for css in ("f-past", "skipbar", "overdue", "o", "f-fail")}
    for bar in row.bars:
        found = bar.found
        gap = (bar.right - bar.left) * _GAP
        left, right = bar.left + gap, bar.right - gap
        until_now = right
        if row.now is not None and bar.left <= row.now < bar.right:
            until_now = min(max(row.now, left), right)
        top = 0.0
        for css, count in (("f-past", found.ran), ("skipbar", found.skipped), ("overdue", found.late)):
            if count:
                height = min(_measure(count, row.most), _ABOVE - top)
                paths[css].append(_write_box(left, until_now, base - top, -height))
                top += height
        if found.due:
            begin, top = (until_now, 0.0) if until_now < right else (left, top)
            height = min(_measure(found.due, row.most), _ABOVE - top)
            paths["o"].append(_write_box(begin, right, base - top, -height))
        if found.failed:
            paths["f-fail"].append(_write_box(left, until_now, base + 1, max(4.0, _BELOW * found.failed / row.most)))
    drawn = [element("path", cls=css, d="".join(each)) for css, each in paths.items() if each]
    box = f"0 0 {_UNITS} {base + _BELOW + 2}"
    return element("svg", *drawn, width="100%", height=base + _BELOW + 2, viewBox=box, preserveAspectRatio="none")


def _write_box(left: float, right: float, y: float, height: float) -> str:
    """Return the path of a box between two places of a day. It lies above `y` if its height is negative."""
    x = round(left * _UNITS)
    width = max(1, round(right * _UNITS) - x)
    return f"M{x} {y:.0f}h{width}v{height:.1f}h-{width}z"


def _link_bar(bar: DayBar, base: int, *, is_first: bool) -> Markup:
    """Return the link of a bar to the list that it counts. Its name has the numbers."""
    x, width = percent(bar.left), percent(bar.right - bar.left)
    area = element("rect", x=x, width=width, y=base - _ABOVE, height=_ABOVE + _BELOW)
    return element("a", element("title", bar.words), area, href=bar.href, cls="b", **_order(is_first=is_first))


def _measure(count: int, most: int) -> float:
    """Return the height of a bar."""
    return max(3.0, (_ABOVE - 2) * count / most)


def _draw_spans(day: WallDay, height: int, *, y: int) -> Iterator[Markup]:
    for span in day.spans:
        left = span.start / DAY
        right = span.end / DAY
        middle = percent((left + right) / 2)
        if span.is_skipped:
            text = "no such time"
            shape = {"x": percent(left), "width": percent(right - left)}
            yield element("rect", cls="gapped", fill="url(#gapped)", y=0, height=height, **shape)
        else:
            text = "twice"
            yield element("line", cls="chg", x1=middle, x2=middle, y1=0, y2=height)
        yield element("text", text, cls="chgt alt", x=middle, y=y, text_anchor="middle")


def _draw_mark(placed: Placed, *, is_first: bool) -> Markup:
    mark = placed.mark
    y = placed.lane * _LANE + 10
    shape = element("svg", _SHAPES[mark.kind], x=percent(mark.at), y=y, overflow="visible")
    classes = []
    if mark.kind not in {"late", "due"}:
        classes.append("p")
    if mark.kind == "failed":
        classes.append("fail")
    if mark.started is not None:
        below = y + _UNDER * (placed.has_label and not placed.is_left)
        tail = element("line", cls="tail", x1=percent(mark.at), x2=percent(mark.started), y1=below, y2=below)
        shape = group(tail, shape)
    if placed.tier:
        classes.append(f"w{placed.tier}")
    if placed.until < len(TIERS):
        classes.append(f"u{placed.until}")

    label = group()
    if placed.has_label:
        label = draw_beside(mark.label, mark.at, SHIFT, is_before=placed.is_left, y=y + 4)
    attributes = {"href": mark.href, "aria_label": mark.write_words(), "cls": " ".join(classes)}
    return element("a", shape, label, **attributes, **_order(is_first=is_first))


def draw_hours() -> Markup:
    """Return the axis over the rows: the wall-clock hours."""
    texts = []
    for hour in _HOURS:
        css = "alt" if hour % 6 else ""
        side = "middle" if hour else "start"
        texts.append(element("text", f"{hour:02}", x=percent(hour / 24), y=18, cls=css, text_anchor=side))
    return draw_picture(26, *texts)
