"""The instants of a schedule that respects calendars.

* An occurrence is on the day that the clock shows in the schedule's zone. If that day is free, it stays as it
  is.
* Moved to another day, it keeps the time that its rule says: 02:30 is 02:30 there, also if a gap shifted it
  to 03:30 on its own day. So it coincides with an occurrence at 02:30, and no day gets a second run.
* If the other day does not have that time, or has it twice, ``gap`` and ``fold`` decide as for any other. It
  stays on that day, though: where a gap ends at midnight, it is as long before the gap as it would have been
  after.
* A day that the zone skips is not free.
* Occurrences that meet at one instant are one.
* COUNT, UNTIL and EXDATE apply before the calendars do: they count what the rules produce. An occurrence
  moved before DTSTART still occurs.
* An occurrence that would have moved to an instant that has passed is over: a search from now on does not
  find it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.expand import DAY, LAST_SECOND, StepLimit
from cloudsched.domain.schedules.calendar_days import CalendarDays, Interval, parse_days, to_date, to_day
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.recurrence.recurrence_set import Recurrence
    from cloudsched.domain.schedules.calendar_rule import CalendarRule

MAX_MOVE: Final = 366
"""The most days that an occurrence may move. If none of them is free, it is dropped."""

_WEEK: Final = 7
_MOST_KNOWN: Final = 2000


class Taken(NamedTuple):
    """A day that is on a calendar."""

    calendar_id: str
    name: str
    on: str


@dataclass(frozen=True, slots=True)
class DayCalendar:
    """A calendar with a schedule's rule for it."""

    id: str
    on: str
    days: CalendarDays


