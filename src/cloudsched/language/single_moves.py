"""Move one occurrence of a repeating schedule: "move tomorrow's to Friday at 10". All others stay."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.language.dates import find_first_day, find_next_weekday, make_local_time
from cloudsched.language.messages import say, say_day
from cloudsched.language.nodes import Days
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.groups import Group
    from cloudsched.language.nodes import Point
    from cloudsched.language.phrase_context import Context

_NEAR = 1
"""The number of days up to which a weekday beside the old day is meant, and not that of the other week."""
_WEEK = 7


def names_day(group: Group) -> bool:
    """Return whether a group names a single day, such as "tomorrow" or "24 May", and no weekday or length of time."""
    are_days = all(each.kind in {"day", "weekday", "week", "closest", "business"} for each in group.relatives)
    return are_days and bool(group.relatives or group.days) and all(days.dates for days in group.days)


def move_one(current: Schedule, context: Context, old: Group | None, new: Group, *, is_once: bool = False) -> Schedule:
    """Return a schedule whose occurrence on one day is at another time.

    Without an `old` day, it is the next occurrence, or the one of the new day if the words say `is_once`.
    """
    anchored = current.anchor(context.now)
    at = _find_next(anchored, context, new, is_once=is_once) if old is None else _find_one(anchored, context, old)
    local = context.to_local(at)
    if new.repeat or new.months or new.window or new.part:
        raise Refused("no-update", hint="say to which day and time it should move")

    day = _find_new_day(new, context, local.date())
    times = context.resolve_times(new.clocks, None) if new.clocks else [(local.hour, local.minute, local.second)]
    if len(times) != 1:
        raise Refused("no-update", hint="one occurrence moves to one time")
    moved = make_local_time(day, *times[0])
    if context.to_instant(moved) <= context.now:
        raise Refused("past")

    template = "Only the one on {old:%Y-%m-%d at %H:%M} moves, to {new:%Y-%m-%d at %H:%M}."
    context.assume(say(template, old=local, new=moved))
    return anchored.move_occurrence(at, context.to_instant(moved))


def _find_next(anchored: Schedule, context: Context, new: Group, *, is_once: bool) -> datetime:
    following = anchored.upcoming(context.now, 1)
    if not following:
        raise Refused("never")
    own = list_on(anchored, context, _find_new_day(new, context, context.today))
    if len(own) != 1 or own == following:
        return following[0]
    if is_once:
        return own[0]
    options = tuple(Option(say("the one on {day}", day=say_day(each)), each) for each in (*following, *own))
    return context.pick("this-or-next", _list_points(new)[0].span, options)


def _find_one(anchored: Schedule, context: Context, old: Group) -> datetime:
    points = _list_points(old)
    if len(points) != 1 or old.has_times:
        raise Refused("no-update", hint="say which one moves by its day")
    day = find_first_day(points[0], context, context.today)
    own = list_on(anchored, context, day)
    if len(own) != 1:
        template = "it runs not on {day:%Y-%m-%d}; say which one should move"
        if own:
            template = "it runs several times on {day:%Y-%m-%d}; say which one should move"
        raise Refused("no-update", points[0].span, say(template, day=day))
    return own[0]


def _list_points(group: Group) -> list[Point]:
    return [*group.relatives, *(each.dates[0] if each.dates else each for each in group.days)]


def list_on(anchored: Schedule, context: Context, day: date) -> list[datetime]:
    """Return the occurrences on one day that are still to come."""
    begin = context.to_instant(datetime.combine(day, datetime.min.time()))
    found = anchored.between(max(begin, context.now), begin + timedelta(hours=26))
    return [at for at in found if context.to_local(at).date() == day]


def _find_new_day(new: Group, context: Context, old: date) -> date:
    points = _list_points(new)
    if not points:
        return old
    if len(points) > 1:
        raise Refused("no-update", points[1].span, "one occurrence moves to one day")
    [days] = points
    if not isinstance(days, Days):
        return find_first_day(days, context, context.today)
    if days.marked or len(days.picks) != 1 or days.picks[0].nth or days.picks[0].what >= _WEEK:
        raise Refused("no-update", days.span, "say to which day it should move")

    after = find_next_weekday(days.picks[0].what, old)
    before = after - timedelta(days=_WEEK)
    if before <= context.today or after - old <= timedelta(days=_NEAR):
        return after
    if old - before <= timedelta(days=_NEAR):
        return before
    options = tuple(Option(say_day(each), each) for each in (after, before))
    return context.pick("this-or-next", days.span, options)
