"""The worker: it claims as much as it has free places for, runs that, and stops without losing anything.

One loop: look what there is, hand it to free places, wait until something has happened. What can happen comes as mail:
a place is free again, a listener rings, somebody wants it to stop. Where nothing rings it looks every few seconds, and
less often the longer there is nothing.
"""

from __future__ import annotations

import logging
import random
import time
from datetime import timedelta
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from cloudsched.errors import (
    Forbidden,
    InvalidInput,
    Misconfigured,
    NotFound,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
)
from cloudsched.worker.background import BackgroundCalls
from cloudsched.worker.slot import Slot
from cloudsched.worker.source import mismatch_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.worker.slot import AttemptSummary
    from cloudsched.worker.source import ClaimedWork, WorkSource

log = logging.getLogger(__name__)

POLL_INTERVAL = timedelta(seconds=3)
"""How long to wait before looking again, where nothing rings. An empty look costs one read."""
GRACE_PERIOD = timedelta(seconds=25)
"""How long running attempts may take to end once the worker is to stop: Kubernetes kills after 30 seconds, and giving
back takes some. Cloud Run kills after 10; there 7 is better."""
TIME_LIMIT = timedelta(hours=24)
"""How long one attempt may take."""
RELEASE_TIMEOUT = 4.0
"""How many seconds it may take to give back what has not ended within the grace."""

MAX_RETRY_AFTER = 300.0
"""How many seconds a worker stays away at the most because it is asked to."""

_FATAL_ERRORS = (Unauthenticated, Forbidden, Misconfigured)
"""What no new try will mend."""
_FATAL_AT_START = (NotFound, InvalidInput)
"""The same, if it is the first thing that is heard: a wrong address, or a wrong queue."""


class PollBackoff:
    """How many seconds to wait before looking again.

    Args:
        poll: The usual wait.
        can_listen: Whether something rings when there is work, so that looking is a precaution.
        chance: What spreads workers that began at the same time.
    """

    IDLE_GROWTH = 1.5
    MAX_IDLE_FACTOR, MAX_IDLE_FACTOR_LISTENING = 5.0, 20.0
    """How many times the usual wait it may become while there is nothing."""
    INITIAL_BACKOFF, MAX_BACKOFF = 1.0, 30.0
    """How many seconds pass while nobody answers, at first and at the most."""

    def __init__(self, poll: timedelta, *, can_listen: bool, chance: random.Random | None = None) -> None:
        self._poll = poll.total_seconds()
        self._longest = self._poll * (self.MAX_IDLE_FACTOR_LISTENING if can_listen else self.MAX_IDLE_FACTOR)
        self._chance = chance or random.Random()  # noqa: S311 - it guards nothing
        self._idle = self._poll
        self._pause = self.INITIAL_BACKOFF

    def next_delay(self, found: int | None, requested_wait: float = 0.0) -> float:
        """Return the wait after a look that found so much; None if nobody answered, or asked for a wait."""
        if found is None:
            pause, self._pause = self._pause, min(self._pause * 2, self.MAX_BACKOFF)
            return max(requested_wait, pause * self._chance.uniform(0.75, 1.25))
        self._pause = self.INITIAL_BACKOFF
        self._idle = self._poll if found else min(self._idle * self.IDLE_GROWTH, self._longest)
        return self._idle * self._chance.uniform(0.75, 1.25)


