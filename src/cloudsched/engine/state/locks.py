"""How a run gets, keeps and frees the lock that its task names.

Whatever changes here is committed together with the task, in one piece, by whoever asked; only waiting and leaving
without a run are commits of the lock alone. A task without a lock key costs nothing here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloudsched.domain.transitions.lifecycle import was_recreated
from cloudsched.domain.transitions.locks import (
    Waiter,
    acquire,
    cancel_stale_wait,
    extend,
    is_held_by,
    is_waiting,
    release,
    remove_task,
    requeue_group,
    worker_group,
)
from cloudsched.domain.transitions.planning import Dispatch
from cloudsched.engine.ports.store import VersionedLock
from cloudsched.errors import QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.locks import Lock
    from cloudsched.engine.dispatch.sender import DispatchSender
    from cloudsched.engine.ports.store import Store


_FIRST_TURN = 1_000_000_000_000
"""What the dispatches that wake a worker's run are counted from: more than any clock shows in seconds, by which
those that wake an executor's are counted. So no two of them have one name."""

_MAX_CONFLICTS = 20
"""How often a lock that others keep changing is read and decided again; then the delivery or the sweep comes back."""


@dataclass(frozen=True, slots=True)
class Grants:
    """Those whose turn it is at a lock, to be woken."""

    key: str = ""
    waiters: tuple[Waiter, ...] = ()


@dataclass(frozen=True, slots=True)
class AcquireResult:
    """What a run hears that has asked for its lock."""

    lock: VersionedLock | None
    """To be committed with its task; None if there is nothing to commit."""
    is_acquired: bool
    is_waiting: bool
    """Whether it will be woken when it is free. If neither, the line is full, and it has to come again by itself."""
    grants: Grants
    """Whom to wake then: those who are ahead of it, if nobody else has."""


