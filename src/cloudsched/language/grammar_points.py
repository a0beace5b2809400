"""Parse points in the calendar that other clauses refer to, and times and days that are counted from them.

A weekday after another, or after a day of the month, is a weekday within a range of seven days of the month: the first
Tuesday after the first Monday is the Tuesday from the 2nd to the 8th.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from cloudsched.language.grammar_days import (
    WEEKENDS,
    parse_days,
    parse_months,
    parse_numeric_date,
    parse_period,
    parse_year,
)
from cloudsched.language.grammar_numbers import parse_length, parse_number, parse_ordinal, take_next
from cloudsched.language.lexicon import DATE, PAIR, Cursor, is_plain
from cloudsched.language.nodes import (
    DAY,
    Clause,
    Date,
    Days,
    Length,
    Months,
    OnlyIf,
    Period,
    Pick,
    Point,
    Relative,
    Unit,
    Within,
    Year,
)
from cloudsched.language.result import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.language.nodes import Span

_CALENDAR = (Unit.WEEK, Unit.MONTH, Unit.QUARTER, Unit.YEAR)


def parse_relative(c: Cursor) -> Relative | None:
    """Parse a one-off day or instant relative to now, to today or to another day."""
    start = c.at
    result = (
        c.attempt(_parse_day)
        or c.attempt(_parse_weeks_on)
        or c.attempt(_parse_from_now)
        or c.attempt(_parse_counted_weekday)
        or c.attempt(_parse_weekday_of_week)
        or c.attempt(_parse_next_weekday)
        or c.attempt(_parse_closest)
    )
    if result is None:
        c.at = start
    return result


def _parse_day(c: Cursor) -> Relative | None:
    start = c.at
    on = c.take("on")
    c.take("for")
    if c.sees("tonight") or (on is not None and c.sees("part")):
        return None  # "heute Morgen" is this morning, "am Morgen" in the morning, and neither is tomorrow
    result = c.take("relday")
    if result is None:
        c.at = start
        result = c.take("now")
        return None if result is None else Relative("now", span=c.span(start))
    day = Relative("day", result.value, span=c.span(start))
    later = c.attempt(_parse_whole_days) if c.take("in", "ahead") is not None else None
    if later is None:
        c.at = start
        c.take("on", "for")
        c.take("relday")
        return day
    return Relative("length", length=later, base=day, span=c.span(start))


def _parse_business_days(c: Cursor) -> int | None:
    count = parse_number(c)
    if count is None:
        count = 1 if c.take("a") is not None else None
    return count if count is not None and c.take("business") is not None else None


def _parse_the_business_day(c: Cursor) -> int | None:
    """Parse "the working day" in ``on the working day before Christmas``: one."""
    c.take("on")
    c.take("article")
    plural = c.sees("daysets")
    return 1 if c.take("business") is not None and not plural and c.sees("after", "before") else None


def _parse_whole_days(c: Cursor) -> Length | None:
    length = parse_length(c)
    return length if length is not None and length.finest >= Unit.DAY else None


def _parse_from_now(c: Cursor) -> Relative | None:
    """Parse ``in 20 minutes``, ``2 hours from now``, ``3 days after Easter``, ``a week from Monday``."""
    start = c.at
    if c.take("in", "ahead") is not None:
        business = c.attempt(_parse_business_days)
        if business is not None:
            return Relative("business", business, span=c.span(start))
        result = parse_length(c)
        return None if result is None else Relative("length", length=result, span=c.span(start))
    business = c.attempt(_parse_business_days) or c.attempt(_parse_the_business_day)
    if business is not None:
        if c.take("hence") is not None:
            return Relative("business", business, span=c.span(start))
        is_back = c.sees("before")
        point = parse_point(c) if c.take("after", "before") is not None else None
        if point is None or isinstance(point, Months | Year):
            return None
        return Relative("business", business, base=point, back=is_back, span=c.span(start))
    result = parse_length(c) or c.attempt(_parse_the_day)
    if result is None or "oclock" in c.matches[c.at - 1]:
        return None  # "9 uur van maandag tot vrijdag" is a time of day
    if c.take("hence") is not None:
        # "3 years from today" and "a day from now" count days; "a day from right now" counts from this instant.
        exact = "right" in c.tokens[c.at - 2].text
        return Relative("length", length=result, from_moment=exact, span=c.span(start))
    if result.finest >= Unit.WEEK and c.sees("relday"):  # "a week today"
        day = _parse_day(c)
        return None if day is None else Relative("length", length=result, base=day, span=c.span(start))
    back = c.sees("before")
    if c.take("after", "from", "before") is None:
        return None
    base = parse_point(c) or c.attempt(_parse_base) or c.attempt(_parse_last)
    if base is None or isinstance(base, Months | Year):
        return None
    return Relative("length", length=result, base=base, back=back, span=c.span(start))


def _parse_the_day(c: Cursor) -> Length | None:
    """Parse "the day" in ``the day after Easter``: one day."""
    start = c.at
    c.take("on")
    c.take("article")
    word = c.take("day-word")
    if word is None or not c.sees("after", "before"):
        return None
    return Length(((Unit.DAY, 1),), c.span(start))


def _parse_last(c: Cursor) -> Days | None:
    """Parse ``the last`` as the last day of a month, from which another is counted."""
    start = c.at
    c.take("article")
    end = c.take("ordinal-end")
    if end is None or (not c.ended and is_plain(c.matches[c.at])):
        return None
    return Days((Pick(end.value, DAY),), Period(definite=True), span=c.span(start))


def _parse_weeks_on(c: Cursor) -> Relative | None:
    """Parse ``a week on Friday``, ``in 2 weeks on Wednesday``, ``Friday in a week``."""
    start = c.at
    if start and not _IN_SERIES.isdisjoint(c.matches[start - 1]):
        return None  # "for 2 weeks on Mondays"
    c.take("on")
    named = c.take("weekday")
    has_in = c.take("in", "ahead") is not None
    length = parse_length(c) if has_in or named is None else None
    if length is None or length.finest != Unit.WEEK or len(length.amounts) > 1:
        return None
    if named is None:
        has_on = c.take("on") is not None
        named = c.take("weekday") if has_on or has_in else None
    if named is None:
        return None
    return Relative("weeks-on", length.amounts[0][1], named.value, from_moment=has_in, span=c.span(start))


_IN_SERIES = frozenset({"for", "each", "number", "the-next", "twice", "times"})


def _parse_counted_weekday(c: Cursor) -> Relative | None:
    """Parse ``two Tuesdays from now``, ``third Tuesday after Christmas``."""
    start = c.at
    c.take("on")
    c.take("article")
    count = parse_ordinal(c)
    if count is None:
        count = parse_number(c)
    named = c.take("weekdays", "weekday")
    if count is None or count < 1 or named is None:
        return None
    if c.take("hence") is not None:
        return Relative("weekdays", count, named.value, span=c.span(start))
    if c.take("after") is None:
        return None
    base = parse_point(c)
    if base is None or isinstance(base, Months | Year):
        return None
    return Relative("weekdays", count, named.value, base=base, span=c.span(start))


def _parse_weekday_of_week(c: Cursor) -> Relative | None:
    """Parse ``Wednesday next week``, ``Monday of the following week``, ``next week Wednesday``."""
    start = c.at
    c.take("on")
    named = c.take("weekday")
    if named is not None:
        c.take("comma")
        c.take("of", "in")
    found = take_next(c, "unit")
    if found is None or found[1] != Unit.WEEK:
        return None
    if named is None:
        c.take("on")
        named = c.take("weekday")
    if named is None:
        return None
    return Relative("week", weekday=named.value, ahead=found[0], span=c.span(start))


def _parse_next_weekday(c: Cursor) -> Relative | None:
    start = c.at
    c.take("on", "for")
    coming = c.take("coming")
    weekend = c.take("dayset") if coming is not None else None
    if weekend is not None and weekend.value in WEEKENDS:
        return Relative("weekend", ahead=0, span=c.span(start))
    if coming is not None and c.sees("weekday"):
        named = c.take("weekday")
        return None if named is None else Relative("weekday", weekday=named.value, span=c.span(start))
    c.at = start
    c.take("on", "for", "at")
    ahead = take_next(c, "dayset")
    if ahead is not None and ahead[1] in WEEKENDS:
        return Relative("weekend", ahead=ahead[0], span=c.span(start))
    c.at = start
    c.take("on", "for")
    found = take_next(c, "weekday")
    if found is None:
        return None
    return Relative("weekday", weekday=found[1], ahead=found[0], span=c.span(start))


def _parse_closest(c: Cursor) -> Relative | None:
    start = c.at
    c.take("on")
    c.take("article")
    if c.take("closest") is None:
        return None
    named = c.take("weekday")
    if named is None or c.take("to") is None:
        return None
    base = parse_point(c)
    if not isinstance(base, Date | Relative):
        return None
    return Relative("closest", weekday=named.value, base=base, span=c.span(start))


def parse_edge(c: Cursor) -> Relative | None:
    """Parse ``the end of the month``, ``the beginning of next year``."""
    start = c.at
    c.take("at", "on", "in")
    result = c.take("edge")
    if result is None or (c.take("of", "in") is None and not c.sees("month", "next")):
        return None
    c.take("article")
    each = c.take("each")
    if each is not None:
        return None
    month = c.take("month")
    year = parse_year(c)
    if month is not None or year is not None:
        base = Date(month.value if month is not None else None, None, year)
        return Relative("edge", result.value, base=base, span=c.span(start))
    found = take_next(c, "unit")
    unit = c.take("unit") if found is None else None
    if found is None and unit is not None:
        found = (0, unit.value)
    if found is None or found[1] not in _CALENDAR:
        return None
    return Relative("edge", result.value, ahead=found[0], unit=Unit(found[1]), span=c.span(start))


def parse_repeated_edge(c: Cursor) -> Days | None:
    """Parse ``the end of each month``, ``beginning of March``, or ``at the end`` next to "every month"."""
    start = c.at
    c.take("at", "on")
    result = c.take("edge")
    if result is None:
        return None
    before = c.at
    period = parse_period(c, nth=True, each=False)
    if period is None:
        c.at = before
    what = 7
    return Days(
        (Pick(result.value, what),), period, marked=period is not None and period.each, on=True, span=c.span(start)
    )


def parse_edge_noun(c: Cursor) -> Days | None:
    """Parse ``month end``, ``zum Quartalsende``: a word for the first or the last day of a period."""
    start = c.at
    c.take("at", "on", "in")
    c.take("article")
    found = c.take("edge-noun")
    if found is None:
        return None
    period = Period(Unit(abs(found.value)), definite=True)
    return Days((Pick(1 if found.value > 0 else -1, DAY),), period, on=True, span=c.span(start))


def parse_within(c: Cursor) -> Within | None:
    """Parse ``next week``, ``this month``: the period within which the rest of the phrase happens."""
    start = c.at
    found = c.attempt(lambda c: take_next(c, "unit")) if c.take("in", "for", "on") is not None else None
    if found is None:
        c.at = start
        found = take_next(c, "unit")
    if found is None or found[1] not in (Unit.WEEK, Unit.MONTH, Unit.QUARTER):
        return None
    return Within(Unit(found[1]), found[0], c.span(start))


def parse_point(c: Cursor) -> Point | None:
    """Parse a day, a month or a year at which a schedule starts or ends, or that it leaves out."""
    start = c.at
    rules: tuple[Callable[[Cursor], Point | None], ...] = (
        parse_relative,
        parse_edge,
        _parse_next_unit,
        _parse_single_date,
        _parse_day_of_period,
    )
    for rule in rules:
        result = rule(c)
        if result is not None:
            return result
        c.at = start
    c.at = start
    c.take("in", "on")
    c.take("article")
    named = parse_months(c)
    if named:
        year = parse_year(c)
        if year is not None:
            return Date(named[0], None, year, span=c.span(start)) if len(named) == 1 else None
        if c.sees("number", "ordinal", "tens"):
            c.at = start
            return None  # a day of the month follows, so that it was a list of dates
        return Months(named, span=c.span(start))
    year = parse_year(c)
    if year is not None:
        return Year(year, span=c.span(start))
    c.at = start
    return None


def _parse_next_unit(c: Cursor) -> Relative | Year | None:
    start = c.at
    found = take_next(c, "unit")
    if found is None or found[1] not in _CALENDAR:
        return None
    if found[1] == Unit.YEAR:
        return Year(ahead=found[0], span=c.span(start))
    return Relative("unit", ahead=found[0], unit=Unit(found[1]), span=c.span(start))


def _parse_single_date(c: Cursor) -> Date | None:
    start = c.at
    c.take("on")
    token = c.token
    if token is not None and token.kind in {DATE, PAIR}:
        return parse_numeric_date(c)
    result = parse_days(c)
    if result is None or len(result.dates) != 1:
        c.at = start
        return None
    return result.dates[0]


def _parse_day_of_period(c: Cursor) -> Days | Relative | None:
    start = c.at
    c.take("on")
    c.take("article")
    c.at = c.at if c.sees("ordinal", "ordinal-end", "weekday", "weekdays", "dayset", "daysets") else start
    result = parse_days(c)
    if result is None or result.dates or len(result.picks) != 1:
        return None
    pick = result.picks[0]
    if not pick.nth and result.period is None and not result.marked:
        return Relative("weekday", weekday=pick.what, span=result.span)
    return result if pick.nth else None


def parse_year_limit(c: Cursor) -> Year | None:
    """Parse ``in 2027``, ``this year``, ``during next year``."""
    start = c.at
    c.take("in", "for")
    year = parse_year(c)
    if year is not None and c.at > start + 1:
        return Year(year, span=c.span(start))
    c.at = start
    c.take("in")
    ahead = c.take("next")
    unit = c.take("unit")
    if ahead is None or unit is None or unit.value != Unit.YEAR:
        return None
    return Year(ahead=ahead.value, span=c.span(start))


_WEEK = 7
_SURE_DAYS = 28
"""The number of days that every month has."""
_A_LEAP_YEAR = 2028


def _parse_base(c: Cursor) -> Days | None:
    """Parse the single day of a period from which another is counted."""
    c.take("on")
    c.take("article")
    result = parse_days(c) or parse_edge_noun(c) or parse_repeated_edge(c)
    if result is None or result.dates or len(result.picks) != 1 or not result.picks[0].nth or result.period is None:
        return None
    is_open = result.period.ahead is None and result.period.year is None
    return result if is_open and result.picks[0].what <= DAY else None


def parse_shifted(c: Cursor) -> list[Clause] | None:
    """Parse ``the first Tuesday after the first Monday in November``, ``the Friday before the 25th of each month``."""
    start = c.at
    c.take("each")
    c.take("on", "for")
    c.take("article")
    nth = parse_ordinal(c) or parse_number(c) or 1
    named = c.take("weekday", "weekdays")
    if named is None:
        return None
    included = c.take("on-or")
    if included is not None:
        back = included.value < 0
    else:
        back = c.take("before") is not None
        if not back and c.take("after") is None:
            return None
    if nth < 0 and not (back and nth == -1):
        return None  # "the last Friday after the 10th" has no end
    base = _parse_base(c)
    if base is None:
        return None
    weeks, pick, span = abs(nth) - 1, base.picks[0], c.span(start)
    if pick.what == DAY:
        near = 0 if included is not None else 1
        first, last = (pick.nth - near - 6, pick.nth - near) if back else (pick.nth + near, pick.nth + near + 6)
        delta = 0
    else:
        delta = -((pick.what - named.value - 1) % _WEEK + 1) if back else (named.value - pick.what - 1) % _WEEK + 1
        delta = 0 if included is not None and pick.what == named.value else delta
        first, last = _find_range(pick.nth)
    delta += -_WEEK * weeks if back else _WEEK * weeks
    return _make_range(base, named.value, first + delta, last + delta, span)


def _find_range(nth: int) -> tuple[int, int]:
    """Return the days of the month on which the nth of a weekday may be."""
    return (_WEEK * nth - 6, _WEEK * nth) if nth > 0 else (_WEEK * nth, _WEEK * nth + 6)


def _make_range(base: Days, weekday: int, first: int, last: int, span: Span) -> list[Clause]:
    return [_make_days(base, first, last, span), OnlyIf((weekday,), span)]


def _make_days(base: Days, first: int, last: int, span: Span) -> Days:
    """Return the days of the month from one to another, which are counted as the day of `base` is.

    Before the first day is the last one of the month before, and behind the last is the first of the next one.
    """
    period = base.period or Period()
    most = min((monthrange(_A_LEAP_YEAR + 1, month)[1] for month in period.months), default=_SURE_DAYS)
    if period.unit not in (Unit.MONTH, Unit.YEAR) or (period.unit == Unit.YEAR and not period.months):
        raise Refused("inexpressible", span, "count it from a day of the month")
    from_start = base.picks[0].nth > 0
    days = range(first, last + 1)
    is_over = any(day <= 0 if from_start else day >= 0 for day in days)
    is_far = max(map(abs, (base.picks[0].nth, *days))) > most
    if is_far or (is_over and (period.months or period.interval > 1)):
        raise Refused("inexpressible", span, "name a day that is in the same month")
    if from_start:
        picks = tuple(Pick(day if day > 0 else day - 1, DAY) for day in days)
    else:
        picks = tuple(Pick(day if day < 0 else day + 1, DAY) for day in days)
    return replace(base, picks=picks, on=True, span=span)


_IN_DAYS = {Unit.DAY: 1, Unit.WEEK: _WEEK}
_A_YEAR = 365


def count_date(node: Relative, base: Date) -> Date:
    """Return the date that lies a number of days before or after one of each year, such as Christmas."""
    if base.year is not None or not base.month or not base.day or base.weekday is not None:
        raise Refused("contradiction", node.span)
    shift = timedelta(days=_count_in_days(node, most=_A_YEAR))
    if base.day > monthrange(_A_LEAP_YEAR + 1, base.month)[1]:
        raise Refused("inexpressible", node.span, "name a date that every year has")
    days = [date(year, base.month, base.day) + shift for year in (2027, 2028)]
    found = {(day.month, day.day) for day in days}
    if len(found) > 1:  # a 29 February lies between
        raise Refused("inexpressible", node.span, "name the date")
    [(month, day)] = found
    return Date(month, day, span=node.span)


def _count_in_days(node: Relative, most: int = _SURE_DAYS) -> int:
    amounts = node.length.amounts if node.length is not None else ()
    if not amounts or any(unit not in _IN_DAYS for unit, _ in amounts):
        raise Refused("inexpressible", node.span, "count it in days or weeks")
    result = sum(_IN_DAYS[unit] * count for unit, count in amounts)
    if result > most:
        raise Refused("inexpressible", node.span, "name a day that is nearer")
    return -result if node.back else result


def count_days(node: Relative, period: Period) -> tuple[Days, OnlyIf | None]:
    """Return the days that lie a number of days before or after a day of each period."""
    base, span = node.base, node.span
    if not isinstance(base, Days):
        raise Refused("inexpressible", span, "count it from a day of the month")
    base = replace(base, period=period, marked=True)
    shift = _count_in_days(node)
    pick = base.picks[0]
    if pick.what > DAY:
        raise Refused("inexpressible", span, "count it from a weekday or a day of the month")
    first, last = (pick.nth, pick.nth) if pick.what == DAY else _find_range(pick.nth)
    days = _make_days(base, first + shift, last + shift, span)
    return days, None if pick.what == DAY else OnlyIf(((pick.what + shift) % _WEEK,), span)
