"""The single occurrences that a schedule leaves out, when words change its times of day or its days.

A day that is left out stays a day. An occurrence that is left out moves along: its image is left out instead. One that
is in the schedule before and after is its own image. Of the others in its period (a day, a week, a month or a year,
whatever the rules count in), as many new as old ones are paired in their order. Otherwise two are paired if each is the
nearest to the other. What has no image is gone, and so is an exception that left out nothing.
"""

from __future__ import annotations

from datetime import MAXYEAR, datetime, timedelta
from typing import TYPE_CHECKING, Final

from dateutil.relativedelta import relativedelta

from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH, parse_moment
from cloudsched.domain.recurrence.recurrence_set import list_instants
from cloudsched.domain.recurrence.rrule import Frequency, parse_rule
from cloudsched.domain.recurrence.wall_clock import wall_clock

if TYPE_CHECKING:
    from cloudsched.domain.schedules.schedule import Schedule

_PERIODS: Final = {
    Frequency.YEARLY: (relativedelta(month=1, day=1), relativedelta(years=1)),
    Frequency.MONTHLY: (relativedelta(day=1), relativedelta(months=1)),
    Frequency.WEEKLY: (relativedelta(), relativedelta(weeks=1)),
}
"""The way from a day to the beginning of its period, and the length of the period. Other rules count in days."""
_WEEK: Final = 7


def move_exdates(current: Schedule, shift: timedelta, full: Schedule) -> list[str]:
    """Return the exceptions of a schedule in the changed one, whose times of day are those of before and a shift."""
    texts: list[str] = []
    was, now = _on_the_clock(current), _on_the_clock(full)
    clock = wall_clock(current.timezone, current.gap, current.fold)
    for text in current.exdates:
        moment = parse_moment(text, "exdates")
        if moment.is_date:
            texts.append(text)
            continue
        for instant in list_instants(moment, clock, 0):
            at = UTC_EPOCH + timedelta(seconds=instant)
            read = current.read_clock(at)
            if read is None:  # in elapsed time
                texts += [text] if full.occurs(at) else []
                continue
            local = UTC_EPOCH + timedelta(seconds=read[0])
            image = local + shift if shift else _find_image(local, was, now)
            if image == local:
                texts.append(text)
            elif image is not None:
                texts.append(image.replace(tzinfo=None).isoformat())
    return texts


def _on_the_clock(schedule: Schedule) -> Schedule:
    """Return a schedule whose occurrences are in UTC what the other's are on its own clock, without exceptions."""
    return schedule.copy_unchecked(timezone="UTC", exdates=(), calendars=(), business_day=None)


def _find_image(local: datetime, was: Schedule, now: Schedule) -> datetime | None:
    if local.year == MAXYEAR:  # its period ends beyond the calendar
        return local
    rules = [parse_rule(rule) for rule in (*was.rules, *now.rules)]
    begin, length = _PERIODS.get(min(rule.frequency for rule in rules), (relativedelta(), relativedelta(days=1)))
    first = local.replace(hour=0, minute=0, second=0) + begin
    if length.days == _WEEK:
        first -= timedelta(days=(first.weekday() - rules[-1].week_start) % 7)
    old, new = (schedule.between(first, first + length) for schedule in (was, now))
    if local not in old or local in new:
        return local if local in old else None
    gone, added = ([each for each in one if each not in other] for one, other in ((old, new), (new, old)))
    if len(gone) == len(added):
        return added[gone.index(local)]
    if not added:
        return None
    nearest = min(added, key=lambda each: abs(each - local))
    return nearest if min(gone, key=lambda each: abs(each - nearest)) == local else None
