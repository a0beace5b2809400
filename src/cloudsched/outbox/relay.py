"""The thread that hands the outbox's rows over: at once when this process has committed one, and by polling."""

from __future__ import annotations

import logging
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

    from cloudsched.outbox.handover import Handover

log = logging.getLogger(__name__)

POLL = timedelta(seconds=1)
"""How often a relay looks for rows that others have written."""
_PURGE_SECONDS = 60.0


class GiveBack(Protocol):
    """Gives back what a relay's thread holds between two passes."""

    def __call__(self, *, is_last: bool) -> None:
        """Give it back, for good if the thread ends."""
        ...


class Relay:
    """A thread that hands rows over until it is stopped; as a context manager, it is stopped at the end.

    Several may run at once, in this process and in others: each row is claimed by one. An exception, such as that of a
    database which does not answer, is logged, and the thread goes on.

    Args:
        handover: What it runs.
        poll: How often it looks for rows that other processes have written.
        give_back: Called by the thread after each pass, and as the last one at its end, to give a connection back.
    """

    def __init__(self, handover: Handover, poll: timedelta, give_back: GiveBack) -> None:
        self._handover = handover
        self._poll = poll.total_seconds()
        self._give_back = give_back
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
            self._try_to_give_back(is_last=False)
            if is_down:  # a commit does not hurry what does not answer
                self._is_stopped.wait(self._poll)
            elif not self._is_stopped.is_set():
                self._is_woken.wait(self._poll)
        self._try_to_give_back(is_last=True)

    def _try_to_give_back(self, *, is_last: bool) -> None:
        try:
            self._give_back(is_last=is_last)
        except Exception:
            log.exception("A connection of the outbox's relay could not be given back")
