"""The days that a yearly rule selects: the longest row of the table in RFC 5545, section 3.3.10."""

from __future__ import annotations

from calendar import isleap, monthrange
from typing import TYPE_CHECKING

from typing_extensions import override

from cloudsched.domain.recurrence.days import (
    CYCLE_YEARS,
    DayFilter,
    Days,
    date_from_day_number,
    day_number,
    nth_weekdays,
    resolve_day,
    weekday_from_day_number,
    year_kind,
)
from cloudsched.domain.recurrence.rrule import Frequency, Rule

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from datetime import date


class YearlyDays(Days):
    """The days of each calendar year that satisfy all of a rule's parts; DTSTART supplies missing ones.

    A week that extends into the next year belongs, day by day, to both: that is how BYSETPOS and INTERVAL count it.
    """

    cycle = CYCLE_YEARS
    max_days = 366

    def __init__(self, rule: Rule, start: date) -> None:
        self._rule = rule
        named = rule.month_days or rule.year_days or rule.weekdays or rule.week_numbers
        self._month_days = rule.month_days if named else (start.day,)
        self._months = rule.months if named or rule.months else (start.month,)
        self.lookback = 0 if rule.skip == "OMIT" else 1
        weekdays = () if rule.weekdays or rule.month_days or rule.year_days else (start.weekday(),)
        weeks = Rule(Frequency.DAILY, week_numbers=rule.week_numbers, week_start=rule.week_start)
        self._weeks = DayFilter(weeks, weekdays=weekdays) if rule.week_numbers else None

    @override
    def period_index(self, day: int) -> int:
        return date_from_day_number(day).year

    @override
    def base(self, period: int) -> tuple[int, Hashable]:
        new_year = day_number(period, 1, 1)
        return new_year, year_kind(period, new_year)

    @override
    def offsets(self, period: int) -> tuple[int, ...]:
        return tuple(sorted(set.intersection(*self._iter_day_sets(period, day_number(period, 1, 1)))))

    @override
    def next_period(self, period: int) -> int:
        return period + 1

    def _iter_day_sets(self, year: int, new_year: int) -> Iterator[set[int]]:
        length = 365 + isleap(year)
        if self._month_days:
            yield self._days_of_months(year, new_year)
        elif self._months:
            yield {offset for offset in range(length) if date_from_day_number(new_year + offset).month in self._months}
        if self._weeks is not None:
            yield {offset for offset in range(length) if self._weeks.matches(new_year + offset)}
        if self._rule.year_days:
            days = (resolve_day(number, length, self._rule.skip) for number in self._rule.year_days)
            yield {day - 1 for day in days if day is not None}
        if self._rule.weekdays:
            yield self._weekdays(year, new_year, length)

    def _days_of_months(self, year: int, new_year: int) -> set[int]:
        days = set()
        for month in self._months or range(1, 13):
            first = day_number(year, month, 1) - new_year
            length = monthrange(year, month)[1]
            for number in self._month_days:
                day = resolve_day(number, length, self._rule.skip)
                if day is not None:
                    days.add(first + day - 1)
        return days

    def _weekdays(self, year: int, new_year: int, length: int) -> set[int]:
        """Return BYDAY's days; its numbers count within the month if the rule has BYMONTH, else within the year."""
        entries = self._rule.weekdays
        if not self._rule.months:
            return nth_weekdays(entries, weekday_from_day_number(new_year), length)
        days = set()
        for month in self._rule.months:
            first = day_number(year, month, 1)
            in_month = nth_weekdays(entries, weekday_from_day_number(first), monthrange(year, month)[1])
            days |= {first - new_year + offset for offset in in_month}
        return days
