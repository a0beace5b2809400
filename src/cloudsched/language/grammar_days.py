"""Days: weekdays, days of a period, dates, and lists and ranges of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.language.grammar_numbers import MOST_ITEMS, number, ordinal
from cloudsched.language.nodes import DAY, WEEKENDDAY, WORKDAY, Date, Days, Period, Pick, Unit
from cloudsched.language.refusals import Refused
from cloudsched.language.tokens import DATE, NUMBER, ORDINAL, PAIR

if TYPE_CHECKING:
    from cloudsched.language.cursor import Cursor

WORKING, WEEKEND = (0, 1, 2, 3, 4), (5, 6)
_NOT_A_DAY = ("halfday", "oclock", "unit", "times", "clock-minute", "to-last", "zone-time", "fraction")
_SETS = {0: WORKING, 1: WEEKEND, 2: WEEKEND, 3: (*WORKING, *WEEKEND)}


def days(c: Cursor, *, each: bool = False) -> Days | None:
    """Read days: ``mondays and fridays``, ``2nd and last Friday of each month``, ``Dec 24``, ``1st, 15th``."""
    start = c.at
    found = c.attempt(_dates) or c.attempt(lambda c: _named_days(c, each=each))
    if found is None:
        c.at = start
        return None
    picks, dates, period, plural, weeks = found
    return Days(
        picks,
        period,
        dates,
        weeks=weeks,
        marked=each or plural or (period is not None and period.each),
        loose=each and period is None and any(pick.nth > 1 and pick.what < DAY for pick in picks),
        plural=plural,
        span=c.span(start),
    )


_Found = tuple[tuple[Pick, ...], tuple[Date, ...], Period | None, bool, tuple[int, ...]]


def _named_days(c: Cursor, *, each: bool) -> _Found | None:
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
        found = _item(c, listed=each or (again and count > 0))
        if found is None:
            c.at = before
            break
        count += 1
        items, is_plural = found
        plural = plural or is_plural
        picks += [pick for pick in items if pick not in picks]
    if not picks:
        return None
    period = of_period(c, nth=any(pick.nth for pick in picks), each=each)
    weeks = _weeks(c) if period is None else ()
    return tuple(picks), (), period, plural, weeks


def _item(c: Cursor, *, listed: bool) -> tuple[list[Pick], bool] | None:
    """Read one item: ordinals with what they count, or names of days."""
    start = c.at
    article = c.take("article") is not None
    nths = _ordinals(c)
    if not nths:
        c.at = start
        return _names(c) or _month_days(c, listed=listed)
    alone = not (article or listed or c.sees("of", "each", "per", "month"))
    unit = c.take("day-word")
    if unit is not None and not c.sees("weekday"):
        return [Pick(nth, DAY) for nth in nths], False
    named = _names(c, sets=False)
    if named is not None:
        return [Pick(nth, pick.what) for nth in nths for pick in named[0]], named[1]
    special = c.take("dayset", "daysets")
    if special is not None:
        what = WORKDAY if special.value == 0 else WEEKENDDAY if special.value == 2 else None  # noqa: PLR2004 -- lexicon
        if what is None:
            c.at = start
            return None
        return [Pick(nth, what) for nth in nths], False
    if c.sees("month", "unit", "part") or (alone and nths[-1] < 0):
        c.at = start
        return None
    return [Pick(nth, DAY) for nth in nths], False


def _ordinals(c: Cursor) -> list[int]:
    found: list[int] = []
    while len(found) < MOST_ITEMS:
        before = c.at
        if found:
            if not c.skip("comma", "and", "or", "also"):
                break
            c.take("on")
            c.take("article")
        value = ordinal(c)
        if value is None:
            c.at = before
            break
        middle = c.at
        last = ordinal(c) if c.take("to", "dash") is not None else None
        if last is not None and 0 < value < last <= 31:  # noqa: PLR2004 -- days of a month
            found += range(value, last + 1)
        else:
            c.at = middle
            found.append(value)
    return found


def _names(c: Cursor, *, sets: bool = True) -> tuple[list[Pick], bool] | None:
    """Read names of weekdays: lists within one item only where an ordinal stands before them, and ranges."""
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
    return [Pick(0, day) for day in _SETS[special.value]], True


def _month_days(c: Cursor, *, listed: bool) -> tuple[list[Pick], bool] | None:
    """Read days of the month as numbers: ``3, 15 and 30 of the month``; ``day 20``; ``every 2, 15``."""
    start = c.at
    said = c.take("day-number") is not None
    found: list[int] = []
    while len(found) < MOST_ITEMS:
        before = c.at
        if found:
            c.skip("comma", "and", "or")
            c.take("day-number")
            if listed:
                c.take("each")
        if c.token is None or (c.token.kind != NUMBER and not said):
            c.at = before
            break
        value = number(c)
        if value is None or not 1 <= value <= 31 or c.sees(*_NOT_A_DAY):  # noqa: PLR2004 -- days of a month
            c.at = before
            break
        middle = c.at
        last = number(c) if c.take("to", "dash") is not None else None
        if last is not None and value < last <= 31:  # noqa: PLR2004 -- days of a month
            found += range(value, last + 1)
        else:
            c.at = middle
            found.append(value)
    token = c.token
    if not found and token is not None and token.kind == PAIR and "-" in token.text and len(token.value) == 2:  # noqa: PLR2004
        first, last = token.value
        c.at += 1
        if 1 <= first < last <= 31 and c.sees("of"):  # noqa: PLR2004 -- days of a month
            found = list(range(first, last + 1))
    if not found or not (said or c.sees("of") or (listed and len(found) > 1)):
        c.at = start
        return None
    before = c.at
    if c.sees("of") and not said and of_period(c, nth=True, each=False) is None:
        c.at = start
        return None
    c.at = before
    return [Pick(value, DAY) for value in found], False


def of_period(c: Cursor, *, nth: bool, each: bool) -> Period | None:
    """Read what days are counted in: ``of every month``, ``in November``, ``of the second month of each quarter``."""
    start = c.at
    said = c.take("of", "in") is not None
    if not said and not (nth and c.sees("month")) and not (nth and c.sees("each", "per")):
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
    named = months(c)
    if named:
        year = year_number(c)
        return Period(Unit.YEAR, months=named, year=year, each=repeated is not None or each)
    interval = 1
    if repeated is not None:
        other = c.take("other")
        interval = 2 if other is not None else (number(c) or ordinal(c) or 1)
        if interval < 1:
            c.at = start
            return None
    quarter_months: tuple[int, ...] = ()
    nths = [] if repeated else _ordinals(c)
    if nths and c.take("unit") is not None and c.take("of", "in") is not None:
        quarter_months = tuple(nths)
        article = c.take("article") is not None
        repeated = c.take("each")
    elif nths:
        c.at = start
        return None
    unit = c.take("unit")
    if unit is not None and unit.value in (Unit.MONTH, Unit.QUARTER, Unit.YEAR):
        if quarter_months and (unit.value != Unit.QUARTER or not all(1 <= n <= 3 for n in quarter_months)):  # noqa: PLR2004
            c.at = start
            return None
        return Period(
            Unit(unit.value),
            interval,
            quarter_months=quarter_months,
            each=repeated is not None,
            definite=article and repeated is None,
        )
    year = year_number(c) if unit is None and said and nth and not repeated else None
    if year is None:
        c.at = start
        return None
    return Period(Unit.YEAR, year=year)


def months(c: Cursor) -> tuple[int, ...]:
    """Read names of months: lists, and ranges such as ``June to August``."""
    found: list[int] = []
    while len(found) < MOST_ITEMS:
        before = c.at
        if found:
            if not c.skip("comma", "and", "or"):
                break
            c.take("in")
        month = c.take("month")
        if month is None or c.sees("ordinal") or (found and c.sees("number", "tens")):
            c.at = before
            break
        middle = c.at
        if c.take("to", "dash") is not None:
            last = c.take("month")
            if last is not None and not c.sees("number", "ordinal", "tens"):
                found += [(month.value - 1 + step) % 12 + 1 for step in range((last.value - month.value) % 12 + 1)]
                continue
            c.at = middle
        found.append(month.value)
    return tuple(dict.fromkeys(found))


def year_number(c: Cursor) -> int | None:
    """Read a year of four digits, or in words."""
    start = c.at
    c.take("comma")
    c.take("of", "in")
    token = c.token
    value = number(c) if token is not None and c.sees("number") else None
    if value is None or not 1900 <= value <= 9998 or (token is not None and len(token.text) not in {3, 4}):  # noqa: PLR2004
        c.at = start
        return None
    if c.sees("unit", "times", "halfday", "oclock", "month"):
        c.at = start
        return None
    return value


def _weeks(c: Cursor) -> tuple[int, ...]:
    start = c.at
    found: list[int] = []
    if c.take("in", "of") is not None and c.take("week-number") is not None:
        while len(found) < MOST_ITEMS:
            before = c.at
            if found:
                c.skip("comma", "and", "or")
            value = number(c)
            if value is None or not 1 <= value <= 53:  # noqa: PLR2004 -- weeks of a year
                c.at = before
                break
            found.append(value)
    if not found:
        c.at = start
    return tuple(found)


def _dates(c: Cursor) -> _Found | None:
    found: list[Date] = []
    while len(found) < MOST_ITEMS:
        before = c.at
        if found:
            c.skip("comma", "and", "or", "also")
            c.take("on")
            c.take("each")
        some = c.attempt(dates)
        if some is None or (found and some[0].year is None and found[-1].year is not None and False):
            c.at = before
            break
        found += some
    return ((), tuple(found), None, False, ()) if found else None


def dates(c: Cursor) -> list[Date] | None:
    """Read a month with one or several days, a numeric date, or a feast; a weekday may stand before it."""
    start = c.at
    weekday = c.take("weekday")
    if weekday is not None:
        c.take("comma")
    of_weekday = weekday.value if weekday is not None else None
    token = c.token
    feast = c.take("feast")
    if feast is not None:
        year = year_number(c)
        return [Date(*divmod(feast.value, 100), year=year, weekday=of_weekday, span=c.span(start))]
    if token is not None and token.kind in {DATE, PAIR}:
        one = numeric_date(c)
        return None if one is None else [_with_weekday(one, of_weekday, c, start)]
    c.take("article")
    month = c.take("month")
    found = _after_month(c) if month is not None else None
    if month is None:
        found = _before_month(c)
        before = c.at
        several = len(months(c)) > 1 if found else False
        c.at = before
        month = c.take("month") if found and not several else None
    if month is None or not found:
        if of_weekday is None:
            return None
        return _weekday_the_nth(c, start, of_weekday)
    year = year_number(c)
    year = _short_year(c) if year is None else year
    span = c.span(start)
    for day in found:
        if not 1 <= day <= 31:  # noqa: PLR2004 -- days of a month
            raise Refused("no-such-date", span)
    if len(found) > 1 and of_weekday is not None:
        return None
    return [Date(month.value, day, year, of_weekday, span=span) for day in found]


def _with_weekday(date: Date, weekday: int | None, c: Cursor, start: int) -> Date:
    return Date(date.month, date.day, date.year, weekday, date.swapped, span=c.span(start))


def _weekday_the_nth(c: Cursor, start: int, weekday: int) -> list[Date] | None:
    c.at = start + 1
    c.take("comma")
    article = c.take("article") is not None
    token = c.token
    value = ordinal(c)
    if value is None or value < 1 or c.sees("of", "unit", "month", "weekday", "dayset"):
        return None
    if not article and token is not None and token.kind != ORDINAL:
        return None
    return [Date(day=value, weekday=weekday, span=c.span(start))]


def _short_year(c: Cursor) -> int | None:
    token = c.token
    if token is not None and token.text == "'" and len(c.tokens) > c.at + 1 and c.tokens[c.at + 1].kind == NUMBER:
        value = c.tokens[c.at + 1].value[0]
        if value <= 99:  # noqa: PLR2004 -- two digits
            c.at += 2
            return 2000 + value
    return None


def _after_month(c: Cursor) -> list[int] | None:
    """Read the days that follow a month's name: ``20 and 30``, ``the 15th``, ``on day 20``."""
    found: list[int] = []
    while len(found) < MOST_ITEMS:
        before = c.at
        if found and not c.skip("comma", "and", "or"):
            break
        c.take("on")
        c.take("article")
        c.take("day-number")
        token = c.token
        value = ordinal(c)
        if value is None:
            value = number(c)
        wrong = c.sees(*_NOT_A_DAY, "of", "month", "weekday", "weekdays", "dayset") or (
            c.token is not None and c.token.glued and c.sees("halfday-short", "unit-short")
        )
        if value is None or value < 1 or (token is not None and token.kind == NUMBER and len(token.text) > 2) or wrong:  # noqa: PLR2004
            c.at = before
            break
        middle = c.at
        last = (ordinal(c) or number(c)) if c.take("to", "dash") is not None else None
        if last is not None and value < last <= 31 and not c.sees(*_NOT_A_DAY):  # noqa: PLR2004 -- days of a month
            found += range(value, last + 1)
        else:
            c.at = middle
            found.append(value)
    return found or None


