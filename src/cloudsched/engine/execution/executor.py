"""The executor: one pipeline from a delivered dispatch to the next one.

Authenticate, load, decide, claim, call, decide, commit, dispatch. Each step reads and writes as little as
it can: a successful occurrence costs one read, two commits and one created dispatch, a hop one read and
one dispatch. A process that stored the task last claims without the read. After a crash between any two
steps, the redelivery or the sweep continues from the last commit.

Workers claim by themselves, and take the same steps from the call on.
"""

from __future__ import annotations

import logging
import secrets
import threading
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeAlias

from cloudsched.domain.documents.execution import Lease, Run, lease_fingerprint
from cloudsched.domain.documents.policy import Overlap
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.recurrence.allowance import DISPATCH_STEPS, limit_search
from cloudsched.domain.transitions.claim import (
    DeliveryAction,
    DeliveryResult,
    Hop,
    drop,
    may_claim_early,
    on_dispatch,
    put_off,
)
from cloudsched.domain.transitions.commit import Commit, Committed, Effects, VersionedTask
from cloudsched.domain.transitions.lost_attempts import STOPPED, on_hanging_attempt, on_orphaned_lease
from cloudsched.domain.transitions.wakeups import HORIZON, Dispatch, dispatch_run, executor_wakeups
from cloudsched.engine.durable.durable_run import DurableRun, Replay
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.engine.execution.probation import Probation
from cloudsched.engine.execution.running_handlers import RETRY_INTERVAL, RunningHandlers
from cloudsched.engine.handlers.context import Context
from cloudsched.engine.ports.clock import MAX_SKEW, Clock, measure_skew
from cloudsched.engine.ports.procedure import LongCall, Pause, Procedure, run_procedure
from cloudsched.engine.ports.queue import HEAD_START
from cloudsched.engine.signed_dispatches import SigningKeys, open_dispatch
from cloudsched.engine.state.attempt_log import AttemptLog
from cloudsched.engine.state.commits import MAX_CONFLICTS
from cloudsched.errors import ClockSkewed, Contended, PreconditionFailed, QueueUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.durable_services import DurableServices
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tracing import Tracer

    Loaded: TypeAlias = tuple[VersionedTask | None, datetime]

log: Final = own_logger(__name__)


