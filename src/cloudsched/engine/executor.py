"""The executor: what happens when the queue delivers a dispatch.

Authenticate, load, decide, claim, call, finish, send the next. Each step reads and writes as little as it can: one
successful occurrence costs one read, two commits and one created dispatch, a hop one read and one dispatch. A crash
between any two steps is mended by the redelivery, or by the sweep, from the last commit.
"""

from __future__ import annotations

import json
import logging
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from cloudsched.domain.claiming import Begin, Drop, Hop, on_dispatch
from cloudsched.domain.lifecycle import Step
from cloudsched.domain.planning import Dispatch, Wake, wakes
from cloudsched.domain.task import TaskStatus
from cloudsched.engine.calling import announce_failure, call_handler
from cloudsched.engine.context import Context
from cloudsched.engine.holding import MAX_CONFLICTS, Held
from cloudsched.engine.locks import Locks
from cloudsched.errors import InvalidInput, QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from random import Random

    from cloudsched.domain.execution import Run
    from cloudsched.domain.task import Task
    from cloudsched.engine.durable import Durable
    from cloudsched.engine.ports import Clock, Store, Stored
    from cloudsched.engine.registry import Registry
    from cloudsched.engine.sending import Sender
    from cloudsched.engine.tokens import Keys
    from cloudsched.engine.tracing import Tracer

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
class Wait:
    """Run nothing yet; whoever frees the lock sends the dispatch again."""

    why: str


Decision = Drop | Hop | Wait | Begin


