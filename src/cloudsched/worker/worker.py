"""The worker: claims as many runs as it has free slots, runs them, and shuts down without losing any.

One loop: poll, assign the claimed work to free slots, wait for a wake-up. A slot that becomes free, a listener's
notification and `stop` each send a wake-up. A poll that waits for work is followed by the next one at once. Without
either, the worker polls every few seconds, and less often the longer there is no work.
"""

from __future__ import annotations

import random
import time
from datetime import timedelta
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.engine.durable.event_loop import Outcome
from cloudsched.engine.execution.probation import Probation
from cloudsched.errors import (
    Forbidden,
    InvalidInput,
    Misconfigured,
    NotFound,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
)
from cloudsched.worker.slot import AttemptSummary, Slot, WorkerThreads, take

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.worker.source import ClaimedWork, WorkSource

T = TypeVar("T")

SHUTDOWN_WAIT_SECONDS = 10.0
"""The least seconds of waiting for a result after `stop`."""


class BackgroundCalls(Generic[T]):
    """Runs one call at a time on a helper thread. Until `stop`, its caller waits for each result."""

    def __init__(self, wait: timedelta = timedelta(0)) -> None:
        """Take for how long a call may wait for work: `stop` waits for that, too, so that no claim is lost."""
        self._shutdown_seconds = max(SHUTDOWN_WAIT_SECONDS, wait.total_seconds() + 2)
        self._requests: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._results: SimpleQueue[Outcome | None] = SimpleQueue()  # its `put` is safe to call from a signal handler
        self._stops = 0
        self._is_started = False

    def close(self) -> None:
        """End the thread, once what it was given has returned."""
        if self._is_started:
            self._requests.put(None)
            self._is_started = False

    def stop(self) -> None:
        """Wait a while longer for a result, after a second call not at all. Thread-safe."""
        self._stops += 1
        self._results.put(None)

    def call(self, function: Callable[[], T]) -> T | None:
        """Run a function and return its result, None if the wait was cut short. Raises what the function raises."""
        if not self._is_started:
            self._is_started = True
            ServiceThread("worker-calls", self._run_next).start()
        self._requests.put(function)
        deadline = time.monotonic() + self._shutdown_seconds if self._stops else None
        while self._stops <= 1:
            try:
                outcome = take(self._results, None if deadline is None else deadline - time.monotonic())
            except Empty:
                return None
            if outcome is not None:
                return cast("T", outcome.unwrap())
            deadline = time.monotonic() + self._shutdown_seconds
        return None

    def _run_next(self) -> float | None:
        function = self._requests.get()
        if function is None:
            return None
        outcome = Outcome()
        outcome.call(function)
        self._results.put(outcome)
        return 0.0


log: Final = own_logger(__name__)

POLL_INTERVAL = timedelta(seconds=3)
"""The interval between polls without a listener. A poll that finds nothing costs one read."""
GRACE_PERIOD = timedelta(seconds=25)
"""The time in which running attempts may finish after `stop`. Kubernetes kills after 30 seconds, and releasing takes
some of them. Cloud Run kills after 10: use 7 there."""
TIME_LIMIT = timedelta(hours=24)
"""The longest that one attempt may take."""
RELEASE_TIMEOUT = 4.0
"""The seconds in which unfinished attempts are released after the grace period."""

MAX_RETRY_AFTER = 300.0
"""The longest ``Retry-After``, in seconds, that a worker respects."""

_FATAL_ERRORS = (Unauthenticated, Forbidden, Misconfigured)
"""Errors that no retry can fix."""
_FATAL_AT_START = (NotFound, InvalidInput)
"""Errors that no retry can fix if the first poll raises them: a wrong address, or a wrong queue."""


