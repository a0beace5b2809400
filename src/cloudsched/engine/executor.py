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
from cloudsched.domain.finishing import extended, on_outcome
from cloudsched.domain.lifecycle import Step
from cloudsched.domain.planning import Dispatch, Wake, wakes
from cloudsched.engine.calling import announce_failure, call_handler
from cloudsched.engine.context import Context, LeaseState
from cloudsched.engine.ports import Stored
from cloudsched.errors import InvalidInput, NotFound, QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from cloudsched.domain.execution import ProgressStep, Run
    from cloudsched.domain.finishing import Report
    from cloudsched.domain.task import Task
    from cloudsched.engine.ports import Clock, Store
    from cloudsched.engine.registry import Registry
    from cloudsched.engine.sending import Sender
    from cloudsched.engine.tokens import Keys

log = logging.getLogger(__name__)

MAX_CONFLICTS = 20
"""How often a decision is made anew because somebody else was quicker, before the queue is asked to come again."""


class Action(StrEnum):
    """What a delivery came to."""

    DROPPED = "dropped"
    HOPPED = "hopped"
    RECORDED = "recorded"
    """Nothing was run, but skipped, expired or lapsed runs were recorded."""
    RAN = "ran"
    SUPERSEDED = "superseded"
    """The handler ran, but its lease had been taken over, or its task deleted: the result was dropped."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a delivery came to, and why. Each of them is a success to the queue."""

    action: Action
    why: str


class Executor:
    """Runs what dispatches ask for, once each, however often they come."""

    def __init__(
        self, *, store: Store, sender: Sender, clock: Clock, registry: Registry, keys: Keys, random: Random
    ) -> None:
        self._store = store
        self._sender = sender
        self._clock = clock
        self._registry = registry
        self._keys = keys
        self._random = random

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
        stored, decision = self._claim(dispatch)
        verdict = self._carry_out(dispatch, stored, decision)
        log.info(
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

    def _claim(self, dispatch: Dispatch) -> tuple[Stored | None, Drop | Hop | Begin]:
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
            if decision.run is None:
                announce_failure(self._registry, stored.task, decision.step.executions)
            try:
                return _committed(self._store, decision.step, stored), decision
            except VersionConflict:
                continue
        raise StoreUnavailable("The store", f"task {dispatch.task_id} changed {MAX_CONFLICTS} times while it was read")

    def _carry_out(self, dispatch: Dispatch, stored: Stored | None, decision: Drop | Hop | Begin) -> Verdict:
        match decision:
            case Drop(why):
                if stored and dispatch.revision == stored.task.revision:
                    self._send(stored.task)  # a crash may have come between the commit and this
                return Verdict(Action.DROPPED, why)
            case Hop(until, why):
                wake = Wake(dispatch.execution_id, dispatch.scheduled_for, dispatch.attempt, until)
                task = stored.task if stored else None
                if task:
                    self._sender.send(task, [wake], self._clock.now(), hop=dispatch.hop + 1)
                return Verdict(Action.HOPPED, f"{why}; until {until.isoformat()}")
            case Begin(_, run, why):
                if stored is None:
                    raise NotFound("task", dispatch.task_id)
                if run is None:
                    self._send(stored.task)
                    return Verdict(Action.RECORDED, why)
                return self._run(stored, run)

    def _run(self, claimed: Stored, run: Run) -> Verdict:
        """Call the handler under the lease, and commit how it ended."""
        try:
            self._send(claimed.task)  # what may run beside it
            before = wakes(claimed.task)
        except QueueUnavailable:
            before = ()  # the handler need not wait for the queue; its end sends this too
        held = _Held(self._store, self._clock, self._registry, claimed, run)
        context = Context(claimed.task, run, self._clock, held.renew)
        report = call_handler(self._registry, context)
        finished = held.finish(report, self._random)
        if finished is None:
            self._send(held.task)  # it may have been this result whose commit took effect and then failed
            return Verdict(Action.SUPERSEDED, "the run was taken over or its task deleted; its result is dropped")
        self._send(finished, besides=before)
        return Verdict(Action.RAN, f"attempt {run.attempt}: {type(report.outcome).__name__}")

    def _send(self, task: Task, besides: tuple[Wake, ...] = ()) -> None:
        """Send a task's wakes, except those that are known to have been sent."""
        self._sender.send(task, [wake for wake in wakes(task) if wake not in besides], self._clock.now())


class _Held:
    """A run under a lease: the task's last known state, which its end and its renewals are committed against."""

    def __init__(self, store: Store, clock: Clock, registry: Registry, claimed: Stored, run: Run) -> None:
        if run.lease is None:
            raise ValueError("a claimed run has a lease")
        self._store = store
        self._clock = clock
        self._registry = registry
        self._stored = claimed
        self._id = run.execution_id
        self._lease_token = run.lease.token

    @property
    def task(self) -> Task:
        """The task as it was last read or written."""
        return self._stored.task

    def renew(self, progress: Sequence[ProgressStep]) -> LeaseState:
        """Extend the lease and keep the progress; say if it is lost or the task no longer wants the run."""
        task = self._commit(lambda task: extended(task, self._id, self._lease_token, progress, self._clock.now()))
        run = task and task.run(self._id)
        if not task or not run:
            return LeaseState(None, is_cancelled=True)
        return LeaseState(run.wakes_at, is_cancelled=not task.is_active)

    def finish(self, report: Report, random: Random) -> Task | None:
        """Commit how the attempt ended; return the task as it is then, or None if the lease is no longer held."""
        return self._commit(
            lambda task: on_outcome(task, self._id, self._lease_token, report, self._clock.now(), random)
        )

    def _commit(self, decide: _Decide) -> Task | None:
        for _ in range(MAX_CONFLICTS):
            step = decide(self._stored.task)
            if step is None:
                return None
            announce_failure(self._registry, step.task, step.executions)
            try:
                self._stored = _committed(self._store, step, self._stored)
            except VersionConflict:
                reread = self._store.load(step.task.id)
                if reread is None:
                    return None  # deleted meanwhile
                self._stored = reread
            else:
                return self._stored.task
        raise StoreUnavailable("The store", f"task {self._stored.task.id} changed {MAX_CONFLICTS} times")


def _committed(store: Store, step: Step, stored: Stored) -> Stored:
    return Stored(step.task, store.commit(step.task, stored.version, step.executions, step.messages))


def _parsed(body: bytes, clock: Clock) -> Dispatch:
    try:
        return Dispatch.from_wire(json.loads(body), clock.now())
    except ValueError as error:
        raise InvalidInput("(body)", f"is not a dispatch: {error}", "Only cloudsched makes these.") from error


if TYPE_CHECKING:
    from collections.abc import Callable

    _Decide = Callable[[Task], Step | None]