class Executor:
    """Runs each attempt that is dispatched once, however often its dispatch is delivered."""

    def __init__(
        self,
        engine: EngineContext,
        keys: SigningKeys,
        tracer: Tracer,
        *,
        checks_clock: bool = False,
        seconds: Callable[[], float] | None = None,
        sleep: Callable[[float], object] | None = None,
        in_progress: WorkInProgress | None = None,
    ) -> None:
        """Take what it works with.

        `seconds` is a clock that nobody sets. Without `sleep` nothing is claimed early.
        """
        self._engine = engine
        self._options = engine.committer.options
        self._keys = keys
        self._tracer = tracer
        self._sleep = sleep
        self._in_progress = in_progress
        """What this process works on, if no other executes the store's tasks while it lives."""
        self.holder: str | None = None if in_progress is None else in_progress.holder
        """The name of this process, if no other executes the store's tasks while it lives."""
        self.handlers: RunningHandlers = RunningHandlers(engine.clock, seconds, engine.hooks)
        """Those that run now, and those that hang."""
        self._tasks = TaskReader(
            engine.store,
            engine.clock,
            checks_clock=checks_clock,
            seconds=seconds,
            is_alone=self.holder is not None,
        )

    @cached_property
    def _durable(self) -> DurableServices:
        from cloudsched.engine.execution.durable_services import DurableServices  # noqa: PLC0415 - most write no journal

        return DurableServices(self._engine)

    @cached_property
    def child_tasks(self) -> ChildTasks:
        """What links a task to its calls."""
        from cloudsched.engine.child_tasks import ChildTasks  # noqa: PLC0415 - most tasks have none

        return ChildTasks(self._engine)

    def deliver(self, body: bytes, token: str) -> Procedure[DeliveryResult]:
        """Process a delivered dispatch, and return once its result is stored.

        Raises:
            Unauthenticated: The token is missing or wrong. Nothing was read.
            InvalidInput: The body is not a dispatch. Do not deliver it again.
            StoreUnavailable: The store did not answer, or this machine's clock differs from its clock. Deliver the
                dispatch again.
            QueueUnavailable: The next dispatch could not be created. Deliver this one again.
        """
        dispatch = open_dispatch(body, token, self._keys)
        ids: dict[str, str | int] = {
            "taskId": dispatch.task_id,
            "executionId": dispatch.execution_id,
            "attempt": dispatch.attempt,
        }
        if self._in_progress is not None:
            self._in_progress.begin(dispatch)
        try:
            with self._tracer.span("execute", dispatch.trace, dispatch.execution_id, **ids):
                is_due = self._sleep is None
                while (claimed := (yield from self._claim(dispatch, is_due=is_due))) is None:
                    yield self._pause(HEAD_START)
                    is_due = True
                result = (yield from self._run(claimed)) if isinstance(claimed, Attempt) else claimed
                level = logging.DEBUG if result.action is DeliveryAction.RAN else logging.INFO  # the event log has it
                if log.isEnabledFor(level):
                    log.log(
                        level,
                        "%s: %s",
                        result.action,
                        result.reason,
                        extra={"action": result.action.value, **ids},
                    )
                return result
        finally:
            if self._in_progress is not None:
                self._in_progress.end(dispatch)

    def _run(self, attempt: Attempt) -> Procedure[DeliveryResult]:
        if not self.start(attempt):
            return DeliveryResult(
                DeliveryAction.SUPERSEDED,
                "the lease expired before the handler could be called",
            )
        try:
            if attempt.early > timedelta(0):
                yield self._pause(attempt.early)
            hangs = partial(self.handlers.hangs, attempt)
            call = partial(run_procedure, self.call(attempt))
            report: AttemptReport = yield LongCall(call, attempt.begun_task.handler, hangs)
            committed = yield from attempt.finish(report)
            self.dispatch(attempt, committed)
        finally:
            attempt.log = None
            del (attempt.context,)  # like the log it refers to the attempt: all would stay until garbage is collected
        if committed is None:
            why = "the run was taken over or its task deleted; its result is dropped"
            return DeliveryResult(DeliveryAction.SUPERSEDED, why)
        return DeliveryResult(
            DeliveryAction.RAN,
            f"attempt {attempt.run.attempt}: {type(report.outcome).__name__}",
        )

    def stopped_before(self, holder: str) -> None:
        """Note the name of a process that was told to stop, and has ended."""
        if self._in_progress is not None:
            self._in_progress.stopped = holder

    @property
    def is_ended_by_handler(self) -> bool:
        """Return whether a handler that runs has sent this process the signal on which it ends."""
        return any(map(_ends_process, self.handlers.list_running()))

    def release_all(self) -> None:
        """Release the attempts of this process, which stops. That uses up none, and the next process goes on.

        One whose handler ends this process is left to the next, to which it is lost.
        """
        for attempt in self.handlers.list_running():
            if _ends_process(attempt):
                continue
            ids = {"taskId": attempt.task.id, "executionId": attempt.run.execution_id}
            try:
                run = attempt.task.find_run(attempt.run.execution_id)
                attempt.release(() if run is None else run.progress, STOPPED)
            except Exception:
                log.exception(
                    "not released: the next start does that",
                    extra={"action": "release_failed", **ids},
                )

    def _pause(self, length: timedelta) -> Pause:
        seconds = min(length, HEAD_START).total_seconds()
        return Pause(partial(self._sleep or (lambda _: None), seconds), seconds)

    # ── Authenticate, load, decide, claim ──────────────────────────────────────────────────────────────

    def _claim(self, dispatch: Dispatch, *, is_due: bool) -> Procedure[Attempt | DeliveryResult | None]:
        """Claim what is due, or due in a moment. Return None if nothing is to be decided before it is due."""
        # Nobody sends the token back.
        token_hash = lease_fingerprint(secrets.token_hex(16))  # guard: lease token
        recalled = self._tasks.recall(dispatch.task_id)
        loaded = recalled
        for _ in range(MAX_CONFLICTS):
            loaded = loaded or self._tasks.load(dispatch.task_id)
            try:
                task, decision = self._judge(*loaded, dispatch, token_hash, is_due=is_due)
                if isinstance(decision, Commit):
                    claimed = yield from self._engine.committer.commit(decision)
                    break
            except PreconditionFailed:
                raise
            except VersionConflict:
                pass
            else:
                if decision is None or isinstance(decision, Attempt):
                    return decision
                if loaded is not recalled:  # else only the store knows that there is nothing to claim
                    return self._pass_over(dispatch, task, decision)
            loaded = None
        else:
            raise Contended(f"task {dispatch.task_id}", MAX_CONFLICTS)
        if decision.effects.run is None:
            return self._complete_record(dispatch, Committed(claimed, decision))
        return Attempt(self._engine, claimed, decision.effects.run)

    def _judge(
        self, stored: VersionedTask | None, now: datetime, dispatch: Dispatch, token_hash: str, *, is_due: bool
    ) -> tuple[Task | None, Commit | Attempt | DeliveryResult | Hop | None]:
        """Return what is decided for a dispatch, and the task on which it was."""
        if stored is None:
            return None, drop("there is no such task")
        is_early = not is_due and now < dispatch.due_at <= now + HEAD_START
        judge = self._decide_early if is_early else self._decide
        with limit_search(DISPATCH_STEPS):
            for concerns, option in self._options.before_decision:
                if concerns(stored):
                    stored = option.before_decision(stored)
            return stored.task, judge(stored, dispatch, now, token_hash)

    def _decide_early(
        self, stored: VersionedTask, dispatch: Dispatch, _now: datetime, token_hash: str
    ) -> Commit | Attempt | None:
        """Return the claim of a run that is due in a moment, decided as then, or None if none is."""
        if not may_claim_early(stored.task, dispatch):
            return None
        decision = self._decide(stored, dispatch, dispatch.due_at, token_hash)
        if isinstance(decision, Attempt) or (isinstance(decision, Commit) and decision.effects.run is not None):
            return decision
        return None

    def _decide(
        self, stored: VersionedTask, dispatch: Dispatch, now: datetime, token_hash: str
    ) -> Commit | Attempt | DeliveryResult | Hop:
        """Return what to commit for a dispatch, its attempt if that is committed already, or why nothing is."""
        for run in stored.task.runs:
            # Committed, but its answer was lost; of a backlog it may be a later occurrence.
            if run.lease and run.lease.token_hash == token_hash:  # guard: own claim
                return Attempt(self._engine, stored, run)

        decision: DeliveryResult | Hop | Commit | None = None
        if self._in_progress is not None:
            decision = self._decide_in_process(stored.task, dispatch, now, self._in_progress)
        if decision is None:
            decision = on_dispatch(stored.task, dispatch, now, token_hash, holder=self.holder)
        if stored.task.runs and isinstance(decision, Commit):
            self._report_stuck(stored.task, dispatch, now)
        if self._in_progress is not None and isinstance(decision, Commit) and decision.effects.run is not None:
            decision = self._hold_back(stored.task, decision, decision.effects.run, dispatch, now, self._in_progress)
        if not isinstance(decision, Commit):
            return decision
        claimed = decision.effects.run
        reason = decision.effects.reason
        deliveries = 1 + max(timedelta(0), now - stored.task.updated_at) // HORIZON  # each hop took a read as well
        reads = deliveries if claimed is None else deliveries + claimed.steps
        effects = Effects(claimed, reason, reads, deliveries)
        return self._options.adapt_claim(decision.having(base=stored, effects=effects), dispatch, now)

    def _decide_in_process(
        self, task: Task, dispatch: Dispatch, now: datetime, here: WorkInProgress
    ) -> Commit | Hop | None:
        """Decide by what this process alone knows, as the only executor of its store. None if that changes nothing."""
        run = task.find_run(dispatch.execution_id)
        if self.holder is None or run is None:
            return None
        if run.lease is None:
            return None
        runs_here = here.is_shared(dispatch)
        orphaned = on_orphaned_lease(task, dispatch, now, self.holder, here.stopped, runs_here=runs_here)
        if orphaned is not None or not runs_here or run.lease.holder != self.holder or run.lease.until > now:
            return orphaned

        left = here.time_left(dispatch, run.lease)  # though its lease has lapsed by the clock
        if left > timedelta(0):
            return Hop(now + left, "its handler runs here, and has time left: the clock was set forward")
        hanging = self.handlers.find_abandoned(task, now)
        if hanging is None or hanging.lease.token_hash != run.lease.token_hash:
            return None
        return on_hanging_attempt(task, run, now, RETRY_INTERVAL).because(
            f"the handler of attempt {run.attempt} hangs",
        )

    def _report_stuck(self, task: Task, dispatch: Dispatch, now: datetime) -> None:
        """Log that a handler goes on here whose lease has ended: Python cannot stop a thread from outside."""
        run = task.find_run(dispatch.execution_id)
        if run is None or run.lease is None or run.lease.until > now:
            return
        name = self.handlers.find_thread(task, run)
        if name is None:
            return
        log.error(
            "The lease of attempt %s of %s of %r, task %s, has ended, and its handler still runs, in thread %s. "
            "Nothing stops it from outside: give what it waits for a timeout, or let it call ctx.heartbeat.",
            *(run.attempt, run.execution_id, task.handler, task.id, name),
            extra={
                "action": "still_running",
                "taskId": task.id,
                "executionId": run.execution_id,
                "handlerThread": name,
            },
        )

    def _hold_back(
        self, task: Task, claim: Commit, run: Run, dispatch: Dispatch, now: datetime, here: WorkInProgress
    ) -> Commit | Hop:
        """Return a claim, or what comes in its place while it must wait for another handler to end."""
        later = now + RETRY_INTERVAL
        if (obstacle := self.handlers.find_obstacle(task, run, now)) is not None:
            return put_off(
                claim, run, now, later, f"attempt {obstacle.run.attempt} of {obstacle.run.execution_id} hangs"
            )
        if self.handlers.refuses(task.handler):
            return Hop(later, self.handlers.describe())

        hanging = ""
        duration = task.expected_duration
        if self.holder is not None and run.losses:
            why = "its process ended while it ran, so it runs apart from others of which that is true"
        elif task.handler in self.handlers.on_probation:
            hanging = task.handler
            duration *= 2  # one that hangs, too, leaves as much time to others
            why = f"a call of {hanging!r} hangs, so its runs begin one by one until one has ended in time"
        else:
            return claim
        wait = here.await_turn(dispatch, run.losses or 2, duration, now, hanging)
        return Hop(now + wait, why) if wait > timedelta(0) else claim

    # ── Call ───────────────────────────────────────────────────────────────────────────────────────────

    def start(self, attempt: Attempt) -> bool:
        """Dispatch what may run concurrently, and make the context.

        Return False if the lease has already expired.
        """
        task = attempt.begun_task
        run = attempt.run
        # Else this run alone is open, and holds the next occurrence back: there is nothing to send.
        if attempt.task.overlap is Overlap.ALLOW or len(attempt.task.runs) > 1:
            # The handler need not wait for the queue: `dispatch` sends these as well.
            with suppress(QueueUnavailable):
                attempt.sent_wakeups = self.dispatch_wakeups(attempt.task)
        now = self._engine.clock.now()
        attempt.early = attempt.lease.started_at - now
        # guard: late start
        if attempt.lease.until <= now:  # this process stood still: the next delivery records that the lease has ended
            self._engine.sender.send(task, [dispatch_run(task, run, attempt.lease.until)], now)
            return False
        clock = self._engine.clock
        logs = self._engine.logs
        handler = attempt.handler = self._engine.registry.find(task.handler)
        # Its code, or a dependency's, gets the context, which alone writes a journal, or has begun one before.
        if handler is None or handler.takes_context or handler.dependencies or run.steps:
            durable_run: DurableRun = Replay(task, run, clock, lambda: self._durable.surround(attempt))
        else:
            durable_run = DurableRun(task, run.execution_id, clock)
        attempt.log = AttemptLog(
            task, run, clock, logs.level, lambda: durable_run.is_replaying, keeps_print=logs.keeps_print
        )
        attempt.context = Context(task, run, clock, attempt.renew, durable_run)
        return True

    def call(self, attempt: Attempt) -> Procedure[AttemptReport]:
        """Call the handler, and return a report of how the attempt ended."""
        return self.handlers.call(attempt, self._engine.registry, self._tracer)

    # ── Dispatch ───────────────────────────────────────────────────────────────────────────────────────

    def dispatch(self, attempt: Attempt, committed: Committed | None) -> None:
        """Dispatch what follows an attempt.

        `committed` is None if the lease was lost. Raises QueueUnavailable.
        """
        if committed is None:
            # The commit of this very result may have taken effect although its answer was lost.
            self.dispatch_wakeups(attempt.task)
            self._options.lose(attempt.task, attempt.run.execution_id, attempt.run)
            self._notify_family(attempt.task)
            return
        task = committed.stored.task
        if committed.commit.effects.has_calls_in_progress:
            self.child_tasks.recheck_awaited_calls(task, attempt.run.execution_id)
        self.dispatch_wakeups(task, already_sent=attempt.sent_wakeups)  # guard: next dispatch
        self._options.send_after(committed)
        self._notify_family(task)

    def _notify_family(self, task: Task) -> None:
        if task.parent is not None or task.deferred:
            self.child_tasks.notify_family(task)

    def dispatch_wakeups(self, task: Task, already_sent: tuple[Dispatch, ...] = ()) -> tuple[Dispatch, ...]:
        """Send dispatches for a task's wake-ups, except for future ones that have already been sent.

        Those that were sent and are due are sent again: they may have been delivered, and dropped, while
        the task already ran as many executions as it allows. Returns all wake-ups of the task.
        """
        wakeups = executor_wakeups(task)
        if wakeups:
            now = self._engine.clock.now()
            unsent = wakeups
            for wake in already_sent:
                if wake.due_at > now and wake in unsent:
                    unsent = tuple(filter(wake.__ne__, unsent))
            self._engine.sender.send(task, unsent, now)
        return wakeups

    # ── What runs nothing ──────────────────────────────────────────────────────────────────────────────

    def _pass_over(self, dispatch: Dispatch, task: Task | None, decision: DeliveryResult | Hop) -> DeliveryResult:
        if isinstance(decision, Hop):
            assert task is not None  # noqa: S101 - it has been decided on
            # guard: early dispatch
            self._engine.sender.send_hop(task, dispatch, decision.until, self._engine.clock.now())
            why = f"{decision.reason}; until {decision.until.isoformat()}"
            return DeliveryResult(DeliveryAction.HOPPED, why)
        if decision.action is DeliveryAction.WAITING:
            return decision
        if task is not None:  # complete what a crash after the last commit may have left undone
            if dispatch.revision == task.revision:  # guard: unsent dispatch
                self.dispatch_wakeups(task)
            self._notify_family(task)
        self._drop_options(dispatch, task)
        return decision

    def _complete_record(self, dispatch: Dispatch, committed: Committed) -> DeliveryResult:
        task = committed.stored.task
        self._options.send_after(committed)
        self.dispatch_wakeups(task)
        self._notify_family(task)
        self._drop_options(dispatch, task)
        return DeliveryResult(DeliveryAction.RECORDED, committed.commit.effects.reason)

    def _drop_options(self, dispatch: Dispatch, task: Task | None) -> None:
        for _, option in self._options.on_drop:
            option.on_drop(dispatch, task)


