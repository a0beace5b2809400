"""Resolve the days that a phrase names to dates of the calendar."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import replace
from datetime import MAXYEAR, date, datetime, timedelta
from typing import TYPE_CHECKING

from dateutil.easter import easter
from dateutil.relativedelta import relativedelta

from cloudsched.domain.schedules.words import English
from cloudsched.language.grammar_days import list_weekdays
from cloudsched.language.messages import Said, say, say_day
from cloudsched.language.nodes import DAY, Date, Days, Length, Months, Period, Pick, Point, Relative, Unit, Within, Year
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from cloudsched.language.phrase_context import Context

ONE_DAY = timedelta(days=1)
LAST_YEAR = 9998
EASTER_DAYS = {1: 0, 2: -2, 3: 1, 4: -46, 5: -7, 6: -3, 7: -1, 8: 39, 9: 49, 10: 50, 11: 60, 12: -47}
"""The distances of the lexicon's feasts from Easter Sunday, in days."""
_DELTA = {
    Unit.SECOND: "seconds",
    Unit.MINUTE: "minutes",
    Unit.HOUR: "hours",
    Unit.DAY: "days",
    Unit.WEEK: "weeks",
    Unit.MONTH: "months",
    Unit.YEAR: "years",
}


def to_relativedelta(length: Length) -> relativedelta:
    """Convert a length of time for calendar arithmetic."""
    amounts: dict[str, int] = {}
    for unit, count in length.amounts:
        if count > 100_000_000:
            raise Refused("never", length.span)
        amounts[_DELTA[unit]] = amounts.get(_DELTA[unit], 0) + count
    return relativedelta(**amounts)  # type: ignore[arg-type]  # years and months are whole


def add_length(day: date, length: Length, *, back: bool = False) -> date:
    """Return a day plus a length of time, or minus it if ``back`` is set."""
    try:
        return day - to_relativedelta(length) if back else day + to_relativedelta(length)
    except (ValueError, OverflowError):
        raise Refused("never", length.span) from None


def find_first_day(point: Point, context: Context, base: date) -> date:
    """Return the first day of a point. It is not before ``base`` unless the point names a year."""
    if isinstance(point, Date):
        return resolve_date(point, context, base)
    if isinstance(point, Relative):
        return resolve_relative_day(point, context, base)
    if isinstance(point, Year):
        return date(_resolve_year(point, context), 1, 1)
    if isinstance(point, Months):
        month = point.months[0]
        year = base.year + (month < base.month)
        return max(date(year, month, 1), base)
    return find_nth_day(point, context, base)


def find_last_day(point: Point, context: Context, base: date, *, through: bool = False) -> date:
    """Return the last day of "until": a day is included, a month or a year only by "through"."""
    unit = Unit.MONTH
    if isinstance(point, Months):
        month = point.months[-1] if len(point.months) == 1 else 0
        if not month:
            raise Refused("not-understood", point.span)
        is_next_year = month < base.month or (month == base.month and not through)
        first = date(base.year + is_next_year, month, 1)
    elif isinstance(point, Year):
        first, unit = date(_resolve_year(point, context), 1, 1), Unit.YEAR
    elif isinstance(point, Date) and point.day is None and point.month is not None and point.year is not None:
        first = date(point.year, point.month, 1)
    elif isinstance(point, Relative) and point.kind == "unit":
        first, unit = resolve_relative_day(point, context, base), point.unit or unit
    else:
        return find_first_day(point, context, base)

    if through:
        count = 3 if unit == Unit.QUARTER else 1
        first = add_length(first, Length(((Unit.MONTH if unit == Unit.QUARTER else unit, count),), point.span))
    return first - ONE_DAY


def _resolve_year(point: Year, context: Context) -> int:
    return point.year if point.year is not None else context.today.year + (point.ahead or 0)


def resolve_date(node: Date, context: Context, base: date) -> date:
    """Return a date. Without a year, it is the first such date from ``base`` on."""
    node = resolve_date_order(node, context)
    month, day = node.month, node.day
    if month == 0 and day is not None:
        return _find_easter_day(day, node, base)
    if day is None:
        if month is None or node.year is None:
            raise Refused("no-such-date", node.span)
        return date(node.year, month, 1)
    if month is None:
        return _find_day_of_month(node, day, base)
    if node.year is not None:
        result = _make_date(node.year, month, day)
    else:
        found = (_make_date(year, month, day) for year in range(base.year, base.year + 9))
        result = next((each for each in found if each is not None and each >= base), None)
    if result is None:
        raise Refused("no-such-date", node.span)
    if node.weekday is not None and result.weekday() != node.weekday:
        hint = _say_weekday(result)
        raise Refused("contradiction", node.span, hint)
    return result


