"""The executor: one pipeline from a delivered dispatch to the next one.

Authenticate, load, decide, claim, call, decide, commit, dispatch. Each step reads and writes as little as it can: a
successful occurrence costs one read, two commits and one created dispatch, a hop one read and one dispatch. After a
crash between any two steps, the redelivery or the sweep continues from the last commit.

Workers claim by `engine.pull.offers`, and take the same steps from the call on.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

from pydantic_core import from_json

from cloudsched.domain.documents.execution import Lease, WaitingFor, lease_fingerprint
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.recurrence.allowance import DISPATCH_STEPS, limit_search
from cloudsched.domain.transitions.claim import (
    Drop,
    Hop,
    missed_lock_turn,
    on_dispatch,
    on_orphaned_lease,
)
from cloudsched.domain.transitions.commit import NO_GRANTS, Commit, Committed, Effects, TaskWrite, VersionedTask
from cloudsched.domain.transitions.finish import AttemptReport, on_outcome
from cloudsched.domain.transitions.offers import offer_expiry
from cloudsched.domain.transitions.outcome import Done, Fail, Suspend
from cloudsched.domain.transitions.planning import HORIZON, Dispatch, WakeUp, executor_wakeups
from cloudsched.domain.transitions.zone_plans import can_replan
from cloudsched.engine.durable.journal_cursor import OUTAGE_PAUSE
from cloudsched.engine.execution.claimed_run import ClaimedRun
from cloudsched.engine.execution.durable_services import DurableServices
from cloudsched.engine.execution.follow_ups import FollowUps, plan_follow_ups
from cloudsched.engine.execution.invoke import call_handler, truncate_text
from cloudsched.engine.handlers.context import Context
from cloudsched.engine.ports.clock import MAX_SKEW, measure_skew
from cloudsched.engine.ports.procedure import LongCall, Procedure, run_procedure
from cloudsched.engine.state.attempt_log import AttemptLines, AttemptLog, find_thread
from cloudsched.errors import (
    BlobsUnavailable,
    ClockSkewed,
    InvalidInput,
    NotAllowed,
    QueueUnavailable,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.child_tasks import ChildTasks
    from cloudsched.engine.dispatch import SigningKeys
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.tracing import Tracer
    from cloudsched.engine.state.deliveries import DeliveryPlanner

log = logging.getLogger(__name__)


class DeliveryAction(StrEnum):
    """The effect of a delivery."""

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
    """The effect of a delivery, and its reason. The queue counts each of these as a success, and does not redeliver."""

    action: DeliveryAction
    reason: str


@dataclass(frozen=True, slots=True)
class WaitForLock:
    """Run nothing yet. Releasing the lock dispatches the run again."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotClaimed:
    """A decision to run nothing now, and the task that it was made on."""

    stored: VersionedTask | None
    decision: Drop | Hop | WaitForLock


@dataclass(frozen=True, slots=True)
class Attempt:
    """A claimed run whose handler may be called now."""

    claimed_run: ClaimedRun
    context: Context


BUDGET_RETRY_DELAY = timedelta(minutes=5)
"""The wait of a start whose owner's budget is used up, if its task cannot be paused now."""


