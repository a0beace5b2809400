"""Run one attempt that an executor or a worker has claimed, from the claim to everything that follows from its end.

Dispatch what may run concurrently, call the handler under the lease, commit the outcome, dispatch what comes next.
After a crash between any two of these, a redelivery or the sweep continues from the last commit.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.outcome import Done, Fail, Suspend
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.planning import WakeUp, executor_wakeups
from cloudsched.engine.durable.journal_cursor import OUTAGE_PAUSE
from cloudsched.engine.durable.procedure import run_procedure
from cloudsched.engine.execution.claimed_run import ClaimedRun
from cloudsched.engine.execution.durable_services import DurableServices
from cloudsched.engine.execution.follow_ups import FollowUpPlanner
from cloudsched.engine.execution.invoke import call_handler, truncate_text
from cloudsched.engine.handlers.context import Context
from cloudsched.engine.state.commits import mark_deferred
from cloudsched.errors import BlobsUnavailable, InvalidInput, QueueUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Collection

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.children.child_tasks import ChildTasks
    from cloudsched.engine.delivery.planner import DeliveryPlanner
    from cloudsched.engine.durable.procedure import Procedure
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.store import VersionedTask
    from cloudsched.engine.ports.tracing import Tracer

log = logging.getLogger(__name__)


class DeliveryAction(StrEnum):
    """What a delivery did."""

    DROPPED = "dropped"
    HOPPED = "hopped"
    RECORDED = "recorded"
    """No handler was called, but skipped or expired runs, or ones whose lease expired, were recorded."""
    WAITING = "waiting"
    """Others hold its lock. It is dispatched again when there is a place."""
    RAN = "ran"
    SUPERSEDED = "superseded"
    """The run's lease was lost, or its task was deleted: any result was dropped."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What a delivery did, and why. The queue counts each of these as a success, and does not redeliver."""

    action: DeliveryAction
    reason: str


@dataclass(frozen=True, slots=True)
class StartedAttempt:
    """A run whose handler may be called now."""

    claimed_run: ClaimedRun
    run: Run
    context: Context
    sent_wakeups: tuple[WakeUp, ...]
    """What was dispatched at the start, and need not be dispatched again at the end."""