class PollBackoff:
    """Computes the seconds to wait before the next poll.

    With a listener, polling is only a precaution. The jitter spreads workers that started at the same time.
    """

    IDLE_GROWTH = 1.5
    MAX_IDLE_FACTOR = 5.0
    MAX_IDLE_FACTOR_LISTENING = 20.0
    """The longest interval while there is no work, in multiples of the usual one."""
    INITIAL_BACKOFF = 1.0
    MAX_BACKOFF = 30.0
    """The first and the longest wait, in seconds, while polls fail."""

    def __init__(self, poll: timedelta, *, can_listen: bool, chance: random.Random | None = None) -> None:
        self._poll = poll.total_seconds()
        self._longest = self._poll * (self.MAX_IDLE_FACTOR_LISTENING if can_listen else self.MAX_IDLE_FACTOR)
        self._chance = chance or random.Random()  # noqa: S311 - not for security
        self._idle = self._poll
        self._pause = self.INITIAL_BACKOFF

    def next_delay(self, count: int | None, requested_wait: float = 0.0) -> float:
        """Return the wait after a poll that claimed `count` runs, or failed (None)."""
        if count is None:
            pause = self._pause
            self._pause = min(self._pause * 2, self.MAX_BACKOFF)
            return max(requested_wait, pause * self._chance.uniform(0.75, 1.25))
        self._pause = self.INITIAL_BACKOFF
        self._idle = self._poll if count else min(self._idle * self.IDLE_GROWTH, self._longest)
        return self._idle * self._chance.uniform(0.75, 1.25)


