"""The days that a calendar shows, and a day as a row: bars for busy tasks, marks with names in lanes for others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Literal

from cloudsched.dashboard.chart_axis import Move, draw_picture, draw_vertical, element, group, make_moves, percent
from cloudsched.dashboard.times import DAY, WallDay

if TYPE_CHECKING:
    from markupsafe import Markup

    from cloudsched.dashboard.visit import Visit

Kind = Literal["day", "week", "month"]

KINDS: Final[tuple[Kind, ...]] = ("day", "week", "month")
_FIRST_DAY, _LAST_DAY = date(1971, 1, 1), date(9990, 1, 1)


@dataclass(frozen=True, slots=True)
class DaySpan:
    """The days that are shown."""

    kind: Kind
    first: date
    count: int

    @property
    def days(self) -> list[date]:
        """Return all of them."""
        return [self.first + index * DAY for index in range(self.count)]

    @property
    def end(self) -> date:
        """Return the day after the last one."""
        return self.first + self.count * DAY


def choose_span(visit: Visit) -> DaySpan:
    """Return the days that the address names, or this week if it names no valid ones."""
    today = visit.now.astimezone(visit.zone).date()
    if (day := _read_day(visit.query.get("day"))) is not None:
        return make_span("day", day)
    if (day := _read_day(f"{visit.query.get('month', '')}-01")) is not None:
        return make_span("month", day)
    return make_span("week", _read_day(visit.query.get("week")) or today)


def make_span(kind: Kind, day: date) -> DaySpan:
    """Return the day, the week from Monday, or the month that contains a day."""
    if kind == "day":
        return DaySpan(kind, day, 1)
    if kind == "week":
        return DaySpan(kind, day - timedelta(days=day.weekday()), 7)
    first = day.replace(day=1)
    return DaySpan(kind, first, ((first + timedelta(days=32)).replace(day=1) - first).days)


def write_address(visit: Visit, kind: Kind | None, day: date | None = None) -> str:
    """Return the address of a day, or of its week or month. Without a kind, that of this week."""
    shown = "" if day is None else f"{day:%Y-%m}" if kind == "month" else day.isoformat()
    return visit.with_query(**{name: shown if name == kind else None for name in KINDS})


def _read_day(text: str | None) -> date | None:
    try:
        day = date.fromisoformat(text or "")
    except ValueError:
        return None
    return min(max(day, _FIRST_DAY), _LAST_DAY)


def make_span_moves(visit: Visit, span: DaySpan, chosen: date) -> dict[str, Move]:
    """Return the effects of a time axis's keys in the calendar: from the month to the week, to the day, and back.

    Earlier and later move by what is shown. Zooming in leads to the chosen day.
    """
    kind = KINDS.index(span.kind)
    today = visit.now.astimezone(visit.zone).date()
    addresses = {
        "+": write_address(visit, KINDS[kind - 1], chosen) if kind else None,
        "-": write_address(visit, KINDS[kind + 1], chosen) if kind + 1 < len(KINDS) else None,
        "ArrowLeft": write_address(visit, span.kind, make_span(span.kind, span.first - DAY).first),
        "0": write_address(visit, None) if span.kind == "week" else write_address(visit, span.kind, today),
        "ArrowRight": write_address(visit, span.kind, span.end),
    }
    return make_moves(addresses)


_HOURS: Final = range(0, 24, 2)
_LANE, _ABOVE, _BELOW, _ROOM, _TEXT = 18, 26, 12, 4, 14
_LEAST: Final = 68
"""The least height of a row, which has the day's name and its counts."""
TIERS: Final = (440, 690, 820, 1080)
"""The least widths of a row, in pixels, on screens from 641, 897, 1024 and 1281 on. Narrower ones have no labels.

A label that has room in one of these has it in all wider ones, because labels keep their size.
"""
_WIDTHS: Final = {
    **dict.fromkeys("iljtfrI.,:;'|!()[] -", 4.8),
    **dict.fromkeys("mwMW@%&\N{HORIZONTAL ELLIPSIS}", 12.0),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ", 8.8),
}
_OTHER, _WIDEST = 7.8, 13.0
"""The largest widths of 12-pixel letters in the usual fonts, since text cannot be measured here."""
_SHIFT, _MARK, _APART = 9, 6, 6
"""In pixels: from the middle of a mark to its label, to its own edge, and the least space between two labels."""
_GAP: Final = 0.03
"""The empty part of a bin, so that bars stand apart."""
_LABEL_SIDE: Final = 0.75


@dataclass(frozen=True, slots=True)
class Mark:
    """An occurrence of a task that is not busy that day."""

    at: float
    """Its place in the day, from 0 to 1."""
    label: str
    """Its time and title."""
    words: str
    """The full text for those who do not see the chart."""
    href: str
    is_future: bool
    """True if it has not run: it is due, late, or was passed over."""
    is_bad: bool


