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
from cloudsched.domain.transitions.planning import Wake, wakes
from cloudsched.engine.durable.journal_cursor import PATIENCE
from cloudsched.engine.execution.claimed_run import Held
from cloudsched.engine.execution.invoke import call_handler, kept_text
from cloudsched.engine.handlers.context import Context
from cloudsched.errors import BlobsUnavailable, InvalidInput, QueueUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Collection
    from random import Random

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import Report
    from cloudsched.engine.dispatch.sender import Sender
    from cloudsched.engine.execution.durable_services import Durable
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, Stored
    from cloudsched.engine.ports.tracing import Tracer
    from cloudsched.engine.state.locks import Locks

log = logging.getLogger(__name__)


class Action(StrEnum):
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
class Verdict:
    """What a delivery came to, and why. Each of them is a success to the queue."""

    action: Action
    why: str


@dataclass(frozen=True, slots=True)
class Begun:
    """A run whose handler may be called now."""

    held: Held
    run: Run
    context: Context
    sent: tuple[Wake, ...]
    """What was sent when it began, and need not be sent at its end."""


class Runs:
    """Carries out runs that have been claimed."""

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        *,
        store: Store,
        durable: Durable,
        locks: Locks,
        sender: Sender,
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

    def carried_out(self, claimed: Stored, run: Run) -> Verdict:
        """Call the handler under the lease, and commit how it ended.

        Raises:
            StoreUnavailable: The store did not answer; deliver it again.
            QueueUnavailable: What follows could not be sent; deliver it again.
        """
        begun = self.begun(claimed, run)
        if begun is None:
            return Verdict(Action.SUPERSEDED, "its lease ended before the handler could be called")
        return self.ended(begun, self.reported(begun))

    def begun(self, claimed: Stored, run: Run) -> Begun | None:
        """Send what may run beside it, and return the run, ready; None if its lease has ended already."""
        try:
            self.send(claimed.task)
            sent = wakes(claimed.task)
        except QueueUnavailable:
            sent = ()  # the handler need not wait for the queue; its end sends this too
        now = self._clock.now()
        if run.wakes_at <= now:  # this process stood still for too long: the next one is to close this attempt
            lapse = Wake(run.execution_id, run.scheduled_for, run.attempt, run.wakes_at)
            self._sender.send(claimed.task, [lapse], now)
            return None
        held = self.held(claimed, run)
        context = Context(claimed.task, run, self._clock, held.renew, self._durable.journal(held, run))
        return Begun(held, run, context, sent)

    def reported(self, begun: Begun) -> Report:
        """Call the handler, and return how that ended."""
        task, run = begun.held.task, begun.run
        with self._tracer.span(f"handler {task.handler}", execution_id=run.execution_id, attempt=run.attempt):
            return call_handler(self._registry, begun.context)

    def held(self, claimed: Stored, run: Run) -> Held:
        """Return what a run's holder changes it by."""
        return Held(
            store=self._store,
            clock=self._clock,
            registry=self._registry,
            locks=self._locks,
            committer=self._durable.committer,
            claimed=claimed,
            run=run,
        )

    def ended(self, begun: Begun, report: Report) -> Verdict:
        """Commit how a run ended, and send what follows."""
        finished = self.committed(begun, report)
        self.follow_end(begun.held, begun.run, finished, begun.sent)
        if finished is None:
            return Verdict(Action.SUPERSEDED, "the run was taken over or its task deleted; its result is dropped")
        return Verdict(Action.RAN, f"attempt {begun.run.attempt}: {type(report.outcome).__name__}")

    def committed(self, begun: Begun, report: Report) -> Task | None:
        """Commit how a run ended, and return its task as it is then; None if the lease was lost before.

        Where its steps are too many for its record, and their place is away, it waits for that, and is replayed.
        An end that the store refuses is a failure, without what may have been too much: it would be refused each time.
        """
        try:
            return self._finished(begun, report)
        except BlobsUnavailable as error:
            waiting = Suspend(str(error), self._clock.now() + PATIENCE)
            known = begun.context.journal.known
            return begun.held.finish(replace(report, outcome=waiting, error=None), self._random, known)

    def _finished(self, begun: Begun, report: Report) -> Task | None:
        held, known = begun.held, begun.context.journal.known
        running = partial(self._running, held.task.id, begun.run.execution_id)
        try:
            finished = held.finish(report, self._random, known, running)
        except InvalidInput as error:
            about = {"taskId": held.task.id, "executionId": begun.run.execution_id}
            log.exception("end refused", extra={"action": "end refused", **about})
            reason = f"The store does not take how it ended ({type(report.outcome).__name__}): {error}"
            refused = replace(report, outcome=Fail(kept_text(reason)), error=None, notices=(), progress=())
            return held.finish(refused, self._random, known)
        if held.has_left_running:
            self._durable.nesting.look(held.task, begun.run.execution_id)
        return finished

    def _running(self, task_id: str, execution_id: str, calls: tuple[int, ...]) -> Collection[int]:
        """Return some of the calls that are under way; none if that cannot be read, and their parent looks itself."""
        with suppress(StoreUnavailable):
            return self._durable.nesting.running(task_id, execution_id, calls)
        return ()

    def follow_end(self, held: Held, run: Run, finished: Task | None, sent: tuple[Wake, ...] = ()) -> None:
        """Send what follows from the end of a run: `finished` is its task then, None if the lease was lost before."""
        if finished is None:
            self.send(held.task)  # it may have been this result whose commit took effect and then failed
            if run.lock_key is not None:
                self._locks.withdraw(run.lock_key, held.task.id, run.execution_id, self._clock.now())
            self.follow(held.task)
            return
        self.send(finished, besides=sent)
        self._locks.wake(held.woken, self._clock.now())
        self.follow(finished)

    def follow(self, task: Task) -> None:
        """Tell a task's parent that it has ended, and cancel what is below a task that was cancelled."""
        self._durable.nesting.tell(task)
        if task.status is TaskStatus.CANCELLED and task.deferred:
            self._durable.nesting.cancel_below(task)

    def send(self, task: Task, besides: tuple[Wake, ...] = ()) -> None:
        """Send a task's wakes, except those that are known to have been sent and lie ahead.

        What was sent and is due has been delivered, perhaps when all the task's places were taken: then it was dropped.
        """
        now = self._clock.now()
        ahead = [wake for wake in besides if wake.due_at > now]
        self._sender.send(task, [wake for wake in wakes(task) if wake not in ahead], now)
