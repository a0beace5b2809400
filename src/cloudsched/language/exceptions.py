"""Exceptions of a schedule: weekdays, months, days of the month, and single dates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.language.calendar import find_first_day, find_nth_day, make_local_time
from cloudsched.language.nodes import DAY, Date, Days, Months, Point, Relative, Unit
from cloudsched.language.refusals import Refused
from cloudsched.language.rules import ALL_MONTHS, Draft

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from cloudsched.language.context import Context
    from cloudsched.language.nodes import Added, Except

_NTHS = (1, 2, 3, 4, 5)


def apply_exceptions(drafts: list[Draft], exceptions: Sequence[Except], context: Context, start: date) -> list[str]:
    """Narrow the rules in place, and return the single dates to exclude."""
    dates: list[str] = []
    base = max(start, context.today)
    for exception in exceptions:
        for point in exception.points:
            if isinstance(point, Months):
                _remove_months(drafts, point)
            elif isinstance(point, Days) and not point.dates and _is_repeated(point):
                _remove_days(drafts, point)
            else:
                result = _resolve_date(point, context, base)
                clock = point.clock if isinstance(point, Date) else None
                text = result.isoformat()
                dates.append(
                    text if clock is None else make_local_time(result, *context.resolve_time(clock)).isoformat()
                )
    return dates


def list_added(added: Sequence[Added], context: Context) -> list[str]:
    """Return the single dates that a phrase adds, as local times."""
    dates = [date for each in added for date in each.dates]
    return [
        make_local_time(find_first_day(date, context, context.today), *context.resolve_time(date.clock)).isoformat()
        for date in dates
        if date.clock is not None
    ]


def _is_repeated(point: Days) -> bool:
    if all(not pick.nth for pick in point.picks):
        return True
    return point.period is None or point.period.each or (point.period.definite and not point.period.months)


def _remove_months(drafts: list[Draft], point: Months) -> None:
    for draft in drafts:
        left = [month for month in draft.months or ALL_MONTHS if month not in point.months]
        if not left:
            raise Refused("never", point.span)
        draft.months = left


def _remove_days(drafts: list[Draft], point: Days) -> None:
    if point.weeks or (point.period is not None and (point.period.unit != Unit.MONTH or point.period.interval > 1)):
        raise Refused("inexpressible", point.span)
    for draft in list(drafts):
        if all(not pick.nth for pick in point.picks):
            _remove_weekdays(draft, {pick.what for pick in point.picks}, point)
        elif all(pick.what == DAY for pick in point.picks):
            _remove_month_days(draft, [pick.nth for pick in point.picks], point)
        else:
            _remove_nth_weekdays(draft, [(pick.nth, pick.what) for pick in point.picks], point)


def _remove_weekdays(draft: Draft, out: set[int], point: Days) -> None:
    if draft.positions:
        raise Refused("inexpressible", point.span)
    if draft.freq == "WEEKLY" and not draft.weekdays:
        raise Refused("contradiction", point.span)
    if draft.weekdays:
        left = [(nth, day) for nth, day in draft.weekdays if day not in out]
    elif draft.freq in {"DAILY", "HOURLY", "MINUTELY", "SECONDLY"} or draft.month_days:
        left = [(0, day) for day in range(7) if day not in out]
    else:
        raise Refused("inexpressible", point.span)
    if not left:
        raise Refused("never", point.span)
    if draft.freq == "DAILY" and draft.interval == 1:
        draft.freq = "WEEKLY"
    draft.weekdays = left


def _remove_month_days(draft: Draft, out: list[int], point: Days) -> None:
    if draft.freq != "DAILY" or draft.interval > 1 or draft.weekdays or draft.month_days:
        raise Refused("inexpressible", point.span)
    if all(day > 0 for day in out):
        left = [day for day in range(1, 32) if day not in out]
    elif all(day < 0 for day in out):
        left = [-day for day in range(1, 32) if -day not in out]
    else:
        raise Refused("inexpressible", point.span)
    draft.freq = "MONTHLY"
    draft.month_days = left


def _remove_nth_weekdays(draft: Draft, out: list[tuple[int, int]], point: Days) -> None:
    weekly = draft.freq == "WEEKLY" or (draft.freq == "DAILY" and not draft.weekdays)
    if not weekly or draft.interval > 1 or draft.positions or draft.month_days:
        raise Refused("inexpressible", point.span)
    signs = {nth > 0 for nth, _ in out}
    if len(signs) > 1 or any(what > 6 or abs(nth) > 5 for nth, what in out):
        raise Refused("inexpressible", point.span)
    sign = 1 if signs.pop() else -1
    result: list[tuple[int, int]] = []
    for _, day in draft.weekdays or [(0, day) for day in range(7)]:
        gone = {nth for nth, what in out if what == day}
        result += [(sign * nth, day) for nth in _NTHS if sign * nth not in gone] if gone else [(0, day)]
    draft.freq = "MONTHLY"
    draft.weekdays = result


def _resolve_date(point: Point, context: Context, base: date) -> date:
    if isinstance(point, Date | Relative):
        if isinstance(point, Relative) and point.kind not in {"day", "weekday", "week", "closest", "weekdays"}:
            raise Refused("too-vague", point.span)
        result = find_first_day(point, context, base)
    elif isinstance(point, Days):
        result = find_nth_day(point, context, base)
    else:
        raise Refused("inexpressible", point.span)
    if result < context.today and not (isinstance(point, Date) and point.year):
        raise Refused("past", point.span)
    context.choices.assume(f"Only {result:%Y-%m-%d} is excluded.")
    return result