@dataclass(frozen=True, slots=True)
class Bin:
    """The numbers of busy tasks' occurrences in a part of a day."""

    ran: int = 0
    failed: int = 0
    due: int = 0
    late: int = 0
    """Those due in the past that have not begun."""
    skipped: int = 0
    """Those that a decision kept from running: skipped, expired or cancelled."""


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A part of a day that is not shown completely."""

    left: float
    right: float
    text: str
    """The known facts about it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A mark in its lane. It has no label if there is no room."""

    mark: Mark
    lane: int
    has_label: bool
    is_left: bool
    """True if the label stands before the mark."""
    tier: int = 0
    """The first of `TIERS` in which it is shown."""


def measure(label: str) -> float:
    """Return the largest possible width of a label, in pixels."""
    return sum(_WIDTHS.get(letter, _OTHER if letter.isascii() else _WIDEST) for letter in label)


def place_marks(marks: Sequence[Mark], now: float | None, lanes: int) -> tuple[list[Placed], tuple[int, ...]]:
    """Return marks in the first lanes with room, and the numbers of those without room in each of `TIERS`.

    Failures come first and are always shown. If need be, they lose their labels, and get a lane of their own below the
    others. A label never crosses the now line, but goes to the other side of its mark. A mark without room on a narrow
    screen may have it on a wider one, and moves nothing there.
    """
    taken: list[list[tuple[float, float, float]]] = [[] for _ in range(lanes)]
    placed: list[Placed] = []
    waiting = sorted(((mark, measure(mark.label)) for mark in marks), key=lambda each: (not each[0].is_bad, each[0].at))
    left_out = []
    for tier, width in enumerate(TIERS):
        rest = []
        for mark, size in waiting:
            found = _find_place(mark, size, taken, now, width)
            if found is not None:
                lane, is_left = found
                taken[lane].append(_reach(mark, size, is_left=is_left))
                placed.append(Placed(mark, lane, has_label=True, is_left=is_left, tier=tier))
            elif mark.is_bad:
                placed.append(Placed(mark, lanes, has_label=False, is_left=False))
            else:
                rest.append((mark, size))
        waiting = rest
        left_out.append(len(rest))
    return sorted(placed, key=lambda each: each.mark.at), tuple(left_out)


def _find_place(
    mark: Mark, size: float, taken: Sequence[Sequence[tuple[float, float, float]]], now: float | None, width: float
) -> tuple[int, bool] | None:
    sides = [False, True] if mark.at < _LABEL_SIDE else [True, False]
    reaches = [(is_left, _reach(mark, size, is_left=is_left)) for is_left in sides]
    for lane, others in enumerate(taken):
        for is_left, reach in reaches:
            if _fits(reach, others, now, width):
                return lane, is_left
    return None


def _reach(mark: Mark, size: float, *, is_left: bool) -> tuple[float, float, float]:
    """Return the place of a mark, and the pixels that it and its label take before and after it."""
    return (mark.at, _SHIFT + size, _MARK) if is_left else (mark.at, _MARK, _SHIFT + size)


def _fits(
    reach: tuple[float, float, float], others: Sequence[tuple[float, float, float]], now: float | None, width: float
) -> bool:
    at, before, after = reach
    start, end = at * width - before, at * width + after
    if start < -2 * _MARK or end > width + 2 * _MARK:
        return False
    if now is not None and start + _MARK < now * width < end - _MARK:  # it may go through a mark, but not its label
        return False
    return all(
        end + _APART <= other * width - left or other * width + right + _APART <= start for other, left, right in others
    )


def draw_day(  # noqa: PLR0913 - what a row shows
    day: WallDay,
    marks: Sequence[Mark],
    bins: Sequence[Bin],
    most: int,
    now: float | None,
    *,
    lanes: int,
    name: str,
    more_href: str,
    unlisted: Sequence[Unlisted] = (),
) -> Markup:
    """Return a day's row.

    The bins are equal parts of its 24 wall-clock hours. All days have one scale, which ends at `most`.
    """
    placed, left_out = place_marks(marks, now, lanes)
    used = max((each.lane + 1 for each in placed), default=0)
    has_bars = any(each != Bin() for each in bins)
    more_lane = max(used, 1) if any(left_out) else 0
    top = max(used + bool(more_lane), 1) * _LANE + _ROOM
    base = top + (_ABOVE if has_bars else 0)
    below = base + (_BELOW if has_bars else 0) + _TEXT * bool(day.spans)
    height = max(below + _TEXT * bool(unlisted) + 2, _LEAST)
    parts = [draw_vertical("ax", hour / 24, 0, height) for hour in _HOURS]
    parts += _draw_unlisted(unlisted, height)
    parts += _draw_spans(day, height, y=height - 3 - _TEXT * bool(unlisted))
    if has_bars:
        parts += _draw_bars(bins, most, now, base)
        parts.append(element("line", cls="base", x1=0, x2="100%", y1=base + 0.5, y2=base + 0.5))
    if now is not None:
        parts.append(draw_vertical("nowl", now, 0, height))
    links = [_draw_mark(each, is_first=index == 0) for index, each in enumerate(placed)]
    links += _draw_more(left_out, more_lane * _LANE + 13, more_href, name, is_first=not links)
    scenery = element("g", *parts, **{"aria-hidden": "true"})
    return element("svg", scenery, *links, cls="c", height=height, role="group", aria_label=name)


def _draw_more(left_out: Sequence[int], y: int, href: str, name: str, *, is_first: bool) -> Iterator[Markup]:
    """Yield the number of marks without room: once, or for each width of the screen."""
    is_same = len(set(left_out)) == 1
    for tier, count in enumerate(left_out[:1] if is_same else left_out):
        if count:
            text = element("text", f"+{count}", x="100%", y=y, text_anchor="end")
            css = {} if is_same else {"cls": f"m{tier}"}
            order = {} if is_first else {"tabindex": "-1"}
            yield element("a", text, href=href, aria_label=f"{count} more on {name}", **css, **order)


def _draw_unlisted(unlisted: Sequence[Unlisted], height: int) -> Iterator[Markup]:
    for each in unlisted:
        left = percent(each.left)
        wide = percent(max(each.right - each.left, 0.004))
        yield element("rect", x=left, y=0, width=wide, height=height, fill="url(#full)")
        is_last = each.left > _LABEL_SIDE
        x, side, shift = (percent(each.right), "end", -4) if is_last else (left, "start", 4)
        yield element("text", each.text, cls="strong", x=x, dx=shift, y=height - 5, text_anchor=side)


def _draw_bars(bins: Sequence[Bin], most: int, now: float | None, base: int) -> Iterator[Markup]:
    for index, each in enumerate(bins):
        left, right = (index + _GAP) / len(bins), (index + 1 - _GAP) / len(bins)
        has_past = each.ran or each.skipped or each.late
        middle = min(right, max(left, now)) if now is not None else (left if each.due and not has_past else right)
        reached = {left: 0.0, middle: 0.0}  # what did not run stands on what did
        for count, css, start, end in (
            (each.ran, "f-past", left, middle),
            (each.skipped + each.late, "o", left, middle),
            (each.due, "o", middle, right),
        ):
            if count:
                tall = max(3.0, (_ABOVE - 2) * count / most)
                wide = percent(max(end - start, 0.002))
                y = base - reached[start] - tall
                reached[start] += tall
                yield element("rect", cls=css, x=percent(min(start, right - 0.002)), width=wide, y=y, height=tall)
        if each.failed:
            tall = max(4.0, _BELOW * each.failed / most)
            yield element("rect", cls="f-fail", x=percent(left), width=percent(right - left), y=base + 1, height=tall)


def _draw_spans(day: WallDay, height: int, *, y: int) -> Iterator[Markup]:
    for span in day.spans:
        left, right = span.start / DAY, span.end / DAY
        middle = percent((left + right) / 2)
        if span.is_skipped:
            yield element("rect", x=percent(left), y=0, width=percent(right - left), height=height, fill="url(#gapped)")
        else:
            yield element("line", cls="chg", x1=middle, x2=middle, y1=0, y2=height)
        text = "skipped" if span.is_skipped else "twice"
        yield element("text", text, cls="chgt alt", x=middle, y=y, text_anchor="middle")


def _draw_mark(placed: Placed, *, is_first: bool) -> Markup:
    mark, y = placed.mark, placed.lane * _LANE + 10
    if mark.is_bad:
        cross = element("path", d="M-4-4l8 8M4-4l-8 8", stroke="currentColor", **{"stroke-width": "2.4"})
        shape = element("svg", cross, x=percent(mark.at), y=y, overflow="visible")
    else:
        shape = element("circle", cls="o" if mark.is_future else "f-past", cx=percent(mark.at), cy=y, r=4.5)
    side, shift = ("end", -_SHIFT) if placed.is_left else ("start", _SHIFT)
    text = mark.label if placed.has_label else ""
    label = element("text", text, x=percent(mark.at), dx=shift, y=y + 4, text_anchor=side) if text else group()
    names = (("p", not mark.is_future), ("fail", mark.is_bad), (f"w{placed.tier}", placed.tier))
    css = " ".join(name for name, is_so in names if is_so)
    order = {} if is_first else {"tabindex": "-1"}
    return element("a", shape, label, href=mark.href, aria_label=mark.words, cls=css, **order)


def draw_hours() -> Markup:
    """Return the axis over the rows: the wall-clock hours."""
    texts = []
    for hour in _HOURS:
        css, side = "alt" if hour % 6 else "", "middle" if hour else "start"
        texts.append(element("text", f"{hour:02}", x=percent(hour / 24), y=18, cls=css, text_anchor=side))
    return draw_picture(26, *texts)


def count_bins(places: Sequence[tuple[float, str]], parts: int) -> list[Bin]:
    """Return the numbers of each kind, by their names in a `Bin`, in each of the equal parts of a day."""
    counts: list[Counter[str]] = [Counter() for _ in range(parts)]
    for place, kind in places:
        counts[min(parts - 1, int(place * parts))][kind] += 1
    return [Bin(**each) for each in counts]
