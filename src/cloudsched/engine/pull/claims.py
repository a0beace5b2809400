"""What becomes of a worker's claim: kept by heartbeats, ended with a result, or given back.

Only the holder of its lease may end a run, and it can say so as often as it takes to be heard. What follows from it is
sent at once, or left to the sweep: no queue delivers a worker's work again.
"""

from __future__ import annotations

import copy
import hmac
import logging
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from cloudsched.domain.documents.execution import ExecutionStatus, lease_fingerprint
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.engine.state.lease import LeaseState
from cloudsched.errors import LeaseLost, NotFound, QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from cloudsched.domain.documents.execution import ProgressNote, Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.domain.transitions.planning import WakeUp
    from cloudsched.engine.execution.attempts import AttemptRunner, StartedAttempt
    from cloudsched.engine.execution.claimed_run import ClaimedRun
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, VersionedTask
    from cloudsched.engine.pull.offers import WorkerClaim, WorkerFilter, WorkQueue

log = logging.getLogger(__name__)

_LEASE_EXPIRED = ExecutionStatus.TIMED_OUT


class WorkerClaims:
    """Hands out what is offered, and takes back what became of it."""

    def __init__(
        self, *, store: Store, work_queue: WorkQueue, attempt_runner: AttemptRunner, clock: Clock, random: Random
    ) -> None:
        self._store = store
        self._work_queue = work_queue
        self._attempt_runner = attempt_runner
        self._clock = clock
        self._random = random
        self._check: Callable[[Task, str | None], None] | None = None

    def with_authorization(self, check: Callable[[Task, str | None], None]) -> Self:
        """Return the same, for a caller to whom each task is shown by `check` before its claim is changed.

        It is shown with the queue that the claim came from; where there is no such claim, with the task's own.
        """
        twin = copy.copy(self)
        twin._check = check  # noqa: SLF001 - its own class
        return twin

    def claim(self, worker_filter: WorkerFilter, limit: int = 1) -> list[WorkerClaim]:
        """Claim up to so many runs; see `WorkQueue.claim`."""
        return self._work_queue.claim(worker_filter, limit)

    # ── What becomes of a claim: in the worker's own process ─────────────────────────────────────────────────────

    def start(self, claim: WorkerClaim) -> StartedAttempt | None:
        """Return a claimed run, ready for its handler to be called; None if its lease has ended already."""
        with self._defer_dispatch_on_outage(claim.stored.task.id):
            return self._attempt_runner.start(claim.stored, claim.run)
        return None

    def invoke_handler(self, attempt: StartedAttempt) -> AttemptReport:
        """Call the handler, and return how that ended."""
        return self._attempt_runner.invoke_handler(attempt)

    def finish(self, attempt: StartedAttempt, report: AttemptReport) -> Task | None:
        """Commit how an attempt ended, and send what follows; None if the lease was lost, and the result is dropped.

        Raises:
            StoreUnavailable: Whether it was committed is not known; asking again is safe.
        """
        finished = self._attempt_runner.commit_outcome(attempt, report)
        self._dispatch_after_finish(attempt.claimed_run, attempt.run, finished, attempt.sent_wakeups)
        if finished is None and attempt.run.lease is not None:  # or a commit of which no answer came has ended it
            with suppress(LeaseLost, NotFound):
                return self._replay_of_finished(
                    attempt.claimed_run.task, attempt.run.execution_id, attempt.run.lease.token
                )
        return finished

    def release(self, attempt: StartedAttempt, reason: str) -> Task | None:
        """Let another worker run it; that costs no attempt, and it keeps its place. None if the lease was lost."""
        return self._release(attempt.claimed_run, attempt.run, attempt.context.output.progress, reason)

    # ── What becomes of a claim: elsewhere ───────────────────────────────────────────────────────────────────────

    def heartbeat(
        self, task_id: str, execution_id: str, lease_token: str, progress: Sequence[ProgressNote] | None = None
    ) -> LeaseState:
        """Renew the lease, and put the progress in the place of what was said; say if it is lost or not wanted.

        Raises:
            NotFound: There is no such task.
        """
        stored, run = self._load_claim(task_id, execution_id, lease_token)
        if run is None:
            return LeaseState(None, is_cancelled=True)
        return self._attempt_runner.claimed_run(stored, run).renew(run.progress if progress is None else progress)

    def finish_by_token(self, task_id: str, execution_id: str, lease_token: str, report: AttemptReport) -> Task:
        """Commit how an attempt ended, and send what follows. Safe to repeat: what was said first counts.

        The progress that heartbeats have said stays if the report has none.

        Raises:
            LeaseLost: It is no longer the caller's to end.
            NotFound: There is no such task.
        """
        stored, run = self._load_claim(task_id, execution_id, lease_token)
        if run is None:
            return self._replay_of_finished(stored.task, execution_id, lease_token)
        held = self._attempt_runner.claimed_run(stored, run)
        finished = held.finish(replace(report, progress=report.progress or run.progress), self._random)
        self._dispatch_after_finish(held, run, finished)
        return finished or self._replay_of_finished(held.task, execution_id, lease_token)

    def release_by_token(
        self,
        task_id: str,
        execution_id: str,
        lease_token: str,
        reason: str,
        progress: Sequence[ProgressNote] | None = None,
    ) -> Task:
        """Let another worker run it; that costs no attempt, and it keeps its place. Safe to repeat.

        Raises:
            LeaseLost: It is no longer the caller's.
            NotFound: There is no such task.
        """
        stored, run = self._load_claim(task_id, execution_id, lease_token)
        if run is None:
            return self._replay_of_finished(stored.task, execution_id, lease_token)
        held = self._attempt_runner.claimed_run(stored, run)
        released = self._release(held, run, run.progress if progress is None else progress, reason)
        return released or self._replay_of_finished(held.task, execution_id, lease_token)

    def _load_claim(self, task_id: str, execution_id: str, lease_token: str) -> tuple[VersionedTask, Run | None]:
        """Return the task, and the run if it is this claim's; shown to the check with the queue that it came from.

        A task that is being deleted is there only for those who work on it: their lock is theirs until they have ended.
        """
        stored = self._store.load(task_id)
        if stored is None:
            raise NotFound("task", task_id)
        run = stored.task.find_run(execution_id)
        if (
            run
            and run.lease
            and hmac.compare_digest(lease_fingerprint(run.lease.token), lease_fingerprint(lease_token))
        ):
            queue = run.lease.queue
        else:
            run, queue = None, stored.task.pull.queue if stored.task.pull else None
        if self._check is not None:
            self._check(stored.task, queue)
        if run is None and stored.task.deleted_at is not None:
            raise NotFound("task", task_id)
        return stored, run

    def _replay_of_finished(self, task: Task, execution_id: str, lease_token: str) -> Task:
        """Return the task if this claim was ended by the same request before. Raises LeaseLost if not, or NotFound."""
        if task.deleted_at is not None:
            raise NotFound("task", task.id)
        run, record = task.find_run(execution_id), self._store.load_execution(task.id, execution_id)
        mark = lease_fingerprint(lease_token)
        attempts = (*(run.attempts if run else ()), *(record.attempts if record else ()))
        was_released = run is not None and run.released_claim == mark
        if not was_released and not any(each.claim == mark and each.status is not _LEASE_EXPIRED for each in attempts):
            raise LeaseLost(execution_id)
        with self._defer_dispatch_on_outage(task.id):  # whoever committed it may have died before it sent what follows
            self._attempt_runner.dispatch_wakeups(task)
            self._attempt_runner.notify_parent(task)
        return task

    def _release(self, claimed_run: ClaimedRun, run: Run, progress: Sequence[ProgressNote], reason: str) -> Task | None:
        released = claimed_run.release(progress, reason)
        if released is not None:
            self._dispatch_after_finish(claimed_run, run, released)
        return released

    def _dispatch_after_finish(
        self, claimed_run: ClaimedRun, run: Run, finished: Task | None, sent_wakeups: tuple[WakeUp, ...] = ()
    ) -> None:
        with self._defer_dispatch_on_outage(claimed_run.task.id):
            self._attempt_runner.dispatch_after_finish(claimed_run, run, finished, sent_wakeups)

    @contextmanager
    def _defer_dispatch_on_outage(self, task_id: str) -> Iterator[None]:
        """Leave to the sweep what cannot be sent now: no queue delivers this again, as it does an executor's work."""
        try:
            yield
        except QueueUnavailable as error:
            log.warning("deferred: %s", error, extra={"action": "deferred", "taskId": task_id})
            # Failing that, somebody else has changed and sent it, or the sweep finds it as soon as it is overdue.
            with suppress(VersionConflict, StoreUnavailable):
                stored = self._store.load(task_id)
                if stored is not None:
                    self._store.commit(with_changes(stored.task, self._clock.now(), deferred=True), stored.version)
