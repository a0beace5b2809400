"""Counts of tasks by status, of open and ended work, how late things start."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from cloudsched.domain.documents.execution import OPEN_STATUSES, Execution
from cloudsched.domain.documents.run_counts import PartLength
from cloudsched.domain.documents.task import NeedCause, Task, TaskStatus, Trouble
from cloudsched.domain.responses.count import Count
from cloudsched.domain.responses.overview_responses import (
    ExecutionCounts,
    FailedExecution,
    LateStart,
    NeedCount,
    NeedGroup,
    OverviewCounts,
    PartCounts,
)
from cloudsched.domain.transitions.needs import CAUSES_BY_TROUBLE, GIVES_UP_SOON, find_unstarted, is_late
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.engine.ports.search import ExecutionQuery, SearchStore, TaskQuery
from cloudsched.engine.queries.time_parts import split_time

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from cloudsched.domain.documents.run_counts import RunCounts
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
RECENT = 20
"""The number of failures, and of other executions, that started late and are shown: a read for each."""
_LOOKED_AT = (1, 10, 100)
"""The numbers of due tasks to read, the next one as long as open runs hold back all tasks that were read."""
_TITLED = 20
"""The number of handlers with tasks that need attention whose oldest task is read for its title."""
_MAX_KEPT = 1000
"""The number of owners for whom counts are kept."""

_Overdue: TypeAlias = tuple[Sequence[tuple[datetime, Task]], bool]
"""Overdue work with the time since which it has been due, and whether there is more of it than was read. Work that
waits for an open run of its task is not overdue."""


class Overview:
    """Counts tasks and executions. Counts are cached for some seconds, however many people look.

    One count is a billed read for each 1,000 counted, or part of it: 19 counts, and 12 more for each kind of run
    that there was any of in the last hours. The runs that started late cost a read each, at most 40. The sweep costs
    one, each overdue task one, at most 111, and each handler with tasks that need attention four for each cause.
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
        self._kept: dict[str | None, tuple[float, datetime, OverviewCounts, SweepNote | None]] = {}
        self._marks: dict[str | None, str] = {}
        """The last change before the tasks that need attention were counted, by owner."""
        self._lock = make_lock()

    def count(self, owner: str | None) -> tuple[OverviewCounts, SweepNote | None]:
        """Return the counts of all tasks or of an owner's, and the last sweep, at most `KEPT_SECONDS` old.

        The tasks that need attention are counted anew once any task has changed. That check costs a read.
        """
        with self._lock:  # others who ask meanwhile wait for the same counts
            mark = self._store.search.find_last_change(owner)
            kept = self._kept.get(owner)
            seconds, now = self._monotonic(), self._clock.now()
            age = KEPT_SECONDS
            if kept is not None:  # a clock may stand, and be moved
                age = max(seconds - kept[0], abs((now - kept[1]).total_seconds()))
            is_old = age >= (KEPT_SECONDS if self._marks.get(owner) == mark else self._least_seconds)
            if kept is None or is_old:
                if len(self._kept) >= _MAX_KEPT:
                    self._forget()
                kept = seconds, now, self._count(owner), self._sweeps.load()
            elif self._marks.get(owner) != mark:
                needs = tuple(self._count_needs(owner, self._list_overdue(owner)))
                kept = kept[0], kept[1], kept[2].model_copy(update={"needs": needs}), kept[3]
            self._kept[owner] = kept
            self._marks[owner] = mark
            return kept[2], kept[3]

    def forget(self) -> None:
        """Forget all counts. The next request counts anew."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._kept.clear()
        self._marks.clear()

    def _count_needs(self, owner: str | None, overdue: _Overdue) -> list[NeedCount]:
        unstarted, is_cut = overdue
        now = self._clock.now()
        late = [each for each in unstarted if is_late(each[0], now)]
        lateness = NeedCount(
            cause=NeedCause.OVERDUE,
            count=len(late),
            is_at_least=is_cut,
            oldest=late[0][0] if late else None,
            groups=_group_late(late),
        )
        return [*(self._count_need(owner, trouble, now) for trouble in CAUSES_BY_TROUBLE), lateness]

    def _count(self, owner: str | None) -> OverviewCounts:
        search = self._store.search
        now = self._clock.now()
        mine = ExecutionQuery(owner=owner)
        this_hour = now.replace(minute=0, second=0, microsecond=0)
        overdue = self._list_overdue(owner)
        edges = [this_hour + timedelta(hours=number) for number in range(1 - HOURS, 2)]
        tasks = {status: search.count_tasks(TaskQuery(owner, status), self._most) for status in TaskStatus}
        opened = {status: search.count_open(mine, status, self._most) for status in OPEN_STATUSES}
        due_soon = search.count_tasks(TaskQuery(owner, due_until=now + timedelta(hours=1)), self._most)
        counted = [*tasks.items(), *opened.items(), ("dueSoon", due_soon)]
        hours = search.count_runs(mine, edges)
        return OverviewCounts(
            counted_at=now,
            tasks={status: count.value for status, count in tasks.items()},
            open={status: count.value for status, count in opened.items()},
            hours=_to_parts(edges, hours),
            due_soon=due_soon.value,
            at_least=tuple(str(name) for name, count in counted if count.at_least),
            overdue_since=next((at for at, _ in overdue[0]), None),
            needs=tuple(self._count_needs(owner, overdue)),
            late_starts=self._list_late(replace(mine, since=edges[0], until=edges[-1], is_late=True)),
        )

    def _list_overdue(self, owner: str | None) -> _Overdue:
        query = TaskQuery(owner, due_until=self._clock.now())
        token = None
        found: list[tuple[datetime, Task]] = []
        for limit in _LOOKED_AT:
            page = self._store.list_tasks(query, limit=limit, page_token=token)
            found += [(at, task) for task in page.items if (at := find_unstarted(task)) is not None]
            token = page.next_page_token
            if token is None:
                break
        return found, token is not None

    def _count_need(self, owner: str | None, trouble: Trouble, now: datetime) -> NeedCount:
        until = None
        if trouble is Trouble.WAITING:
            until = now + GIVES_UP_SOON
        query = TaskQuery(owner, trouble=trouble, trouble_until=until)
        cause = CAUSES_BY_TROUBLE[trouble]
        count = self._store.search.count_tasks(query, self._most)
        if not count:
            return NeedCount(cause=cause, count=0)
        groups = self._store.search.group_tasks(query)
        oldest = [each.first_id for each in groups[:_TITLED]]
        titles = {each.task.id: each.task.title for each in self._store.load_many(oldest)}
        return NeedCount(
            cause=cause,
            count=count.value,
            is_at_least=count.at_least,
            oldest=min((each.first for each in groups), default=None),
            groups=tuple(
                NeedGroup(
                    handler=each.name,
                    count=each.count,
                    oldest=each.first,
                    task_id=each.first_id,
                    title=titles.get(each.first_id),
                )
                for each in groups
            ),
        )

    def _list_late(self, query: ExecutionQuery) -> tuple[LateStart, ...]:
        found = [
            LateStart(scheduled_for=each.scheduled_for, lateness=(each.started_at - each.scheduled_for).total_seconds())
            for is_failure in (True, False)
            for each in self._store.search.list_finished(query, is_failure=is_failure, limit=RECENT).items
            if each.started_at is not None
        ]
        return tuple(sorted(found, key=lambda each: each.scheduled_for)[-RECENT:])


def _group_late(late: Sequence[tuple[datetime, Task]]) -> tuple[NeedGroup, ...]:
    """Return late tasks by handler, the rarest first. Those of a handler come with the earliest first."""
    groups: dict[str, list[tuple[datetime, Task]]] = {}
    for each in late:
        groups.setdefault(each[1].handler, []).append(each)
    rarest = sorted(groups.items(), key=lambda each: (len(each[1]), each[0]))
    return tuple(
        NeedGroup(handler=handler, count=len(members), oldest=first[0], task_id=first[1].id, title=first[1].title)
        for handler, members in rarest
        for first in members[:1]
    )


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
    of it: five for the whole time, and one a part for each kind of run that there is any of. Raises InvalidInput.
    """
    edges = split_time(since, until, zone, per)
    return ExecutionCounts(parts=_to_parts(edges, search.count_runs(query, edges)))


def _to_parts(edges: Sequence[datetime], counts: Sequence[RunCounts]) -> tuple[PartCounts, ...]:
    return tuple(
        PartCounts(
            start=start,
            end=end,
            ran=each.ran,
            failed=each.failed,
            skipped=Count(value=each.skipped, at_least=each.is_at_least),
            calls=each.calls,
            late=each.late,
        )
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
