"""Parse points in the calendar that other clauses refer to, and times and days that are counted from them.

A weekday after another, or after a day of the month, is a weekday within a range of seven days of the month: the first
Tuesday after the first Monday is the Tuesday from the 2nd to the 8th.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.language.lexicon import is_plain
from cloudsched.language.nodes import (
    DAY,
    NOWHERE,
    Clause,
    Date,
    Days,
    Length,
    Months,
    OnlyIf,
    Period,
    Pick,
    Relative,
    Unit,
)
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.language.nodes import Span

_COUNTED = "[on] [article] count=@ordinal:1..|@number:1.. weekday=weekdays|weekday"
_A_YEAR = partial(Period, Unit.YEAR)
_ANY_WEEKDAY = "[each] [on|for] [article] [nth=@ordinal|@number] weekday=weekday|weekdays"
_IN_NO_SERIES = "!<for|each|number|the-next|twice|times "

RULES["is_plain"] = lambda c: (not c.ended and is_plain(c.matches[c.at])) or None
Rule(
    "day",  # "heute Morgen" is this morning, "am Morgen" in the morning, and neither is tomorrow
    ("[on !part] [for] !tonight count=relday", partial(Relative, "day")),
)
Rule("one_week", ("unit:4", lambda: 1))
Rule("weeks", "count=@count unit:4", ("a unit:8", lambda: 2))
Rule(
    "business_days",
    "count=@number business",
    ("a business", "[on] [article] !daysets business &before|after", lambda: 1),
)
Rule(
    "distance",
    "length=@length !<oclock",  # "9 uur van maandag tot vrijdag" is a time of day
    ("[on] [article] day-word &after|before", lambda: Length(((Unit.DAY, 1),))),
)
Rule("is_before", "before", ("after", lambda: False))
Rule("single_day", ("point=@day_point", lambda point: None if isinstance(point, Days) else point))
Rule("day_point", ("point=@point", lambda point: None if isinstance(point, Months | Period) else point))
Rule(
    "last",  # the last day of a month, from which another is counted
    ("[article] nth=ordinal-end !@is_plain", lambda nth: Days((Pick(nth, DAY),), Period(definite=True))),
)
Rule(
    "relative",
    ("now", partial(Relative, "now")),
    (
        _IN_NO_SERIES + "[on] weekday=weekday in|ahead count=@weeks",
        _IN_NO_SERIES + "[on] in|ahead count=@weeks [on] weekday=weekday",
        partial(Relative, "weeks-on", from_moment=True),
    ),
    (
        _IN_NO_SERIES + "[on] count=@weeks on weekday=weekday",
        "[on] weekday=weekday count=@one_week &at|comma",  # Thursday week
        partial(Relative, "weeks-on"),
    ),
    (
        "in|ahead count=@business_days",
        "count=@business_days hence",
        "count=@business_days back=@is_before base=@day_point",
        partial(Relative, "business"),
    ),
    ("length=@distance hence:2", partial(Relative, "length", from_moment=True)),
    (
        "base=@day in|ahead &[@count unit:3..] length=@length",
        "in|ahead length=@length",
        "length=@distance hence",
        "&[@count unit:4..] length=@distance &relday base=@day",
        "length=@distance back=@is_before base=@day_point|@base|@last",
        "length=@distance from base=@day_point|@base|@last",
        partial(Relative, "length"),
    ),
    "day=@day",
    (_COUNTED + " hence", _COUNTED + " after base=@day_point", partial(Relative, "weekdays")),
    (
        "[on] weekday=weekday [comma] [of|in] ahead=next unit:4",
        "[on] ahead=next unit:4 [on] weekday=weekday",
        partial(Relative, "week"),
    ),
    ("[on|for] coming dayset:1..2", "[on|for|at] ahead=next dayset:1..2", partial(Relative, "weekend")),
    ("[on|for] coming weekday=weekday", "[on|for] ahead=next weekday=weekday", partial(Relative, "weekday")),
)
Rule(
    "edge_period",
    ("months+=month [year=@year]", "year=@year", _A_YEAR),
    ("ahead=next unit=@calendar_unit", Period),
    ("unit=@calendar_unit", partial(Period, ahead=0)),
)
Rule("calendar_unit", ("value=unit:4..7", Unit))
Rule("edge_of", "[at|on|in] edge=edge &of|in|month|next [of|in] [article] !each")


Rule(
    "edge",  # the end of the month, the beginning of next year
    (
        "edge=@edge_of period=@edge_period",
        lambda edge, period: Relative("edge", ahead=period.ahead, base=Days((Pick(edge, DAY),), period)),
    ),
)
Rule(
    "repeated_edge",  # the end of each month, beginning of March, or "at the end" next to "every month"
    (
        "[at|on] edge=edge [period=@period]",
        lambda edge, period: Days((Pick(edge, DAY),), period, marked=bool(period and period.each), on=True),
    ),
)
Rule(
    "edge_noun",  # month end, zum Quartalsende
    (
        "[at|on|in] [article] edge=edge-noun",
        lambda edge: Days((Pick(1 if edge > 0 else -1, DAY),), Period(Unit(abs(edge)), definite=True), on=True),
    ),
)
Rule("within", ("[in|for|on] ahead=next !unit:7 unit=@calendar_unit", Period))
Rule(
    "year_limit",  # in 2027, this year
    (
        "in|for year=@year",
        "&comma|of year=@year",
        "&[number thousand] year=@year",
        "[in] ahead=next unit:7",
        _A_YEAR,
    ),
)


def _find_day(days: Days) -> Days | Relative | None:
    if len(days.picks) != 1 or days.is_counted:
        return days if len(days.picks) == 1 else None
    is_open = days.period is not None or days.marked
    return None if is_open else Relative("weekday", weekday=days.picks[0].what)


Rule(
    "point",  # a day, a month or a year at which a schedule starts or ends, or that it leaves out
    "point=@relative|@edge",
    ("ahead=next unit=@calendar_unit", Period),
    "[on] &date|pair date=@numeric_date",
    ("[on] !date|pair days=@days", lambda days: days.dates[0] if len(days.dates) == 1 else None),
    ("[[on] [article] &ordinal|ordinal-end|weekday|weekdays|dayset|daysets] days=@days", _find_day),
    ("[in|on] [article] month=month year=@year", Date),
    ("[in|on] [article] months=@months !@year !number|ordinal|tens", Months),
    ("[in|on] [article] year=@year", _A_YEAR),
)

_WEEK = 7
_SURE_DAYS = 28
"""The number of days that every month has."""
_COMMON_YEAR = 2029


def _check_base(base: Days) -> Days | None:
    is_each = base.period is not None and base.period.ahead is None and base.period.year is None
    return base if is_each and len(base.picks) == 1 and base.is_counted and base.picks[0].what <= DAY else None


Rule("base", ("[on] [article] base=@days|@edge_noun|@repeated_edge", _check_base))  # of each period


def _shift(nth: int | None, weekday: int, included: int | None, side: int | None, base: Days) -> list[Clause] | None:
    nth, side = nth or 1, side or included or 0
    if not side or nth < min(side, 0):
        return None  # "the last Friday after the 10th" has no end
    near = 0 if included else 1
    [pick] = base.picks
    delta = ((weekday - pick.what) * side - near) % _WEEK + near
    shifts = range(near, near + _WEEK) if pick.what == DAY else [delta]
    more = _WEEK * (abs(nth) - 1)
    days = sorted(day + side * (shift + more) for day in _find_days(pick) for shift in shifts)
    return [_make_days(base, days), OnlyIf((weekday,))]


Rule(
    "shifted",  # the first Tuesday after the first Monday in November, the Friday before the 25th of each month
    (
        _ANY_WEEKDAY + " [included=on-or] [side=before|after] base=@base",
        _shift,
    ),
)


def _find_days(pick: Pick) -> range:
    """Return the days of the month on which a pick may be: one, or the week in which the nth of a weekday is."""
    if pick.what == DAY:
        return range(pick.nth, pick.nth + 1)
    first = _WEEK * pick.nth - (6 if pick.nth > 0 else 0)
    return range(first, first + _WEEK)


def _make_days(base: Days, days: Sequence[int], span: Span = NOWHERE) -> Days:
    """Return days of the month in order, which are counted as the day of `base` is.

    Before the first day is the last one of the month before, and behind the last is the first of the next one.
    """
    period = base.period or Period()
    most = min((monthrange(_COMMON_YEAR, month)[1] for month in period.months), default=_SURE_DAYS)
    if not period.months and period.unit != Unit.MONTH:
        raise Refused("inexpressible", span, "count it in days or weeks, from a weekday or a day of the month")
    side = 1 if base.picks[0].nth > 0 else -1  # the end of the month from which they are counted
    is_over = any(day * side <= 0 for day in days)
    is_far = max(map(abs, (base.picks[0].nth, *days))) > most
    if is_far or (is_over and (period.months or period.interval > 1)):
        raise Refused("inexpressible", span, "name a day that every month has")
    picks = tuple(Pick(day if day * side > 0 else day - side, DAY) for day in days)
    return replace(base, picks=picks, on=True, span=span)


_IN_DAYS = {Unit.DAY: 1, Unit.WEEK: _WEEK}


def count_days(node: Relative, base: Days, period: Period) -> Days:
    """Return the days that lie a number of days before or after a day of each period."""
    [pick] = base.picks
    amounts = node.length.amounts if node.length is not None else ()
    shift = sum(_IN_DAYS.get(unit, _WEEK * _WEEK) * count for unit, count in amounts)
    if pick.what > DAY or not 0 < shift <= _SURE_DAYS:
        raise Refused("inexpressible", node.span, "count it in days or weeks, from a weekday or a day of the month")
    shift = -shift if node.back else shift
    days = [day + shift for day in _find_days(pick)]
    moved = _make_days(replace(base, period=period, marked=True), days, node.span)
    return moved if pick.what == DAY else replace(moved, only=((pick.what + shift) % _WEEK,))
