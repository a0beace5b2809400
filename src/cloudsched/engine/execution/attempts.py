"""Run one attempt that an executor or a worker has claimed, from the claim to everything that follows from its end.

Dispatch what may run concurrently, call the handler under the lease, commit the outcome, dispatch what comes next.
After a crash between any two of these, a redelivery or the sweep continues from the last commit.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.transitions.finish import AttemptReport, on_outcome
from cloudsched.domain.transitions.outcome import Done, Fail, Suspend
from cloudsched.domain.transitions.planning import WakeUp, executor_wakeups
from cloudsched.engine.durable.journal_cursor import OUTAGE_PAUSE
from cloudsched.engine.execution.durable_services import DurableServices
from cloudsched.engine.execution.follow_ups import FollowUps, plan_follow_ups
from cloudsched.engine.execution.invoke import call_handler, truncate_text
from cloudsched.engine.handlers.context import Context
from cloudsched.engine.ports.procedure import LongCall, Procedure, run_procedure
from cloudsched.engine.ports.store import NO_GRANTS, Commit, Committed, TaskWrite, VersionedTask
from cloudsched.engine.state.attempt_log import AttemptLines, AttemptLog
from cloudsched.errors import BlobsUnavailable, InvalidInput, QueueUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.claimed_run import ClaimedRun
    from cloudsched.engine.ports.tracing import Tracer
    from cloudsched.engine.state.deliveries import DeliveryPlanner


@dataclass(frozen=True, slots=True)
class EndServices:
    """What the end of an attempt is decided with."""

    engine: EngineContext
    child_tasks: ChildTasks
    deliveries: DeliveryPlanner


class AttemptEnd:
    """How one attempt ends, on whatever version of its task is read.

    Args:
        services: What it is decided with.
        run: The run as it was claimed.
        report: The outcome, with what the handler reported.
        journal: The whole journal of the run, if it has been loaded.
    """

    def __init__(
        self, services: EndServices, run: Run, report: AttemptReport, journal: Sequence[JournalEntry] | None = None
    ) -> None:
        self._services = services
        self._run = run
        self.report = report
        self._journal = journal
        self._follow_ups: FollowUps | None = None
        self._has_decided = False

    def decide(self, task: Task, base: VersionedTask) -> Commit | None:
        """Return what to commit; None if the lease is no longer held.

        At first, what it creates is taken to be new. If this is called again, there was a conflict: then that is read.

        Raises:
            InvalidInput: A follow-up is refused.
        """
        engine, run = self._services.engine, task.find_run(self._run.execution_id)
        report = self._services.deliveries.require_reach(task, self.report) if task.delivery_channels else self.report
        is_repeat, self._has_decided = self._has_decided, True
        if run is None or self._run.lease is None:
            return None
        if isinstance(report.outcome, Done) and report.outcome.then:
            if self._follow_ups is None:
                children, drafts = self._services.child_tasks, report.outcome.then
                self._follow_ups = plan_follow_ups(engine, children, task, self._run, drafts)
            elif is_repeat:
                self._follow_ups.reload()
        now, suspends = engine.clock.now(), isinstance(report.outcome, Suspend) and run.call_finished_while_running
        calls = self._find_calls_in_progress(task, run) if suspends else ()
        transition = on_outcome(
            task, run.execution_id, self._run.lease.token_hash, report, now, engine.random, calls_in_progress=calls
        )
        if transition is None:
            return None
        writes: tuple[TaskWrite, ...] = ()
        if self._follow_ups is not None:
            transition, writes = self._follow_ups.apply(transition, run, now)
        deliveries = self._services.deliveries
        if task.delivery_channels or task.on_completion is not None:
            writes += deliveries.plan(task, run, report, now, records=transition.executions, is_repeat=is_repeat)
        delivered = None if task.delivery is None else deliveries.mark(task.delivery, report, is_repeat=is_repeat)
        holds_lock = self._run.lock_key is not None
        lock, grants = engine.locks.release(task.id, self._run, now) if holds_lock else (None, NO_GRANTS)
        return Commit.build(
            base,
            transition,
            lock=lock,
            others=writes,
            delivered=delivered,
            reads=0,
            journals={} if self._journal is None else {run.execution_id: self._journal},
            grants=grants,
            has_calls_in_progress=bool(calls),
        )

    def _find_calls_in_progress(self, task: Task, run: Run) -> Collection[int]:
        """Return which of the awaited calls are in progress, if one ended while the handler ran.

        None if that is unknown: their parent checks when it runs.
        """
        outcome = self.report.outcome
        if isinstance(outcome, Suspend) and outcome.calls:
            with suppress(StoreUnavailable):
                return self._services.child_tasks.calls_in_progress(task.id, run.execution_id, outcome.calls)
        return ()

    def to_failure(self, error: InvalidInput, task_id: str) -> AttemptEnd:
        """Return the end as a failure, since a follow-up or the outcome was refused, which would happen every time.

        It is without notices and progress, which may have been too large.
        """
        ids = {"taskId": task_id, "executionId": self._run.execution_id}
        log.error("The result was rejected", exc_info=error, extra={"action": "result_rejected", **ids})
        outcome = self.report.outcome
        is_refused = isinstance(outcome, Done) and outcome.then != () and error.field.startswith("then.")
        what = (
            "Its follow-ups are refused" if is_refused else f"The store rejected the outcome {type(outcome).__name__}"
        )
        failure = Fail(truncate_text(f"{what}: {error}"))
        return self._with_report(replace(self.report, outcome=failure, error=None, notices=(), progress=()))

    def to_suspension(self, error: BlobsUnavailable) -> AttemptEnd:
        """Return the end as a suspension until later, since the blob store has no room for the steps now."""
        outcome = Suspend(str(error), self._services.engine.clock.now() + OUTAGE_PAUSE)
        return self._with_report(replace(self.report, outcome=outcome, error=None))

    def _with_report(self, report: AttemptReport) -> AttemptEnd:
        return AttemptEnd(self._services, self._run, report, self._journal)


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
    SWEPT = "swept"
    """It was no dispatch of a task, but one that sweeps a part of the store."""
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
    context: Context


class AttemptRunner:
    """Runs claimed attempts."""

    def __init__(
        self, engine: EngineContext, child_tasks: ChildTasks, deliveries: DeliveryPlanner, tracer: Tracer
    ) -> None:
        self._engine = engine
        self._child_tasks = child_tasks
        self._end_services = EndServices(engine, child_tasks, deliveries)
        self._durable = DurableServices(engine, child_tasks)
        self._tracer = tracer

    def run(self, claimed_run: ClaimedRun) -> Procedure[DeliveryResult]:
        """Run a claimed attempt: start it, call the handler, decide how it ends, commit that, dispatch what follows.

        Raises:
            StoreUnavailable: The store did not answer; deliver the dispatch again.
            QueueUnavailable: What follows could not be dispatched; deliver the dispatch again.
        """
        attempt = self.start(claimed_run)
        if attempt is None:
            why = "the lease expired before the handler could be called"
            return DeliveryResult(DeliveryAction.SUPERSEDED, why)
        report: AttemptReport = yield LongCall(partial(self.invoke, attempt), claimed_run.begun_task.handler)
        end = self.decide(attempt, report)
        committed = yield from self.commit(claimed_run, end)
        self.dispatch(claimed_run, committed)
        if committed is None:
            why = "the run was taken over or its task deleted; its result is dropped"
            return DeliveryResult(DeliveryAction.SUPERSEDED, why)
        outcome = type(end.report.outcome).__name__
        return DeliveryResult(DeliveryAction.RAN, f"attempt {claimed_run.run.attempt}: {outcome}")

    def start(self, claimed_run: ClaimedRun) -> StartedAttempt | None:
        """Dispatch what may run concurrently, and return the attempt to run; None if its lease has already expired."""
        task, run = claimed_run.begun_task, claimed_run.run
        with suppress(QueueUnavailable):  # the handler need not wait for the queue: `dispatch` sends these as well
            claimed_run.sent_wakeups = self.dispatch_wakeups(claimed_run.task)
        now = self._engine.clock.now()
        # guard: late start
        if run.wake_at <= now:  # this process stood still for too long: the next delivery records the expired lease
            expiry = WakeUp(run.execution_id, run.scheduled_for, run.attempt, run.wake_at)
            self._engine.sender.send(task, [expiry], now)
            return None
        durable_run = self._durable.create_durable_run(claimed_run)
        claimed_run.log = found = self._engine.logs.begin(run, self._engine.clock)
        if found is not None:
            found.is_muted = lambda: durable_run.is_replaying
        return StartedAttempt(claimed_run, Context(task, run, self._engine.clock, claimed_run.renew, durable_run))

    def invoke(self, attempt: StartedAttempt) -> AttemptReport:
        """Call the handler in this thread, and return a report of how the attempt ended."""
        return run_procedure(self.plan_call(attempt))

    def plan_call(self, attempt: StartedAttempt) -> Procedure[AttemptReport]:
        """Return the procedure that calls the handler, and returns a report of how the attempt ended."""
        task, run = attempt.claimed_run.begun_task, attempt.claimed_run.run
        ids: dict[str, Any] = {"taskId": task.id, "attempt": run.attempt}
        span = self._tracer.span(f"handler {task.handler}", execution_id=run.execution_id, **ids)
        lines = attempt.claimed_run.log
        with span, AttemptLines(task, run.execution_id, run.attempt, lines if isinstance(lines, AttemptLog) else None):
            return (yield from call_handler(self._engine.registry, attempt.context, attempt.claimed_run.task.handler))

    def decide(self, attempt: StartedAttempt, report: AttemptReport) -> AttemptEnd:
        """Return how the attempt ends, on whatever version of its task the commit finds."""
        journal = attempt.context.durable_run.entries_or_none
        return AttemptEnd(self._end_services, attempt.claimed_run.run, report, journal)

    def commit(self, claimed_run: ClaimedRun, end: AttemptEnd) -> Procedure[Committed | None]:
        """Commit how an attempt ended; None if the lease was lost before.

        If the steps are too large for the record and the blob store is unavailable, the run is suspended until later,
        and then replayed. If a follow-up is refused or the store rejects the outcome, which would happen every time,
        the attempt is recorded as a failure.
        """
        try:
            try:
                return (yield from claimed_run.finish(end.decide))
            except InvalidInput as error:
                return (yield from claimed_run.finish(end.to_failure(error, claimed_run.task.id).decide))
        except BlobsUnavailable as error:
            return (yield from claimed_run.finish(end.to_suspension(error).decide))

    def dispatch(self, claimed_run: ClaimedRun, committed: Committed | None) -> None:
        """Dispatch what follows from the end of an attempt; `committed` is None if the lease was lost before.

        Raises:
            QueueUnavailable: Something could not be dispatched.
        """
        run = claimed_run.run
        if committed is None:
            # The commit of this very result may have taken effect although its answer was lost.
            self.dispatch_wakeups(claimed_run.task)
            if run.lock_key is not None:
                self._engine.locks.waits.cancel(
                    run.lock_key, claimed_run.task.id, run.execution_id, self._engine.clock.now()
                )
            self.notify_parent(claimed_run.task)
            return
        commit, task = committed.commit, committed.stored.task
        if commit.has_calls_in_progress:
            self._child_tasks.recheck_awaited_calls(task, run.execution_id)
        if commit.others:
            self._dispatch_others(commit.others)
        self.dispatch_wakeups(task, already_sent=claimed_run.sent_wakeups)  # guard: next dispatch
        if commit.grants is not NO_GRANTS:
            self._engine.locks.updates.notify(commit.grants, self._engine.clock.now())
        self.notify_parent(task)

    # ── Parts of these, and what else the holder of a claim does ─────────────────────────────────────────────────────

    def decide_by_report(self, claimed_run: ClaimedRun, report: AttemptReport) -> AttemptEnd:
        """Return how an attempt ends that another process has run, and reports."""
        return AttemptEnd(self._end_services, claimed_run.run, report)

    def _dispatch_others(self, writes: Sequence[TaskWrite]) -> None:
        """Send the dispatches of the follow-ups and deliveries of a success; what fails is left to the sweep."""
        for each in writes:
            had_turn = each.base is not None and any(run.lock_turn_until for run in each.base.task.runs)
            try:
                self.dispatch_wakeups(each.task)
            except QueueUnavailable as error:
                log.warning("deferred: %s", error, extra={"action": "deferred", "taskId": each.task.id})
                self._engine.committer.defer(each.task.id, self._engine.clock.now())
            with suppress(StoreUnavailable, QueueUnavailable):
                if each.base is not None and had_turn and each.base.task.revision != each.task.revision:
                    self._engine.locks.waits.cancel_task(each.base.task, self._engine.clock.now())  # as in `Scheduler`
                self.notify_parent(each.task)

    def notify_parent(self, task: Task) -> None:
        """Notify the parent of a task that has ended, and cancel the calls below a task that was cancelled."""
        if task.parent is not None:
            self._child_tasks.notify_parent(task)
        if task.status is TaskStatus.CANCELLED and task.deferred:
            self._child_tasks.cancel_descendants(task)

    def dispatch_wakeups(self, task: Task, already_sent: tuple[WakeUp, ...] = ()) -> tuple[WakeUp, ...]:
        """Send dispatches for a task's wake-ups, except for future ones that have already been sent.

        Those that were sent and are due are sent again: they may have been delivered, and dropped, while the task
        already ran as many executions as it allows. Returns all wake-ups of the task.
        """
        wakeups = executor_wakeups(task)
        if wakeups:
            now = self._engine.clock.now()
            future = [wake for wake in already_sent if wake.due_at > now]
            self._engine.sender.send(task, [wake for wake in wakeups if wake not in future], now)
        return wakeups
