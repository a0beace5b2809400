"""Which days a calendar shows: one, a week or a month, and the addresses of others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Literal

from cloudsched.dashboard.wall_clock import DAY

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
