"""Resolve the days that a phrase names to dates of the calendar."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from dateutil.easter import easter
from dateutil.relativedelta import relativedelta

from cloudsched.domain.schedules.words import English
from cloudsched.language.grammar_days import list_weekdays
from cloudsched.language.messages import say, say_day
from cloudsched.language.nodes import Date, Days, Length, Months, Period, Point, Relative, Span, Unit
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.language.phrase_context import Context

ONE_DAY = timedelta(days=1)
EASTER_DAYS = (0, -2, 1, -46, -7, -3, -1, 39, 49, 50, 60, -47)
"""The distances of the lexicon's feasts from Easter Sunday, in days, by their numbers from 1 on."""
_MONTHS = {Unit.MONTH: 1, Unit.QUARTER: 3, Unit.YEAR: 12}
_MOST_PERIODS = 72
"""The number of periods in which a day is looked for: a fifth Monday in February comes every six years."""
_SUNDAY = 6


def to_relativedelta(length: Length) -> relativedelta:
    """Convert a length of time for calendar arithmetic."""
    total = relativedelta()
    for unit, count in length.amounts:
        if unit in (Unit.QUARTER, Unit.FORTNIGHT, Unit.HALF_YEAR):  # "for the next quarter" is no length
            raise Refused("too-vague", length.span)
        total += relativedelta(**{f"{unit.name.lower()}s": count})  # type: ignore[arg-type]  # years and months are whole
    return total


D = TypeVar("D", bound=date)


def add_length(day: D, length: Length, *, back: bool = False) -> D:
    """Return a day or a time plus a length of time, or minus it if ``back`` is set."""
    return day - to_relativedelta(length) if back else day + to_relativedelta(length)


