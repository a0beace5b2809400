"""Change a run under its lease: renew it, append to its journal, finish or release it, and free its lock."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.finish import on_heartbeat, on_release
from cloudsched.domain.transitions.lifecycle import Transition, with_changes
from cloudsched.domain.transitions.locks import is_held_by
from cloudsched.domain.transitions.requirements import FINAL_STATUSES
from cloudsched.domain.transitions.suspend import consume_event, on_journal_append
from cloudsched.engine.execution.attempt_end import Decision
from cloudsched.engine.execution.failure_hooks import run_failure_hooks
from cloudsched.engine.ports.store import Commit
from cloudsched.engine.state.compare_and_set import compare_and_set
from cloudsched.engine.state.lease import LeaseState
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.documents.execution import ProgressNote, Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Event, Task
    from cloudsched.domain.transitions.planning import WakeUp
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.attempt_end import AttemptEnd
    from cloudsched.engine.ports.store import VersionedTask
    from cloudsched.engine.state.attempt_log import AttemptLog, ReportedLog


@dataclass(frozen=True, slots=True)
class Committed:
    """A task as it was committed, with the decision that was: what is to follow from it."""

    task: Task
    decision: Decision


class ClaimedRun:
    """A claimed run, with the last known state of its task, on which its changes are committed."""

    def __init__(self, engine: EngineContext, claimed: VersionedTask, run: Run) -> None:
        if run.lease is None:
            raise ValueError("a claimed run has a lease")
        self._engine = engine
        self._stored = claimed
        self.run = run
        """The run as it was claimed."""
        self._token_hash = run.lease.token_hash
        self.sent_wakeups: tuple[WakeUp, ...] = ()
        """What was dispatched while its handler goes on, and need not be dispatched again at its end."""
        self.log: AttemptLog | ReportedLog | None = None
        """What its handler logs or its worker has reported, if that is kept: each commit stores what is new."""

    @property
    def task(self) -> Task:
        """The task as it was last read or written."""
        return self._stored.task

    def renew(self, progress: Sequence[ProgressNote]) -> LeaseState:
        """Extend the lease and the hold on its lock, and store the progress; report a lost lease or an ended task."""
        execution_id = self.run.execution_id

        def decide(task: Task) -> Decision | None:
            transition = on_heartbeat(task, execution_id, self._token_hash, progress, self._engine.now())
            run = None if transition is None else transition.task.find_run(execution_id)
            if transition is None or run is None:
                return None
            lock = self._engine.locks.extend(task.id, run, run.wake_at)
            if lock is not None and not is_held_by(lock.lock, task.id, execution_id, self._engine.now()):
                return None  # another run had acquired the lock before it was read
            return Decision(transition, lock)

        committed = self._commit(decide)
        task = None if committed is None else committed.task
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
        execution_id = self.run.execution_id

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

        committed = self._commit(decide)
        return None if committed is None else committed.task

    def finish(self, end: AttemptEnd) -> Committed | None:
        """Commit how the attempt ended; None if the lease is no longer held, or the task was deleted meanwhile.

        Raises:
            InvalidInput: A follow-up is refused, or the store refuses a document. Nothing was committed.
            BlobsUnavailable: The journal is too large for its record, and the blob store cannot be reached. Nothing
                was committed, and no failure hook was called.
        """
        return self._commit_end(end.decide, end.journals, end.on_conflict)

    def release(
        self, progress: Sequence[ProgressNote], reason: str, released_by: str | None = None
    ) -> Committed | None:
        """Give up the run to another worker; None as for `finish`."""

        def decide(task: Task) -> Decision | None:
            now = self._engine.now()
            run_id, token_hash = self.run.execution_id, self._token_hash
            transition = on_release(task, run_id, token_hash, progress, reason, now, released_by=released_by)
            if transition is None:
                return None
            lock, grants = self._engine.locks.release(task.id, self.run, now)
            return Decision(transition, lock, grants=grants)

        return self._commit_end(decide)

    def _commit_end(
        self,
        decide: Callable[[Task], Decision | None],
        journals: dict[str, Sequence[JournalEntry]] | None = None,
        on_conflict: Callable[[], None] = lambda: None,
    ) -> Committed | None:
        """Commit the end of the attempt. If the task was deleted meanwhile, only free its lock, and return None."""
        committed = self._commit(
            lambda task: decide(task) if task.deleted_at is None else self._release_deleted(task), journals, on_conflict
        )
        if committed is None or committed.task.deleted_at is None:
            return committed
        with suppress(QueueUnavailable):  # the sweep notifies them
            self._engine.locks.updates.notify(committed.decision.grants, self._engine.now())
        return None

    def _release_deleted(self, task: Task) -> Decision | None:
        run, now = task.find_run(self.run.execution_id), self._engine.now()
        if run is None or run.lease is None or run.lease.token_hash != self._token_hash:
            return None
        lock, grants = self._engine.locks.release(task.id, self.run, now)
        released = with_changes(task, now, runs=task.runs_with(run.model_copy(update={"lease": None})))
        return Decision(Transition(released), lock, grants=grants)

    def _with_log(self, task: Task) -> Task:
        """Return the task with what was logged so far in its run; whatever is committed stores it."""
        run = None if self.log is None else task.find_run(self.run.execution_id)
        if self.log is None or run is None or not (found := self.log.found).lines:
            return task
        kept = self._engine.logs.keep(task.id, run, self._token_hash, found)
        return task.model_copy(update={"runs": task.runs_with(kept)})

    def _commit(
        self,
        decide: Callable[[Task], Decision | None],
        journals: dict[str, Sequence[JournalEntry]] | None = None,
        on_conflict: Callable[[], None] = lambda: None,
    ) -> Committed | None:
        """Commit what is decided, again after each conflict; None if nothing is, as the lease is no longer held."""

        def reload() -> VersionedTask | None:
            reread = self._read(task_id)
            if reread is not None:
                self._stored = reread
                on_conflict()
            return reread

        def change(stored: VersionedTask | None) -> Committed | None:
            decision = None if stored is None else decide(self._with_log(stored.task))
            if stored is None or decision is None:  # deleted, or not its own any more
                return None
            transition = decision.transition
            call_hooks = partial(run_failure_hooks, self._engine.registry, transition.task, transition.executions)
            self._stored = self._write(stored, decision, journals, call_hooks)
            return Committed(self._stored.task, decision)

        stored = self._stored  # read once: another thread of the worker may replace it meanwhile
        task_id = stored.task.id
        return compare_and_set(f"task {task_id}", reload, change, first=stored)

    def _read(self, task_id: str) -> VersionedTask | None:
        """Read the task again, after a conflict."""
        return self._engine.store.load(task_id)

    def _write(
        self,
        stored: VersionedTask,
        decision: Decision,
        journals: dict[str, Sequence[JournalEntry]] | None,
        call_hooks: Callable[[], None],
        *,
        reads: int = 0,
        dispatches: int = 0,
    ) -> VersionedTask:
        """Commit a decision on the version that it was made on; `reads` and `dispatches` are what led to it."""
        commit = Commit.build(
            stored,
            decision.transition,
            lock=decision.lock,
            others=decision.writes,
            delivered=decision.delivered,
            reads=reads,
            dispatches=dispatches,
            journals=journals or {},
        )
        return self._engine.committer.commit(commit, call_hooks)
