"""Parse days: weekdays, days of a period, dates, and lists and ranges of them.

A date is a month with one or several days, numbers, or a feast. The periods in which days are counted are weeks,
months, quarters and years.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from cloudsched.language.grammar_numbers import MONTHS, WEEKDAYS, list_around, list_numbers
from cloudsched.language.nodes import DAY, WEEKENDDAY, WORKDAY, Date, Days, Period, Pick, Unit
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES, Rule

if TYPE_CHECKING:
    from cloudsched.language.lexicon import Cursor, Language

_DAYS = range(1, 32)
_OF = "&of|in|month|each|per [of|in] [article] "
_MONTHS_OF_QUARTER = "months+=@ordinal:1..3 {comma|and|or months+=@ordinal:1..3} unit"
_NO_DAY = " !halfday|oclock|unit|times|clock-minute|to-last|zone-time|fraction"
"""What rules out that a number before it is a day of the month."""
_NEXT = " comma|and|or|also {comma|and|or|also} "


Rule(
    "interval",
    ("each other", "each:3 !number|tens|ordinal", lambda: 2),
    "each interval=@number:1..|@ordinal:1..",
    ("each", lambda: 1),
)
Rule(
    "limited_period",
    (_OF + "ahead=next !unit:4 unit=@calendar_unit", Period),
    (
        _OF + "!next [each=each] months=@months [year=@year]",
        lambda each, months, year: Period(Unit.YEAR, months=months, year=year, each=each is not None),
    ),
    (_OF + "!next interval=@interval !unit:4 unit=@calendar_unit", partial(Period, each=True)),
    (
        _OF + _MONTHS_OF_QUARTER + " of|in [article=article] [each=each] unit:6",
        lambda months, article, each: Period(
            Unit.QUARTER, quarter_months=months, each=bool(each), definite=bool(article and not each)
        ),
    ),
    (
        "&of|in|month|each|per [of|in] [article=article] !next|unit:4 unit=@calendar_unit",
        lambda article, unit: Period(unit, definite=bool(article)),
    ),
)
Rule("period", "period=@limited_period", ("of|in [article] !next|each year=@year", partial(Period, Unit.YEAR)))
Rule(
    "some_months",
    ("first=month to|dash last=month !number|ordinal|tens", partial(list_around, names=MONTHS)),
    "months+=month !ordinal",
)
_SEVERAL_MONTHS = "[month to|dash|comma|and|or {comma|and|or} [in] month !number|ordinal|tens]"
Rule(
    "months",  # lists, and ranges such as June to August
    (
        "&month runs+=@some_months {comma|and|or {comma|and|or} [in] runs+=@some_months !number|tens}",
        lambda runs: tuple(dict.fromkeys(chain(*runs))),
    ),
)
Rule(
    "year",  # of four digits, or in words
    "[comma] [of|in] &number &/.{3,4}/ year=@number:1900..9998 !unit|times|halfday|oclock|month",
)


def _make_iso_date(text: str) -> Date:
    year, month, day = map(int, text.split("-"))
    if month not in MONTHS or day not in _DAYS:
        raise Refused("no-such-date")
    return Date(month, day, year)


def _make_date(text: str, language: Language) -> Date | None:
    month, day, *rest = map(int, re.split(r"\D", text))
    is_dotted, is_first = "." in text, language.month_first
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
    ("&date text=/.*/", _make_iso_date),
    ("&pair text=/.*/ language=@language !of", _make_date),
)
Rule("day_digits", r"&number &/\d\d?/ day=number:1..31")
Rule("year_digits", r"&number &/\d{4}/ year=number")
Rule(
    "named_date",  # Oct-2, 2/Oct/2027, 2019-sep-01
    (
        "month=month dash|slash day=@day_digits [dash|slash year=@year_digits] !dash|slash",
        "day=@day_digits dash|slash month=month [dash|slash year=@year_digits] !dash|slash",
        "year=@year_digits dash|slash month=month dash|slash day=@day_digits !dash|slash",
        Date,
    ),
)
Rule(
    "day_after_month",  # 20 and 30, the 15th, on day 20
    r"[on] [article] [day-number] !/\d{3,}/ day=@ordinal:1..|@number:1.. "
    "![&halfday-short|unit-short &@is_glued]" + _NO_DAY + "|of|month|weekday|weekdays|dayset",
)
Rule("day_before_month", "[article] day=@ordinal:1..|@day_digits")
Rule(
    "days_before_month",  # 24, the 1st and 15th of
    "days=@several_before_month [day-word] !of [article] &month",
    # "3,15 of January" names days of a month, as "3,15 of month" does
    "![number comma|and|or number] days=@several_before_month [day-word] of [article] &month",
)
Rule("date_weekday", "weekday=weekday [comma] [on-day &number|ordinal|tens]")
Rule(
    "day_of_weekday",
    "article day=@ordinal:1..31",
    r"&ordinal &/\d.*/ day=@ordinal:1..31",
    r"[article] &number &/\d+/ &@day_first day=@number:1..31 "
    "!oclock|halfday|hour-mark|hours-said|to|dash|times|number",
)


def _make_dates(weekday: int | None, month: int, days: list[int], year: int | None) -> list[Date] | None:
    if not {*_DAYS}.issuperset(days):
        raise Refused("no-such-date")
    if len(days) > 1 and weekday is not None:
        return None
    return [Date(month, day, year, weekday) for day in days]


Rule(
    "weekday_date",
    ("weekday=weekday [comma] !@days_before_month day=@day_of_weekday !of|unit|month|weekday|dayset", Date),
)
Rule(
    "date",
    (
        "[weekday=@date_weekday] feast=feast [year=@year]",
        lambda weekday, feast, year: Date(feast // 100, feast % 100, year, weekday, is_leap_day=feast == _LEAP_DAY),
    ),
    (
        "[weekday=@date_weekday] date=@numeric_date|@named_date",
        lambda weekday, date: replace(date, weekday=weekday),
    ),
    "date=@weekday_date",
)
Rule(
    "dates",  # a month with one or several days, a numeric date, or a feast. A weekday may stand before it
    "dates+=@date",
    (
        "[weekday=@date_weekday] [article] month=month days=@days_after_month [year=@year]",
        "[weekday=@date_weekday] days=@days_before_month !" + _SEVERAL_MONTHS + " month=month [year=@year]",
        _make_dates,
    ),
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


def _pick(names: Sequence[int] = (DAY,), nths: Sequence[int] = (0,)) -> Days:
    """Return days by their names and ordinals, of the month if there are only ordinals."""
    return Days(tuple(Pick(nth, day) for nth in nths for day in names))


Rule("weekday_list", ("runs+=@weekdays {" + _NEXT + "runs+=@weekdays}", lambda runs: tuple(chain(*runs))))
Rule(
    "weekdays",
    ("first=weekdays|weekday to|dash last=weekday|weekdays", partial(list_around, names=WEEKDAYS)),
    "names+=weekdays|weekday",
)
Rule("dayset", ("[article] days=daysets|dayset", lambda days: SETS[days]))
Rule("nths", "[article] &ordinal|ordinal-end|tens nths=@ordinals")
Rule(
    "counted_day",
    ("day-word", lambda: (DAY,)),
    ("dayset:0|daysets:0", lambda: (WORKDAY,)),
    ("dayset:2|daysets:2", lambda: (WEEKENDDAY,)),
)
Rule("numbered_day", "day=@number:1..31" + _NO_DAY)
Rule("month_day", r"&number &/\d.*/ day=@numbered_day")
Rule(
    "item",  # ordinals with what they count, names of days, or numbers
    (
        "[&a article &weekday|weekdays|daysets] names=@weekdays|@dayset",
        "nths=@nths [day-word &weekday] names=@weekday_list",
        "nths=@nths names=@counted_day",
        "&article nths=@nths !month|unit|part|dayset|daysets",
        "nths=@nths &of|each|per !month|unit|part|dayset|daysets",
        "!ordinal-end nths=@nths !month|unit|part|dayset|daysets",
        "day-number nths=@numbered_days",
        "&number nths=@month_days &of &@period",  # 3, 15 and 30 of the month
        # every 2, 15
        "&number <each &[@month_day comma|and|or|to|dash {day-number|each} @month_day] nths=@month_days !of",
        "the !@ordinal nths+=@numbered_day !@is_plain !month|weekday|dayset|number|past|dash",
        _pick,
    ),
    ("pair &of &@period", lambda: Refused("inexpressible")),  # 1-7 of June
)
Rule(
    "next_item",
    "comma|and|or|also|slash {comma|and|or|also|slash} {on} [each] item=@item",
    "<weekday|weekdays &weekday|weekdays item=@item",
)


def _join(items: Sequence[Days]) -> Days:
    return Days(tuple(dict.fromkeys(pick for item in items for pick in item.picks)))


def _limit(days: Days, period: Period) -> Days:
    return replace(days, period=period, marked=period.each)


Rule("items", ("items+=@item {items+=@next_item}", _join))
_parse_named_days = Rule(
    "named_days",
    (
        "nths=@nths of &[weekday to|dash|comma|and] names=@weekday_list",  # the 1st and last of Monday to Friday
        lambda nths, names: replace(_pick(names), marked=True, on=True, positions=nths),
    ),
    ("runs+=@dates {[" + _NEXT + "[on] [each]] runs+=@dates}", lambda runs: Days(dates=tuple(chain(*runs)))),
    ("days=@items period=@period", lambda days, period: _limit(days, period) if days.is_counted else None),
    ("days=@items &of|in period=@limited_period", _limit),
    ("days=@items weeks=@week_numbers", lambda days, weeks: replace(days, weeks=weeks)),
    (
        "weeks=@week_numbers [comma] [on] days=@items",  # in odd weeks on Monday
        lambda weeks, days: replace(days, weeks=weeks, marked=True),
    ),
    "days=@items",
)
Rule(
    "week_numbers",
    ("in|of parity=parity [dash] [numbered] week-number", lambda parity: tuple(range(parity, 54, 2))),
    "in|of !parity week-number weeks+=@number:1..53 {comma|and|or {comma|and|or} weeks+=@number:1..53}",
)


def parse_days(c: Cursor) -> Days | None:
    """Parse days: ``mondays and fridays``, ``2nd and last Friday of each month``, ``Dec 24``, ``1st, 15th``."""
    start = c.at
    days: Days | None = _parse_named_days(c)
    if days is None:
        return None
    said = c.matches[start : c.at]
    kinds = {kind for matches in said for kind in matches}
    sets = {matches["dayset"].value for matches in said if "dayset" in matches}
    is_plural = not kinds.isdisjoint({"weekdays", "daysets"})
    if days.picks and not days.is_counted:
        is_range = "weekday" in kinds and not kinds.isdisjoint({"to", "dash"})
        is_plural = is_plural or is_range or not sets.issubset(WEEKENDS)  # "on a weekday" is on any
    either = "" if sets.isdisjoint(WEEKENDS) else "weekend"
    return replace(
        days,
        marked=days.marked or is_plural,
        plural=is_plural,
        either="or" if "or" in kinds else either,
        business="business" in kinds,
    )


def _mark(days: Days) -> Days:
    period = days.period
    if period is not None and period.months:
        period = replace(period, each=True)
    is_loose = period is None and any(pick.nth > 1 and pick.what < DAY for pick in days.picks)
    return replace(days, period=period, marked=True, loose=is_loose)


def list_weekdays(pick: Pick) -> tuple[int, ...]:
    """Return the weekdays that a pick counts among."""
    return {WORKDAY: WORKING, WEEKENDDAY: WEEKEND, DAY: (*WORKING, *WEEKEND)}.get(pick.what, (pick.what,))


RULES.update(
    day_first=lambda c: c.language.month_first is False or None,
    language=lambda c: c.language,
    days=parse_days,
)
Rule("each_days", ("days=@days", _mark))  # behind "each"
list_numbers("numbered_days", "numbered_day", "[day-number] [each] ")
list_numbers("month_days", "month_day", "[day-number] [each] ")
list_numbers("several_before_month", "day_before_month")
list_numbers("days_after_month", "day_after_month")
