"""List what will run: the occurrences to come of all tasks, merged by time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.allowance import TASK_STEPS, spend_from, take_part
from cloudsched.domain.transitions.plan_keys import find_plain_days
from cloudsched.domain.transitions.planning import occurrence_after, occurrence_from
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, make_token, read_token
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store

MAX_TASKS = 1000
"""The most tasks that one request reads."""
MAX_BYTES = 4 * MAX_PAGE_BYTES
"""The most bytes of the documents of these tasks together, but for the last page's last."""
MAX_STEPS = 10_000
"""The most occurrences of one task with `max_runs` that are walked over: they have to be counted."""
_TICK = timedelta(microseconds=1)
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
    position = None
    if page_token:
        position = read_token(query, page_token)
    start = max((at for at in (query.since, position and position[0]) if at is not None), default=None)
    reader = _TaskReader(store, query, min(_PART, limit + 1))
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
        while (task := reader.peek()) is not None and (not heads or _due(task) <= heads[0][0]):
            reader.skip()
            push(_TaskOccurrences(task, start), max(start or _due(task), _due(task)))
        if not heads:
            break
        at, key, times = heapq.heappop(heads)
        if position is None or (at, key) > position:
            found.append((at, times.task))
        push(times, at + _TICK)
    page = found[:limit]
    token = None
    if len(found) > limit:
        token = make_token(query, page[-1][0], page[-1][1].id)
    ends = [at for at in (complete_until, reader.complete_until) if at is not None]
    return OccurrenceSlice(page, token, min(ends, default=None))


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
    """Reads the tasks that are due before the end, the soonest first, when they are needed."""

    def __init__(self, store: Store, query: OccurrenceQuery, part: int) -> None:
        self._store = store
        self._part = part
        self._query = TaskQuery(owner=query.owner, due_until=query.until, most_per_day=query.most_per_day)
        self._matches = query.matches
        self._tasks: list[Task] = []
        self._token: str | None = None
        self._count = self._size = 0
        self._has_more = True
        self.complete_until: datetime | None = None

    def peek(self) -> Task | None:
        """Return the next task, or None if there is none, or none may be read."""
        while not self._tasks and self._has_more:
            page = self._store.list_tasks(self._query, limit=self._part, page_token=self._token)
            self._tasks = [task for task in reversed(page.items) if self._matches(task)]
            self._token = page.next_page_token
            self._count += page.read
            self._size += page.size
            self._has_more = self._token is not None and self._count < MAX_TASKS and self._size < MAX_BYTES
            if self._token is not None and not self._has_more and page.items:
                self.complete_until = _due(page.items[-1])
        return self._tasks[-1] if self._tasks else None

    def skip(self) -> None:
        self._tasks.pop()


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
