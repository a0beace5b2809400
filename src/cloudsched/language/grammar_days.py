"""Parse days: weekdays, days of a period, dates, and lists and ranges of them.

A date is a month with one or several days, numbers, or a feast. The periods in which days are counted are weeks,
months, quarters and years.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from cloudsched.language.grammar_numbers import (
    EVERY_OTHER,
    MONTHS,
    MOST_ITEMS,
    NOT_A_DAY,
    WEEKDAYS,
    list_around,
    parse_list,
    parse_number,
    parse_ordinal,
    parse_ordinals,
    parse_run,
    take_next,
)
from cloudsched.language.lexicon import DATE, NUMBER, ORDINAL, PAIR, Cursor, Matches
from cloudsched.language.nodes import DAY, NOWHERE, WEEKENDDAY, WORKDAY, Date, Days, Period, Pick, Unit
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES, Rule


def parse_period(c: Cursor, *, nth: bool, each: bool) -> Period | None:
    """Parse the period of days: ``of every month``, ``in November``, ``of the 2nd month of each quarter``."""
    start = c.at
    has_preposition = c.take("of", "in") is not None
    if not has_preposition and not (nth and c.sees("month")) and not (nth and c.sees("each", "per")):
        return None
    article = c.take("article") is not None
    following = take_next(c, "unit")
    if following is not None and following[1] in (Unit.MONTH, Unit.QUARTER, Unit.YEAR):
        return Period(Unit(following[1]), ahead=following[0])
    if following is not None or c.sees("next"):
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
        said = None if other is not None else parse_number(c) or parse_ordinal(c)
        interval = said or (2 if other is not None or repeated.value == EVERY_OTHER else 1)
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
    start = c.at

    def parse_some(c: Cursor) -> list[int] | None:
        is_first = c.at == start
        month = c.take("month")
        if month is None or c.sees("ordinal") or (not is_first and c.sees("number", "tens")):
            return None
        middle = c.at
        last = c.take("month") if c.take("to", "dash") is not None else None
        if last is not None and not c.sees("number", "ordinal", "tens"):
            return list_around(month.value, last.value, MONTHS)
        c.at = middle
        return [month.value]

    found = parse_list(c, parse_some, "comma", "and", "or", is_joined=True, leads=("in",))
    return tuple(dict.fromkeys(month for some in found for month in some))


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


def parse_dates(c: Cursor) -> list[Date] | None:
    """Parse a month with one or several days, a numeric date, or a feast. A weekday may stand before it."""
    start = c.at
    weekday = c.take("weekday")
    if weekday is not None:
        c.take("comma")
        c.take("on-day") if c.sees("on-day") and c.sees("number", "ordinal", "tens", ahead=1) else None
    of_weekday = weekday.value if weekday is not None else None
    token = c.token
    feast = c.take("feast")
    if feast is not None:
        year = parse_year(c)
        of_month, day = divmod(feast.value, 100)
        is_leap_day = (of_month, day) == (2, 29)
        return [Date(of_month, day, year, of_weekday, is_leap_day=is_leap_day, span=c.span(start))]
    if token is not None and token.kind in {DATE, PAIR}:
        one = parse_numeric_date(c)
        return None if one is None else [replace(one, weekday=of_weekday, span=c.span(start))]
    named = c.attempt(_parse_named_date)
    if named is not None:
        return [replace(named, weekday=of_weekday, span=c.span(start))]
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
    span = c.span(start)
    for day in result:
        if not 1 <= day <= 31:
            raise Refused("no-such-date", span)
    if len(result) > 1 and of_weekday is not None:
        return None
    return [Date(month.value, day, year, of_weekday, span=span) for day in result]


_SHAPES = {"month-day", "day-month", "day-month-year", "year-month-day", "month-day-year"}


def _parse_named_date(c: Cursor) -> Date | None:
    """Parse a date in numbers with a month's name: ``Oct-2``, ``2/Oct/2027``, ``2019-sep-01``."""
    parts: list[tuple[str, int]] = []
    while len(parts) < 3:
        if parts and c.take("dash", "slash") is None:
            break
        token = c.token
        month = c.take("month")
        if month is not None:
            parts.append(("month", month.value))
        elif token is not None and token.kind == NUMBER and len(token.text) in {1, 2, 4}:
            c.at += 1
            parts.append(("year" if len(token.text) == 4 else "day", token.value[0]))
        else:
            return None
    order, found = "-".join(kind for kind, _ in parts), dict(parts)
    if order not in _SHAPES or not 1 <= found["day"] <= 31 or c.sees("dash", "slash"):
        return None
    return Date(found["month"], found["day"], found.get("year"))


