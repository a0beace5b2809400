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
from cloudsched.domain.transitions.finish import Report
from cloudsched.engine.execution.invoke import kept_error
from cloudsched.errors import Forbidden, QuotaExceeded, Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenacity import RetryCallState

    from cloudsched.engine.handlers.context import Context
    from cloudsched.worker.source import Assignment

log = logging.getLogger(__name__)

BEATS = 3
"""How many heartbeats are sent in the time that a lease lasts."""
SHORTEST_BEAT = 0.05
"""How many seconds are between two heartbeats at least."""
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""How many seconds pass before a result is brought again of which nobody has heard, at first and at the most."""
PATIENCE = timedelta(hours=1)
"""How long a result is brought again and again: no lease is longer."""
UNHEARD = (Unavailable, QuotaExceeded, Unauthenticated, Forbidden)
"""Why nobody has heard of a result yet. Somebody may have taken the key away by mistake: it can come back."""
_GIVE_BACK = object()


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of an attempt, for people."""

    assignment: Assignment
    what: str
    """succeeded, failed, retrying, snoozed, suspended, cancelled, lost or released."""
    why: str
    """What there is to say about that; may be empty."""
    seconds: float


class Place:
    """Runs one assignment at a time.

    Args:
        number: Which of the worker's places it is.
        time_limit: How long one attempt may take; after that its lease is left to lapse.
        free: Called with this place when an attempt has ended, or is given up.
        tell: Called with what became of it, before that.
    """

    def __init__(
        self,
        number: int,
        *,
        time_limit: timedelta,
        free: Callable[[Place], None],
        tell: Callable[[Ended], None],
    ) -> None:
        self._time_limit = time_limit.total_seconds()
        self._free = free
        self._tell = tell
        self._assignments: SimpleQueue[Assignment] = SimpleQueue()
        self._calls: SimpleQueue[tuple[Assignment, Context]] = SimpleQueue()
        self._mail: SimpleQueue[object] = SimpleQueue()
        self._is_given_up = threading.Event()
        for what, work in (("place", self._look_after), ("handler", self._call)):
            threading.Thread(target=work, name=f"worker-{what}-{number}", daemon=True).start()

    def take(self, assignment: Assignment) -> None:
        """Begin with an assignment; the place is free."""
        self._assignments.put(assignment)

    def give_up(self) -> None:
        """Give back what is being done, at once. The handler may go on in its thread, unheard: take nothing more."""
        self._is_given_up.set()
        self._mail.put(_GIVE_BACK)

    # ── The thread that calls handlers ───────────────────────────────────────────────────────────────────────────

    def _call(self) -> None:
        while True:
            assignment, context = self._calls.get()
            try:
                report = assignment.call()
            except BaseException as error:  # noqa: BLE001 - SystemExit and its like end their attempt, and nothing else
                report = _collapsed(context, error)
            self._mail.put(report)

    # ── The thread that looks after them ─────────────────────────────────────────────────────────────────────────

    def _look_after(self) -> None:
        while True:
            assignment = self._assignments.get()
            began = time.monotonic()
            try:
                what, why = self._attempt(assignment)
            except Exception as error:
                log.exception("the attempt is left to lapse", extra=_about(assignment, "left"))
                what, why = "lost", _words(error)
            with suppress(Exception):  # nobody hears it; that is no reason to stop
                self._tell(Ended(assignment, what, why, time.monotonic() - began))
            self._free(self)

    def _attempt(self, assignment: Assignment) -> tuple[str, str]:
        try:
            context = assignment.begin()
        except Unavailable as error:
            return self._released(assignment, f"It could not begin: {error}")
        if context is None:
            return "lost", "its lease had ended before it could begin"
        give_up_at = time.monotonic() + self._time_limit
        self._calls.put((assignment, context))
        report = self._awaited(assignment, context, give_up_at)
        if not isinstance(report, Report):
            return self._released(assignment, "Its worker was stopped.")
        return self._ended(assignment, context, report)

    def _awaited(self, assignment: Assignment, context: Context, give_up_at: float) -> object:
        """Return what the handler's thread reports, or that it is to be given back; keep the lease meanwhile."""
        is_told = False
        while True:
            wait = self._until_next_beat(assignment, give_up_at)
            try:
                return self._mail.get(timeout=wait)
            except Empty:
                self._beat(assignment, context, give_up_at)
            if not is_told:
                is_told = _told(assignment)

    def _until_next_beat(self, assignment: Assignment, give_up_at: float) -> float | None:
        """Return in how many seconds there is something to do; None if there is nothing any more."""
        hold, now = assignment.hold, time.monotonic()
        if hold.is_lost or hold.is_let_go:
            return None
        between = _between_beats(assignment)
        since = now - hold.renewed_at
        # A heartbeat that was due and not answered is sent again sooner than that.
        left = between - since if since < between else between / BEATS
        return max(SHORTEST_BEAT, min(left, give_up_at - now))

    def _beat(self, assignment: Assignment, context: Context, give_up_at: float) -> None:
        """Renew the lease, if nobody else has done that just now, or see that it has been renewed for long enough."""
        hold = assignment.hold
        if time.monotonic() >= give_up_at:
            hold.let_go()
            limit = timedelta(seconds=self._time_limit)
            log.warning("no more heartbeats after %s: the lease lapses", limit, extra=_about(assignment, "let go"))
            return
        if time.monotonic() - hold.renewed_at < _between_beats(assignment):
            return
        try:
            context.heartbeat()
        except Unavailable as error:
            log.warning("not renewed: %s", error, extra=_about(assignment, "not renewed"))
        except Exception:
            log.exception("not renewed", extra=_about(assignment, "not renewed"))

    def _ended(self, assignment: Assignment, context: Context, report: Report) -> tuple[str, str]:
        """Bring the result until somebody has heard of it."""

        def again(state: RetryCallState) -> None:
            if state.attempt_number == 1 and state.outcome is not None:
                why = state.outcome.exception()
                log.warning("its result is kept, and brought again: %s", why, extra=_about(assignment, "kept"))
            if not assignment.hold.is_lost and time.monotonic() - assignment.hold.renewed_at >= _between_beats(
                assignment
            ):
                with suppress(Exception):
                    context.heartbeat()

        bringing = Retrying(
            retry=retry_if_exception_type(UNHEARD),
            wait=wait_exponential(FIRST_WAIT, LONGEST_WAIT) + wait_random(0, FIRST_WAIT),
            stop=stop_after_delay(PATIENCE) | stop_when_event_set(self._is_given_up),
            sleep=sleep_using_event(self._is_given_up),
            before_sleep=again,
            reraise=True,
        )
        try:
            has_ended = bringing(assignment.end, report)
        except UNHEARD as error:
            return "lost", f"nobody has heard of its result: {error}"
        if not has_ended:
            return "lost", "somebody else may run it by now; its result was dropped"
        return _said(assignment, report)

    def _released(self, assignment: Assignment, reason: str) -> tuple[str, str]:
        try:
            if assignment.release(reason):  # also if the lease was lost: it may be that nobody has taken over
                return "released", reason
        except (Unavailable, QuotaExceeded) as error:
            return "lost", f"it could not be given back, so its lease has to lapse: {error}"
        return "lost", "its lease had ended before it could be given back"


