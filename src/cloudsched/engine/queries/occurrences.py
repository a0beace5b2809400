"""List what will run: the occurrences to come of all tasks, merged by time."""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left, bisect_right
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
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
    from collections.abc import Callable, Iterator, Sequence

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
_EARLIEST = datetime.min.replace(tzinfo=UTC)
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
    start = position[0] if position else query.since
    reader = _TaskReader(store, query, position, min(_PART, limit + 2))
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

    def __init__(self, store: Store, query: OccurrenceQuery, position: tuple[datetime, str] | None, part: int) -> None:
        self._store = store
        # All that a page needs is mostly in the first part, or little is missing.
        self._parts = itertools.chain((part, 10, 20, 40, 80), itertools.repeat(_PART))
        self._query = query
        self._wanted = DueQuery(query.until, query.owner, query.handler, query.label, query.category)
        self._all = TaskQuery(
            owner=query.owner, due_until=query.until, most_per_day=query.most_per_day, roughly=self._wanted
        )
        self._count = self._size = 0
        self.complete_until: datetime | None = None
        start, key = position or (query.since, "")
        later = replace(self._all, due_from=start)
        lists = [_TaskList(lambda: later, token=make_token(later, start, key) if start and key else None)]
        if start is not None:
            lists += self._list_earlier(start, key)
        self._lists = [(each.bound, number, each) for number, each in enumerate(lists)]
        heapq.heapify(self._lists)

    def _list_earlier(self, start: datetime, key: str) -> Iterator[_TaskList]:
        """Yield the tasks that are due before the start and may occur from it on.

        At the start itself, those occur whose ids are after the key; and of those that are due then, others are in
        the list of what is due later. The keys of their plans say when, so no task is read for that where the store
        has its key.
        """
        earlier = replace(self._wanted, until=start + _TICK if key else start, since=start)
        found = self._store.search.group_due(earlier, MAX_GROUPS)
        if found.complete_until is not None:
            self._note_missing(start)
        plans = PlanTimes(floor_second(start), ceil_second(self._query.until))
        unknown = {each.key: each for each in found.items if each.key not in {None, ONCE}}
        with spend_from(Allowance(COUNT_STEPS)):  # not from what the list itself may spend
            search_plans(self._store, plans, [each for key, each in unknown.items() if plans.read(str(key)) is None])
        seen: set[tuple[int, str]] = set()
        for group in found.items:
            times = _find_first(group, plans, self._query, start)
            name = group.ticks, group.key or ""
            if times is None or times[0] >= self._query.until or (group.task is None and name in seen):
                continue
            seen.add(name)
            first, after = times
            next_at = group.next_at
            at_once = partial(self._query_plan, group)
            if group.task is not None:
                yield _TaskList(at_once, first, tasks=[group.task] if next_at < start or group.task.id <= key else [])
            elif not key or first > start:
                yield _TaskList(at_once, first)
            else:
                yield _TaskList(at_once, after, last=key)
                if next_at < start:
                    yield _TaskList(at_once, start, token=make_token(at_once(), next_at, key))

    def _query_plan(self, group: DueGroup) -> TaskQuery:
        """Return the query for the tasks of a group."""
        roughly = replace(self._wanted, plan=group.key or "")
        return replace(self._all, due_from=group.next_at, due_until=group.next_at + _TICK, roughly=roughly)

    def take(self, until: tuple[datetime, str] | None) -> Sequence[Task]:
        """Return the tasks that may occur soonest, if that may be before an occurrence (time, id of its task).

        Empty if there are none.
        """
        while self._lists and (until is None or self._lists[0][0] < until):
            (at, _), number, each = heapq.heappop(self._lists)
            if at >= self._query.until:
                return []
            if each.tasks is None and (self._count >= MAX_TASKS or self._size >= MAX_BYTES):
                self._note_missing(at)
                self._lists.clear()
                return []
            tasks = self._read(each)
            if each.has_more:
                heapq.heappush(self._lists, (each.bound, number, each))
            if found := [*filter(self._query.matches, tasks)]:
                return found
        return []

    def _read(self, each: _TaskList) -> Sequence[Task]:
        """Return the next part of a list."""
        if each.tasks is not None:
            each.has_more = False
            return each.tasks
        page = self._store.list_tasks(each.make_query(), limit=next(self._parts), page_token=each.token)
        self._count += page.read
        self._size += page.size
        each.token = page.next_page_token
        each.has_more = each.token is not None and (each.last is None or each.bound[1] < each.last)
        return [task for task in page.items if each.last is None or task.id <= each.last]

    def _note_missing(self, at: datetime) -> None:
        """Note that some of what occurs from an instant on is missing."""
        self.complete_until = at if self.complete_until is None else min(self.complete_until, at)


@dataclass(slots=True)
class _TaskList:
    """A list of tasks, the next due first, and then by their ids. It is read in parts."""

    make_query: Callable[[], TaskQuery]
    """Of thousands of lists, few are read."""
    first: datetime | None = None
    """No one of them occurs before this instant in the time that is listed. None if that is when each is due next."""
    _: KW_ONLY
    token: str | None = None
    """That of the next part. None of the first."""
    last: str | None = None
    """The id after which it ends."""
    tasks: Sequence[Task] | None = None
    """All of it, if it was read anyway."""
    has_more: bool = True

    @property
    def bound(self) -> tuple[datetime, str]:
        """Return an occurrence (time, id of its task) before which none is that has not been read."""
        if self.token is None:
            return self.first or self.make_query().due_from or _EARLIEST, ""
        at, key = read_token(self.make_query(), self.token)
        return self.first or at, key


def _find_first(
    group: DueGroup, plans: PlanTimes, query: OccurrenceQuery, start: datetime
) -> tuple[datetime, datetime] | None:
    """Return instants before which no task of a group occurs, from the start on, and after it. None if none is listed.

    What recurs does so at whole seconds.
    """
    if group.key == ONCE:
        return None
    times = None if group.key is None else plans.read(group.key)
    if times is None:
        return start, start + _TICK
    if query.most_per_day is not None and isinstance(times, range) and times.step * query.most_per_day < _DAY:
        return None
    places = bisect_left(times, floor_second(start)), bisect_right(times, floor_second(start))
    first, after = (UTC_EPOCH + timedelta(seconds=times[at]) if at < len(times) else query.until for at in places)
    return max(start, first), after


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
