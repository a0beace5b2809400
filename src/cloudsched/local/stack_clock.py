"""The clock of the local stack: the local Cloud Tasks moves it, and delivers what falls due on the way."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any, Final

from cloudsched.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.emulator.runtime.clock import MovableClock

_MOVE_TIMEOUT_SECONDS: Final = 600
"""How long a move of the clock may take, while everything that falls due runs."""


class StackClock:
    """The stack's clock, as its pages show and move it.

    `key` is the one that the local Cloud Tasks asks for.
    """

    def __init__(self, clock: MovableClock, address: str, key: str = "") -> None:
        self._clock = clock
        self._address = address
        self._headers = {"X-Api-Key": key} if key else {}

    @property
    def mode(self) -> str:
        """Return whether the clock runs or is frozen, in a word."""
        return "runs" if self._clock.mode == "running" else "stands still"

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        return self._clock.now()

    def move(self, command: dict[str, object]) -> dict[str, object]:
        """Carry out a command of ``/clock``, and return the clock's state."""
        status, content = self.exchange("POST", json.dumps(command))
        if status >= http.client.BAD_REQUEST:
            raise InvalidInput("clock", str(content.get("error", {}).get("message", content)))
        return content

    def exchange(self, method: str, body: str | None) -> tuple[int, dict[str, Any]]:
        """Send a request to ``/clock``.

        Return the status and the content. Raises Unavailable if nothing answers.
        """
        connection = http.client.HTTPConnection(self._address, timeout=_MOVE_TIMEOUT_SECONDS)
        try:
            connection.request(method, "/clock", body, self._headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable("The local Cloud Tasks", type(error).__name__) from error
        finally:
            connection.close()
