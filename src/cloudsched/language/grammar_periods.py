"""Parse the periods in which days are counted: months, quarters and years."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.language.grammar_numbers import MOST_ITEMS, parse_number, parse_ordinal, parse_ordinals
from cloudsched.language.nodes import Period, Unit, WeekStart

if TYPE_CHECKING:
    from cloudsched.language.cursor import Cursor


def parse_period(c: Cursor, *, nth: bool, each: bool) -> Period | None:
    """Parse the period of days: ``of every month``, ``in November``, ``of the 2nd month of each quarter``."""
    start = c.at
    has_preposition = c.take("of", "in") is not None
    if not has_preposition and not (nth and c.sees("month")) and not (nth and c.sees("each", "per")):
        return None
    article = c.take("article") is not None
    ahead = c.take("next")
    if ahead is not None:
        unit = c.take("unit")
        if unit is not None and unit.value in (Unit.MONTH, Unit.QUARTER, Unit.YEAR):
            return Period(Unit(unit.value), ahead=ahead.value)
        c.at = start
        return None
    repeated = c.take("each")
    named = parse_months(c)
    if named:
        year = parse_year(c)
        return Period(Unit.YEAR, months=named, year=year, each=repeated is not None or each)
    interval = 1
    if repeated is not None:
        other = c.take("other")
        interval = 2 if other is not None else (parse_number(c) or parse_ordinal(c) or 1)
        if interval < 1:
            c.at = start
            return None
    quarter_months: tuple[int, ...] = ()
    nths = [] if repeated else parse_ordinals(c)
    if nths and c.take("unit") is not None and c.take("of", "in") is not None:
        quarter_months = tuple(nths)
        article = c.take("article") is not None
        repeated = c.take("each")
    elif nths:
        c.at = start
        return None
    unit = c.take("unit")
    if unit is not None and unit.value in (Unit.MONTH, Unit.QUARTER, Unit.YEAR):
        if quarter_months and (unit.value != Unit.QUARTER or not all(1 <= n <= 3 for n in quarter_months)):
            c.at = start
            return None
        return Period(
            Unit(unit.value),
            interval,
            quarter_months=quarter_months,
            each=repeated is not None,
            definite=article and repeated is None,
        )
    year = parse_year(c) if unit is None and has_preposition and nth and not repeated else None
    if year is None:
        c.at = start
        return None
    return Period(Unit.YEAR, year=year)


def parse_months(c: Cursor) -> tuple[int, ...]:
    """Parse names of months: lists, and ranges such as ``June to August``."""
    result: list[int] = []
    while len(result) < MOST_ITEMS:
        before = c.at
        if result:
            if not c.skip("comma", "and", "or"):
                break
            c.take("in")
        month = c.take("month")
        if month is None or c.sees("ordinal") or (result and c.sees("number", "tens")):
            c.at = before
            break
        middle = c.at
        if c.take("to", "dash") is not None:
            last = c.take("month")
            if last is not None and not c.sees("number", "ordinal", "tens"):
                result += [(month.value - 1 + step) % 12 + 1 for step in range((last.value - month.value) % 12 + 1)]
                continue
            c.at = middle
        result.append(month.value)
    return tuple(dict.fromkeys(result))


def parse_year(c: Cursor) -> int | None:
    """Parse a year of four digits, or in words."""
    start = c.at
    c.take("comma")
    c.take("of", "in")
    token = c.token
    value = parse_number(c) if token is not None and c.sees("number") else None
    if value is None or not 1900 <= value <= 9998 or (token is not None and len(token.text) not in {3, 4}):
        c.at = start
        return None
    if c.sees("unit", "times", "halfday", "oclock", "month"):
        c.at = start
        return None
    return value


def parse_week_start(c: Cursor) -> WeekStart | None:
    """Parse ``(weeks begin on Sunday)``."""
    start = c.at
    c.take("open")
    day = c.take("weekday") if c.take("week-start") is not None else None
    if day is None:
        return None
    c.take("close")
    return WeekStart(day.value, c.span(start))
