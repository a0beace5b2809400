"""The executor: processes the dispatches that the queue delivers.

Authenticate, load, decide, claim, call, finish, send the next dispatch. Each step reads and writes as little as it can:
a successful occurrence costs one read, two commits and one created dispatch, a hop one read and one dispatch. After a
crash between any two steps, the redelivery or the sweep continues from the last commit. The run of a quick handler is
claimed and finished by one commit.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from pydantic_core import from_json

from cloudsched.domain.documents.execution import WaitingFor, lease_fingerprint
from cloudsched.domain.transitions.claim import Claim, Drop, Hop, missed_lock_turn, on_dispatch
from cloudsched.domain.transitions.lifecycle import Transition
from cloudsched.domain.transitions.offers import offer_expiry
from cloudsched.domain.transitions.planning import HORIZON, Dispatch, executor_wakeups
from cloudsched.engine.execution.attempts import DeliveryAction, DeliveryResult
from cloudsched.engine.execution.failure_hooks import run_failure_hooks
from cloudsched.engine.execution.quick_run import QuickClaim, QuickRun, can_run_quick
from cloudsched.engine.ports.store import Commit
from cloudsched.engine.state.clock_check import MAX_SKEW, measure_skew
from cloudsched.engine.state.compare_and_set import compare_and_set
from cloudsched.errors import ClockSkewed, InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.dispatch.signing_keys import SigningKeys
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.attempts import AttemptRunner
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import VersionedTask
    from cloudsched.engine.ports.tracing import Tracer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WaitForLock:
    """Run nothing yet. Releasing the lock dispatches the run again."""

    reason: str


Decision = Drop | Hop | WaitForLock | Claim | QuickClaim


class Executor:
    """Runs each attempt that is dispatched once, however often its dispatch is delivered."""

    def __init__(
        self,
        engine: EngineContext,
        attempt_runner: AttemptRunner,
        keys: SigningKeys,
        tracer: Tracer,
        *,
        checks_clock: bool = False,
    ) -> None:
        self._engine = engine
        self._attempt_runner = attempt_runner
        self._keys = keys
        self._tracer = tracer
        self._checks_clock = checks_clock

    def deliver(self, body: bytes, token: str) -> DeliveryResult:
        """Process a delivered dispatch; return once its result is stored.

        Raises:
            Unauthenticated: The token is missing or wrong. Nothing was read.
            InvalidInput: The body is not a dispatch. Do not deliver it again.
            StoreUnavailable: The store did not answer, or this machine's clock differs from its clock; deliver the
                dispatch again.
            QueueUnavailable: What follows could not be dispatched; deliver the dispatch again.
        """
        self._keys.verify(body, token)
        dispatch = _parse_dispatch(body, self._engine.clock)
        ids: dict[str, str | int] = {
            "taskId": dispatch.task_id,
            "executionId": dispatch.execution_id,
            "attempt": dispatch.attempt,
        }
        with self._tracer.span("execute", dispatch.trace, dispatch.execution_id, **ids):
            stored, decision = self._claim(dispatch)
            result = self._apply(dispatch, stored, decision)
            level = logging.DEBUG if result.action is DeliveryAction.RAN else logging.INFO  # the event log has its line
            log.log(level, "%s: %s", result.action, result.reason, extra={"action": result.action.value, **ids})
            return result

    def _claim(self, dispatch: Dispatch) -> tuple[VersionedTask | None, Decision]:
        """Load, decide and commit the claim, again after each conflict; return the task as it is then."""
        token_hash = lease_fingerprint(
            secrets.token_hex(16)
        )  # the token itself is not needed: no report arrives from outside

        def claim(loaded: tuple[VersionedTask | None, datetime]) -> tuple[VersionedTask | None, Decision]:
            stored, now = loaded
            if stored is None:
                return None, Drop("there is no such task")
            run = stored.task.find_run(dispatch.execution_id)
            if run and run.lease and run.lease.token_hash == token_hash:  # committed, but its answer was lost
                return stored, Claim(Transition(stored.task), run, f"attempt {run.attempt}")
            decision = on_dispatch(stored.task, dispatch, now, token_hash)
            if isinstance(decision, Claim) and can_run_quick(self._engine.registry, stored.task, decision, now):
                return stored, _to_quick_claim(stored.task, decision, now)
            return (
                self._commit_claim(stored, decision, dispatch, now)
                if isinstance(decision, Claim)
                else (stored, decision)
            )

        return compare_and_set(f"task {dispatch.task_id}", lambda: self._load(dispatch.task_id), claim)

    def _load(self, task_id: str) -> tuple[VersionedTask | None, datetime]:
        """Load a task; return it with this machine's time, which has to agree with the store's that comes with it.

        What is decided is decided at that time: the clock may be set in the next moment.

        Raises:
            ClockSkewed: It does not. Nothing is decided by a wrong clock; deliver the dispatch again.
        """
        before = self._engine.now() if self._checks_clock else None
        stored = self._engine.store.load(task_id)
        now = self._engine.now()
        if before is not None and now - before > MAX_SKEW:  # a difference could hide in a read that took so long
            before = now
            stored = self._engine.store.load(task_id)
            now = self._engine.now()
        if before is None or stored is None or stored.read_at is None:
            return stored, now
        skew = measure_skew(before, stored.read_at, now)
        if abs(skew) > MAX_SKEW:
            error = ClockSkewed(skew, MAX_SKEW)
            log.error("%s", error, extra={"action": "clock_skewed", "taskId": task_id})
            raise error
        return stored, now

    def _commit_claim(
        self, stored: VersionedTask, decision: Claim, dispatch: Dispatch, now: datetime
    ) -> tuple[VersionedTask, Decision]:
        """Commit a claim with the lock that it needs, or an end without a result with the lock that it frees.

        Raises:
            VersionConflict: The task or the lock has changed since it was read.
        """
        transition, run = decision.transition, decision.run
        if run is None:
            if self._waits_for_lock(stored.task, dispatch):
                return stored, WaitForLock(f"others hold {stored.task.lock_key!r}")
            return self._commit_finish(stored, transition, dispatch), decision
        cost = _count_cost(stored.task, run, now)
        if run.lock_key is None:
            return self._engine.committer.commit(Commit.build(stored, transition, **cost)), decision
        result = self._engine.locks.acquire(transition.task, run, dispatch, now)
        if result.is_acquired:
            return self._engine.committer.commit(Commit.build(stored, transition, lock=result.lock, **cost)), decision
        return stored, WaitForLock(f"others hold {run.lock_key!r}")

    def _waits_for_lock(self, task: Task, dispatch: Dispatch) -> bool:
        """Whether a run that left its queue for its lock has to wait on.

        A grant offers it again; any other dispatch, such as the sweep's, does so only if the lock is free or the run
        has expired. Otherwise the run would go back and forth between its queue and the wait list while others hold it.
        """
        run, now = task.find_run(dispatch.execution_id), self._engine.now()
        if run is None or run.waiting_for is not WaitingFor.LOCK or task.pull is None or dispatch.lock_key:
            return False
        expiry = offer_expiry(task, run)
        return (expiry is None or now < expiry) and self._engine.locks.wait_if_taken(task, run, now)

    def _commit_finish(self, stored: VersionedTask, transition: Transition, dispatch: Dispatch) -> VersionedTask:
        call_hooks = partial(run_failure_hooks, self._engine.registry, stored.task, transition.executions)
        run, cost = stored.task.find_run(dispatch.execution_id), _count_cost(stored.task, None, self._engine.now())
        # A run without a lease does not hold the lock; if it waits for it, it stays in the wait list.
        if run is None or run.lock_key is None or run.lease is None:
            return self._engine.committer.commit(Commit.build(stored, transition, **cost), call_hooks)
        lock, grants = self._engine.locks.release(stored.task.id, run, self._engine.now())
        committed = self._engine.committer.commit(Commit.build(stored, transition, lock=lock, **cost), call_hooks)
        self._engine.locks.updates.notify(grants, self._engine.now())
        return committed

    def _apply(  # noqa: PLR0911 - one for each decision
        self, dispatch: Dispatch, stored: VersionedTask | None, decision: Decision
    ) -> DeliveryResult:
        if stored is None:
            if dispatch.lock_key:
                self._engine.locks.waits.cancel(
                    dispatch.lock_key, dispatch.task_id, dispatch.execution_id, self._engine.now()
                )
            return DeliveryResult(DeliveryAction.DROPPED, decision.reason)
        match decision:
            case Drop(reason):
                self._repair_after_drop(dispatch, stored.task)
                return DeliveryResult(DeliveryAction.DROPPED, reason)
            case Hop(until, reason):
                self._engine.sender.send_hop(stored.task, dispatch, until, self._engine.now())
                return DeliveryResult(DeliveryAction.HOPPED, f"{reason}; until {until.isoformat()}")
            case WaitForLock(reason):
                return DeliveryResult(DeliveryAction.WAITING, reason)
            case QuickClaim():
                return self._attempt_runner.run_quick(QuickRun(self._engine, stored, decision, dispatch))
            case Claim(_, run, reason):
                if run is not None:
                    return self._attempt_runner.run(stored, run)
                self._attempt_runner.dispatch_wakeups(stored.task)
                self._attempt_runner.notify_parent(stored.task)
                self._release_stale_lock(dispatch, stored.task)
                return DeliveryResult(DeliveryAction.RECORDED, reason)

    def _repair_after_drop(self, dispatch: Dispatch, task: Task) -> None:
        """Complete what a crash after the last commit may have left undone, for a dispatch that is dropped."""
        if dispatch.revision == task.revision:
            self._attempt_runner.dispatch_wakeups(task)
        self._attempt_runner.notify_parent(task)
        self._release_stale_lock(dispatch, task)

    def _release_stale_lock(self, dispatch: Dispatch, task: Task) -> None:
        """Stop waiting for a lock that the execution no longer needs; requeue its worker group if no worker came."""
        run, now = task.find_run(dispatch.execution_id), self._engine.now()
        if dispatch.lock_key and (dispatch.lock_key, dispatch.revision) != (task.scoped_lock_key, task.revision):
            identity = dispatch.lock_key, dispatch.task_id, dispatch.execution_id
            self._engine.locks.waits.cancel(*identity, now, revision=dispatch.revision)
        if task.is_active and run is not None and run.waiting_for is not None:
            if missed_lock_turn(run, dispatch):  # else it stays in the wait list until a worker claims it
                self._engine.locks.waits.cancel_group(task, now)
            return
        lock_key = task.scoped_lock_key
        if lock_key is not None and not any(
            wake.execution_id == dispatch.execution_id for wake in executor_wakeups(task)
        ):
            self._engine.locks.waits.cancel(lock_key, task.id, dispatch.execution_id, now)


class _Cost(TypedDict):
    reads: int
    dispatches: int


def _count_cost(task: Task, run: Run | None, now: datetime) -> _Cost:
    """Return what it took to get here since the task's last commit: a read and a dispatch, and as much for each hop."""
    deliveries = 1 + max(timedelta(0), now - task.updated_at) // HORIZON
    return {"reads": deliveries + (0 if run is None else run.steps), "dispatches": deliveries}


def _to_quick_claim(task: Task, claim: Claim, now: datetime) -> QuickClaim:
    assert claim.run is not None  # noqa: S101 - else it is not quick
    return QuickClaim(claim, claim.run, **_count_cost(task, claim.run, now))


def _parse_dispatch(body: bytes, clock: Clock) -> Dispatch:
    try:
        return Dispatch.from_wire(from_json(body), clock.now())
    except ValueError as error:
        raise InvalidInput("(body)", f"is not a dispatch: {error}", "Only cloudsched creates dispatches.") from error
