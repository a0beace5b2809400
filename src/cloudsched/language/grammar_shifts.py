"""Parse days that are counted from other days: "the day before the last day of each month".

A weekday after another, or after a day of the month, is a weekday within a range of seven days of the month: the first
Tuesday after the first Monday is the Tuesday from the 2nd to the 8th.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import replace
from typing import TYPE_CHECKING

from cloudsched.language.grammar_days import parse_days
from cloudsched.language.grammar_numbers import parse_length, parse_ordinal
from cloudsched.language.grammar_points import parse_edge_noun, parse_repeated_edge
from cloudsched.language.nodes import DAY, Days, OnlyIf, Period, Pick, Unit
from cloudsched.language.result import Refused

if TYPE_CHECKING:
    from cloudsched.language.lexicon import Cursor
    from cloudsched.language.nodes import Clause

_WEEK = 7
_SURE_DAYS = 28
"""Every month has these."""
_A_LEAP_YEAR = 2028


def parse_shifted(c: Cursor) -> list[Clause] | None:
    """Parse days that are counted from days of every month or year."""
    return c.attempt(_parse_shifted_weekday) or c.attempt(_parse_shifted_days)


def _parse_base(c: Cursor) -> Days | None:
    """Parse the single day of a period from which another is counted."""
    c.take("on")
    c.take("article")
    result = parse_days(c) or parse_edge_noun(c) or parse_repeated_edge(c)
    if result is None or result.dates or len(result.picks) != 1 or not result.picks[0].nth or result.period is None:
        return None
    is_open = result.period.ahead is None and result.period.year is None
    return result if is_open and result.picks[0].what <= DAY else None


def _parse_shifted_days(c: Cursor) -> list[Clause] | None:
    """Parse ``the day before the last day of each month``, ``two days after the first Monday of the month``."""
    start = c.at
    c.take("each")
    c.take("on", "for")
    delta = _parse_days_apart(c)
    if delta is None:
        return None
    back = c.take("before") is not None
    if not back and c.take("after") is None:
        return None
    base = _parse_base(c)
    if base is None:
        return None
    delta = -delta if back else delta
    pick, span = base.picks[0], c.span(start)
    if pick.what == DAY:
        nth = _shift_day(pick.nth, delta, base.period or Period(), span)
        return [replace(base, picks=(Pick(nth, DAY),), on=True, span=span)]
    first, last = _find_range(pick.nth)
    return _make_range(base, (pick.what + delta) % _WEEK, first + delta, last + delta, span)


def _parse_days_apart(c: Cursor) -> int | None:
    c.take("article")
    if c.take("day-word") is not None:
        return 1
    length = parse_length(c)
    if length is None or any(unit not in (Unit.DAY, Unit.WEEK) for unit, _ in length.amounts):
        return None
    return sum(count * (_WEEK if unit == Unit.WEEK else 1) for unit, count in length.amounts)


def _shift_day(nth: int, delta: int, period: Period, span: tuple[int, int]) -> int:
    shifted = nth + delta
    if (shifted > 0) != (nth > 0) or not shifted:  # the day before the 1st is the last one of the month before
        shifted += -1 if nth > 0 else 1
        if period.months or period.quarter_months or period.interval > 1:
            raise Refused("inexpressible", span, "name the day in its own month")
    if abs(shifted) > _SURE_DAYS:
        raise Refused("inexpressible", span, "name a day that every month has")
    return shifted


def _parse_shifted_weekday(c: Cursor) -> list[Clause] | None:
    """Parse ``the first Tuesday after the first Monday in November``, ``the Friday before the 25th of each month``."""
    start = c.at
    c.take("each")
    c.take("on", "for")
    c.take("article")
    nth = parse_ordinal(c) or 1
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


def _make_range(base: Days, weekday: int, first: int, last: int, span: tuple[int, int]) -> list[Clause]:
    """Return a weekday within a range of days of the month."""
    period = base.period or Period()
    most = min((monthrange(_A_LEAP_YEAR + 1, month)[1] for month in period.months), default=_SURE_DAYS)
    if period.unit not in (Unit.MONTH, Unit.YEAR) or (period.unit == Unit.YEAR and not period.months):
        raise Refused("inexpressible", span, "count it from a day of the month")
    if first * last <= 0 or max(abs(first), abs(last)) > most:
        raise Refused("inexpressible", span, "name a day that is in the same month")
    picks = tuple(Pick(day, DAY) for day in range(first, last + 1))
    return [replace(base, picks=picks, on=True, span=span), OnlyIf((weekday,), span)]
