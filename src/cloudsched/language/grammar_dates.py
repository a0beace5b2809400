"""Parse dates: a month with one or several days, numeric dates, and feasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.language.grammar_numbers import MOST_ITEMS, NOT_A_DAY, parse_number, parse_ordinal
from cloudsched.language.grammar_periods import parse_months, parse_year
from cloudsched.language.nodes import Date
from cloudsched.language.refusals import Refused
from cloudsched.language.tokens import DATE, NUMBER, ORDINAL, PAIR

if TYPE_CHECKING:
    from cloudsched.language.cursor import Cursor


def parse_dates(c: Cursor) -> list[Date] | None:
    """Parse a month with one or several days, a numeric date, or a feast; a weekday may stand before it."""
    start = c.at
    weekday = c.take("weekday")
    if weekday is not None:
        c.take("comma")
    of_weekday = weekday.value if weekday is not None else None
    token = c.token
    feast = c.take("feast")
    if feast is not None:
        year = parse_year(c)
        return [Date(*divmod(feast.value, 100), year=year, weekday=of_weekday, span=c.span(start))]
    if token is not None and token.kind in {DATE, PAIR}:
        one = parse_numeric_date(c)
        return None if one is None else [_add_weekday(one, of_weekday, c, start)]
    c.take("article")
    month = c.take("month")
    result = _parse_days_after_month(c) if month is not None else None
    if month is None:
        result = _parse_days_before_month(c)
        before = c.at
        several = len(parse_months(c)) > 1 if result else False
        c.at = before
        month = c.take("month") if result and not several else None
    if month is None or not result:
        if of_weekday is None:
            return None
        return _parse_weekday_the_nth(c, start, of_weekday)
    year = parse_year(c)
    year = _parse_short_year(c) if year is None else year
    span = c.span(start)
    for day in result:
        if not 1 <= day <= 31:
            raise Refused("no-such-date", span)
    if len(result) > 1 and of_weekday is not None:
        return None
    return [Date(month.value, day, year, of_weekday, span=span) for day in result]


def _add_weekday(date: Date, weekday: int | None, c: Cursor, start: int) -> Date:
    return Date(date.month, date.day, date.year, weekday, date.swapped, span=c.span(start))


def _parse_weekday_the_nth(c: Cursor, start: int, weekday: int) -> list[Date] | None:
    c.at = start + 1
    c.take("comma")
    article = c.take("article") is not None
    token = c.token
    value = parse_ordinal(c)
    if value is None or value < 1 or c.sees("of", "unit", "month", "weekday", "dayset"):
        return None
    if not article and token is not None and token.kind != ORDINAL:
        return None
    return [Date(day=value, weekday=weekday, span=c.span(start))]


def _parse_short_year(c: Cursor) -> int | None:
    token = c.token
    if token is not None and token.text == "'" and len(c.tokens) > c.at + 1 and c.tokens[c.at + 1].kind == NUMBER:
        value = c.tokens[c.at + 1].value[0]
        if value <= 99:
            c.at += 2
            return 2000 + value
    return None


def _parse_days_after_month(c: Cursor) -> list[int] | None:
    """Parse the days that follow a month's name: ``20 and 30``, ``the 15th``, ``on day 20``."""
    result: list[int] = []
    while len(result) < MOST_ITEMS:
        before = c.at
        if result and not c.skip("comma", "and", "or"):
            break
        c.take("on")
        c.take("article")
        c.take("day-number")
        token = c.token
        value = parse_ordinal(c)
        if value is None:
            value = parse_number(c)
        wrong = c.sees(*NOT_A_DAY, "of", "month", "weekday", "weekdays", "dayset") or (
            c.token is not None and c.token.glued and c.sees("halfday-short", "unit-short")
        )
        if value is None or value < 1 or (token is not None and token.kind == NUMBER and len(token.text) > 2) or wrong:
            c.at = before
            break
        middle = c.at
        last = (parse_ordinal(c) or parse_number(c)) if c.take("to", "dash") is not None else None
        if last is not None and value < last <= 31 and not c.sees(*NOT_A_DAY):
            result += range(value, last + 1)
        else:
            c.at = middle
            result.append(value)
    return result or None


def _parse_days_before_month(c: Cursor) -> list[int] | None:
    """Parse the days that stand before a month's name: ``24``, ``the 1st and 15th of``."""
    result: list[int] = []
    plain = True
    while len(result) < MOST_ITEMS:
        before = c.at
        if result and not c.skip("comma", "and", "or"):
            break
        c.take("article")
        token = c.token
        value = parse_ordinal(c)
        plain = plain and value is None
        if value is None and token is not None and token.kind == NUMBER and len(token.text) <= 2:
            value = parse_number(c)
        if value is None or value < 1:
            c.at = before
            break
        result.append(value)
    if not result:
        return None
    c.take("day-word")
    of = c.take("of") is not None
    c.take("article")
    if of and plain and len(result) > 1:
        return None  # "3,15 of January" names days of a month, as "3,15 of month" does
    return result if c.sees("month") else None


def parse_numeric_date(c: Cursor) -> Date | None:
    """Parse ``2027-01-31``, ``3/4``, ``17.12.27``."""
    start = c.at
    token = c.token
    if token is None:
        return None
    c.at += 1
    if token.kind == PAIR and "-" in token.text and c.sees("of"):
        return None  # "1-7 of June" is a range
    if token.kind == DATE:
        year, month, day = token.value
        if not (1 <= month <= 12 and 1 <= day <= 31):
            raise Refused("no-such-date", c.span(start))
        return Date(month, day, year, span=c.span(start))
    year_said = token.value[2] if len(token.value) > 2 else None
    if year_said is not None and year_said < 100:
        year_said += 2000
    first, second = token.value[:2]
    if "." in token.text and len(token.value) == 2 and c.language.month_first is not False:
        return None
    if "." in token.text or c.language.month_first is False:
        month_first: bool | None = False
    else:
        month_first = c.language.month_first
    if first > 12 or month_first is False:
        month, day, swapped = second, first, None
    else:
        month, day = first, second
        swapped = (second, first) if second <= 12 and first != second and month_first is None else None
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return Date(month, day, year_said, swapped=swapped, span=c.span(start))
