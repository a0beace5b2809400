"""List what will run: the occurrences to come of all tasks, merged by time."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.allowance import (
    REQUEST_STEPS,
    TASK_STEPS,
    Allowance,
    spend_from,
    spend_steps,
    take_part,
)
from cloudsched.domain.transitions.planning import occurrence_after, occurrence_from
from cloudsched.engine.ports.search import OccurrenceQuery, TaskQuery
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, make_token, read_token
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Store

MAX_TASKS = 1000
"""The most tasks that a bounded list reads of those that are due next in its time, and of those due before."""
FREE_STEPS = 200
"""The steps of a search that each task adds which an unbounded list reads: few take more."""
MAX_BYTES = 4 * MAX_PAGE_BYTES
"""The most bytes of the documents of these tasks together, but for the last page's last."""
_TICK = timedelta(microseconds=1)
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_PART = 100
"""The number of tasks that are read at once."""


@dataclass(frozen=True, slots=True)
class OccurrenceSlice:
    """Some occurrences, each with its task, the soonest first."""

    items: Sequence[tuple[datetime, Task]]
    next_page_token: str | None = None
    complete_until: datetime | None = None
    """From this instant on, some occurrences are missing: those of a task take too long to search, or the list is
    bounded and too many tasks are due before `until`, or they are too large together. None if none is."""


def list_occurrences(
    store: Store,
    query: OccurrenceQuery,
    limit: int,
    page_token: str | None = None,
    *,
    is_bounded: bool = True,
) -> OccurrenceSlice:
    """Return a page of the occurrences of all matching tasks, the soonest first (time, then the task's id).

    Those that have not been claimed yet, without jitter. Only tasks whose next occurrence is before `until`
    are read, and only as many as the page needs: one read each. These are those due next within the page, and all
    that recur and are due before its start: of both at most `MAX_TASKS` if it is bounded. Of them it holds in memory
    what the page needs. Raises InvalidInput.
    """
    position = read_token(query, page_token) if page_token else None
    start, last = position or (query.since, "")
    reader = DueReader(store, query, position, part=min(_PART, limit + 2), is_bounded=is_bounded)
    heads: list[tuple[datetime, str, _TaskOccurrences]] = []

    def push(times: _TaskOccurrences, after: datetime) -> None:
        try:
            at = times.find_next()
        except InvalidSchedule:  # so sparse that the search gave up, or more than a list may spend on one task
            reader.note_missing(after)
            return
        if at is not None and at < query.until:
            heapq.heappush(heads, (at, times.task.id, times))

    found: list[tuple[datetime, Task]] = []
    while len(found) <= limit:
        while tasks := reader.take(heads[0][:2] if heads else None):
            for task in tasks:
                begin = start + _TICK if start and task.id <= last else start
                push(_TaskOccurrences(task, begin), max(begin or _due(task), _due(task)))
            heads = heapq.nsmallest(limit + 1, heads)  # sorted, so it is a heap
        if not heads:
            break
        at, _, times = heapq.heappop(heads)
        found.append((at, times.task))
        push(times, at + _TICK)
    page = found[:limit]
    token = make_token(query, page[-1][0], page[-1][1].id) if len(found) > limit else None
    return OccurrenceSlice(page, token, reader.complete_until)


class _TaskOccurrences:
    """The occurrences of one task in a list of many, which spends part of the request's search on each."""

    def __init__(self, task: Task, start: datetime | None) -> None:
        self.task = task
        self._times = iter_occurrences(task, start)
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


