"""Changes of a lock alone, without a task, and the dispatches to those who are granted it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.locks import grant_turns
from cloudsched.domain.transitions.planning import Dispatch
from cloudsched.engine.ports.store import NO_GRANTS, Grants
from cloudsched.engine.state.compare_and_set import compare_and_set
from cloudsched.engine.state.lock_reader import MAX_WAITS, LockReader, with_lock
from cloudsched.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.transitions.locks import Lock, Waiter
    from cloudsched.engine.dispatch.sender import DispatchSender
    from cloudsched.engine.ports.store import Store, VersionedLock


class LockUpdates:
    """Changes locks, and notifies the waiters that are granted one."""

    def __init__(self, store: Store, sender: DispatchSender) -> None:
        self._store = store
        self._reader = LockReader(store)
        self._sender = sender

    def update(
        self,
        key: str,
        load: Callable[[], VersionedLock],
        change: Callable[[Lock], tuple[Lock, tuple[Waiter, ...]]],
        now: datetime,
        should_abort: Callable[[], bool] = lambda: False,
        if_unchanged: Callable[[Lock], Grants] = lambda _: NO_GRANTS,
    ) -> None:
        """Load a lock, change it and commit that, again after each conflict; then notify the waiters that get it.

        Args:
            key: The lock's key.
            load: Reads the lock with the waiters that matter.
            change: Returns the changed lock, and the waiters that are granted it.
            now: The current time.
            should_abort: Whether to leave the lock as it is after all; asked after the lock was read.
            if_unchanged: Returns whom to notify if nothing changes.

        Raises:
            Contended: Others kept changing the lock.
            QueueUnavailable: The queue did not take a dispatch; the sweep notifies the remaining waiters.
        """

        def commit(stored: VersionedLock) -> Grants:
            lock, granted = change(stored.lock)
            if lock == stored.lock:
                return if_unchanged(lock)
            if should_abort():
                return NO_GRANTS
            changed = with_lock(stored, lock)
            self._store.commit_lock(changed)
            return Grants(lock.key, granted, changed.has_drained)

        self.notify(compare_and_set(f"lock {key}", load, commit), now)

    def notify(self, grants: Grants, now: datetime) -> None:
        """Send each waiter a dispatch that is due now, and find those that nobody saw begin to wait.

        Raises:
            QueueUnavailable: The queue did not take one; the sweep notifies the remaining waiters.
        """
        self.dispatch(grants.waiters, now, grants.key)
        if grants.has_drained:
            with suppress(StoreUnavailable):  # the sweep notifies them
                self._grant_to_late_waiters(grants.key, now)

    def _grant_to_late_waiters(self, key: str, now: datetime) -> None:
        """Grant turns to those that entered the wait list after it was read, and before it was said to be empty.

        Entering it leaves the lock's document as it is, so the commit that said so did not conflict with theirs. All
        of them were stored before that commit; whoever came later has seen it.
        """
        late = self._store.list_waiters(key, limit=MAX_WAITS)
        if late:
            limit = max(one.limit for one in late)
            self.update(
                key,
                lambda: self._reader.load(key, now, late_limit=limit),
                lambda lock: grant_turns(lock, limit, now),
                now,
            )

    def dispatch(self, waiters: Sequence[Waiter], now: datetime, lock_key: str = "") -> None:
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
                lock_key=lock_key,
                lock_turn=waiter.lock_turn,
            )
            self._sender.send_dispatch(dispatch, waiter.priority)
