"""A claimed run, from its claim to all that follows from its end: whoever has claimed it, an executor or a worker.

Send what may run beside it, call the handler under the lease, commit how it ended, send what comes next. A crash
between any two of these is mended by a redelivery or by the sweep, from the last commit.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.documents.outcome import Fail, Suspend
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.planning import WakeUp, executor_wakeups
from cloudsched.engine.durable.journal_cursor import OUTAGE_PAUSE
from cloudsched.engine.execution.claimed_run import ClaimedRun
from cloudsched.engine.execution.invoke import call_handler, truncate_text
from cloudsched.engine.handlers.context import Context
from cloudsched.errors import BlobsUnavailable, InvalidInput, QueueUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.dispatch.sender import DispatchSender
    from cloudsched.engine.execution.durable_services import DurableServices
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, VersionedTask
    from cloudsched.engine.ports.tracing import Tracer
    from cloudsched.engine.state.locks import Locks

log = logging.getLogger(__name__)


class DeliveryAction(StrEnum):
    """What a delivery came to."""

    DROPPED = "dropped"
    HOPPED = "hopped"
    RECORDED = "recorded"
    """Nothing was run, but skipped, expired or lapsed runs were recorded."""
    WAITING = "waiting"
    """Its lock is held by others; it will be woken when it is free."""
    RAN = "ran"
    SUPERSEDED = "superseded"
    """The handler ran, but its lease had been taken over, or its task deleted: the result was dropped."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """What a delivery came to, and why. Each of them is a success to the queue."""

    action: DeliveryAction
    reason: str


@dataclass(frozen=True, slots=True)
class StartedAttempt:
    """A run whose handler may be called now."""

    claimed_run: ClaimedRun
    run: Run
    context: Context
    sent_wakeups: tuple[WakeUp, ...]
    """What was sent when it began, and need not be sent at its end."""


class AttemptRunner:
    """Carries out runs that have been claimed."""

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        *,
        store: Store,
        durable: DurableServices,
        locks: Locks,
        sender: DispatchSender,
        clock: Clock,
        registry: Registry,
        random: Random,
        tracer: Tracer,
    ) -> None:
        self._store = store
        self._durable = durable
        self._locks = locks
        self._sender = sender
        self._clock = clock
        self._registry = registry
        self._random = random
        self._tracer = tracer

    def run(self, claimed: VersionedTask, run: Run) -> DeliveryResult:
        """Call the handler under the lease, and commit how it ended.

        Raises:
            StoreUnavailable: The store did not answer; deliver it again.
            QueueUnavailable: What follows could not be sent; deliver it again.
        """
        begun = self.start(claimed, run)
        if begun is None:
            return DeliveryResult(DeliveryAction.SUPERSEDED, "its lease ended before the handler could be called")
        return self.finish(begun, self.invoke_handler(begun))

    def start(self, claimed: VersionedTask, run: Run) -> StartedAttempt | None:
        """Send what may run beside it, and return the run, ready; None if its lease has ended already."""
        try:
            self.dispatch_wakeups(claimed.task)
            sent = executor_wakeups(claimed.task)
        except QueueUnavailable:
            sent = ()  # the handler need not wait for the queue; its end sends this too
        now = self._clock.now()
        if run.wake_at <= now:  # this process stood still for too long: the next one is to close this attempt
            lapse = WakeUp(run.execution_id, run.scheduled_for, run.attempt, run.wake_at)
            self._sender.send(claimed.task, [lapse], now)
            return None
        held = self.claimed_run(claimed, run)
        context = Context(claimed.task, run, self._clock, held.renew, self._durable.create_durable_run(held, run))
        return StartedAttempt(held, run, context, sent)

    def invoke_handler(self, attempt: StartedAttempt) -> AttemptReport:
        """Call the handler, and return how that ended."""
        task, run = attempt.claimed_run.task, attempt.run
        with self._tracer.span(f"handler {task.handler}", execution_id=run.execution_id, attempt=run.attempt):
            return call_handler(self._registry, attempt.context)

    def claimed_run(self, claimed: VersionedTask, run: Run) -> ClaimedRun:
        """Return what a run's holder changes it by."""
        return ClaimedRun(
            store=self._store,
            clock=self._clock,
            registry=self._registry,
            locks=self._locks,
            committer=self._durable.committer,
            claimed=claimed,
            run=run,
        )

    def finish(self, attempt: StartedAttempt, report: AttemptReport) -> DeliveryResult:
        """Commit how a run ended, and send what follows."""
        finished = self.commit_outcome(attempt, report)
        self.dispatch_after_finish(attempt.claimed_run, attempt.run, finished, attempt.sent_wakeups)
        if finished is None:
            return DeliveryResult(
                DeliveryAction.SUPERSEDED, "the run was taken over or its task deleted; its result is dropped"
            )
        return DeliveryResult(DeliveryAction.RAN, f"attempt {attempt.run.attempt}: {type(report.outcome).__name__}")

    def commit_outcome(self, attempt: StartedAttempt, report: AttemptReport) -> Task | None:
        """Commit how a run ended, and return its task as it is then; None if the lease was lost before.

        Where its steps are too many for its record, and their place is away, it waits for that, and is replayed.
        An end that the store refuses is a failure, without what may have been too much: it would be refused each time.
        """
        try:
            return self._commit_or_fail(attempt, report)
        except BlobsUnavailable as error:
            waiting = Suspend(str(error), self._clock.now() + OUTAGE_PAUSE)
            known = attempt.context.durable_run.entries_or_none
            return attempt.claimed_run.finish(replace(report, outcome=waiting, error=None), self._random, known)

    def _commit_or_fail(self, attempt: StartedAttempt, report: AttemptReport) -> Task | None:
        held, known = attempt.claimed_run, attempt.context.durable_run.entries_or_none
        running = partial(self._calls_in_progress, held.task.id, attempt.run.execution_id)
        try:
            finished = held.finish(report, self._random, known, running)
        except InvalidInput as error:
            about = {"taskId": held.task.id, "executionId": attempt.run.execution_id}
            log.exception("The store rejected the result", extra={"action": "result_rejected", **about})
            reason = f"The store does not take how it ended ({type(report.outcome).__name__}): {error}"
            refused = replace(report, outcome=Fail(truncate_text(reason)), error=None, notices=(), progress=())
            return held.finish(refused, self._random, known)
        if held.has_calls_in_progress:
            self._durable.child_tasks.recheck_awaited_calls(held.task, attempt.run.execution_id)
        return finished

    def _calls_in_progress(self, task_id: str, execution_id: str, calls: tuple[int, ...]) -> Collection[int]:
        """Return some of the calls that are under way; none if that cannot be read, and their parent looks itself."""
        with suppress(StoreUnavailable):
            return self._durable.child_tasks.calls_in_progress(task_id, execution_id, calls)
        return ()

    def dispatch_after_finish(
        self, claimed_run: ClaimedRun, run: Run, finished: Task | None, sent_wakeups: tuple[WakeUp, ...] = ()
    ) -> None:
        """Send what follows from the end of a run: `finished` is its task then, None if the lease was lost before."""
        if finished is None:
            self.dispatch_wakeups(
                claimed_run.task
            )  # it may have been this result whose commit took effect and then failed
            if run.lock_key is not None:
                self._locks.cancel_wait(run.lock_key, claimed_run.task.id, run.execution_id, self._clock.now())
            self.notify_parent(claimed_run.task)
            return
        self.dispatch_wakeups(finished, already_sent=sent_wakeups)
        self._locks.notify(claimed_run.granted, self._clock.now())
        self.notify_parent(finished)

    def notify_parent(self, task: Task) -> None:
        """Tell a task's parent that it has ended, and cancel what is below a task that was cancelled."""
        self._durable.child_tasks.notify_parent(task)
        if task.status is TaskStatus.CANCELLED and task.deferred:
            self._durable.child_tasks.cancel_descendants(task)

    def dispatch_wakeups(self, task: Task, already_sent: tuple[WakeUp, ...] = ()) -> None:
        """Send a task's wakes, except those that are known to have been sent and lie ahead.

        What was sent and is due has been delivered, perhaps when all the task's places were taken: then it was dropped.
        """
        now = self._clock.now()
        ahead = [wake for wake in already_sent if wake.due_at > now]
        self._sender.send(task, [wake for wake in executor_wakeups(task) if wake not in ahead], now)
