"""List what will run: the occurrences to come of all tasks, merged by time."""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.allowance import TASK_STEPS, Allowance, spend_from, take_part
from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH
from cloudsched.domain.transitions.plan_keys import ONCE, find_plain_days
from cloudsched.domain.transitions.planning import occurrence_after, occurrence_from
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.queries.plan_times import (
    COUNT_STEPS,
    MAX_GROUPS,
    PlanTimes,
    ceil_second,
    floor_second,
    search_plans,
)
from cloudsched.engine.storage.due_groups import DueQuery
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, make_token, read_token
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.storage.due_groups import DueGroup

MAX_TASKS = 1000
"""The most tasks that one request reads."""
MAX_BYTES = 4 * MAX_PAGE_BYTES
"""The most bytes of the documents of these tasks together, but for the last page's last."""
MAX_STEPS = 10_000
"""The most occurrences of one task with `max_runs` that are walked over: they have to be counted."""
_TICK = timedelta(microseconds=1)
_DAY = 86_400
_PART = 100
"""The number of tasks that are read at once."""


@dataclass(frozen=True, slots=True)
class OccurrenceQuery:
    """The filters of a list of occurrences."""

    until: datetime
    """Before this instant, exclusively."""
    owner: str | None
    """The only owner whose tasks' occurrences to list. None for all owners'."""
    since: datetime | None = None
    """Not before this instant."""
    handler: str | None = None
    """The handler of their tasks. Tasks of others are read, too: no index has it by time."""
    label: str | None = None
    """One of the labels of their tasks, whole. Tasks without it are read, too."""
    category: Category | None = None
    """The category of their tasks. Tasks of others are read, too."""
    most_per_day: int | None = None
    """Leaves out tasks that occur more often than this in the day from their next occurrence on."""

    def matches(self, task: Task) -> bool:
        """Return whether a task matches the filters that no index by time has."""
        return (
            self.handler in {None, task.handler}
            and self.label in {None, *task.labels}
            and self.category in {None, task.category}
            and not (self.most_per_day is not None and _occurs_more_often(task, self.most_per_day))
        )


@dataclass(frozen=True, slots=True)
class OccurrenceSlice:
    """Some occurrences, each with its task, the soonest first."""

    items: Sequence[tuple[datetime, Task]]
    next_page_token: str | None = None
    complete_until: datetime | None = None
    """From this instant on, some occurrences are missing: more than `MAX_TASKS` tasks are due before `until`,
    they are larger than `MAX_BYTES` together, or those of a task take too long to search. None if none is."""


def list_occurrences(
    store: Store,
    query: OccurrenceQuery,
    limit: int,
    page_token: str | None = None,
) -> OccurrenceSlice:
    """Return a page of the occurrences of all matching tasks, the soonest first (time, then the task's id).

    Those that have not been claimed yet, without jitter. Only tasks whose next occurrence is before `until`
    are read, and only as many as the page needs: one read each. Raises InvalidInput.
    """
    position = read_token(query, page_token) if page_token else None
    start = query.since
    if position is not None:
        start = max(position[0], start or position[0])
    reader = _TaskReader(store, query, start, min(_PART, limit + 2))
    heads: list[tuple[datetime, str, _TaskOccurrences]] = []
    complete_until: datetime | None = None

    def push(times: _TaskOccurrences, after: datetime) -> None:
        nonlocal complete_until
        try:
            at = times.find_next()
        except InvalidSchedule:  # so sparse that the search gave up, or more than a list may spend on one task
            complete_until = min(complete_until or after, after)
            return
        if at is not None and at < query.until:
            heapq.heappush(heads, (at, times.task.id, times))

    found: list[tuple[datetime, Task]] = []
    while len(found) <= limit:
        while tasks := reader.take(heads[0][:2] if heads else None):
            for task in tasks:
                push(_TaskOccurrences(task, start), max(start or _due(task), _due(task)))
        if not heads:
            break
        at, key, times = heapq.heappop(heads)
        if position is None or (at, key) > position:
            found.append((at, times.task))
        push(times, at + _TICK)
    page = found[:limit]
    token = make_token(query, page[-1][0], page[-1][1].id) if len(found) > limit else None
    return OccurrenceSlice(page, token, min(filter(None, (complete_until, reader.complete_until)), default=None))


class _TaskOccurrences:
    """The occurrences of one task in a list of many, which spends part of the request's search on each."""

    def __init__(self, task: Task, start: datetime | None) -> None:
        self.task = task
        self._times = _iter_occurrences(task, start)
        self._part = take_part(TASK_STEPS)

    def find_next(self) -> datetime | None:
        """Return the next occurrence, or None if there are no more.

        Raises InvalidSchedule if the search gave up.
        """
        with spend_from(self._part):
            return next(self._times, None)

    def __lt__(self, other: _TaskOccurrences) -> bool:
        """Compare by task ids alone, which differ."""
        return self.task.id < other.task.id


