"""A day as the clock on the wall shows it: what is skipped, what comes twice, and where instants lie."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.times import find_clock_changes

if TYPE_CHECKING:
    import zoneinfo

DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a day that a clock change skips, or shows twice; wall-clock times since midnight."""

    start: timedelta
    end: timedelta
    is_skipped: bool


@dataclass(frozen=True, slots=True)
class WallDay:
    """One calendar day in one zone. Its row is always 24 wall-clock hours wide, however long the day is."""

    day: date
    zone: zoneinfo.ZoneInfo
    spans: tuple[Span, ...]

    @property
    def length(self) -> timedelta:
        """The day's real length: 23 or 25 hours if clocks change."""
        return DAY + sum(
            ((span.start - span.end) if span.is_skipped else (span.end - span.start) for span in self.spans),
            timedelta(0),
        )

    def place(self, at: datetime) -> float:
        """Return where an instant of this day lies, from 0 to 1. What is later is not further left.

        Both times that a repeated span comes share its width: the first has the left half.
        """
        local = at.astimezone(self.zone)
        wall = local.replace(tzinfo=None, fold=0) - datetime.combine(self.day, time())
        for span in self.spans:
            if not span.is_skipped and span.start <= wall < span.end:
                half = (span.end - span.start) / 2
                wall = span.start + (wall - span.start) / 2 + (half if local.fold else timedelta(0))
                break
        return min(1.0, max(0.0, wall / DAY))


def make_day(day: date, zone: zoneinfo.ZoneInfo) -> WallDay:
    """Return a day with the clock changes in it."""
    midnight = datetime.combine(day, time())
    begin = midnight.replace(tzinfo=UTC)
    spans = []
    for change in find_clock_changes(begin - DAY, begin + 2 * DAY, zone):
        after = change.at.astimezone(zone).replace(tzinfo=None, fold=0) - midnight
        before = after - change.shift
        start, end = max(min(before, after), timedelta(0)), min(max(before, after), DAY)
        if start < end:
            spans.append(Span(start, end, is_skipped=change.shift > timedelta(0)))
    return WallDay(day, zone, tuple(spans))


def find_start(day: date, zone: zoneinfo.ZoneInfo) -> datetime:
    """Return a day's first instant, in UTC; of a midnight that is skipped, the instant of the change."""
    return datetime.combine(day, time(), tzinfo=zone).astimezone(UTC)


def write_hours(length: timedelta) -> str:
    """Return a day's length, such as ``23 hours`` or ``24.5 hours``."""
    return f"{length / timedelta(hours=1):g} hours"