CHECK_INTERVAL = timedelta(minutes=10)
"""The time after which the clock is compared with the store's again, by a read."""
_SET_SECONDS = 1.0
"""The seconds by which the clock departs from one that nobody sets when it has been set."""


class TaskReader:
    """Reads tasks for decisions, and compares the clock with the store's. Thread-safe.

    Whatever this process read or wrote last need not be read again to be claimed: a commit that was
    decided from an older state conflicts. Without `is_alone` it is so only as long as the clock is known
    to be right.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        checks_clock: bool,
        seconds: Callable[[], float] | None,
        is_alone: bool,
    ) -> None:
        self._store = store
        self._clock = clock
        self._checks_clock = checks_clock
        self._seconds = seconds
        self._is_alone = is_alone
        self._agreed: tuple[float, float] | None = None
        """The seconds at which the clock agreed with the store's, and how far it was ahead of them."""

    def recall(self, task_id: str) -> Loaded | None:
        """Return a task as this process knows it, with the time for which everything is decided.

        None: read it.
        """
        if not self._is_alone and self._agreed is None:
            return None
        now = self._clock.now()
        stored = self._store.recall(task_id) if self._is_alone or self._is_right(now) else None
        return None if stored is None else (stored, now)

    def _is_right(self, now: datetime) -> bool:
        if self._agreed is None or self._seconds is None:
            return False
        (agreed_at, ahead) = self._agreed
        seconds = self._seconds()
        is_recent = seconds - agreed_at < CHECK_INTERVAL.total_seconds()
        return is_recent and abs(now.timestamp() - seconds - ahead) < _SET_SECONDS

    def load(self, task_id: str) -> Loaded:
        """Return a task, or None, and the time at which everything is decided: the clock may be set in a moment.

        Raises ClockSkewed if this machine's clock does not agree with the store's.
        """
        if not self._checks_clock:
            return self._store.load(task_id), self._clock.now()
        before = self._clock.now()
        stored = self._store.load(task_id)
        now = self._clock.now()
        if now - before > MAX_SKEW:  # a difference could hide in a read that took so long
            before = now
            stored = self._store.load(task_id)
            now = self._clock.now()
        if stored is None or stored.read_at is None:
            return stored, now
        skew = measure_skew(before, stored.read_at, now)
        if abs(skew) > MAX_SKEW:
            self._agreed = None
            error = ClockSkewed(skew, MAX_SKEW)
            log.error("%s", error, extra={"action": "clock_skewed", "taskId": task_id})
            raise error
        if self._seconds is not None:
            seconds = self._seconds()
            self._agreed = seconds, now.timestamp() - seconds
        return stored, now


