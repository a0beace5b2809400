"""The days that a calendar shows, and the addresses of others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Literal

from cloudsched.dashboard.charts.axis import AxisButton, make_moves
from cloudsched.dashboard.times import DAY

if TYPE_CHECKING:
    from cloudsched.dashboard.visit import Visit

Kind = Literal["day", "week", "month"]

KINDS: Final[tuple[Kind, ...]] = ("day", "week", "month")
_FIRST_DAY: Final = date(1971, 1, 1)
_LAST_DAY: Final = date(9990, 1, 1)


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


def find_today(visit: Visit) -> date:
    """Return the day that it is now."""
    return visit.now.astimezone(visit.zone).date()


def choose_span(visit: Visit) -> DaySpan:
    """Return the days that the address names, or this week if it names no valid ones."""
    if (day := _read_day(visit.query.get("day"))) is not None:
        return make_span("day", day)
    if (day := _read_day(f"{visit.query.get('month', '')}-01")) is not None:
        return make_span("month", day)
    return make_span("week", _read_day(visit.query.get("week")) or find_today(visit))


def make_span(kind: Kind, day: date) -> DaySpan:
    """Return the day, the week from Monday, or the month that contains a day."""
    if kind == "day":
        return DaySpan(kind, day, 1)
    if kind == "week":
        return DaySpan(kind, day - timedelta(days=day.weekday()), 7)
    first = day.replace(day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    return DaySpan(kind, first, (following - first).days)


def write_address(visit: Visit, kind: Kind | None, day: date | None = None) -> str:
    """Return the address of a day, or of its week or month. Without a kind, that of this week."""
    changes: dict[str, str | None] = dict.fromkeys(KINDS)
    if kind is not None and day is not None:
        changes[kind] = f"{day:%Y-%m}" if kind == "month" else day.isoformat()
    return visit.with_query(**changes)


def _read_day(text: str | None) -> date | None:
    try:
        day = date.fromisoformat(text or "")
    except ValueError:
        return None
    return min(max(day, _FIRST_DAY), _LAST_DAY)


def make_span_moves(visit: Visit, span: DaySpan, chosen: date) -> dict[str, AxisButton]:
    """Return the effects of a time axis's keys in the calendar: from the month to the week, to the day, and back.

    Earlier and later move by what is shown. Zooming in leads to the chosen day.
    """
    addresses = {
        "ArrowLeft": write_address(visit, span.kind, make_span(span.kind, span.first - DAY).first),
        "0": write_address(visit, span.kind, find_today(visit)),
        "ArrowRight": write_address(visit, span.kind, span.end),
    }
    kind = KINDS.index(span.kind)
    if kind > 0:
        addresses["+"] = write_address(visit, KINDS[kind - 1], chosen)
    if kind + 1 < len(KINDS):
        addresses["-"] = write_address(visit, KINDS[kind + 1], chosen)
    if span.kind == "week":
        addresses["0"] = write_address(visit, None)
    return make_moves(addresses)
