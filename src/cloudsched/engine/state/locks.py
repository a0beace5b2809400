"""How a run gets, keeps and frees the lock that its task names.

Whatever changes here is committed together with the task, in one piece, by whoever asked; only waiting and leaving
without a run are commits of the lock alone. A task without a lock key costs nothing here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloudsched.domain.transitions.lifecycle import lives_again
from cloudsched.domain.transitions.locks import (
    Waiter,
    crew_of,
    entered,
    forgotten,
    given_up,
    is_held_by,
    is_in_line,
    left,
    passed,
    renewed,
)
from cloudsched.domain.transitions.planning import Dispatch
from cloudsched.engine.ports.store import StoredLock
from cloudsched.errors import QueueUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.locks import Lock
    from cloudsched.engine.dispatch.sender import Sender
    from cloudsched.engine.ports.store import Store


_FIRST_TURN = 1_000_000_000_000
"""What the dispatches that wake a worker's run are counted from: more than any clock shows in seconds, by which
those that wake an executor's are counted. So no two of them have one name."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Those whose turn it is at a lock, to be woken."""

    key: str = ""
    waiters: tuple[Waiter, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run hears that has asked for its lock."""

    lock: StoredLock | None
    """To be committed with its task; None if there is nothing to commit."""
    has_it: bool
    is_in_line: bool
    """Whether it will be woken when it is free. If neither, the line is full, and it has to come again by itself."""
    turns: Turns
    """Whom to wake then: those who are ahead of it, if nobody else has."""


class Locks:
    """Takes and frees resource locks, and wakes those whose turn it is."""

    def __init__(self, store: Store, sender: Sender) -> None:
        self._store = store
        self._sender = sender

    def enter(self, task: Task, run: Run, dispatch: Dispatch, now: datetime) -> Answer:
        """Ask for the lock for a run that an executor is to begin. That it has to wait is committed here.

        Raises:
            VersionConflict: Somebody changed the lock, or has begun the run; read again and ask again.
            QueueUnavailable: Those ahead of it could not be woken.
        """
        waiter = _waiter(task, run, dispatch)
        answer = self._entered(self._store.load_lock(_key(run)), run, waiter, now)
        if not answer.has_it:
            if answer.lock is not None:
                self._store.commit_lock(answer.lock)
            self.wake(answer.turns, now)
        return answer

    def asked(self, task: Task, run: Run, now: datetime) -> Answer:
        """Ask for the lock for a run that a worker has claimed.

        Raises:
            VersionConflict: Somebody else has begun the run; read again and ask again.
        """
        return self._entered(self._store.load_lock(_key(run)), run, _waiter_for_worker(task, run), now)

    def line_up(self, key: str, claimed: Sequence[tuple[Task, Run]], now: datetime) -> set[tuple[str, str]]:
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
                answer = self._entered(stored, run, _waiter_for_worker(task, run), now)
                if not answer.has_it:
                    stored = answer.lock or stored
                    waiting.add((task.id, run.execution_id))
                    woken += answer.turns.waiters
        if stored is not before:
            self._store.commit_lock(stored)
        self.wake(Turns(key, tuple(woken)), now)
        return waiting

    def _entered(self, stored: StoredLock, run: Run, waiter: Waiter, now: datetime) -> Answer:
        if run.lease is None:
            raise ValueError("only a claimed run enters a lock")
        if is_held_by(
            stored.lock, waiter.task_id, run.execution_id, now
        ):  # somebody else has begun it since it was read
            raise VersionConflict(f"execution {run.execution_id} of task {waiter.task_id}")
        lock, has_it, woken = entered(stored.lock, waiter, run.lease.until, now, stead=run.execution_id)
        changed = None if lock == stored.lock else StoredLock(lock, stored.version)
        return Answer(
            changed, has_it, is_in_line(lock, waiter.task_id, waiter.execution_id), Turns(stored.lock.key, woken)
        )

    def renew(self, task_id: str, run: Run, until: datetime) -> StoredLock | None:
        """Return the lock with the run's claim prolonged, to be committed with its lease; None if it has none."""
        if run.lock_key is None:
            return None
        stored = self._store.load_lock(run.lock_key)
        return StoredLock(renewed(stored.lock, task_id, run.execution_id, until), stored.version)

    def leave(self, task_id: str, run: Run, now: datetime) -> tuple[StoredLock | None, Turns]:
        """Return the lock without the run, to be committed with its end, and those to `wake` after that."""
        if run.lock_key is None:
            return None, Turns()
        stored = self._store.load_lock(run.lock_key)
        lock, woken = left(stored.lock, task_id, run.execution_id, now)
        return StoredLock(lock, stored.version), Turns(run.lock_key, woken)

    # ── Of runs that will not come ───────────────────────────────────────────────────────────────────────────────

    def withdraw(self, key: str, task_id: str, execution_id: str, now: datetime) -> None:
        """Take a run that will not come off the lock, and let the next one have its turn.

        A run that is under way stays, whoever runs it: the task is read after the lock, so that a claim which comes in
        between makes the commit conflict.
        """

        def is_at_work() -> bool:
            current = self._store.load(task_id)
            run = current and current.task.run(execution_id)
            return bool(run and run.lease and run.lock_key == key)

        self._changed(key, lambda lock: left(lock, task_id, execution_id, now), now, is_at_work)

    def give_up(self, dispatch: Dispatch, now: datetime) -> None:
        """Take a run off the line whose task has changed since: it asks anew, if it still wants the lock."""
        identity = dispatch.task_id, dispatch.execution_id, dispatch.revision
        self._changed(dispatch.lock_key, lambda lock: given_up(lock, *identity, now), now)

    def forget(self, task: Task, now: datetime) -> None:
        """Take all that a task waits for off its locks, since it is being removed. One read for each lock key of it.

        Where the next one cannot be woken, the sweep does it. What has its id by now keeps its place: the task is read
        after the lock, as in `withdraw`.
        """

        def is_made_again() -> bool:
            stored = self._store.load(task.id)
            return stored is not None and lives_again(task, stored.task)

        for key in {task.lock_key, *(run.lock_key for run in task.runs)} - {None}:
            with suppress(QueueUnavailable):
                self._changed(key or "", lambda lock: forgotten(lock, task.id, now), now, is_made_again)

    def pass_by(self, task: Task, now: datetime) -> None:
        """Take those off the line for whom no worker comes, as none has for this task; they are offered instead.

        Raises:
            QueueUnavailable: Somebody could not be woken, or not be sent back; the sweep sees to it.
        """
        sent_back: list[Waiter] = []

        def change(lock: Lock) -> tuple[Lock, tuple[Waiter, ...]]:
            rest, woken, sent_back[:] = passed(lock, crew_of(task), now)
            return rest, woken

        if task.lock_key is not None:
            self._changed(task.lock_key, change, now)
            self._send(sent_back, now)

    def _changed(
        self,
        key: str,
        change: Callable[[Lock], tuple[Lock, tuple[Waiter, ...]]],
        now: datetime,
        is_prevented: Callable[[], bool] = lambda: False,
    ) -> None:
        while True:
            stored = self._store.load_lock(key)
            lock, woken = change(stored.lock)
            if lock == stored.lock or is_prevented():
                return
            try:
                self._store.commit_lock(StoredLock(lock, stored.version))
            except VersionConflict:
                continue
            self.wake(Turns(key, woken), now)
            return

    # ── Waking ───────────────────────────────────────────────────────────────────────────────────────────────────

    def wake(self, turns: Turns, now: datetime) -> None:
        """Send each of them a dispatch for now.

        Raises:
            QueueUnavailable: The queue did not take one; the sweep wakes those that are left.
        """
        self._send(turns.waiters, now, turns.key)

    def _send(self, waiters: Sequence[Waiter], now: datetime, lock_key: str = "") -> None:
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
                resumption=waiter.resumption,
                lock_key=lock_key,
            )
            self._sender.send_dispatch(dispatch, waiter.priority)


def _key(run: Run) -> str:
    if run.lock_key is None:
        raise ValueError("only a run of a task with a lock key enters a lock")
    return run.lock_key


def _waiter_for_worker(task: Task, run: Run) -> Waiter:
    return Waiter(
        execution_id=run.execution_id,
        scheduled_for=run.scheduled_for,
        due_at=run.due_at,
        attempt=run.attempt,
        hop=_FIRST_TURN + run.turns,
        resumption=run.resumption,
        **_of(task),
    )


def _waiter(task: Task, run: Run, dispatch: Dispatch) -> Waiter:
    """Return the place of what was dispatched, whichever occurrence of a backlog is to run in its stead."""
    return Waiter(
        execution_id=dispatch.execution_id,
        scheduled_for=dispatch.scheduled_for,
        due_at=run.due_at,
        attempt=dispatch.attempt,
        hop=dispatch.hop,
        resumption=dispatch.resumption,
        **_of(task),
    )


def _of(task: Task) -> dict[str, Any]:
    return {
        "task_id": task.id,
        "revision": task.revision,
        "limit": task.lock_limit,
        "priority": task.priority,
        "crew": crew_of(task),
    }
