"""The days that a rule selects: the BYxxx parts of RFC 5545 above the hour, period by period.

Days are numbered from 1970-01-01, day 0, and weekdays from Monday, 0. A rule takes missing parts that its
period needs from DTSTART, once: a monthly rule that starts on the 31st means the 31st for ever.

The Gregorian calendar repeats after 400 years, and has few kinds of years and 28 kinds of months. The days
that a rule selects in a period depend only on the period's kind, so each kind is computed once, and a rule
that selects nothing in a whole cycle never will.
"""

from __future__ import annotations

from bisect import bisect_left
from calendar import isleap, monthrange
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from typing_extensions import override

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.rrule import Frequency, NthDay, Rule

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
LAST_YEAR = 9998  # the week-numbering year of its last days still has a calendar
LAST_DAY = date(LAST_YEAR, 12, 31).toordinal() - EPOCH_ORDINAL
CYCLE_YEARS = 400


def day_number(year: int, month: int, day: int) -> int:
    """Return the number of a date, days after 1970-01-01."""
    return date(year, month, day).toordinal() - EPOCH_ORDINAL


def date_from_day_number(day: int) -> date:
    """Return the date of a day number."""
    return date.fromordinal(day + EPOCH_ORDINAL)


def weekday_from_day_number(day: int) -> int:
    """Return the weekday of a day number, Monday being 0."""
    return (day + 3) % 7


@lru_cache(maxsize=1000)  # BYWEEKNO asks for the same years for each of their days
def first_week(year: int, week_start: int) -> int:
    """Return the day on which week 1 of a year begins: the first week with at least four days in the year."""
    new_year = day_number(year, 1, 1)
    into_week = (weekday_from_day_number(new_year) - week_start) % 7
    if into_week <= 3:  # noqa: PLR2004 -- then four of its seven days are in the year
        return new_year - into_week
    return new_year + 7 - into_week


def year_kind(year: int, new_year: int) -> Hashable:
    """Return a key that years with the same calendar and the same week numbers share.

    The neighbouring years determine the week numbers of the first and last days.
    """
    return weekday_from_day_number(new_year), isleap(year), isleap(year - 1), isleap(year + 1)


class RuleDays(Protocol):
    """The days that a rule selects, period by period. Consecutive periods have consecutive indexes."""

    cycle: int
    """The number of periods after which the pattern of days repeats."""
    max_days: int
    """The largest number of days that a period can have."""
    work: int
    """The approximate number of days that are looked at to find those of one period."""
    lookback: int
    """1 if a period may select days that lie in the next one, else 0."""

    def period_index(self, day: int) -> int:
        """Return the index of the period that a day lies in."""

    def base(self, period: int) -> tuple[int, Hashable]:
        """Return the first day of a period, and its kind: periods of one kind select the same offsets."""

    def offsets(self, period: int) -> tuple[int, ...]:
        """Return the days that the rule selects in a period, as offsets from its first day, ascending."""

    def next_period(self, period: int) -> int:
        """Return the first later period that may have a selected day."""


class DayFilter:
    """The parts that limit days, for any period: BYMONTH, BYMONTHDAY, BYYEARDAY, BYWEEKNO, BYDAY."""

    def __init__(self, rule: Rule, *, weekdays: Iterable[int] = ()) -> None:
        self._months = frozenset(rule.months)
        self._month_days = frozenset(rule.month_days)
        self._year_days = frozenset(rule.year_days)
        self._week_numbers = frozenset(rule.week_numbers)
        self._weekdays = frozenset(weekdays)
        self._week_start = rule.week_start
        self.is_unrestricted: bool = not (
            self._months or self._month_days or self._year_days or self._week_numbers or self._weekdays
        )
        self._by_kind: dict[Hashable, tuple[int, ...]] = {}

    def matches(self, day: int) -> bool:
        """Return whether a day passes all limits."""
        if self._weekdays and weekday_from_day_number(day) not in self._weekdays:
            return False
        if self._week_numbers and not self._matches_week(day):
            return False
        if not (self._months or self._month_days or self._year_days):
            return True
        when = date_from_day_number(day)
        return (
            (not self._months or when.month in self._months)
            and (not self._month_days or self._matches_month_day(when))
            and (not self._year_days or self._matches_year_day(when))
        )

    def first_from(self, day: int) -> int | None:
        """Return the first day that passes and is not before ``day``, or None if there is none."""
        if day > LAST_DAY:
            return None
        if self.is_unrestricted or self.matches(day):
            return day
        first_year = date_from_day_number(day).year
        for year in range(first_year, min(first_year + CYCLE_YEARS, LAST_YEAR) + 1):
            spend_steps()
            new_year = day_number(year, 1, 1)
            days = self._days_of_year(year, new_year)
            at = 0
            if year == first_year:
                at = bisect_left(days, day - new_year)
            if at < len(days):
                return new_year + days[at]
        return None

    def _days_of_year(self, year: int, new_year: int) -> tuple[int, ...]:
        kind = year_kind(year, new_year)
        days = self._by_kind.get(kind)
        if days is None:
            spend_steps(length := 365 + isleap(year))
            days = tuple(offset for offset in range(length) if self.matches(new_year + offset))
            self._by_kind[kind] = days
        return days

    def _matches_month_day(self, when: date) -> bool:
        length = monthrange(when.year, when.month)[1]
        return when.day in self._month_days or when.day - length - 1 in self._month_days

    def _matches_year_day(self, when: date) -> bool:
        number = when.timetuple().tm_yday
        return number in self._year_days or number - 366 - isleap(when.year) in self._year_days

    def _matches_week(self, day: int) -> bool:
        year = date_from_day_number(day).year
        if day >= first_week(year + 1, self._week_start):
            year += 1
        elif day < first_week(year, self._week_start):
            year -= 1
        weeks = (first_week(year + 1, self._week_start) - first_week(year, self._week_start)) // 7
        number = (day - first_week(year, self._week_start)) // 7 + 1
        return number in self._week_numbers or number - weeks - 1 in self._week_numbers


