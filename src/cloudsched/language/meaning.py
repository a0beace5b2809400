"""Build the schedule of a phrase from its clauses, after deciding whether it repeats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.language.exceptions import list_added
from cloudsched.language.groups import Group, Plan, build_plan
from cloudsched.language.nodes import DAY, FOLLOWING, REGULARLY, REPEATS, Clock, Days, Period, Repeat, Unit
from cloudsched.language.once import build_once
from cloudsched.language.recurrences import build_recurring
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.language.context import Context
    from cloudsched.language.nodes import Clause


def build_schedule(clauses: Sequence[Clause], context: Context) -> Schedule:
    """Return the schedule that the clauses mean.

    Raises:
        Refused: The clauses do not make a schedule.
        Unclear: The clauses are ambiguous.
    """
    plan = build_plan(clauses)
    if plan.marks & {REPEATS, REGULARLY}:
        plan.groups = [_mark_repeated(group, is_daily=REPEATS in plan.marks) for group in plan.groups]
    if "forever" in plan.marks and plan.ends:
        raise Refused("contradiction", plan.ends[0].span)
    resolve_zone(plan, context)
    context.clock24 = any(is_24_hour(clock) for clock in list_clocks(plan))
    if _is_recurring(plan, context):
        if "once" in plan.marks:
            raise Refused("contradiction")
        if any(group.relatives for group in plan.groups):
            raise Refused("contradiction", plan.groups[0].relatives[0].span if plan.groups[0].relatives else None)
        return build_recurring(plan, context)
    if plan.calendars or any(exception.holidays for exception in plan.exceptions):
        raise Refused("no-recurrence")
    counted = next((days for group in plan.groups for days in group.days if days.business), None)
    if counted is not None and context.calendar is not None:
        raise Refused("inexpressible", counted.span, "give the date: which days are holidays is not known here")
    return _build_dates(plan, context) if plan.added else build_once(plan, context)


def _mark_repeated(group: Group, *, is_daily: bool) -> Group:
    """Return a group that repeats, since a word such as "always" says so: on its days, or every day.

    Raises:
        Refused: "Regularly" is no frequency, and there is no other.
    """
    if group.days or group.repeat is not None:
        return replace(group, days=[replace(days, marked=True) for days in group.days])
    if group.relatives or (group.part is not None and group.part.each):
        return group
    if not is_daily:
        raise Refused("too-vague", hint="say how often: every day, every Monday")
    return replace(group, repeat=Repeat(1, Unit.DAY, span=(0, 0)))


def _build_dates(plan: Plan, context: Context) -> Schedule:
    """Return the schedule of several single dates; of those that are over, the first may be left out."""
    dates = list_added(plan.added, context)
    try:
        once = build_once(plan, context)
    except Refused as refused:
        if refused.code != "past":
            raise
    else:
        local = (once.at or context.now).astimezone(load_tzinfo(once.timezone)).replace(tzinfo=None)
        dates = [local.isoformat(), *dates]
    return Schedule(dtstart=dates[0], rdates=dates[1:], timezone=context.timezone)


def resolve_zone(plan: Plan, context: Context) -> None:
    """Set the context to the time zone that the phrase names, if any, and to whether it is its owner's."""
    context.follows = FOLLOWING in plan.marks
    if plan.place is not None:
        context.is_placed = True
        names = plan.place.names
        is_doubtful = plan.place.is_loose and context.is_titled
        if is_doubtful:  # "meet Bob in London" may be where, and no zone
            names = tuple(dict.fromkeys((context.timezone, *names)))
        options = tuple(Option(name, name) for name in names)
        code = "place" if is_doubtful else "zone"
        chosen = context.choices.pick(code, plan.place.span, options) if len(options) > 1 else names[0]
        if str(chosen).startswith("Etc/GMT"):
            context.choices.assume(_say_offset(str(chosen)))
        context.timezone = str(chosen)


def _say_offset(name: str) -> str:
    """Return what a zone of a fixed offset means: its name counts the hours west of Greenwich."""
    hours = -int(name.removeprefix("Etc/GMT") or 0)
    if not hours:
        return f"{name} is UTC."
    side = "ahead of" if hours > 0 else "behind"
    return f"{name} is {abs(hours)} hour{'s' if abs(hours) > 1 else ''} {side} UTC."


def list_clocks(plan: Plan) -> list[Clock]:
    """Return all times of day in a phrase."""
    result = [clock for group in plan.groups for clock in group.clocks]
    for group in plan.groups:
        if group.window is not None:
            result += [clock for clock in (group.window.first, group.window.last) if clock is not None]
    if plan.start is not None and plan.start.clock is not None:
        result.append(plan.start.clock)
    return result + [end.clock for end in plan.ends if end.clock is not None]


def is_24_hour(clock: Clock) -> bool:
    """Return whether a time is clearly written on the 24-hour clock."""
    return clock.exact and clock.half is None and not clock.named


def _is_recurring(plan: Plan, context: Context) -> bool:
    if plan.recurs:
        return True
    all_days = [days for group in plan.groups for days in group.days]
    if not all_days:
        return False
    bounded = bool(plan.ends or plan.exceptions or plan.calendars or plan.start)
    decided = [
        _is_repeated(days, context, bounded=bounded, is_range=group.only_if is not None)
        for group in plan.groups
        for days in group.days
    ]
    if all(decided) and not any(group.relatives for group in plan.groups):
        return True
    if any(decided):
        raise Refused("contradiction", all_days[0].span)
    return False


def _is_repeated(days: Days, context: Context, *, bounded: bool, is_range: bool) -> bool:
    """Return whether days without "every" or a plural still mean a repetition; ask if it is unclear."""
    period = days.period
    is_open = bool(days.dates) and all(date.year is None and date.month for date in days.dates)
    if is_open and (context.is_yearly or len(days.dates) >= _MANY_DATES):
        return _ask_repeat(days, context)
    if days.dates or (period is not None and (period.year is not None or period.ahead is not None)):
        return False
    if days.business and context.calendar is not None and any(pick.nth for pick in days.picks):
        context.choices.assume(f"It is in every {(period or Period()).unit.name.lower()}.")
        return True
    several = len(days.picks) > 1 and not is_range
    if period is not None and period.months:
        return several or len(period.months) > 1 or days.plural
    if period is not None and (not period.definite or several):
        context.choices.assume(f"It is in every {period.unit.name.lower()}.")
        return True
    if all(not pick.nth for pick in days.picks):
        if several and days.either:
            return _ask_repeat(days, context)
        if several:
            context.choices.assume("It is in every week.")
        return several
    if period is None and not several and all(pick.what == DAY for pick in days.picks):
        return False
    if several:
        context.choices.assume("It is in every month.")
        return True
    return True if bounded else _ask_repeat(days, context)


_MANY_DATES = 3
"""So many dates without a year may well be meant for every year."""


def _ask_repeat(days: Days, context: Context) -> bool:
    options = (Option("every time", True), Option("only the next time", False))
    return bool(context.choices.pick("once-or-repeat", days.span, options))
