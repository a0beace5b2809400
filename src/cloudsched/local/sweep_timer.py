"""Sweep in the local stack, by its movable clock."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self

from cloudsched.engine.ports.service_threads import ServiceThread
from cloudsched.local.maintenance import SWEEP_INTERVAL

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.emulator.runtime.clock import MovableClock

_MIN_INTERVAL: Final = 0.2
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
        self._thread = ServiceThread("cloudsched-sweep", self._wait_and_sweep)

    def __enter__(self) -> Self:
        self._clock.watch(self._clock_moved.set)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._clock.unwatch(self._clock_moved.set)
        self._thread.stop()
        self._clock_moved.set()
        self._thread.join()

    def _wait_and_sweep(self) -> float:
        now = self._clock.now()
        remaining = self._swept_at + SWEEP_INTERVAL - now
        if remaining <= timedelta(0):
            self._app.container.many_tasks.sweep(self._app.sweep)
            self._swept_at = now
            return _MIN_INTERVAL

        seconds = remaining.total_seconds() if self._clock.mode == "running" else None
        self._clock_moved.wait(seconds)
        self._clock_moved.clear()
        return 0.0
