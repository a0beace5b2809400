"""The threads that hand the outbox's rows over: at once when this process has committed one, and by polling.

PostgreSQL's LISTEN tells of rows which other processes have committed. It only hurries: a row is handed over although
its notification is lost.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from cloudsched.engine.ports.service_threads import ServiceThread, tell_recovered
from cloudsched.errors import Misconfigured
from cloudsched.outbox.rows import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
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


NOTIFY: Final = f"NOTIFY {TABLE}"
"""Tells the listeners of all processes, once the transaction is committed."""


class Listener:
    """Calls a function at its start, and whenever a transaction has committed a row; as a context manager.

    A connection that is lost is opened again, and then the function is called, too.

    Args:
        connect: Opens a connection of the driver's own, of psycopg or psycopg2, and closes it.
        wake: The function.
    """

    def __init__(self, connect: Callable[[], AbstractContextManager[Any]], wake: Callable[[], None]) -> None:
        self._connect = connect
        self._wake = wake
        self._thread = ServiceThread("cloudsched-outbox-listener", self._listen, at_end=self._close)
        self._stopped, self._stop = os.pipe()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.stop()
        os.close(self._stop)
        self._thread.join()

    def _listen(self) -> None:
        with self._connect() as connection:
            if not hasattr(connection, "notifies"):
                raise Misconfigured("Only psycopg and psycopg2 hear notifications. Without them, leave notify out.")
            connection.autocommit = True
            connection.cursor().execute(f"LISTEN {TABLE}")
            tell_recovered()
            while True:
                self._wake()
                heard, _, _ = select.select([connection.fileno(), self._stopped], [], [])
                if self._stopped in heard:
                    return
                _take_notifications(connection)

    def _close(self) -> None:
        os.close(self._stopped)


def _take_notifications(connection: Any) -> None:  # noqa: ANN401 - of either driver
    """Read what has come; raise the driver's error if the connection is lost."""
    if callable(connection.notifies):
        for _ in connection.notifies(timeout=0):
            pass
    else:
        connection.poll()
        connection.notifies.clear()
