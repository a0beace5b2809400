"""Cancel the waits of runs that will not come for a lock any more."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.lifecycle import was_recreated
from cloudsched.domain.transitions.locks import WaitFilter, cancel_waits, release, worker_group
from cloudsched.engine.ports.store import Grants
from cloudsched.engine.state.lock_reader import LockReader
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.locks import Lock, Waiter
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.state.lock_updates import LockUpdates


class LockWaits:
    """Cancels waits, and notifies those that are next."""

    def __init__(self, store: Store, updates: LockUpdates) -> None:
        self._store = store
        self._reader = LockReader(store)
        self._updates = updates

    def cancel(self, key: str, task_id: str, execution_id: str, now: datetime, *, revision: int | None = None) -> None:
        """Remove a run that will not ask any more from the lock, and notify the next waiters.

        A running attempt keeps the lock, in any process: the task is read after the lock, so a claim committed in
        between makes this commit conflict.

        If the run is gone already, a commit whose answer was lost may have removed it: then its grants are sent again.

        Args:
            key: The lock's key.
            task_id: The run's task.
            execution_id: The run's execution.
            now: The current time.
            revision: Remove only the wait of this revision. The task was changed since; if it still names the lock, its
                run asks for it again.
        """

        def is_running() -> bool:
            current = self._store.load(task_id)
            run = current and current.task.find_run(execution_id)
            return bool(run and run.lease and run.lock_key == key)

        if revision is not None:
            which = WaitFilter(task_id, execution_id, revision)
            self._updates.update(
                key, partial(self._reader.load, key, now, task_ids=[task_id]), _cancel(which, now), now
            )
            return
        self._updates.update(
            key,
            lambda: self._reader.load(key, now, task_ids=[task_id], leaving=(task_id, execution_id)),
            lambda lock: release(lock, task_id, execution_id, now),
            now,
            is_running,
            if_unchanged=_repeat_grants,
        )

    def cancel_task(self, task: Task, now: datetime) -> None:
        """Remove the waits of a deleted or edited task from its locks. One read for each of its lock keys.

        If the next waiter cannot be notified, the sweep does it. A new task that has taken the same id keeps its waits:
        the task is read after the lock, as in `cancel`.
        """

        def is_recreated() -> bool:
            stored = self._store.load(task.id)
            return stored is not None and was_recreated(task, stored.task)

        change = _cancel(WaitFilter(task.id), now)
        for key in {task.scoped_lock_key, *(run.lock_key for run in task.runs)} - {None}:
            with suppress(QueueUnavailable):
                self._updates.update(
                    key or "",
                    partial(self._reader.load, key or "", now, task_ids=[task.id]),
                    change,
                    now,
                    is_recreated,
                )

    def cancel_group(self, task: Task, now: datetime) -> None:
        """Send the waiters of this task's worker group back to their queue, as no worker claimed this task in time.

        Raises:
            QueueUnavailable: A dispatch could not be sent; the sweep sends it.
        """
        requeued: list[Waiter] = []
        group, lock_key = worker_group(task), task.scoped_lock_key

        def change(lock: Lock) -> tuple[Lock, tuple[Waiter, ...]]:
            remaining, granted, requeued[:] = cancel_waits(lock, WaitFilter(worker_group=group), now)
            return remaining, granted

        if lock_key is not None:
            self._updates.update(lock_key, partial(self._reader.load, lock_key, now, worker_group=group), change, now)
            self._updates.dispatch([one.with_next_turn(now) for one in requeued], now)


def _repeat_grants(lock: Lock) -> Grants:
    """Return what the commit that made the lock as it is may have left unsent; to send it twice changes nothing."""
    notified = tuple(one for one in lock.waiters if one.notified_at is not None)
    return Grants(lock.key, notified, has_drained=not lock.queued_limit)


def _cancel(which: WaitFilter, now: datetime) -> Callable[[Lock], tuple[Lock, tuple[Waiter, ...]]]:
    """Return the change that cancels waits: it returns the lock without them, and the waiters to notify."""
    return lambda lock: cancel_waits(lock, which, now)[:2]