class Executor:
    """Runs each attempt that is dispatched once, however often its dispatch is delivered."""

    def __init__(
        self,
        engine: EngineContext,
        child_tasks: ChildTasks,
        deliveries: DeliveryPlanner,
        keys: SigningKeys,
        tracer: Tracer,
        *,
        checks_clock: bool = False,
        in_progress: WorkInProgress | None = None,
    ) -> None:
        self._engine = engine
        self._child_tasks = child_tasks
        self._deliveries = deliveries
        self._durable = DurableServices(engine, child_tasks)
        self._keys = keys
        self._tracer = tracer
        self._checks_clock = checks_clock
        self._in_progress = in_progress or WorkInProgress()
        self._holder = self._in_progress.holder

    def deliver(self, body: bytes, token: str) -> DeliveryResult:
        """Process a delivered dispatch in this thread. See `plan`."""
        return run_procedure(self.plan(body, token))

    def plan(self, body: bytes, token: str) -> Procedure[DeliveryResult]:
        """Process a delivered dispatch, and return once its result is stored.

        Raises:
            Unauthenticated: The token is missing or wrong. Nothing was read.
            InvalidInput: The body is not a dispatch. Do not deliver it again.
            StoreUnavailable: The store did not answer, or this machine's clock differs from its clock. Deliver the
                dispatch again.
            QueueUnavailable: The next dispatch could not be created. Deliver this one again.
        """
        dispatch = self._authenticate(body, token)
        ids: dict[str, str | int] = {
            "taskId": dispatch.task_id,
            "executionId": dispatch.execution_id,
            "attempt": dispatch.attempt,
        }
        self._in_progress.begin(dispatch)
        try:
            with self._tracer.span("execute", dispatch.trace, dispatch.execution_id, **ids):
                claimed = yield from self._claim(dispatch)
                result = (yield from self._run(claimed)) if isinstance(claimed, ClaimedRun) else claimed
                level = logging.DEBUG if result.action is DeliveryAction.RAN else logging.INFO  # the event log has it
                if log.isEnabledFor(level):
                    log.log(level, "%s: %s", result.action, result.reason, extra={"action": result.action.value, **ids})
                return result
        finally:
            self._in_progress.end(dispatch)

    def _run(self, claimed_run: ClaimedRun) -> Procedure[DeliveryResult]:
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

    # ── Authenticate, load, decide, claim ────────────────────────────────────────────────────────────────────────────

    def _authenticate(self, body: bytes, token: str) -> Dispatch:
        self._keys.verify(body, token)
        try:
            return Dispatch.from_wire(from_json(body))
        except ValueError as error:
            hint = "Only cloudsched creates dispatches."
            raise InvalidInput("(body)", f"is not a dispatch: {error}", hint) from error

    def _claim(self, dispatch: Dispatch) -> Procedure[ClaimedRun | DeliveryResult]:
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
        if found.commit.effects.run is not None:
            return ClaimedRun(self._engine, found.stored, found.commit.effects.run)
        return self._complete_record(dispatch, found.stored.task, found.commit)

    def _load(self, task_id: str) -> tuple[VersionedTask | None, datetime]:
        """Load a task, and return it with the time for which everything is decided: the clock may be set in a moment.

        Raises ClockSkewed if it does not agree with the store's.
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

    def _decide(
        self, dispatch: Dispatch, token_hash: str, loaded: tuple[VersionedTask | None, datetime]
    ) -> Commit | ClaimedRun | NotClaimed:
        """Return what to commit for a dispatch, or its run if the claim is committed already."""
        stored, now = loaded
        if stored is None:
            return NotClaimed(None, Drop("there is no such task"))
        with limit_search(DISPATCH_STEPS):
            if stored.task.zone_plan is not None and can_replan(stored.task):
                stored = self._engine.replan(stored)
            # guard: own claim
            known = next((run for run in stored.task.runs if run.lease and run.lease.token_hash == token_hash), None)
            if known is not None:  # committed, but its answer was lost; of a backlog it may be a later occurrence
                return ClaimedRun(self._engine, stored, known)
            decision = self._decide_on(stored.task, dispatch, now, token_hash)
            if isinstance(decision, Commit):
                return self._to_commit(dispatch, stored, decision, now)
            return NotClaimed(stored, decision)

    def _decide_on(self, task: Task, dispatch: Dispatch, now: datetime, token_hash: str) -> Drop | Hop | Commit:
        if self._holder is not None:
            runs_here = self._in_progress.is_shared(dispatch)
            orphaned = on_orphaned_lease(task, dispatch, now, self._holder, self._engine.random, runs_here=runs_here)
            if orphaned is not None:
                return orphaned
            if runs_here and (left := self._left_of_lapsed(task, dispatch, now)) > timedelta(0):
                return Hop(now + left, "its handler runs here, and has time left: the clock was set forward")
        decision = on_dispatch(task, dispatch, now, token_hash, holder=self._holder)
        if isinstance(decision, Commit):
            _report_stuck(task, dispatch, now)
        return decision

    def _left_of_lapsed(self, task: Task, dispatch: Dispatch, now: datetime) -> timedelta:
        """Return how long an attempt that runs here still has, though its lease has lapsed by the clock."""
        run = task.find_run(dispatch.execution_id)
        if run is None or run.lease is None or run.lease.holder != self._holder or run.lease.until > now:
            return timedelta(0)
        return self._in_progress.time_left(dispatch, run.lease)

    def _to_commit(
        self, dispatch: Dispatch, stored: VersionedTask, decision: Commit, now: datetime
    ) -> Commit | NotClaimed:
        deliveries = 1 + max(timedelta(0), now - stored.task.updated_at) // HORIZON  # each hop took a read as well
        run, reason = decision.effects.run, decision.effects.reason
        effects = Effects(run, reason, deliveries if run is None else deliveries + run.steps, deliveries)
        claim = decision.having(base=stored, effects=effects)
        if run is None:
            return self._record(dispatch, stored, claim)
        if stored.task.has_budget and (refusal := self._engine.budgets().find_refusal(stored.task.owner)):
            return self._pause_for_budget(stored, refusal, now, deliveries)
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
        why = "its owner's budget is used up"
        return paused.having(base=stored, effects=Effects(reason=why, reads=deliveries, dispatches=deliveries))

    def _record(self, dispatch: Dispatch, stored: VersionedTask, record: Commit) -> Commit | NotClaimed:
        """Return the commit of a record without a run, with the lock that it frees, or that the run has to wait on."""
        if self._waits_for_lock(stored.task, dispatch):
            return NotClaimed(stored, WaitForLock(f"others hold {stored.task.lock_key!r}"))
        run = stored.task.find_run(dispatch.execution_id)
        # A run without a lease does not hold the lock; if it waits for it, it stays in the wait list.
        if run is None or run.lock_key is None or run.lease is None:
            return record
        lock, grants = self._engine.locks.release(stored.task.id, run, self._engine.clock.now())
        return record.having(lock=lock, effects=replace(record.effects, grants=grants))

    def _waits_for_lock(self, task: Task, dispatch: Dispatch) -> bool:
        """Return whether a run that left its queue for its lock has to wait on.

        A grant offers it again. Any other dispatch, such as the sweep's, does so only if the lock is free or the run
        has expired. Otherwise the run would go back and forth between its queue and the wait list while others hold it.
        """
        run, now = task.find_run(dispatch.execution_id), self._engine.clock.now()
        if run is None or run.waiting_for is not WaitingFor.LOCK or task.pull is None or dispatch.lock_key:
            return False
        expiry = offer_expiry(task, run)
        return (expiry is None or now < expiry) and self._engine.locks.wait_if_taken(task, run, now)

    # ── Call ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, claimed_run: ClaimedRun) -> Attempt | None:
        """Dispatch what may run concurrently, and return the attempt, or None if its lease has already expired."""
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
        return Attempt(claimed_run, Context(task, run, self._engine.clock, claimed_run.renew, durable_run))

    def invoke(self, attempt: Attempt) -> AttemptReport:
        """Call the handler in this thread, and return a report of how the attempt ended."""
        return run_procedure(self.plan_call(attempt))

    def plan_call(self, attempt: Attempt) -> Procedure[AttemptReport]:
        """Return the procedure that calls the handler, and returns a report of how the attempt ended."""
        task, run = attempt.claimed_run.begun_task, attempt.claimed_run.run
        ids: dict[str, Any] = {"taskId": task.id, "attempt": run.attempt}
        span = self._tracer.span(f"handler {task.handler}", execution_id=run.execution_id, **ids)
        lines = attempt.claimed_run.log
        with span, AttemptLines(task, run.execution_id, run.attempt, lines if isinstance(lines, AttemptLog) else None):
            return (yield from call_handler(self._engine.registry, attempt.context, attempt.claimed_run.task.handler))

    # ── Decide and commit ────────────────────────────────────────────────────────────────────────────────────────────

    def decide(self, attempt: Attempt, report: AttemptReport) -> AttemptEnd:
        """Return how the attempt ends, on whatever version of its task the commit finds."""
        journal = attempt.context.durable_run.entries_or_none
        return AttemptEnd(self._engine, self._child_tasks, self._deliveries, attempt.claimed_run.run, report, journal)

    def decide_by_report(self, claimed_run: ClaimedRun, report: AttemptReport) -> AttemptEnd:
        """Return how an attempt ends that another process has run, and reports."""
        return AttemptEnd(self._engine, self._child_tasks, self._deliveries, claimed_run.run, report)

    def commit(self, claimed_run: ClaimedRun, end: AttemptEnd) -> Procedure[Committed | None]:
        """Commit how an attempt ended. Return None if the lease was lost before.

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

    # ── Dispatch ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def dispatch(self, claimed_run: ClaimedRun, committed: Committed | None) -> None:
        """Dispatch what follows an attempt. `committed` is None if the lease was lost. Raises QueueUnavailable."""
        run = claimed_run.run
        if committed is None:
            # The commit of this very result may have taken effect although its answer was lost.
            self.dispatch_wakeups(claimed_run.task)
            if run.lock_key is not None:
                self._engine.locks.cancel(run.lock_key, claimed_run.task.id, run.execution_id, self._engine.clock.now())
            self.notify_parent(claimed_run.task)
            return
        commit, task = committed.commit, committed.stored.task
        if commit.effects.has_calls_in_progress:
            self._child_tasks.recheck_awaited_calls(task, run.execution_id)
        if commit.others:
            self._dispatch_others(commit.others)
        self.dispatch_wakeups(task, already_sent=claimed_run.sent_wakeups)  # guard: next dispatch
        if commit.effects.grants is not NO_GRANTS:
            self._engine.locks.notify(commit.effects.grants, self._engine.clock.now())
        self.notify_parent(task)

    def _dispatch_others(self, writes: Sequence[TaskWrite]) -> None:
        """Send the dispatches of the follow-ups and deliveries of a success. The sweep sends those that fail."""
        for each in writes:
            had_turn = each.base is not None and any(run.lock_turn_until for run in each.base.task.runs)
            try:
                self.dispatch_wakeups(each.task)
            except QueueUnavailable as error:
                log.warning("deferred: %s", error, extra={"action": "deferred", "taskId": each.task.id})
                self._engine.committer.defer(each.task.id, self._engine.clock.now())
            with suppress(StoreUnavailable, QueueUnavailable):
                if each.base is not None and had_turn and each.base.task.revision != each.task.revision:
                    self._engine.locks.cancel_task(each.base.task, self._engine.clock.now())  # as in `Scheduler`
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

    # ── What runs nothing ────────────────────────────────────────────────────────────────────────────────────────────

    def _pass_over(
        self, dispatch: Dispatch, stored: VersionedTask | None, decision: Drop | Hop | WaitForLock
    ) -> DeliveryResult:
        if stored is None:
            if dispatch.lock_key:
                waiting = dispatch.lock_key, dispatch.task_id, dispatch.execution_id
                self._engine.locks.cancel(*waiting, self._engine.clock.now())
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
        self._engine.locks.notify(commit.effects.grants, self._engine.clock.now())
        self.dispatch_wakeups(task)
        self.notify_parent(task)
        self._release_stale_lock(dispatch, task)
        return DeliveryResult(DeliveryAction.RECORDED, commit.effects.reason)

    def _repair_after_drop(self, dispatch: Dispatch, task: Task) -> None:
        """Complete what a crash after the last commit may have left undone, for a dispatch that is dropped."""
        if dispatch.revision == task.revision:  # guard: unsent dispatch
            self.dispatch_wakeups(task)
        self.notify_parent(task)
        self._release_stale_lock(dispatch, task)

    def _release_stale_lock(self, dispatch: Dispatch, task: Task) -> None:
        """Stop waiting for a lock that the execution no longer needs. Requeue its worker group if no worker came."""
        run, now = task.find_run(dispatch.execution_id), self._engine.clock.now()
        if dispatch.lock_key and (dispatch.lock_key, dispatch.revision) != (task.scoped_lock_key, task.revision):
            identity = dispatch.lock_key, dispatch.task_id, dispatch.execution_id
            self._engine.locks.cancel(*identity, now, revision=dispatch.revision)
        if task.is_active and run is not None and run.waiting_for is not None:
            if missed_lock_turn(run, dispatch):  # else it stays in the wait list until a worker claims it
                self._engine.locks.cancel_group(task, now)
            return
        lock_key = task.scoped_lock_key
        if lock_key is not None and not any(
            wake.execution_id == dispatch.execution_id for wake in executor_wakeups(task)
        ):
            self._engine.locks.cancel(lock_key, task.id, dispatch.execution_id, now)


