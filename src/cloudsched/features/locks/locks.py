"""Acquire, extend and release the lock that a task names.

The caller commits the changed lock atomically with its task. Only waiting, and removing a wait whose run
will not come, are commits of the lock alone. A task without a lock key costs no read and no write here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.task import MAX_OPEN_RUNS, Task
from cloudsched.domain.transitions.lifecycle import was_recreated
from cloudsched.domain.transitions.wakeups import Dispatch
from cloudsched.engine.state.commits import compare_and_set
from cloudsched.errors import QueueUnavailable, StoreUnavailable, VersionConflict
from cloudsched.features.locks.lock import (
    MAX_REQUEUED,
    NO_GRANTS,
    Grants,
    Lock,
    VersionedLock,
    Waiter,
    WaitFilter,
    acquire,
    cancel_waits,
    extend,
    free_places,
    grant_places,
    is_held_by,
    is_waiting,
    release,
    with_queued_limit,
    worker_group,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.signed_dispatches import DispatchSender

MAX_WAITS = 2 * MAX_OPEN_RUNS
"""The most waits of one task that are read at once: one for each open run, and some of an older revision."""


@dataclass(frozen=True, slots=True)
class AcquireResult:
    """The result of asking for a lock."""

    lock: VersionedLock | None
    """The lock to commit with the task, or None if it did not change."""
    is_acquired: bool
    """If not, it is in the wait list, and will be notified when there is a place."""
    grants: Grants
    """The waiters to notify after that: those ahead of it that nobody has notified yet."""


class Locks:
    """Acquires, extends and releases locks, cancels waits, and notifies the waiters that are granted one.

    A `VersionConflict` means that another process changed the lock or started the run: read the task
    again and retry. `QueueUnavailable` means that waiters could not be notified: the sweep does that.
    """

    def __init__(self, store: Store, sender: DispatchSender) -> None:
        self._store = store
        self._sender = sender

    def acquire(self, key: str, task: Task, run: Run, dispatch: Dispatch, now: datetime) -> AcquireResult:
        """Ask for the lock of a key for a run that an executor is about to start.

        If it must wait, this commits the wait.
        """
        waiter = _make_waiter(task, run, dispatch)
        result = self._try_acquire(self._read(key, now, asking=[waiter]), run, waiter, now)
        if not result.is_acquired:
            if result.lock is not None:
                self._store.locks.commit(result.lock)
            self.notify(result.grants, now)
        return result

    def acquire_for_worker(self, key: str, task: Task, run: Run, now: datetime) -> AcquireResult:
        """Ask for the lock for a run that a worker has claimed."""
        waiter = _make_waiter(task, run, run)
        return self._try_acquire(self._read(key, now, asking=[waiter]), run, waiter, now)

    def wait_if_taken(self, task: Task, run: Run, now: datetime) -> bool:
        """Let a run for workers keep waiting, if it could not get its task's lock now.

        Return whether it waits.

        Its place in the wait list stays, or is restored if it was lost.
        """
        key = task.scoped_lock_key
        if key is None:
            return False
        waiter = _make_waiter(task, run, run)
        stored = self._read(key, now, asking=[waiter])
        lock, is_free, granted = acquire(stored.lock, waiter, now, now)
        if is_free:
            return False
        if lock != stored.lock:
            self._store.locks.commit(_with_lock(stored, lock, may_drain=False))
        self.notify(Grants(key, granted), now)
        return True

    def enqueue_many(
        self,
        key: str,
        claimed: Sequence[tuple[Task, Run]],
        now: datetime,
    ) -> set[tuple[str, str]]:
        """Add runs that a worker would claim to the wait list of a taken lock, with one read and one commit.

        Return the (task id, execution id) of those that could not get the lock. The others may get it if
        they ask.
        """
        waiters = [_make_waiter(task, run, run) for task, run in claimed]
        before = stored = self._read(key, now, asking=waiters)
        waiting = set[tuple[str, str]]()
        granted = list[Waiter]()
        for waiter, (task, run) in zip(waiters, claimed, strict=True):
            with suppress(VersionConflict):
                result = self._try_acquire(stored, run, waiter, now)
                if not result.is_acquired:
                    stored = result.lock or stored
                    waiting.add((task.id, run.execution_id))
                    granted += result.grants.waiters
        if stored is not before:
            self._store.locks.commit(stored)
        self.notify(Grants(key, tuple(granted)), now)
        return waiting

    def _try_acquire(self, stored: VersionedLock, run: Run, waiter: Waiter, now: datetime) -> AcquireResult:
        if run.lease is None:
            raise ValueError("only a claimed run may acquire a lock")
        # Another process has started the run since its task was read.
        if is_held_by(stored.lock, waiter.task_id, run.execution_id, now):
            raise VersionConflict(f"execution {run.execution_id} of task {waiter.task_id}")
        lock, is_acquired, granted = acquire(
            stored.lock, waiter, run.lease.until, now, holder_execution_id=run.execution_id
        )
        # Only those who call `notify` after the commit may say that nobody waits.
        changed = None if lock == stored.lock else _with_lock(stored, lock, may_drain=False)
        return AcquireResult(changed, is_acquired, Grants(stored.lock.key, granted))

    def extend(self, key: str, task_id: str, run: Run, until: datetime) -> VersionedLock:
        """Return the lock with the run's hold extended, to commit with its lease."""
        stored = self._store.locks.load(key)
        return VersionedLock(extend(stored.lock, task_id, run.execution_id, until), stored.version)

    def release(self, key: str, task_id: str, run: Run, now: datetime) -> tuple[VersionedLock, Grants | None]:
        """Return the lock without the run, to commit with the run's end, and what to `notify` of after that."""
        stored = self._read(key, now, leaving=(task_id, run.execution_id))
        lock, granted = release(stored.lock, task_id, run.execution_id, now)
        changed = _with_lock(stored, lock)
        has_drained = changed.has_drained
        return changed, Grants(key, granted, has_drained) if granted or has_drained else None

    def _update(
        self,
        key: str,
        change: Callable[[Lock], tuple[Lock, tuple[Waiter, ...]]],
        now: datetime,
        should_abort: Callable[[], bool] = lambda: False,
        if_unchanged: Callable[[Lock], Grants] = lambda _: NO_GRANTS,
        **which: Any,
    ) -> None:
        """Read a lock, change it and commit that, again after each conflict.

        Then notify the waiters that get it.

        `should_abort` is called after the lock was read. `if_unchanged` returns whom to notify if nothing
        changes.
        """

        def commit(stored: VersionedLock) -> Grants:
            lock, granted = change(stored.lock)
            if lock == stored.lock:
                return if_unchanged(lock)
            if should_abort():
                return NO_GRANTS
            changed = _with_lock(stored, lock)
            self._store.locks.commit(changed)
            return Grants(lock.key, granted, changed.has_drained)

        self.notify(compare_and_set(f"lock {key}", lambda: self._read(key, now, **which), commit), now)

    def notify(self, grants: Grants, now: datetime) -> None:
        """Send each waiter a dispatch that is due now, and find those that began to wait unnoticed."""
        self._dispatch(grants.waiters, now, grants.key)
        if grants.has_drained:
            with suppress(StoreUnavailable):  # the sweep notifies them
                self._grant_to_late_waiters(grants.key, now)

    def _grant_to_late_waiters(self, key: str, now: datetime) -> None:
        """Grant places to those that entered the wait list after it was read and before it was marked as empty.

        Entering it leaves the lock's document as it is, so the commit with the mark did not conflict with
        theirs. All of them were stored before that commit: whoever came later has seen it.
        """
        late = self._store.locks.list_waiters(key, limit=MAX_WAITS)
        if late:
            limit = max(one.limit for one in late)
            self._update(key, lambda lock: grant_places(lock, limit, now), now, late_limit=limit)

    def _dispatch(self, waiters: Sequence[Waiter], now: datetime, lock_key: str = "") -> None:
        """Send each waiter a dispatch that is due now. Raises QueueUnavailable."""
        for waiter in waiters:
            dispatch = Dispatch(
                task_id=waiter.task_id,
                revision=waiter.revision,
                execution_id=waiter.execution_id,
                scheduled_for=waiter.scheduled_for,
                attempt=waiter.attempt,
                due_at=waiter.due_at,
                at=now,
                suspension_count=waiter.suspension_count,
                turn_key=lock_key,
                turn=waiter.turn,
            )
            self._sender.send_dispatch(dispatch, waiter.priority)

    def cancel(
        self,
        key: str,
        task_id: str,
        execution_id: str,
        now: datetime,
        *,
        revision: int | None = None,
    ) -> None:
        """Remove a run that will not ask any more from the lock, and notify the next waiters.

        A running attempt keeps the lock, in any process: the task is read after the lock, so a claim
        committed in between makes this commit conflict.

        If the run is gone already, a commit whose answer was lost may have removed it: then its grants
        are sent again. With `revision` only the wait of this revision is removed: the task was changed
        since, and if it still names the lock, its run asks for it again.
        """

        def is_running() -> bool:
            current = self._store.load(task_id)
            run = current and current.task.find_run(execution_id)
            return bool(run and run.lease and run.lock_key == key)

        if revision is not None:
            which = WaitFilter(task_id, execution_id, revision)
            self._update(key, _cancel(which, now), now, task_ids=[task_id])
            return
        self._update(
            key,
            lambda lock: release(lock, task_id, execution_id, now),
            now,
            is_running,
            _repeat_grants,
            task_ids=[task_id],
            leaving=(task_id, execution_id),
        )

    def cancel_task(self, task: Task, now: datetime) -> None:
        """Remove the waits of a deleted or edited task from its locks. One read for each of its lock keys.

        If the next waiter cannot be notified, the sweep does it. A new task that has taken the same id
        keeps its waits: the task is read after the lock, as in `cancel`.
        """

        def is_recreated() -> bool:
            stored = self._store.load(task.id)
            return stored is not None and was_recreated(task, stored.task)

        change = _cancel(WaitFilter(task.id), now)
        for key in {task.scoped_lock_key, *(run.lock_key for run in task.runs)} - {None}:
            with suppress(QueueUnavailable):
                self._update(key or "", change, now, is_recreated, task_ids=[task.id])

    def cancel_group(self, task: Task, now: datetime) -> None:
        """Send the waiters of this task's worker group back to their queue, as no worker claimed this task in time."""
        requeued: list[Waiter] = []
        group = worker_group(task)
        lock_key = task.scoped_lock_key

        def change(lock: Lock) -> tuple[Lock, tuple[Waiter, ...]]:
            remaining, granted, requeued[:] = cancel_waits(lock, WaitFilter(worker_group=group), now)
            return remaining, granted

        if lock_key is not None:
            self._update(lock_key, change, now, worker_group=group)
            self._dispatch([one.with_next_grant(now) for one in requeued], now)

    def _read(
        self,
        key: str,
        now: datetime,
        *,
        asking: Sequence[Waiter] = (),
        leaving: tuple[str, str] | None = None,
        task_ids: Sequence[str] = (),
        worker_group: str = "",
        late_limit: int = 0,
    ) -> VersionedLock:
        """Read a lock with those of its waiters that matter: one document if nobody waits.

        `late_limit` is the greatest limit of those that wait although the document says that nobody does.
        """
        stored: VersionedLock = self._store.locks.load(key)
        document = stored.lock
        if not (document.queued_limit or late_limit):
            return replace(stored, document=document)
        found = list[Waiter]()
        is_whole = False
        if task_ids:
            found += self._store.locks.list_waiters(key, limit=MAX_WAITS * len(task_ids), task_ids=task_ids)
        if worker_group:
            found += self._store.locks.list_waiters(key, limit=MAX_REQUEUED, worker_group=worker_group)
        limit = max((one.limit for one in asking), default=late_limit)
        if places := free_places(document, limit, now, leaving, has_late=late_limit > 0):
            wanted = places + len(found)  # those that are found may be the first ones, and are about to leave
            head = self._store.locks.list_waiters(key, limit=wanted)
            found = [*found, *head]
            is_whole = len(head) < wanted
        unknown = [one.task_id for one in asking if not is_waiting(document, one.task_id, one.execution_id)]
        if unknown and not is_whole:
            found += self._store.locks.list_waiters(key, limit=MAX_WAITS * len(unknown), task_ids=unknown)
        entries = {one.entry_id: one for one in found}
        waiters = sorted((*document.waiters, *entries.values()), key=lambda one: one.order)
        view = document.model_copy(update={"waiters": tuple(waiters)})
        return VersionedLock(view, stored.version, tuple(entries.values()), document, is_whole)


