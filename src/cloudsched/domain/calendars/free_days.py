"""Which days the calendars of a schedule leave free, and to which day each of the others moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.calendars.days import CalendarDays, to_date, to_day
from cloudsched.domain.recurrence.allowance import spend_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_MOVE: Final = 366
"""How many days an occurrence may move; if none of them is free, it is left out."""


_WEEK: Final = 7
_MOST_KNOWN: Final = 2000


class Taken(NamedTuple):
    """A day that is on a calendar."""

    calendar_id: str
    name: str
    on: str


@dataclass(frozen=True, slots=True)
class DayCalendar:
    """A calendar as a schedule uses it."""

    id: str
    on: str
    days: CalendarDays


@dataclass(frozen=True, slots=True)
class FreeDays:
    """The days that are on none of several calendars. Days are counted from 1970-01-01.

    The first calendar that has a day decides what happens to an occurrence on it. With `business_day`, every occurrence
    moves to that free day of its month instead: 3 is the third, -1 the last.
    """

    calendars: Sequence[DayCalendar]
    business_day: int | None = None
    _known: dict[range, int | None] = field(default_factory=dict, compare=False, repr=False)  # by days looked through

    @property
    def has_none(self) -> bool:
        """Return whether it is plain that no day is free: the calendars have all days of the week."""
        return len(frozenset[int]().union(*(each.days.weekdays for each in self.calendars))) == _WEEK

    @property
    def is_only_skipping(self) -> bool:
        """Return whether no occurrence is moved: those on a calendar's days are left out."""
        return self.business_day is None and all(each.on == "skip" for each in self.calendars)

    def find(self, day: int) -> Taken | None:
        """Return what takes a day; None if it is free."""
        for each in self.calendars:
            name = each.days.find(day)
            if name is not None:
                return Taken(each.id, name, each.on)
        return None

    def last_before(self, day: int) -> int | None:
        """Return the last free day before a day; None if none is near."""
        return self._first_free(range(day - 1, day - MAX_MOVE - 1, -1))

    def next_after(self, day: int) -> int | None:
        """Return the next free day after a day; None if none is near."""
        return self._first_free(range(day + 1, day + MAX_MOVE + 1))

    def target_of(self, day: int) -> int | None:
        """Return the day to which occurrences on a day move, itself if they stay; None if they are left out."""
        if self.business_day is not None:
            return self._nth_free_day(day)
        taken = self.find(day)
        if taken is None:
            return day
        if taken.on == "before":
            return self.last_before(day)
        return self.next_after(day) if taken.on == "after" else None

    def next_left_out(self, day: int) -> int | None:
        """Return a day from a day on before which no occurrence is left out; None if none ever is."""
        if self.business_day is not None:
            return day
        return min((found for each in self.calendars if (found := each.days.next_from(day)) is not None), default=None)

    def group_of(self, day: int) -> tuple[int, int]:
        """Return the days around a day, the first and the last, that move together: to days next to or among them."""
        if self.business_day is not None:
            return _month_of(day)
        if self.find(day) is None:
            return day, day
        before, after = self.last_before(day), self.next_after(day)
        return (
            day - MAX_MOVE if before is None else before + 1,
            day + MAX_MOVE if after is None else after - 1,
        )

    def targets_of_group(self, day: int) -> Iterator[int]:
        """Yield the days to which a group's days may move, in order."""
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
        """Return the days, the first and the last, of which some move to a free day."""
        if self.business_day is not None:
            return _month_of(target)
        before, after = self.last_before(target), self.next_after(target)
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
        days = range(first, last + 1) if number > 0 else range(last, first - 1, -1)
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
