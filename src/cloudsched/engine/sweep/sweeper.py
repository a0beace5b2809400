"""The sweep: once a minute, find overdue work that nothing else will dispatch, and dispatch it again.

It finds tasks whose dispatch was lost or never created (the queue was down or purged, or a process died in
between), attempts whose executor died and whose lease has expired, lock grants for which no worker came in
time, and unfinished deletions. It decides nothing about runs itself: it only sends dispatches, which the
executor processes like any others. So any number of sweeps may run at the same time, and a sweep that dies
loses nothing. It also writes the records that a pause, a cancel or an edit has decided and one commit could
not hold, completes deletions and cancels, and removes tasks that ended longer ago than their retention.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import MAX_RETENTION, Task, TaskStatus
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.recurrence.allowance import limit_search
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.expiry import leaves_nothing
from cloudsched.domain.transitions.lifecycle import delete, may_have_children, was_recreated
from cloudsched.domain.transitions.planning import can_replan, is_held_back
from cloudsched.domain.transitions.wakeups import (
    executor_wakeups,
    lease_expiries,
    list_grant_expiries,
    list_orphaned_attempts,
    repair_number,
)
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.engine.storage.pages import Page, iterate_pages
from cloudsched.engine.sweep.zone_watch import replan_task
from cloudsched.errors import (
    BlobsUnavailable,
    CloudschedError,
    QueueUnavailable,
    StoreUnavailable,
    VersionConflict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cloudsched.engine.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext

S = TypeVar("S")
T = TypeVar("T")


def _measure_overdue(task: Task, now: datetime) -> float:
    """Return for how many seconds the executor has been late with a start, or the end of a lost attempt.

    Tasks with a lock key may wait for a start as long as others hold the lock, and an occurrence as long as there are
    too many open runs, which is no fault of the executor's.
    """
    starts = () if task.has_lock else executor_wakeups(task)
    if is_held_back(task):
        starts = tuple(wake for wake in starts if wake.scheduled_for != task.next_execution_time)
    # A pause held back until the last change of status.
    owed = (
        (now - max(wake.due_at, task.status_changed_at)).total_seconds() for wake in (*starts, *lease_expiries(task))
    )
    return max((0.0, *owed))


def map_in_threads(work: Callable[[S], T], items: Sequence[S], threads: int) -> Iterator[T]:
    """Yield the results in the order of the items, one after the other with one thread.

    An error is raised in its item's turn, once everything that was begun has ended.
    """
    if threads == 1 or len(items) < 2:  # noqa: PLR2004 - nothing to do at the same time
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, items)


log: Final = own_logger(__name__)

GRACE = timedelta(seconds=20)
"""The time that something may be overdue before the sweep considers it lost: a normal delivery takes less."""
PAGE_SIZE = 200
"""The number of tasks that are read at a time."""
MAX_REMOVAL = timedelta(seconds=20)
"""The time for which a sweep removes ended tasks, after all lost work. The next one continues: it must not be
late."""
MAX_EXAMINED = 40_000
"""The number of tasks that one sweep examines. The next sweep of the same process continues after them."""
COMMIT_MARGIN = timedelta(minutes=5)
"""The longest time between a change's decision and its commit. A sweep begins this much before the earliest
task that the sweep before it found: there is nothing further back, except what Firestore has to skip as just
deleted."""
FULL_SWEEP_INTERVAL = timedelta(minutes=10)
"""The interval after which a sweep begins at the very first instant all the same, as does the first one of a
process: clocks may have been wrong, or documents restored."""
SHARD_THREADS = 8
"""The number of tasks of one shard that are repaired at a time: most of that is waiting for the queue."""
MAX_CONSECUTIVE_FAILURES = 3
"""The number of tasks in a row for which the store does not answer after which the sweep gives up."""


@dataclass(slots=True)
class Sweep:
    """The counts of one sweep."""

    examined: int = 0
    """Tasks that were overdue."""
    dispatched: int = 0
    """Dispatches sent."""
    undeferred: int = 0
    """Tasks whose deferred work is now done, such as a dispatch that could not be created when they were
    stored."""
    unsent: int = 0
    """Tasks whose dispatches the queue did not accept. The next sweep tries again."""
    replanned: int = 0
    """Tasks that were planned with older time zone data than this process has."""
    failed: int = 0
    """Tasks that could not be repaired for another reason. The next sweep tries again."""
    expired: int = 0
    """Executions and messages removed: older than their task's executionRetention. Firestore does this
    itself."""
    purged: int = 0
    """Tasks removed: ended longer ago than their retention, or deleted by a process that died."""
    overdue_seconds: float = 0.0
    """The time in seconds that the oldest found work has been due. Work that may wait for a lock does not
    count."""

    def add(self, other: Sweep) -> None:
        """Add the counts of another one."""
        oldest = max(self.overdue_seconds, other.overdue_seconds)
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        self.overdue_seconds = oldest


class Sweeper:
    """Repairs overdue tasks: all, or those of one shard.

    The holder is the name of this process, if no other executes the store's tasks while it lives.
    """

    def __init__(
        self,
        engine: EngineContext,
        child_tasks: ChildTasks,
        *,
        shard: int | None = None,
        threads: int = 1,
        holder: str | None = None,
    ) -> None:
        self._engine = engine
        self._child_tasks = child_tasks
        self._shard = shard
        self._threads = threads
        self._holder = holder
        self._resume_token: str | None = None
        self._front: datetime | None = None
        """The earliest instant that the latest sweep found, kept in memory: storing it would cost a read a
        sweep."""
        self._full_at: datetime | None = None
        """The instant at which a sweep last began at the very first instant."""
        self._removes = False
        """Whether to look for ended tasks to remove: after such a sweep, and until none is left."""

    def sweep(self) -> Sweep:
        """Repair overdue tasks, the earliest first.

        The reads grow with the overdue tasks, not with all tasks.

        A task that cannot be repaired is skipped. If more than `MAX_EXAMINED` are overdue, this continues
        where the previous sweep stopped, and starts over after the last. So tasks that stay overdue for a
        good reason, such as a lock that is held, do not starve the others. Raises StoreUnavailable if the
        tasks could not be listed, or the store did not answer for several in a row.
        """
        result = Sweep()
        start_token = self._resume_token
        token = self._sweep_pages(start_token, MAX_EXAMINED, result)
        if token is None and start_token is not None and result.examined < MAX_EXAMINED:
            token = self._sweep_pages(None, MAX_EXAMINED, result)
        self._resume_token = token
        self._remove_ended(result)
        result.expired = self._engine.store.sweep.expire(self._engine.clock.now())
        self._log(result)
        return result

    def sweep_part(self, after: str | None, limit: int) -> tuple[Sweep, str | None]:
        """Repair about `limit` overdue tasks, those after a token.

        Return the token after them, None at the end.
        """
        result = Sweep()
        token = self._sweep_pages(after, limit, result)
        if token is None:
            self._remove_ended(result)
        self._log(result)
        return result, token

    def _log(self, result: Sweep) -> None:
        shard = {} if self._shard is None else {"shard": self._shard}
        counts = {"examined": result.examined, "dispatched": result.dispatched}
        oldest = {"overdueSeconds": round(result.overdue_seconds, 1)}
        log.info("swept", extra={"action": "swept", **counts, **oldest, **shard})

    def _sweep_pages(self, token: str | None, limit: int, result: Sweep) -> str | None:
        """Repair the tasks of page after page, until there is none or `limit` were examined.

        Return the next token.
        """
        now = self._engine.clock.now()
        failures = 0
        while True:
            page = self._list_due(now, token)
            tasks = sorted(page.items, key=lambda task: task.priority.rank)
            failures = self._for_each(
                tasks,
                lambda task, found: self._repair(task, now, found),
                failures,
                result,
            )
            token = page.next_page_token
            if token is None or result.examined >= limit:
                return token

    def _remove_ended(self, result: Sweep) -> None:
        """Remove tasks past their retention that the store does not remove by itself, the earliest first.

        Whatever waits for that, lost work has come before it. A look in ten minutes is enough, and costs
        less.
        """
        now = self._engine.clock.now()
        failures = 0
        token = None
        while self._removes and self._engine.clock.now() < now + MAX_REMOVAL:
            page = self._engine.store.sweep.list_due(
                now - GRACE, shard=self._shard, is_removal=True, limit=PAGE_SIZE, page_token=token
            )
            failures = self._remove_all(page.items, failures, result)
            token = page.next_page_token
            self._removes = token is not None

    def _remove_all(self, tasks: Sequence[Task], failures: int, result: Sweep) -> int:
        """Remove tasks whose retention has passed.

        What several of an owner have used is noted together before.

        Those that leave something behind (`leaves_nothing`) are marked before, so that another sweep finishes
        this if the process dies, and nobody changes them meanwhile.
        """
        marked: dict[str, VersionedTask] = {}
        unnoted = self._note_use(filter(leaves_nothing, tasks), result)
        noted = [each for each in tasks if each.owner not in unnoted]
        failures = self._for_each(
            noted,
            lambda task, found: self._remove(task.id, found, marked),
            failures,
            result,
        )
        unnoted = self._note_use([each.task for each in marked.values()], result)
        ready = [each.task for each in marked.values() if each.task.owner not in unnoted]

        def finish(task: Task, found: Sweep) -> None:
            self._engine.committer.options.leave(task)
            found.examined = 0
            found.purged += self._engine.store.sweep.remove(marked[task.id]) or self._child_tasks.remove(task)

        return self._for_each(ready, finish, failures, result)

    def _note_use(self, tasks: Iterable[Task], result: Sweep) -> set[str]:
        """Note what tasks have used, and return the owners for whom that failed, so that others do not wait."""
        by_owner = defaultdict[str, list[Task]](list)
        for task in tasks:
            by_owner[task.owner].append(task)
        unnoted = set[str]()
        for owner, own in by_owner.items():
            try:
                self._engine.usage().note(own)
            except CloudschedError:
                unnoted.add(owner)
                result.failed += len(own)
                log.exception("unrepaired", extra={"action": "unrepaired", "owner": owner})
        return unnoted

    def _for_each(
        self, tasks: Sequence[Task], work: Callable[[Task, Sweep], None], failures: int, result: Sweep
    ) -> int:
        """Do a work for each task, and return for how many in a row the store has not answered.

        Raises StoreUnavailable.
        """
        for found, error in map_in_threads(lambda task: self._try(task, work), tasks, self._threads):
            result.add(found)
            failures = 0 if error is None else failures + 1
            if error is not None and failures == MAX_CONSECUTIVE_FAILURES:
                raise error
        return failures

    def _try(self, task: Task, work: Callable[[Task, Sweep], None]) -> tuple[Sweep, StoreUnavailable | None]:
        result = Sweep(examined=1)
        store_error = None
        try:
            with limit_search():
                work(task, result)
        except QueueUnavailable as error:
            result.unsent += 1
            log.warning("unsent: %s", error, extra={"action": "unsent", "taskId": task.id})
        except Exception as error:  # a problem of one task must not prevent the repair of the others
            result.failed += 1
            log.exception("unrepaired", extra={"action": "unrepaired", "taskId": task.id})
            if isinstance(error, StoreUnavailable) and not isinstance(error, BlobsUnavailable):
                store_error = error
        return result, store_error

    def resend(self, until: datetime) -> int:
        """Send again the dispatches of all active tasks that are due up to an instant. Return their number.

        For a queue that has lost its content, such as one in memory after a restart. It changes no task. A
        dispatch that the queue still has is not duplicated, since it has the same name. Attempts that ended
        with the process before come first, those of deliveries apart. Raises QueueUnavailable or
        StoreUnavailable in the middle.
        """
        if self._holder is None:
            count = 0
        else:
            count = self._resend_orphaned(self._holder)
        for page in iterate_pages(
            lambda token: self._engine.store.sweep.list_due(until, limit=PAGE_SIZE, page_token=token)
        ):
            for task in page.items:
                wakeups = [wake for wake in executor_wakeups(task) if wake.due_at <= until]
                count += self._engine.sender.send(task, wakeups, self._engine.clock.now())
                # Those are in no list of what runs.
                if task.delivery is not None and self._holder is not None:
                    count += self._send_orphaned(task, self._holder)
        return count

    def _resend_orphaned(self, holder: str) -> int:
        """Dispatch attempts that ended with the process before, however long their leases are.

        Return their number.
        """
        query = ExecutionQuery(owner=None)
        status = ExecutionStatus.RUNNING
        pages = iterate_pages(
            lambda token: self._engine.store.search.list_open(
                query,
                status,
                limit=PAGE_SIZE,
                page_token=token,
            )
        )
        return sum(self._send_orphaned(task, holder) for page in pages for task in page.items)

    def _send_orphaned(self, task: Task, holder: str) -> int:
        return self._engine.sender.send(
            task,
            list_orphaned_attempts(task, holder),
            self._engine.clock.now(),
            repair=1,
        )

    def _list_due(self, now: datetime, token: str | None) -> Page[Task]:
        """Return a page of overdue tasks.

        The first page begins where the previous sweep found the first one.
        """
        if token is not None:
            return self._engine.store.sweep.list_due(
                now - GRACE,
                shard=self._shard,
                limit=PAGE_SIZE,
                page_token=token,
            )
        is_full = self._full_at is None or not timedelta(0) <= now - self._full_at < FULL_SWEEP_INTERVAL
        if is_full or self._front is None:
            since = None
        else:
            since = self._front - COMMIT_MARGIN
        page = self._engine.store.sweep.list_due(now - GRACE, since=since, shard=self._shard, limit=PAGE_SIZE)
        if is_full:
            self._full_at = now
            self._front = None
            self._removes = True
        if not page.unreadable:  # the wake_at of an unreadable document is unknown
            first = page.items[0].wake_at if page.items else None
            self._front = first or now - GRACE
        return page

    def _repair(self, task: Task, now: datetime, result: Sweep) -> None:
        # guard: unfinished sweep
        if task.deleted_at is not None or (task.deferred and task.status is TaskStatus.CANCELLED):
            self._finish_cancel_or_delete(task, result)
            return
        if task.deferred and may_have_children(task):
            self._child_tasks.cancel_calls(task)
        if task.has_ended:
            if task.deferred:  # its end could not be dispatched: its parent still waits for the result
                self._child_tasks.notify_parent(task)
                result.undeferred += self._clear_deferred(task.id)
                return
            self._remove_all([task], 0, result)
            return
        if task.zone_plan is not None and can_replan(task) and replan_task(self._engine, task.id):
            result.replanned += 1
            return

        result.overdue_seconds = _measure_overdue(task, now)
        # guard: overdue wakeups
        for wake in (*executor_wakeups(task), *lease_expiries(task), *list_grant_expiries(task)):
            overdue = now - wake.due_at
            if overdue >= GRACE:
                # guard: repair name
                result.dispatched += self._engine.sender.send(
                    task,
                    [wake],
                    now,
                    repair=repair_number(overdue),
                )

        if task.deferred:
            result.dispatched += self._engine.sender.send(task, executor_wakeups(task), now)
            result.undeferred += self._clear_deferred(task.id)

    def _finish_cancel_or_delete(self, task: Task, result: Sweep) -> None:
        """Complete a deletion or a cancel, unless the task has changed since its page was read."""
        stored = self._engine.store.load(task.id)
        if stored is None or was_recreated(task, stored.task):
            return
        if stored.task.deleted_at is not None:
            result.purged += self._child_tasks.remove(stored.task)
        elif stored.task.deferred:
            result.undeferred += self._child_tasks.complete_cancel(stored.task) is not None

    def _remove(self, task_id: str, result: Sweep, marked: dict[str, VersionedTask]) -> None:
        """Remove or mark a task whose retention has passed.

        One that was retried or recreated meanwhile stays.
        """
        store = self._engine.store
        now = self._engine.clock.now()
        stored = store.recall(task_id) or store.load(task_id)  # it has just been listed
        if stored is None or not stored.task.waits_for_removal or self._keep_for_parent(stored.task):
            return
        if stored.task.wake_at is None or stored.task.wake_at > now:
            return
        if leaves_nothing(stored.task) and store.sweep.remove(stored):
            result.purged += 1
            return
        with suppress(VersionConflict):
            mark = Commit(delete(stored.task, now).task, stored)
            marked[task_id] = run_procedure(self._engine.committer.commit(mark))

    def _keep_for_parent(self, task: Task) -> bool:
        """Retain a call for longer if its parent may still read the result, also after a retry.

        Return whether it may.
        """
        if task.parent is None or task.delivery is not None or task.retention is None:
            return False
        parent = self._engine.store.load(task.parent.task_id)
        if parent is None:
            return False
        if parent.task.find_run(task.parent.execution_id) is None:
            record = self._engine.store.load_execution(task.parent.task_id, task.parent.execution_id)
            if record is None or record.status is ExecutionStatus.SUCCEEDED:
                return False
        stored = self._engine.store.load(task.id)
        if stored is not None:
            longer = min(task.retention * 2, MAX_RETENTION)
            self._engine.committer.try_to_change(stored, self._engine.clock.now(), retention=longer)
        return True

    def _clear_deferred(self, task_id: str) -> bool:
        """Clear the deferred mark of a task whose dispatches exist now.

        A concurrent change has sent them too.
        """
        stored = self._engine.store.load(task_id)
        if stored is None or not stored.task.deferred:
            return False
        return self._engine.committer.try_to_change(stored, self._engine.clock.now(), deferred=False) is not None
