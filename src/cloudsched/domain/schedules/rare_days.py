"""The days that some of a rule's months or years lack: 29 February, day 31, a fifth Monday, week 53.

Such a rule leaves those months and years out, whoever wrote it and however. So the answer to its author says
so, with what runs in each of them instead, and so does its description.
"""

from __future__ import annotations

from calendar import isleap
from dataclasses import replace
from datetime import datetime
from math import gcd
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from cloudsched.domain.recurrence.rrule import Frequency, NthDay, Rule, parse_rule
from cloudsched.domain.schedules.words import find_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.schedules.words import English

Period = Literal["month", "year", "week"]
_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY = 2
_LEAP_DAY = 29
_MOST_BUSINESS_DAYS: Final = 20
"""The days from Monday to Friday that every month has."""
_SHORTEST_MONTH = 28
_WEEKS_OF_A_MONTH = 4
_WEEKS = 52
_DAYS = 365


class Missing(NamedTuple):
    """A day that some periods do not have.

    Attributes:
        period: What has no such day, or, for a week, what some years do not have.
        name: The day, such as ``a 5th Monday``.
        instead: What to say or to write for a day that all have.
        ends: It is at the end of the period beside the days before it or the last one, as in "the 2nd to the
            31st".
    """

    period: Period
    name: str
    instead: str
    ends: bool = False


def name_days(rule: Rule, start: datetime | None) -> Rule:
    """Return an equal rule that names the days which it takes from its start."""
    if start is None or rule.weekdays or rule.month_days or rule.year_days:
        return rule
    match rule.frequency:
        case Frequency.WEEKLY:
            return replace(rule, weekdays=(NthDay(0, start.weekday()),))
        case Frequency.YEARLY if rule.week_numbers:
            return replace(rule, weekdays=(NthDay(0, start.weekday()),))
        case Frequency.YEARLY | Frequency.MONTHLY if not rule.week_numbers:
            months = rule.months or ((start.month,) if rule.frequency == Frequency.YEARLY else ())
            return replace(rule, month_days=(start.day,), months=months)
        case _:
            return rule


def find_missing(rule: Rule, start: datetime | None, words: English) -> Iterator[Missing]:
    """Yield the days of a rule that some of its months or years do not have, in the words of a language."""
    rule = name_days(rule, start)
    months = _list_months(rule, start)
    is_leap = _is_in_leap_years(rule, start)
    lengths = [_LENGTHS[month - 1] + (is_leap and month == _FEBRUARY) for month in months]
    weeks = _WEEKS_OF_A_MONTH
    period: Period = "year"
    month = None
    if rule.frequency == Frequency.YEARLY and not rule.months:
        weeks = _WEEKS
    elif len(months) == 1:
        month = months[0]
    else:
        period = "month"
    where = words.name_period(period, month)

    if rule.positions:
        yield from _find_missing_positions(rule, period, weeks, min(lengths), words)
        return
    if rule.skip == "OMIT":
        for day in rule.month_days:
            if min(lengths) < abs(day) and (len(months) > 1 or abs(day) <= _LEAP_DAY):
                kind = "date" if period == "year" and day > 0 else "day"
                name = words.name_lacking(kind, day, words.months[_FEBRUARY - 1])
                ends = _ends(day, _SHORTEST_MONTH, rule.month_days)
                yield Missing(period, name, words.say_instead(day, where), ends)
    for nth, weekday in rule.weekdays:
        if abs(nth) > weeks:
            name = words.name_lacking("weekday", nth, words.weekdays[weekday])
            ends = _ends(nth, weeks, [day.nth for day in rule.weekdays if day.weekday == weekday])
            yield Missing(period, name, words.say_instead(nth, where, weekday), ends)
    yield from _find_missing_numbers(rule, words, is_leap=is_leap)


