"""A run under a lease: renewing it, ending it, and freeing what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.finishing import extended, on_outcome
from cloudsched.domain.lifecycle import ENDED
from cloudsched.domain.locking import is_held_by
from cloudsched.domain.suspending import event_taken, recorded
from cloudsched.engine.calling import announce_failure
from cloudsched.engine.context import LeaseState
from cloudsched.errors import StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from cloudsched.domain.execution import ProgressStep, Run
    from cloudsched.domain.finishing import Report
    from cloudsched.domain.journal import JournalEntry
    from cloudsched.domain.lifecycle import Step
    from cloudsched.domain.locking import Waiter
    from cloudsched.domain.task import Task
    from cloudsched.engine.committing import Committer
    from cloudsched.engine.locks import Locks
    from cloudsched.engine.ports import Clock, Store, Stored, StoredLock
    from cloudsched.engine.registry import Registry

MAX_CONFLICTS = 20
"""How often a decision is made anew because somebody else was quicker, before the queue is asked to come again."""


class Held:
    """A run that this executor has claimed: the task's last known state, which all its changes are committed on."""

    def __init__(
        self,
        *,
        store: Store,
        committer: Committer,
        clock: Clock,
        registry: Registry,
        locks: Locks,
        claimed: Stored,
        run: Run,
    ) -> None:
        if run.lease is None:
            raise ValueError("a claimed run has a lease")
        self._store = store
        self._committer = committer
        self._clock = clock
        self._registry = registry
        self._locks = locks
        self._stored = claimed
        self._run = run
        self._lease_token = run.lease.token
        self.woken: tuple[Waiter, ...] = ()
        """Those whose turn it is at its lock, once it has ended."""

    @property
    def task(self) -> Task:
        """The task as it was last read or written."""
        return self._stored.task

    def renew(self, progress: Sequence[ProgressStep]) -> LeaseState:
        """Extend the lease and its lock, and keep the progress; say if it is lost or the task no longer wants it."""
        identity = self._run.execution_id

        def decide(task: Task) -> tuple[Step, StoredLock | None] | None:
            step = extended(task, identity, self._lease_token, progress, self._clock.now())
            run = None if step is None else step.task.run(identity)
            if step is None or run is None:
                return None
            lock = self._locks.renew(task.id, run, run.wakes_at)
            if lock is not None and not is_held_by(lock.lock, task.id, identity, self._clock.now()):
                return None  # it was another's by the time that it was read
            return step, lock

        task = self._commit(decide)
        run = None if task is None else task.run(identity)
        if task is None or run is None:
            return LeaseState(None, is_cancelled=True)
        return LeaseState(run.wakes_at, is_cancelled=task.deleted_at is not None or task.status in ENDED)

    def record(self, entries: Sequence[JournalEntry], calls_made: int, event: str | None = None) -> Task | None:
        """Keep what a durable handler did, and take an event of that name off the task; this renews the lease.

        Returns:
            The task as it is then, or None if the lease is no longer held.

        Raises:
            LookupError: There is no such event any more. Nothing was kept.
        """
        identity = self._run.execution_id

        def decide(task: Task) -> tuple[Step, StoredLock | None] | None:
            now = self._clock.now()
            step = recorded(task, identity, self._lease_token, entries, calls_made, now)
            run = None if step is None else step.task.run(identity)
            if step is None or run is None:
                return None
            if event is not None:
                step = event_taken(step, event, now)
            lock = self._locks.renew(task.id, run, run.wakes_at)
            if lock is not None and not is_held_by(lock.lock, task.id, identity, now):
                return None  # as in `renew`
            return step, lock

        return self._commit(decide)

    def finish(self, report: Report, random: Random, journal: Sequence[JournalEntry] | None = None) -> Task | None:
        """Commit how the attempt ended; return the task as it is then, or None if the lease is no longer held.

        `journal` is the whole journal of the run, if that was read.
        """
        known = None if journal is None else {self._run.execution_id: journal}

        def decide(task: Task) -> tuple[Step, StoredLock | None] | None:
            step = on_outcome(task, self._run.execution_id, self._lease_token, report, self._clock.now(), random)
            if step is None:
                return None
            announce_failure(self._registry, step.task, step.executions)
            lock, self.woken = self._locks.leave(task.id, self._run, self._clock.now())
            return step, lock

        return self._commit(decide, known)

    def _commit(
        self,
        decide: Callable[[Task], tuple[Step, StoredLock | None] | None],
        journals: dict[str, Sequence[JournalEntry]] | None = None,
    ) -> Task | None:
        for _ in range(MAX_CONFLICTS):
            decision = decide(self._stored.task)
            if decision is None:
                return None
            step, lock = decision
            try:
                self._stored = self._committer.commit(step, self._stored, lock, journals)
            except VersionConflict:
                reread = self._store.load(step.task.id)
                if reread is None:
                    return None  # deleted meanwhile
                self._stored = reread
            else:
                return self._stored.task
        raise StoreUnavailable("The store", f"task {self._stored.task.id} changed {MAX_CONFLICTS} times")
