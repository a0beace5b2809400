"""One rule on the time line: from its DTSTART, under its policies, to its end.

Rules of a day or longer name wall-clock times, which `cloudsched.domain.recurrence.wall_clock` puts on the time line.

A rule finer than a day can be read in two ways (``subDaily``):

- ``elapsed``: its periods are real hours, minutes or seconds after DTSTART, through clock changes and all, so that an
  hourly task fires once every real hour. Its BYxxx parts filter by what the clock shows at each instant.
- ``wall``: its periods are those of the clock face, put on the time line like a daily rule's: every six hours stays
  at 2, 8, 14 and 20, and an instant that two of them fall on fires once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Literal, Protocol

from typing_extensions import override

from cloudsched.domain.recurrence.days import DayFilter
from cloudsched.domain.recurrence.expand import DAY, LAST_SECOND, DatedTimes, StepBudget, WallTimes, refuse_sparse
from cloudsched.domain.recurrence.expand_subdaily import Grid, Periods
from cloudsched.domain.recurrence.rrule import Frequency, Rule
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from cloudsched.domain.recurrence.time_zones import Zone
    from cloudsched.domain.recurrence.wall_clock import WallClock

SubDaily = Literal["elapsed", "wall"]
MAX_RULE_COUNT = 100_000
_CYCLE = 146_097 * DAY  # after 400 years the calendar repeats


class Stream(Protocol):
    """Ascending instants, in seconds since 1970 UTC."""

    def first_from(self, instant: int) -> int | None:
        """Return the first instant that is not before ``instant``; None if there is none."""


class RuleStream(Stream):
    """The instants of one rule."""

    def __init__(self, rule: Rule, start: int, clock: WallClock, sub_daily: SubDaily) -> None:
        self._unbounded = _build_stream(rule, start, clock, sub_daily)
        self._count = rule.count
        self._last = LAST_SECOND
        if rule.until is not None:
            if rule.until.is_utc:
                self._last = rule.until.seconds
            else:
                ends = clock.instants(rule.until.seconds) or (rule.until.seconds - clock.zone.smallest,)
                self._last = max(ends)
        if self._count is not None and self._count > MAX_RULE_COUNT and not isinstance(self._unbounded, FixedInterval):
            raise InvalidSchedule("rrule", f"COUNT is {self._count}", f"at most {MAX_RULE_COUNT}; use UNTIL instead")

    @override
    def first_from(self, instant: int) -> int | None:
        found = self._unbounded.first_from(instant) if instant <= self._last else None
        if self._count is not None and found is not None:
            if found == self._first():
                return found
            self._resolve_count(self._count)
        return found if found is not None and found <= self._last else None

    def _first(self) -> int | None:
        return self._unbounded.first_from(-LAST_SECOND)

    def _resolve_count(self, count: int) -> None:
        """Turn COUNT into an end, once, and only when something beyond the first instant is asked for."""
        if isinstance(self._unbounded, FixedInterval):
            self._last = self._unbounded.at(count - 1)
        else:
            instant: int | None = -LAST_SECOND
            last = -LAST_SECOND
            for _ in range(count):
                instant = self._unbounded.first_from(last + 1)
                if instant is None:
                    break
                last = instant
            self._last = last
        self._count = None


class FixedInterval(Stream):
    """A rule without any BYxxx part, in elapsed time: one instant every so many seconds."""

    def __init__(self, start: int, step: int) -> None:
        self._start, self._step = start, step

    def at(self, number: int) -> int:
        """Return the instant of a zero-based number."""
        return self._start + number * self._step

    @override
    def first_from(self, instant: int) -> int | None:
        if instant <= self._start:
            return self._start
        found = instant + (self._start - instant) % self._step
        return found if found <= LAST_SECOND else None


class WallClockStream(Stream):
    """Wall-clock times, put on the time line by a clock with its policies."""

    def __init__(self, times: WallTimes, clock: WallClock) -> None:
        self._times, self._clock = times, clock

    @override
    def first_from(self, instant: int) -> int | None:
        return self._clock.first_from(self._times, instant)


class ElapsedPeriods(Stream):
    """A rule finer than a day whose periods are real time."""

    def __init__(self, periods: Periods, days: DayFilter, zone: Zone, first_period: int) -> None:
        self._periods, self._days, self._zone = periods, days, zone
        self._first_period = first_period

    @override
    def first_from(self, instant: int) -> int | None:
        work = StepBudget()
        horizon = instant + _CYCLE
        while True:
            if instant > horizon:
                refuse_sparse()
            table = self._zone.table_for(instant)
            at = bisect_right(table.changes, instant)
            end = table.changes[at] if at < len(table.changes) else table.end
            offset = table.offsets[at]
            last = int(min(LAST_SECOND, end - 1 + offset))
            grid = self._grid(offset)
            wall = grid.first_from(instant + offset, last, work)
            if wall is not None:
                return wall - offset
            if last == LAST_SECOND or (
                grid.is_empty and all(self._grid(later).is_empty for later in {*table.offsets[at:]})
            ):
                return None
            work.consume()
            day = self._days.first_from((int(end) + self._zone.smallest) // DAY)
            if day is None:
                return None
            instant = max(int(end), day * DAY - self._zone.largest)

    def _grid(self, offset: int) -> Grid:
        return self._periods.grid_at(self._first_period + offset)


class WallPeriods(WallTimes):
    """A rule finer than a day whose periods are those of the clock face."""

    def __init__(self, periods: Periods, first_period: int) -> None:
        self._grid = periods.grid_at(first_period)

    @override
    def first_from(self, wall: int) -> int | None:
        return self._grid.first_from(wall, LAST_SECOND, StepBudget())


class SetPositionFilter(Stream):
    """What BYSETPOS picks from each period of a rule finer than a day."""

    def __init__(self, members: Stream, periods: Periods, first_period: int, positions: tuple[int, ...]) -> None:
        self._members, self._periods, self._first_period = members, periods, first_period
        self._positions = positions
        self._never = min(abs(place) for place in positions) > len(periods.members(first_period))
        self._known: tuple[int | None, tuple[int, ...]] = (None, ())

    @override
    def first_from(self, instant: int) -> int | None:
        if self._never:
            return None
        work = StepBudget(1000)
        probe = self._period_start(instant)
        while True:
            member = self._members.first_from(probe)
            if member is None:
                return None
            period = self._period_start(member)
            picked = self._select_in_period(period)
            at = bisect_left(picked, instant)
            if at < len(picked):
                return picked[at]
            probe = period + self._periods.step
            work.consume()

    def _period_start(self, instant: int) -> int:
        return instant - (instant - self._first_period) % self._periods.step

    def _select_in_period(self, period: int) -> tuple[int, ...]:
        known, picked = self._known  # read at once: another thread may be at another period
        if known == period:
            return picked
        members = []
        member = self._members.first_from(period)
        while member is not None and member < period + self._periods.unit:
            members.append(member)
            member = self._members.first_from(member + 1)
        places = {place - 1 if place > 0 else len(members) + place for place in self._positions}
        picked = tuple(members[place] for place in sorted(places) if 0 <= place < len(members))
        self._known = (period, picked)
        return picked


class StartingAt(Stream):
    """A stream from a start on."""

    def __init__(self, stream: Stream, start: int) -> None:
        self._stream, self._start = stream, start

    @override
    def first_from(self, instant: int) -> int | None:
        return self._stream.first_from(max(instant, self._start))


def _build_stream(rule: Rule, start: int, clock: WallClock, sub_daily: SubDaily) -> Stream:
    """Return a rule's instants without its end. ``start`` is DTSTART as the clock shows it."""
    if rule.frequency <= Frequency.DAILY:
        return WallClockStream(DatedTimes(rule, start), clock)
    time = start % DAY
    days = DayFilter(rule, weekdays=[day.weekday for day in rule.weekdays])
    periods = Periods(rule, time // 60 % 60, time % 60, days)
    into_period = time % periods.unit
    if sub_daily == "wall":
        first_period = start - into_period
        times: Stream = WallPeriods(periods, first_period)
        if rule.positions:
            times = SetPositionFilter(times, periods, first_period, rule.positions)
        return WallClockStream(StartingAt(times, start), clock)
    starts = clock.instants(start)
    begin = starts[0] if starts else start - clock.zone.offset_at(start - clock.zone.largest)
    if not any((rule.hours, rule.minutes, rule.seconds, rule.positions)) and days.is_unrestricted:
        return FixedInterval(begin, periods.step)
    first_period = begin - into_period
    stream: Stream = ElapsedPeriods(periods, days, clock.zone, first_period)
    if rule.positions:
        stream = SetPositionFilter(stream, periods, first_period, rule.positions)
    return StartingAt(stream, begin)