def _find_missing_numbers(rule: Rule, words: English, *, is_leap: bool) -> Iterator[Missing]:
    """Yield the numbers of weeks and of days that some years do not have."""
    for week in rule.week_numbers:
        if abs(week) > _WEEKS:
            instead = words.write_instead.format("BYWEEKNO=-1" if week > 0 else "BYWEEKNO=1")
            name = words.name_lacking("week", week)
            yield Missing("week", name, instead, _ends(week, _WEEKS, rule.week_numbers))
    if is_leap:
        return
    for day in rule.year_days:
        if abs(day) > _DAYS:
            instead = words.say_instead(day, words.name_period("year", None))
            name = words.name_lacking("day of year", day)
            yield Missing("year", name, instead, _ends(day, _DAYS, rule.year_days))


def _find_missing_positions(rule: Rule, period: Period, weeks: int, shortest: int, words: English) -> Iterator[Missing]:
    """Yield the places of BYSETPOS that are beyond what each month or year has."""
    if rule.frequency > Frequency.MONTHLY or rule.year_days or rule.week_numbers:
        return
    if any(day.nth for day in rule.weekdays):
        return

    if rule.month_days:
        days = sum(abs(day) <= shortest for day in rule.month_days)
    else:
        days = weeks * len(rule.weekdays)
    spans = 1
    if rule.frequency == Frequency.YEARLY:
        spans = max(len(rule.months), 1)
    times = max(len(rule.hours), 1) * max(len(rule.minutes), 1) * max(len(rule.seconds), 1)
    kind = "place"
    day = ""
    if len(rule.weekdays) == 1 and times == 1:
        kind = "weekday"
        day = words.weekdays[rule.weekdays[0].weekday]
    for place in rule.positions:
        if abs(place) > days * spans * times:
            name = words.name_lacking(kind, abs(place), day)
            yield Missing(period, name, words.write_instead.format("BYSETPOS=-1"))


def tell_missing(schedule: RuledSchedule, locale: str = "en") -> tuple[str, ...]:
    """Return one sentence about the first of the days that some months or years do not have, if there is one.

    A day that follows those before it to the end of the month surprises nobody: "the 2nd to the 31st".
    """
    words = find_words(locale)
    if schedule.dtstart is None:
        start = None
    else:
        start = datetime.fromisoformat(schedule.dtstart)
    found = [each for rule in schedule.rules for each in find_missing(parse_rule(rule), start, words) if not each.ends]
    if abs(number := schedule.business_day or 0) > _MOST_BUSINESS_DAYS:
        instead = words.write_instead.format("businessDay -1")
        found.append(Missing("month", words.name_lacking("free day", number), instead))
    if not found:
        return ()
    missing = found[0]
    is_only = schedule.business_day or _has_one_day(schedule)
    sentences = words.rarely["only" if is_only else "also"]
    return (sentences[missing.period].format(missing.name, missing.instead),)


def _has_one_day(schedule: RuledSchedule) -> bool:
    rule = parse_rule(schedule.rules[0])
    days = rule.positions or rule.month_days or rule.year_days or rule.week_numbers or rule.weekdays
    return len(schedule.rules) == 1 and len(days) <= 1


class RuledSchedule(Protocol):
    """The fields of a schedule that say on which days it runs. `Schedule` documents them."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The RRULE values."""

    @property
    def dtstart(self) -> str | None:
        """The local time from which the rules count."""

    @property
    def business_day(self) -> int | None:
        """The free day of the month to which occurrences move."""


def _list_months(rule: Rule, start: datetime | None) -> list[int]:
    """Return the months that a rule has days in."""
    step = 1
    if rule.frequency == Frequency.MONTHLY and start is not None:
        step = gcd(rule.interval, 12)
    months = [month for month in rule.months or range(1, 13) if start is None or (month - start.month) % step == 0]
    return months or list(rule.months)


def _is_in_leap_years(rule: Rule, start: datetime | None) -> bool:
    """Return whether all years of a rule are leap years, until 2100."""
    years = {Frequency.YEARLY: rule.interval, Frequency.MONTHLY: rule.interval / 12}.get(rule.frequency, 1)
    return start is not None and years % 4 == 0 and isleap(start.year)


def _ends(value: int, most: int, among: Sequence[int]) -> bool:
    """Return whether the last value is among the values, or those just before one that each period has."""
    sign = 1 if value > 0 else -1
    return -sign in among or all(sign * each in among for each in range(most - 2, abs(value)))
