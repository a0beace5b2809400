"""Count what will run in each part of a time, without listing it: the tasks of one plan are searched once.

Tasks that share the key of their plan (`find_plan_key`) are due at the same times, from the next time of each on. The
store groups them. What is due at a steady interval is not listed either, but computed.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.allowance import TASK_STEPS, Allowance, spend_from, spend_steps, take_part
from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH, parse_moment
from cloudsched.domain.transitions.plan_keys import ONCE, find_plain_days
from cloudsched.domain.transitions.planning import occurrence_after, occurrence_from, planned_schedule
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.storage.due_groups import DueGroup, DueQuery

MAX_GROUPS: Final = 30_000
"""The most groups of tasks that one request looks at."""
COUNT_STEPS: Final = 200_000
"""The most steps that the searches of one count take. What they find is remembered for the next one."""
_KEPT_WINDOWS: Final = 4
_DAY: Final = 86_400
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class DueCounts:
    """The numbers of occurrences in the parts of a time."""

    edges: Sequence[datetime]
    """The start of each part, and the end of the last."""
    due: Sequence[int]
    complete_until: datetime | None
    """From this instant on, some are missing. None if none is."""


def count_due(store: Store, query: DueQuery, edges: Sequence[datetime]) -> DueCounts:
    """Count what is due as `_count` does, with the steps of a count, which are more than those of other requests."""
    with spend_from(Allowance(COUNT_STEPS)):
        return _count(store, query, edges)


def _count(store: Store, query: DueQuery, edges: Sequence[datetime]) -> DueCounts:  # noqa: C901, PLR0912 - kinds of groups
    """Return how many unclaimed occurrences, without jitter, matching tasks have in each part.

    They are those that `list_occurrences` lists. A count is cut if its search takes too many steps.
    """
    found = store.search.group_due(query, MAX_GROUPS)
    since = edges[0]
    seconds = [_ceil(each) for each in edges]
    counts = [0] * (len(edges) - 1)
    cuts = [found.complete_until] if found.complete_until else []
    window = (seconds[0], seconds[-1], time_zones.in_use.release)
    known = _kept.open(window)

    classes: defaultdict[int, list[DueGroup]] = defaultdict(list)
    singles = []
    for group in found.items:
        if group.key is None:
            singles.append(group)
        elif group.key == ONCE:
            if group.next_at >= since:
                _add(counts, seconds, (_floor(group.next_at),), group.count)
        else:
            classes[group.key].append(group)

    missing = [groups[0] for key, groups in classes.items() if key not in known]
    tasks = _load(store, [*missing, *singles])
    for key, groups in classes.items():
        times = known.get(key)
        if times is None:
            task = tasks.get(groups[0].task_id)
            if task is None:
                continue  # it was deleted meanwhile
            times, cut = _list_times(task, edges)
            if cut is None:
                known[key] = times
            else:
                cuts.append(cut)
        for group in groups:
            _add(counts, seconds, times, group.count, max(_ceil(group.next_at), seconds[0]))
    for group in singles:
        if (task := tasks.get(group.task_id)) is not None:
            times, cut = _walk(task, edges)
            cuts += [cut] if cut is not None else []
            _add(counts, seconds, times, 1)
    return DueCounts(edges, counts, min(cuts, default=None))


def _load(store: Store, groups: Sequence[DueGroup]) -> dict[str, Task]:
    """Return one task of each group, by its id."""
    tasks = {each.task_id: each.task for each in groups if each.task is not None}
    wanted = [each.task_id for each in groups if each.task is None]
    for start in range(0, len(wanted), 500):
        tasks |= {each.task.id: each.task for each in store.load_many(wanted[start : start + 500])}
    return tasks


def _add(counts: list[int], edges: Sequence[int], times: Sequence[int], weight: int, begin: int | None = None) -> None:
    """Add the times from `begin` on to the counts of the parts that they lie in."""
    first = 0 if begin is None else bisect_left(times, begin)
    if len(times) - first > len(counts):
        places = [bisect_left(times, max(edge, begin or edge)) for edge in edges]
        for index, (one, other) in enumerate(pairwise(places)):
            counts[index] += weight * (other - one)
        return
    last = edges[-1]
    for number in range(first, len(times)):
        at = times[number]
        if edges[0] <= at < last:
            counts[bisect_left(edges, at + 1) - 1] += weight


def _list_times(task: Task, edges: Sequence[datetime]) -> tuple[Sequence[int], datetime | None]:
    """Return the times of a plan in a window in seconds, and the instant from which on they are missing.

    Each task of the plan leaves out what is before its own next time.
    """
    try:
        return _search_times(task, edges)
    except InvalidSchedule:  # nothing more may be searched
        return (), edges[0]


def _search_times(task: Task, edges: Sequence[datetime]) -> tuple[Sequence[int], datetime | None]:
    spend_steps()
    schedule = planned_schedule(task)
    begin = _ceil(edges[0])
    end = _ceil(edges[-1])
    if task.until is not None:
        end = min(end, _floor(task.until) + 1)
    if schedule is task.schedule and (days := find_plain_days(task.schedule)) is not None:
        return _list_days(task.schedule, days, begin, end), None
    if schedule is task.schedule and (interval := task.schedule.interval) is not None:
        step = int(interval.total_seconds())
        known = _floor(task.next_execution_time or edges[0])
        return range(begin + (known - begin) % step, end, step), None
    times = []
    reached = edges[0]
    try:
        with spend_from(take_part(TASK_STEPS)):
            at = schedule.next_after(reached - _TICK)
            while at is not None and _floor(at) < end:
                times.append(_floor(at))
                reached = at + _TICK
                at = schedule.next_after(at)
    except InvalidSchedule:  # so sparse that the search gave up, or more than a count may spend on one plan
        return times, reached
    return times, None


def _list_days(schedule: Schedule, days: frozenset[int], begin: int, end: int) -> Sequence[int]:
    """Return one time a day, on some weekdays, under the policies for clock changes."""
    clock = schedule.recurrence.clock
    start = parse_moment(schedule.dtstart or "", "dtstart").wall
    earliest = schedule.recurrence.first or begin
    first = clock.zone.offset_at(begin)
    time_of_day = start % _DAY
    if all(clock.zone.offset_at(at) == first for at in (*range(begin - _DAY, end, 7 * _DAY), end + _DAY)):
        low = max(begin, earliest)
        day = (low + first - time_of_day + _DAY - 1) // _DAY
        times = range(day * _DAY + time_of_day - first, end, _DAY)
        if len(days) == 7:  # noqa: PLR2004 - of a week
            return times
        return [at for number, at in enumerate(times, day) if (number + 3) % 7 in days]
    found = [
        at
        for day in range((begin + first) // _DAY - 1, (end + first) // _DAY + 2)
        if (day + 3) % 7 in days  # the first of January 1970 was a Thursday
        for at in clock.instants(day * _DAY + time_of_day)
        if max(begin, earliest) <= at < end
    ]
    return sorted(found)


def _walk(task: Task, edges: Sequence[datetime]) -> tuple[Sequence[int], datetime | None]:
    """Return the times of one task in a window, each searched for, and the instant at which the search gave up."""
    part = take_part(TASK_STEPS)
    times = []
    at = task.next_execution_time
    left = None if task.max_runs is None else task.max_runs - task.run_count
    reached = edges[0]
    try:
        with spend_from(part):
            if at is not None and at < edges[0] and left is None:
                at = occurrence_from(task, edges[0])
            while at is not None and at < edges[-1] and (left is None or left > 0):
                if at >= edges[0]:
                    times.append(_floor(at))
                reached = max(reached, at + _TICK)
                left = None if left is None else left - 1
                at = occurrence_after(task, at)
                spend_steps()
    except InvalidSchedule:
        return times, reached
    return times, None


def _floor(at: datetime) -> int:
    return (at - UTC_EPOCH) // timedelta(seconds=1)


def _ceil(at: datetime) -> int:
    return -((UTC_EPOCH - at) // timedelta(seconds=1))


class _KeptTimes:
    """The times of plans in the windows that were counted last, which are the same for as long as they are shown."""

    def __init__(self) -> None:
        self._windows: OrderedDict[object, dict[int, Sequence[int]]] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, window: object) -> dict[int, Sequence[int]]:
        """Return the times of a window by the keys of their plans, to read and to add to."""
        with self._lock:
            found = self._windows.setdefault(window, {})
            self._windows.move_to_end(window)
            while len(self._windows) > _KEPT_WINDOWS:
                self._windows.popitem(last=False)
            return found


_kept: Final = _KeptTimes()
