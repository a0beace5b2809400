"""Counts of the tasks by status, of open work and of what ended in the last hours, and how late things start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from cloudsched.domain.documents.execution import OPEN_STATUSES, ExecutionStatus, Trigger
from cloudsched.domain.documents.overview_responses import NeedCause, NeedCount
from cloudsched.domain.documents.task import TaskStatus, Trouble, find_trouble
from cloudsched.domain.transitions.planning import is_held_back
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.tasks.execution_search import EndCounts, count_ended

if TYPE_CHECKING:
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.shard_sweeps import SweepNote, SweepNotes

MAX_COUNT = 10_000
"""The greatest count: ten billed reads."""
HOURS = 12
"""The number of the last hours that are counted one by one."""
KEPT_SECONDS = 10.0
"""The time that counts are kept, in seconds of real time."""
RECENT = 20
"""The number of failures, and of other executions, whose starts are looked at: a read for each."""
_LOOKED_AT = (1, 10, 100)
"""The numbers of due tasks to read, the next one as long as open runs hold back all tasks that were read."""
GIVES_UP_SOON = timedelta(days=7)
"""A wait that gives up within this time needs somebody."""
LATE = timedelta(minutes=3)
"""The time after which overdue work will not come by itself: the sweep, each minute, has not helped either."""
_DATED = 100
"""The number of tasks that need somebody for which the start of that need is looked up."""
_MAX_KEPT = 1000
"""The number of owners for whom counts are kept."""


@dataclass(frozen=True, slots=True)
class Start:
    """The instant for which an occurrence of a schedule was due, and the delay of its start."""

    scheduled_for: datetime
    lateness: timedelta
    """The delay with jitter, and with the wait for a lock or a worker."""


@dataclass(frozen=True, slots=True)
class OverviewCounts:
    """The counts at one time. None is greater than `MAX_COUNT`."""

    counted_at: datetime
    tasks: Mapping[TaskStatus, int]
    open: Mapping[ExecutionStatus, int]
    """Tasks by the status of their most active open execution."""
    hours: Sequence[EndCounts]
    """The earliest hour first. The last one has just begun."""
    due_soon: int
    """Tasks whose next occurrence is within the next hour, or overdue."""
    overdue_since: datetime | None
    """The earliest next occurrence that is in the past and not claimed, and that no open run of its task holds back.

    None if there is none, or if the first 111 that are due are all held back.
    """
    needs: Sequence[NeedCount]
    """Each cause once."""
    starts: Sequence[Start]
    """Of the latest executions that ended, the earliest first."""
    sweep: SweepNote | None
    """The last sweep, None if none has been noted."""


_Overdue: TypeAlias = tuple[Sequence[datetime], bool]
"""Since when work is due that no open run of its task holds back, and whether more is due than was looked at."""


class Overview:
    """Counts, and keeps the counts for some seconds: however many people look, they cost the same.

    One count is a billed read for each 1,000 counted, or part of it: 39 counts, so 39 reads where there is little. The
    lateness costs a read for each of the latest executions, at most 40. The sweep costs one, each overdue task one, at
    most 111, and each task that needs somebody one, at most 100 for each cause.
    """

    def __init__(self, store: Store, clock: Clock, monotonic: Callable[[], float], sweeps: SweepNotes) -> None:
        self._sweeps = sweeps
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._kept: dict[str | None, tuple[float, OverviewCounts]] = {}
        self._marks: dict[str | None, str] = {}
        """The last change before the tasks that need somebody were counted, by owner."""
        self._lock = threading.Lock()

    def count(self, owner: str | None) -> OverviewCounts:
        """Return the counts of all tasks, or of those of an owner, at most `KEPT_SECONDS` old.

        The tasks that need somebody are counted anew once any task has changed. That check costs a read.
        """
        with self._lock:  # others who ask meanwhile wait for the same counts
            mark = self._store.search.find_last_change(owner)
            kept = self._kept.get(owner)
            if kept is None or self._monotonic() - kept[0] >= KEPT_SECONDS:
                if len(self._kept) >= _MAX_KEPT:
                    self._kept.clear()
                    self._marks.clear()
                kept = self._monotonic(), self._count(owner)
            elif self._marks.get(owner) != mark:
                kept = kept[0], replace(kept[1], needs=self._count_needs(owner, self._list_overdue(owner)))
            self._kept[owner], self._marks[owner] = kept, mark
            return kept[1]

    def forget(self) -> None:
        """Count anew when somebody asks next, as after the clock was moved."""
        with self._lock:
            self._kept.clear()
            self._marks.clear()

    def _count_needs(self, owner: str | None, overdue: _Overdue) -> list[NeedCount]:
        (since, is_cut), now = overdue, self._clock.now()
        late = [at for at in since if at < now - LATE]
        oldest = late[0] if late else None
        lateness = NeedCount(cause=NeedCause.OVERDUE, count=len(late), is_at_least=is_cut, oldest=oldest)
        return [*(self._count_need(owner, trouble, now) for trouble in Trouble), lateness]

    def _count(self, owner: str | None) -> OverviewCounts:
        search, now = self._store.search, self._clock.now()
        mine = ExecutionQuery(owner=owner)
        this_hour = now.replace(minute=0, second=0, microsecond=0)
        overdue = self._list_overdue(owner)
        starts = [this_hour - timedelta(hours=number) for number in reversed(range(HOURS))]
        return OverviewCounts(
            counted_at=now,
            tasks={status: search.count_tasks(TaskQuery(owner, status), MAX_COUNT) for status in TaskStatus},
            open={status: search.count_open(mine, status, MAX_COUNT) for status in OPEN_STATUSES},
            hours=[count_ended(search, mine, start, start + timedelta(hours=1)) for start in starts],
            due_soon=search.count_tasks(TaskQuery(owner, due_until=now + timedelta(hours=1)), MAX_COUNT),
            overdue_since=next(iter(overdue[0]), None),
            needs=self._count_needs(owner, overdue),
            starts=self._list_starts(mine),
            sweep=self._sweeps.load(),
        )

    def _list_overdue(self, owner: str | None) -> _Overdue:
        query, token = TaskQuery(owner, due_until=self._clock.now()), None
        found: list[datetime] = []
        for limit in _LOOKED_AT:
            page = self._store.list_tasks(query, limit=limit, page_token=token)
            found += [at for task in page.items if (at := task.next_execution_time) and not is_held_back(task)]
            token = page.next_page_token
            if token is None:
                break
        return found, token is not None

    def _count_need(self, owner: str | None, trouble: Trouble, now: datetime) -> NeedCount:
        until = now + GIVES_UP_SOON if trouble is Trouble.WAITING else None
        query, cause = TaskQuery(owner, trouble=trouble, trouble_until=until), NeedCause(trouble.value)
        count = self._store.search.count_tasks(query, MAX_COUNT)
        if not count:
            return NeedCount(cause=cause, count=0)
        page = self._store.list_tasks(query, limit=_DATED)
        positions = [position for task in page.items if (position := find_trouble(task))]
        return NeedCount(
            cause=cause,
            count=count,
            is_at_least=count >= MAX_COUNT,
            oldest=min((since for _, since in positions), default=None),
            is_oldest_at_least=page.next_page_token is not None,
        )

    def _list_starts(self, query: ExecutionQuery) -> Sequence[Start]:
        found = [
            Start(one.scheduled_for, max(timedelta(0), one.started_at - one.scheduled_for))
            for is_failure in (True, False)
            for one in self._store.search.list_finished(query, is_failure=is_failure, limit=RECENT).items
            if one.started_at is not None and one.trigger is Trigger.SCHEDULE
        ]
        return sorted(found, key=lambda each: each.scheduled_for)[-RECENT:]
