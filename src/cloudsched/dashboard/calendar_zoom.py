"""The part of a day that the calendar shows, and the addresses of more, less, earlier and later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Literal

from cloudsched.dashboard.times import DAY
from cloudsched.dashboard.zoom import WHOLE, Move, Part, find_parts, make_moves

if TYPE_CHECKING:
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
