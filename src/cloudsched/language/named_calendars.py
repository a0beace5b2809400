"""Give a schedule the calendars that its phrase means, by their ids or as "holidays" and "business days"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from cloudsched.domain.calendars.calendar_rule import MAX_CALENDARS, CalendarRule
from cloudsched.domain.calendars.days import WEEKENDS
from cloudsched.language.nodes import WORKDAY, Days, Unit
from cloudsched.language.refusals import Refused

if TYPE_CHECKING:
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.context import Context
    from cloudsched.language.groups import Plan
    from cloudsched.language.nodes import Span

_MOST_IN_A_MONTH: Final = 20
"""Every month has as many days from Monday to Friday."""


def add_calendars(schedule: Schedule, plan: Plan, context: Context) -> Schedule:
    """Return a schedule with the calendars that a plan names or implies, besides those that it has.

    Their days are not known here: whoever stores or previews the schedule supplies them.

    Raises:
        Refused: There is no default calendar, or no rule of calendars can express what the phrase says.
    """
    found: dict[str, str] = {}
    number: int | None = None
    for named in plan.calendars:
        found |= dict.fromkeys(named.ids, named.on)
        number = named.business_day or number
    for exception in plan.exceptions:
        if exception.holidays:
            found.setdefault(_require_calendar(context, exception.span), "skip")
        if context.calendar is not None and any(isinstance(each, Days) and each.business for each in exception.points):
            raise Refused("inexpressible", exception.span)
    all_days = [days for group in plan.groups for days in group.days]
    business = [days for days in all_days if days.business]
    if any(days.moved for days in business):
        found |= _find_moved(all_days, context)
    elif business and context.calendar is not None:
        counted = _find_counted(all_days)
        number = counted or number
        found |= {WEEKENDS: "skip", context.calendar: "skip"} if counted else {context.calendar: "skip"}
    if not found:
        return schedule
    kept = [rule for rule in schedule.calendars if rule.id not in found]
    rules = [*kept, *(_make_rule(name, on, plan) for name, on in found.items())]
    if len(rules) > MAX_CALENDARS:
        raise Refused("too-many", hint=f"a schedule may name {MAX_CALENDARS} calendars")
    changes = {"calendars": tuple(rules)} | ({} if number is None else {"business_day": number})
    return schedule.copy_unchecked(**changes)


def _require_calendar(context: Context, span: Span) -> str:
    if context.calendar is None:
        raise Refused("holidays", span)
    return context.calendar


def _find_moved(all_days: list[Days], context: Context) -> dict[str, str]:
    """Return the calendars of "the last business day before the 25th"."""
    if len(all_days) > 1:
        raise Refused("inexpressible", all_days[1].span, "make two schedules: one for each kind of day")
    on = all_days[0].moved
    if context.calendar is None:
        context.choices.assume("Monday to Friday are business days, also holidays.")
        return {WEEKENDS: on}
    return {WEEKENDS: on, context.calendar: on}


def _find_counted(all_days: list[Days]) -> int | None:
    """Return which business day of the month is meant; None if every one is."""
    other = next((days for days in all_days if not days.business), None)
    if other is not None:
        raise Refused("inexpressible", other.span, "make two schedules: one for business days, one for the others")
    picks = {pick for days in all_days for pick in days.picks}
    if all(not pick.nth for pick in picks):
        return None
    pick = picks.pop()
    is_yearly = any(days.period is not None and days.period.unit != Unit.MONTH for days in all_days)
    if picks and all(each.what == WORKDAY and each.nth for each in (pick, *picks)):
        hint = (
            "make two tasks, each with one business day of the month: for example one for the first, one for the last"
        )
        raise Refused("inexpressible", all_days[0].span, hint)
    if picks or pick.what != WORKDAY or (is_yearly and abs(pick.nth) > _MOST_IN_A_MONTH):
        hint = "name one business day of the month, for example: the third business day of the month"
        raise Refused("inexpressible", all_days[0].span, hint)
    return pick.nth


def _make_rule(name: str, on: str, plan: Plan) -> CalendarRule:
    try:
        return CalendarRule.model_validate({"id": name, "on": on})
    except ValidationError:
        span = next((named.span for named in plan.calendars if name in named.ids), None)
        hint = "a calendar's id has only letters, digits, hyphens and underscores"
        raise Refused("not-understood", span, hint) from None
