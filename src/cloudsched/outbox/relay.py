"""The thread that hands the outbox's rows over: at once when this process has committed one, and by polling."""

from __future__ import annotations

import logging
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from cloudsched.outbox.handover import Handover

log = logging.getLogger(__name__)

POLL = timedelta(seconds=1)
"""How often a relay looks for rows that others have written."""
_PURGE_SECONDS = 60.0


class Relay:
    """A thread that hands rows over until it is stopped; as a context manager, it is stopped at the end.

    Several may run at once, in this process and in others: each row is claimed by one. An exception, such as that of a
    database which does not answer, is logged, and the thread goes on.

    Args:
        handover: What it runs.
        poll: How often it looks for rows that other processes have written.
        on_pass: Called by the thread after each pass, for instance to give a connection back.
    """

    def __init__(self, handover: Handover, poll: timedelta = POLL, on_pass: Callable[[], None] = lambda: None) -> None:
        self._handover = handover
        self._poll = poll.total_seconds()
        self._on_pass = on_pass
        self._is_woken = threading.Event()
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cloudsched-outbox", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._thread.join()

    def wake(self) -> None:
        """Look for rows now."""
        self._is_woken.set()

    def stop(self) -> None:
        """Let the thread end after the row that it hands over; the rest is released."""
        self._is_stopped.set()
        self._is_woken.set()

    def _run(self) -> None:
        purged_at = float("-inf")
        while not self._is_stopped.is_set():
            self._is_woken.clear()
            is_down = True
            try:
                is_down = self._handover.run(self._is_stopped.is_set).is_down
                if time.monotonic() - purged_at >= _PURGE_SECONDS:
                    purged_at = time.monotonic()
                    self._handover.purge()
            except Exception:
                log.exception("The outbox could not be read or written; the relay tries again")
            finally:
                self._give_back()
            if is_down:  # a commit does not hurry what does not answer
                self._is_stopped.wait(self._poll)
            elif not self._is_stopped.is_set():
                self._is_woken.wait(self._poll)

    def _give_back(self) -> None:
        try:
            self._on_pass()
        except Exception:
            log.exception("A connection of the outbox's relay could not be given back")