def _parse_weekday_the_nth(c: Cursor, start: int, weekday: int) -> list[Date] | None:
    c.at = start + 1
    c.take("comma")
    article = c.take("article") is not None
    token = c.token
    value = parse_ordinal(c)
    is_number = token is not None and token.kind == NUMBER and c.language.month_first is False
    if value is None and is_number:
        value = parse_number(c)
        if c.sees("oclock", "halfday", "hour-mark", "hours-said", "to", "dash", "times", "number"):
            return None
    if value is None or not 1 <= value <= 31 or c.sees("of", "unit", "month", "weekday", "dayset"):
        return None
    if not article and token is not None and token.kind != ORDINAL and not is_number:
        return None
    return [Date(day=value, weekday=weekday, span=c.span(start))]


def _parse_days_after_month(c: Cursor) -> list[int]:
    """Parse the days that follow a month's name: ``20 and 30``, ``the 15th``, ``on day 20``."""
    runs = parse_list(
        c, lambda c: parse_run(c, _parse_day_after_month, _LONGEST_MONTH), "comma", "and", "or", is_joined=True
    )
    return [day for run in runs for day in run]


def _parse_day_after_month(c: Cursor) -> int | None:
    for kind in ("on", "article", "day-number"):
        c.take(kind)
    token = c.token
    value = parse_ordinal(c)
    value = parse_number(c) if value is None else value
    is_long = token is not None and token.kind == NUMBER and len(token.text) > 2
    is_unit = c.token is not None and c.token.glued and c.sees("halfday-short", "unit-short")
    if value is None or value < 1 or is_long or is_unit:
        return None
    return None if c.sees(*NOT_A_DAY, "of", "month", "weekday", "weekdays", "dayset") else value


def _parse_days_before_month(c: Cursor) -> list[int]:
    """Parse the days that stand before a month's name: ``24``, ``the 1st and 15th of``."""
    start = c.at
    runs = parse_list(
        c, lambda c: parse_run(c, _parse_day_before_month, _LONGEST_MONTH), "comma", "and", "or", is_joined=True
    )
    is_plain = not any("ordinal" in each or "ordinal-end" in each for each in c.matches[start : c.at])
    c.take("day-word")
    of = c.take("of") is not None
    c.take("article")
    if of and is_plain and len(runs) > 1 and all(len(run) == 1 for run in runs):
        return []  # "3,15 of January" names days of a month, as "3,15 of month" does
    return [day for run in runs for day in run] if c.sees("month") else []


def _parse_day_before_month(c: Cursor) -> int | None:
    c.take("article")
    token = c.token
    value = parse_ordinal(c)
    if value is None and token is not None and token.kind == NUMBER and len(token.text) <= 2:
        value = parse_number(c)
    return value if value is not None and value > 0 else None


_LONGEST_MONTH = 31


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
        if month > 12 and day <= 12 and "." not in token.text:  # it can only be the other way round
            month, day = first, second
    else:
        month, day = first, second
        swapped = (second, first) if second <= 12 and first != second and month_first is None else None
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return Date(month, day, year_said, swapped=swapped, span=c.span(start))


WEEKENDS = (1, 2)
"""The values of words for a weekend. A single one may mean either of its days, or each weekend."""
WORKING, WEEKEND = (0, 1, 2, 3, 4), (5, 6)
SETS: Final[dict[int, tuple[int, ...]]] = {
    0: WORKING,
    1: WEEKEND,
    2: WEEKEND,
    3: (*WORKING, *WEEKEND),
    10: (0, 2, 4),
    11: (1, 3),
}
"""The weekdays of each set of the lexicon. 10 and 11 are those of "MWF" and "TTh"."""


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
        either=next(filter(None, map(_find_choice, c.matches[start : c.at])), ""),
        business=any("business" in matches for matches in c.matches[start : c.at]),
        span=c.span(start),
    )


def _find_choice(matches: Matches) -> str:
    """Return why a word shows that one of several days may be meant."""
    if "or" in matches:
        return "or"
    return "weekend" if "dayset" in matches and matches["dayset"].value in WEEKENDS else ""


def _parse_positions(c: Cursor) -> Days | None:
    """Parse ``the 1st and last of Monday to Friday``."""
    c.take("article")
    nths = parse_ordinals(c)
    if not nths or c.take("of") is None or not c.sees("weekday"):
        return None
    found = _parse_names(c, sets=False)
    picks = tuple(Pick(0, pick.what) for pick in found[0]) if found is not None else ()
    return Days(picks, marked=True, on=True, positions=tuple(nths)) if len(picks) > 1 else None


_Found = tuple[tuple[Pick, ...], tuple[Date, ...], Period | None, bool, tuple[int, ...]]