def _ends_process(attempt: Attempt) -> bool:
    context: Context | None = getattr(attempt, "context", None)  # it is gone once the attempt has ended
    return context is not None and context.durable_run.ends_process


class WorkInProgress:
    """The executions that a process works on: from before it looks at a dispatch until it is done with it.

    An attempt that this process claimed, and that nobody here works on, has lost its result: it is over.
    `holder` names this process, if no other executes the store's tasks while it lives. `seconds` is a
    clock that nobody sets, None where no lease is judged by it.
    """

    def __init__(self, holder: str | None = None, seconds: Callable[[], float] | None = None) -> None:
        self.holder = holder
        self._counts: dict[tuple[str, str], int] = {}
        self._begun: dict[tuple[str, str], float] = {}
        self._probation = Probation()
        self.stopped: str | None = None
        """The name of the process before it, if that was told to stop: what it ran did not end it."""
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
                self._probation.end(key)

    def await_turn(
        self, dispatch: Dispatch, losses: int, duration: timedelta, now: datetime, hanging: str
    ) -> timedelta:
        """Return how long a run on probation waits before it asks again. Zero: it is its turn."""
        key = (dispatch.task_id, dispatch.execution_id)
        seconds = self._seconds or now.timestamp
        wait = self._probation.await_turn(key, losses, duration.total_seconds(), seconds(), hanging)
        return timedelta(seconds=wait)

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
