"""Counts of tasks by status, of open and ended work, and what needs attention."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import OPEN_STATUSES, Execution
from cloudsched.domain.documents.run_counts import PartLength
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.responses.count import count_runs
from cloudsched.domain.responses.overview_responses import (
    ExecutionCounts,
    FailedExecution,
    OverviewCounts,
    PartCounts,
)
from cloudsched.domain.transitions.needs import find_unstarted
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.engine.ports.search import ExecutionQuery, SearchStore, TaskQuery, identify_finished_list
from cloudsched.engine.queries.needs import FoundNeed, NeedFinder
from cloudsched.engine.queries.time_parts import split_time
from cloudsched.engine.storage.matching_rows import MAX_LOOKED_THROUGH
from cloudsched.engine.storage.pages import read_token

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.responses.count import RunCounts
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.sweep.shard_sweeps import SweepNote, SweepNotes

MAX_COUNT = 10_000
"""The greatest count: ten billed reads."""
LOCAL_COUNT = 10_000_000
"""The greatest count where none is billed: all that a file may have."""
HOURS = 12
"""The number of the last hours that are counted one by one."""
LOCAL_SECONDS = 1.0
"""The least age of counts that a change makes old, where no count is billed: pages ask each 2 seconds."""
KEPT_SECONDS = 10.0
"""The time that counts are kept, in seconds of real time."""
_LOOKED_AT = (1, 10, 100)
"""The numbers of due tasks to read, the next one as long as open runs hold back all tasks that were read."""
_MAX_KEPT = 1000
"""The number of owners for whom counts are kept."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts, and what they were made with."""

    counts: OverviewCounts
    needs: Sequence[FoundNeed]
    """The tasks that need attention. See `join_needs`."""
    sweep: SweepNote | None
    seconds: float
    """When they were counted, by a clock that is never moved."""
    mark: str
    """The last change before that."""


