"""Clocks: the system's, that of a local Cloud Tasks, and one that a test sets."""

from __future__ import annotations

import http.client
import json
import os
import threading
from datetime import UTC, datetime, timedelta

from cloudsched.errors import StoreUnavailable


class SystemClock:
    """The system clock. Nothing else reads it."""

    def now(self) -> datetime:
        """Return the present instant in UTC."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that a test sets. It never goes back.

    Args:
        at: The instant that it is set to.
        each_look: The time by which each look moves it on. No real clock shows an instant twice.
    """

    def __init__(self, at: datetime, each_look: timedelta = timedelta(0)) -> None:
        if at.tzinfo is None:
            raise ValueError("a clock is set to an aware instant")
        self.at: datetime = at.astimezone(UTC)
        """The instant that it shows. Reading it here moves nothing."""
        self.each_look = each_look

    def now(self) -> datetime:
        """Move it on by a look, and return what it shows."""
        if self.each_look:
            self.at += self.each_look
        return self.at

    def move_to(self, at: datetime) -> None:
        """Set it forward to an instant. One in the past leaves it where it is."""
        self.at = max(self.at, at.astimezone(UTC))

    def advance(self, by: timedelta) -> None:
        """Set it forward by a duration."""
        self.move_to(self.at + by)


class EmulatorClock:
    """The clock of a local Cloud Tasks, read on every call, so that moving that clock moves this one."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._local = threading.local()
        self._connections: list[http.client.HTTPConnection] = []

    def now(self) -> datetime:
        """Return the emulator's present instant.

        Without the time the store is of no use either, so the error is StoreUnavailable.
        """
        for is_last in (False, True):
            try:
                return self._fetch_now()
            except (OSError, http.client.HTTPException) as error:
                self._drop_connection()  # the idle connection was closed, or the emulator was restarted
                if is_last:
                    reason = f"{error}. It has the clock. Is it running?"
                    raise StoreUnavailable(f"The local Cloud Tasks at {self._address}", reason) from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections of all threads. The next `now` opens a new one."""
        while self._connections:
            self._connections.pop().close()

    def _drop_connection(self) -> None:
        connection = self._local.connection
        self._local.connection = None
        connection.close()
        if connection in self._connections:
            self._connections.remove(connection)

    def _fetch_now(self) -> datetime:
        connection = getattr(self._local, "connection", None)
        if connection is None or self._local.process != os.getpid():  # in a fork it is the parent's
            connection = http.client.HTTPConnection(self._address, timeout=5)
            self._local.connection = connection
            self._local.process = os.getpid()
            self._connections.append(connection)
        connection.request("GET", "/clock")
        answer = json.loads(connection.getresponse().read())
        return datetime.fromisoformat(answer["now"])
