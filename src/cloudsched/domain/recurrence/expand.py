"""Expand a rule's days to wall-clock times, without regard to time zones.

Wall-clock seconds count from 1970-01-01T00:00:00 as shown by a clock. Every search starts at the period that
contains the requested time, computed from DTSTART's period. The time since DTSTART makes no difference.
"""

from __future__ import annotations

from bisect import bisect_left
from math import gcd
from typing import TYPE_CHECKING, NoReturn, Protocol

from typing_extensions import override

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.days import (
    LAST_DAY,
    DailyDays,
    DayFilter,
    MonthlyDays,
    RuleDays,
    WeeklyDays,
    YearlyDays,
    date_from_day_number,
    weekday_from_day_number,
)
from cloudsched.domain.recurrence.rrule import Frequency, Rule
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

DAY = 86_400
MAX_SEARCH_STEPS = 8_000
LAST_SECOND = (LAST_DAY + 1) * DAY - 1
_MAX_KINDS = 1_000
"""The most kinds of periods whose members are remembered, for rules whose periods are all different."""


class WallTimes(Protocol):
    """A set of wall-clock times that can be searched forward."""

    def first_from(self, wall: int) -> int | None:
        """Return the first member that is not before ``wall``, or None if there is none."""


class TimesOfDay:
    """The times of day that BYHOUR, BYMINUTE and BYSECOND produce together, never listed in memory."""

    def __init__(self, hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> None:
        self._hours = hours
        self._minutes = minutes
        self._seconds = seconds
        self.count: int = len(hours) * len(minutes) * len(seconds)
        self.first: int = self.at(0)
        self._last = self.at(self.count - 1)

    def at(self, position: int) -> int:
        """Return the time at a zero-based position, in seconds after midnight."""
        position, second = divmod(position, len(self._seconds))
        hour, minute = divmod(position, len(self._minutes))
        return self._hours[hour] * 3600 + self._minutes[minute] * 60 + self._seconds[second]

    def first_from(self, time: int) -> int | None:
        """Return the first time of day that is not before ``time``."""
        if time <= self.first:
            return self.first
        if time > self._last:
            return None

        hours = self._hours
        minutes = self._minutes
        seconds = self._seconds
        into_hour, second = divmod(time, 60)
        hour, minute = divmod(into_hour, 60)
        at_hour = bisect_left(hours, hour)
        if hours[at_hour] == hour:
            at_minute = bisect_left(minutes, minute)
            if at_minute < len(minutes) and minutes[at_minute] == minute:
                at_second = bisect_left(seconds, second)
                if at_second < len(seconds):
                    return time - second + seconds[at_second]
                at_minute += 1
            if at_minute < len(minutes):
                return hour * 3600 + minutes[at_minute] * 60 + seconds[0]
            at_hour += 1

        return hours[at_hour] * 3600 + minutes[0] * 60 + seconds[0]


class DatedTimes(WallTimes):
    """The wall-clock times of a rule whose FREQ is a day or longer."""

    def __init__(self, rule: Rule, start: int) -> None:
        day, time = divmod(start, DAY)
        self._start = start
        self._times = TimesOfDay(
            rule.hours or (time // 3600,), rule.minutes or (time // 60 % 60,), rule.seconds or (time % 60,)
        )
        self._days = _make_days(rule, day)
        self._interval = rule.interval
        self._anchor = self._days.period_index(day)
        self._last_period = self._days.period_index(LAST_DAY)
        self._positions = rule.positions
        most = self._days.max_days * self._times.count
        self._never = bool(rule.positions) and min(abs(place) for place in rule.positions) > most
        self._look_ahead = rule.skip != "OMIT"
        self._members: dict[Hashable, tuple[int, ...]] = {}

    @override
    def first_from(self, wall: int) -> int | None:
        wall = max(wall, self._start)
        if wall > LAST_SECOND or self._never:
            return None

        days = self._days
        interval = self._interval
        anchor = self._anchor
        # Every `interval`-th period counts, from DTSTART's on. The search begins with the one that has the
        # time, or the next one.
        earliest = days.period_index(wall // DAY) - days.lookback
        period = anchor + max(0, -((anchor - earliest) // interval)) * interval

        for _ in range(min(days.cycle + 2, MAX_SEARCH_STEPS)):
            spend_steps()
            if period > self._last_period:
                return None
            result = self._in_period(period, wall)
            if result is not None:
                if self._look_ahead and period < self._last_period:
                    # A day that SKIP moved forward may lie behind the next period's first.
                    following = self._in_period(period + interval, wall)
                    if following is None:
                        return result
                    return min(result, following)
                return result
            period = anchor + -((anchor - days.next_period(period)) // interval) * interval

        if days.cycle > MAX_SEARCH_STEPS:
            refuse_sparse()
        return None

    def _in_period(self, period: int, wall: int) -> int | None:
        """Return the first member of a period that is not before a time, or None if there is none."""
        base, kind = self._days.base(period)
        members = self._members.get(kind)
        if members is None:
            members = self._list_members(period, kind)
        if not members:
            return None

        if self._positions:
            start = base * DAY
            at = bisect_left(members, wall - start)
            return None if at == len(members) else start + members[at]

        day, time = divmod(wall, DAY)
        at = bisect_left(members, day - base)
        if at == len(members):
            return None
        if members[at] == day - base:
            result = self._times.first_from(time)
            if result is not None:
                return day * DAY + result
            at += 1
            if at == len(members):
                return None
        return (base + members[at]) * DAY + self._times.first

    def _list_members(self, period: int, kind: Hashable) -> tuple[int, ...]:
        """Return what all periods of a kind have: offsets in days or, with BYSETPOS, in seconds."""
        spend_steps(1 + self._days.work // 2 + len(self._positions))
        members = self._days.offsets(period)
        if self._positions:
            members = self._select_positions(members)
        if len(self._members) > _MAX_KINDS:
            self._members.clear()
        self._members[kind] = members
        return members

    def _select_positions(self, offsets: tuple[int, ...]) -> tuple[int, ...]:
        """Return the times that BYSETPOS picks from one period, in seconds after the period's start."""
        a_day = self._times.count
        total = len(offsets) * a_day
        places = {place - 1 if place > 0 else place + total for place in self._positions}
        return tuple(
            offsets[place // a_day] * DAY + self._times.at(place % a_day)
            for place in sorted(places)
            if 0 <= place < total
        )


def _make_days(rule: Rule, start_day: int) -> RuleDays:
    if rule.frequency == Frequency.YEARLY:
        return YearlyDays(rule, date_from_day_number(start_day))
    if rule.frequency == Frequency.MONTHLY:
        return MonthlyDays(rule, date_from_day_number(start_day))
    if rule.frequency == Frequency.WEEKLY:
        return WeeklyDays(rule, weekday_from_day_number(start_day))
    return DailyDays(rule, weekday_from_day_number(start_day))


class StepLimit:
    """The steps that one search may take, so that no rule can take unlimited time."""

    __slots__ = ("remaining",)

    def __init__(self, steps: int = MAX_SEARCH_STEPS) -> None:
        self.remaining = steps

    def consume(self) -> None:
        """Take one step."""
        spend_steps()
        self.remaining -= 1
        if self.remaining < 0:
            refuse_sparse()


def refuse_sparse() -> NoReturn:
    """Stop a search that has used up its steps."""
    raise InvalidSchedule(
        "rrule",
        f"nothing was found in {MAX_SEARCH_STEPS} steps of the search; the rule may never fire",
        "give it fewer conditions, or an INTERVAL that meets them sooner",
    )


HOUR = 3600
MINUTE = 60
CALENDAR_DAYS = 146_097
"""The days of 400 years, after which the calendar and its weekdays repeat."""
_UNITS = {Frequency.HOURLY: HOUR, Frequency.MINUTELY: MINUTE, Frequency.SECONDLY: 1}
# The most times of day that are checked one by one for a rule that may never match.
_MAX_EXHAUSTIVE_CHECKS = 9_000


class Periods:
    """The periods of a rule that is finer than a day, without BYSETPOS.

    Attributes:
        unit: The length of a period in seconds.
        step: The distance from one period's start to the next, in seconds.
    """

    def __init__(self, rule: Rule, start_minute: int, start_second: int, days: DayFilter) -> None:
        self.unit: int = _UNITS[rule.frequency]
        self.step: int = rule.interval * self.unit
        # BYMINUTE limits the periods of a minute or less, BYSECOND those of a second. Of longer periods they
        # select members.
        self._limits: list[_Slots] = []
        if rule.hours:
            self._limits.append(_Slots(rule.hours, 24, HOUR))
        if rule.minutes and rule.frequency >= Frequency.MINUTELY:
            self._limits.append(_Slots(rule.minutes, 60, MINUTE))
        if rule.seconds and rule.frequency == Frequency.SECONDLY:
            self._limits.append(_Slots(rule.seconds, 60, 1))
        self._rule = rule
        self._start_minute = start_minute
        self._start_second = start_second
        self._days = days
        self._grids: dict[int, PeriodGrid] = {}

    def grid_at(self, phase: int) -> PeriodGrid:
        """Return the grid on which ``phase`` is the start of a period."""
        phase %= self.step
        grid = self._grids.get(phase)
        if grid is None:
            grid = self._grids[phase] = PeriodGrid(self, phase)
        return grid

    def members(self, phase: int) -> tuple[int, ...]:
        """Return a period's members: ascending offsets, in seconds, that the parts below the period select."""
        if self.unit == 1:
            return (0,)

        # A zone's offset need not be whole minutes, so that a period may begin within one: the clock decides.
        rule = self._rule
        into_hour = phase % HOUR
        seconds: Sequence[int] = (self._start_second,)
        if rule.seconds:
            seconds = [second for second in range(60) if (into_hour + second) % 60 in rule.seconds]
        if self.unit == MINUTE:
            return tuple(seconds)

        each = (minute * MINUTE + second for minute in range(60) for second in seconds)
        if rule.minutes:
            return tuple(at for at in each if (into_hour + at) // MINUTE % 60 in rule.minutes)
        return tuple(self._start_minute * MINUTE + second for second in seconds)

    def next_possible(self, wall: int) -> int | None:
        """Return the next time that may pass the limits, or None if this one passes."""
        day = wall // DAY
        if not self._days.is_unrestricted and not self._days.matches(day):
            following = self._days.first_from(day + 1)
            if following is None:
                return LAST_SECOND + 1
            return following * DAY
        for slots in self._limits:
            leap = slots.next_allowed(wall)
            if leap:
                return leap
        return None

    def allows_time(self, time: int) -> bool:
        """Return whether a time of day passes the limits below the day."""
        return not any(slots.next_allowed(time) for slots in self._limits)


class PeriodGrid:
    """The members of all periods on one grid, as wall-clock times.

    Attributes:
        is_empty: There are none: INTERVAL keeps every period away from the times of day that the rule allows.
    """

    def __init__(self, periods: Periods, phase: int) -> None:
        self._periods = periods
        self._phase = phase
        self._members = periods.members(phase)
        self.is_empty: bool = self._never_meets_an_allowed_time()

    def first_from(self, wall: int, last: int, steps: StepLimit) -> int | None:
        """Return the first member that is not before ``wall``, or None if there is none until ``last``."""
        if self.is_empty:
            return None
        members = self._members
        step = self._periods.step
        mismatch = self._periods.next_possible
        while True:
            inside = (wall - self._phase) % step
            if inside > members[-1]:
                wall += step - inside + members[0]
            else:
                wall += members[bisect_left(members, inside)] - inside
            if wall > last:
                return None
            leap = mismatch(wall)
            if leap is None:
                return wall
            wall = leap
            steps.consume()

    def _never_meets_an_allowed_time(self) -> bool:
        """Return whether the grid misses every time of day that the rule allows, if that is cheap to find out.

        It meets the times of day in a pattern that repeats after ``step / gcd(step, one day)`` days.
        """
        starts = DAY // gcd(self._periods.step, DAY)
        if starts * len(self._members) > _MAX_EXHAUSTIVE_CHECKS:
            return False  # with so many times of day, the search itself soon finds an allowed one, if any
        spend_steps(starts * len(self._members))
        return not any(
            self._periods.allows_time((self._phase + number * self._periods.step + member) % DAY)
            for number in range(starts)
            for member in self._members
        )


class _Slots:
    """A limit on the hour, minute or second that a clock shows."""

    def __init__(self, allowed: tuple[int, ...], count: int, length: int) -> None:
        self._count = count
        self._length = length
        # For each value the distance to the next allowed one, in slots, or 0 if it is allowed itself.
        self._distance = tuple(min((value - now) % count for value in allowed) for now in range(count))

    def next_allowed(self, wall: int) -> int:
        """Return the start of the next allowed slot, or 0 if this one is."""
        slot = wall // self._length
        distance = self._distance[slot % self._count]
        return distance and (slot + distance) * self._length
