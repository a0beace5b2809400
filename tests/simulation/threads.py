"""Threads of which one runs at a time: cheap to start, and cheap to hand over to.

Histories hand over several thousand times. What made them slow was not the product but these hand-overs: each woke a
thread on another, busy core and waited for its turn there. On one core, with plain locks instead of semaphores and with
threads that are used again, a history takes a fraction of the time.
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_idle: list[_Runner] = []


class Baton:
    """The switch on which a thread waits until another hands over to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.hand_over = self._lock.release
        self.take = self._lock.acquire


class _Runner:
    """A thread that runs one function after the other."""

    def __init__(self) -> None:
        self._baton = Baton()
        self._work: Callable[[], None] = lambda: None
        threading.Thread(target=self._run, daemon=True).start()

    def start(self, work: Callable[[], None]) -> None:
        """Run a function, which must not raise."""
        self._work = work
        self._baton.hand_over()

    def _run(self) -> None:
        while True:
            self._baton.take()
            self._work()
            _idle.append(self)


def run_in_thread(work: Callable[[], None]) -> None:
    """Run a function, which must not raise, in a thread that has nothing to do, or in a new one."""
    (_idle.pop() if _idle else _Runner()).start(work)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process on the core where it is, where the system allows that: a hand-over then waits for no other."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {sorted(before)[os.getpid() % len(before)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
