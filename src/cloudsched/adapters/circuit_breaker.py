"""A circuit breaker in front of a service that may be down: after some failures in a row, callers are told at once.

While the circuit is open nothing is sent, so that a service in trouble is left alone and nobody waits for a deadline
that will not be met. After a while one call is let through; if that succeeds, the circuit closes. The breaker itself
is the `circuitbreaker` package's; its state is shown by ``GET /healthz``.
"""

from __future__ import annotations

from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from circuitbreaker import CircuitBreaker  # type: ignore[import-untyped]  # it ships no types

from cloudsched.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P")

FAILURE_THRESHOLD = 5
"""How many failures in a row open the circuit."""
RECOVERY_TIMEOUT = timedelta(seconds=15)
"""How long it stays open before a call is let through."""


class CircuitBreakerProxy(Generic[P]):
    """A port behind a breaker.

    Args:
        port: The adapter; every call of it that raises `Unavailable` counts as a failure.
        error: What a caller is told while the circuit is open: the port's own kind of `Unavailable`.
        service: What the service is called in errors.
        recovery: How long the circuit stays open.
    """

    def __init__(
        self, port: P, error: type[Unavailable], service: str, *, recovery: timedelta = RECOVERY_TIMEOUT
    ) -> None:
        self._error = error
        self._service = service
        self._breaker = CircuitBreaker(FAILURE_THRESHOLD, recovery.total_seconds(), Unavailable, service)
        self.port = cast("P", _GuardedPort(port, self._guard))
        """The adapter, guarded."""

    @property
    def state(self) -> str:
        """Say ``closed`` (all is well), ``open`` or ``half_open`` (the next call is a trial)."""
        return str(self._breaker.state)

    def _guard(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def guarded(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever the port's method takes and gives
            if self._breaker.opened:
                wait = self._breaker.open_remaining
                raise self._error(
                    self._service, f"it failed {FAILURE_THRESHOLD} times in a row; the next try is in {wait} s"
                )
            with self._breaker:
                return call(*arguments, **named)

        return guarded


class _GuardedPort:
    """Every method of a port, guarded; `close` alone is not, since it must always work."""

    def __init__(self, port: object, guard: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._port = port
        self._guard = guard

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the port's own
        value = getattr(self._port, name)
        if name == "close" or not callable(value):
            return value
        guarded = self._guard(value)
        setattr(self, name, guarded)
        return guarded
