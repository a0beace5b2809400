"""The history of attempts, with requests, responses and timing."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from cloudsched.emulator.model.task import HttpResult

DEFAULT_LENGTH: Final = 100_000
"""The number of attempts that are kept. The oldest are dropped first."""
MAX_BODY_BYTES: Final = 256 * 1024 * 1024
"""The total size of the bodies that are kept."""


@dataclass(frozen=True, slots=True)
class Request:
    """The HTTP request that was sent to the target."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Attempt:
    """One delivery of one task.

    Instants are those of the emulator's clock. `seconds` is the target's response time in real time.
    """

    queue: str
    """The queue's full name."""
    task: str
    """The task's id."""
    attempt: int
    """Counted from 1."""
    schedule_at: datetime
    dispatch_at: datetime
    response_at: datetime
    seconds: float
    request: Request
    answer: HttpResult
    fault: str = ""
    """The fault that was injected, if one was."""

    @property
    def name(self) -> str:
        """The task's full name."""
        return f"{self.queue}/tasks/{self.task}"

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as the control API shows it, with bodies as text and invalid UTF-8 replaced."""
        answer = self.answer
        shown: dict[str, Any] = {
            "task": self.name,
            "attempt": self.attempt,
            "scheduleTime": format_rfc3339(self.schedule_at),
            "dispatchTime": format_rfc3339(self.dispatch_at),
            "responseTime": format_rfc3339(self.response_at),
            "seconds": round(self.seconds, 6),
            "ok": answer.ok,
            "request": {
                "method": self.request.method,
                "url": self.request.url,
                "headers": dict(self.request.headers),
                "body": self.request.body.decode(errors="replace"),
            },
            "response": {
                "status": answer.status,
                "headers": dict(answer.headers),
                "body": answer.body.decode(errors="replace"),
            },
        }

        if answer.failure:
            shown["failure"] = answer.failure
        if self.fault:
            shown["fault"] = self.fault
        return shown


class History:
    """The past attempts, oldest first."""

    def __init__(self, length: int = DEFAULT_LENGTH, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._attempts: deque[Attempt] = deque()
        self._length = length
        self._max_body_bytes = max_body_bytes
        self._bytes = 0

    def add(self, attempt: Attempt) -> None:
        """Record an attempt, and drop the oldest ones beyond the limits."""
        self._attempts.append(attempt)
        self._bytes += _body_size(attempt)
        while len(self._attempts) > self._length or self._bytes > self._max_body_bytes:
            self._bytes -= _body_size(self._attempts.popleft())

    def attempts(self, queue: str = "", task: str = "") -> list[Attempt]:
        """Return the attempts: all, or those of a queue (full name) or a task (full name or id)."""
        return [
            attempt
            for attempt in tuple(self._attempts)
            if (not queue or attempt.queue == queue) and (not task or task in (attempt.task, attempt.name))
        ]


def _body_size(attempt: Attempt) -> int:
    return len(attempt.request.body) + len(attempt.answer.body)


def format_rfc3339(at: datetime) -> str:
    """Format an instant as RFC 3339 in UTC, always with six decimals."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