def _parse_named_days(c: Cursor, *, each: bool) -> _Found | None:
    picks: list[Pick] = []
    plural = False
    count = 0
    while len(picks) < MOST_ITEMS:
        before = c.at
        again = False
        if picks:
            joined = c.skip("comma", "and", "or", "also", "slash")
            said_on = c.take("on") is not None
            again = c.take("each") is not None
            if not joined and (picks[-1].nth or said_on or not c.sees("weekday", "weekdays")):
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
    weeks = (_parse_weeks(c) if period is None else None) or ()
    return tuple(picks), (), period, plural, weeks


def _parse_item(c: Cursor, *, listed: bool) -> tuple[list[Pick], bool] | None:
    """Parse one item: ordinals with what they count, or names of days."""
    start = c.at
    article = c.take("article") is not None
    nths = parse_ordinals(c)
    if not nths:
        if c.at == start + 1 and "a" in c.matches[start] and c.sees("weekday", "weekdays", "daysets"):
            return _parse_names(c)  # "on a Wednesday"
        c.at = start
        return (
            c.attempt(_parse_names)
            or c.attempt(lambda c: _parse_month_days(c, listed=listed))
            or c.attempt(_parse_the_number)
        )
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
    """Parse names of weekdays and ranges of them. A list is one item only after an ordinal."""
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
                picks += [Pick(0, day) for day in list_around(first, last.value, WEEKDAYS)]
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
    return [Pick(0, day) for day in SETS[special.value]], several is not None or special.value not in WEEKENDS


def _parse_month_days(c: Cursor, *, listed: bool) -> tuple[list[Pick], bool] | None:
    """Parse days of the month as numbers: ``3, 15 and 30 of the month``, ``day 20``, ``every 2, 15``."""
    start = c.at
    is_numbered = c.take("day-number") is not None

    def parse_day(c: Cursor) -> int | None:
        if c.token is None or (c.token.kind != NUMBER and not is_numbered):
            return None
        value = parse_number(c)
        return value if value is not None and 1 <= value <= _LONGEST_MONTH and not c.sees(*NOT_A_DAY) else None

    leads = ("day-number", "each") if listed else ("day-number",)
    runs = parse_list(c, lambda c: parse_run(c, parse_day, _LONGEST_MONTH), "comma", "and", "or", leads=leads)
    result = [day for run in runs for day in run]
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


def _parse_the_number(c: Cursor) -> tuple[list[Pick], bool] | None:
    """Parse ``the 27``: a day of the month by a plain number, at the end of the phrase's words for days."""
    if c.take("the") is None:
        return None
    value = parse_number(c)
    following = (
        "unit",
        "month",
        "times",
        "halfday",
        "oclock",
        "weekday",
        "dayset",
        "number",
        "fraction",
        "past",
        "dash",
    )
    if value is None or not 1 <= value <= 31 or c.sees(*following) or not (c.ended or c.matches[c.at]):
        return None
    return [Pick(value, DAY)], False


Rule(
    "days_of_weeks",  # in odd weeks on Monday: the weeks before their days
    (
        "weeks=@week_numbers [comma] [on] days=@days",
        lambda weeks, days: (
            None
            if days.weeks or days.dates or days.period is not None
            else replace(days, weeks=weeks, marked=True, span=NOWHERE)
        ),
    ),
)
_parse_weeks = Rule(
    "week_numbers",
    ("in|of parity=parity [dash] [numbered] week-number", lambda parity: tuple(range(parity, 54, 2))),
    ("in|of !parity week-number weeks=@week_list", lambda weeks: weeks),
)


def _parse_week(c: Cursor) -> int | None:
    value = parse_number(c)
    return value if value is not None and 1 <= value <= 53 else None


def _parse_dates(c: Cursor) -> _Found | None:
    found = parse_list(c, lambda c: c.attempt(parse_dates), "comma", "and", "or", "also", leads=("on", "each"))
    dates = tuple(date for some in found for date in some)
    return ((), dates, None, False, ()) if dates else None


def list_weekdays(pick: Pick) -> tuple[int, ...]:
    """Return the weekdays that a pick counts among."""
    return {WORKDAY: WORKING, WEEKENDDAY: WEEKEND, DAY: (*WORKING, *WEEKEND)}.get(pick.what, (pick.what,))


RULES.update(
    days=parse_days,
    months=lambda c: parse_months(c) or None,
    numeric_date=parse_numeric_date,
    period=lambda c: parse_period(c, nth=True, each=False),
    year=parse_year,
    week_list=lambda c: tuple(parse_list(c, _parse_week, "comma", "and", "or")) or None,
)
