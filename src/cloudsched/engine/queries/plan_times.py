"""The times of plans that their keys say, without reading a task."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.allowance import TASK_STEPS, spend_from, spend_steps, take_part
from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH
from cloudsched.domain.recurrence.wall_clock import wall_clock
from cloudsched.domain.transitions.plan_keys import SteadyPlan, read_plan
from cloudsched.domain.transitions.planning import planned_schedule
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.recurrence.wall_clock import Fold, Gap, WallClock
    from cloudsched.domain.transitions.plan_keys import DailyPlan
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.storage.due_groups import DueGroup

_Times: TypeAlias = "dict[str, Sequence[int]]"
"""The times of plans, by their keys."""
MAX_GROUPS: Final = 30_000
"""The most groups of tasks that one request looks at."""
COUNT_STEPS: Final = 200_000
"""The most steps that the searches of one count take. What they find is remembered for the next one."""
_TICK: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)
_KEPT_WINDOWS: Final = 4
_HOUR: Final = 3600
_DAY: Final = 86_400


class PlanTimes:
    """The times of plans within a time, in seconds since 1970."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin, self._end = begin, end
        self.hours = begin // _HOUR * _HOUR, -(-end // _HOUR) * _HOUR
        """The whole hours around it, which are the same for all looks within an hour."""
        self._kept = _kept.open(*self.hours, time_zones.in_use.release)
        self.known = self._kept[0]
        """The times of plans in these hours, by their keys."""
        self._days: dict[tuple[str, Gap, Fold], _ClockDays] = {}

    def read(self, key: str) -> Sequence[int] | None:
        """Return the times that a key says, in order. None if they have to be searched."""
        for kept in self._kept:
            if (times := kept.get(key)) is not None:
                return times
        plan = read_plan(key)
        if plan is None or plan.fingerprint not in {"", time_zones.in_use.fingerprint(plan.timezone)}:
            return None
        if isinstance(plan, SteadyPlan):
            begin, end = self._begin, self._end
            return range(begin + (plan.phase - begin) % plan.step, end, plan.step)
        name = (plan.timezone, plan.gap, plan.fold)
        days = self._days.get(name) or self._days.setdefault(name, _ClockDays(wall_clock(*name), *self.hours))
        return self.known.setdefault(key, days.list_times(plan))


def search_plans(
    store: Store, plans: PlanTimes, groups: Sequence[DueGroup]
) -> dict[str, tuple[Sequence[int], datetime | None]]:
    """Return the times of plans by their keys, searched in one task of each, with the instant at which a search ended.

    It is None where all of them in the whole hours were found. These are remembered.
    """
    keys = {each.task_id: each.key for each in groups if each.key is not None}
    found = {}
    for task in load_of_groups(store, groups).values():
        times, cut = _search(task, *plans.hours)
        found[keys[task.id]] = times, cut
        if cut is None:
            plans.known[keys[task.id]] = times
    return found


def load_of_groups(store: Store, groups: Sequence[DueGroup]) -> dict[str, Task]:
    """Return one task of each group, by its id."""
    tasks = {each.task_id: each.task for each in groups if each.task is not None}
    wanted = [each.task_id for each in groups if each.task is None]
    for start in range(0, len(wanted), 500):
        tasks |= {each.task.id: each.task for each in store.load_many(wanted[start : start + 500])}
    return tasks


def _search(task: Task, begin: int, end: int) -> tuple[Sequence[int], datetime | None]:
    """Return the times of a plan in whole hours, and the instant from which on they are missing.

    Each task of the plan leaves out what is before its own next time.
    """
    reached = UTC_EPOCH + timedelta(seconds=begin)
    times: list[int] = []
    try:
        spend_steps()
        schedule = planned_schedule(task)
        if task.until is not None:
            end = min(end, floor_second(task.until) + 1)
        with spend_from(take_part(TASK_STEPS)):
            at = schedule.next_after(reached - _TICK)
            while at is not None and floor_second(at) < end:
                times.append(floor_second(at))
                reached = at + _TICK
                at = schedule.next_after(at)
    except InvalidSchedule:  # so sparse that the search gave up, or more than a count may spend
        return times, reached
    return times, None


class _ClockDays:
    """The days of a time on a clock."""

    def __init__(self, clock: WallClock, begin: int, end: int) -> None:
        self._clock = clock
        self._begin, self._end = begin, end
        first = (begin + clock.zone.offset_at(begin)) // _DAY - 1
        last = (end + clock.zone.offset_at(end)) // _DAY + 1
        # The first of January 1970 was a Thursday.
        self._days = [(day * _DAY, str((day + 3) % 7), self._find_offset(day)) for day in range(first, last + 1)]

    def _find_offset(self, day: int) -> int | None:
        """Return the clock's offset from UTC on a day, or None if clocks change about then."""
        table = self._clock.zone.table_for((day + 3) * _DAY)
        place = bisect_right(table.changes, (day - 2) * _DAY)
        return table.offsets[place] if place == bisect_right(table.changes, (day + 3) * _DAY) else None

    def list_times(self, plan: DailyPlan) -> list[int]:
        """Return the times of a plan for one time a day, under the policies for clock changes."""
        times: list[int] = []
        for day, weekday, offset in self._days:
            if weekday in plan.weekdays:
                wall = day + plan.time
                times += (wall - offset,) if offset is not None else self._clock.instants(wall)
        times.sort()
        return times[bisect_left(times, self._begin) : bisect_left(times, self._end)]


def floor_second(at: datetime) -> int:
    """Return the last whole second since 1970 that is not after an instant."""
    return (at - UTC_EPOCH) // _SECOND


def ceil_second(at: datetime) -> int:
    """Return the first whole second since 1970 that is not before an instant."""
    return -((UTC_EPOCH - at) // _SECOND)


class _KeptTimes:
    """The times of plans in the windows that were counted last, which are the same for as long as they are shown."""

    def __init__(self) -> None:
        self._windows: OrderedDict[tuple[int, int, str], _Times] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, begin: int, end: int, release: str) -> list[_Times]:
        """Return the times of a window by the keys of their plans, to read and to add to, then of those around it."""
        window = (begin, end, release)
        with self._lock:
            found = self._windows.setdefault(window, {})
            self._windows.move_to_end(window)
            while len(self._windows) > _KEPT_WINDOWS:
                self._windows.popitem(last=False)
            wider = [
                times
                for (first, last, known), times in self._windows.items()
                if known == release and first <= begin and end <= last and times is not found
            ]
            return [found, *wider]


_kept: Final = _KeptTimes()
