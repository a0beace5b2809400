"""Hourly, minutely and secondly rules within one interval of constant offset.

A rule's periods lie on a grid: ``phase`` plus a multiple of INTERVAL hours, minutes or seconds. Within a period the
finer parts select its members. BYHOUR and coarser parts limit by what the clock shows; at each mismatch the search
skips to the next hour, day or year that can match.
"""

from __future__ import annotations

from bisect import bisect_left
from math import gcd
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.expand import DAY, LAST_SECOND, StepBudget
from cloudsched.domain.recurrence.rrule import Frequency, Rule

if TYPE_CHECKING:
    from cloudsched.domain.recurrence.days import DayFilter

HOUR = 3600
MINUTE = 60
CALENDAR_DAYS = 146_097
"""The days of 400 years, after which the calendar and its weekdays repeat."""
_UNITS = {Frequency.HOURLY: HOUR, Frequency.MINUTELY: MINUTE, Frequency.SECONDLY: 1}
_MAX_EXHAUSTIVE_CHECKS = 9_000  # the most times of day that are checked one by one for a rule that may never match


class Periods:
    """The grid of a rule that is finer than a day, without BYSETPOS.

    Attributes:
        unit: The length of a period in seconds.
        step: The distance from one period's start to the next, in seconds.
    """

    def __init__(self, rule: Rule, start_minute: int, start_second: int, days: DayFilter) -> None:
        self.unit = _UNITS[rule.frequency]
        self.step = rule.interval * self.unit
        self._hours = _Slots(rule.hours, 24, HOUR)
        minutely = rule.frequency >= Frequency.MINUTELY
        self._minutes = _Slots(rule.minutes if minutely else (), 60, MINUTE)
        secondly = rule.frequency == Frequency.SECONDLY
        self._seconds = _Slots(rule.seconds if secondly else (), 60, 1)
        self._rule = rule
        self._start_minute, self._start_second = start_minute, start_second
        self._days = days
        self._grids: dict[int, Grid] = {}

    def grid_at(self, phase: int) -> Grid:
        """Return the grid on which ``phase`` is the start of a period."""
        phase %= self.step
        grid = self._grids.get(phase)
        if grid is None:
            grid = self._grids[phase] = Grid(self, phase)
        return grid

    def members(self, phase: int) -> tuple[int, ...]:
        """Return the offsets in seconds from a period's start that the parts below the period select, ascending."""
        rule, into_hour = self._rule, phase % HOUR
        if self.unit == 1:
            return (0,)
        minutes: tuple[int, ...] = (0,)
        if self.unit == HOUR:
            minutes = tuple(range(60)) if rule.minutes else (self._start_minute,)
        seconds = range(60) if rule.seconds else (self._start_second,)
        each = (minute * MINUTE + second for minute in minutes for second in seconds)
        if self.unit == HOUR and rule.minutes:
            each = (at for at in each if (into_hour + at) // MINUTE % 60 in rule.minutes)
        if rule.seconds:
            each = (at for at in each if (into_hour + at) % 60 in rule.seconds)
        return tuple(each)

    def next_possible(self, wall: int) -> int | None:
        """Return the next time that may pass the limits; None if this one passes."""
        day = wall // DAY
        if not self._days.is_unrestricted and not self._days.matches(day):
            following = self._days.first_from(day + 1)
            return LAST_SECOND + 1 if following is None else following * DAY
        for slots in (self._hours, self._minutes, self._seconds):
            if slots.is_limit:
                leap = slots.next_allowed(wall)
                if leap:
                    return leap
        return None

    def allows_time(self, time: int) -> bool:
        """Return whether a time of day passes the limits below the day."""
        return not any(
            slots.next_allowed(time) for slots in (self._hours, self._minutes, self._seconds) if slots.is_limit
        )


class Grid:
    """The members of all periods on one grid, as wall-clock times.

    Attributes:
        is_empty: There are none: INTERVAL keeps every period away from the times of day that the rule allows.
    """

    def __init__(self, periods: Periods, phase: int) -> None:
        self._periods = periods
        self._phase = phase
        self._members = periods.members(phase)
        self._residues = self._day_residues()
        self.is_empty = self._residues is not None and not self._residues

    def first_from(self, wall: int, last: int, budget: StepBudget) -> int | None:
        """Return the first member that is not before ``wall``; None if there is none until ``last``.

        Raises:
            InvalidSchedule: The budget is used up.
        """
        if self.is_empty:
            return None
        members, step, mismatch = self._members, self._periods.step, self._periods.next_possible
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
            budget.consume()

    def can_reach_day(self, day: int) -> bool:
        """Return False if no period comes to an allowed time on this day, nor on the same day of any other cycle.

        A cycle is the Gregorian calendar's, 400 years. True says only that it cannot be ruled out.
        """
        return self._residues is None or day % self._modulus in self._residues

    def _day_residues(self) -> frozenset[int] | None:
        """Return on which days the grid comes to a time of day that the rule allows; None if that is too much work.

        The grid meets the days in a pattern that repeats after ``step / gcd(step, one day)`` days. Where the calendar
        and the pattern repeat together, only a day's residue modulo the divisor that both lengths share matters.
        """
        every = gcd(self._periods.step, DAY)
        self._modulus = gcd(self._periods.step // every, CALENDAR_DAYS)
        if not self._members:
            return frozenset()
        if DAY // every * len(self._members) > _MAX_EXHAUSTIVE_CHECKS:
            return None  # with so many times of day, the search itself soon finds an allowed one, if any
        starts = (self._phase + number * self._periods.step for number in range(DAY // every))
        times = (start + member for start in starts for member in self._members)
        return frozenset(time // DAY % self._modulus for time in times if self._periods.allows_time(time % DAY))


class _Slots:
    """A limit on the hour, minute or second that a clock shows."""

    def __init__(self, allowed: tuple[int, ...], count: int, length: int) -> None:
        self.is_limit = bool(allowed)
        self._count, self._length = count, length
        # For each value the distance to the next allowed one, in slots; 0 if it is allowed itself.
        self._distance = tuple(min(((value - now) % count for value in allowed), default=0) for now in range(count))

    def next_allowed(self, wall: int) -> int:
        """Return the start of the next allowed slot, or 0 if this one is."""
        slot = wall // self._length
        distance = self._distance[slot % self._count]
        return (slot + distance) * self._length if distance else 0
