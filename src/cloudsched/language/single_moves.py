"""Move what runs once: a single time, or one occurrence of a schedule, "move tomorrow's to Friday". All others stay."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.language.dates import find_first_day, find_next_weekday
from cloudsched.language.groups import build_plan
from cloudsched.language.meaning import build_once, build_schedule, settle_context
from cloudsched.language.messages import say, say_day
from cloudsched.language.nodes import Date, Days
from cloudsched.language.phrase_context import TimeOfDay
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.groups import Group
    from cloudsched.language.nodes import Clause
    from cloudsched.language.phrase_context import Context

_NEAR = 1
"""The number of days up to which a weekday beside the old day is meant, and not that of the other week."""
_WEEK = 7


def names_day(group: Group) -> bool:
    """Return whether a group names a single day, such as "tomorrow" or "24 May", and no weekday or length of time."""
    are_days = all(each.kind in {"day", "weekday", "week", "business"} for each in group.relatives)
    return are_days and bool(group.relatives or group.days) and all(days.dates for days in group.days)


def move_once(at: datetime, read: Sequence[Clause], context: Context) -> Schedule:
    """Return what runs once, at an instant, with what clauses name: a day, a time or a zone, or how often it repeats.

    It keeps its time of day, and its day unless a time "tonight" names another. A weekday is the one beside it.
    """
    local = context.to_local(at)
    context.default = TimeOfDay(*local.timetuple()[3:6])
    plan = build_plan(read)
    if plan.recurs:
        return build_schedule(read, context)
    context.keeps_time = True
    settle_context(plan, context)
    [group, *others] = plan.groups
    names_time = group.clocks if group.has_times else plan.place or context.follows
    if others or plan.exceptions or plan.ends or plan.start or not (names_time or group.has_days or plan.within):
        raise Refused("no-update")
    day = None
    picks = [pick for days in group.days for pick in days.picks]
    if len(picks) == 1 and group.days[0].is_weekly and not group.midnight:  # at midnight, it is asked about
        day = _find_weekday(group.days[0], local.date(), context)
    elif not (group.has_days or plan.within or (group.part and group.part.today)):
        day = local.date()
    if day is not None:
        group.days = [Days(dates=(Date(day.month, day.day, day.year),))]
    return build_once(plan, context)


def _find_weekday(days: Days, old: date, context: Context) -> date:
    """Return the day of the week that is beside an old day. Ask if it may be in the week before or after."""
    after = find_next_weekday(days.picks[0].what, old)
    before = after - timedelta(days=_WEEK)
    if before <= context.today or after - old <= timedelta(days=_NEAR):
        return after
    if old - before <= timedelta(days=_NEAR):
        return before
    options = tuple(Option(say_day(each), each) for each in (after, before))
    return context.pick("this-or-next", days.span, options)


def move_one(
    current: Schedule, context: Context, new: Sequence[Clause], old: Group | None = None, *, is_once: bool = False
) -> Schedule:
    """Return a schedule whose occurrence on one day is at another time.

    Without an `old` day, it is the next occurrence, or the one of the new day if the words say `is_once`.
    """
    anchored = current.anchor(context.now)
    [at] = anchored.upcoming(context.now, 1) if old is None else _find_one(anchored, context, old)
    moved = move_once(at, new, context)
    if old is None and moved.at is not None:
        own = list_on(anchored, context, context.to_local(moved.at).date())
        if len(own) == 1 and own != [at]:
            options = tuple(Option(say("the one on {day}", day=say_day(each)), each) for each in (at, *own))
            at = own[0] if is_once else context.pick("this-or-next", new[0].span, options)
            moved = move_once(at, new, context)
    if moved.at is None:
        raise Refused("no-update")
    template = "Only the one on {old:%Y-%m-%d at %H:%M} moves, to {new:%Y-%m-%d at %H:%M}."
    context.assume(say(template, old=context.to_local(at), new=context.to_local(moved.at)))
    return anchored.move_occurrence(at, moved.at)


def _find_one(anchored: Schedule, context: Context, old: Group) -> list[datetime]:
    """Return the one occurrence on the day that a group names."""
    points = [*old.relatives, *(each.dates[0] if each.dates else each for each in old.days)]
    if len(points) != 1 or old.has_times:
        raise Refused("no-update", hint="say which one moves by its day")
    day = find_first_day(points[0], context, context.today)
    own = list_on(anchored, context, day)
    if len(own) != 1:
        template = "it runs {count} times on {day:%Y-%m-%d}; say which one should move"
        raise Refused("no-update", points[0].span, say(template, count=len(own), day=day))
    return own


def list_on(anchored: Schedule, context: Context, day: date) -> list[datetime]:
    """Return the occurrences on one day that are still to come."""
    begin = context.to_instant(datetime.combine(day, datetime.min.time()))
    found = anchored.between(max(begin, context.now), begin + timedelta(hours=26))
    return [at for at in found if context.to_local(at).date() == day]