class Worker:
    """Claims work from a source and runs it, at most `concurrency` attempts at once.

    After `stop`, running attempts may finish within the grace period, and then are released. After the time limit of an
    attempt its lease is no longer renewed and expires.
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
        self._wakeups: SimpleQueue[Slot | None] = SimpleQueue()  # its `put` is safe to call from a signal handler
        self._free = [
            Slot(time_limit=time_limit, on_free=self._wakeups.put, on_attempt_finished=self._end_turn)
            for _ in range(concurrency)
        ]

        self._busy: set[Slot] = set()
        self._probation = Probation()
        self._on_attempt_finished = on_attempt_finished
        self._background_calls: BackgroundCalls[Sequence[ClaimedWork]] = BackgroundCalls(source.wait)

        self._stops = 0
        self._stopped_at: float | None = None
        self._requested_wait = 0.0
        self._has_waited = False
        self._has_connected = False
        self._outage_since: float | None = None
        self.leaves_handlers_running: bool = False
        """True if handlers of released attempts still run: they cannot be ended from outside."""

    @property
    def was_stopped(self) -> bool:
        """Return whether `stop` was called."""
        return self._stops > 0

    def stop(self) -> None:
        """Claim nothing more, and return from `run` once the running attempts have finished.

        A second call releases them at once. Any thread may call this, and so may a signal handler.
        """
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
        self._stops += 1
        self._background_calls.stop()
        self._wakeups.put(None)

    def run(self, *, once: bool = False) -> None:
        """Work until `stop` is called.

        With `once`, return when there is no more work to claim and no attempt runs, and raise Unavailable if the source
        does not answer. Errors of the credential, the queue or a setting are raised in any case.
        """
        with self._source.listen(lambda: self._wakeups.put(None)):
            threads = WorkerThreads()
            try:
                self._work(threads, PollBackoff(self._poll, can_listen=self._source.can_listen), once=once)
            finally:
                self._shut_down()
                self._background_calls.close()
                if not self._busy and not self.leaves_handlers_running:
                    threads.close()

    def _work(self, threads: WorkerThreads, backoff: PollBackoff, *, once: bool) -> None:
        while not self._stops:
            free = len(self._free)
            claimed = self._poll_once(free, once=once) if free else ()
            if self._stops and claimed:
                self._background_calls.call(partial(self._release_all, claimed))
                return
            for work in claimed or ():
                slot = self._free.pop()
                self._busy.add(slot)
                slot.assign(work, threads)
            if once and not claimed and not self._busy:
                return
            if not self._free or (once and self._busy):
                self._wait(None)
            elif not once:
                delay = backoff.next_delay(None if claimed is None else len(claimed), self._requested_wait)
                self._wait(0.0 if claimed is not None and self._has_waited else delay)

    def _poll_once(self, free: int, *, once: bool) -> Sequence[ClaimedWork] | None:
        """Return what was claimed, None if the poll failed, which is logged once per outage."""
        self._requested_wait = 0.0
        began = time.monotonic()

        try:
            claimed = self._background_calls.call(partial(self._claim, free))
        except _FATAL_ERRORS as error:
            if not self._busy:
                raise
            # It is raised once the running attempts have ended: they still try to report their results.
            self._note_outage(error)
            return None
        except Exception as error:
            if once or (isinstance(error, _FATAL_AT_START) and not self._has_connected):
                raise
            self._note_outage(error)
            return None
        if claimed is None:
            log.warning("stopped before the claim was answered: what it claimed is offered again when its lease ends")
            return None

        self._has_connected = True
        longest = self._source.wait.total_seconds()
        self._has_waited = longest > 0 and (bool(claimed) or time.monotonic() - began >= longest / 2)
        if self._outage_since is not None:
            log.warning("claiming works again after %.0f s", time.monotonic() - self._outage_since)
            self._outage_since = None
        return claimed

    def _claim(self, free: int) -> Sequence[ClaimedWork]:
        """Return what was claimed and may run here. After `stop`, everything that was claimed is released."""
        has_chosen = self._source.worker_filter.task_id is not None and self._has_connected
        claimed = () if has_chosen else self._source.claim(free)
        if self._stops:
            return self._release_all(claimed)
        accepted = [work for n, work in enumerate(claimed) if self._accept_or_release(work, is_within_limit=n < free)]
        return [work for work in accepted if self._begin_turn(work)]

    def _begin_turn(self, work: ClaimedWork) -> bool:
        """Return whether a run may begin. One that was lost with its process is released while others of these run."""
        losses = work.run.losses
        duration = work.task.expected_duration.total_seconds()
        if not losses or not self._probation.await_turn(_name(work), losses, duration, time.monotonic()):
            return True
        _release(work, "Its last worker was lost, so it waits until no other such run is running here.")
        return False

    def _end_turn(self, summary: AttemptSummary) -> None:
        self._probation.end(_name(summary.work))
        self._on_attempt_finished(summary)

    def _release_all(self, claimed: Sequence[ClaimedWork]) -> Sequence[ClaimedWork]:
        for work in claimed:
            _release(work, "The worker stops.")
        return ()

    def _note_outage(self, error: Exception) -> None:
        if isinstance(error, QuotaExceeded) and error.retry_after is not None:
            self._requested_wait = min(float(error.retry_after), MAX_RETRY_AFTER)
        if self._outage_since is not None:
            return
        self._outage_since = time.monotonic()
        is_unexpected = not isinstance(error, (Unavailable, QuotaExceeded, *_FATAL_ERRORS))
        log.warning("cannot claim work, will retry: %s", error, exc_info=error if is_unexpected else None)

    def _accept_or_release(self, work: ClaimedWork, *, is_within_limit: bool) -> bool:
        reason = (
            self._source.worker_filter.explain_mismatch(work.task)
            if is_within_limit
            else "it is more than the worker asked for"
        )
        if reason is None:
            return True
        log.error("released: %s", reason, extra={"action": "claim_mismatch", "taskId": work.task.id})
        _release(work, f"Assigned to the wrong worker: {reason}.")
        return False

    def _shut_down(self) -> None:
        """Wait for the running attempts for as long as the grace period, then release the rest."""
        if self._busy and self._grace and self._stops <= 1:
            count = len(self._busy)
            grace = self._grace
            log.warning("stopping: %d running may finish within %g s; another signal releases them now", count, grace)
        deadline = (self._stopped_at or time.monotonic()) + self._grace
        while self._busy and self._stops <= 1 and time.monotonic() < deadline:
            self._wait(deadline - time.monotonic())
        for slot in self._busy:
            self.leaves_handlers_running = True
            slot.release()
        deadline = time.monotonic() + RELEASE_TIMEOUT
        while self._busy and time.monotonic() < deadline:
            self._wait(deadline - time.monotonic())

    def _wait(self, seconds: float | None) -> None:
        """Wait up to `seconds` (None: forever) for a wake-up, and consume all that have arrived."""
        try:
            while True:
                slot = take(self._wakeups, seconds)
                seconds = 0.0
                if slot is not None:
                    self._busy.discard(slot)
                    self._free.append(slot)
        except Empty:
            return


def _name(work: ClaimedWork) -> tuple[str, str]:
    return work.task.id, work.run.execution_id


def _release(work: ClaimedWork, reason: str) -> None:
    try:
        work.release(reason)
    except Exception as error:  # noqa: BLE001 - no error here may stop the worker
        about = {"action": "release_failed", "taskId": work.task.id}
        log.warning("could not be released, its lease will expire: %s", error, extra=about)