def resolve_date_order(node: Date, context: Context) -> Date:
    """Return a date whose day and month are decided. Ask if 3/4 can be either."""
    if node.swapped is None:
        return node
    options = tuple(
        Option(say("{day} {month}", day=order[1], month=say(English.months[order[0] - 1])), order)
        for order in ((node.month or 1, node.day or 1), node.swapped)
    )
    chosen = context.choices.pick("date-order", node.span, options)
    return replace(node, month=chosen[0], day=chosen[1], swapped=None)


def _make_date(year: int, month: int, day: int) -> date | None:
    if not 1583 <= year <= LAST_YEAR or day > monthrange(year, month)[1]:
        return None
    return date(year, month, day)


def _find_easter_day(kind: int, node: Date, base: date) -> date:
    """Return Easter Sunday, or a day that is counted from it."""
    shift = EASTER_DAYS[kind]
    years = [node.year] if node.year is not None else [base.year, base.year + 1]
    for year in years:
        if not 1583 <= year <= 4099:
            raise Refused("no-such-date", node.span)
        result = easter(year) + timedelta(days=shift)
        if result >= base or node.year is not None:
            return result
    raise Refused("no-such-date", node.span)


def _say_weekday(day: date) -> Said:
    return say("{day:%Y-%m-%d} is a {weekday}", day=day, weekday=say(English.weekdays[day.weekday()]))


def _say_coming(day: date, today: date) -> Said:
    return say("today, {day:%Y-%m-%d}", day=day) if day == today else say_day(day)


def _find_day_of_month(node: Date, day: int, base: date) -> date:
    for ahead in range(13):
        year, month = divmod(base.year * 12 + base.month - 1 + ahead, 12)
        result = _make_date(year, month + 1, day)
        if result is not None and result >= base:
            if node.weekday is not None and result.weekday() != node.weekday:
                raise Refused("contradiction", node.span, _say_weekday(result))
            return result
    raise Refused("no-such-date", node.span)


def find_next_weekday(weekday: int, after: date) -> date:
    """Return the first such weekday after a day."""
    return after + timedelta(days=(weekday - after.weekday() - 1) % 7 + 1)


def resolve_relative_day(node: Relative, context: Context, base: date) -> date:
    """Return the date of a day relative to today or to another day."""
    today = context.today
    if node.kind == "now":
        return today
    if node.kind == "day":
        return today + timedelta(days=node.count)
    if node.kind == "weekday" and node.weekday is not None:
        return _resolve_weekday(node, node.weekday, context)
    if node.kind == "week" and node.weekday is not None:
        monday = today - timedelta(days=today.weekday())
        return monday + timedelta(days=7 * (node.ahead or 0) + node.weekday)
    if node.kind == "weeks-on" and node.weekday is not None:
        return _resolve_weeks_on(node, node.weekday, context)
    if node.kind == "business":
        return _add_business_days(node, context, base)
    if node.kind == "weekdays" and node.weekday is not None:
        start = today if node.base is None else find_first_day(node.base, context, base)
        return find_next_weekday(node.weekday, start) + timedelta(weeks=min(node.count - 1, 10_000))
    if node.kind == "length" and node.length is not None:
        start = today if node.base is None else find_first_day(node.base, context, base)
        return add_length(start, node.length, back=node.back)
    if node.kind == "closest" and node.weekday is not None and node.base is not None:
        middle = find_first_day(node.base, context, base)
        return find_next_weekday(node.weekday, middle - timedelta(days=4))
    if node.kind in {"edge", "unit"}:
        return _find_edge(node, context, base)
    raise Refused("not-understood", node.span)


def _add_business_days(node: Relative, context: Context, base: date) -> date:
    if context.calendar is not None:
        raise Refused("inexpressible", node.span, "give the date: which days are holidays is not known here")
    context.choices.assume("Monday to Friday are business days, also holidays.")
    day = context.today if node.base is None else find_first_day(node.base, context, base)
    left = min(node.count, 10_000)
    while left:
        day += -ONE_DAY if node.back else ONE_DAY
        left -= day.weekday() < 5
    return day


def find_within(node: Within, context: Context) -> tuple[date, date]:
    """Return the first and the last day of the period within which all happens."""
    first = _find_edge(Relative("unit", ahead=node.ahead, unit=node.unit, span=node.span), context, context.today)
    if node.unit == Unit.WEEK:
        return first, first + timedelta(days=6)
    return first, first + relativedelta(months=1 if node.unit == Unit.MONTH else 3) - ONE_DAY


def _resolve_weekday(node: Relative, weekday: int, context: Context) -> date:
    """Return the weekday that "this" or "next" means. Ask if the current week makes it ambiguous."""
    today = context.today
    days: tuple[date, ...]
    coming = find_next_weekday(weekday, today)
    if node.ahead is None:
        return coming
    if node.ahead > 1:
        return _resolve_weekday(replace(node, ahead=1), weekday, context) + timedelta(weeks=node.ahead - 1)
    this_week = coming - timedelta(days=coming.weekday()) == today - timedelta(days=today.weekday())
    sunday = today.weekday() == 6
    if node.ahead == 0:
        if this_week or (sunday and weekday != 6):
            return coming
        days = (today, coming) if coming - today == timedelta(days=7) else (coming,)
    elif this_week or (sunday and weekday != 0):
        days = (coming, coming + timedelta(days=7))
    else:
        return coming
    options = tuple(Option(_say_coming(day, today), day) for day in days)
    return context.choices.pick("this-or-next", node.span, options)


