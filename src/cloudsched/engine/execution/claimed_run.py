"""A run under a lease: renewing it, ending it, and freeing what it holds."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.documents.outcome import Suspend
from cloudsched.domain.transitions.finish import on_heartbeat, on_outcome, on_release
from cloudsched.domain.transitions.lifecycle import FINAL_STATUSES, Transition, with_changes
from cloudsched.domain.transitions.locks import is_held_by
from cloudsched.domain.transitions.suspend import consume_event, on_journal_append
from cloudsched.engine.execution.failure_hooks import run_failure_hooks
from cloudsched.engine.state.lease import LeaseState
from cloudsched.engine.state.locks import Grants
from cloudsched.errors import QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from random import Random

    from cloudsched.domain.documents.execution import ProgressNote, Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Event, Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, VersionedLock, VersionedTask
    from cloudsched.engine.state.commits import TransitionCommitter
    from cloudsched.engine.state.locks import Locks

MAX_CONFLICTS = 20
"""How often a decision is made anew because somebody else was quicker, before the queue is asked to come again."""


class ClaimedRun:
    """A run that this executor has claimed: the task's last known state, which all its changes are committed on."""

    def __init__(
        self,
        *,
        store: Store,
        committer: TransitionCommitter,
        clock: Clock,
        registry: Registry,
        locks: Locks,
        claimed: VersionedTask,
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
        self._token_hash = run.lease.token_hash
        self.granted = Grants()
        """Those whose turn it is at its lock, once it has ended."""
        self.has_calls_in_progress = False
        """Whether it was suspended for calls of which one had ended meanwhile, and others were under way."""

    @property
    def task(self) -> Task:
        """The task as it was last read or written."""
        return self._stored.task

    def renew(self, progress: Sequence[ProgressNote]) -> LeaseState:
        """Extend the lease and its lock, and keep the progress; say if it is lost or the task no longer wants it."""
        identity = self._run.execution_id

        def decide(task: Task) -> tuple[Transition, VersionedLock | None] | None:
            step = on_heartbeat(task, identity, self._token_hash, progress, self._clock.now())
            run = None if step is None else step.task.find_run(identity)
            if step is None or run is None:
                return None
            lock = self._locks.extend(task.id, run, run.wake_at)
            if lock is not None and not is_held_by(lock.lock, task.id, identity, self._clock.now()):
                return None  # it was another's by the time that it was read
            return step, lock

        task = self._commit(decide)
        run = None if task is None else task.find_run(identity)
        if task is None or run is None:
            return LeaseState(None, is_cancelled=True)
        is_cancelled = task.deleted_at is not None or task.status in FINAL_STATUSES
        return LeaseState(run.wake_at, is_cancelled=is_cancelled, renewed_at=task.updated_at)

    def append_journal(
        self, entries: Sequence[JournalEntry], calls_made: int, event: Event | None = None
    ) -> Task | None:
        """Keep what a durable handler did, and take an event off the task; this renews the lease.

        Returns:
            The task as it is then, or None if the lease is no longer held.

        Raises:
            LookupError: The event is not there any more. Nothing was kept.
        """
        identity = self._run.execution_id

        def decide(task: Task) -> tuple[Transition, VersionedLock | None] | None:
            now = self._clock.now()
            step = on_journal_append(task, identity, self._token_hash, entries, calls_made, now)
            run = None if step is None else step.task.find_run(identity)
            if step is None or run is None:
                return None
            if event is not None:
                step = consume_event(step, event, now)
            lock = self._locks.extend(task.id, run, run.wake_at)
            if lock is not None and not is_held_by(lock.lock, task.id, identity, now):
                return None  # as in `renew`
            return step, lock

        return self._commit(decide)

    def finish(
        self,
        report: AttemptReport,
        random: Random,
        journal: Sequence[JournalEntry] | None = None,
        calls_in_progress: Callable[[tuple[int, ...]], Collection[int]] = lambda _: (),
    ) -> Task | None:
        """Commit how the attempt ended; return the task as it is then, or None if the lease is no longer held.

        Args:
            report: How it ended.
            random: Chance, for the wait before the next attempt.
            journal: The whole journal of the run, if that was read.
            calls_in_progress: Returns which of some calls are in progress; called if one ended while the handler ran.

        Raises:
            BlobsUnavailable: The journal is too large for its record, and its place cannot be reached. Nothing has
                ended, and nobody has been told of a failure.
        """
        known = None if journal is None else {self._run.execution_id: journal}

        def decide(task: Task) -> tuple[Transition, VersionedLock | None] | None:
            now, identity, wish = self._clock.now(), self._run.execution_id, report.outcome
            run = task.find_run(identity)
            is_nudged = run is not None and run.call_finished_while_running
            under_way = calls_in_progress(wish.calls) if is_nudged and isinstance(wish, Suspend) and wish.calls else ()
            self.has_calls_in_progress = bool(under_way)
            step = on_outcome(task, identity, self._token_hash, report, now, random, calls_in_progress=under_way)
            if step is None:
                return None
            lock, self.granted = self._locks.release(task.id, self._run, self._clock.now())
            return step, lock

        return self._commit_end(decide, known)

    def release(self, progress: Sequence[ProgressNote], reason: str, released_by: str | None = None) -> Task | None:
        """Let somebody else run the attempt; return the task as it is then, or None if the lease is no longer held."""

        def decide(task: Task) -> tuple[Transition, VersionedLock | None] | None:
            now = self._clock.now()
            run_id, token_hash = self._run.execution_id, self._token_hash
            step = on_release(task, run_id, token_hash, progress, reason, now, released_by=released_by)
            if step is None:
                return None
            lock, self.granted = self._locks.release(task.id, self._run, now)
            return step, lock

        return self._commit_end(decide)

    def _commit_end(
        self,
        decide: Callable[[Task], tuple[Transition, VersionedLock | None] | None],
        journals: dict[str, Sequence[JournalEntry]] | None = None,
    ) -> Task | None:
        """Commit an end; of a task that was deleted meanwhile nothing but that the lock is free."""
        ended = self._commit(
            lambda task: decide(task) if task.deleted_at is None else self._release_deleted(task), journals
        )
        if ended is None or ended.deleted_at is None:
            return ended
        with suppress(QueueUnavailable):  # the sweep wakes them
            self._locks.notify(self.granted, self._clock.now())
        return None

    def _release_deleted(self, task: Task) -> tuple[Transition, VersionedLock | None] | None:
        run, now = task.find_run(self._run.execution_id), self._clock.now()
        if run is None or run.lease is None or run.lease.token_hash != self._token_hash:
            return None
        lock, self.granted = self._locks.release(task.id, self._run, now)
        return Transition(with_changes(task, now, runs=task.runs_with(run.model_copy(update={"lease": None})))), lock

    def _commit(
        self,
        decide: Callable[[Task], tuple[Transition, VersionedLock | None] | None],
        journals: dict[str, Sequence[JournalEntry]] | None = None,
    ) -> Task | None:
        for _ in range(MAX_CONFLICTS):
            stored = self._stored  # once: a worker's other thread may put a newer one in its place meanwhile
            decision = decide(stored.task)
            if decision is None:
                return None
            step, lock = decision
            try:
                announce = partial(run_failure_hooks, self._registry, step.task, step.executions)
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