def _before_month(c: Cursor) -> list[int] | None:
    """Read the days that stand before a month's name: ``24``, ``the 1st and 15th of``."""
    found: list[int] = []
    plain = True
    while len(found) < MOST_ITEMS:
        before = c.at
        if found and not c.skip("comma", "and", "or"):
            break
        c.take("article")
        token = c.token
        value = ordinal(c)
        plain = plain and value is None
        if value is None and token is not None and token.kind == NUMBER and len(token.text) <= 2:  # noqa: PLR2004 -- a day
            value = number(c)
        if value is None or value < 1:
            c.at = before
            break
        found.append(value)
    if not found:
        return None
    c.take("day-word")
    of = c.take("of") is not None
    c.take("article")
    if of and plain and len(found) > 1:
        return None  # "3,15 of January" names days of a month, as "3,15 of month" does
    return found if c.sees("month") else None


def numeric_date(c: Cursor) -> Date | None:
    """Read ``2027-01-31``, ``3/4``, ``17.12.27``."""
    start = c.at
    token = c.token
    if token is None:
        return None
    c.at += 1
    if token.kind == PAIR and "-" in token.text and c.sees("of"):
        return None  # "1-7 of June" is a range
    if token.kind == DATE:
        year, month, day = token.value
        return Date(month, day, year, span=c.span(start))
    year_said = token.value[2] if len(token.value) > 2 else None  # noqa: PLR2004 -- a year is said
    if year_said is not None and year_said < 100:  # noqa: PLR2004 -- two digits
        year_said += 2000
    first, second = token.value[:2]
    if "." in token.text and len(token.value) == 2 and c.language.month_first is not False:  # noqa: PLR2004 -- 7.6
        return None
    if "." in token.text or c.language.month_first is False:
        month_first: bool | None = False
    else:
        month_first = c.language.month_first
    if first > 12 or month_first is False:  # noqa: PLR2004 -- no month
        month, day, swapped = second, first, None
    else:
        month, day = first, second
        swapped = (second, first) if second <= 12 and first != second and month_first is None else None  # noqa: PLR2004
    if not (1 <= month <= 12 and 1 <= day <= 31):  # noqa: PLR2004 -- a date
        return None
    return Date(month, day, year_said, swapped=swapped, span=c.span(start))


def weekend_or_work(pick: Pick) -> tuple[int, ...]:
    """Return the weekdays that a pick counts."""
    return {WORKDAY: WORKING, WEEKENDDAY: WEEKEND, DAY: (*WORKING, *WEEKEND)}.get(pick.what, (pick.what,))
