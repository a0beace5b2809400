"""The local stack's Cloud Scheduler: the sweep, every minute of the stack's clock."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from types import TracebackType

    from cloudsched.app import App
    from cloudsched.emulator.runtime.clock import MovableClock

log = logging.getLogger(__name__)

INTERVAL = timedelta(minutes=1)
_MIN_INTERVAL = 0.2
"""The least number of real seconds between two sweeps while the clock is being moved."""


class SweepTimer:
    """A context that sweeps in its own thread: every minute, and after the clock jumps by a minute or more.

    While the clock advances a long way it sweeps as often as it can without delaying the clock, and once afterwards.
    """

    def __init__(self, app: App, clock: MovableClock) -> None:
        self._app = app
        self._clock = clock
        self._swept_at = clock.now()
        self._clock_moved = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sweep", daemon=True)

    def __enter__(self) -> Self:
        self._clock.watch(self._clock_moved.set)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clock.unwatch(self._clock_moved.set)
        self._stopped.set()
        self._clock_moved.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stopped.is_set():
            remaining = self._swept_at + INTERVAL - self._clock.now()
            if remaining <= timedelta(0):
                self._sweep()
                self._stopped.wait(_MIN_INTERVAL)
                continue
            self._clock_moved.wait(remaining.total_seconds() if self._clock.mode == "running" else None)
            self._clock_moved.clear()

    def _sweep(self) -> None:
        self._swept_at = self._clock.now()
        try:
            self._app.container.many_tasks.sweep(self._app.sweep)
        except CloudschedError as error:  # the next sweep tries again, as with Cloud Scheduler
            log.warning("the sweep failed: %s", error)