class AttemptRunner:
    """Runs claimed attempts."""

    def __init__(
        self, engine: EngineContext, child_tasks: ChildTasks, deliveries: DeliveryPlanner, tracer: Tracer
    ) -> None:
        self._engine = engine
        self._child_tasks = child_tasks
        self._deliveries = deliveries
        self._durable = DurableServices(engine, child_tasks)
        self._follow_ups = FollowUpPlanner(engine, child_tasks)
        self._tracer = tracer

    def run(self, claimed: VersionedTask, run: Run) -> DeliveryResult:
        """Call the handler under the lease, commit the outcome, and dispatch what follows.

        Raises:
            StoreUnavailable: The store did not answer; deliver the dispatch again.
            QueueUnavailable: What follows could not be dispatched; deliver the dispatch again.
        """
        attempt = self.start(claimed, run)
        if attempt is None:
            return DeliveryResult(DeliveryAction.SUPERSEDED, "the lease expired before the handler could be called")
        return self.finish(attempt, run_procedure(self.plan_call(attempt)))

    def start(self, claimed: VersionedTask, run: Run) -> StartedAttempt | None:
        """Dispatch what may run concurrently, and return the attempt to run; None if its lease has already expired."""
        try:
            self.dispatch_wakeups(claimed.task)
            sent = executor_wakeups(claimed.task)
        except QueueUnavailable:
            sent = ()  # the handler need not wait for the queue: `finish` dispatches these as well
        now = self._engine.now()
        if run.wake_at <= now:  # this process was suspended for too long: the next delivery records the expired lease
            expiry = WakeUp(run.execution_id, run.scheduled_for, run.attempt, run.wake_at)
            self._engine.sender.send(claimed.task, [expiry], now)
            return None
        claimed_run = self.claimed_run(claimed, run)
        durable_run = self._durable.create_durable_run(claimed_run, run)
        context = Context(claimed.task, run, self._engine.clock, claimed_run.renew, durable_run)
        return StartedAttempt(claimed_run, run, context, sent)

    def plan_call(self, attempt: StartedAttempt) -> Procedure[AttemptReport]:
        """Return the procedure that calls the handler, and returns a report of how the attempt ended."""
        task, run = attempt.claimed_run.task, attempt.run
        ids: dict[str, Any] = {"taskId": task.id, "attempt": run.attempt}
        with self._tracer.span(f"handler {task.handler}", execution_id=run.execution_id, **ids):
            return (yield from call_handler(self._engine.registry, attempt.context))

    def claimed_run(self, claimed: VersionedTask, run: Run) -> ClaimedRun:
        """Return the object through which the holder of the lease changes its run."""
        return ClaimedRun(self._engine, claimed, run)

    def finish(self, attempt: StartedAttempt, report: AttemptReport) -> DeliveryResult:
        """Commit the outcome of an attempt, and dispatch what follows."""
        finished = self.commit_outcome(attempt, report)
        self.dispatch_after_finish(attempt.claimed_run, attempt.run, finished, attempt.sent_wakeups)
        if finished is None:
            return DeliveryResult(
                DeliveryAction.SUPERSEDED, "the run was taken over or its task deleted; its result is dropped"
            )
        return DeliveryResult(DeliveryAction.RAN, f"attempt {attempt.run.attempt}: {type(report.outcome).__name__}")

    def commit_outcome(self, attempt: StartedAttempt, report: AttemptReport) -> Task | None:
        """Commit the outcome of an attempt; return the task as committed, or None if the lease was lost before.

        If the steps are too large for the record and the blob store is unavailable, the run is suspended until later,
        and then replayed. If a follow-up is refused or the store rejects the outcome, which would happen every time,
        the attempt is recorded as a failure, without its notices and progress, which may have been too large.
        """
        try:
            return self._commit_or_fail(attempt, report)
        except BlobsUnavailable as error:
            suspend = Suspend(str(error), self._engine.now() + OUTAGE_PAUSE)
            journal = attempt.context.durable_run.entries_or_none
            return attempt.claimed_run.finish(
                replace(report, outcome=suspend, error=None), self._engine.random, journal
            )

    def _commit_or_fail(self, attempt: StartedAttempt, report: AttemptReport) -> Task | None:
        claimed_run, journal = attempt.claimed_run, attempt.context.durable_run.entries_or_none
        in_progress = partial(self._calls_in_progress, claimed_run.task.id, attempt.run.execution_id)
        drafts = report.outcome.then if isinstance(report.outcome, Done) else ()
        try:
            follow_ups = self._follow_ups.plan(claimed_run.task, attempt.run, drafts)
            finished = claimed_run.finish(
                report, self._engine.random, journal, in_progress, follow_ups, self._deliveries
            )
        except InvalidInput as error:
            ids = {"taskId": claimed_run.task.id, "executionId": attempt.run.execution_id}
            log.exception("The result was rejected", extra={"action": "result_rejected", **ids})
            what = "Its follow-ups are refused" if drafts and error.field.startswith("then.") else None
            reason = f"{what or f'The store rejected the outcome {type(report.outcome).__name__}'}: {error}"
            failure = replace(report, outcome=Fail(truncate_text(reason)), error=None, notices=(), progress=())
            return claimed_run.finish(failure, self._engine.random, journal)
        if claimed_run.has_calls_in_progress:
            self._child_tasks.recheck_awaited_calls(claimed_run.task, attempt.run.execution_id)
        return finished

    def _calls_in_progress(self, task_id: str, execution_id: str, calls: tuple[int, ...]) -> Collection[int]:
        """Return which of the calls are in progress; none if that is unknown: their parent checks when it runs."""
        with suppress(StoreUnavailable):
            return self._child_tasks.calls_in_progress(task_id, execution_id, calls)
        return ()

    def dispatch_after_finish(
        self, claimed_run: ClaimedRun, run: Run, finished: Task | None, sent_wakeups: tuple[WakeUp, ...] = ()
    ) -> None:
        """Dispatch what follows from the end of an attempt.

        Args:
            claimed_run: The run, as its holder changes it.
            run: The run as it was claimed.
            finished: The task as committed; None if the lease was lost before.
            sent_wakeups: What was dispatched at the start.

        Raises:
            QueueUnavailable: Something could not be dispatched.
        """
        if finished is None:
            # The commit of this very result may have taken effect although its answer was lost.
            self.dispatch_wakeups(claimed_run.task)
            if run.lock_key is not None:
                self._engine.locks.cancel_wait(run.lock_key, claimed_run.task.id, run.execution_id, self._engine.now())
            self.notify_parent(claimed_run.task)
            return
        self._dispatch_follow_ups(claimed_run)
        self.dispatch_wakeups(finished, already_sent=sent_wakeups)
        self._engine.locks.notify(claimed_run.granted, self._engine.now())
        self.notify_parent(finished)

    def _dispatch_follow_ups(self, claimed_run: ClaimedRun) -> None:
        """Send the dispatches of the follow-ups that a success has created; what fails is left to the sweep."""
        for each in claimed_run.follow_ups:
            had_turn = each.stored is not None and any(run.lock_turn_until for run in each.stored.task.runs)
            try:
                self.dispatch_wakeups(each.task)
            except QueueUnavailable as error:
                log.warning("deferred: %s", error, extra={"action": "deferred", "taskId": each.task.id})
                mark_deferred(self._engine.store, each.task.id, self._engine.now())
            with suppress(StoreUnavailable, QueueUnavailable):
                if each.stored is not None and had_turn and each.stored.task.revision != each.task.revision:
                    self._engine.locks.cancel_waits_of_task(each.stored.task, self._engine.now())  # as in `Scheduler`
                self.notify_parent(each.task)

    def notify_parent(self, task: Task) -> None:
        """Notify the parent of a task that has ended, and cancel the calls below a task that was cancelled."""
        self._child_tasks.notify_parent(task)
        if task.status is TaskStatus.CANCELLED and task.deferred:
            self._child_tasks.cancel_descendants(task)

    def dispatch_wakeups(self, task: Task, already_sent: tuple[WakeUp, ...] = ()) -> None:
        """Send dispatches for a task's wake-ups, except for future ones that have already been sent.

        Those that were sent and are due are sent again: they may have been delivered, and dropped, while the task
        already ran as many executions as it allows.
        """
        now = self._engine.now()
        future = [wake for wake in already_sent if wake.due_at > now]
        self._engine.sender.send(task, [wake for wake in executor_wakeups(task) if wake not in future], now)
