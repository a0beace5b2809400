"""Parse days: weekdays, days of a period, dates, and lists and ranges of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cloudsched.language.grammar_dates import parse_dates
from cloudsched.language.grammar_numbers import MOST_ITEMS, NOT_A_DAY, parse_number, parse_ordinals
from cloudsched.language.grammar_periods import parse_period
from cloudsched.language.nodes import DAY, WEEKENDDAY, WORKDAY, Date, Days, Period, Pick, Unit
from cloudsched.language.tokens import NUMBER, PAIR

if TYPE_CHECKING:
    from cloudsched.language.cursor import Cursor

WORKING, WEEKEND = (0, 1, 2, 3, 4), (5, 6)
SETS = {0: WORKING, 1: WEEKEND, 2: WEEKEND, 3: (*WORKING, *WEEKEND)}


def parse_days(c: Cursor, *, each: bool = False) -> Days | None:
    """Parse days: ``mondays and fridays``, ``2nd and last Friday of each month``, ``Dec 24``, ``1st, 15th``."""
    start = c.at
    chosen = c.attempt(_parse_positions)
    if chosen is not None:
        return replace(chosen, span=c.span(start))
    result = c.attempt(_parse_dates) or c.attempt(lambda c: _parse_named_days(c, each=each))
    if result is None:
        c.at = start
        return None
    picks, on_dates, period, plural, weeks = result
    return Days(
        picks,
        period,
        on_dates,
        weeks=weeks,
        marked=each or plural or (period is not None and period.each),
        loose=each and period is None and any(pick.nth > 1 and pick.what < DAY for pick in picks),
        plural=plural,
        business=any("business" in matches for matches in c.matches[start : c.at]),
        span=c.span(start),
    )


def _parse_positions(c: Cursor) -> Days | None:
    """Parse ``the 1st and last of Monday to Friday``, and ``the last day of every leap year``."""
    c.take("article")
    nths = parse_ordinals(c)
    if not nths:
        return None
    if c.take("day-word") is not None:
        leap = c.take("leap-year") is not None and len(nths) == 1 and nths[0] in _LEAP_DAYS
        return Days((Pick(_LEAP_DAYS[nths[0]], DAY),), Period(Unit.YEAR), marked=True) if leap else None
    if c.take("of") is None or not c.sees("weekday"):
        return None
    found = _parse_names(c, sets=False)
    picks = tuple(Pick(0, pick.what) for pick in found[0]) if found is not None else ()
    return Days(picks, marked=True, on=True, positions=tuple(nths)) if len(picks) > 1 else None


_LEAP_DAYS = {1: -366, -1: 366}
"""The first and last days of leap years by position, as days of the year that other years do not have."""

_Found = tuple[tuple[Pick, ...], tuple[Date, ...], Period | None, bool, tuple[int, ...]]


def _parse_named_days(c: Cursor, *, each: bool) -> _Found | None:
    picks: list[Pick] = []
    plural = False
    count = 0
    while len(picks) < MOST_ITEMS:
        before = c.at
        again = False
        if picks:
            joined = c.skip("comma", "and", "or", "also")
            c.take("on")
            again = c.take("each") is not None
            if not joined and (picks[-1].nth or not c.sees("weekday", "weekdays")):
                c.at = before
                break
        result = _parse_item(c, listed=each or (again and count > 0))
        if result is None:
            c.at = before
            break
        count += 1
        items, is_plural = result
        plural = plural or is_plural
        picks += [pick for pick in items if pick not in picks]
    if not picks:
        return None
    period = parse_period(c, nth=any(pick.nth for pick in picks), each=each)
    weeks = _parse_weeks(c) if period is None else ()
    return tuple(picks), (), period, plural, weeks


def _parse_item(c: Cursor, *, listed: bool) -> tuple[list[Pick], bool] | None:
    """Parse one item: ordinals with what they count, or names of days."""
    start = c.at
    article = c.take("article") is not None
    nths = parse_ordinals(c)
    if not nths:
        c.at = start
        return _parse_names(c) or _parse_month_days(c, listed=listed)
    alone = not (article or listed or c.sees("of", "each", "per", "month"))
    unit = c.take("day-word")
    if unit is not None and not c.sees("weekday"):
        return [Pick(nth, DAY) for nth in nths], False
    named = _parse_names(c, sets=False)
    if named is not None:
        return [Pick(nth, pick.what) for nth in nths for pick in named[0]], named[1]
    special = c.take("dayset", "daysets")
    if special is not None:
        what = WORKDAY if special.value == 0 else WEEKENDDAY if special.value == 2 else None
        if what is None:
            c.at = start
            return None
        return [Pick(nth, what) for nth in nths], False
    if c.sees("month", "unit", "part") or (alone and nths[-1] < 0):
        c.at = start
        return None
    return [Pick(nth, DAY) for nth in nths], False


def _parse_names(c: Cursor, *, sets: bool = True) -> tuple[list[Pick], bool] | None:
    """Parse names of weekdays and ranges of them; a list is one item only after an ordinal."""
    picks: list[Pick] = []
    plural = False
    while len(picks) < MOST_ITEMS:
        before = c.at
        if picks:
            if sets or not c.skip("comma", "and", "or"):
                break
            if c.sees("article", "ordinal", "ordinal-end", "number", "tens"):
                c.at = before
                break
        several = c.take("weekdays")
        one = several or c.take("weekday")
        if one is None:
            c.at = before
            break
        plural = plural or several is not None
        first = one.value
        middle = c.at
        if c.take("to", "dash") is not None:
            last = c.take("weekday", "weekdays")
            if last is None:
                c.at = middle
            else:
                plural = True
                picks += [Pick(0, (first + step) % 7) for step in range((last.value - first) % 7 + 1)]
                continue
        picks.append(Pick(0, first))
    if picks:
        return picks, plural
    if not sets:
        return None
    c.take("article")
    several = c.take("daysets")
    special = several or c.take("dayset")
    if special is None:
        return None
    return [Pick(0, day) for day in SETS[special.value]], True


def _parse_month_days(c: Cursor, *, listed: bool) -> tuple[list[Pick], bool] | None:
    """Parse days of the month as numbers: ``3, 15 and 30 of the month``; ``day 20``; ``every 2, 15``."""
    start = c.at
    is_numbered = c.take("day-number") is not None
    result: list[int] = []
    while len(result) < MOST_ITEMS:
        before = c.at
        if result:
            c.skip("comma", "and", "or")
            c.take("day-number")
            if listed:
                c.take("each")
        if c.token is None or (c.token.kind != NUMBER and not is_numbered):
            c.at = before
            break
        value = parse_number(c)
        if value is None or not 1 <= value <= 31 or c.sees(*NOT_A_DAY):
            c.at = before
            break
        middle = c.at
        last = parse_number(c) if c.take("to", "dash") is not None else None
        if last is not None and value < last <= 31:
            result += range(value, last + 1)
        else:
            c.at = middle
            result.append(value)
    token = c.token
    if not result and token is not None and token.kind == PAIR and "-" in token.text and len(token.value) == 2:
        first, last = token.value
        c.at += 1
        if 1 <= first < last <= 31 and c.sees("of"):
            result = list(range(first, last + 1))
    if not result or not (is_numbered or c.sees("of") or (listed and len(result) > 1)):
        c.at = start
        return None
    before = c.at
    if c.sees("of") and not is_numbered and parse_period(c, nth=True, each=False) is None:
        c.at = start
        return None
    c.at = before
    return [Pick(value, DAY) for value in result], False


def _parse_weeks(c: Cursor) -> tuple[int, ...]:
    start = c.at
    result: list[int] = []
    if c.take("in", "of") is not None and c.take("week-number") is not None:
        while len(result) < MOST_ITEMS:
            before = c.at
            if result:
                c.skip("comma", "and", "or")
            value = parse_number(c)
            if value is None or not 1 <= value <= 53:
                c.at = before
                break
            result.append(value)
    if not result:
        c.at = start
    return tuple(result)


def _parse_dates(c: Cursor) -> _Found | None:
    result: list[Date] = []
    while len(result) < MOST_ITEMS:
        before = c.at
        if result:
            c.skip("comma", "and", "or", "also")
            c.take("on")
            c.take("each")
        some = c.attempt(parse_dates)
        if some is None:
            c.at = before
            break
        result += some
    return ((), tuple(result), None, False, ()) if result else None


def list_weekdays(pick: Pick) -> tuple[int, ...]:
    """Return the weekdays that a pick counts among."""
    return {WORKDAY: WORKING, WEEKENDDAY: WEEKEND, DAY: (*WORKING, *WEEKEND)}.get(pick.what, (pick.what,))