class AttemptEnd:
    """The end of one attempt, decided on whatever version of its task is read."""

    def __init__(
        self,
        engine: EngineContext,
        child_tasks: ChildTasks,
        deliveries: DeliveryPlanner,
        run: Run,
        report: AttemptReport,
        journal: Sequence[JournalEntry] | None = None,
    ) -> None:
        self._engine, self._child_tasks, self._deliveries = engine, child_tasks, deliveries
        self._run = run
        self.report = report
        self._journal = journal
        self._follow_ups: FollowUps | None = None
        self._has_decided = False

    def decide(self, task: Task, base: VersionedTask) -> Commit | None:
        """Return what to commit, or None if the lease is no longer held.

        The first call takes all tasks that it creates to be new. A further call means a conflict, and reads them.
        Raises InvalidInput.
        """
        engine, report, run = self._engine, self.report, task.find_run(self._run.execution_id)
        is_repeat, self._has_decided = self._has_decided, True
        if run is None or self._run.lease is None:
            return None
        if isinstance(report.outcome, Done) and report.outcome.then:
            if self._follow_ups is None:
                children, drafts = self._child_tasks, report.outcome.then
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
        deliveries = self._deliveries
        if task.delivery_channels or task.on_completion is not None:
            writes += deliveries.plan(task, run, report, now, records=transition.executions, is_repeat=is_repeat)
        delivered = None if task.delivery is None else deliveries.mark(task.delivery, report, is_repeat=is_repeat)
        holds_lock = self._run.lock_key is not None
        lock, grants = engine.locks.release(task.id, self._run, now) if holds_lock else (None, NO_GRANTS)
        journals = {} if self._journal is None else {run.execution_id: self._journal}
        effects = Effects(reads=0, grants=grants, journals=journals, has_calls_in_progress=bool(calls))
        return transition.having(base=base, lock=lock, others=writes, delivered=delivered, effects=effects)

    def _find_calls_in_progress(self, task: Task, run: Run) -> Collection[int]:
        """Return which awaited calls are known to be in progress, if one ended while the handler ran."""
        outcome = self.report.outcome
        if isinstance(outcome, Suspend) and outcome.calls:
            with suppress(StoreUnavailable):
                return self._child_tasks.calls_in_progress(task.id, run.execution_id, outcome.calls)
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
        outcome = Suspend(str(error), self._engine.clock.now() + OUTAGE_PAUSE)
        return self._with_report(replace(self.report, outcome=outcome, error=None))

    def _with_report(self, report: AttemptReport) -> AttemptEnd:
        return AttemptEnd(self._engine, self._child_tasks, self._deliveries, self._run, report, self._journal)


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

    An attempt that this process claimed, and that nobody here works on, has lost its result: it is over. `holder` names
    this process, if no other executes the store's tasks while it lives. `seconds` is a clock that nobody sets, None
    where no lease is judged by it.
    """

    def __init__(self, holder: str | None = None, seconds: Callable[[], float] | None = None) -> None:
        self.holder = holder
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
