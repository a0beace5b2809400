"""Exceptions of a schedule: weekdays, months, days of the month, single dates, and named calendars.

A phrase names a calendar by its id, or as "holidays" and "business days".
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.schedules.calendar_days import WEEKENDS
from cloudsched.domain.schedules.calendar_rule import CALENDAR_ID, MAX_CALENDARS
from cloudsched.language.dates import find_first_day, find_range, make_local_time
from cloudsched.language.messages import say
from cloudsched.language.nodes import (
    DAY,
    WORKDAY,
    Added,
    Date,
    Days,
    Except,
    Months,
    Period,
    Stretch,
    Unit,
)
from cloudsched.language.result import Refused
from cloudsched.language.rules import ALL_MONTHS, Draft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.groups import Plan
    from cloudsched.language.phrase_context import Context

EVERY_DAY: Final = [(0, day) for day in range(7)]
_MOST_IN_A_MONTH: Final = 20
"""The number of days from Monday to Friday that every month has."""


def add_calendars(schedule: Schedule, plan: Plan, context: Context) -> Schedule:
    """Return a schedule with the calendars that a plan names or implies, besides its own.

    The code that stores or previews the schedule supplies the days of those that are not built in.
    """
    found: dict[str, str] = {}
    number = schedule.business_day
    for named in plan.calendars:
        for name in named.ids:
            calendar = name or context.calendar
            if calendar is None:
                raise Refused("holidays", named.span)
            if re.fullmatch(CALENDAR_ID, calendar) is None:
                hint = "a calendar's id has only letters, digits, hyphens and underscores"
                raise Refused("not-understood", named.span, hint)
            found.setdefault(calendar, named.on)
        number = named.business_day or number
    for exception in plan.exceptions:
        if context.calendar is not None and any(isinstance(each, Days) and each.business for each in exception.points):
            raise Refused("inexpressible", exception.span)
    all_days = plan.days
    business = [days for days in all_days if days.business]
    moved = business[0].moved if business else ""
    if moved or (business and context.calendar is not None):
        for days in all_days:
            if not days.business or days.moved != moved:
                raise Refused("inexpressible", days.span, "make two schedules of it")
        counted = None if moved else _find_counted(all_days)
        number = counted or number
        if moved or counted:
            found[WEEKENDS] = moved or "SKIP"
        if context.calendar is None:
            context.assume("Monday to Friday are business days, also holidays.")
        else:
            found[context.calendar] = moved or "SKIP"
    if not found:
        return schedule
    rules: list[object] = [rule for rule in schedule.calendars if rule.id not in found]
    rules += [{"id": name, "on": on} for name, on in found.items()]
    if len(rules) > MAX_CALENDARS:
        raise Refused("too-many")
    return schedule.model_copy(update={"calendars": rules, "business_day": number})


def _find_counted(all_days: list[Days]) -> int | None:
    """Return the number of the business day of the month that is meant. None if every one is."""
    if not any(days.is_counted for days in all_days):
        return None
    pick, *others = {pick for days in all_days for pick in days.picks}
    is_yearly = any(days.period is not None and days.period.unit != Unit.MONTH for days in all_days)
    if others or pick.what != WORKDAY or (is_yearly and abs(pick.nth) > _MOST_IN_A_MONTH):
        raise Refused("inexpressible", all_days[0].span, "make two schedules of it")
    return pick.nth


def apply_exceptions(drafts: list[Draft], exceptions: Sequence[Except], context: Context, start: date) -> list[str]:
    """Narrow the rules in place, and return the single dates to exclude."""
    dates: list[str] = []
    base = max(start, context.today)
    for exception in exceptions:
        for point in exception.points:
            if isinstance(point, Stretch | Period):
                dates += _list_stretch(point, context, base)
            elif isinstance(point, Months):
                for draft in drafts:
                    draft.months = [each for each in draft.months or ALL_MONTHS if each not in point.months]
                    if not draft.months:
                        raise Refused("never", point.span)
            elif isinstance(point, Days) and not point.dates and point.is_each:
                for draft in drafts:
                    _remove_days(draft, point)
            else:
                result = find_first_day(point, context, base)
                context.assume(say("Only {day:%Y-%m-%d} is excluded.", day=result))
                if isinstance(point, Date) and point.clock is not None:
                    result = make_local_time(result, *context.resolve_time(point.clock))
                dates.append(result.isoformat())
    return dates


_LONGEST_STRETCH = 62
"""The largest number of days that may be left out in a row."""


def _list_stretch(point: Stretch | Period, context: Context, base: date) -> list[str]:
    """Return the dates from the first to the last day that a phrase leaves out."""
    if isinstance(point, Period):
        first, last = find_range(point, context, base)
    else:
        first = find_first_day(point.first, context, base)
        _, last = find_range(point.last, context, first)
    days = (last - first).days
    if days < 0 or last < context.today:
        raise Refused("past", point.span)
    if days >= _LONGEST_STRETCH:
        raise Refused("inexpressible", point.span, "make two schedules of it")
    context.assume(say("It leaves out {first:%Y-%m-%d} to {last:%Y-%m-%d}.", first=first, last=last))
    dates = [(first + timedelta(days=day)).isoformat() for day in range(days + 1)]
    context.stretched.update(dates)
    return dates


def list_added(added: Sequence[Added], context: Context) -> list[str]:
    """Return the single dates that a phrase adds, as local times."""
    return [
        make_local_time(find_first_day(date, context, context.today), *context.resolve_time(date.clock)).isoformat()
        for each in added
        for date in each.dates
        if date.clock is not None
    ]


def _remove_days(draft: Draft, point: Days) -> None:
    """Take days of the week or the month out of a rule: the first Monday by listing all others of the month."""
    picks, period = point.picks, point.period or Period()
    kinds, sign = {pick.what for pick in picks}, 1 if picks[0].nth > 0 else -1
    weekdays = draft.weekdays or EVERY_DAY
    is_every = draft.freq in {"DAILY", "WEEKLY"} and draft.interval == 1 and not draft.month_days
    if point.is_counted:
        is_clear = is_every and (kinds == {DAY} or max(kinds) < DAY) and all(pick.nth * sign > 0 for pick in picks)
    else:
        is_clear = bool(draft.weekdays or draft.month_days) or draft.freq not in {"WEEKLY", "MONTHLY", "YEARLY"}
    if not is_clear or draft.positions or point.weeks or period.unit != Unit.MONTH or period.interval > 1:
        raise Refused("inexpressible", point.span)
    if kinds == {DAY}:
        draft.month_days = [nth for nth in range(sign, 32 * sign, sign) if (nth, DAY) not in picks]
    else:
        numbers = range(sign, 6 * sign, sign) if point.is_counted else ()
        draft.weekdays = [pick for pick in weekdays if pick[1] not in kinds]
        draft.weekdays += [
            (nth, day) for day in kinds for nth in numbers if (nth, day) not in picks and (0, day) in weekdays
        ]
        if not draft.weekdays:
            raise Refused("never", point.span)
    if is_every:
        draft.freq = "MONTHLY" if point.is_counted else "WEEKLY"
