"""Counts of tasks by status, of open and ended work, how late things start, and groups of failures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cloudsched.domain.documents.execution import OPEN_STATUSES, Execution, Trigger
from cloudsched.domain.documents.task import NeedCause, TaskStatus, Trouble
from cloudsched.domain.responses.overview_responses import (
    DayCounts,
    FailedExecution,
    FailureGroup,
    FailureSummary,
    HourCounts,
    NeedCount,
    OverviewCounts,
    RecentStart,
)
from cloudsched.domain.transitions.needs import GIVES_UP_SOON, find_trouble, find_unstarted, is_late
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.engine.ports.search import ExecutionQuery, SearchStore, TaskQuery
from cloudsched.engine.queries.execution_search import ExecutionFilter, list_failures
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.sweep.shard_sweeps import SweepNote, SweepNotes

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
_DATED = 100
"""The number of tasks that need attention for which it is looked up since when."""
_MAX_KEPT = 1000
"""The number of owners for whom counts are kept."""

_Overdue: TypeAlias = tuple[Sequence[datetime], bool]
"""The times since which overdue work has been due, and whether there is more of it than was read. Work that
waits for an open run of its task is not overdue."""


class Overview:
    """Counts tasks and executions. Counts are cached for some seconds, however many people look.

    One count is a billed read for each 1,000 counted, or part of it: 39 counts, so 39 reads where there is
    little. The lateness costs a read for each of the latest executions, at most 40. The sweep costs one, each
    overdue task one, at most 111, and each task that needs attention one, at most 100 for each cause.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        monotonic: Callable[[], float],
        sweeps: SweepNotes,
    ) -> None:
        self._sweeps = sweeps
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._kept: dict[str | None, tuple[float, OverviewCounts, SweepNote | None]] = {}
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
            if kept is None or self._monotonic() - kept[0] >= KEPT_SECONDS:
                if len(self._kept) >= _MAX_KEPT:
                    self._kept.clear()
                    self._marks.clear()
                kept = self._monotonic(), self._count(owner), self._sweeps.load()
            elif self._marks.get(owner) != mark:
                needs = tuple(self._count_needs(owner, self._list_overdue(owner)))
                kept = kept[0], kept[1].model_copy(update={"needs": needs}), kept[2]
            self._kept[owner] = kept
            self._marks[owner] = mark
            return kept[1], kept[2]

    def forget(self) -> None:
        """Forget all counts, as after the clock was moved. The next request counts anew."""
        with self._lock:
            self._kept.clear()
            self._marks.clear()

    def _count_needs(self, owner: str | None, overdue: _Overdue) -> list[NeedCount]:
        since, is_cut = overdue
        now = self._clock.now()
        late = [at for at in since if is_late(at, now)]
        oldest = late[0] if late else None
        lateness = NeedCount(cause=NeedCause.OVERDUE, count=len(late), is_at_least=is_cut, oldest=oldest)
        return [*(self._count_need(owner, trouble, now) for trouble in Trouble), lateness]

    def _count(self, owner: str | None) -> OverviewCounts:
        search = self._store.search
        now = self._clock.now()
        mine = ExecutionQuery(owner=owner)
        this_hour = now.replace(minute=0, second=0, microsecond=0)
        overdue = self._list_overdue(owner)
        starts = [this_hour - timedelta(hours=number) for number in reversed(range(HOURS))]
        return OverviewCounts(
            counted_at=now,
            tasks={status: search.count_tasks(TaskQuery(owner, status), MAX_COUNT) for status in TaskStatus},
            open={status: search.count_open(mine, status, MAX_COUNT) for status in OPEN_STATUSES},
            hours=tuple(HourCounts(**count_ended(search, mine, start, start + timedelta(hours=1))) for start in starts),
            due_soon=search.count_tasks(TaskQuery(owner, due_until=now + timedelta(hours=1)), MAX_COUNT),
            overdue_since=next(iter(overdue[0]), None),
            needs=tuple(self._count_needs(owner, overdue)),
            starts=self._list_starts(mine),
        )

    def _list_overdue(self, owner: str | None) -> _Overdue:
        query = TaskQuery(owner, due_until=self._clock.now())
        token = None
        found: list[datetime] = []
        for limit in _LOOKED_AT:
            page = self._store.list_tasks(query, limit=limit, page_token=token)
            found += filter(None, map(find_unstarted, page.items))
            token = page.next_page_token
            if token is None:
                break
        return found, token is not None

    def _count_need(self, owner: str | None, trouble: Trouble, now: datetime) -> NeedCount:
        until = None
        if trouble is Trouble.WAITING:
            until = now + GIVES_UP_SOON
        query = TaskQuery(owner, trouble=trouble, trouble_until=until)
        cause = NeedCause(trouble.value)
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

    def _list_starts(self, query: ExecutionQuery) -> tuple[RecentStart, ...]:
        pages = [self._store.search.list_finished(query, is_failure=each, limit=RECENT) for each in (True, False)]
        found = [
            RecentStart(scheduled_for=at, lateness=max(0.0, (one.started_at - at).total_seconds()))
            for page in pages
            for one, at in ((each, each.scheduled_for) for each in page.items)
            if one.started_at is not None and one.trigger is Trigger.SCHEDULE
        ]
        return tuple(sorted(found, key=lambda each: each.scheduled_for)[-RECENT:])


