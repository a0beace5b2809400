"""How a run gets, keeps and frees the lock that its task names.

Whatever changes here is committed together with the task, in one piece, by whoever asked; only waiting and leaving
without a run are commits of the lock alone. A task without a lock key costs nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.locking import Waiter, entered, is_held_by, left, renewed
from cloudsched.domain.planning import Dispatch
from cloudsched.engine.ports import StoredLock
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.execution import Run
    from cloudsched.domain.task import Task
    from cloudsched.engine.ports import Store
    from cloudsched.engine.sending import Sender


class Locks:
    """Takes and frees resource locks, and wakes those whose turn it is."""

    def __init__(self, store: Store, sender: Sender) -> None:
        self._store = store
        self._sender = sender

    def enter(self, task: Task, run: Run, dispatch: Dispatch, now: datetime) -> StoredLock | None:
        """Return the lock with the run as a holder, to be committed with its claim; None if it has to wait.

        Waiting is committed here: the run will be woken.

        Raises:
            VersionConflict: Somebody changed the lock, or has begun the run; read again and ask again.
            QueueUnavailable: Those ahead of it could not be woken.
        """
        if run.lock_key is None or run.lease is None:
            raise ValueError("only a claimed run of a task with a lock key enters a lock")
        waiter = Waiter(
            task_id=task.id,
            execution_id=run.execution_id,
            revision=task.revision,
            scheduled_for=run.scheduled_for,
            attempt=dispatch.attempt,
            due_at=run.due_at,
            hop=dispatch.hop,
            resumption=dispatch.resumption,
            limit=task.lock_limit,
            priority=task.priority,
        )
        stored = self._store.load_lock(run.lock_key)
        if is_held_by(stored.lock, task.id, run.execution_id, now):  # somebody else has begun it since it was read
            raise VersionConflict(f"execution {run.execution_id} of task {task.id}")
        lock, has_it, woken = entered(stored.lock, waiter, run.lease.until, now)
        changed = StoredLock(lock, stored.version)
        if has_it:
            return changed
        self._store.commit_lock(changed)
        self.wake(woken, now)
        return None

    def renew(self, task_id: str, run: Run, until: datetime) -> StoredLock | None:
        """Return the lock with the run's claim prolonged, to be committed with its lease; None if it has none."""
        if run.lock_key is None:
            return None
        stored = self._store.load_lock(run.lock_key)
        return StoredLock(renewed(stored.lock, task_id, run.execution_id, until), stored.version)

    def leave(self, task_id: str, run: Run, now: datetime) -> tuple[StoredLock | None, tuple[Waiter, ...]]:
        """Return the lock without the run, to be committed with its end, and those to `wake` after that."""
        if run.lock_key is None:
            return None, ()
        stored = self._store.load_lock(run.lock_key)
        lock, woken = left(stored.lock, task_id, run.execution_id, now)
        return StoredLock(lock, stored.version), woken

    def withdraw(self, key: str, task_id: str, execution_id: str, now: datetime) -> None:
        """Take a run that will not come off the lock, and let the next one have its turn.

        A run that is under way stays, whoever runs it: the task is read after the lock, so that a claim which comes in
        between makes the commit conflict.
        """
        while True:
            stored = self._store.load_lock(key)
            lock, woken = left(stored.lock, task_id, execution_id, now)
            if lock == stored.lock:
                return
            current = self._store.load(task_id)
            run = current and current.task.run(execution_id)
            if run and run.lease:
                return
            try:
                self._store.commit_lock(StoredLock(lock, stored.version))
            except VersionConflict:
                continue
            self.wake(woken, now)
            return

    def wake(self, waiters: Iterable[Waiter], now: datetime) -> None:
        """Send each of them a dispatch for now.

        Raises:
            QueueUnavailable: The queue did not take one; the sweep wakes those that are left.
        """
        for waiter in waiters:
            dispatch = Dispatch(
                task_id=waiter.task_id,
                revision=waiter.revision,
                execution_id=waiter.execution_id,
                scheduled_for=waiter.scheduled_for,
                attempt=waiter.attempt,
                due_at=waiter.due_at,
                at=now,
                hop=waiter.hop + 1,
                resumption=waiter.resumption,
            )
            self._sender.send_dispatch(dispatch, waiter.priority)