@dataclass(frozen=True, slots=True)
class FreeDays:
    """The days that are on none of several calendars. Days are counted from 1970-01-01.

    The first calendar that has a day decides about an occurrence on it. With `business_day`, every occurrence
    moves to that free day of its month instead: 3 is the third, -1 the last.
    """

    calendars: Sequence[DayCalendar]
    business_day: int | None = None
    # By days looked through.
    _known: dict[range, int | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def has_none(self) -> bool:
        """Return whether the calendars have all days of the week, so that no day is free."""
        return len(frozenset[int]().union(*(each.days.weekdays for each in self.calendars))) == _WEEK

    @property
    def is_only_skipping(self) -> bool:
        """Return whether no occurrence is moved: those on a calendar's days are dropped."""
        return self.business_day is None and all(each.on == "SKIP" for each in self.calendars)

    def find(self, day: int) -> Taken | None:
        """Return the calendar day that takes a day, or None if it is free."""
        for each in self.calendars:
            name = each.days.find(day)
            if name is not None:
                return Taken(each.id, name, each.on)
        return None

    def last_before(self, day: int) -> int | None:
        """Return the last free day before a day, or None if none is near."""
        return self._first_free(range(day - 1, day - MAX_MOVE - 1, -1))

    def next_after(self, day: int) -> int | None:
        """Return the next free day after a day, or None if none is near."""
        return self._first_free(range(day + 1, day + MAX_MOVE + 1))

    def target_of(self, day: int) -> int | None:
        """Return the day to which a day's occurrences move: itself if they stay, None if they are dropped."""
        if self.business_day is not None:
            return self._nth_free_day(day)
        taken = self.find(day)
        if taken is None:
            return day
        if taken.on == "BEFORE":
            return self.last_before(day)
        return self.next_after(day) if taken.on == "AFTER" else None

    def next_left_out(self, day: int) -> int | None:
        """Return a day that is not before ``day``, with no occurrence dropped in between.

        None if none ever is.
        """
        if self.business_day is not None:
            return day
        return min(
            (found for each in self.calendars if (found := each.days.next_from(day)) is not None),
            default=None,
        )

    def group_of(self, day: int) -> tuple[int, int]:
        """Return the first and the last of the days around a day that move together."""
        if self.business_day is not None:
            return _month_of(day)
        if self.find(day) is None:
            return day, day
        before = self.last_before(day)
        after = self.next_after(day)
        return (
            day - MAX_MOVE if before is None else before + 1,
            day + MAX_MOVE if after is None else after - 1,
        )

    def targets_of_group(self, day: int) -> Iterator[int]:
        """Yield the days to which the days of a group may move, in order."""
        if self.business_day is not None:
            target = self._nth_free_day(day)
            if target is not None:
                yield target
            return
        if self.find(day) is None:
            yield day
            return
        for target in (self.last_before(day), self.next_after(day)):
            if target is not None:
                yield target

    def sources_of(self, target: int) -> tuple[int, int]:
        """Return the first and the last of the days that may move to a free day."""
        if self.business_day is not None:
            return _month_of(target)
        before = self.last_before(target)
        after = self.next_after(target)
        return (
            target - MAX_MOVE if before is None else before + 1,
            target + MAX_MOVE if after is None else after - 1,
        )

    def _first_free(self, days: range) -> int | None:
        if self.has_none:
            return None
        if days in self._known:
            return self._known[days]
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        found = None
        for each in days:
            spend_steps(2 * len(self.calendars))
            if self.find(each) is None:
                found = each
                break
        self._known[days] = found
        return found

    def _nth_free_day(self, day: int) -> int | None:
        number = self.business_day or 1
        first, last = _month_of(day)
        if number > 0:
            days = range(first, last + 1)
        else:
            days = range(last, first - 1, -1)
        if days in self._known:
            return self._known[days]
        spend_steps(len(days))
        free = (each for each in days if self.find(each) is None)
        for _ in range(abs(number) - 1):
            next(free, None)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        return self._known.setdefault(days, next(free, None))


def _month_of(day: int) -> tuple[int, int]:
    first = to_date(day).replace(day=1)
    following = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    return to_day(first), to_day(following) - 1


_MARGIN = 2
"""The largest distance in days of instants that a clock change puts in another order than their days."""
_LAST_DAY = LAST_SECOND // DAY + 1
MAX_SEARCHED_DAYS = 2000
_MAX_STEPS = 200_000


class Move(NamedTuple):
    """The origin of an occurrence that a calendar moved: its day, and the calendar that took that day."""

    day: int
    taken: Taken | None


@dataclass(frozen=True, slots=True)
class CalendarRecurrence:
    """The instants of a recurrence after its calendars have been applied, in seconds since 1970 UTC."""

    base: Recurrence
    free_days: FreeDays

    @property
    def first(self) -> int | None:
        """The first instant of all, or None if there is none."""
        return self.first_from(-(10**11))

    def first_from(self, instant: int) -> int | None:
        """Return the first instant that is not before ``instant``, or None if there is none.

        If `MAX_SEARCHED_DAYS` days in a row to which occurrences might move have none, there are no more.
        """
        if self.free_days.has_none:
            return None
        steps = StepLimit(_MAX_STEPS)
        first_base = self.base.first
        if first_base is None:
            return None
        if self.free_days.is_only_skipping:
            return self._first_stayed(instant)
        day = self._day_of(instant)
        day = max(day - self._margin_at(day), self._day_of(first_base) - 400)
        best: int | None = None
        last_day = _LAST_DAY
        for target in islice(self._iter_targets(day), MAX_SEARCHED_DAYS):
            spend_steps()
            if target > last_day:
                break
            found = self._first_on(target, instant, steps)
            if found is not None and (best is None or found < best):
                best = found
                last_day = min(last_day, target + self._margin_at(target))
        return None if best is None or best > LAST_SECOND else best

    def _first_stayed(self, instant: int) -> int | None:
        """Return the first instant, not before ``instant``, on a free day, where no occurrence is moved."""
        found = self.base.first_from(instant)
        for _ in range(MAX_SEARCHED_DAYS):
            spend_steps(4)
            if found is None or self.free_days.find(day := self._day_of(found)) is None:
                if found is None or found > LAST_SECOND:
                    return None
                return found
            following = self.free_days.next_after(day)
            start = self._start_of_day(day + MAX_MOVE + 1 if following is None else following)
            found = self.base.first_from(max(found + 1, start))
        return None

    def first_skipped(self, start: int, end: int) -> int | None:
        """Return the first instant from ``start`` to ``end`` that the calendars drop."""
        found = self.base.first_from(start)
        for _ in range(MAX_SEARCHED_DAYS):
            spend_steps()
            if found is None or found > end:
                return None
            day = self._day_of(found)
            if self.free_days.target_of(day) is None:
                return found
            following = self.free_days.next_left_out(day + 1)
            if following is None:
                found = None
            else:
                found = self._first_on_or_after_day(following)
        return None

    def explain(self, instant: int) -> Move | None:
        """Return from where a calendar moved the occurrence at an instant, or None if one stayed there."""
        target = self._day_of(instant)
        moved: Move | None = None
        for day in (target, target - 1, target + 1):
            if self.free_days.find(day) is not None:
                continue
            for source in self._iter_sources(day, StepLimit(_MAX_STEPS)):
                if source == day:
                    if self._find_stayed(day, instant) == instant:
                        return None
                elif moved is None and instant in self._iter_moved(source, day, 0, StepLimit(_MAX_STEPS)):
                    moved = Move(source, self.free_days.find(source))
        return moved

    def find_taken(self, instant: int) -> Taken | None:
        """Return the calendar day that takes the day of an instant, if any."""
        return self.free_days.find(self._day_of(instant))

    def _iter_targets(self, day: int) -> Iterator[int]:
        for _ in range(MAX_SEARCHED_DAYS):
            spend_steps(5)
            if self.free_days.find(day) is not None and self.free_days.business_day is None:
                following = self.free_days.next_after(day)
                day = day + 366 if following is None else following
            found = self._first_on_or_after_day(self.free_days.sources_of(day)[0])
            if found is None:
                return
            source = self._day_of(found)
            for target in self.free_days.targets_of_group(source):
                if target >= day:
                    yield target
                    day = target + 1
            day = max(day, self.free_days.group_of(source)[1] + 1)

    def _first_on(self, target: int, instant: int, steps: StepLimit) -> int | None:
        """Return the first instant from ``instant`` on that stays on a free day or moves to one."""
        best: int | None = None
        for source in self._iter_sources(target, steps):
            if source == target:
                found = self._find_stayed(target, instant)
            else:
                found = self._first_moved(source, target, instant, steps)
            if found is not None and (best is None or found < best):
                best = found
        return best

    def _iter_sources(self, target: int, steps: StepLimit) -> Iterator[int]:
        """Yield the days with occurrences that stay on a free day or move there."""
        day, last = self.free_days.sources_of(target)
        while True:
            steps.consume()
            spend_steps(4)
            found = self._first_on_or_after_day(day)
            if found is None or (source := self._day_of(found)) > last:
                return
            if self.free_days.target_of(source) == target:
                yield source
            day = source + 1

    def _find_stayed(self, day: int, instant: int) -> int | None:
        found = self.base.first_from(max(instant, self._start_of_day(day)))
        while found is not None and self._day_of(found) < day:
            found = self.base.first_from(found + 1)
        if found is not None and self._day_of(found) == day:
            return found
        return None

    def _first_moved(self, source: int, target: int, instant: int, steps: StepLimit) -> int | None:
        """Return the first instant, not before ``instant``, to which an occurrence of another day moves."""
        spend_steps(4)
        change = self._change_around(target)
        time = max(0, instant + self._offset_at(instant) - target * DAY - change)
        if time >= DAY:
            return None
        change = max(change, self._change_around(source))
        best: int | None = None
        for found in self._iter_moved(source, target, time, steps):
            if best is not None and found > best + change:
                break
            if found >= instant and (best is None or found < best):
                best = found
                if not change:
                    break
        return best

    def _iter_moved(self, source: int, target: int, time: int, steps: StepLimit) -> Iterator[int]:
        """Yield the instants to which a day's occurrences from a time of day on move, nearly in order."""
        start = self._start_of_day(source)
        found = self.base.first_from(start if self._change_around(source) else start + time)
        while found is not None:
            steps.consume()
            # Beside those of the base: it takes twice as long as an occurrence that does not move.
            spend_steps(2)
            wall = found + self._offset_at(found)
            if wall // DAY > source:
                break
            if wall // DAY == source:
                for time_of_day in {each % DAY for each in self.base.walls_of(found)}:
                    yield from self._iter_on_day(target, time_of_day)
            found = self.base.first_from(found + 1)

    def _iter_on_day(self, day: int, time_of_day: int) -> Iterator[int]:
        wall = day * DAY + time_of_day
        for found in self.base.clock.instants(wall):
            yield found if self._day_of(found) == day else wall - self._offset_at(found)

    def _first_on_or_after_day(self, day: int) -> int | None:
        if day > _LAST_DAY:
            return None
        found = self.base.first_from(self._start_of_day(day))
        while found is not None and self._day_of(found) < day:
            found = self.base.first_from(found + 1)
        return found

    def _start_of_day(self, day: int) -> int:
        """Return an instant that is not after the day's first, and hardly before it."""
        guess = day * DAY - self.base.clock.zone.largest
        return min(
            day * DAY - self._offset_at(guess),
            day * DAY - self._offset_at(day * DAY - self._offset_at(guess)),
        )

    def _margin_at(self, day: int) -> int:
        """Return by how many days, at most, clock changes reorder instants near a day.

        It is 0 if no clock changes there.
        """
        table = self.base.clock.zone.table_for((day + 2 * _MARGIN) * DAY)
        begin = bisect_left(table.changes, (day - 2 * _MARGIN) * DAY)
        if bisect_left(table.changes, (day + 2 * _MARGIN) * DAY) > begin:
            return _MARGIN
        return 0

    def _change_around(self, day: int) -> int:
        """Return the difference of the clock's offsets near a day, in seconds."""
        offsets = {self._offset_at((day + days) * DAY) for days in (-1, 0, 1, 2)}
        return max(offsets) - min(offsets)

    def _day_of(self, instant: int) -> int:
        return (instant + self._offset_at(instant)) // DAY

    def _offset_at(self, instant: int) -> int:
        return self.base.clock.zone.offset_at(instant)


@lru_cache(maxsize=256)
def apply_calendars(
    base: Recurrence,
    rules: tuple[CalendarRule, ...],
    business_day: int | None,
) -> CalendarRecurrence:
    """Return a recurrence with calendars applied, compiled once.

    Raises InvalidSchedule if their days are not known yet.
    """
    calendars = list[DayCalendar]()
    for number, rule in enumerate(rules):
        if rule.content is None:
            problem = f"the days of calendar {rule.id!r} are not known here"
            raise InvalidSchedule(
                f"calendars.{number}.id",
                problem,
                "create the task through the app or the API",
            )
        calendars.append(DayCalendar(rule.id, rule.on, parse_days(rule.content)))
    skipped = [Interval(first, last, "") for first, last in base.clock.zone.skipped_days]
    if skipped:
        calendars.append(DayCalendar(base.clock.zone.name, "skip", CalendarDays(frozenset(), skipped)))
    return CalendarRecurrence(base, FreeDays(tuple(calendars), business_day))


def describe_effect(recurrence: CalendarRecurrence, instant: int) -> str | None:
    """Return why an instant was dropped, or from which day it was moved.

    None if its calendars did not change it.
    """
    move = recurrence.explain(instant)
    if move is not None:
        if move.taken is None:
            because = ""
        else:
            because = f": {_describe_taken(move.taken)}"
        return f"Moved from {to_date(move.day)}{because}."
    taken = recurrence.find_taken(instant)
    if taken is None:
        return None
    return f"Left out: {_describe_taken(taken)}."


def describe_ends(rules: Sequence[CalendarRule], until: date) -> list[str]:
    """Return a sentence for each calendar whose dates end before a day: later days count as free."""
    sentences = []
    for rule in rules:
        days = parse_days(rule.content or "")
        if days.intervals and days.intervals[-1].last < to_day(until):
            rest = "all later days"
            if days.weekdays:
                rest = "all later days but its days of the week"
            since = to_date(days.intervals[-1].last + 1)
            sentences.append(f'Calendar "{rule.id}" has no dates from {since} on: {rest} count as free.')
    return sentences


def describe_stale(calendar_id: str, problem: str) -> str:
    """Return a sentence about a calendar whose days could not be read again."""
    return f'Calendar "{calendar_id}" was not refreshed, so its days may be old: {problem}'


def _describe_taken(taken: Taken) -> str:
    if taken.name:
        return f"{taken.name} ({taken.calendar_id})"
    return taken.calendar_id
