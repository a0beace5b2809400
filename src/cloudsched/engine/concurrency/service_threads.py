"""Threads that survive every error, and report one for as long as it keeps them from their work.

All background work of a process runs in a `ServiceThread`. None ends in silence: an error of its turn is logged, the
turn is repeated after a pause, and until it succeeds `find_faults` names the thread. ``/ready`` and the dashboard show
that.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Callable

log: Final = own_logger(__name__)

FIRST_PAUSE: Final = 0.1
"""The pause of a thread after its first failure, in seconds. It doubles after each further one."""
MAX_PAUSE: Final = 5.0
"""The longest that it waits: it goes on soon after a disk has room again, or a file is free."""


class ServiceThread(threading.Thread):
    """A daemon thread that repeats a turn until it is stopped, whatever the turn raises.

    `turn` returns how many seconds to wait before the next, or None to end the thread, which then calls `at_end`.
    """

    def __init__(
        self, name: str, turn: Callable[[], float | None], *, at_end: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.turn = turn
        self._at_end = at_end
        self._stopping = threading.Event()
        self._failures = 0
        """The number of failures of the turn in a row."""
        self._kind = ""

    @property
    def is_stopping(self) -> bool:
        """Return whether it was told to stop."""
        return self._stopping.is_set()

    @property
    def fault(self) -> str | None:
        """Return what keeps it from its work now, None if nothing. The error's own text may be secret, and is omitted.

        A thread that has ended although nobody stopped it has a fault, too.
        """
        if not self.is_alive():
            return "has ended"
        failures, kind = self._failures, self._kind
        if not failures:
            return None
        times = f"{failures:,} times in a row" if failures > 1 else "once"
        return f"has failed {times}: {kind or 'an error that could not be named'}"

    def start(self) -> None:
        """Start it."""
        with _lock:
            _running.add(self)
        try:
            super().start()
        except BaseException:
            with _lock:
                _running.discard(self)
            raise

    def stop(self) -> None:
        """Let it end after its turn. Its owner must end what the turn itself waits for."""
        self._stopping.set()

    def run(self) -> None:
        """Repeat the turn."""
        wait: float | None = 0.0
        while wait is not None and not self._stopping.is_set():
            try:
                wait = self.turn()
                self.recover()
                if wait:
                    self._stopping.wait(wait)
            except BaseException as error:  # noqa: BLE001 - nothing ends it
                wait = min(FIRST_PAUSE * 2 ** min(self._failures, 20), MAX_PAUSE)
                self._failures += 1
                with suppress(BaseException):  # there may be no memory left to tell it with
                    self._tell(error, wait)
                with suppress(BaseException):
                    self._stopping.wait(wait)
        with _lock:
            _running.discard(self)
        self._at_end()

    def _tell(self, error: BaseException, wait: float) -> None:
        self._kind = type(error).__name__
        about = {"action": "thread_failed", "serviceThread": self.name}
        is_known = isinstance(error, CloudschedError)
        log.error("%s has failed and goes on in %.1f s: %s", self.name, wait, error, exc_info=not is_known, extra=about)

    def recover(self) -> None:
        """Note that it works, although its turn is not over: it waits for something to do."""
        if not self._failures:
            return
        failures, self._failures, self._kind = self._failures, 0, ""
        about = {"action": "thread_recovered", "serviceThread": self.name}
        log.warning("%s works again after %d failures", self.name, failures, extra=about)


def report_recovery() -> None:
    """Note that the thread which calls this works: its turn has come to where it waits for something to do."""
    thread = threading.current_thread()
    if isinstance(thread, ServiceThread):
        thread.recover()


_running: Final[set[ServiceThread]] = set()
"""Those of this process that were started and have neither ended nor been stopped."""
_lock = make_lock()


def find_faults() -> dict[str, str]:
    """Return what keeps threads of this process from their work now, by their names. Empty if all of them work."""
    with _lock:
        threads = sorted(_running, key=lambda thread: thread.name)
    return {each.name: fault for each in threads if (fault := each.fault) is not None and not each.is_stopping}


def hide_names(hanging: str) -> str:
    """Return how many handlers hang, and since when, without their names: anybody may ask whether a process is well."""
    if not hanging:
        return ""
    return f"{hanging.partition(':')[0]}, since {hanging.rpartition(', since ')[2]}"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # the parent's threads do not exist in the child