def _with_lock(stored: VersionedLock, lock: Lock, *, may_drain: bool = True) -> VersionedLock:
    return replace(stored, lock=with_queued_limit(lock, is_whole=stored.is_whole and may_drain))


def _repeat_grants(lock: Lock) -> Grants:
    """Return the grants that the lock's last commit may have left unsent.

    To send them twice changes nothing.
    """
    notified = tuple(one for one in lock.waiters if one.notified_at is not None)
    return Grants(lock.key, notified, has_drained=not lock.queued_limit)


def _cancel(which: WaitFilter, now: datetime) -> Callable[[Lock], tuple[Lock, tuple[Waiter, ...]]]:
    return lambda lock: cancel_waits(lock, which, now)[:2]


def _make_waiter(task: Task, run: Run, asking: Run | Dispatch) -> Waiter:
    """Return a waiter for the dispatched execution, even if another occurrence of the backlog is to run instead."""
    return Waiter.build(
        task_id=task.id,
        revision=task.revision,
        limit=task.lock_limit,
        priority=task.priority,
        worker_group=worker_group(task),
        execution_id=asking.execution_id,
        scheduled_for=asking.scheduled_for,
        due_at=run.due_at,
        attempt=asking.attempt,
        turn=asking.turn,
        suspension_count=asking.suspension_count,
    )
