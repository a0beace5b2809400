"""The single occurrences that a schedule leaves out, when words change its times of day or its days.

A day that is left out stays a day. An occurrence that is left out moves along: its image is left out instead. One that
is in the schedule before and after is its own image. Of the others in its period (a day, a week, a month or a year,
whatever the rules count in), as many new as old ones are paired in their order. Otherwise two are paired if each is the
nearest to the other. What has no image is gone, and so is an exception that left out nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from dateutil.relativedelta import relativedelta

from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH, parse_moment
from cloudsched.domain.recurrence.recurrence_set import list_instants
from cloudsched.domain.recurrence.rrule import Frequency, parse_rule
from cloudsched.domain.recurrence.wall_clock import wall_clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.schedules.schedule import Schedule

_DAY: Final = (relativedelta(), relativedelta(days=1))
"""The way from a day to the beginning of its period, and the length of the period: a day for most rules."""


def move_exdates(current: Schedule, shift: timedelta, full: Schedule) -> list[str]:
    """Return the exceptions of a schedule in the changed one, whose times of day are those of before and a shift."""
    texts: list[str] = []
    find_image = (lambda local: local + shift) if shift else _Images(current, full).find
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
            image = find_image(local)
            if image == local:
                texts.append(text)
            elif image is not None:
                texts.append(image.replace(tzinfo=None).isoformat())
    return texts


class _Images:
    """The occurrences of a schedule in the changed one, by their local times as if they were in UTC."""

    def __init__(self, current: Schedule, full: Schedule) -> None:
        self._was, self._now = (
            each.copy_unchecked(timezone="UTC", exdates=(), calendars=(), business_day=None) for each in (current, full)
        )
        rules = [parse_rule(rule) for rule in (*current.rules, *full.rules)]
        periods = {
            Frequency.YEARLY: (relativedelta(month=1, day=1), relativedelta(years=1)),
            Frequency.MONTHLY: (relativedelta(day=1), relativedelta(months=1)),
            Frequency.WEEKLY: (relativedelta(days=-6, weekday=rules[-1].week_start), relativedelta(weeks=1)),
        }
        self._begin, self._length = periods.get(min(rule.frequency for rule in rules), _DAY)
        self._periods: dict[datetime, dict[datetime, datetime]] = {}

    def find(self, local: datetime) -> datetime | None:
        """Return the image of an occurrence, None if it has none or is no occurrence."""
        if not self._was.occurs(local):
            return None
        if self._now.occurs(local):
            return local
        first = local.replace(hour=0, minute=0, second=0) + self._begin
        if first not in self._periods:
            bounds = first, first + self._length
            self._periods[first] = _pair(self._was.between(*bounds), self._now.between(*bounds))
        return self._periods[first].get(local)


def _pair(old: Sequence[datetime], new: Sequence[datetime]) -> dict[datetime, datetime]:
    """Return the images of the occurrences of one period that are in the old schedule alone."""
    before, after = set(old), set(new)
    gone, added = [each for each in old if each not in after], [each for each in new if each not in before]
    if len(gone) == len(added):
        return dict(zip(gone, added, strict=True))
    near = {each: min(gone, key=lambda one: abs(one - each)) for each in added if gone}
    return {one: each for each, one in near.items() if min(added, key=lambda other: abs(other - one)) == each}
