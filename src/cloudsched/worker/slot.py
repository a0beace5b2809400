"""One slot of a worker: runs one attempt at a time, from its start until its result is acknowledged.

A slot is a coroutine on the loop of the worker's supervisor, so it costs no thread. Blocking calls run in threads of
the worker: the handler's, unless it is asynchronous, and those to the source, which are retried until the result is
acknowledged. The slot renews the lease meanwhile.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_delay,
    wait_exponential,
    wait_random,
)

from cloudsched.domain.documents.json_limits import exception_text
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.raised_errors import format_raised, get_traceback, type_name
from cloudsched.domain.transitions.outcome import Done, Fail, Retry
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.engine.durable.event_loop import HAS_ENDED, LoopThread, Outcome, ThreadRequest, handlers_loop
from cloudsched.engine.durable.user_calls import run_on_loop
from cloudsched.engine.execution.call import truncate_error
from cloudsched.engine.options.failure_hooks import AsyncHookDue, HookCalls
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.errors import Forbidden, QuotaExceeded, Unauthenticated, Unavailable, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.handlers.context import Context
    from cloudsched.worker.source import ClaimedWork


class AttemptCalls:
    """A `Blocking` that shares its threads with the worker's other attempts, and tells the context who serves it."""

    def __init__(self, threads: WorkerThreads, context: Context) -> None:
        self._threads = threads
        self._context = context
        self._lock = threading.Lock()
        self._waiting: deque[ThreadRequest] = deque()
        self._is_serving = False
        self._is_closed = False

    async def request(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the function returns
        """Let a thread call a function of the engine, after the requests before it. Raises WorkflowError."""

        def call() -> Any:  # noqa: ANN401 - the same
            self._context.durable_run.bind_thread()
            return function()

        request = _Link(call, self._serve_next)
        with self._lock:
            if self._is_closed:
                raise WorkflowError(HAS_ENDED)
            if self._is_serving:
                self._waiting.append(request)
            else:
                self._is_serving = True
                self._threads.source.submit(request)
        return await request.result()

    async def call(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - the same
        """Let a thread call a function of the user, which may take long."""
        return await self._threads.handlers.call(function)

    def close(self) -> None:
        """Refuse all further requests, and those that wait."""
        with self._lock:
            self._is_closed = True
            waiting = list(self._waiting)
            self._waiting.clear()
        for request in waiting:
            request.refuse()

    def _serve_next(self) -> None:
        with self._lock:
            if self._waiting:
                self._threads.source.submit(self._waiting.popleft())
            else:
                self._is_serving = False


class _Link(ThreadRequest):
    """A request that is followed by the next one of its attempt."""

    def __init__(self, function: Callable[[], Any], then: Callable[[], None]) -> None:
        super().__init__(function)
        self._then = then

    def call(self) -> Any:  # noqa: ANN401 - an outcome
        try:
            return super().call()
        finally:
            self._then()


log: Final = own_logger(__name__)

HEARTBEATS_PER_LEASE = 3
"""The number of heartbeats within one lease's duration."""
MIN_HEARTBEAT_INTERVAL = 0.05
"""The least number of seconds between two heartbeats."""
INITIAL_BACKOFF = 0.5
MAX_BACKOFF = 30.0
"""The first and the longest wait, in seconds, before an unacknowledged result is sent again."""
RESULT_DELIVERY_TIMEOUT = timedelta(hours=1)
"""The time for which delivering a result is retried: no lease lasts longer."""
UNDELIVERED = (Unavailable, QuotaExceeded, Unauthenticated, Forbidden)
"""Errors after which delivering a result is retried. A credential revoked by mistake may be restored."""


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """The outcome of an attempt, for messages."""

    work: ClaimedWork
    status: str
    """succeeded, failed, retrying, lost, released, or what the outcome says of itself."""
    reason: str
    """The reason, which may be empty."""
    traceback: str = ""
    """The traceback of the handler's exception, if it failed or will be retried."""
    seconds: float = 0.0


class Slot:
    """Runs one piece of claimed work at a time. After the time limit the lease is no longer renewed and expires."""

    def __init__(
        self,
        *,
        time_limit: timedelta,
        on_free: Callable[[Slot], None],
        on_attempt_finished: Callable[[AttemptSummary], None],
    ) -> None:
        self._time_limit = time_limit.total_seconds()
        self._on_free = on_free
        self._on_attempt_finished = on_attempt_finished
        self._release_requested = asyncio.Event()
        self._threads: WorkerThreads
        self._supervision: Future[None]

    def assign(self, work: ClaimedWork, threads: WorkerThreads) -> None:
        """Start on a piece of claimed work. The slot must be free."""
        self._threads = threads
        self._supervision = asyncio.run_coroutine_threadsafe(self._supervise(work), threads.supervisor.loop)

    def release(self) -> None:
        """Release the running attempt at once. Its handler may go on. Do not use the slot again."""
        self._threads.supervisor.loop.call_soon_threadsafe(self._release_requested.set)

    async def _supervise(self, work: ClaimedWork) -> None:
        started_at = time.monotonic()
        try:
            summary = await self._run_attempt(work)
        except BaseException as error:
            log.exception(
                "the attempt is abandoned, its lease will expire", extra=_log_fields(work, "attempt_abandoned")
            )
            summary = AttemptSummary(work, "lost", exception_text(error))
        summary = replace(summary, seconds=time.monotonic() - started_at)
        with suppress(BaseException):  # a failing callback must not stop the slot
            await self._threads.source.call(partial(self._on_attempt_finished, summary))
        self._on_free(self)

    async def _run_attempt(self, work: ClaimedWork) -> AttemptSummary:
        try:
            context: Context | None = await self._threads.source.call(work.start)
        except Unavailable as error:
            return await self._release(work, f"It could not start: {error}")
        if context is None:
            return AttemptSummary(work, "lost", "its lease ended before it could start")
        report = await self._wait_for_report(work, context, time.monotonic() + self._time_limit)
        if report is None:
            return await self._release(work, "Its worker was stopped.")
        return await self._deliver_result(work, context, report)

    async def _wait_for_report(self, work: ClaimedWork, context: Context, deadline: float) -> AttemptReport | None:
        """Renew the lease until the handler has ended. Return its report, or None if the attempt is to be released."""
        is_warned = False
        report = asyncio.ensure_future(self._call_handler(work, context))
        release = asyncio.ensure_future(self._release_requested.wait())
        while True:
            wait = self._seconds_to_next_heartbeat(work, deadline)
            done, _ = await asyncio.wait({report, release}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            if report in done:
                release.cancel()
                return report.result()
            if done:
                return None
            await self._send_heartbeat(work, context, deadline)
            if not is_warned:
                is_warned = _warn_if_unwanted(work)

    async def _call_handler(self, work: ClaimedWork, context: Context) -> AttemptReport:
        """Call the handler: in a thread, or on the loop of the handlers if it is asynchronous."""
        report: AttemptReport
        try:
            if not work.is_async:
                report = await self._threads.handlers.call(lambda: run_procedure(work.call()))
            else:
                running = _call_async_handler(work, AttemptCalls(self._threads, context))
                future = asyncio.run_coroutine_threadsafe(running, handlers_loop().loop)
                report = (await asyncio.wrap_future(future)).unwrap()
        except BaseException as error:  # noqa: BLE001 - SystemExit and the like end their attempt only
            report = _report_crash(context, error)
        return report

    def _seconds_to_next_heartbeat(self, work: ClaimedWork, deadline: float) -> float | None:
        """Return the seconds until the next heartbeat, or None if no more are sent."""
        keeper = work.lease_keeper
        now = time.monotonic()
        if keeper.is_lost or keeper.has_stopped_renewing:
            return None
        interval = _heartbeat_interval(work)
        elapsed = now - keeper.renewed_at
        # An overdue heartbeat that was not answered is sent again after a third of the interval.
        remaining = interval - elapsed if elapsed < interval else interval / HEARTBEATS_PER_LEASE
        return max(MIN_HEARTBEAT_INTERVAL, min(remaining, deadline - now))

    async def _send_heartbeat(self, work: ClaimedWork, context: Context, deadline: float) -> None:
        """Renew the lease unless the handler has just done so. After the time limit, stop renewing it."""
        keeper = work.lease_keeper
        if time.monotonic() >= deadline:
            keeper.stop_renewing()
            limit = timedelta(seconds=self._time_limit)
            about = _log_fields(work, "lease_renewal_stopped")
            log.warning("no more heartbeats after %s: the lease will expire", limit, extra=about)
            return
        if time.monotonic() - keeper.renewed_at < _heartbeat_interval(work):
            return
        try:
            await self._threads.heartbeats.call(context.heartbeat)
        except Unavailable as error:
            log.warning("the lease was not renewed: %s", error, extra=_log_fields(work, "lease_renewal_failed"))
        except Exception:
            log.exception("the lease was not renewed", extra=_log_fields(work, "lease_renewal_failed"))

    async def _deliver_result(self, work: ClaimedWork, context: Context, report: AttemptReport) -> AttemptSummary:
        """Report the result, retrying until it is acknowledged, and keep the lease alive meanwhile."""

        def log_first_retry(state: RetryCallState) -> None:
            if state.attempt_number == 1 and state.outcome is not None:
                about = _log_fields(work, "result_delivery_retrying")
                log.warning("its result was not acknowledged, will retry: %s", state.outcome.exception(), extra=about)

        async def pause(seconds: float) -> None:
            keeper = work.lease_keeper
            if not keeper.is_lost and time.monotonic() - keeper.renewed_at >= _heartbeat_interval(work):
                with suppress(Exception):
                    await self._threads.heartbeats.call(context.heartbeat)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._release_requested.wait(), seconds)

        gives_up = stop_after_delay(RESULT_DELIVERY_TIMEOUT)
        deliver = AsyncRetrying(
            retry=retry_if_exception_type(UNDELIVERED),
            wait=wait_exponential(INITIAL_BACKOFF, MAX_BACKOFF) + wait_random(0, INITIAL_BACKOFF),
            stop=lambda state: self._release_requested.is_set() or gives_up(state),
            sleep=pause,
            before_sleep=log_first_retry,
            reraise=True,
        )
        try:
            is_counted: bool = await deliver(self._finish, work, context, report, HookCalls())
        except UNDELIVERED as error:
            return AttemptSummary(work, "lost", f"its result was not acknowledged: {error}")
        if not is_counted:
            return AttemptSummary(work, "lost", "its lease ended and another worker may run it; its result was dropped")
        return _summarize(work, report)

    async def _finish(self, work: ClaimedWork, context: Context, report: AttemptReport, hooks: HookCalls) -> bool:
        """Report the result, and call the hooks of a failure. No thread waits for an asynchronous hook."""
        # A plain hook is code of the user, which may take long.
        runs_hook = work.has_blocking_hook and isinstance(report.outcome, Retry | Fail)
        pool = self._threads.handlers if runs_hook else self._threads.source
        while True:
            try:
                is_counted: bool = await pool.call(partial(hooks.run, partial(work.finish, report)))
            except AsyncHookDue as due:
                await self._await_hook(work, context, due)
            else:
                return is_counted

    async def _await_hook(self, work: ClaimedWork, context: Context, due: AsyncHookDue) -> None:
        """Await an asynchronous hook on the loop of the handlers, and keep the lease alive meanwhile."""
        hook = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(due.call(), handlers_loop().loop))
        deadline = time.monotonic() + self._time_limit
        while not hook.done():
            await asyncio.wait({hook}, timeout=self._seconds_to_next_heartbeat(work, deadline))
            if not hook.done():
                await self._send_heartbeat(work, context, deadline)
        hook.result()

    async def _release(self, work: ClaimedWork, reason: str) -> AttemptSummary:
        try:  # even after a lost lease: another worker may not have claimed the run yet
            if await self._threads.source.call(partial(work.release, reason)):
                return AttemptSummary(work, "released", reason)
        except (Unavailable, QuotaExceeded) as error:
            return AttemptSummary(work, "lost", f"it could not be released, so its lease has to expire: {error}")
        return AttemptSummary(work, "lost", "its lease ended before it could be released")


async def _call_async_handler(work: ClaimedWork, calls: AttemptCalls) -> Outcome:
    """Call an async handler on this loop, which nothing that it raises may end."""
    outcome = Outcome()
    try:
        await outcome.capture(lambda: run_on_loop(work.call(), calls))
    finally:
        calls.close()
    return outcome


def _warn_if_unwanted(work: ClaimedWork) -> bool:
    """Log, and return True, if a heartbeat (perhaps the handler's own) found the lease lost or the run cancelled."""
    if work.lease_keeper.is_lost:
        log.warning(
            "the lease is lost: the result counts only if no other worker has claimed the run",
            extra=_log_fields(work, "lease_lost"),
        )
    elif work.lease_keeper.is_cancelled:
        log.warning("cancelled: ctx.heartbeat() tells its handler", extra=_log_fields(work, "claim_cancelled"))
    return work.lease_keeper.is_lost or work.lease_keeper.is_cancelled


def _heartbeat_interval(work: ClaimedWork) -> float:
    return max(MIN_HEARTBEAT_INTERVAL, work.lease_keeper.duration.total_seconds() / HEARTBEATS_PER_LEASE)


def _report_crash(context: Context, error: BaseException) -> AttemptReport:
    """Return the report for a handler that raised SystemExit or the like: it has failed."""
    trace = format_raised(error, get_traceback(error))
    execution_error = truncate_error(type_name(error), exception_text(error), trace)
    return context.report(Retry(execution_error.message), execution_error)


def _summarize(work: ClaimedWork, report: AttemptReport) -> AttemptSummary:
    run = work.run
    retry = work.task.retry
    match report.outcome:
        case Done():
            return AttemptSummary(work, "succeeded", "")
        case Retry(reason):
            is_last = run.attempt - run.uncounted_attempts > retry.max_retries
            return _failure(work, "failed" if is_last else "retrying", reason, report)
        case Fail(reason):
            return _failure(work, "failed", reason, report)
        case other:
            return AttemptSummary(work, other.ended_as, other.reason)


def _failure(work: ClaimedWork, status: str, reason: str, report: AttemptReport) -> AttemptSummary:
    error = report.error
    if error is None:
        return AttemptSummary(work, status, reason)
    return AttemptSummary(work, status, f"{error.type}: {reason}", error.traceback or "")


def _log_fields(work: ClaimedWork, action: str) -> dict[str, str]:
    return {"action": action, "taskId": work.task.id, "executionId": work.run.execution_id}


T = TypeVar("T")

MAX_SOURCE_THREADS = 8
"""The largest number of simultaneous calls to the source of work: the store or the API."""
MAX_HEARTBEAT_THREADS = 8
"""The largest number of simultaneous heartbeats. They wait for no other call."""


def take(queue: SimpleQueue[T], seconds: float | None) -> T:
    """Take the next item of a queue in the main thread, which alone handles signals. Raises Empty after the time.

    A signal that the system gives to another thread does not wake it, so it looks up each second.
    """
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        remaining = deadline - time.monotonic()
        try:
            return queue.get(timeout=min(1.0, max(0.0, remaining)))
        except Empty:
            if remaining <= 1.0:
                raise


class ThreadPool:
    """Threads that start when they are needed, are used again, and end with the process.

    Unlike those of `concurrent.futures` they are daemons: a process need not wait for a handler that hangs. Beyond the
    limit, calls wait. Without one, every call has its thread at once.
    """

    def __init__(self, name: str, limit: int | None = None) -> None:
        self._name = name
        self._limit = limit
        self._lock = threading.Lock()
        self._requests: SimpleQueue[ThreadRequest | None] = SimpleQueue()
        self._threads = 0
        self._unfinished = 0
        """The number of requests that wait or are being served."""

    async def call(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the function returns
        """Let a thread call a function, and return its result or raise its error."""
        request = ThreadRequest(function)
        self.submit(request)
        return await request.result()

    def submit(self, request: ThreadRequest) -> None:
        """Let a thread serve a request."""
        with self._lock:
            self._unfinished += 1
            is_short = self._threads < self._unfinished and (self._limit is None or self._threads < self._limit)
            self._threads += is_short
            name = f"{self._name}-{self._threads}"
        self._requests.put(request)
        if is_short:
            ServiceThread(name, self._serve_next).start()

    def _serve_next(self) -> float | None:
        request = self._requests.get()
        if request is None:
            return None
        outcome = request.call()
        with self._lock:  # before the answer, which may lead to the next request: this thread can serve that
            self._unfinished -= 1
        request.give(outcome)
        return 0.0

    def close(self) -> None:
        """End the threads once all submitted requests have been served."""
        for _ in range(self._threads):
            self._requests.put(None)


class WorkerThreads:
    """The threads of a running worker, besides the one that polls: as many as its blocking calls need, and few more.

    Attributes:
        supervisor: Supervises all attempts, on its event loop.
        source: Make the calls to the source of work.
        heartbeats: Renew leases.
        handlers: Run the code of users that may block: one for each plain handler that runs, or plain step of an async
            one.
    """

    def __init__(self) -> None:
        self.supervisor: LoopThread = LoopThread("worker-supervisor")
        self.source: ThreadPool = ThreadPool("worker-source", MAX_SOURCE_THREADS)
        self.heartbeats: ThreadPool = ThreadPool("worker-heartbeat", MAX_HEARTBEAT_THREADS)
        self.handlers: ThreadPool = ThreadPool("worker-handler")
        self.supervisor.start()

    def close(self) -> None:
        """End the threads. Nothing may run any more."""
        for pool in (self.source, self.heartbeats, self.handlers):
            pool.close()
        self.supervisor.stop()
