"""The executor: what happens when the queue delivers a dispatch.

Authenticate, load, decide, claim, call, finish, send the next. Each step reads and writes as little as it can: one
successful occurrence costs one read, two commits and one created dispatch, a hop one read and one dispatch. A crash
between any two steps is mended by the redelivery, or by the sweep, from the last commit.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.claim import Begin, Drop, Hop, has_missed_its_turn, on_dispatch
from cloudsched.domain.transitions.lifecycle import Step
from cloudsched.domain.transitions.planning import Dispatch, Wake, wakes
from cloudsched.engine.execution.attempts import Action, Verdict
from cloudsched.engine.execution.claimed_run import MAX_CONFLICTS
from cloudsched.engine.execution.failure_hooks import announce_failure
from cloudsched.errors import InvalidInput, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.dispatch.sender import Sender
    from cloudsched.engine.dispatch.signing_keys import Keys
    from cloudsched.engine.execution.attempts import Runs
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, Stored
    from cloudsched.engine.ports.tracing import Tracer
    from cloudsched.engine.state.commits import Committer
    from cloudsched.engine.state.locks import Locks

log = logging.getLogger(__name__)


_TRY_EVERY = timedelta(minutes=1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wait:
    """Run nothing yet; whoever frees the lock sends the dispatch again, unless it is to come again by itself."""

    why: str
    until: datetime | None = None


Decision = Drop | Hop | Wait | Begin


class Executor:
    """Runs what dispatches ask for, once each, however often they come."""

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        *,
        store: Store,
        committer: Committer,
        locks: Locks,
        runs: Runs,
        sender: Sender,
        clock: Clock,
        registry: Registry,
        keys: Keys,
        tracer: Tracer,
    ) -> None:
        self._store = store
        self._committer = committer
        self._locks = locks
        self._runs = runs
        self._sender = sender
        self._clock = clock
        self._registry = registry
        self._keys = keys
        self._tracer = tracer

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
        now = self._clock.now()
        answer = self._locks.enter(step.task, run, dispatch, now)
        if answer.has_it:
            return self._committer.commit(step, stored, answer.lock), decision
        why = f"others hold {run.lock_key!r}"
        if answer.is_in_line:
            return stored, Wait(why)
        until = _next_try(dispatch, now)
        return stored, Wait(f"{why}, and the line at it is full; until {until.isoformat()}", until)

    def _end(self, stored: Stored, step: Step, dispatch: Dispatch) -> Stored:
        announce = partial(announce_failure, self._registry, stored.task, step.executions)
        run = stored.task.run(dispatch.execution_id)
        if run is None or run.lock_key is None or run.lease is None:  # one that only waits for it keeps its turn
            return self._committer.commit(step, stored, before=announce)
        lock, turns = self._locks.leave(stored.task.id, run, self._clock.now())
        ended = self._committer.commit(step, stored, lock, before=announce)
        self._locks.wake(turns, self._clock.now())
        return ended

    def _carry_out(self, dispatch: Dispatch, stored: Stored | None, decision: Decision) -> Verdict:
        if stored is None:
            if dispatch.lock_key:
                self._locks.withdraw(dispatch.lock_key, dispatch.task_id, dispatch.execution_id, self._clock.now())
            return Verdict(Action.DROPPED, decision.why)
        match decision:
            case Drop(why):
                self._leave(dispatch, stored.task)
                return Verdict(Action.DROPPED, why)
            case Hop(until, why):
                self._send_again(dispatch, stored.task, until, dispatch.hop + 1)
                return Verdict(Action.HOPPED, f"{why}; until {until.isoformat()}")
            case Wait(why, until):
                if until is not None:
                    self._send_again(dispatch, stored.task, until, max(dispatch.hop + 1, int(until.timestamp())))
                return Verdict(Action.WAITING, why)
            case Begin(_, run, why):
                if run is not None:
                    return self._runs.carried_out(stored, run)
                self._runs.send(stored.task)
                self._runs.follow(stored.task)
                self._withdraw(dispatch, stored.task)
                return Verdict(Action.RECORDED, why)

    def _send_again(self, dispatch: Dispatch, task: Task, until: datetime, hop: int) -> None:
        wake = Wake(dispatch.execution_id, dispatch.scheduled_for, dispatch.attempt, until)
        self._sender.send(task, [wake], self._clock.now(), hop=hop)

    def _leave(self, dispatch: Dispatch, task: Task) -> None:
        """Do what a crash after the last commit may have left undone, for a dispatch that runs nothing."""
        if dispatch.revision == task.revision:
            self._runs.send(task)
        self._runs.follow(task)
        self._withdraw(dispatch, task)

    def _withdraw(self, dispatch: Dispatch, task: Task) -> None:
        """Give up the turn at the lock of an execution that will not come for it any more."""
        run, now = task.run(dispatch.execution_id), self._clock.now()
        if dispatch.lock_key and (dispatch.lock_key, dispatch.revision) != (task.lock_key, task.revision):
            self._locks.give_up(dispatch, now)
        if task.is_active and run is not None and run.awaits is not None:
            if has_missed_its_turn(run, dispatch):  # else it is kept until a worker comes
                self._locks.pass_by(task, now)
            return
        if task.lock_key is not None and not any(wake.execution_id == dispatch.execution_id for wake in wakes(task)):
            self._locks.withdraw(task.lock_key, task.id, dispatch.execution_id, now)


def _next_try(dispatch: Dispatch, now: datetime) -> datetime:
    """Return when a run comes again that found the line at its lock full: half a minute to a minute and a half later.

    Each run has one such instant a minute, spread over it. So however many dispatches of it there are (the sweep sends
    some, too), they become one.
    """
    digest = hashlib.sha256(f"{dispatch.task_id} {dispatch.execution_id}".encode()).digest()
    place = _TRY_EVERY * (int.from_bytes(digest[:4]) / 2**32)
    begun = (now + _TRY_EVERY / 2 - place - _EPOCH) // _TRY_EVERY
    return _EPOCH + (begun + 1) * _TRY_EVERY + place


def _parsed(body: bytes, clock: Clock) -> Dispatch:
    try:
        return Dispatch.from_wire(json.loads(body), clock.now())
    except (ValueError, RecursionError) as error:
        raise InvalidInput("(body)", f"is not a dispatch: {error}", "Only cloudsched makes these.") from error
