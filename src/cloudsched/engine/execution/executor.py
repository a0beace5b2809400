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

from cloudsched.domain.documents.execution import lease_fingerprint
from cloudsched.domain.transitions.claim import Claim, Drop, Hop, missed_lock_turn, on_dispatch
from cloudsched.domain.transitions.lifecycle import Transition
from cloudsched.domain.transitions.planning import Dispatch, WakeUp, executor_wakeups
from cloudsched.engine.execution.attempts import DeliveryAction, DeliveryResult
from cloudsched.engine.execution.claimed_run import MAX_CONFLICTS
from cloudsched.engine.execution.failure_hooks import run_failure_hooks
from cloudsched.errors import InvalidInput, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.dispatch.sender import DispatchSender
    from cloudsched.engine.dispatch.signing_keys import SigningKeys
    from cloudsched.engine.execution.attempts import AttemptRunner
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, VersionedTask
    from cloudsched.engine.ports.tracing import Tracer
    from cloudsched.engine.state.commits import TransitionCommitter
    from cloudsched.engine.state.locks import Locks

log = logging.getLogger(__name__)


LOCK_RETRY_INTERVAL = timedelta(minutes=1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class WaitForLock:
    """Run nothing yet; whoever frees the lock sends the dispatch again, unless it is to come again by itself."""

    reason: str
    until: datetime | None = None


Decision = Drop | Hop | WaitForLock | Claim


class Executor:
    """Runs what dispatches ask for, once each, however often they come."""

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        *,
        store: Store,
        committer: TransitionCommitter,
        locks: Locks,
        attempt_runner: AttemptRunner,
        sender: DispatchSender,
        clock: Clock,
        registry: Registry,
        keys: SigningKeys,
        tracer: Tracer,
    ) -> None:
        self._store = store
        self._committer = committer
        self._locks = locks
        self._attempt_runner = attempt_runner
        self._sender = sender
        self._clock = clock
        self._registry = registry
        self._keys = keys
        self._tracer = tracer

    def deliver(self, body: bytes, token: str) -> DeliveryResult:
        """Do what a delivered dispatch asks for; return once that is stored.

        Raises:
            Unauthenticated: The token is missing or wrong. Nothing was read.
            InvalidInput: The body is not a dispatch. Delivering it again would change nothing.
            StoreUnavailable: The store did not answer; deliver it again.
            QueueUnavailable: What follows could not be sent; deliver it again.
        """
        self._keys.verify(body, token)
        dispatch = _parse_dispatch(body, self._clock)
        ids: dict[str, str | int] = {
            "taskId": dispatch.task_id,
            "executionId": dispatch.execution_id,
            "attempt": dispatch.attempt,
        }
        with self._tracer.span("execute", dispatch.trace, dispatch.execution_id, **ids):
            return self._process(dispatch)

    def _process(self, dispatch: Dispatch) -> DeliveryResult:
        stored, decision = self._claim(dispatch)
        verdict = self._apply(dispatch, stored, decision)
        log.log(
            logging.DEBUG if verdict.action is DeliveryAction.RAN else logging.INFO,  # the news has said so
            "%s: %s",
            verdict.action,
            verdict.reason,
            extra={
                "action": verdict.action.value,
                "taskId": dispatch.task_id,
                "executionId": dispatch.execution_id,
                "attempt": dispatch.attempt,
            },
        )
        return verdict

    def _claim(self, dispatch: Dispatch) -> tuple[VersionedTask | None, Decision]:
        """Load, decide and commit the claim, until nobody else is quicker; return the task as it is then."""
        token_hash = lease_fingerprint(secrets.token_hex(16))  # nobody needs the token: no report comes from outside
        for _ in range(MAX_CONFLICTS):
            stored = self._store.load(dispatch.task_id)
            if stored is None:
                return None, Drop("there is no such task")
            run = stored.task.find_run(dispatch.execution_id)
            if run and run.lease and run.lease.token_hash == token_hash:  # a commit that took effect and then failed
                return stored, Claim(Transition(stored.task), run, f"attempt {run.attempt}")
            decision = on_dispatch(stored.task, dispatch, self._clock.now(), token_hash)
            if not isinstance(decision, Claim):
                return stored, decision
            try:
                return self._commit_claim(stored, decision, dispatch)
            except VersionConflict:
                continue
        raise StoreUnavailable("The store", f"task {dispatch.task_id} changed {MAX_CONFLICTS} times while it was read")

    def _commit_claim(
        self, stored: VersionedTask, decision: Claim, dispatch: Dispatch
    ) -> tuple[VersionedTask, Decision]:
        """Commit a claim with the lock that it needs, or an end without a result with the lock that it frees.

        Raises:
            VersionConflict: Somebody else was quicker.
        """
        step, run = decision.transition, decision.run
        if run is None:
            return self._commit_finish(stored, step, dispatch), decision
        if run.lock_key is None:
            return self._committer.commit(step, stored), decision
        now = self._clock.now()
        answer = self._locks.acquire(step.task, run, dispatch, now)
        if answer.is_acquired:
            return self._committer.commit(step, stored, answer.lock), decision
        why = f"others hold {run.lock_key!r}"
        if answer.is_waiting:
            return stored, WaitForLock(why)
        until = _next_lock_retry(dispatch, now)
        return stored, WaitForLock(f"{why}, and its wait list is full; until {until.isoformat()}", until)

    def _commit_finish(self, stored: VersionedTask, transition: Transition, dispatch: Dispatch) -> VersionedTask:
        announce = partial(run_failure_hooks, self._registry, stored.task, transition.executions)
        run = stored.task.find_run(dispatch.execution_id)
        if run is None or run.lock_key is None or run.lease is None:  # one that only waits for it keeps its turn
            return self._committer.commit(transition, stored, before_commit=announce)
        lock, turns = self._locks.release(stored.task.id, run, self._clock.now())
        ended = self._committer.commit(transition, stored, lock, before_commit=announce)
        self._locks.notify(turns, self._clock.now())
        return ended

    def _apply(self, dispatch: Dispatch, stored: VersionedTask | None, decision: Decision) -> DeliveryResult:
        if stored is None:
            if dispatch.lock_key:
                self._locks.cancel_wait(dispatch.lock_key, dispatch.task_id, dispatch.execution_id, self._clock.now())
            return DeliveryResult(DeliveryAction.DROPPED, decision.reason)
        match decision:
            case Drop(why):
                self._repair_after_drop(dispatch, stored.task)
                return DeliveryResult(DeliveryAction.DROPPED, why)
            case Hop(until, why):
                self._redispatch(dispatch, stored.task, until, dispatch.hop + 1)
                return DeliveryResult(DeliveryAction.HOPPED, f"{why}; until {until.isoformat()}")
            case WaitForLock(why, until):
                if until is not None:
                    self._redispatch(dispatch, stored.task, until, max(dispatch.hop + 1, int(until.timestamp())))
                return DeliveryResult(DeliveryAction.WAITING, why)
            case Claim(_, run, why):
                if run is not None:
                    return self._attempt_runner.run(stored, run)
                self._attempt_runner.dispatch_wakeups(stored.task)
                self._attempt_runner.notify_parent(stored.task)
                self._release_stale_lock(dispatch, stored.task)
                return DeliveryResult(DeliveryAction.RECORDED, why)

    def _redispatch(self, dispatch: Dispatch, task: Task, until: datetime, hop: int) -> None:
        wake = WakeUp(dispatch.execution_id, dispatch.scheduled_for, dispatch.attempt, until)
        self._sender.send(task, [wake], self._clock.now(), hop=hop)

    def _repair_after_drop(self, dispatch: Dispatch, task: Task) -> None:
        """Do what a crash after the last commit may have left undone, for a dispatch that runs nothing."""
        if dispatch.revision == task.revision:
            self._attempt_runner.dispatch_wakeups(task)
        self._attempt_runner.notify_parent(task)
        self._release_stale_lock(dispatch, task)

    def _release_stale_lock(self, dispatch: Dispatch, task: Task) -> None:
        """Give up the turn at the lock of an execution that will not come for it any more."""
        run, now = task.find_run(dispatch.execution_id), self._clock.now()
        if dispatch.lock_key and (dispatch.lock_key, dispatch.revision) != (task.lock_key, task.revision):
            self._locks.cancel_stale_wait(dispatch, now)
        if task.is_active and run is not None and run.waiting_for is not None:
            if missed_lock_turn(run, dispatch):  # else it is kept until a worker comes
                self._locks.requeue_worker_group(task, now)
            return
        if task.lock_key is not None and not any(
            wake.execution_id == dispatch.execution_id for wake in executor_wakeups(task)
        ):
            self._locks.cancel_wait(task.lock_key, task.id, dispatch.execution_id, now)


def _next_lock_retry(dispatch: Dispatch, now: datetime) -> datetime:
    """Return when a run comes again that found the line at its lock full: half a minute to a minute and a half later.

    Each run has one such instant a minute, spread over it. So however many dispatches of it there are (the sweep sends
    some, too), they become one.
    """
    digest = hashlib.sha256(f"{dispatch.task_id} {dispatch.execution_id}".encode()).digest()
    place = LOCK_RETRY_INTERVAL * (int.from_bytes(digest[:4]) / 2**32)
    begun = (now + LOCK_RETRY_INTERVAL / 2 - place - _EPOCH) // LOCK_RETRY_INTERVAL
    return _EPOCH + (begun + 1) * LOCK_RETRY_INTERVAL + place


def _parse_dispatch(body: bytes, clock: Clock) -> Dispatch:
    try:
        return Dispatch.from_wire(json.loads(body), clock.now())
    except (ValueError, RecursionError) as error:
        raise InvalidInput("(body)", f"is not a dispatch: {error}", "Only cloudsched makes these.") from error