class DailyDays(RuleDays):
    """Every day that passes the limits. Each day is its own period."""

    max_days = work = 1
    lookback = 0

    def __init__(self, rule: Rule, start_weekday: int) -> None:
        weekdays = {day.weekday for day in rule.weekdays}
        reached = {(start_weekday + step * rule.interval) % 7 for step in range(7)}
        self._filter = DayFilter(rule, weekdays=weekdays)
        self._is_open = self._filter.is_unrestricted
        if weekdays and not weekdays & reached:
            self.cycle: int = 0
        else:
            self.cycle = 146_097

    @override
    def period_index(self, day: int) -> int:
        return day

    @override
    def base(self, period: int) -> tuple[int, Hashable]:
        return period, self._is_open or self._filter.matches(period)

    @override
    def offsets(self, period: int) -> tuple[int, ...]:
        return (0,) if self._filter.matches(period) else ()

    @override
    def next_period(self, period: int) -> int:
        if self._is_open:
            return period + 1
        return self._filter.first_from(period + 1) or LAST_DAY + 1


class WeeklyDays(RuleDays):
    """The weekdays of BYDAY, or DTSTART's, in weeks that begin on WKST."""

    max_days = work = 7
    lookback = 0

    def __init__(self, rule: Rule, start_weekday: int) -> None:
        self._week_start = rule.week_start
        limits = rule.months or rule.month_days or rule.year_days or rule.week_numbers
        weekdays = [day.weekday for day in rule.weekdays]
        if not weekdays and (rule.month_days or rule.year_days or rule.week_numbers):
            weekdays = list(range(7))
        elif not weekdays:
            weekdays = [start_weekday]
        self._in_week = tuple(sorted((weekday - self._week_start) % 7 for weekday in weekdays))
        self._filter: DayFilter | None = None
        self.cycle: int = 1
        if limits:
            self._filter = DayFilter(rule, weekdays=weekdays)
            self.cycle = 20_871

    @override
    def period_index(self, day: int) -> int:
        return (day + 3 - self._week_start) // 7

    @override
    def base(self, period: int) -> tuple[int, Hashable]:
        return period * 7 - 3 + self._week_start, self._filter is not None and period

    @override
    def offsets(self, period: int) -> tuple[int, ...]:
        if self._filter is None:
            return self._in_week
        first = self.base(period)[0]
        return tuple(offset for offset in self._in_week if self._filter.matches(first + offset))

    @override
    def next_period(self, period: int) -> int:
        if self._filter is None:
            return period + 1
        day = self._filter.first_from(self.base(period + 1)[0])
        if day is None:
            return self.period_index(LAST_DAY) + 1
        return self.period_index(day)