class _TaskReader:
    """Reads the tasks that are due before the end when they are needed: those that may occur soonest first."""

    def __init__(self, store: Store, query: OccurrenceQuery, start: datetime | None, part: int) -> None:
        self._store = store
        # All that a page needs is mostly in the first part, or little is missing.
        self._parts = itertools.chain((part, 10, 20, 40, 80), itertools.repeat(_PART))
        self._matches = query.matches
        wanted = DueQuery(query.until, query.owner, query.handler, query.label, query.category)
        self._all = TaskQuery(owner=query.owner, due_until=query.until, most_per_day=query.most_per_day, roughly=wanted)
        self._later = replace(self._all, due_from=start)
        self._tasks: list[Task] = []
        self._token: str | None = None
        self._count = self._size = 0
        self._has_more = True
        self.complete_until: datetime | None = None
        self._earlier: list[_DueTogether] = []
        if start is not None:
            self._earlier = self._list_earlier(replace(wanted, until=start, since=start), query, start)

    def _list_earlier(self, mine: DueQuery, query: OccurrenceQuery, start: datetime) -> list[_DueTogether]:
        """Return the tasks that are due before the start and may occur after it, those that do so last first.

        The keys of their plans say when, so no task is read for that where the store has its key.
        """
        found = self._store.search.group_due(mine, MAX_GROUPS)
        if found.complete_until is not None:
            self._note_missing(start)
        plans = PlanTimes(floor_second(start), ceil_second(query.until))
        unknown = {each.key: each for each in found.items if each.key not in {None, ONCE}}
        with spend_from(Allowance(COUNT_STEPS)):  # not from what the list itself may spend
            search_plans(self._store, plans, [each for key, each in unknown.items() if plans.read(str(key)) is None])
        together: dict[datetime, _DueTogether] = {}
        for group in found.items:
            first = _find_first(group, plans, query, start)
            if first is None or first >= query.until:
                continue
            known = together.setdefault(group.next_at, _DueTogether(first, group.next_at))
            known.first = min(known.first, first)
            known.has_others |= group.task is None
            known.tasks += [group.task] if group.task is not None else []
        return sorted(together.values(), key=lambda each: (each.first, each.next_at), reverse=True)

    def take(self, until: tuple[datetime, str] | None) -> list[Task]:
        """Return the tasks that may occur soonest, if that may be before an occurrence (time, id of its task).

        Empty if there are none.
        """
        while True:
            task = self._peek()
            earlier = self._earlier[-1].first if self._earlier else None
            if task is not None and (earlier is None or _due(task) < earlier):
                return [self._tasks.pop()] if until is None or (_due(task), task.id) < until else []
            if earlier is None or (until is not None and earlier > until[0]):
                return []
            if found := [task for task in self._read_together(self._earlier.pop()) if self._matches(task)]:
                return found

    def _read_together(self, each: _DueTogether) -> list[Task]:
        """Return all tasks that are due at an instant."""
        if not each.has_others:
            return each.tasks
        tasks: list[Task] = []
        token: str | None = ""
        at_once = replace(self._all, due_from=each.next_at, due_until=each.next_at + _TICK)
        while token is not None:
            if self._count >= MAX_TASKS or self._size >= MAX_BYTES:
                self._note_missing(each.first)
                self._earlier.clear()
                break
            page = self._store.list_tasks(at_once, limit=_PART, page_token=token or None)
            tasks += page.items
            self._count += page.read
            self._size += page.size
            token = page.next_page_token
        return tasks

    def _note_missing(self, at: datetime) -> None:
        """Note that some of what occurs from an instant on is missing."""
        self.complete_until = at if self.complete_until is None else min(self.complete_until, at)

    def _peek(self) -> Task | None:
        """Return the next of the tasks that are due from the start on."""
        while not self._tasks and self._has_more:
            page = self._store.list_tasks(self._later, limit=next(self._parts), page_token=self._token)
            self._tasks = [task for task in reversed(page.items) if self._matches(task)]
            self._token = page.next_page_token
            self._count += page.read
            self._size += page.size
            is_cut = self._count >= MAX_TASKS or self._size >= MAX_BYTES
            self._has_more = self._token is not None and not is_cut
            if self._token is not None and is_cut and page.items:
                self._note_missing(_due(page.items[-1]))
        return self._tasks[-1] if self._tasks else None


@dataclass(slots=True)
class _DueTogether:
    """Tasks that are due at one instant."""

    first: datetime
    """No one of them occurs before this instant in the time that is listed."""
    next_at: datetime
    tasks: list[Task] = field(default_factory=list)
    """Those that were read anyway."""
    has_others: bool = False


def _find_first(group: DueGroup, plans: PlanTimes, query: OccurrenceQuery, start: datetime) -> datetime | None:
    """Return an instant from the start on before which no task of a group occurs. None if none of them is listed."""
    if group.key == ONCE:
        return None
    times = None if group.key is None else plans.read(group.key)
    if times is None:
        return start
    if query.most_per_day is not None and isinstance(times, range) and times.step * query.most_per_day < _DAY:
        return None
    place = bisect_left(times, floor_second(start))
    return max(start, UTC_EPOCH + timedelta(seconds=times[place])) if place < len(times) else None


def _occurs_more_often(task: Task, count: int) -> bool:
    """Return whether a task occurs more often than this in a day. One of which that is not known soon does."""
    if task.schedule.is_one_time or find_plain_days(task.schedule) is not None:
        return count < 1
    end = _due(task) + timedelta(days=1)
    if (interval := task.schedule.interval) is not None:
        return interval * count < timedelta(days=1)
    at: datetime | None = _due(task)
    try:
        for _ in range(count):
            at = at and occurrence_after(task, at)
            if at is None or at >= end:
                return False
    except InvalidSchedule:
        return True
    return True


def _due(task: Task) -> datetime:
    assert task.next_execution_time is not None  # noqa: S101 - the list has only tasks that have one
    return task.next_execution_time


def _iter_occurrences(task: Task, start: datetime | None) -> Iterator[datetime]:
    at: datetime | None = _due(task)
    if task.max_runs is None:
        if start is not None and start > _due(task):
            at = occurrence_from(task, start)
        while at is not None:
            yield at
            at = occurrence_after(task, at)
        return
    for _ in range(min(MAX_STEPS, task.max_runs - task.run_count)):
        if at is None:
            return
        if start is None or at >= start:
            yield at
        at = occurrence_after(task, at)
