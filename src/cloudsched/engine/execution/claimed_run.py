"""Change a run under its lease: renew it, append to its journal, finish or release it, and free its lock."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.documents.outcome import Suspend
from cloudsched.domain.transitions.finish import on_heartbeat, on_outcome, on_release
from cloudsched.domain.transitions.lifecycle import FINAL_STATUSES, Transition, with_changes
from cloudsched.domain.transitions.locks import is_held_by
from cloudsched.domain.transitions.suspend import consume_event, on_journal_append
from cloudsched.engine.execution.failure_hooks import run_failure_hooks
from cloudsched.engine.state.compare_and_set import compare_and_set
from cloudsched.engine.state.lease import LeaseState
from cloudsched.engine.state.locks import Grants
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from random import Random

    from cloudsched.domain.documents.execution import ProgressNote, Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Event, Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.delivery.planner import DeliveryPlanner
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.follow_ups import FollowUps
    from cloudsched.engine.ports.store import DeliveryMark, TaskWrite, VersionedLock, VersionedTask


@dataclass(frozen=True, slots=True)
class Decision:
    """What to commit: the change of the task, its lock if that changes, and other tasks."""

    transition: Transition
    lock: VersionedLock | None = None
    writes: tuple[TaskWrite, ...] = ()
    delivered: DeliveryMark | None = None


class ClaimedRun:
    """A claimed run, with the last known state of its task, on which its changes are committed."""

    def __init__(self, engine: EngineContext, claimed: VersionedTask, run: Run) -> None:
        if run.lease is None:
            raise ValueError("a claimed run has a lease")
        self._engine = engine
        self._stored = claimed
        self._run = run
        self._token_hash = run.lease.token_hash
        self.granted = Grants()
        """The waiters at its lock to notify, once the run has been finished or released."""
        self.has_calls_in_progress = False
        """Whether it was suspended for several calls, of which one had already ended and others were in progress."""
        self.follow_ups: tuple[TaskWrite, ...] = ()
        """The follow-ups and deliveries that its success has created or edited."""

    @property
    def task(self) -> Task:
        """The task as it was last read or written."""
        return self._stored.task

    def renew(self, progress: Sequence[ProgressNote]) -> LeaseState:
        """Extend the lease and the hold on its lock, and store the progress; report a lost lease or an ended task."""
        execution_id = self._run.execution_id

        def decide(task: Task) -> Decision | None:
            transition = on_heartbeat(task, execution_id, self._token_hash, progress, self._engine.now())
            run = None if transition is None else transition.task.find_run(execution_id)
            if transition is None or run is None:
                return None
            lock = self._engine.locks.extend(task.id, run, run.wake_at)
            if lock is not None and not is_held_by(lock.lock, task.id, execution_id, self._engine.now()):
                return None  # another run had acquired the lock before it was read
            return Decision(transition, lock)

        task = self._commit(decide)
        run = None if task is None else task.find_run(execution_id)
        if task is None or run is None:
            return LeaseState(None, is_cancelled=True)
        is_cancelled = task.deleted_at is not None or task.status in FINAL_STATUSES
        return LeaseState(run.wake_at, is_cancelled=is_cancelled, renewed_at=task.updated_at)

    def append_journal(
        self, entries: Sequence[JournalEntry], calls_made: int, event: Event | None = None
    ) -> Task | None:
        """Append entries to the journal, and remove a consumed event from the task; this renews the lease.

        Returns:
            The task as committed, or None if the lease is no longer held.

        Raises:
            LookupError: The task does not have the event any more. Nothing was stored.
        """
        execution_id = self._run.execution_id

        def decide(task: Task) -> Decision | None:
            now = self._engine.now()
            transition = on_journal_append(task, execution_id, self._token_hash, entries, calls_made, now)
            run = None if transition is None else transition.task.find_run(execution_id)
            if transition is None or run is None:
                return None
            if event is not None:
                transition = consume_event(transition, event, now)
            lock = self._engine.locks.extend(task.id, run, run.wake_at)
            if lock is not None and not is_held_by(lock.lock, task.id, execution_id, now):
                return None  # as in `renew`
            return Decision(transition, lock)

        return self._commit(decide)

    def finish(
        self,
        report: AttemptReport,
        random: Random,
        journal: Sequence[JournalEntry] | None = None,
        calls_in_progress: Callable[[tuple[int, ...]], Collection[int]] = lambda _: (),
        follow_ups: FollowUps | None = None,
        deliveries: DeliveryPlanner | None = None,
    ) -> Task | None:
        """Commit the outcome of the attempt; return the task as committed, or None if the lease is no longer held.

        Args:
            report: The outcome, with what the handler reported.
            random: For the jitter of the wait before the next attempt.
            journal: The whole journal of the run, if it has been loaded.
            calls_in_progress: Returns which of some calls are in progress; called if one ended while the handler ran.
            follow_ups: The tasks to create in the commit that records the success.
            deliveries: Decides which deliveries to create in that commit, and what the end of a delivery changes.

        Raises:
            InvalidInput: A follow-up is refused, or the store refuses a document. Nothing was committed.
            BlobsUnavailable: The journal is too large for its record, and the blob store cannot be reached. Nothing
                was committed, and no failure hook was called.
        """
        known_journals = None if journal is None else {self._run.execution_id: journal}
        has_conflicted = False

        def decide(task: Task) -> Decision | None:
            now, execution_id, outcome = self._engine.now(), self._run.execution_id, report.outcome
            run = task.find_run(execution_id)
            awaited = outcome.calls if isinstance(outcome, Suspend) else ()
            must_check = run is not None and run.call_finished_while_running and awaited
            open_calls = calls_in_progress(awaited) if must_check else ()
            self.has_calls_in_progress = bool(open_calls)
            transition = on_outcome(
                task, execution_id, self._token_hash, report, now, random, calls_in_progress=open_calls
            )
            if transition is None:
                return None
            writes: tuple[TaskWrite, ...] = ()
            if follow_ups is not None:
                transition, writes = follow_ups.apply(transition, run, now)
            delivered = None
            if deliveries is not None and run is not None:
                records = transition.executions
                writes += deliveries.plan(task, run, report, now, records=records, is_repeat=has_conflicted)
                delivered = deliveries.mark(task, report, is_repeat=has_conflicted)
            lock, self.granted = self._engine.locks.release(task.id, self._run, self._engine.now())
            return Decision(transition, lock, writes, delivered)

        def on_conflict() -> None:
            nonlocal has_conflicted
            has_conflicted = True
            if follow_ups is not None:
                follow_ups.reload()

        return self._commit_end(decide, known_journals, on_conflict)

    def release(self, progress: Sequence[ProgressNote], reason: str, released_by: str | None = None) -> Task | None:
        """Give up the run to another worker; return the task as committed, or None if the lease is no longer held."""

        def decide(task: Task) -> Decision | None:
            now = self._engine.now()
            run_id, token_hash = self._run.execution_id, self._token_hash
            transition = on_release(task, run_id, token_hash, progress, reason, now, released_by=released_by)
            if transition is None:
                return None
            lock, self.granted = self._engine.locks.release(task.id, self._run, now)
            return Decision(transition, lock)

        return self._commit_end(decide)

    def _commit_end(
        self,
        decide: Callable[[Task], Decision | None],
        journals: dict[str, Sequence[JournalEntry]] | None = None,
        on_conflict: Callable[[], None] = lambda: None,
    ) -> Task | None:
        """Commit the end of the attempt. If the task was deleted meanwhile, only free its lock, and return None."""
        committed = self._commit(
            lambda task: decide(task) if task.deleted_at is None else self._release_deleted(task), journals, on_conflict
        )
        if committed is None or committed.deleted_at is None:
            return committed
        with suppress(QueueUnavailable):  # the sweep notifies them
            self._engine.locks.notify(self.granted, self._engine.now())
        return None

    def _release_deleted(self, task: Task) -> Decision | None:
        run, now = task.find_run(self._run.execution_id), self._engine.now()
        if run is None or run.lease is None or run.lease.token_hash != self._token_hash:
            return None
        lock, self.granted = self._engine.locks.release(task.id, self._run, now)
        released = with_changes(task, now, runs=task.runs_with(run.model_copy(update={"lease": None})))
        return Decision(Transition(released), lock)

    def _commit(
        self,
        decide: Callable[[Task], Decision | None],
        journals: dict[str, Sequence[JournalEntry]] | None = None,
        on_conflict: Callable[[], None] = lambda: None,
    ) -> Task | None:
        def reload() -> VersionedTask | None:
            reread = self._engine.store.load(task_id)
            if reread is not None:
                self._stored = reread
                on_conflict()
            return reread

        def change(stored: VersionedTask | None) -> Task | None:
            decision = None if stored is None else decide(stored.task)
            if stored is None or decision is None:  # deleted, or not its own any more
                return None
            transition, writes = decision.transition, decision.writes
            call_hooks = partial(run_failure_hooks, self._engine.registry, transition.task, transition.executions)
            committed = self._engine.committer.commit(
                transition, stored, decision.lock, journals, call_hooks, writes, delivered=decision.delivered
            )
            self._stored, self.follow_ups = committed, writes
            return committed.task

        stored = self._stored  # read once: another thread of the worker may replace it meanwhile
        task_id = stored.task.id
        return compare_and_set(f"task {task_id}", reload, change, first=stored)
