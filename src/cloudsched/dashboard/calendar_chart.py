"""A day as a row: busy tasks are bars, the others are marks with their names, in lanes.

The part of the day that is shown is in the address, as are those that show more, less, earlier and later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Literal

from cloudsched.dashboard.svg import element, group, percent
from cloudsched.dashboard.times import DAY
from cloudsched.dashboard.zoom import WHOLE, Move, Part, find_parts, make_moves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from cloudsched.dashboard.times import WallDay
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
        """All of them."""
        return [self.first + index * DAY for index in range(self.count)]

    @property
    def end(self) -> date:
        """The day after the last one."""
        return self.first + self.count * DAY


def choose_span(visit: Visit) -> DaySpan:
    """Return the days that the address names; this week if it names none that there are."""
    today = visit.now.astimezone(visit.zone).date()
    if (day := _read_day(visit.query.get("day"))) is not None:
        return make_span("day", day)
    if (day := _read_day(f"{visit.query.get('month', '')}-01")) is not None:
        return make_span("month", day)
    return make_span("week", _read_day(visit.query.get("week")) or today)


def make_span(kind: Kind, day: date) -> DaySpan:
    """Return the day, the week from Monday, or the month that a day is in."""
    if kind == "day":
        return DaySpan(kind, day, 1)
    if kind == "week":
        return DaySpan(kind, day - timedelta(days=day.weekday()), 7)
    first = day.replace(day=1)
    return DaySpan(kind, first, ((first + timedelta(days=32)).replace(day=1) - first).days)


def write_address(visit: Visit, kind: Kind | None, day: date | None = None) -> str:
    """Return the address of a day, of its week or its month; of this week if there is no kind."""
    shown = "" if day is None else f"{day:%Y-%m}" if kind == "month" else day.isoformat()
    names: dict[str, str | None] = {"at": None, **{name: shown if name == kind else None for name in KINDS}}
    return visit.with_query(**names)


def _read_day(text: str | None) -> date | None:
    try:
        day = date.fromisoformat(text or "")
    except ValueError:
        return None
    return min(max(day, _FIRST_DAY), _LAST_DAY)


_QUARTERS: Final = 96
"""How many quarters of an hour a day has: what is shown of it begins and ends with one."""
_SHORTEST: Final = 4 / _QUARTERS
_UNITS: Final = ((24, 15, "quarter of an hour"), (8, 5, "five minutes"), (0, 1, "minute"))
"""From how many quarters on a bar stands for how many minutes, and the words for it."""


def choose_part(visit: Visit, span: DaySpan) -> Part:
    """Return the part of its day that the address names, such as ``at=06:00-12:00``; the whole day if it names none."""
    start, dash, end = visit.query.get("at", "").partition("-")
    if span.kind != "day" or not dash:
        return WHOLE
    left, right = _read(start), _read(end)
    return (
        (left / _QUARTERS, right / _QUARTERS) if left is not None and right is not None and left + 4 <= right else WHOLE
    )


def place_in(part: Part, place: float) -> float:
    """Return where a place of the day lies in the part that is shown; outside 0 to 1 if it is not."""
    return (place - part[0]) / (part[1] - part[0])


def is_in(part: Part, place: float) -> bool:
    """Return whether a place of the day is shown."""
    return part == WHOLE or part[0] <= place < part[1]


def choose_bins(part: Part) -> tuple[int, str]:
    """Return how many bars there are in a part of a day, and what one stands for."""
    quarters = round((part[1] - part[0]) * _QUARTERS)
    minutes, words = next((minutes, words) for least, minutes, words in _UNITS if quarters > least)
    return quarters * 15 // minutes, words


def write_part(part: Part) -> str:
    """Return a part of a day as the clock on the wall says it; nothing for the whole day."""
    return "" if part == WHOLE else f"{_write(part[0])} to {_write(part[1])}"


def make_day_moves(visit: Visit, span: DaySpan, part: Part, chosen: date, now: float | None) -> dict[str, Move]:
    """Return what the keys of a time axis show in the calendar.

    From the month to the week, to the day and to hours of it, and back; earlier and later by as much as is shown, of a
    part of a day by half as much, and at its ends on the next day.

    Args:
        visit: Whose address it changes.
        span: Which days are shown.
        part: Which part of the day is shown.
        chosen: The day to which zooming in leads.
        now: Where now lies in the day; None on other days.
    """
    kind = KINDS.index(span.kind)
    today = visit.now.astimezone(visit.zone).date()
    addresses: dict[str, str | None] = {
        "+": write_address(visit, KINDS[kind - 1], chosen) if kind else None,
        "-": write_address(visit, KINDS[kind + 1], chosen) if kind + 1 < len(KINDS) else None,
        "ArrowLeft": write_address(visit, span.kind, make_span(span.kind, span.first - DAY).first),
        "0": write_address(visit, None) if span.kind == "week" else write_address(visit, span.kind, today),
        "ArrowRight": write_address(visit, span.kind, span.end),
    }
    if span.kind == "day":
        width = part[1] - part[0]
        parts = find_parts(part, now, _SHORTEST)
        addresses["+"] = _write_address(visit, span.first, parts["+"])
        if part != WHOLE:
            addresses["-"] = _write_address(visit, span.first, parts["-"])
            addresses["ArrowLeft"] = _write_address(visit, span.first, parts["ArrowLeft"]) or _write_address(
                visit, span.first - DAY, (1 - width, 1.0)
            )
            addresses["ArrowRight"] = _write_address(visit, span.first, parts["ArrowRight"]) or _write_address(
                visit, span.end, (0.0, width)
            )
    found = {each.key: each for each in make_moves(dict.fromkeys(addresses), lambda _: "", home="Today")}
    return {key: replace(found[key], href=href) for key, href in addresses.items()}


def _write_address(visit: Visit, day: date, part: Part | None) -> str | None:
    if part is None:
        return None
    left, right = round(part[0] * _QUARTERS), round(part[1] * _QUARTERS)
    if right - left >= _QUARTERS:
        return write_address(visit, "day", day)
    at = f"{_write(left / _QUARTERS)}-{_write(max(right, left + 4) / _QUARTERS)}"
    return replace(visit, query={**visit.query, "at": at}).with_query(day=day.isoformat(), week=None, month=None)


def _write(place: float) -> str:
    quarters = round(place * _QUARTERS)
    return f"{quarters // 4:02}:{quarters % 4 * 15:02}"


def _read(text: str) -> int | None:
    """Return how many quarters of an hour after midnight a time is; None if it is none of them."""
    hours, colon, minutes = text.partition(":")
    if not (colon and hours.isascii() and hours.isdigit() and len(hours) == 2 and minutes in {"00", "15", "30", "45"}):  # noqa: PLR2004 - two digits
        return None
    quarters = int(hours) * 4 + int(minutes) // 15
    return quarters if quarters <= _QUARTERS else None


_LANE, _ABOVE, _BELOW, _ROOM = 18, 26, 12, 4
_LEAST: Final = 68
"""The least height of a row: that of the day's name and its counts."""
_CHARACTER, _MARK = 0.0068, 0.012
"""How wide a letter and a mark are at most, as parts of a row of 900 pixels: text cannot be measured."""
_APART, _HAIR = 0.009, 0.001
_GAP: Final = 0.03
"""How much of a bin is empty, so that bars stand apart."""
_LABEL_SIDE: Final = 0.75


