"""Parse days: weekdays, days of a period, dates, and lists and ranges of them.

A date is a month with one or several days, numbers, or a feast. The periods in which days are counted are weeks,
months, quarters and years.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudsched.language.grammar_numbers import (
    MONTHS,
    MOST_ITEMS,
    WEEKDAYS,
    List,
    list_around,
    list_numbers,
)
from cloudsched.language.lexicon import NUMBER, Cursor, Matches
from cloudsched.language.nodes import DAY, NOWHERE, WEEKENDDAY, WORKDAY, Date, Days, Period, Pick, Unit
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.language.lexicon import Language, Token


_DAYS = range(1, 32)
_OF = "&of|in|month|each|per [of|in] [article] "
_NO_DAY = " !halfday|oclock|unit|times|clock-minute|to-last|zone-time|fraction"
"""What rules out that a number before it is a day of the month."""


def _check_day(day: int) -> int | None:
    return day if day in _DAYS else None


Rule(
    "interval",
    ("each other", lambda: 2),
    ("each interval=@number|@ordinal", lambda interval: interval if interval > 0 else None),
    ("each:3", lambda: 2),
    ("each", lambda: 1),
)
_parse_period = Rule(
    "period",
    (_OF + "ahead=next !unit:4 unit=@calendar_unit", Period),
    (
        _OF + "!next [each=each] months=@months [year=@year]",
        lambda each, months, year: Period(Unit.YEAR, months=months, year=year, each=each is not None),
    ),
    (_OF + "!next interval=@interval !unit:4 unit=@calendar_unit", partial(Period, each=True)),
    (
        _OF + "!next months=@ordinals unit of|in [article=article] [each=each] unit:6",
        lambda months, article, each: (
            Period(Unit.QUARTER, quarter_months=months, each=bool(each), definite=bool(article and not each))
            if {1, 2, 3}.issuperset(months)
            else None
        ),
    ),
    (
        "&of|in|month|each|per [of|in] [article=article] !next|unit:4 unit=@calendar_unit",
        lambda article, unit: Period(unit, definite=bool(article)),
    ),
    ("of|in [article] !next|each year=@year", partial(Period, Unit.YEAR)),
)


def parse_period(c: Cursor, *, nth: bool, each: bool) -> Period | None:
    """Parse the period of days: ``of every month``, ``in November``, ``of the 2nd month of each quarter``."""
    start, has_preposition = c.at, c.sees("of", "in")
    period: Period | None = _parse_period(c)
    if period is None or (not nth and not (has_preposition and (period.months or period.year is None))):
        c.at = start
        return None
    return replace(period, each=True) if each and period.months else period


Rule(
    "some_months",
    ("first=month to|dash last=month !number|ordinal|tens", partial(list_around, names=MONTHS)),
    ("month=month !ordinal", lambda month: [month]),
)
Rule("later_months", "months=@some_months !number|tens")
Rule(
    "months",  # lists, and ranges such as June to August
    (
        "&month first=@some_months [comma|and|or [comma|and|or] [in] rest=@month_list]",
        lambda first, rest: tuple(dict.fromkeys(month for some in (first, *(rest or ())) for month in some)),
    ),
)


Rule(
    "year",  # of four digits, or in words
    (
        "[comma] [of|in] &number token=@token year=@number !unit|times|halfday|oclock|month",
        lambda token, year: year if 1900 <= year <= 9998 and len(token.text) in {3, 4} else None,
    ),
)


def _make_iso_date(token: Token) -> Date:
    year, month, day = token.value
    if month not in MONTHS or day not in _DAYS:
        raise Refused("no-such-date")
    return Date(month, day, year)


def _make_date(token: Token, language: Language) -> Date | None:
    month, day, *rest = token.value
    is_dotted, is_first = "." in token.text, language.month_first
    if is_dotted and not rest and is_first is not False:
        return None
    is_open = is_first is None and not is_dotted and month != day and month in MONTHS and day in MONTHS
    if month > 12 or is_dotted or (is_first is False and day <= 12):
        month, day = day, month
    if month not in MONTHS or day not in _DAYS:
        return None
    year = next((year + 2000 if year < 100 else year for year in rest), None)
    return Date(month, day, year, swapped=(day, month) if is_open else None)


Rule(
    "numeric_date",  # 2027-01-31, 3/4, 17.12.27, but 1-7 of June is a range
    ("&date token=@token date", _make_iso_date),
    ("&pair token=@token language=@language pair !of", _make_date),
)


def _take_digits(c: Cursor, *sizes: int) -> int | None:
    token = c.token
    if token is None or token.kind != NUMBER or len(token.text) not in sizes:
        return None
    c.at += 1
    return token.value[0]


Rule(
    "named_date",  # Oct-2, 2/Oct/2027, 2019-sep-01
    ("month=month dash|slash day=@day_digits [dash|slash year=@year_digits] !dash|slash", Date),
    ("&number day=@day_digits dash|slash month=month [dash|slash year=@year_digits] !dash|slash", Date),
    ("&number year=@year_digits dash|slash month=month dash|slash day=@day_digits !dash|slash", Date),
)
Rule(
    "day_after_month",  # 20 and 30, the 15th, on day 20
    "[on] [article] [day-number] !@is_long day=@counter ![&halfday-short|unit-short &@is_glued]"
    + _NO_DAY
    + "|of|month|weekday|weekdays|dayset",
)
Rule(
    "day_before_month",
    ("[article] day=@ordinal", lambda day: day if day > 0 else None),
    ("[article] &number day=@day_digits", lambda day: day or None),
)


Rule(
    "days_before_month",  # 24, the 1st and 15th of
    "days=@several_before_month [day-word] !of [article] &month",
    # "3,15 of January" names days of a month, as "3,15 of month" does
    "![number comma|and|or number] days=@several_before_month [day-word] of [article] &month",
)


Rule("several_months", ("months=@months", lambda months: len(months) > 1 or None))
Rule("date_weekday", "weekday=weekday [comma] [on-day &number|ordinal|tens]")
Rule(
    "day_of_weekday",
    ("article day=@ordinal", _check_day),
    ("&ordinal &@is_digits day=@ordinal", _check_day),
    (
        "[article] &number &@is_day_first day=@number" + " !oclock|halfday|hour-mark|hours-said|to|dash|times|number",
        _check_day,
    ),
)


def _make_dates(weekday: int | None, month: int, days: list[int], year: int | None) -> list[Date] | None:
    if not all(map(_check_day, days)):
        raise Refused("no-such-date")
    if len(days) > 1 and weekday is not None:
        return None
    return [Date(month, day, year, weekday) for day in days]


Rule(
    "weekday_date",
    (
        "weekday=weekday [comma] !@days_before_month day=@day_of_weekday !of|unit|month|weekday|dayset",
        lambda weekday, day: Date(day=day, weekday=weekday),
    ),
)
parse_dates = Rule(
    "dates",  # a month with one or several days, a numeric date, or a feast. A weekday may stand before it
    (
        "[weekday=@date_weekday] feast=feast [year=@year]",
        lambda weekday, feast, year: [Date(feast // 100, feast % 100, year, weekday, is_leap_day=feast == _LEAP_DAY)],
    ),
    (
        "[weekday=@date_weekday] date=@numeric_date|@named_date",
        lambda weekday, date: [replace(date, weekday=weekday, span=NOWHERE)] if date.day in _DAYS else None,
    ),
    ("[weekday=@date_weekday] [article] month=month days=@days_after_month [year=@year]", _make_dates),
    ("[weekday=@date_weekday] days=@days_before_month !@several_months month=month [year=@year]", _make_dates),
    ("date=@weekday_date", lambda date: [date]),
)


WEEKENDS = (1, 2)
"""The values of words for a weekend. A single one may mean either of its days, or each weekend."""
WORKING, WEEKEND = (0, 1, 2, 3, 4), (5, 6)
_LEAP_DAY = 229
SETS: Final[dict[int, tuple[int, ...]]] = {
    0: WORKING,
    1: WEEKEND,
    2: WEEKEND,
    3: (*WORKING, *WEEKEND),
    10: (0, 2, 4),
    11: (1, 3),
}
"""The weekdays of each set of the lexicon. 10 and 11 are those of "MWF" and "TTh"."""


_Item = tuple[tuple[Pick, ...], bool]
"""Picks, and whether a plural names them."""


def _pick(nths: Iterable[int], days: Iterable[int]) -> tuple[Pick, ...]:
    return tuple(Pick(nth, day) for nth in nths for day in days)


def _pick_month_days(days: Iterable[int]) -> _Item:
    return _pick(days, [DAY]), False


Rule(
    "weekday_list",
    (
        "found=@several_weekdays",
        lambda found: ([day for days, _ in found for day in days], any(plural for _, plural in found)),
    ),
)
Rule(
    "weekdays",
    (
        "first=weekdays|weekday to|dash last=weekday|weekdays",
        lambda first, last: (list_around(first, last, WEEKDAYS), True),
    ),
    ("day=weekdays", lambda day: ([day], True)),
    ("day=weekday", lambda day: ([day], False)),
)
Rule(
    "dayset",
    ("[article] days=daysets", lambda days: (SETS[days], True)),
    ("[article] days=dayset", lambda days: (SETS[days], days not in WEEKENDS)),
)
Rule("nths", "[article] &ordinal|ordinal-end|tens nths=@ordinals")
Rule(
    "counted_day",
    ("day-word", lambda: DAY),
    ("dayset:0|daysets:0", lambda: WORKDAY),
    ("dayset:2|daysets:2", lambda: WEEKENDDAY),
)
Rule(
    "numbered_day",
    ("day=@number" + _NO_DAY, _check_day),
)
Rule("month_day", "&number &@is_digits day=@numbered_day")


_parse_item = Rule(
    "item",  # ordinals with what they count, names of days, or numbers
    (
        "[&a article &weekday|weekdays|daysets] names=@weekdays|@dayset",
        lambda names: (_pick([0], names[0]), names[1]),
    ),
    (
        "nths=@nths [day-word &weekday] names=@weekday_list",
        lambda nths, names: (_pick(nths, names[0]), names[1]),
    ),
    ("nths=@nths day=@counted_day", lambda nths, day: (_pick(nths, [day]), False)),
    (
        "[article=article] days=@nths [&of|each|per period=@at] !month|unit|part|dayset|daysets",
        lambda article, days, period: _pick_month_days(days) if article or period or days[-1] >= 0 else None,
    ),
    ("day-number days=@numbered_days", _pick_month_days),
    ("&number days=@month_days &of &@period", _pick_month_days),  # 3, 15 and 30 of the month
    ("pair &of &@period", lambda: Refused("inexpressible")),  # 1-7 of June
    (
        "the !@ordinal day=@numbered_day !@is_plain !month|weekday|dayset|number|past|dash",
        lambda day: _pick_month_days([day]),
    ),
)
_parse_listed_item = Rule(
    "listed_item",  # every 2, 15
    "item=@item",
    ("&number days=@month_days !of", lambda days: _pick_month_days(days) if len(days) > 1 else None),
)
_parse_positions = Rule(
    "positions",  # the 1st and last of Monday to Friday
    (
        "nths=@nths of &weekday names=@weekday_list",
        lambda nths, names: (
            Days(_pick([0], names[0]), marked=True, on=True, positions=nths) if len(names[0]) > 1 else None
        ),
    ),
)


def parse_days(c: Cursor, *, each: bool = False) -> Days | None:
    """Parse days: ``mondays and fridays``, ``2nd and last Friday of each month``, ``Dec 24``, ``1st, 15th``."""
    start = c.at
    chosen: Days | None = _parse_positions(c)
    if chosen is not None:
        return chosen
    found = RULES["date_list"](c)
    days = Days(dates=tuple(date for dates in found for date in dates)) if found else _parse_named_days(c, each=each)
    if days is None:
        return None
    return replace(
        days,
        marked=days.marked or each,
        either=next(filter(None, map(_find_choice, c.matches[start : c.at])), ""),
        business=any("business" in matches for matches in c.matches[start : c.at]),
        span=c.span(start),
    )


def _find_choice(matches: Matches) -> str:
    """Return why a word shows that one of several days may be meant."""
    if "or" in matches:
        return "or"
    return "weekend" if "dayset" in matches and matches["dayset"].value in WEEKENDS else ""


def _parse_named_days(c: Cursor, *, each: bool) -> Days | None:
    picks: list[Pick] = []
    plural = False
    while len(picks) < MOST_ITEMS:
        before = c.at
        listed = each
        if picks:
            joined = c.skip("comma", "and", "or", "also", "slash")
            is_bare = not c.skip("on")
            listed = c.take("each") is not None or each
            if not joined and (picks[-1].nth or listed != each or not (is_bare and c.sees("weekday", "weekdays"))):
                c.at = before
                break
        item = (_parse_listed_item if listed else _parse_item)(c)
        if item is None:
            c.at = before
            break
        picks += [pick for pick in item[0] if pick not in picks]
        plural = plural or item[1]
    if not picks:
        return None
    period = parse_period(c, nth=any(pick.nth for pick in picks), each=each)
    return Days(
        tuple(picks),
        period,
        weeks=(_parse_weeks(c) if period is None else None) or (),
        marked=plural or (period is not None and period.each),
        loose=each and period is None and any(pick.nth > 1 and pick.what < DAY for pick in picks),
        plural=plural,
    )


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
    "in|of !parity week-number weeks=@week_list",
)
Rule("week_of_year", ("week=@number", lambda week: week if 1 <= week <= 53 else None))


def list_weekdays(pick: Pick) -> tuple[int, ...]:
    """Return the weekdays that a pick counts among."""
    return {WORKDAY: WORKING, WEEKENDDAY: WEEKEND, DAY: (*WORKING, *WEEKEND)}.get(pick.what, (pick.what,))


RULES.update(
    is_digits=lambda c: (c.token is not None and c.token.text[0].isdigit()) or None,
    is_long=lambda c: (c.token is not None and c.token.kind == NUMBER and len(c.token.text) > 2) or None,
    is_day_first=lambda c: (c.language.month_first is False and c.tokens[c.at].kind == NUMBER) or None,
    language=lambda c: c.language,
    day_digits=lambda c: _take_digits(c, 1, 2),
    two_digits=lambda c: _take_digits(c, 2),
    year_digits=lambda c: _take_digits(c, 4),
    days=parse_days,
    several_weekdays=List("weekdays", "comma and or", is_joined=True),
    date_list=List("dates", "comma and or also", "on each"),
    month_list=List("later_months", "comma and or", "in", is_joined=True),
    week_list=List("week_of_year", "comma and or"),
)
list_numbers("numbered_days", "numbered_day", "comma and or", "day-number each")
list_numbers("month_days", "month_day", "comma and or", "day-number each")
list_numbers("several_before_month", "day_before_month", "comma and or", is_joined=True)
list_numbers("days_after_month", "day_after_month", "comma and or", is_joined=True)