class MonthlyDays(RuleDays):
    """The days of BYMONTHDAY and BYDAY in each month, or DTSTART's day of the month."""

    cycle = CYCLE_YEARS * 12
    max_days = work = 31

    def __init__(self, rule: Rule, start: date) -> None:
        named = rule.month_days or rule.weekdays or rule.year_days or rule.week_numbers
        self._month_days = rule.month_days
        if not named:
            self._month_days = (start.day,)
        self._weekdays = rule.weekdays
        self._months = frozenset(rule.months) or frozenset(range(1, 13))
        self._skip = rule.skip
        self.lookback: int = int(rule.skip != "OMIT")
        others = Rule(
            Frequency.DAILY,
            year_days=rule.year_days,
            week_numbers=rule.week_numbers,
            week_start=rule.week_start,
        )
        self._filter = DayFilter(others)

    @override
    def period_index(self, day: int) -> int:
        when = date_from_day_number(day)
        return when.year * 12 + when.month - 1

    @override
    def base(self, period: int) -> tuple[int, Hashable]:
        year, month = divmod(period, 12)
        first = day_number(year, month + 1, 1)
        if month + 1 not in self._months:
            return first, None
        if not self._filter.is_unrestricted:
            return first, (month, year_kind(year, day_number(year, 1, 1)))
        return first, (weekday_from_day_number(first), monthrange(year, month + 1)[1])

    @override
    def offsets(self, period: int) -> tuple[int, ...]:
        year, month = divmod(period, 12)
        if month + 1 not in self._months:
            return ()
        length = monthrange(year, month + 1)[1]
        first = day_number(year, month + 1, 1)

        named: set[int] | None = None
        if self._month_days:
            resolved = (resolve_day(number, length, self._skip) for number in self._month_days)
            named = {day - 1 for day in resolved if day is not None}
        if self._weekdays:
            weekdays = nth_weekdays(self._weekdays, weekday_from_day_number(first), length)
            named = weekdays if named is None else named & weekdays
        if named is None:
            named = set(range(length))

        if self._filter.is_unrestricted:
            return tuple(sorted(named))
        return tuple(sorted(offset for offset in named if self._filter.matches(first + offset)))

    @override
    def next_period(self, period: int) -> int:
        period += 1
        if not self._filter.is_unrestricted:
            day = self._filter.first_from(self.base(period)[0])
            if day is None:
                period = self.period_index(LAST_DAY) + 1
            else:
                period = self.period_index(day)
        while period % 12 + 1 not in self._months:
            period += 1
        return period


def resolve_day(number: int, length: int, skip: str) -> int | None:
    """Return the 1-based day that BYMONTHDAY or BYYEARDAY means in a month or year of ``length`` days.

    A day that does not exist is dropped, or becomes its neighbour by SKIP (RFC 7529, section 4.1): 0 is the
    last day before, ``length + 1`` the first day after.
    """
    day = number
    if number < 0:
        day += length + 1
    if 1 <= day <= length:
        return day
    if skip == "OMIT":
        return None
    before = 0 if number < 0 else length
    return before + int(skip == "FORWARD")


def nth_weekdays(entries: Iterable[NthDay], first_weekday: int, length: int) -> set[int]:
    """Return the zero-based days that BYDAY selects in a month or year of that first weekday and length."""
    days: set[int] = set()
    for nth, weekday in entries:
        first = (weekday - first_weekday) % 7
        each = range(first, length, 7)
        if nth == 0:
            days.update(each)
        elif -len(each) <= nth <= len(each):
            days.add(each[nth - (nth > 0)])
    return days


_LEAST_WORK = 6
"""The work of looking at a year at all, in days."""


class YearlyDays(RuleDays):
    """The days of each calendar year that satisfy all of a rule's parts. DTSTART supplies missing ones.

    A week that extends into the next year belongs, day by day, to both: that is how BYSETPOS and INTERVAL
    count it.
    """

    cycle = CYCLE_YEARS
    max_days = 366

    def __init__(self, rule: Rule, start: date) -> None:
        self._rule = rule
        named = rule.month_days or rule.year_days or rule.weekdays or rule.week_numbers
        self._month_days = rule.month_days
        self._months = rule.months
        if not named:
            self._month_days = (start.day,)
            self._months = rule.months or (start.month,)
        self.lookback: int = int(rule.skip != "OMIT")

        self._weeks: DayFilter | None = None
        if rule.week_numbers:
            weeks = Rule(Frequency.DAILY, week_numbers=rule.week_numbers, week_start=rule.week_start)
            has_days = rule.weekdays or rule.month_days or rule.year_days
            self._weeks = DayFilter(weeks, weekdays=() if has_days else (start.weekday(),))

        self.work: int = self.max_days
        if self._month_days and not (rule.weekdays or rule.week_numbers):
            dates = len(self._month_days) * (len(self._months) or 12) + len(rule.year_days)
            self.work = min(self.max_days, _LEAST_WORK + dates)

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
            dates = ((offset, date_from_day_number(new_year + offset)) for offset in range(length))
            yield {offset for offset, day in dates if day.month in self._months}
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
        """Return BYDAY's days.

        Its numbers count within the month if the rule has BYMONTH, else within the year.
        """
        entries = self._rule.weekdays
        if not self._rule.months:
            return nth_weekdays(entries, weekday_from_day_number(new_year), length)
        days = set()
        for month in self._rule.months:
            first = day_number(year, month, 1)
            in_month = nth_weekdays(entries, weekday_from_day_number(first), monthrange(year, month)[1])
            days |= {first - new_year + offset for offset in in_month}
        return days