class DueReader:
    """Reads the tasks of which something may be due in a time when they are needed: those that may occur soonest first.

    These are the tasks that are due next at its start or later, and those that are due before and may occur again.
    """

    def __init__(
        self,
        store: Store,
        query: OccurrenceQuery,
        position: tuple[datetime, str] | None = None,
        *,
        part: int,
        is_bounded: bool = True,
    ) -> None:
        self._store = store
        self._query = query
        self._is_bounded = is_bounded
        self._reading = take_part(REQUEST_STEPS) if is_bounded else Allowance(REQUEST_STEPS)
        self._size = 0
        self.complete_until: datetime | None = None
        start, key = position or (query.since, "")
        everything = TaskQuery(owner=query.owner, due_until=query.until, roughly=query)
        later = replace(everything, due_from=start)
        token = make_token(later, start, key) if start and key else None
        # All that a page needs is mostly in the first part, or little is missing.
        parts = itertools.chain((part, 10, 20, 40, 80), itertools.repeat(_PART))
        lists = [_TaskList(later, parts, token=token)]
        if start is not None:
            recurring = replace(query, since=start)
            before = replace(everything, due_until=start, roughly=recurring)
            lists.append(_TaskList(before, first=start))
        if start is not None and key:  # of what is due at the start itself, this has been listed
            after = start + _TICK
            at_once = replace(later, due_until=after, roughly=replace(query, since=after))
            lists.append(_TaskList(at_once, first=after, last=key))
        self._lists = [(each.bound, number, each) for number, each in enumerate(lists)]
        heapq.heapify(self._lists)

    def take(self, until: tuple[datetime, str] | None = None) -> Sequence[Task]:
        """Return the tasks that may occur soonest, if that may be before an occurrence (time, id of its task).

        Empty if there are none.
        """
        while self._lists and (until is None or self._lists[0][0] < until):
            (at, _), number, each = heapq.heappop(self._lists)
            if at >= self._query.until:
                return []
            if self._is_bounded and (each.count >= MAX_TASKS or self._size >= MAX_BYTES):
                self.note_missing(at)
                continue
            with spend_from(self._reading):
                page = self._store.list_tasks(each.query, limit=next(each.parts), page_token=each.token)
            if not self._is_bounded:
                spend_steps(-FREE_STEPS * page.read)
            each.count += page.read
            self._size += page.size
            each.token = page.next_page_token
            if each.token is not None and (each.last is None or each.bound_of_token[1] < each.last):
                heapq.heappush(self._lists, (each.bound, number, each))
            if found := [
                task for task in page.items if self._query.matches(task) and (each.last is None or task.id <= each.last)
            ]:
                return found
        return []

    def leave_rest(self) -> None:
        """Note that what has not been read is missing."""
        if self._lists:
            self.note_missing(self._lists[0][0][0])

    def note_missing(self, at: datetime) -> None:
        """Note that some of what occurs from an instant on is missing."""
        self.complete_until = min(at, self.complete_until or at)


@dataclass(slots=True)
class _TaskList:
    """A list of tasks, the next due first, and then by their ids. It is read in parts."""

    query: TaskQuery
    parts: Iterator[int] = field(default_factory=lambda: itertools.repeat(_PART))
    """The sizes of its parts."""
    _: KW_ONLY
    first: datetime | None = None
    """No one of them occurs before this instant in the time that is listed. None if that is when each is due next."""
    token: str | None = None
    """That of the next part. None of the first."""
    last: str | None = None
    """The id after which it ends."""
    count: int = 0
    """The number of tasks that were read."""

    @property
    def bound(self) -> tuple[datetime, str]:
        """Return an occurrence (time, id of its task) before which none is that has not been read."""
        if self.first is not None:
            return self.first, ""
        return self.bound_of_token

    @property
    def bound_of_token(self) -> tuple[datetime, str]:
        """Return the task (when it is due next, its id) after which the next part begins."""
        if self.token is None:
            return self.query.due_from or _EARLIEST, ""
        return read_token(self.query, self.token)


def _due(task: Task) -> datetime:
    assert task.next_execution_time is not None  # noqa: S101 - the list has only tasks that have one
    return task.next_execution_time


def iter_occurrences(task: Task, start: datetime | None) -> Iterator[datetime]:
    """Yield the unclaimed occurrences of a task, from an instant on."""
    at: datetime | None = _due(task)
    if task.max_runs is None:
        if start is not None and start > _due(task):
            at = occurrence_from(task, start)
        while at is not None:
            yield at
            at = occurrence_after(task, at)
        return
    for _ in range(task.max_runs - task.run_count):  # they have to be counted
        if at is None:
            return
        if start is None or at >= start:
            yield at
        at = occurrence_after(task, at)
