"""The thread that hears of rows which other processes have committed: PostgreSQL's LISTEN.

It only hurries: a relay polls as well, so a row is handed over although its notification is lost.
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Any, Final, Self

from cloudsched.engine.ports.service_threads import ServiceThread, tell_recovered
from cloudsched.errors import Misconfigured
from cloudsched.outbox.entry import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType

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
