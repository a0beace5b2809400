"""Keep the queue of a process that runs a folder's tasks filled, and sweep.

At the start, from then on every `LOAD_INTERVAL`, and when the clock was set, the tasks that are due soon are
read from the store and queued in memory, so memory does not grow with the number of tasks, and a restart
edits none of them.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudsched.adapters.in_process_queue import CLOCK_CHECK_SECONDS
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.app import App
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage

log: Final = own_logger(__name__)

SWEEP_INTERVAL: Final = timedelta(minutes=1)
LOAD_INTERVAL: Final = timedelta(minutes=5)
LOAD_AHEAD: Final = timedelta(minutes=10)
"""The time ahead for which tasks are queued in memory. It exceeds `LOAD_INTERVAL` by a slow load or sweep."""


class Maintenance:
    """Keeps the queue filled, and sweeps, in a thread each.

    Nobody waits for the first load, which reads all that was running: what is created before it is found by
    it. The first sweep waits for it, but not if it fails.
    """

    def __init__(self, app: App, clock: Clock, window: WindowedDispatcher) -> None:
        self._app = app
        self._window = window
        self._load_interval = IntervalTimer(clock, LOAD_INTERVAL)
        self._sweep_interval = IntervalTimer(clock, SWEEP_INTERVAL)
        self._has_tried_to_load = threading.Event()
        self._threads = (
            ServiceThread("cloudsched-load", self._load_if_due),
            ServiceThread("cloudsched-sweep", self._sweep_if_due),
        )

    def start(self) -> None:
        """Start both threads."""
        for each in self._threads:
            each.start()

    def stop(self, grace: timedelta) -> None:
        """Stop both threads, and wait this long for each."""
        for each in self._threads:
            each.stop()
        self._has_tried_to_load.set()
        for each in self._threads:
            if each.ident is not None:
                each.join(grace.total_seconds())

    def _load_if_due(self) -> float:
        self._load_interval.call_if_over(self._load)
        return CLOCK_CHECK_SECONDS

    def _load(self, now: datetime) -> None:
        until = now + LOAD_AHEAD
        self._window.accept_until(until)
        try:
            count = self._app.container.sweeper.resend(until)
        finally:
            self._has_tried_to_load.set()
        log.debug("loaded", extra={"action": "loaded", "dispatched": count})

    def _sweep_if_due(self) -> float:
        self._has_tried_to_load.wait()
        self._sweep_interval.call_if_over(partial(sweep, self._app))
        return CLOCK_CHECK_SECONDS


def sweep(app: App, _now: datetime) -> None:
    """Sweep, and update usage and the operator's switch."""
    app.container.many_tasks.sweep(app.sweep)


class WindowedDispatcher:
    """A `Dispatcher` that passes on only dispatches that are due before an instant, and drops the others."""

    def __init__(self, queue: Dispatcher) -> None:
        self._queue = queue
        self._end = datetime.min.replace(tzinfo=UTC)

    def accept_until(self, end: datetime) -> None:
        """Accept dispatches that are due up to this instant, which moves back when the clock is set back.

        Call this before the tasks that are due by then are read from the store. A task that is committed
        before that read is found by it, and the dispatch of one that is committed later is accepted here:
        none is missed.
        """
        self._end = end

    def create(self, message: QueueMessage) -> None:
        """Queue a dispatch that is due soon enough, and drop any other."""
        if message.at <= self._end:
            self._queue.create(message)

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()


class IntervalTimer:
    """A timer that fires when either clock says so, or when the wall clock was set back.

    The wall clock may be set, and goes on while the machine sleeps. The monotonic one, `seconds`, stands still
    meanwhile.
    """

    def __init__(self, clock: Clock, length: timedelta, seconds: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._length = length
        self._seconds = seconds
        self._began: tuple[datetime, float] | None = None

    def call_if_over(self, work: Callable[[datetime], object]) -> None:
        """Call a function with the time if the interval is over or was never started, and restart it."""
        if self._is_over():
            now = self._clock.now()
            work(now)
            self._began = (now, self._seconds())

    def _is_over(self) -> bool:
        if self._began is None:
            return True
        at, seconds = self._began
        is_over = self._seconds() - seconds >= self._length.total_seconds()
        return is_over or not timedelta(0) <= self._clock.now() - at < self._length