class Locks:
    """Takes and frees resource locks, and wakes those whose turn it is."""

    def __init__(self, store: Store, sender: DispatchSender) -> None:
        self._store = store
        self._sender = sender

    def acquire(self, task: Task, run: Run, dispatch: Dispatch, now: datetime) -> AcquireResult:
        """Ask for the lock for a run that an executor is to begin. That it has to wait is committed here.

        Raises:
            VersionConflict: Somebody changed the lock, or has begun the run; read again and ask again.
            QueueUnavailable: Those ahead of it could not be woken.
        """
        waiter = _make_waiter(task, run, dispatch)
        answer = self._try_acquire(self._store.load_lock(_require_lock_key(run)), run, waiter, now)
        if not answer.is_acquired:
            if answer.lock is not None:
                self._store.commit_lock(answer.lock)
            self.notify(answer.grants, now)
        return answer

    def acquire_for_worker(self, task: Task, run: Run, now: datetime) -> AcquireResult:
        """Ask for the lock for a run that a worker has claimed.

        Raises:
            VersionConflict: Somebody else has begun the run; read again and ask again.
        """
        return self._try_acquire(
            self._store.load_lock(_require_lock_key(run)), run, _make_worker_waiter(task, run), now
        )

    def enqueue_many(self, key: str, claimed: Sequence[tuple[Task, Run]], now: datetime) -> set[tuple[str, str]]:
        """Put runs that a worker would claim into the line at a lock that is taken: one read and one commit for all.

        Those for whom there is no room stay out of it. Return the tasks and executions of which it can be said that
        they have to wait; the others may have the lock by now.

        Raises:
            VersionConflict: Somebody changed the lock.
            QueueUnavailable: Those ahead of them could not be woken.
        """
        before = stored = self._store.load_lock(key)
        waiting, woken = set[tuple[str, str]](), list[Waiter]()
        for task, run in claimed:
            with suppress(VersionConflict):
                answer = self._try_acquire(stored, run, _make_worker_waiter(task, run), now)
                if not answer.is_acquired:
                    stored = answer.lock or stored
                    waiting.add((task.id, run.execution_id))
                    woken += answer.grants.waiters
        if stored is not before:
            self._store.commit_lock(stored)
        self.notify(Grants(key, tuple(woken)), now)
        return waiting

    def _try_acquire(self, stored: VersionedLock, run: Run, waiter: Waiter, now: datetime) -> AcquireResult:
        if run.lease is None:
            raise ValueError("only a claimed run enters a lock")
        if is_held_by(
            stored.lock, waiter.task_id, run.execution_id, now
        ):  # somebody else has begun it since it was read
            raise VersionConflict(f"execution {run.execution_id} of task {waiter.task_id}")
        lock, has_it, woken = acquire(stored.lock, waiter, run.lease.until, now, holder_execution_id=run.execution_id)
        changed = None if lock == stored.lock else VersionedLock(lock, stored.version)
        return AcquireResult(
            changed, has_it, is_waiting(lock, waiter.task_id, waiter.execution_id), Grants(stored.lock.key, woken)
        )

    def extend(self, task_id: str, run: Run, until: datetime) -> VersionedLock | None:
        """Return the lock with the run's claim prolonged, to be committed with its lease; None if it has none."""
        if run.lock_key is None:
            return None
        stored = self._store.load_lock(run.lock_key)
        return VersionedLock(extend(stored.lock, task_id, run.execution_id, until), stored.version)

    def release(self, task_id: str, run: Run, now: datetime) -> tuple[VersionedLock | None, Grants]:
        """Return the lock without the run, to be committed with its end, and those to `notify` after that."""
        if run.lock_key is None:
            return None, Grants()
        stored = self._store.load_lock(run.lock_key)
        lock, woken = release(stored.lock, task_id, run.execution_id, now)
        return VersionedLock(lock, stored.version), Grants(run.lock_key, woken)

    # ── Of runs that will not come ───────────────────────────────────────────────────────────────────────────────

    def cancel_wait(self, key: str, task_id: str, execution_id: str, now: datetime) -> None:
        """Take a run that will not come off the lock, and let the next one have its turn.

        A run that is under way stays, whoever runs it: the task is read after the lock, so that a claim which comes in
        between makes the commit conflict.
        """

        def is_at_work() -> bool:
            current = self._store.load(task_id)
            run = current and current.task.find_run(execution_id)
            return bool(run and run.lease and run.lock_key == key)

        self._update(key, lambda lock: release(lock, task_id, execution_id, now), now, is_at_work)

    def cancel_stale_wait(self, dispatch: Dispatch, now: datetime) -> None:
        """Take a run off the line whose task has changed since: it asks anew, if it still wants the lock."""
        identity = dispatch.task_id, dispatch.execution_id, dispatch.revision
        self._update(dispatch.lock_key, lambda lock: cancel_stale_wait(lock, *identity, now), now)

    def remove_task(self, task: Task, now: datetime) -> None:
        """Take all that a task waits for off its locks, since it is being removed. One read for each lock key of it.

        Where the next one cannot be woken, the sweep does it. What has its id by now keeps its place: the task is read
        after the lock, as in `cancel_wait`.
        """

        def is_made_again() -> bool:
            stored = self._store.load(task.id)
            return stored is not None and was_recreated(task, stored.task)

        for key in {task.lock_key, *(run.lock_key for run in task.runs)} - {None}:
            with suppress(QueueUnavailable):
                self._update(key or "", lambda lock: remove_task(lock, task.id, now), now, is_made_again)

    def requeue_worker_group(self, task: Task, now: datetime) -> None:
        """Take those off the line for whom no worker comes, as none has for this task; they are offered instead.

        Raises:
            QueueUnavailable: Somebody could not be woken, or not be sent back; the sweep sees to it.
        """
        sent_back: list[Waiter] = []

        def change(lock: Lock) -> tuple[Lock, tuple[Waiter, ...]]:
            rest, woken, sent_back[:] = requeue_group(lock, worker_group(task), now)
            return rest, woken

        if task.lock_key is not None:
            self._update(task.lock_key, change, now)
            self._dispatch(sent_back, now)

    def _update(
        self,
        key: str,
        change: Callable[[Lock], tuple[Lock, tuple[Waiter, ...]]],
        now: datetime,
        should_abort: Callable[[], bool] = lambda: False,
    ) -> None:
        for _ in range(_MAX_CONFLICTS):
            stored = self._store.load_lock(key)
            lock, woken = change(stored.lock)
            if lock == stored.lock or should_abort():
                return
            try:
                self._store.commit_lock(VersionedLock(lock, stored.version))
            except VersionConflict:
                continue
            self.notify(Grants(key, woken), now)
            return
        raise StoreUnavailable("The store", f"lock {key} changed {_MAX_CONFLICTS} times")

    # ── Waking ───────────────────────────────────────────────────────────────────────────────────────────────────

    def notify(self, grants: Grants, now: datetime) -> None:
        """Send each of them a dispatch for now.

        Raises:
            QueueUnavailable: The queue did not take one; the sweep wakes those that are left.
        """
        self._dispatch(grants.waiters, now, grants.key)

    def _dispatch(self, waiters: Sequence[Waiter], now: datetime, lock_key: str = "") -> None:
        for waiter in waiters:
            dispatch = Dispatch(
                task_id=waiter.task_id,
                revision=waiter.revision,
                execution_id=waiter.execution_id,
                scheduled_for=waiter.scheduled_for,
                attempt=waiter.attempt,
                due_at=waiter.due_at,
                at=now,
                hop=max(waiter.hop + 1, int(now.timestamp())),
                suspension_count=waiter.suspension_count,
                lock_key=lock_key,
            )
            self._sender.send_dispatch(dispatch, waiter.priority)


def _require_lock_key(run: Run) -> str:
    if run.lock_key is None:
        raise ValueError("only a run of a task with a lock key enters a lock")
    return run.lock_key


def _make_worker_waiter(task: Task, run: Run) -> Waiter:
    return Waiter(
        execution_id=run.execution_id,
        scheduled_for=run.scheduled_for,
        due_at=run.due_at,
        attempt=run.attempt,
        hop=_FIRST_TURN + run.lock_waits,
        suspension_count=run.suspension_count,
        **_waiter_task_fields(task),
    )


def _make_waiter(task: Task, run: Run, dispatch: Dispatch) -> Waiter:
    """Return the place of what was dispatched, whichever occurrence of a backlog is to run in its stead."""
    return Waiter(
        execution_id=dispatch.execution_id,
        scheduled_for=dispatch.scheduled_for,
        due_at=run.due_at,
        attempt=dispatch.attempt,
        hop=dispatch.hop,
        suspension_count=dispatch.suspension_count,
        **_waiter_task_fields(task),
    )


def _waiter_task_fields(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.id,
        "revision": task.revision,
        "limit": task.lock_limit,
        "priority": task.priority,
        "worker_group": worker_group(task),
    }
