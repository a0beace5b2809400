"""One place of a worker: an attempt at a time, from its beginning until it is known how it ended.

A place has two threads. One calls handlers and does nothing else. The other looks after the attempt meanwhile: it keeps
the lease, and brings the result, for as long as it takes until somebody has heard of it. Both stay from one attempt to
the next, so that what a handler's library keeps for its thread is still there.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_delay,
    stop_when_event_set,
    wait_exponential,
    wait_random,
)

from cloudsched.domain.documents.outcome import Cancel, Done, Fail, Retry, Snooze, Suspend
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.engine.execution.invoke import truncate_error
from cloudsched.errors import Forbidden, QuotaExceeded, Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenacity import RetryCallState

    from cloudsched.engine.handlers.context import Context
    from cloudsched.worker.source import ClaimedWork

log = logging.getLogger(__name__)

HEARTBEATS_PER_LEASE = 3
"""How many heartbeats are sent in the time that a lease lasts."""
MIN_HEARTBEAT_INTERVAL = 0.05
"""How many seconds are between two heartbeats at least."""
INITIAL_BACKOFF, MAX_BACKOFF = 0.5, 30.0
"""How many seconds pass before a result is brought again of which nobody has heard, at first and at the most."""
RESULT_DELIVERY_TIMEOUT = timedelta(hours=1)
"""How long a result is brought again and again: no lease is longer."""
UNDELIVERED = (Unavailable, QuotaExceeded, Unauthenticated, Forbidden)
"""Why nobody has heard of a result yet. Somebody may have taken the key away by mistake: it can come back."""
_RELEASE = object()


@dataclass(frozen=True, slots=True)
class AttemptSummary:
    """What became of an attempt, for people."""

    work: ClaimedWork
    status: str
    """succeeded, failed, retrying, snoozed, suspended, cancelled, lost or released."""
    reason: str
    """What there is to say about that; may be empty."""
    seconds: float


class Slot:
    """Runs one assignment at a time.

    Args:
        number: Which of the worker's places it is.
        time_limit: How long one attempt may take; after that its lease is left to lapse.
        on_free: Called with this place when an attempt has ended, or is given up.
        on_attempt_finished: Called with what became of it, before that.
    """

    def __init__(
        self,
        number: int,
        *,
        time_limit: timedelta,
        on_free: Callable[[Slot], None],
        on_attempt_finished: Callable[[AttemptSummary], None],
    ) -> None:
        self._time_limit = time_limit.total_seconds()
        self._on_free = on_free
        self._on_attempt_finished = on_attempt_finished
        self._queue: SimpleQueue[ClaimedWork] = SimpleQueue()
        self._calls: SimpleQueue[tuple[ClaimedWork, Context]] = SimpleQueue()
        self._reports: SimpleQueue[object] = SimpleQueue()
        self._release_requested = threading.Event()
        for what, work in (("place", self._supervise), ("handler", self._call)):
            threading.Thread(target=work, name=f"worker-{what}-{number}", daemon=True).start()

    def assign(self, assignment: ClaimedWork) -> None:
        """Begin with an assignment; the place is free."""
        self._queue.put(assignment)

    def release(self) -> None:
        """Give back what is being done, at once. The handler may go on in its thread, unheard: take nothing more."""
        self._release_requested.set()
        self._reports.put(_RELEASE)

    # ── The thread that calls handlers ───────────────────────────────────────────────────────────────────────────

    def _call(self) -> None:
        while True:
            assignment, context = self._calls.get()
            try:
                report = assignment.call()
            except BaseException as error:  # noqa: BLE001 - SystemExit and its like end their attempt, and nothing else
                report = _report_crash(context, error)
            self._reports.put(report)

    # ── The thread that looks after them ─────────────────────────────────────────────────────────────────────────

    def _supervise(self) -> None:
        while True:
            assignment = self._queue.get()
            began = time.monotonic()
            try:
                what, why = self._run_attempt(assignment)
            except Exception as error:
                log.exception("the attempt is left to lapse", extra=_log_fields(assignment, "left"))
                what, why = "lost", _error_text(error)
            with suppress(Exception):  # nobody hears it; that is no reason to stop
                self._on_attempt_finished(AttemptSummary(assignment, what, why, time.monotonic() - began))
            self._on_free(self)

    def _run_attempt(self, assignment: ClaimedWork) -> tuple[str, str]:
        try:
            context = assignment.start()
        except Unavailable as error:
            return self._release(assignment, f"It could not begin: {error}")
        if context is None:
            return "lost", "its lease had ended before it could begin"
        give_up_at = time.monotonic() + self._time_limit
        self._calls.put((assignment, context))
        report = self._wait_for_report(assignment, context, give_up_at)
        if not isinstance(report, AttemptReport):
            return self._release(assignment, "Its worker was stopped.")
        return self._deliver_result(assignment, context, report)

    def _wait_for_report(self, assignment: ClaimedWork, context: Context, give_up_at: float) -> object:
        """Return what the handler's thread reports, or that it is to be given back; keep the lease meanwhile."""
        is_told = False
        while True:
            wait = self._seconds_to_next_heartbeat(assignment, give_up_at)
            try:
                return self._reports.get(timeout=wait)
            except Empty:
                self._send_heartbeat(assignment, context, give_up_at)
            if not is_told:
                is_told = _warn_if_unwanted(assignment)

    def _seconds_to_next_heartbeat(self, assignment: ClaimedWork, give_up_at: float) -> float | None:
        """Return in how many seconds there is something to do; None if there is nothing any more."""
        hold, now = assignment.lease_keeper, time.monotonic()
        if hold.is_lost or hold.has_stopped_renewing:
            return None
        between = _heartbeat_interval(assignment)
        since = now - hold.renewed_at
        # A heartbeat that was due and not answered is sent again sooner than that.
        left = between - since if since < between else between / HEARTBEATS_PER_LEASE
        return max(MIN_HEARTBEAT_INTERVAL, min(left, give_up_at - now))

    def _send_heartbeat(self, assignment: ClaimedWork, context: Context, give_up_at: float) -> None:
        """Renew the lease, if nobody else has done that just now, or see that it has been renewed for long enough."""
        hold = assignment.lease_keeper
        if time.monotonic() >= give_up_at:
            hold.stop_renewing()
            limit = timedelta(seconds=self._time_limit)
            log.warning("no more heartbeats after %s: the lease lapses", limit, extra=_log_fields(assignment, "let go"))
            return
        if time.monotonic() - hold.renewed_at < _heartbeat_interval(assignment):
            return
        try:
            context.heartbeat()
        except Unavailable as error:
            log.warning("not renewed: %s", error, extra=_log_fields(assignment, "not renewed"))
        except Exception:
            log.exception("not renewed", extra=_log_fields(assignment, "not renewed"))

    def _deliver_result(self, assignment: ClaimedWork, context: Context, report: AttemptReport) -> tuple[str, str]:
        """Bring the result until somebody has heard of it."""

        def again(state: RetryCallState) -> None:
            if state.attempt_number == 1 and state.outcome is not None:
                why = state.outcome.exception()
                log.warning("its result is kept, and brought again: %s", why, extra=_log_fields(assignment, "kept"))
            if (
                not assignment.lease_keeper.is_lost
                and time.monotonic() - assignment.lease_keeper.renewed_at >= _heartbeat_interval(assignment)
            ):
                with suppress(Exception):
                    context.heartbeat()

        bringing = Retrying(
            retry=retry_if_exception_type(UNDELIVERED),
            wait=wait_exponential(INITIAL_BACKOFF, MAX_BACKOFF) + wait_random(0, INITIAL_BACKOFF),
            stop=stop_after_delay(RESULT_DELIVERY_TIMEOUT) | stop_when_event_set(self._release_requested),
            sleep=sleep_using_event(self._release_requested),
            before_sleep=again,
            reraise=True,
        )
        try:
            has_ended = bringing(assignment.finish, report)
        except UNDELIVERED as error:
            return "lost", f"nobody has heard of its result: {error}"
        if not has_ended:
            return "lost", "somebody else may run it by now; its result was dropped"
        return _summarize(assignment, report)

    def _release(self, assignment: ClaimedWork, reason: str) -> tuple[str, str]:
        try:
            if assignment.release(reason):  # also if the lease was lost: it may be that nobody has taken over
                return "released", reason
        except (Unavailable, QuotaExceeded) as error:
            return "lost", f"it could not be given back, so its lease has to lapse: {error}"
        return "lost", "its lease had ended before it could be given back"