MAX_DAYS: Final = 62
"""The most days that are counted."""


def count_days(
    search: SearchStore, query: ExecutionQuery, since: datetime, until: datetime, zone: ZoneInfo
) -> tuple[DayCounts, ...]:
    """Return the counts of each day from `since` to `until`, the earliest first. Both may lie within a day.

    A count is a billed read for each 1,000 counted, or part of it. There are two a day. Raises InvalidInput.
    """
    parts = list(_split(since, until, zone))
    if len(parts) > MAX_DAYS:
        raise InvalidInput("until", f"is more than {MAX_DAYS} days after from", "Ask for some of them.")
    return tuple(DayCounts(**count_ended(search, query, start, end)) for start, end in parts)


def _split(since: datetime, until: datetime, zone: ZoneInfo) -> Iterator[tuple[datetime, datetime]]:
    start = since
    for _ in range(MAX_DAYS + 1):
        if start >= until:
            return
        following = start.astimezone(zone).date() + timedelta(days=1)
        midnight = datetime.combine(following, time(), zone).astimezone(UTC)
        if midnight <= start:  # a day that the zone skips as a whole
            midnight = datetime.combine(following + timedelta(days=1), time(), zone).astimezone(UTC)
        end = min(midnight, until)
        yield start, end
        start = end


def count_ended(search: SearchStore, query: ExecutionQuery, start: datetime, end: datetime) -> dict[str, Any]:
    """Return the counts of what was scheduled from one instant to before another, and has ended."""
    within = replace(query, since=start, until=end)
    failed, others = (search.count_finished(within, is_failure=each, up_to=MAX_COUNT) for each in (True, False))
    return {"start": start, "failed": failed, "others": others}


MAX_FAILURES: Final = 500
"""The most failures that are looked at, the latest: a read for each, and for each that is passed over."""
MAX_GROUPS: Final = 50
_FOLDERS: Final = re.compile(r"^.*[\\/]")
_FRAME: Final = re.compile(r'^\s*File "([^"\n]+)", line (\d+), in (\S+)', re.MULTILINE)


def summarize_failures(search: SearchStore, query: ExecutionQuery, only: ExecutionFilter) -> FailureSummary:
    """Return the failures among the matching executions in groups, of many only the latest."""
    failures, is_cut = list_failures(search, query, only, MAX_FAILURES)
    groups = tuple(_group(failures))[:MAX_GROUPS]
    return FailureSummary(count=len(failures), is_at_least=is_cut, groups=groups)


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


def find_place(execution: Execution) -> str:
    """Return where an execution failed, as ``file.py:12 in name``, or an empty string if that is unknown."""
    error = execution.error
    if error is None or error.traceback is None:
        frames = []
    else:
        frames = _FRAME.findall(error.traceback)
    if not frames:
        return ""
    file, line, name = frames[-1]
    return f"{_FOLDERS.sub('', file)}:{line} in {name}"


def _group(failures: Sequence[Execution]) -> Iterator[FailureGroup]:
    groups: dict[tuple[str, str], list[Execution]] = {}
    for each in failures:
        if each.error is None:
            kind = each.status.value
        else:
            kind = each.error.type
        groups.setdefault((kind, find_place(each)), []).append(each)
    for (kind, place), members in sorted(groups.items(), key=lambda each: -len(each[1])):
        ordered = sorted(members, key=lambda each: each.scheduled_for)
        yield FailureGroup(
            type=kind,
            place=place,
            count=len(members),
            tasks=len({each.task_id for each in members}),
            first=ordered[0].scheduled_for,
            last=ordered[-1].scheduled_for,
            sample=name_failure(ordered[-1]),
        )