class Worker:
    """Takes work from a desk and runs it.

    Args:
        source: Where the work comes from. What it wants is what the worker may run.
        concurrency: How many attempts run at once; no more than that are ever claimed.
        poll: How long to wait before looking again, where nothing rings.
        grace: How long running attempts may take to end once it is to stop; then they are given back.
        time_limit: How long one attempt may take; then its lease is left to lapse.
        on_attempt_finished: Called with what became of each attempt.
    """

    def __init__(
        self,
        source: WorkSource,
        *,
        concurrency: int = 1,
        poll: timedelta = POLL_INTERVAL,
        grace: timedelta = GRACE_PERIOD,
        time_limit: timedelta = TIME_LIMIT,
        on_attempt_finished: Callable[[AttemptSummary], None] = lambda _: None,
    ) -> None:
        self._source = source
        self._poll = poll
        self._grace = grace.total_seconds()
        self._wakeups: SimpleQueue[Slot | None] = SimpleQueue()  # whose `put` a signal's handler may call
        self._free = [
            Slot(n, time_limit=time_limit, on_free=self._wakeups.put, on_attempt_finished=on_attempt_finished)
            for n in range(concurrency)
        ]
        self._busy: set[Slot] = set()
        self._background_calls: BackgroundCalls[Sequence[ClaimedWork]] = BackgroundCalls()
        self._stops = 0
        self._stopped_at: float | None = None
        self._requested_wait = 0.0
        self._has_connected = False
        self._outage_since: float | None = None
        self.leaves_handlers_running = False
        """Whether handlers go on whose attempts were given back: no thread can be ended from outside."""

    @property
    def was_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stops > 0

    def stop(self) -> None:
        """Claim nothing more, and end when what runs has ended; called again, give that back now. Any thread may.

        So may a signal's handler.
        """
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
        self._stops += 1
        self._background_calls.stop()
        self._wakeups.put(None)

    def run(self, *, once: bool = False) -> None:
        """Work until `stop` is called; or, `once`, until there is nothing and nothing runs any more.

        Raises:
            Unauthenticated: It could not prove who it is.
            Forbidden: It may not work there.
            Misconfigured: Something is set wrong.
            Unavailable: Nobody answered, and it was to work `once`.
        """
        with self._source.listen(lambda: self._wakeups.put(None)):
            try:
                self._work(PollBackoff(self._poll, can_listen=self._source.can_listen), once=once)
            finally:
                self._shut_down()

    def _work(self, pace: PollBackoff, *, once: bool) -> None:
        while not self._stops:
            free = len(self._free)
            found = self._poll_once(free, once=once) if free else ()
            if self._stops and found:
                self._background_calls.call(partial(self._release_all, found))
                return
            for assignment in found or ():
                place = self._free.pop()
                self._busy.add(place)
                place.assign(assignment)
            if once and not found and not self._busy:
                return
            if not self._free or (once and self._busy):
                self._wait(None)
            elif not once:
                self._wait(pace.next_delay(None if found is None else len(found), self._requested_wait))

    def _poll_once(self, free: int, *, once: bool) -> Sequence[ClaimedWork] | None:
        """Return what was claimed; None if nobody answered, which is said once."""
        self._requested_wait = 0.0
        try:
            found = self._background_calls.call(partial(self._claim, free))
        except _FATAL_ERRORS as error:
            if not self._busy:
                raise
            self._note_outage(error)  # it ends by that when what runs has ended, which takes the proof that is refused
            return None
        except Exception as error:
            if once or (isinstance(error, _FATAL_AT_START) and not self._has_connected):
                raise
            self._note_outage(error)
            return None
        if found is None:
            log.warning("stops before it was answered: what it may have claimed is offered again when its lease ends")
            return None
        self._has_connected = True
        if self._outage_since is not None:
            log.warning("there are answers again after %.0f s", time.monotonic() - self._outage_since)
            self._outage_since = None
        return found

    def _claim(self, free: int) -> Sequence[ClaimedWork]:
        """Return what was claimed and may run here. What comes when the worker is to stop is given back."""
        found = self._source.claim(free)
        if self._stops:
            return self._release_all(found)
        return [assignment for n, assignment in enumerate(found) if self._accept_or_release(assignment, n < free)]

    def _release_all(self, found: Sequence[ClaimedWork]) -> Sequence[ClaimedWork]:
        for assignment in found:
            _release(assignment, "The worker stops.")
        return ()

    def _note_outage(self, error: Exception) -> None:
        if isinstance(error, QuotaExceeded) and error.retry_after is not None:
            self._requested_wait = min(float(error.retry_after), MAX_RETRY_AFTER)
        if self._outage_since is not None:
            return
        self._outage_since = time.monotonic()
        is_news = not isinstance(error, (Unavailable, QuotaExceeded, *_FATAL_ERRORS))
        log.warning("nothing can be claimed at present, tries again: %s", error, exc_info=error if is_news else None)

    def _accept_or_release(self, assignment: ClaimedWork, is_asked_for: bool) -> bool:  # noqa: FBT001 - of the one call above
        why = (
            mismatch_reason(self._source.worker_filter, assignment.task)
            if is_asked_for
            else "it is more than was asked for"
        )
        if why is None:
            return True
        log.error("given back: %s", why, extra={"action": "misfit", "taskId": assignment.task.id})
        _release(assignment, f"Given to the wrong worker: {why}.")
        return False

    def _shut_down(self) -> None:
        """Let what runs end, and give back the rest."""
        if self._busy and self._grace and self._stops <= 1:
            count, grace = len(self._busy), self._grace
            log.warning("stopping: %d may go on for %g s; another signal gives back what has not ended", count, grace)
        until = (self._stopped_at or time.monotonic()) + self._grace
        while self._busy and self._stops <= 1 and time.monotonic() < until:
            self._wait(until - time.monotonic())
        for place in self._busy:
            self.leaves_handlers_running = True
            place.release()
        until = time.monotonic() + RELEASE_TIMEOUT
        while self._busy and time.monotonic() < until:
            self._wait(until - time.monotonic())

    def _wait(self, seconds: float | None) -> None:
        """Wait for mail, so long at most, and take all that there is."""
        try:
            while True:
                place = self._wakeups.get(timeout=None if seconds is None else max(0.0, seconds))
                seconds = 0.0
                if place is not None:
                    self._busy.discard(place)
                    self._free.append(place)
        except Empty:
            return


def _release(assignment: ClaimedWork, reason: str) -> None:
    try:
        assignment.release(reason)
    except Exception as error:  # noqa: BLE001 - whatever it is, the worker has other work
        about = {"action": "not released", "taskId": assignment.task.id}
        log.warning("it could not be given back, its lease will lapse: %s", error, extra=about)
