"""Change a claimed run under its lease: renew it, append to the journal, release or finish the run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.task import FINAL_STATUSES, Task
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.commit import NO_READS, Commit, Committed, Effects, VersionedTask
from cloudsched.domain.transitions.finish import AttemptReport, on_outcome
from cloudsched.domain.transitions.lease import on_heartbeat
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.domain.transitions.lost_attempts import on_release
from cloudsched.domain.transitions.outcome import Done, Fail, Suspend
from cloudsched.domain.transitions.suspend import on_journal_append
from cloudsched.engine.durable.suspension import OUTAGE_PAUSE
from cloudsched.engine.execution.call import truncate_text
from cloudsched.engine.handlers.context import Context, LeaseRenewal
from cloudsched.engine.state.commits import MAX_CONFLICTS
from cloudsched.errors import (
    BlobsUnavailable,
    Contended,
    InvalidInput,
    LeaseLost,
    PreconditionFailed,
    QueueUnavailable,
    StoreUnavailable,
    VersionConflict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import timedelta

    from cloudsched.domain.documents.execution import Lease, ProgressNote, Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.log_lines import RunLog
    from cloudsched.domain.transitions.wakeups import Dispatch
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.handlers.registry import Handler
    from cloudsched.engine.ports.procedure import Procedure
    from cloudsched.engine.state.attempt_log import AttemptLog

    Decide = Callable[[Task, VersionedTask], Commit | None]
    """Decides on a task, given with its run's log, and as it was read.

    Returns None if the lease is no longer held.
    """

log: Final = own_logger(__name__)
_MAX_REPLACED: Final = 2
"""How often a report is replaced: by a failure, and by a suspension."""


class Attempt:
    """A claimed run in the pipeline, with the last known state of its task, which its commits change."""

    context: Context
    """What its handler gets. `Executor.start` makes it, and what else the call of the handler needs."""
    handler: Handler | None
    """The handler, or None if this process does not have it."""
    log: AttemptLog | None = None
    """The log of its handler."""
    early: timedelta
    """The time by which it was claimed early, for which its handler waits. Negative if it was late."""

    def __init__(
        self,
        engine: EngineContext,
        claimed: VersionedTask,
        run: Run,
        lease_token: str = "",
    ) -> None:
        if run.lease is None:
            raise ValueError("a claimed run has a lease")
        self._engine = engine
        self._stored = claimed
        self.task: Task = claimed.task
        """The task as it was last read or written."""
        self.begun_task: Task = claimed.task if run.definition is None else claimed.task.as_begun(run)
        """The task as it was claimed, with what the run began with: later edits only change later runs."""
        self.run = run
        """The run as it was claimed."""
        self.lease_token = lease_token
        """A worker's proof that it holds the claim. Only its hash is stored."""
        self.lease: Lease = run.lease
        """The lease as it was claimed."""
        self._token_hash = run.lease.token_hash
        self.sent_wakeups: tuple[Dispatch, ...] = ()
        """The wake-ups that were dispatched when it began, and need not be dispatched again."""
        self.reported_log: RunLog | None = None
        """What its worker has reported of its log. Each commit stores its new lines, or those of `log`."""

    def find_lease(self) -> Lease:
        """Return the lease as this process last read or wrote it: renewed, or as it was claimed."""
        run = self.task.find_run(self.run.execution_id)
        lease = None if run is None else run.lease
        return self.lease if lease is None or lease.token_hash != self._token_hash else lease

    def renew(self, progress: Sequence[ProgressNote]) -> LeaseRenewal:
        """Extend the lease and the hold on its lock, and store the progress.

        Report a lost lease or an ended task.
        """
        execution_id = self.run.execution_id

        def decide(task: Task, base: VersionedTask) -> Commit | None:
            renewal = on_heartbeat(task, execution_id, self._token_hash, progress, self._engine.clock.now())
            return self._change_lease(renewal, base)

        committed = self._change(decide)
        task = None if committed is None else committed.stored.task
        run = None if task is None else task.find_run(execution_id)
        if task is None or run is None:
            return LeaseRenewal(None, is_cancelled=True)
        is_cancelled = task.deleted_at is not None or task.status in FINAL_STATUSES
        return LeaseRenewal(run.wake_at, is_cancelled=is_cancelled, renewed_at=task.updated_at)

    def append_journal(
        self,
        entries: Sequence[JournalEntry],
        calls_made: int,
        end_wait: Callable[[Commit], Commit] | None = None,
    ) -> Task | None:
        """Append entries to the journal, and end a wait for an event in the same commit.

        This renews the lease.

        Returns None if the lease is no longer held. If `end_wait` raises, nothing is stored.
        """

        def decide(task: Task, base: VersionedTask) -> Commit | None:
            mine = self.run.execution_id, self._token_hash
            transition = on_journal_append(task, *mine, entries, calls_made, self._engine.clock.now())
            if transition is not None and end_wait is not None:
                transition = end_wait(transition)
            return self._change_lease(transition, base)

        committed = self._change(decide)
        return None if committed is None else committed.stored.task

    def find_caller(self, *, anew: bool) -> VersionedTask:
        """Return the task whose run makes calls, as it is known, or as it is now.

        Raises LeaseLost if it may not.
        """
        stored = self._reload(self.task.id) if anew else self._stored
        run = None if stored is None else stored.task.find_run(self.run.execution_id)
        is_held = run is not None and run.lease is not None and run.lease.token_hash == self._token_hash
        if stored is None or not is_held or stored.task.deleted_at or stored.task.status in FINAL_STATUSES:
            raise LeaseLost(self.run.execution_id)
        return stored

    def finish(self, report: AttemptReport, *, as_reported: bool = False) -> Procedure[Committed | None]:
        """Commit how the attempt ended.

        Return None if the lease is no longer held or the task was deleted meanwhile, of which only the lock is freed.

        If the steps are too large for the record and the blob store is unavailable, the run is suspended
        until later, and then replayed. If a follow-up is refused or the store rejects the outcome, which
        would happen every time, the attempt is recorded as a failure. `as_reported` raises both instead: after
        InvalidInput nothing was committed, after BlobsUnavailable no failure hook was called.
        """
        base: VersionedTask | None = self._stored  # read once: another thread of the worker may replace it meanwhile
        task_id = self._stored.task.id
        conflicts = replaced = 0
        while conflicts < MAX_CONFLICTS:
            try:
                commit = None if base is None else self._decide_end(report, base, is_repeat=conflicts > 0)
                if commit is None:
                    return None
                self._stored = yield from self._engine.committer.commit(commit)
                self.task = self._stored.task
                committed = Committed(self._stored, commit)
                return committed if self.task.deleted_at is None else self._drop(committed)
            except PreconditionFailed:
                raise
            except VersionConflict:
                conflicts += 1
                base = self._reload(task_id)
            except (InvalidInput, BlobsUnavailable) as error:
                replaced += 1
                if as_reported or replaced > _MAX_REPLACED:
                    raise
                report = self._replace(report, error)
        raise Contended(f"task {task_id}", MAX_CONFLICTS)

    def _replace(self, report: AttemptReport, error: InvalidInput | BlobsUnavailable) -> AttemptReport:
        """Return what is reported in place of a report that was not stored."""
        if isinstance(error, InvalidInput):
            return _to_failure(report, error, self)
        until = self._engine.clock.now() + OUTAGE_PAUSE
        return replace(report, outcome=Suspend(str(error), until), error=None)

    def _decide_end(self, report: AttemptReport, base: VersionedTask, *, is_repeat: bool) -> Commit | None:
        """Return what to commit, or None if the lease is no longer held.

        It is called again after each conflict.
        """
        task = self._with_log(base.task)
        if task.deleted_at is not None:
            return self._release_deleted(task, base)
        now = self._engine.clock.now()
        run = self.run
        calls: Collection[int] = ()
        if isinstance(report.outcome, Suspend):
            calls = self._find_calls_in_progress(task, report.outcome)
        commit = on_outcome(
            task,
            run.execution_id,
            self._token_hash,
            report,
            now,
            self._engine.random,
            calls_in_progress=calls,
        )
        if commit is None:
            return None
        effects = Effects(
            reads=0,
            journals={run.execution_id: report.journal} if report.journal else {},
            has_calls_in_progress=bool(calls),
            is_repeat=is_repeat,
        )
        then = report.outcome.then if isinstance(report.outcome, Done) else ()
        commit = commit.having(base=base, effects=effects, drafts=then)
        for concerns, option in self._engine.committer.options.on_outcome:
            if concerns(commit):
                commit = option.on_outcome(commit, run, report, now)
        return commit

    def _find_calls_in_progress(self, task: Task, outcome: Suspend) -> Collection[int]:
        """Return which awaited calls are known to be in progress, if one ended while the handler ran."""
        run = task.find_run(self.run.execution_id)
        if not outcome.calls or run is None or not run.call_finished_while_running:
            return ()
        from cloudsched.engine.child_tasks import ChildTasks  # noqa: PLC0415 - most tasks have none

        with suppress(StoreUnavailable):
            return ChildTasks(self._engine).calls_in_progress(task.id, run.execution_id, outcome.calls)
        return ()

    def _drop(self, committed: Committed) -> Committed | None:
        """Pass on the lock of a task that was deleted, of which nothing else remains to be done."""
        with suppress(QueueUnavailable):  # the sweep notifies them
            self._engine.committer.options.send_after(committed)
        return None

    def release(
        self, progress: Sequence[ProgressNote], reason: str, released_by: str | None = None
    ) -> Committed | None:
        """Give up the run to another worker. Return None if the lease is lost or the task is deleted."""

        def decide(task: Task, base: VersionedTask) -> Commit | None:
            if task.deleted_at is not None:
                return self._release_deleted(task, base)
            now = self._engine.clock.now()
            mine = self.run.execution_id, self._token_hash
            released = on_release(task, *mine, progress, reason, now, released_by=released_by)
            return self._change_lease(released, base)

        committed = self._change(decide)
        if committed is None or committed.stored.task.deleted_at is None:
            return committed
        return self._drop(committed)

    def _release_deleted(self, task: Task, base: VersionedTask) -> Commit | None:
        run = task.find_run(self.run.execution_id)
        now = self._engine.clock.now()
        if run is None or run.lease is None or run.lease.token_hash != self._token_hash:
            return None
        released = with_changes(task, now, runs=task.runs_with(run.model_copy(update={"lease": None})))
        return self._change_lease(Commit(released), base)

    def _change_lease(self, change: Commit | None, base: VersionedTask) -> Commit | None:
        """Return a change of the lease with what the options add, or None if one of them refuses."""
        commit = None if change is None else change.having(base=base, effects=NO_READS)
        for concerns, option in self._engine.committer.options.on_lease_change:
            if commit is not None and concerns(commit):
                commit = option.on_lease_change(commit, self.run)
        return commit

    def _with_log(self, task: Task) -> Task:
        """Return the task with the lines of its run so far, so that the next commit stores them."""
        found = self.reported_log if self.log is None else self.log.found
        if found is None or not found.lines:
            return task
        run = task.find_run(self.run.execution_id)
        if run is None:
            return task
        kept = self._engine.logs.keep(task.id, run, self._token_hash, found)
        return task.model_copy(update={"runs": task.runs_with(kept)})

    def _change(self, decide: Decide) -> Committed | None:
        stored = self._stored  # read once: another thread of the worker may replace it meanwhile
        task_id = stored.task.id

        def decide_on(read: VersionedTask | None) -> Commit | None:
            if read is None:  # deleted
                return None
            return decide(self._with_log(read.task), read)

        committed = self._engine.committer.apply(f"task {task_id}", lambda: self._reload(task_id), decide_on, stored)
        if committed is not None:
            self._stored = committed.stored
            self.task = committed.stored.task
        return committed

    def _reload(self, task_id: str) -> VersionedTask | None:
        stored = self._engine.store.load(task_id)
        if stored is not None:
            self._stored = stored
            self.task = stored.task
        return stored


def _to_failure(report: AttemptReport, error: InvalidInput, attempt: Attempt) -> AttemptReport:
    """Return the report as a failure: a follow-up or the outcome was refused, and would be every time.

    It is without notices and progress, which may have been too large.
    """
    ids = {"taskId": attempt.task.id, "executionId": attempt.run.execution_id}
    log.error("The result was rejected", exc_info=error, extra={"action": "result_rejected", **ids})
    outcome = report.outcome
    is_refused = isinstance(outcome, Done) and outcome.then != () and error.field.startswith("then.")
    what = "Its follow-ups are refused" if is_refused else f"The store rejected the outcome {type(outcome).__name__}"
    failure = Fail(truncate_text(f"{what}: {error}"))
    return replace(report, outcome=failure, error=None, notices=(), progress=())
