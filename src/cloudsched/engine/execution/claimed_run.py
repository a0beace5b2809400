"""A run under a lease: renewing it, ending it, and freeing what it holds."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.documents.outcome import Suspend
from cloudsched.domain.transitions.finish import extended, given_back, on_outcome
from cloudsched.domain.transitions.lifecycle import ENDED, Step, moved
from cloudsched.domain.transitions.locks import is_held_by
from cloudsched.domain.transitions.suspend import event_taken, recorded
from cloudsched.engine.execution.failure_hooks import announce_failure
from cloudsched.engine.state.lease import LeaseState
from cloudsched.engine.state.locks import Turns
from cloudsched.errors import QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from random import Random

    from cloudsched.domain.documents.execution import ProgressStep, Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Event, Task
    from cloudsched.domain.transitions.finish import Report
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, Stored, StoredLock
    from cloudsched.engine.state.commits import Committer
    from cloudsched.engine.state.locks import Locks

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
        self.woken = Turns()
        """Those whose turn it is at its lock, once it has ended."""
        self.has_left_running = False
        """Whether it was suspended for calls of which one had ended meanwhile, and others were under way."""

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
        is_cancelled = task.deleted_at is not None or task.status in ENDED
        return LeaseState(run.wakes_at, is_cancelled=is_cancelled, renewed_at=task.updated_at)

    def record(self, entries: Sequence[JournalEntry], calls_made: int, event: Event | None = None) -> Task | None:
        """Keep what a durable handler did, and take an event off the task; this renews the lease.

        Returns:
            The task as it is then, or None if the lease is no longer held.

        Raises:
            LookupError: The event is not there any more. Nothing was kept.
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

    def finish(
        self,
        report: Report,
        random: Random,
        journal: Sequence[JournalEntry] | None = None,
        running: Callable[[tuple[int, ...]], Collection[int]] = lambda _: (),
    ) -> Task | None:
        """Commit how the attempt ended; return the task as it is then, or None if the lease is no longer held.

        Args:
            report: How it ended.
            random: Chance, for the wait before the next attempt.
            journal: The whole journal of the run, if that was read.
            running: What says which of its calls are under way: asked if one has ended while its handler was at work.

        Raises:
            BlobsUnavailable: The journal is too large for its record, and its place cannot be reached. Nothing has
                ended, and nobody has been told of a failure.
        """
        known = None if journal is None else {self._run.execution_id: journal}

        def decide(task: Task) -> tuple[Step, StoredLock | None] | None:
            now, identity, wish = self._clock.now(), self._run.execution_id, report.outcome
            run = task.run(identity)
            is_nudged = run is not None and run.is_nudged
            under_way = running(wish.calls) if is_nudged and isinstance(wish, Suspend) and wish.calls else ()
            self.has_left_running = bool(under_way)
            step = on_outcome(task, identity, self._lease_token, report, now, random, still_running=under_way)
            if step is None:
                return None
            lock, self.woken = self._locks.leave(task.id, self._run, self._clock.now())
            return step, lock

        return self._ended(decide, known)

    def give_back(self, progress: Sequence[ProgressStep], reason: str) -> Task | None:
        """Let somebody else run the attempt; return the task as it is then, or None if the lease is no longer held."""

        def decide(task: Task) -> tuple[Step, StoredLock | None] | None:
            now = self._clock.now()
            step = given_back(task, self._run.execution_id, self._lease_token, progress, reason, now)
            if step is None:
                return None
            lock, self.woken = self._locks.leave(task.id, self._run, now)
            return step, lock

        return self._ended(decide)

    def _ended(
        self,
        decide: Callable[[Task], tuple[Step, StoredLock | None] | None],
        journals: dict[str, Sequence[JournalEntry]] | None = None,
    ) -> Task | None:
        """Commit an end; of a task that was deleted meanwhile nothing but that the lock is free."""
        ended = self._commit(lambda task: decide(task) if task.deleted_at is None else self._dropped(task), journals)
        if ended is None or ended.deleted_at is None:
            return ended
        with suppress(QueueUnavailable):  # the sweep wakes them
            self._locks.wake(self.woken, self._clock.now())
        return None

    def _dropped(self, task: Task) -> tuple[Step, StoredLock | None] | None:
        run, now = task.run(self._run.execution_id), self._clock.now()
        if run is None or run.lease is None or run.lease.token != self._lease_token:
            return None
        lock, self.woken = self._locks.leave(task.id, self._run, now)
        return Step(moved(task, now, runs=task.with_run(run.model_copy(update={"lease": None})))), lock

    def _commit(
        self,
        decide: Callable[[Task], tuple[Step, StoredLock | None] | None],
        journals: dict[str, Sequence[JournalEntry]] | None = None,
    ) -> Task | None:
        for _ in range(MAX_CONFLICTS):
            stored = self._stored  # once: a worker's other thread may put a newer one in its place meanwhile
            decision = decide(stored.task)
            if decision is None:
                return None
            step, lock = decision
            try:
                announce = partial(announce_failure, self._registry, step.task, step.executions)
                committed = self._committer.commit(step, stored, lock, journals, announce)
            except VersionConflict:
                reread = self._store.load(step.task.id)
                if reread is None:
                    return None  # deleted meanwhile
                self._stored = reread
            else:
                self._stored = committed
                return committed.task
        raise StoreUnavailable("The store", f"task {self._stored.task.id} changed {MAX_CONFLICTS} times")
