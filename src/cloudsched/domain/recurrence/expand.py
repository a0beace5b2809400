"""Expand a rule's days to wall-clock times, without regard to time zones.

Wall-clock seconds count from 1970-01-01T00:00:00 as shown by a clock. Every search starts at the period that contains
the requested time, computed from DTSTART's period; how long ago DTSTART was makes no difference.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NoReturn, Protocol

from typing_extensions import override

from cloudsched.domain.recurrence.days import (
    LAST_DAY,
    DailyDays,
    Days,
    MonthlyDays,
    WeeklyDays,
    date_from_day_number,
    weekday_from_day_number,
)
from cloudsched.domain.recurrence.days_yearly import YearlyDays
from cloudsched.domain.recurrence.rrule import Frequency, Rule
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Hashable

DAY = 86_400
MAX_SEARCH_STEPS = 8_000
LAST_SECOND = (LAST_DAY + 1) * DAY - 1


class WallTimes(Protocol):
    """A set of wall-clock times that can be searched forward."""

    def first_from(self, wall: int) -> int | None:
        """Return the first member that is not before ``wall``; None if there is none."""


class TimesOfDay:
    """The times of day that BYHOUR, BYMINUTE and BYSECOND produce together, never listed in memory."""

    def __init__(self, hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> None:
        self._hours, self._minutes, self._seconds = hours, minutes, seconds
        self.count = len(hours) * len(minutes) * len(seconds)
        self.first = self.at(0)
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
        low, high = 0, self.count - 1
        while low < high:
            middle = (low + high) // 2
            if self.at(middle) < time:
                low = middle + 1
            else:
                high = middle
        return self.at(low)


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
        days, interval, anchor = self._days, self._interval, self._anchor
        period = anchor + max(0, -((anchor + days.lookback - days.period_index(wall // DAY)) // interval)) * interval
        for _ in range(min(days.cycle + 2, MAX_SEARCH_STEPS)):
            if period > self._last_period:
                return None
            result = self._in_period(period, wall)
            if result is not None:
                if self._look_ahead and period < self._last_period:
                    # A day that SKIP moved forward may lie behind the next period's first.
                    following = self._in_period(period + interval, wall)
                    return result if following is None else min(result, following)
                return result
            period = anchor + -((anchor - days.next_period(period)) // interval) * interval
        if days.cycle > MAX_SEARCH_STEPS:
            refuse_sparse()
        return None

    def _in_period(self, period: int, wall: int) -> int | None:
        base, kind = self._days.base(period)
        members = self._members.get(kind)
        if members is None:
            members = self._days.offsets(period)
            if self._positions:
                members = self._select_positions(members)
            if len(self._members) > 1000:  # noqa: PLR2004 -- bounds the memory of rules whose periods are all different
                self._members.clear()
            self._members[kind] = members
        if not members:
            return None
        if self._positions:
            start = base * DAY
            at = bisect_left(members, wall - start)
            return start + members[at] if at < len(members) else None
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

    def _select_positions(self, offsets: tuple[int, ...]) -> tuple[int, ...]:
        """Return the times that BYSETPOS picks from one period, in seconds after the period's start."""
        a_day = self._times.count
        total = len(offsets) * a_day
        places = {place - 1 if place > 0 else total + place for place in self._positions}
        return tuple(
            offsets[place // a_day] * DAY + self._times.at(place % a_day)
            for place in sorted(places)
            if 0 <= place < total
        )


def _make_days(rule: Rule, start_day: int) -> Days:
    if rule.frequency == Frequency.YEARLY:
        return YearlyDays(rule, date_from_day_number(start_day))
    if rule.frequency == Frequency.MONTHLY:
        return MonthlyDays(rule, date_from_day_number(start_day))
    if rule.frequency == Frequency.WEEKLY:
        return WeeklyDays(rule, weekday_from_day_number(start_day))
    return DailyDays(rule, weekday_from_day_number(start_day))


class StepBudget:
    """The steps that one search may take, so that no rule can take unlimited time."""

    __slots__ = ("remaining",)

    def __init__(self, steps: int = MAX_SEARCH_STEPS) -> None:
        self.remaining = steps

    def consume(self) -> None:
        """Take one step.

        Raises:
            InvalidSchedule: No step is left.
        """
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