@dataclass(frozen=True, slots=True)
class Mark:
    """An occurrence of a task that is not busy that day."""

    at: float
    """Where it lies in the day, from 0 to 1."""
    label: str
    """Its time and title."""
    words: str
    """All of it for those who do not see the chart."""
    href: str
    is_future: bool
    is_bad: bool


@dataclass(frozen=True, slots=True)
class Bin:
    """How much of busy tasks lies in a part of a day."""

    ran: int = 0
    failed: int = 0
    due: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """A mark in its lane; without its label where that finds no room."""

    mark: Mark
    lane: int
    has_label: bool
    is_left: bool
    """Whether the label stands before the mark."""


def place_marks(marks: Sequence[Mark], now: float | None, lanes: int) -> tuple[list[Placed], int]:
    """Return marks in lanes, from left to right, each in the first lane with room; and how many found none.

    A label never crosses the now line: it goes to the other side of its mark. What failed is always there, without its
    label if need be.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(lanes)]
    placed, left_out = [], 0
    for mark in sorted(marks, key=lambda each: each.at):
        sides = [False, True] if mark.at < _LABEL_SIDE else [True, False]
        choices = [(lane, is_left) for lane in range(lanes) for is_left in sides]
        chosen = next(
            (choice for choice in choices if _fits(_extent(mark, is_left=choice[1]), taken[choice[0]], now)), None
        )
        if chosen is not None:
            lane, is_left = chosen
            taken[lane].append(_extent(mark, is_left=is_left))
            placed.append(Placed(mark, lane, has_label=True, is_left=is_left))
        elif mark.is_bad:
            placed.append(Placed(mark, lanes - 1, has_label=False, is_left=False))
        else:
            left_out += 1
    return placed, left_out


def _extent(mark: Mark, *, is_left: bool) -> tuple[float, float]:
    width = _MARK + len(mark.label) * _CHARACTER
    return (mark.at - width, mark.at + _MARK / 2) if is_left else (mark.at - _MARK / 2, mark.at + width)


def _fits(extent: tuple[float, float], taken: list[tuple[float, float]], now: float | None) -> bool:
    start, end = extent
    edge = _MARK / 2 + _HAIR  # the now line may go through a mark, but not between it and its label
    if start < -_MARK or end > 1 + _MARK or (now is not None and start + edge < now < end - edge):
        return False
    return all(end + _APART <= begin or finish + _APART <= start for begin, finish in taken)


def draw_day(  # noqa: PLR0913 - what a row shows
    day: WallDay | None,
    marks: Sequence[Mark],
    bins: Sequence[Bin],
    most: int,
    now: float | None,
    *,
    lanes: int,
    name: str,
    more_href: str,
    part: Part = WHOLE,
) -> Markup:
    """Return a day's row.

    Args:
        day: The day, with what its clock change skips; None where several zones share the row.
        marks: What has a name.
        bins: What is busy, in equal parts of the day's 24 wall-clock hours.
        most: The most that any bin of any day holds: all days have one scale.
        now: Where now lies; None on other days.
        lanes: How many lanes names may have.
        name: What the row is called.
        more_href: Where those are that found no room.
        part: Which part of the day is shown; marks, bins and now lie in it.
    """
    placed, left_out = place_marks(marks, now, lanes)
    used = max((each.lane + 1 for each in placed), default=0)
    has_bars = any((each.ran, each.failed, each.due) != (0, 0, 0) for each in bins)
    top = max(used + bool(left_out and used == lanes), 1) * _LANE + _ROOM
    base = top + (_ABOVE if has_bars else 0)
    height = max(base + (_BELOW if has_bars else 0) + 2, _LEAST)
    parts = [
        element("line", cls="ax", x1=percent(place), x2=percent(place), y1=0, y2=height)
        for _, place in _find_hours(part)
    ]
    parts += _draw_spans(day, height, part)
    if has_bars:
        parts += _draw_bars(bins, most, now, base)
        parts.append(element("line", cls="base", x1=0, x2="100%", y1=base + 0.5, y2=base + 0.5))
    if now is not None:
        parts.append(element("line", cls="nowl", x1=percent(now), x2=percent(now), y1=0, y2=height))
    links = [_draw_mark(each, is_first=index == 0) for index, each in enumerate(placed)]
    if left_out:
        text = element("text", f"+{left_out}", x="100%", y=used * _LANE + 13, text_anchor="end")
        order = {"tabindex": "-1"} if links else {}
        links.append(element("a", text, href=more_href, aria_label=f"{left_out} more on {name}", **order))
    scenery = element("g", *parts, **{"aria-hidden": "true"})
    return element("svg", scenery, *links, cls="c", height=height, role="group", aria_label=name)


def _draw_bars(bins: Sequence[Bin], most: int, now: float | None, base: int) -> Iterator[Markup]:
    for index, each in enumerate(bins):
        left, right = (index + _GAP) / len(bins), (index + 1 - _GAP) / len(bins)
        middle = min(right, max(left, now)) if now is not None else (left if each.due and not each.ran else right)
        for count, css, start, end in ((each.ran, "f-past", left, middle), (each.due, "o", middle, right)):
            if count:
                tall = max(3.0, (_ABOVE - 2) * count / most)
                wide = percent(max(end - start, 0.002))
                yield element(
                    "rect", cls=css, x=percent(min(start, right - 0.002)), width=wide, y=base - tall, height=tall
                )
        if each.failed:
            tall = max(4.0, _BELOW * each.failed / most)
            yield element("rect", cls="f-fail", x=percent(left), width=percent(right - left), y=base + 1, height=tall)


def _draw_spans(day: WallDay | None, height: int, part: Part) -> Iterator[Markup]:
    for span in () if day is None else day.spans:
        left, right = (min(1.0, max(0.0, (at / DAY - part[0]) / (part[1] - part[0]))) for at in (span.start, span.end))
        width = right - left
        if width <= 0:
            continue
        middle = percent(left + width / 2)
        if span.is_skipped:
            yield element("rect", x=percent(left), y=0, width=percent(width), height=height, fill="url(#gapped)")
        else:
            yield element("line", cls="chg", x1=middle, x2=middle, y1=0, y2=height)
        text = "skipped" if span.is_skipped else "twice"
        yield element("text", text, cls="chgt alt", x=middle, y=height - 3, text_anchor="middle")


def _draw_mark(placed: Placed, *, is_first: bool) -> Markup:
    mark, y = placed.mark, placed.lane * _LANE + 10
    if mark.is_bad:
        cross = element("path", d="M-4-4l8 8M4-4l-8 8", stroke="currentColor", **{"stroke-width": "2.4"})
        shape = element("svg", cross, x=percent(mark.at), y=y, overflow="visible")
    else:
        shape = element("circle", cls="o" if mark.is_future else "f-past", cx=percent(mark.at), cy=y, r=4.5)
    label = (
        element(
            "text",
            mark.label,
            x=percent(mark.at),
            dx=-9 if placed.is_left else 9,
            y=y + 4,
            text_anchor="end" if placed.is_left else "start",
        )
        if placed.has_label
        else group()
    )
    css = " ".join(name for name, is_so in (("p", not mark.is_future), ("fail", mark.is_bad)) if is_so)
    order = {} if is_first else {"tabindex": "-1"}
    return element("a", shape, label, href=mark.href, aria_label=mark.words, cls=css, **order)


def draw_hours(part: Part = WHOLE) -> Markup:
    """Return the axis over the rows: the hours of the clock on the wall, or of a part of the day."""
    texts = [
        element(
            "text",
            label,
            x=percent(place),
            y=18,
            cls="" if int(label[:2]) % 6 == 0 or part != WHOLE else "alt",
            text_anchor="middle" if place else "start",
        )
        for label, place in _find_hours(part)
    ]
    return element("svg", *texts, cls="c", height=26, **{"aria-hidden": "true"})


def _find_hours(part: Part) -> Iterator[tuple[str, float]]:
    """Yield round times in a part of a day, at most a dozen, each with its place."""
    quarters = (part[1] - part[0]) * 96
    step = next(step for step in (1, 2, 4, 8) if quarters / step <= 12)  # noqa: PLR2004 - a dozen
    for quarter in range(0, 96, step):
        place = (quarter / 96 - part[0]) / (part[1] - part[0])
        if 0 <= place < 1:
            yield f"{quarter // 4:02}" if step >= 4 else f"{quarter // 4:02}:{quarter % 4 * 15:02}", place  # noqa: PLR2004 - an hour


def count_bins(places: Sequence[tuple[float, str]], parts: int) -> list[Bin]:
    """Return how many of ``ran``, ``failed`` and ``due`` lie in each of the equal parts of a day."""
    counts = [{"ran": 0, "failed": 0, "due": 0} for _ in range(parts)]
    for place, kind in places:
        counts[min(parts - 1, int(place * parts))][kind] += 1
    return [Bin(**each) for each in counts]


HOUR_BINS: Final = 24
"""How many bars a day has in the week."""