def find_period(unit: Unit, day: date, ahead: int = 0) -> tuple[date, date]:
    """Return the first day of a week, month, quarter or year, and the first one after it.

    It is the period of a day, or the one so many periods later.
    """
    if unit == Unit.WEEK:
        first = day + timedelta(weeks=ahead, days=-day.weekday())
        return first, first + timedelta(weeks=1)
    months = _MONTHS[unit]
    first = day.replace(day=1, month=(day.month - 1) // months * months + 1) + relativedelta(months=months * ahead)
    return first, first + relativedelta(months=months)


def find_first_day(point: Point, context: Context, base: date) -> date:
    """Return the first day of a point. It is not before ``base`` unless the point names a year."""
    return find_range(point, context, base)[0]


def find_range(point: Point, context: Context, base: date) -> tuple[date, date]:
    """Return the first and the last day of a point: of a month, a year or another period, or the same day twice."""
    unit: Unit | None = None
    match point:
        case Date():
            first = resolve_date(point, context, base)
            unit = Unit.MONTH if point.day is None else None
        case Days():
            first = find_nth_day(point, context, base)
        case Relative():
            first = resolve_relative_day(point, context, base)
        case Months():
            month, *others = point.months
            if others:
                raise Refused("not-understood", point.span)
            first, unit = max(date(base.year + (month < base.month), month, 1), base), Unit.MONTH
        case Period():
            unit = point.unit
            near = context.today if point.year is None else date(point.year, 1, 1)
            first, _ = find_period(unit, near, point.ahead or 0)
    return first, first if unit is None else find_period(unit, first)[1] - ONE_DAY


def resolve_date(node: Date, context: Context, base: date) -> date:
    """Return a date. Without a year, it is the first such date from ``base`` on."""
    node = resolve_date_order(node, context)
    years = range(base.year, base.year + 9) if node.year is None else [node.year]
    months = range(1, 13) if node.month is None else [node.month]
    found = (_make_date(year, month, node.day or 1) for year in years for month in months)
    result = next((each for each in found if each is not None and (each >= base or node.year is not None)), None)
    if result is None:
        raise Refused("no-such-date", node.span)
    if node.weekday not in (None, result.weekday()):
        weekday = say(English.weekdays[result.weekday()])
        raise Refused("contradiction", node.span, say("{day:%Y-%m-%d} is a {weekday}", day=result, weekday=weekday))
    return result


def resolve_date_order(node: Date, context: Context) -> Date:
    """Return a date whose day and month are decided. Ask if 3/4 can be either."""
    if node.swapped is None:
        return node
    options = [
        Option(say("{day} {month}", day=order[1], month=say(English.months[order[0] - 1])), order)
        for order in ((node.month or 1, node.day or 1), node.swapped)
    ]
    chosen = context.pick("date-order", node.span, options)
    return replace(node, month=chosen[0], day=chosen[1])


def _make_date(year: int, month: int, day: int) -> date | None:
    """Return a day of a month, the last one for -1, or a feast for month 0. None if the calendar has no such day."""
    if not month:
        return easter(year) + timedelta(days=EASTER_DAYS[day - 1])
    length = monthrange(year, month)[1]
    day = length if day < 0 else day
    return date(year, month, day) if 0 < day <= length else None


def find_next_weekday(weekday: int, after: date) -> date:
    """Return the first such weekday after a day."""
    return after + timedelta(days=(weekday - after.weekday() - 1) % 7 + 1)


def resolve_relative_day(node: Relative, context: Context, base: date) -> date:
    """Return the date of a day relative to today or to another day."""
    today, weekday = context.today, node.weekday or 0
    match node.kind:
        case "now" | "day":
            return today + timedelta(days=node.count)
        case "weekday":
            return _resolve_weekday(node, weekday, context)
        case "weeks-on":
            of_week = find_period(Unit.WEEK, today, node.count)[0] + timedelta(days=weekday)
            coming = find_next_weekday(weekday, today) + timedelta(weeks=node.count)
            is_clear = of_week == coming or not node.from_moment
            return coming if is_clear else ask_day((of_week, coming), node.span, context)
        case "week":
            return find_period(Unit.WEEK, today, node.ahead or 0)[0] + timedelta(days=weekday)

    start = today if node.base is None else find_first_day(node.base, context, base)
    if node.kind == "edge":
        if node.ahead is None:
            context.assume(say("That is {at}.", at=start))
        return start
    if node.kind == "business":
        return _add_business_days(node, context, start)
    if node.kind == "weekdays":
        return find_next_weekday(weekday, start) + timedelta(weeks=node.count - 1)
    if node.length is None or node.length.finest < Unit.DAY:
        raise Refused("too-vague", node.span)
    return add_length(start, node.length, back=node.back)


def _add_business_days(node: Relative, context: Context, day: date) -> date:
    if context.calendar is not None:
        raise Refused("inexpressible", node.span, "give the date: which days are holidays is not known here")
    context.assume("Monday to Friday are business days, also holidays.")
    step = -ONE_DAY if node.back else ONE_DAY
    weeks, more = divmod(node.count - 1, 5)
    day += step * 7 * weeks
    while more >= 0:
        day += step
        more -= day.weekday() < 5
    return day


def _resolve_weekday(node: Relative, weekday: int, context: Context) -> date:
    """Return the weekday that "this" or "next" means. Ask if the current week makes it ambiguous."""
    today = context.today
    coming = find_next_weekday(weekday, today) + timedelta(weeks=(node.ahead or 1) - 1)
    of_today = today.weekday()
    is_near = weekday > of_today or (of_today == _SUNDAY and weekday != (0 if node.ahead else _SUNDAY))
    if node.ahead is None or is_near != bool(node.ahead):
        return coming
    if node.ahead:
        return ask_day((coming, coming + timedelta(weeks=1)), node.span, context)
    return ask_day((today, coming) if weekday == of_today else (coming,), node.span, context)


def ask_day(days: Iterable[date], span: Span, context: Context) -> date:
    """Ask which of some days is meant."""
    today = context.today
    options = [Option(say("today, {day:%Y-%m-%d}", day=day) if day == today else say_day(day), day) for day in days]
    return context.pick("this-or-next", span, options)


def find_nth_day(node: Days, context: Context, base: date) -> date:
    """Return the date of "the 2nd Friday of May" or "the 15th", not before ``base``."""
    pick, period = node.picks[0], node.period or Period()
    if not pick.nth:
        if node.period is not None:
            raise Refused("too-vague", node.span)
        return find_next_weekday(pick.what, base - ONE_DAY)
    if period.each:
        raise Refused("inexpressible", node.span)
    day, steps = base, range(_MOST_PERIODS)
    if period.ahead is not None:
        day, steps, base = context.today, range(period.ahead, period.ahead + 1), date.min
    elif period.year is not None:
        day, steps, base = date(period.year, 1, 1), range(12 if period.months else 1), date.min
    allowed = list_weekdays(pick)
    for step in steps:
        start, end = find_period(Unit.MONTH if period.months else period.unit, day, step)
        if period.months and start.month not in period.months:
            continue
        days = [start + timedelta(days=each) for each in range((end - start).days)]
        found = [each for each in days if each.weekday() in allowed]
        if len(found) >= abs(pick.nth) and (result := found[pick.nth - (pick.nth > 0)]) >= base:
            return result
    raise Refused("no-such-date", node.span)


def make_local_time(day: date, hour: int, minute: int, second: int = 0) -> datetime:
    """Return a naive local time."""
    return datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001 -- local to the schedule's zone
