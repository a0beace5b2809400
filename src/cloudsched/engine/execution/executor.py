"""The executor: processes the dispatches that the queue delivers.

Authenticate, load, decide, claim, call, finish, send the next dispatch. Each step reads and writes as little as it can:
a successful occurrence costs one read, two commits and one created dispatch, a hop one read and one dispatch. After a
crash between any two steps, the redelivery or the sweep continues from the last commit.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, assert_never

from pydantic_core import from_json

from cloudsched.domain.documents.execution import Lease, WaitingFor, lease_fingerprint
from cloudsched.domain.recurrence.allowance import DISPATCH_STEPS, limit_search
from cloudsched.domain.transitions.claim import (
    Claim,
    Drop,
    Hop,
    missed_lock_turn,
    on_dispatch,
    on_orphaned_lease,
)
from cloudsched.domain.transitions.offers import offer_expiry
from cloudsched.domain.transitions.planning import HORIZON, Dispatch, executor_wakeups
from cloudsched.domain.transitions.zone_plans import can_replan
from cloudsched.engine.execution.attempts import AttemptRunner, DeliveryAction, DeliveryResult
from cloudsched.engine.execution.claimed_run import ClaimedRun
from cloudsched.engine.ports.clock import MAX_SKEW, Clock, measure_skew
from cloudsched.engine.ports.procedure import Procedure, run_procedure
from cloudsched.engine.ports.store import Commit, Committed, VersionedTask
from cloudsched.engine.state.attempt_log import find_thread
from cloudsched.errors import ClockSkewed, InvalidInput, NotAllowed

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.dispatch import SigningKeys
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.tracing import Tracer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WaitForLock:
    """Run nothing yet. Releasing the lock dispatches the run again."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotClaimed:
    """A decision to run nothing now, and the task that it was made on."""

    stored: VersionedTask | None
    decision: Drop | Hop | WaitForLock


BUDGET_RETRY_DELAY = timedelta(minutes=5)
"""How long a start waits whose owner's budget is used up, if its task cannot be paused now."""


def _report_stuck(task: Task, dispatch: Dispatch, now: datetime) -> None:
    """Log that a handler goes on here whose lease has ended: Python cannot stop a thread from outside."""
    run = task.find_run(dispatch.execution_id)
    if run is None or run.lease is None or run.lease.until > now:
        return
    name = find_thread(task.id, run.execution_id, run.attempt)
    if name is None:
        return
    log.error(
        "The lease of attempt %s of %s of %r, task %s, has ended, and its handler still runs, in thread %s. "
        "Nothing stops it from outside: give what it waits for a timeout, or let it call ctx.heartbeat.",
        *(run.attempt, run.execution_id, task.handler, task.id, name),
        extra={"action": "still_running", "taskId": task.id, "executionId": run.execution_id, "handlerThread": name},
    )