def _warn_if_unwanted(assignment: ClaimedWork) -> bool:
    """Log that a run is not wanted from this worker any more, if a heartbeat (also the handler's own) found that."""
    if assignment.lease_keeper.is_lost:
        log.warning(
            "the lease is lost: what its handler returns counts only if nobody has taken over",
            extra=_log_fields(assignment, "lost"),
        )
    elif assignment.lease_keeper.is_cancelled:
        log.warning("cancelled: ctx.heartbeat() tells its handler", extra=_log_fields(assignment, "cancelled"))
    return assignment.lease_keeper.is_lost or assignment.lease_keeper.is_cancelled


def _heartbeat_interval(assignment: ClaimedWork) -> float:
    return max(MIN_HEARTBEAT_INTERVAL, assignment.lease_keeper.duration.total_seconds() / HEARTBEATS_PER_LEASE)


def _report_crash(context: Context, error: BaseException) -> AttemptReport:
    """Return what is reported of a handler that wanted to end more than itself: it has failed."""
    said = context.output
    trace = "".join(traceback.format_exception(error))
    kept = truncate_error(type(error).__qualname__, _error_text(error), trace)
    return AttemptReport(
        Retry(kept.message),
        kept,
        progress=said.progress,
        queries=said.queries,
        tokens=said.tokens,
        entries=context.durable_run.pending_entries,
        calls_made=context.durable_run.calls_made,
    )


def _summarize(assignment: ClaimedWork, report: AttemptReport) -> tuple[str, str]:
    run, retry = assignment.run, assignment.task.retry
    match report.outcome:
        case Done():
            return "succeeded", ""
        case Retry(reason):
            why = f"{report.error.type}: {reason}" if report.error else reason
            return "failed" if run.attempt - run.attempts_before_suspension > retry.max_retries else "retrying", why
        case Fail(reason):
            return "failed", f"{report.error.type}: {reason}" if report.error else reason
        case Snooze(_, reason):
            return "snoozed", reason
        case Suspend(reason):
            return "suspended", reason
        case Cancel(reason):
            return "cancelled", reason


def _error_text(error: BaseException) -> str:
    try:
        return str(error) or type(error).__qualname__
    except Exception:  # noqa: BLE001 - an exception's own text may fail as well
        return type(error).__qualname__


def _log_fields(assignment: ClaimedWork, action: str) -> dict[str, str]:
    return {"action": action, "taskId": assignment.task.id, "executionId": assignment.run.execution_id}
