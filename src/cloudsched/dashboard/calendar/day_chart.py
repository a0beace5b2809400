"""A day as a row: bars for busy tasks, marks with names in lanes for others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.calendar.entries import Bin
from cloudsched.dashboard.calendar.labels import SHIFT, OccurrenceMark, Placed, place_marks
from cloudsched.dashboard.charts.svg import draw_beside, draw_picture, draw_vertical, element, group, percent
from cloudsched.dashboard.times import DAY, WallDay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

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
_LEAST_WIDTH: Final = 0.002
"""The least width of a bar, as a part of the day."""
_LABEL_SIDE: Final = 0.75


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A part of a day that is not shown completely."""

    left: float
    right: float
    text: str
    """The known facts about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """What a day's row shows."""

    day: WallDay
    name: str
    marks: Sequence[OccurrenceMark]
    bins: Sequence[Bin]
    """Equal parts of its 24 wall-clock hours."""
    most: int
    """The end of the scale of all days."""
    now: float | None
    lanes: int
    more_href: str
    unlisted: Sequence[Unlisted] = ()


def draw_day(row: DayRow) -> Markup:
    """Return a day's row."""
    placed, hidden = place_marks(row.marks, row.now, row.lanes)
    has_bars = any(each != Bin() for each in row.bins)
    used = max((each.lane + 1 for each in placed), default=0)
    more_lane = max(used, 1) * any(hidden)
    base = max(used + bool(more_lane), 1) * _LANE + _ROOM + _ABOVE * has_bars
    below = base + _BELOW * has_bars + _TEXT * bool(row.day.spans)
    height = max(below + _TEXT * bool(row.unlisted) + 2, _LEAST)

    scenery = [draw_vertical("ax", hour / 24, 0, height) for hour in _HOURS]
    scenery += _draw_unlisted(row.unlisted, height)
    scenery += _draw_spans(row.day, height, y=height - 3 - _TEXT * bool(row.unlisted))
    if has_bars:
        for index in range(len(row.bins)):
            scenery += _draw_bin(row, index, base)
        scenery.append(element("line", cls="base", x1=0, x2="100%", y1=base + 0.5, y2=base + 0.5))
    if row.now is not None:
        scenery.append(draw_vertical("nowl", row.now, 0, height))

    links = [_draw_mark(each, is_first=index == 0) for index, each in enumerate(placed)]
    links += _draw_more(hidden, row, more_lane * _LANE + 13, is_first=not links)
    hidden_scenery = element("g", *scenery, **{"aria-hidden": "true"})
    return element("svg", hidden_scenery, *links, cls="c", height=height, role="group", aria_label=row.name)


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


def _draw_unlisted(unlisted: Sequence[Unlisted], height: int) -> Iterator[Markup]:
    for each in unlisted:
        wide = percent(max(each.right - each.left, 0.004))
        yield element("rect", x=percent(each.left), y=0, width=wide, height=height, fill="url(#full)")
        is_last = each.left > _LABEL_SIDE
        place = each.right if is_last else each.left
        yield draw_beside(each.text, place, 4, is_before=is_last, y=height - 5, css="strong")


def _draw_bin(row: DayRow, index: int, base: int) -> Iterator[Markup]:
    """Yield the bars of a part of the day: what ran and what did not, what is due, and what failed below them."""
    each = row.bins[index]
    start = (index + _GAP) / len(row.bins)
    end = (index + 1 - _GAP) / len(row.bins)
    middle = _divide(each, start, end, row.now)

    def draw_bar(css: str, count: int, first: float, last: float, below: float = 0.0) -> Markup:
        height = _measure(count, row.most)
        x = percent(min(first, end - _LEAST_WIDTH))
        wide = percent(max(last - first, _LEAST_WIDTH))
        return element("rect", cls=css, x=x, width=wide, y=base - below - height, height=height)

    passed_over = each.skipped + each.late
    ran = _measure(each.ran, row.most)
    if each.ran:
        yield draw_bar("f-past", each.ran, start, middle)
    if passed_over:  # stands on what ran
        yield draw_bar("o", passed_over, start, middle, ran)
    if each.due:
        below = 0.0
        if middle == start:
            below = ran + _measure(passed_over, row.most)
        yield draw_bar("o", each.due, middle, end, below)
    if each.failed:
        height = max(4.0, _BELOW * each.failed / row.most)
        yield element("rect", cls="f-fail", x=percent(start), width=percent(end - start), y=base + 1, height=height)


def _measure(count: int, most: int) -> float:
    """Return the height of a bar."""
    if not count:
        return 0.0
    return max(3.0, (_ABOVE - 2) * count / most)


def _divide(each: Bin, start: float, end: float, now: float | None) -> float:
    """Return the place between the past of a bin and what is due: now, if that is in it."""
    if now is not None:
        return min(end, max(start, now))
    has_past = each.ran or each.skipped or each.late
    if each.due and not has_past:
        return start
    return end


def _draw_spans(day: WallDay, height: int, *, y: int) -> Iterator[Markup]:
    for span in day.spans:
        left = span.start / DAY
        right = span.end / DAY
        middle = percent((left + right) / 2)
        if span.is_skipped:
            text = "skipped"
            yield element("rect", x=percent(left), y=0, width=percent(right - left), height=height, fill="url(#gapped)")
        else:
            text = "twice"
            yield element("line", cls="chg", x1=middle, x2=middle, y1=0, y2=height)
        yield element("text", text, cls="chgt alt", x=middle, y=y, text_anchor="middle")


def _draw_mark(placed: Placed, *, is_first: bool) -> Markup:
    mark = placed.mark
    y = placed.lane * _LANE + 10
    classes = []
    if not mark.is_future:
        classes.append("p")
    if mark.is_bad:
        classes.append("fail")
        cross = element("path", d="M-4-4l8 8M4-4l-8 8", stroke="currentColor", **{"stroke-width": "2.4"})
        shape = element("svg", cross, x=percent(mark.at), y=y, overflow="visible")
    else:
        shape = element("circle", cls="o" if mark.is_future else "f-past", cx=percent(mark.at), cy=y, r=4.5)
    if placed.tier:
        classes.append(f"w{placed.tier}")

    label = group()
    if placed.has_label:
        label = draw_beside(mark.label, mark.at, SHIFT, is_before=placed.is_left, y=y + 4)
    attributes = {"href": mark.href, "aria_label": mark.words, "cls": " ".join(classes)}
    return element("a", shape, label, **attributes, **_order(is_first=is_first))


def draw_hours() -> Markup:
    """Return the axis over the rows: the wall-clock hours."""
    texts = []
    for hour in _HOURS:
        css = "alt" if hour % 6 else ""
        side = "middle" if hour else "start"
        texts.append(element("text", f"{hour:02}", x=percent(hour / 24), y=18, cls=css, text_anchor=side))
    return draw_picture(26, *texts)


def count_bins(places: Sequence[tuple[float, str]], parts: int) -> list[Bin]:
    """Return the numbers of each kind, by their names in a `Bin`, in each of the equal parts of a day."""
    counts: list[Counter[str]] = [Counter() for _ in range(parts)]
    for place, kind in places:
        counts[min(parts - 1, int(place * parts))][kind] += 1
    return [Bin(**each) for each in counts]
