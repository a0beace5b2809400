"""A circuit breaker for a service that may be down: after several failures in a row, calls fail at once.

While the circuit is open, no request is sent: the failing service gets no load, and callers do not wait for a
deadline that will be missed. After `RECOVERY_TIMEOUT` one trial call is let through. If it succeeds, the
circuit closes. ``GET /health`` shows its state.
"""

from __future__ import annotations

import math
import time
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P")

FAILURE_THRESHOLD = 5
"""The number of consecutive failures that open the circuit."""
RECOVERY_TIMEOUT = timedelta(seconds=15)
"""The time that the circuit stays open before a trial call is let through."""


class CircuitBreakerProxy(Generic[P]):
    """Puts a port's adapter behind a circuit breaker.

    While the circuit is open, for `recovery`, calls raise `error`, the port's own subclass of `Unavailable`.
    """

    def __init__(
        self, port: P, error: type[Unavailable], service: str, *, recovery: timedelta = RECOVERY_TIMEOUT
    ) -> None:
        self._error = error
        self._service = service
        self._recovery = recovery.total_seconds()
        self._failures = 0
        self._retry_at = 0.0
        """The monotonic time of the next trial, after this number of failures."""
        self._lock = make_lock()
        self.port = cast("P", _GuardedPort(port, self._guard))
        """The adapter, with every method guarded."""

    @property
    def state(self) -> str:
        """Return ``closed`` (normal), ``open`` or ``half_open`` (the next call is a trial)."""
        if self._failures < FAILURE_THRESHOLD:
            return "closed"
        if time.monotonic() < self._retry_at:
            return "open"
        return "half_open"

    def _guard(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def guarded(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - the port's own arguments and result
            if self._failures >= FAILURE_THRESHOLD:
                self._begin_trial()
            try:
                result = call(*arguments, **named)
            except Unavailable:
                with self._lock:
                    self._failures += 1
                    self._retry_at = time.monotonic() + self._recovery
                raise
            except Exception:
                self._failures = 0  # the service answered: a conflict, or no such document
                raise
            self._failures = 0
            return result

        return guarded

    def _begin_trial(self) -> None:
        """Allow this call as a trial if the circuit was open for long enough.

        Others fail until it ends, at most as long.
        """
        with self._lock:
            wait = self._retry_at - time.monotonic()
            if self._failures >= FAILURE_THRESHOLD and wait > 0:
                raise self._error(
                    self._service,
                    f"it failed {FAILURE_THRESHOLD} times in a row; the next try is in {math.ceil(wait)} s",
                )
            self._retry_at = time.monotonic() + self._recovery


def _is_part(value: object) -> bool:
    """Return whether a property of a port is a port itself: neither a function nor a plain value."""
    kind = type(value)
    return (
        not callable(value) and kind.__module__.partition(".")[0] != "builtins" and not isinstance(value, str | tuple)
    )


class _GuardedPort:
    """Guards all methods of a port and of its parts, except `close`, which must always work."""

    def __init__(self, port: object, guard: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._port = port
        self._guard = guard

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the port's own
        value = getattr(self._port, name)
        if _is_part(value):
            guarded_part = _GuardedPort(value, self._guard)
            setattr(self, name, guarded_part)
            return guarded_part
        if name == "close" or not callable(value):
            return value
        guarded = self._guard(value)
        setattr(self, name, guarded)
        return guarded