class WorkInProgress:
    """The executions that a process works on: from before it looks at a dispatch until it is done with it.

    An attempt that this process claimed, and that nobody here works on, has lost its result: it is over.

    Args:
        seconds: Returns the seconds of a clock that nobody sets, for `time_left`; None where a lease is not judged by
            it.
    """

    def __init__(self, seconds: Callable[[], float] | None = None) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._begun: dict[tuple[str, str], float] = {}
        self._seconds = seconds
        self._lock = threading.Lock()

    def begin(self, dispatch: Dispatch) -> None:
        """Note that a dispatch is worked on."""
        key = dispatch.task_id, dispatch.execution_id
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1
            if self._seconds is not None:
                self._begun.setdefault(key, self._seconds())

    def end(self, dispatch: Dispatch) -> None:
        """Note that this work on a dispatch is done, or given up."""
        key = dispatch.task_id, dispatch.execution_id
        with self._lock:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
                self._begun.pop(key, None)

    def is_shared(self, dispatch: Dispatch) -> bool:
        """Return whether the execution is worked on elsewhere in this process, beside the work that asks."""
        return self._counts.get((dispatch.task_id, dispatch.execution_id), 0) > 1

    def time_left(self, dispatch: Dispatch, lease: Lease) -> timedelta:
        """Return how long a lease of this process still lasts, however its machine's clock was set meanwhile.

        A clock that was set forward, or a machine that slept, has taken none of its time from the handler.
        """
        begun = self._begun.get((dispatch.task_id, dispatch.execution_id))
        if begun is None or self._seconds is None:
            return timedelta(0)
        return lease.until - lease.started_at - timedelta(seconds=self._seconds() - begun)


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
        holder: str | None = None,
        seconds: Callable[[], float] | None = None,
    ) -> None:
        self._engine = engine
        self._attempt_runner = attempt_runner
        self._keys = keys
        self._tracer = tracer
        self._checks_clock = checks_clock
        self._holder = holder
        self._in_progress = WorkInProgress(seconds)

    def deliver(self, body: bytes, token: str) -> DeliveryResult:
        """Process a delivered dispatch in this thread; see `plan`."""
        return run_procedure(self.plan(body, token))

    def plan(self, body: bytes, token: str) -> Procedure[DeliveryResult]:
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
        self._in_progress.begin(dispatch)
        try:
            with self._tracer.span("execute", dispatch.trace, dispatch.execution_id, **ids):
                result = yield from self._claim(dispatch)
                if isinstance(result, ClaimedRun):
                    result = yield from self._attempt_runner.run(result)
                level = logging.DEBUG if result.action is DeliveryAction.RAN else logging.INFO  # the event log has it
                if log.isEnabledFor(level):
                    log.log(level, "%s: %s", result.action, result.reason, extra={"action": result.action.value, **ids})
                return result
        finally:
            self._in_progress.end(dispatch)

    def _claim(self, dispatch: Dispatch) -> Procedure[ClaimedRun | DeliveryResult]:
        """Load, decide and commit the claim, again after each conflict; if nothing is to be called, do what is left."""
        token = secrets.token_hex(16)  # it is not needed: no report arrives from outside
        claim: Procedure[Committed | ClaimedRun | NotClaimed] = self._engine.committer.plan(
            f"task {dispatch.task_id}",
            partial(self._load, dispatch.task_id),
            partial(self._decide, dispatch, lease_fingerprint(token)),
        )
        found = yield from claim
        if isinstance(found, ClaimedRun):
            return found
        if isinstance(found, NotClaimed):
            return self._pass_over(dispatch, found.stored, found.decision)
        if found.commit.run is not None:
            return ClaimedRun(self._engine, found.stored, found.commit.run)
        return self._complete_record(dispatch, found.stored.task, found.commit)

    def _decide(
        self, dispatch: Dispatch, token_hash: str, loaded: tuple[VersionedTask | None, datetime]
    ) -> Commit | ClaimedRun | NotClaimed:
        """Return what to commit for a dispatch; a run if its claim is committed already.

        Raises:
            VersionConflict: The lock has changed since it was read.
        """
        with limit_search(DISPATCH_STEPS):
            return self._decide_on_task(dispatch, token_hash, *loaded)

    def _decide_on_task(
        self, dispatch: Dispatch, token_hash: str, stored: VersionedTask | None, now: datetime
    ) -> Commit | ClaimedRun | NotClaimed:
        if stored is None:
            return NotClaimed(None, Drop("there is no such task"))
        if stored.task.zone_plan is not None and can_replan(stored.task):
            stored = self._engine.replan(stored)
        # guard: own claim
        known = next((run for run in stored.task.runs if run.lease and run.lease.token_hash == token_hash), None)
        if known is not None:  # committed, but its answer was lost; of a backlog it may be a later occurrence
            return ClaimedRun(self._engine, stored, known)
        decision = self._decide_on(stored.task, dispatch, now, token_hash)
        if isinstance(decision, Claim):
            return self._to_commit(dispatch, stored, decision, now)
        return NotClaimed(stored, decision)

    def _decide_on(self, task: Task, dispatch: Dispatch, now: datetime, token_hash: str) -> Drop | Hop | Claim:
        if self._holder is not None:
            runs_here = self._in_progress.is_shared(dispatch)
            orphaned = on_orphaned_lease(task, dispatch, now, self._holder, self._engine.random, runs_here=runs_here)
            if orphaned is not None:
                return orphaned
            if runs_here and (left := self._left_of_lapsed(task, dispatch, now)) > timedelta(0):
                return Hop(now + left, "its handler runs here, and has time left: the clock was set forward")
        decision = on_dispatch(task, dispatch, now, token_hash, holder=self._holder)
        if isinstance(decision, Claim):
            _report_stuck(task, dispatch, now)
        return decision

    def _left_of_lapsed(self, task: Task, dispatch: Dispatch, now: datetime) -> timedelta:
        """Return how long an attempt that runs here still has, though its lease has lapsed by the clock."""
        run = task.find_run(dispatch.execution_id)
        if run is None or run.lease is None or run.lease.holder != self._holder or run.lease.until > now:
            return timedelta(0)
        return self._in_progress.time_left(dispatch, run.lease)

    def _to_commit(
        self, dispatch: Dispatch, stored: VersionedTask, decision: Claim, now: datetime
    ) -> Commit | NotClaimed:
        deliveries = 1 + max(timedelta(0), now - stored.task.updated_at) // HORIZON  # each hop took a read as well
        run, about = decision.run, {"reason": decision.reason, "dispatches": deliveries}
        if run is None:
            return self._record(dispatch, stored, Commit.build(stored, decision.transition, reads=deliveries, **about))
        if stored.task.has_budget and (refusal := self._engine.budgets().find_refusal(stored.task.owner)):
            return self._pause_for_budget(stored, refusal, now, deliveries)
        claim = Commit.build(stored, decision.transition, run=run, reads=deliveries + run.steps, **about)
        if run.lock_key is None:
            return claim
        acquired = self._engine.locks.acquire(claim.task, run, dispatch, now)
        if acquired.is_acquired:
            return claim.having(lock=acquired.lock)  # guard: stored lock
        return NotClaimed(stored, WaitForLock(f"others hold {run.lock_key!r}"))

    @staticmethod
    def _pause_for_budget(stored: VersionedTask, reason: str, now: datetime, deliveries: int) -> Commit | NotClaimed:
        """Return a pause in place of a start: what is due is kept, and goes on when its owner has a budget again."""
        from cloudsched.domain.transitions.budget_pause import pause_for_budget  # noqa: PLC0415 - few starts need it

        try:
            paused = pause_for_budget(stored.task, now, reason)
        except NotAllowed as error:  # the sweep has to make room first
            return NotClaimed(stored, Hop(now + BUDGET_RETRY_DELAY, str(error)))
        about = {"reason": "its owner's budget is used up", "dispatches": deliveries}
        return Commit.build(stored, paused, reads=deliveries, **about)

    def _record(self, dispatch: Dispatch, stored: VersionedTask, record: Commit) -> Commit | NotClaimed:
        """Return the commit of what is only recorded, with the lock that it frees; if it is time for that."""
        if self._waits_for_lock(stored.task, dispatch):
            return NotClaimed(stored, WaitForLock(f"others hold {stored.task.lock_key!r}"))
        run = stored.task.find_run(dispatch.execution_id)
        # A run without a lease does not hold the lock; if it waits for it, it stays in the wait list.
        if run is None or run.lock_key is None or run.lease is None:
            return record
        lock, grants = self._engine.locks.release(stored.task.id, run, self._engine.clock.now())
        return record.having(lock=lock, grants=grants)

    def _load(self, task_id: str) -> tuple[VersionedTask | None, datetime]:
        """Load a task; return it with this machine's time, which has to agree with the store's that comes with it.

        What is decided is decided at that time: the clock may be set in the next moment.

        Raises:
            ClockSkewed: It does not. Nothing is decided by a wrong clock; deliver the dispatch again.
        """
        before = self._engine.clock.now() if self._checks_clock else None
        stored = self._engine.store.load(task_id)
        now = self._engine.clock.now()
        if before is not None and now - before > MAX_SKEW:  # a difference could hide in a read that took so long
            before = now
            stored = self._engine.store.load(task_id)
            now = self._engine.clock.now()
        if before is None or stored is None or stored.read_at is None:
            return stored, now
        skew = measure_skew(before, stored.read_at, now)
        if abs(skew) > MAX_SKEW:
            error = ClockSkewed(skew, MAX_SKEW)
            log.error("%s", error, extra={"action": "clock_skewed", "taskId": task_id})
            raise error
        return stored, now

    def _waits_for_lock(self, task: Task, dispatch: Dispatch) -> bool:
        """Return whether a run that left its queue for its lock has to wait on.

        A grant offers it again; any other dispatch, such as the sweep's, does so only if the lock is free or the run
        has expired. Otherwise the run would go back and forth between its queue and the wait list while others hold it.
        """
        run, now = task.find_run(dispatch.execution_id), self._engine.clock.now()
        if run is None or run.waiting_for is not WaitingFor.LOCK or task.pull is None or dispatch.lock_key:
            return False
        expiry = offer_expiry(task, run)
        return (expiry is None or now < expiry) and self._engine.locks.wait_if_taken(task, run, now)

    def _pass_over(
        self, dispatch: Dispatch, stored: VersionedTask | None, decision: Drop | Hop | WaitForLock
    ) -> DeliveryResult:
        """Do what is left to do for a dispatch that runs nothing now."""
        if stored is None:
            if dispatch.lock_key:
                waiting = dispatch.lock_key, dispatch.task_id, dispatch.execution_id
                self._engine.locks.waits.cancel(*waiting, self._engine.clock.now())
            return DeliveryResult(DeliveryAction.DROPPED, decision.reason)
        match decision:
            case Drop(reason):
                self._repair_after_drop(dispatch, stored.task)
                return DeliveryResult(DeliveryAction.DROPPED, reason)
            case Hop(until, reason):
                # guard: early dispatch
                self._engine.sender.send_hop(stored.task, dispatch, until, self._engine.clock.now())
                return DeliveryResult(DeliveryAction.HOPPED, f"{reason}; until {until.isoformat()}")
            case WaitForLock(reason):
                return DeliveryResult(DeliveryAction.WAITING, reason)
            case unknown:
                assert_never(unknown)

    def _complete_record(self, dispatch: Dispatch, task: Task, commit: Commit) -> DeliveryResult:
        """Dispatch what follows from a commit that only records something."""
        self._engine.locks.updates.notify(commit.grants, self._engine.clock.now())
        self._attempt_runner.dispatch_wakeups(task)
        self._attempt_runner.notify_parent(task)
        self._release_stale_lock(dispatch, task)
        return DeliveryResult(DeliveryAction.RECORDED, commit.reason)

    def _repair_after_drop(self, dispatch: Dispatch, task: Task) -> None:
        """Complete what a crash after the last commit may have left undone, for a dispatch that is dropped."""
        if dispatch.revision == task.revision:  # guard: unsent dispatch
            self._attempt_runner.dispatch_wakeups(task)
        self._attempt_runner.notify_parent(task)
        self._release_stale_lock(dispatch, task)

    def _release_stale_lock(self, dispatch: Dispatch, task: Task) -> None:
        """Stop waiting for a lock that the execution no longer needs; requeue its worker group if no worker came."""
        run, now = task.find_run(dispatch.execution_id), self._engine.clock.now()
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


def _parse_dispatch(body: bytes, clock: Clock) -> Dispatch:
    try:
        content = from_json(body)
        if isinstance(content, dict) and "at" not in content:  # earlier versions did not send when they were to arrive
            content["at"] = clock.now().isoformat()
        return Dispatch.from_wire(content)
    except ValueError as error:
        raise InvalidInput("(body)", f"is not a dispatch: {error}", "Only cloudsched creates dispatches.") from error