class Overview:
    """Counts tasks and executions. Counts are cached for some seconds, however many people look.

    One count is a billed read for each 1,000 counted, or part of it: 19 counts, and 12 more for each kind of run
    that there was any of in the last hours. The sweep costs one, each overdue task one, at most 111, and what
    needs attention as `NeedFinder` says.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        monotonic: Callable[[], float],
        sweeps: SweepNotes,
        least_seconds: float = KEPT_SECONDS,
        most: int = MAX_COUNT,
    ) -> None:
        """Take the least age of counts that a change makes old, and the greatest count.

        Where counts are cheap, the age is less than `KEPT_SECONDS`, and the count more than `MAX_COUNT`.
        """
        self._most = most
        self._least_seconds = least_seconds
        self._sweeps = sweeps
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._finder = NeedFinder(store, most)
        self._kept: dict[str | None, Counted] = {}
        self._lock = make_lock()

    def count(self, owner: str | None) -> Counted:
        """Return the counts of all tasks or of an owner's, and the last sweep, at most `KEPT_SECONDS` old.

        The tasks that need attention are counted anew once any task has changed. That check costs a read.
        """
        with self._lock:  # others who ask meanwhile wait for the same counts
            mark = self._store.search.find_last_change(owner)
            kept = self._kept.get(owner)
            seconds, now = self._monotonic(), self._clock.now()
            if kept is not None and kept.mark == mark and not self._is_old(kept, KEPT_SECONDS):
                return kept
            overdue = self._list_overdue(owner, now)
            needs = tuple(self._finder.find(owner, overdue[0], now, is_cut=overdue[1]))
            if kept is None or self._is_old(kept, self._least_seconds):
                if len(self._kept) >= _MAX_KEPT:
                    self._kept.clear()
                since = min((at for at, _ in overdue[0]), default=None)
                kept = Counted(self._count(owner, since), needs, self._sweeps.load(), seconds, mark)
            self._kept[owner] = kept = replace(kept, needs=needs, mark=mark)
            return kept

    def _is_old(self, kept: Counted, age: float) -> bool:
        moved = abs((self._clock.now() - kept.counts.counted_at).total_seconds())  # a clock may stand, and be moved
        return max(self._monotonic() - kept.seconds, moved) >= age

    def forget(self) -> None:
        """Forget all counts. The next request counts anew."""
        with self._lock:
            self._kept.clear()

    def _count(self, owner: str | None, overdue_since: datetime | None) -> OverviewCounts:
        search = self._store.search
        now = self._clock.now()
        mine = ExecutionQuery(owner=owner)
        this_hour = now.replace(minute=0, second=0, microsecond=0)
        edges = [this_hour + timedelta(hours=number) for number in range(1 - HOURS, 2)]
        return OverviewCounts(
            counted_at=now,
            tasks={status: search.count_tasks(TaskQuery(owner, status), self._most) for status in TaskStatus},
            open={status: search.count_open(mine, status, self._most) for status in OPEN_STATUSES},
            hours=_to_parts(edges, search.count_runs(owner, edges)),
            due_soon=search.count_tasks(TaskQuery(owner, due_until=now + timedelta(hours=1)), self._most),
            overdue_since=overdue_since,
        )

    def _list_overdue(self, owner: str | None, now: datetime) -> tuple[Sequence[tuple[datetime, Task]], bool]:
        """Return what should have started and has not, and whether there is more than was read.

        What waits for an open run of its task is not among it.
        """
        query = TaskQuery(owner, due_until=now)
        token = None
        found: list[tuple[datetime, Task]] = []
        for limit in _LOOKED_AT:
            page = self._store.list_tasks(query, limit=limit, page_token=token)
            found += [(at, task) for task in page.items if (at := find_unstarted(task)) and at <= now]
            token = page.next_page_token
            if token is None:
                break
        return found, token is not None


def count_by_time(
    search: SearchStore,
    query: ExecutionQuery,
    since: datetime,
    until: datetime,
    zone: ZoneInfo,
    per: PartLength = PartLength.DAY,
) -> ExecutionCounts:
    """Return the counts of each part of the time from `since` to `until`, the earliest first.

    The first and the last part may be shorter. On Firestore a count is a billed read for each 1,000 counted, or part
    of it: five for the whole time, and one a part for each kind of run that there is any of. With a handler, label or
    category the latest runs are read instead, and parts that these do not reach are left out. Raises InvalidInput.
    """
    edges = split_time(since, until, zone, per)
    if not edges[1:]:
        return ExecutionCounts(parts=())
    if not query.looked_for:
        return ExecutionCounts(parts=_to_parts(edges, search.count_runs(query.owner, edges)))
    within = replace(query, since=since, until=until)
    found: list[Execution] = []
    whole = edges
    for is_failure in (True, False):
        page = search.list_finished(within, is_failure=is_failure, limit=MAX_LOOKED_THROUGH)
        found += page.items
        if page.next_page_token:
            reached, _ = read_token(identify_finished_list(within, is_failure=is_failure), page.next_page_token)
            whole = [each for each in whole if each > reached]
    parts: list[list[Execution]] = [[] for _ in whole]
    for each in found:
        if number := bisect_right(whole, each.scheduled_for):
            parts[number - 1].append(each)
    counts = [count_runs(part) for part in parts[:-1]]
    return ExecutionCounts(parts=_to_parts(whole, counts), complete_from=whole[0] if whole[0] > edges[0] else None)


def _to_parts(edges: Sequence[datetime], counts: Sequence[RunCounts]) -> tuple[PartCounts, ...]:
    return tuple(
        PartCounts(start=start, end=end, **vars(each))
        for (start, end), each in zip(itertools.pairwise(edges), counts, strict=True)
    )


def name_failure(execution: Execution) -> FailedExecution:
    """Return an execution that failed as lists name it."""
    error = execution.error
    return FailedExecution(
        task_id=execution.task_id,
        execution_id=execution.id,
        title=execution.title,
        owner=execution.owner,
        scheduled_for=execution.scheduled_for,
        error=execution.status.value if error is None else f"{error.type}: {error.message}",
    )