def _resolve_weeks_on(node: Relative, weekday: int, context: Context) -> date:
    """Return the day of "in 2 weeks on Wednesday". Ask if weeks and Wednesdays count to two days."""
    weeks = timedelta(weeks=min(node.count, 10_000))
    of_week = context.today - timedelta(days=context.today.weekday() - weekday) + weeks
    coming = find_next_weekday(weekday, context.today) + weeks
    if of_week == coming or not node.from_moment:
        return coming
    options = tuple(Option(say_day(day), day) for day in (of_week, coming))
    return context.choices.pick("this-or-next", node.span, options)


def _find_edge(node: Relative, context: Context, base: date) -> date:
    today = context.today
    ahead = node.ahead or 0
    if isinstance(node.base, Date):
        month, year = node.base.month, node.base.year
        if month is None:
            year = year or today.year
            return date(year, 12, 31) if node.count < 0 else date(year, 1, 1)
        for at in [year] if year is not None else [base.year, base.year + 1]:
            result = date(at, month, monthrange(at, month)[1] if node.count < 0 else 1)
            if result >= base or year is not None:
                context.choices.assume(say("That is {at}.", at=result))
                return result
    if node.unit == Unit.WEEK:
        start = today - timedelta(days=today.weekday()) + timedelta(weeks=ahead)
        return start + timedelta(days=6) if node.kind == "edge" and node.count < 0 else start
    months = {Unit.MONTH: 1, Unit.QUARTER: 3, Unit.YEAR: 12}[node.unit or Unit.MONTH]
    first = today.replace(day=1, month=(today.month - 1) // months * months + 1) + relativedelta(months=months * ahead)
    if node.kind == "edge" and node.count < 0:
        return first + relativedelta(months=months) - ONE_DAY
    return first


def find_nth_day(node: Days, context: Context, base: date) -> date:
    """Return the date of "the 2nd Friday of May" or "the 15th", not before ``base``."""
    if node.dates:
        return resolve_date(node.dates[0], context, base)
    pick = node.picks[0]
    period = node.period or Period()
    if not pick.nth and node.period is None:
        return find_next_weekday(pick.what, base - ONE_DAY)
    if not pick.nth:
        raise Refused("too-vague", node.span)
    if period.each:
        raise Refused("inexpressible", node.span, "name one day, or how often: every month on the 2nd Tuesday")
    starts = _list_period_starts(period, context, base)
    length = {Unit.MONTH: 1, Unit.QUARTER: 3, Unit.YEAR: 12}[period.unit]
    if period.months:
        length = 1
    for start in starts:
        result = find_pick(pick, start, start + relativedelta(months=length))
        if result is not None and (result >= base or period.year is not None or period.ahead is not None):
            return result
    raise Refused("no-such-date", node.span)


def _list_period_starts(period: Period, context: Context, base: date) -> list[date]:
    today = context.today
    if period.months:
        years = [period.year] if period.year is not None else range(base.year, base.year + 6)
        return [date(year, month, 1) for year in years for month in sorted(period.months)]
    length = {Unit.MONTH: 1, Unit.QUARTER: 3, Unit.YEAR: 12}[period.unit]
    start = today.replace(day=1, month=(today.month - 1) // length * length + 1)
    if period.year is not None:
        return [date(period.year, 1, 1)]
    if period.ahead is not None:
        return [start + relativedelta(months=length * period.ahead)]
    start = base.replace(day=1, month=(base.month - 1) // length * length + 1)
    return [start + relativedelta(months=length * step) for step in range(14)]


def find_pick(pick: Pick, start: date, end: date) -> date | None:
    """Return the day that a pick names from ``start`` up to but excluding ``end``. None if there is none."""
    if pick.what == DAY:
        result = start + timedelta(days=pick.nth - 1) if pick.nth > 0 else end + timedelta(days=pick.nth)
        return result if start <= result < end else None
    allowed = list_weekdays(pick)
    step = ONE_DAY if pick.nth > 0 else -ONE_DAY
    day = start if pick.nth > 0 else end - ONE_DAY
    left = abs(pick.nth)
    while start <= day < end:
        left -= day.weekday() in allowed
        if not left:
            return day
        day += step
    return None


def make_local_time(day: date, hour: int, minute: int, second: int = 0) -> datetime:
    """Return a naive local time."""
    if day.year > min(LAST_YEAR, MAXYEAR):
        raise Refused("never", hint="choose an earlier year")
    return datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001 -- local to the schedule's zone
