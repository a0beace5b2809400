"""A worker's claim: heartbeats renew it, and a result or a release ends it.

Only the holder of the lease may end a run, and it may repeat its report until it is acknowledged.
Dispatches that follow are sent at once or left to the sweep, because no queue redelivers a worker's work.

A claim that was made through the API needs two things: its lease token, and the same caller that claimed
it. An admin may end another caller's claim, but not renew it. Claims that were not made through the API
(an executor's, or those of workers at the store) cannot be renewed, released or ended through it.
"""

from __future__ import annotations

import hmac
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.execution import ExecutionStatus, Lease, ProgressNote, Run, lease_fingerprint
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.engine.handlers.context import LeaseRenewal
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.errors import LeaseLost, NotFound, QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.domain.documents.log_lines import RunLog
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Committed, VersionedTask
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.executor import Executor
    from cloudsched.features.pull.work_queue import ClaimCaller

log: Final = own_logger(__name__)

_LEASE_EXPIRED = ExecutionStatus.TIMED_OUT


class WorkerClaims:
    """Starts the runs that workers have claimed, and renews, releases and ends their claims."""

    def __init__(
        self,
        engine: EngineContext,
        executor: Executor,
        caller: ClaimCaller,
    ) -> None:
        self._engine = engine
        self._executor = executor
        self._caller = caller

    def for_caller(self, caller: ClaimCaller) -> WorkerClaims:
        """Return the claims as one caller may change them."""
        return WorkerClaims(self._engine, self._executor, caller)

    def start(self, claim: Attempt) -> Attempt | None:
        """Return a claimed run, ready for its handler to be called, None if its lease has already expired."""
        with self._defer_dispatch_on_outage(claim.task.id):
            return claim if self._executor.start(claim) else None
        return None

    def finish(self, attempt: Attempt, report: AttemptReport) -> Task | None:
        """Commit the end of an attempt, and dispatch what follows.

        None if the lease was lost and the result dropped.

        After StoreUnavailable, repeating the call is safe.
        """
        run = attempt.run
        committed = run_procedure(attempt.finish(report))
        self._dispatch(attempt, committed)
        if committed is None and run.lease is not None:  # the commit may have succeeded, but its answer was lost
            with suppress(LeaseLost, NotFound):
                return self._replay_of_finished(attempt.task, run.execution_id, run.lease.token_hash)
        return None if committed is None else committed.stored.task

    def release(self, attempt: Attempt, reason: str) -> Task | None:
        """Let another worker run it: it uses up no attempt and keeps its place.

        None if the lease was lost.
        """
        return self._release(attempt, attempt.context.progress_notes, reason)

    def heartbeat(
        self,
        task_id: str,
        execution_id: str,
        lease_token: str,
        progress: Sequence[ProgressNote] | None = None,
        logged: RunLog | None = None,
    ) -> LeaseRenewal:
        """Renew the lease, and replace the progress if any is given. Report a lost lease or a cancelled task.

        Both `progress` and `logged` are all of the claim so far. None leaves what was reported before.
        Raises NotFound.
        """
        stored, run = self._load_claim(task_id, execution_id, lease_token, is_end=False)
        if run is None:
            return LeaseRenewal(None, is_cancelled=True)
        return self._make_attempt(stored, run, logged).renew(run.progress if progress is None else progress)

    def finish_by_token(
        self,
        task_id: str,
        execution_id: str,
        lease_token: str,
        report: AttemptReport,
        logged: RunLog | None = None,
    ) -> Task:
        """Commit how an attempt ended and dispatch what follows. Safe to repeat: the first report counts.

        If the report has no progress, that of the heartbeats stays, and so do the lines that the claim
        has logged. If a follow-up is refused, nothing is changed. Raises InvalidInput, LeaseLost or NotFound.
        """
        stored, run = self._load_claim(task_id, execution_id, lease_token)
        if run is None:
            return self._replay_of_finished(stored.task, execution_id, lease_fingerprint(lease_token))
        attempt = self._make_attempt(stored, run, logged)
        report = replace(report, progress=report.progress or run.progress, ended_by=self._caller.subject)
        committed = run_procedure(attempt.finish(report, as_reported=True))
        self._dispatch(attempt, committed)
        if committed is None:
            return self._replay_of_finished(attempt.task, execution_id, lease_fingerprint(lease_token))
        return committed.stored.task

    def release_by_token(
        self,
        task_id: str,
        execution_id: str,
        lease_token: str,
        reason: str,
        progress: Sequence[ProgressNote] | None = None,
        logged: RunLog | None = None,
    ) -> Task:
        """Let another worker run it: it uses up no attempt and keeps its place. Safe to repeat.

        Raises LeaseLost or NotFound.
        """
        stored, run = self._load_claim(task_id, execution_id, lease_token)
        if run is None:
            return self._replay_of_finished(stored.task, execution_id, lease_fingerprint(lease_token))
        attempt = self._make_attempt(stored, run, logged)
        released = self._release(attempt, run.progress if progress is None else progress, reason)
        return released or self._replay_of_finished(
            attempt.task,
            execution_id,
            lease_fingerprint(lease_token),
        )

    def _make_attempt(self, stored: VersionedTask, run: Run, logged: RunLog | None) -> Attempt:
        """Return the claim, with what its own worker has logged: others, who may only end it, add nothing to that."""
        attempt = Attempt(self._engine, stored, run)
        if run.lease is not None and run.lease.claimed_by == self._caller.subject:
            attempt.reported_log = self._engine.logs.accept(run, logged, self._engine.clock.now())
        return attempt

    def _load_claim(
        self, task_id: str, execution_id: str, lease_token: str, *, is_end: bool = True
    ) -> tuple[VersionedTask, Run | None]:
        """Return the task, and the run if the caller holds this claim of it.

        The check sees the claim's queue.

        A task that is being deleted exists only for those who hold a claim of it: they hold its lock
        until they finish.
        """
        stored = self._engine.store.load(task_id)
        if stored is None:
            raise NotFound("task", task_id)
        run = stored.task.find_run(execution_id)
        is_held = run and run.lease and self._holds(run.lease, lease_token, is_end=is_end)
        if run and run.lease and is_held and self._caller.may_report(stored.task.as_begun(run)):
            queue = run.lease.queue
        else:
            run = None
            queue = stored.task.pull.queue if stored.task.pull else None
        self._caller.authorize(stored.task, queue)
        if run is None and stored.task.deleted_at is not None:
            raise NotFound("task", task_id)
        return stored, run

    def _holds(self, lease: Lease, lease_token: str, *, is_end: bool) -> bool:
        """Return whether the token is this lease's and the caller is the one that claimed it, or may end it anyway."""
        if lease.worker is None or not hmac.compare_digest(lease.token_hash, lease_fingerprint(lease_token)):
            return False
        is_foreign_but_allowed = is_end and self._caller.can_end_others and lease.claimed_by is not None
        return lease.claimed_by == self._caller.subject or is_foreign_but_allowed

    def _replay_of_finished(self, task: Task, execution_id: str, token_hash: str) -> Task:
        """Return the task if the caller has ended this claim before.

        Raises LeaseLost if it has not, or NotFound.
        """
        if task.deleted_at is not None:
            raise NotFound("task", task.id)
        run = task.find_run(execution_id)
        record = self._engine.store.load_execution(task.id, execution_id)
        attempts = (*(run.attempts if run else ()), *(record.attempts if record else ()))
        was_released = run is not None and (run.released_claim, run.released_by) == (
            token_hash,
            self._caller.subject,
        )
        was_ended = any(
            (each.claim, each.ended_by) == (token_hash, self._caller.subject) and each.status is not _LEASE_EXPIRED
            for each in attempts
        )
        if not was_released and not was_ended:
            raise LeaseLost(execution_id)
        with self._defer_dispatch_on_outage(
            task.id,
        ):  # the process that committed it may have died before dispatching
            self._executor.dispatch_wakeups(task)
            if run is None:  # it may have died before it notified who waits for it
                self._engine.committer.options.lose(task, execution_id)
            self._executor.child_tasks.notify_family(task)
        return task

    def _release(self, attempt: Attempt, progress: Sequence[ProgressNote], reason: str) -> Task | None:
        released = attempt.release(progress, reason, self._caller.subject)
        if released is None:
            return None
        self._dispatch(attempt, released)
        return released.stored.task

    def _dispatch(self, attempt: Attempt, committed: Committed | None) -> None:
        with self._defer_dispatch_on_outage(attempt.task.id):
            self._executor.dispatch(attempt, committed)

    @contextmanager
    def _defer_dispatch_on_outage(self, task_id: str) -> Iterator[None]:
        """Leave what cannot be dispatched now to the sweep: unlike an executor's work, no queue redelivers this."""
        try:
            yield
        except QueueUnavailable as error:
            log.warning("deferred: %s", error, extra={"action": "deferred", "taskId": task_id})
            self._engine.committer.defer(task_id, self._engine.clock.now())