class Executor:
    """Runs what dispatches ask for, once each, however often they come."""

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        *,
        store: Store,
        durable: Durable,
        sender: Sender,
        clock: Clock,
        registry: Registry,
        keys: Keys,
        random: Random,
        tracer: Tracer,
    ) -> None:
        self._store = store
        self._durable = durable
        self._committer = durable.committer
        self._nesting = durable.nesting
        self._sender = sender
        self._clock = clock
        self._registry = registry
        self._keys = keys
        self._random = random
        self._tracer = tracer
        self._locks = Locks(store, sender)

    def deliver(self, body: bytes, token: str) -> Verdict:
        """Do what a delivered dispatch asks for; return once that is stored.

        Raises:
            Unauthenticated: The token is missing or wrong. Nothing was read.
            InvalidInput: The body is not a dispatch. Delivering it again would change nothing.
            StoreUnavailable: The store did not answer; deliver it again.
            QueueUnavailable: What follows could not be sent; deliver it again.
        """
        self._keys.verify(body, token)
        dispatch = _parsed(body, self._clock)
        ids: dict[str, str | int] = {
            "taskId": dispatch.task_id,
            "executionId": dispatch.execution_id,
            "attempt": dispatch.attempt,
        }
        with self._tracer.span("execute", dispatch.trace, dispatch.execution_id, **ids):
            return self._answered(dispatch)

    def _answered(self, dispatch: Dispatch) -> Verdict:
        stored, decision = self._claim(dispatch)
        verdict = self._carry_out(dispatch, stored, decision)
        log.log(
            logging.DEBUG if verdict.action is Action.RAN else logging.INFO,  # the news has said so
            "%s: %s",
            verdict.action,
            verdict.why,
            extra={
                "action": verdict.action.value,
                "taskId": dispatch.task_id,
                "executionId": dispatch.execution_id,
                "attempt": dispatch.attempt,
            },
        )
        return verdict

    def _claim(self, dispatch: Dispatch) -> tuple[Stored | None, Decision]:
        """Load, decide and commit the claim, until nobody else is quicker; return the task as it is then."""
        lease_token = secrets.token_hex(8)
        for _ in range(MAX_CONFLICTS):
            stored = self._store.load(dispatch.task_id)
            if stored is None:
                return None, Drop("there is no such task")
            run = stored.task.run(dispatch.execution_id)
            if run and run.lease and run.lease.token == lease_token:  # a commit that took effect and then failed
                return stored, Begin(Step(stored.task), run, f"attempt {run.attempt}")
            decision = on_dispatch(stored.task, dispatch, self._clock.now(), lease_token)
            if not isinstance(decision, Begin):
                return stored, decision
            try:
                return self._begin(stored, decision, dispatch)
            except VersionConflict:
                continue
        raise StoreUnavailable("The store", f"task {dispatch.task_id} changed {MAX_CONFLICTS} times while it was read")

    def _begin(self, stored: Stored, decision: Begin, dispatch: Dispatch) -> tuple[Stored, Decision]:
        """Commit a claim with the lock that it needs, or an end without a result with the lock that it frees.

        Raises:
            VersionConflict: Somebody else was quicker.
        """
        step, run = decision.step, decision.run
        if run is None:
            return self._end(stored, step, dispatch), decision
        if run.lock_key is None:
            return self._committer.commit(step, stored), decision
        lock = self._locks.enter(step.task, run, dispatch, self._clock.now())
        if lock is None:
            return stored, Wait(f"others hold {run.lock_key!r}")
        return self._committer.commit(step, stored, lock), decision

    def _end(self, stored: Stored, step: Step, dispatch: Dispatch) -> Stored:
        announce_failure(self._registry, stored.task, step.executions)
        run = stored.task.run(dispatch.execution_id)
        if run is None or run.lock_key is None:
            return self._committer.commit(step, stored)
        lock, woken = self._locks.leave(stored.task.id, run, self._clock.now())
        ended = self._committer.commit(step, stored, lock)
        self._locks.wake(woken, self._clock.now())
        return ended

    def _carry_out(self, dispatch: Dispatch, stored: Stored | None, decision: Decision) -> Verdict:
        if stored is None:
            return Verdict(Action.DROPPED, decision.why)
        match decision:
            case Drop(why):
                self._leave(dispatch, stored.task)
                return Verdict(Action.DROPPED, why)
            case Hop(until, why):
                wake = Wake(dispatch.execution_id, dispatch.scheduled_for, dispatch.attempt, until)
                self._sender.send(stored.task, [wake], self._clock.now(), hop=dispatch.hop + 1)
                return Verdict(Action.HOPPED, f"{why}; until {until.isoformat()}")
            case Wait(why):
                return Verdict(Action.WAITING, why)
            case Begin(_, run, why):
                if run is not None:
                    return self._run(stored, run)
                self._send(stored.task)
                self._after(stored.task)
                return Verdict(Action.RECORDED, why)

    def _leave(self, dispatch: Dispatch, task: Task) -> None:
        """Do what a crash after the last commit may have left undone, for a dispatch that runs nothing."""
        if dispatch.revision == task.revision:
            self._send(task)
        self._after(task)
        if task.lock_key is not None and not any(wake.execution_id == dispatch.execution_id for wake in wakes(task)):
            self._locks.withdraw(task.lock_key, task.id, dispatch.execution_id, self._clock.now())

    def _run(self, claimed: Stored, run: Run) -> Verdict:
        """Call the handler under the lease, and commit how it ended."""
        try:
            self._send(claimed.task)  # what may run beside it
            before = wakes(claimed.task)
        except QueueUnavailable:
            before = ()  # the handler need not wait for the queue; its end sends this too
        now = self._clock.now()
        if run.wakes_at <= now:  # this process stood still for too long: the next one is to close this attempt
            lapse = Wake(run.execution_id, run.scheduled_for, run.attempt, run.wakes_at)
            self._sender.send(claimed.task, [lapse], now)
            return Verdict(Action.SUPERSEDED, "its lease ended before the handler could be called")
        held = Held(
            store=self._store,
            clock=self._clock,
            registry=self._registry,
            locks=self._locks,
            committer=self._committer,
            claimed=claimed,
            run=run,
        )
        journal = self._durable.journal(held, run)
        context = Context(claimed.task, run, self._clock, held.renew, journal)
        with self._tracer.span(f"handler {claimed.task.handler}", execution_id=run.execution_id, attempt=run.attempt):
            report = call_handler(self._registry, context)
        finished = held.finish(report, self._random, journal.known)
        if finished is None:
            self._send(held.task)  # it may have been this result whose commit took effect and then failed
            if run.lock_key is not None:
                self._locks.withdraw(run.lock_key, held.task.id, run.execution_id, self._clock.now())
            return Verdict(Action.SUPERSEDED, "the run was taken over or its task deleted; its result is dropped")
        self._send(finished, besides=before)
        self._locks.wake(held.woken, self._clock.now())
        self._after(finished)
        return Verdict(Action.RAN, f"attempt {run.attempt}: {type(report.outcome).__name__}")

    def _after(self, task: Task) -> None:
        """Tell a task's parent that it has ended, and cancel what is below a task that was cancelled."""
        self._nesting.tell(task)
        if task.status is TaskStatus.CANCELLED and task.deferred:
            self._nesting.cancel_below(task.id)

    def _send(self, task: Task, besides: tuple[Wake, ...] = ()) -> None:
        """Send a task's wakes, except those that are known to have been sent."""
        self._sender.send(task, [wake for wake in wakes(task) if wake not in besides], self._clock.now())


def _parsed(body: bytes, clock: Clock) -> Dispatch:
    try:
        return Dispatch.from_wire(json.loads(body), clock.now())
    except (ValueError, RecursionError) as error:
        raise InvalidInput("(body)", f"is not a dispatch: {error}", "Only cloudsched makes these.") from error