def _told(assignment: Assignment) -> bool:
    """Log that a run is not wanted from this worker any more, if a heartbeat (also the handler's own) found that."""
    if assignment.hold.is_lost:
        log.warning(
            "the lease is lost: what its handler returns counts only if nobody has taken over",
            extra=_about(assignment, "lost"),
        )
    elif assignment.hold.is_cancelled:
        log.warning("cancelled: ctx.heartbeat() tells its handler", extra=_about(assignment, "cancelled"))
    return assignment.hold.is_lost or assignment.hold.is_cancelled


def _between_beats(assignment: Assignment) -> float:
    return max(SHORTEST_BEAT, assignment.hold.duration.total_seconds() / BEATS)


def _collapsed(context: Context, error: BaseException) -> Report:
    """Return what is reported of a handler that wanted to end more than itself: it has failed."""
    said = context.said
    trace = "".join(traceback.format_exception(error))
    kept = kept_error(type(error).__qualname__, _words(error), trace)
    return Report(
        Retry(kept.message),
        kept,
        progress=said.progress,
        queries=said.queries,
        tokens=said.tokens,
        entries=context.journal.unwritten,
        calls_made=context.journal.calls_made,
    )


def _said(assignment: Assignment, report: Report) -> tuple[str, str]:
    run, retry = assignment.run, assignment.task.retry
    match report.outcome:
        case Done():
            return "succeeded", ""
        case Retry(reason):
            why = f"{report.error.type}: {reason}" if report.error else reason
            return "failed" if run.attempt - run.forgiven > retry.max_retries else "retrying", why
        case Fail(reason):
            return "failed", f"{report.error.type}: {reason}" if report.error else reason
        case Snooze(_, reason):
            return "snoozed", reason
        case Suspend(reason):
            return "suspended", reason
        case Cancel(reason):
            return "cancelled", reason


def _words(error: BaseException) -> str:
    try:
        return str(error) or type(error).__qualname__
    except Exception:  # noqa: BLE001 - an exception's own text may fail as well
        return type(error).__qualname__


def _about(assignment: Assignment, action: str) -> dict[str, str]:
    return {"action": action, "taskId": assignment.task.id, "executionId": assignment.run.execution_id}
