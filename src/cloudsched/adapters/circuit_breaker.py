"""A circuit breaker and a share of the threads for each service that may be down, or never answer.

After several failures in a row, calls fail at once: the failing service gets no load, and callers do not wait for a
deadline that will be missed. After `RECOVERY_TIMEOUT` one trial call is let through. If it succeeds, the circuit
closes. ``GET /health`` shows its state, and the log each change.

A service that takes a connection and says nothing fails only after its timeout. Until then its calls hold no more
threads than their `Places`.
"""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

P = TypeVar("P")

log: Final = own_logger(__name__)

FAILURE_THRESHOLD = 5
"""The number of consecutive failures that open the circuit."""
RECOVERY_TIMEOUT = timedelta(seconds=15)
"""The time that the circuit stays open before a trial call is let through."""
MAX_HOSTS: Final = 1_000
"""The most hosts of users whose failures are remembered, the latest."""
_ADDRESSES: Final = "addresses of users"
_TURN: Final = 0.25
"""The seconds after which each place is offered again to a call that had none."""
_PARTS: Final = (2, 4, 8)
"""The parts of the threads that all services together, one of them, and one host of users may hold."""


class Places:
    """The places of calls that may be under way at once: the rest of the threads is left to other work.

    Attributes:
        threads: The number of threads that run tasks. None if each call is a request of its own, which the queue
            limits.
    """

    def __init__(self) -> None:
        self.threads: int | None = None
        self._taken = Counter[str]()
        self._next: dict[str, float] = {}
        """By name, the monotonic time before which calls that had no place come again."""
        self._lock = make_lock()

    def take(self, names: tuple[str, ...]) -> float:
        """Take a place of each, and return 0. If one has none left, return the seconds after which to ask again.

        However many ask, few of them come again in a second.
        """
        with self._lock:
            for name, part in zip(names, _PARTS, strict=False):
                limit = max(1, (self.threads or sys.maxsize) // part)
                if self._taken[name] >= limit:
                    now = time.monotonic()
                    self._next[name] = max(now + 1, self._next.get(name, 0)) + _TURN / limit
                    return self._next[name] - now
            self._taken.update(names)
        return 0

    def give_back(self, names: tuple[str, ...]) -> None:
        """Give these places back."""
        with self._lock:
            self._taken.subtract(names)
            self._taken = +self._taken  # forgets hosts
            if not self._taken:
                self._next.clear()


@dataclass(slots=True)
class _Failures:
    count: int = 0
    retry_at: float = 0.0
    """The monotonic time of the next trial, after `FAILURE_THRESHOLD` failures."""


class CircuitBreakerProxy(Generic[P]):
    """Puts a port's adapter behind a circuit breaker.

    While the circuit is open, for `recovery`, calls raise `error`, the port's own subclass of `Unavailable`. They do
    so, too, while no place is left among `places`. `find_host` returns the host that a call is for: the addresses of
    users share the places, and each host has a circuit of its own. Only `methods` are guarded, by default all.
    """

    def __init__(
        self,
        port: P,
        error: type[Unavailable],
        service: str,
        *,
        recovery: timedelta = RECOVERY_TIMEOUT,
        places: Places | None = None,
        find_host: Callable[..., str] | None = None,
        methods: Container[str] | None = None,
    ) -> None:
        self._error = error
        self.service = service
        self._recovery = recovery.total_seconds()
        self._places = places
        self._find_host = find_host
        self._failures: dict[str, _Failures] = {}
        """By host, or of the one service: those that have failed last."""
        self._lock = make_lock()
        self.port = cast("P", _GuardedPort(port, self._guard, methods))
        """The adapter, with its methods guarded."""

    @property
    def is_partner(self) -> bool:
        """Return whether tasks can go on without it."""
        return self._places is not None

    @property
    def state(self) -> str:
        """Return ``closed`` (normal), ``open`` or ``half_open`` (the next call is a trial), the worst of its hosts."""
        waits = [each.retry_at for _, each in self._list_open()]
        if not waits:
            return "closed"
        return "open" if max(waits) > time.monotonic() else "half_open"

    def list_silent(self) -> list[str]:
        """Return the hosts to which the circuit is not closed; of the one service, an empty name."""
        return [host for host, _ in self._list_open()]

    def _list_open(self) -> Iterator[tuple[str, _Failures]]:
        for host, failures in tuple(self._failures.items()):
            if failures.count >= FAILURE_THRESHOLD:
                yield host, failures

    def _guard(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def guarded(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - the port's own arguments and result
            if self._places is None:
                return self._try("", partial(call, *arguments, **named))
            host = ""
            names: tuple[str, ...] = ("", self.service)
            if self._find_host is not None:
                host = self._find_host(*arguments)
                names = ("", _ADDRESSES, f"{_ADDRESSES} {host}")
            if wait := self._places.take(names):
                busy = self._error(self._name(host), "as many calls to it as may be are under way; try again")
                busy.is_busy = True
                busy.retry_after = timedelta(seconds=wait)
                raise busy
            try:
                return self._try(host, partial(call, *arguments, **named))
            finally:
                self._places.give_back(names)

        return guarded

    def _try(self, host: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - the port's own result
        if host in self._failures:
            self._begin_trial(host)
        try:
            result = call()
        except Unavailable as error:
            if error.has_answered:
                self._close(host)
            else:
                self._note_failure(host)
            raise
        except Exception:
            self._close(host)  # the service answered: a conflict, or no such document
            raise
        self._close(host)
        return result

    def _name(self, host: str) -> str:
        return f"{self.service} at {host}" if host else self.service

    def _note_failure(self, host: str) -> None:
        with self._lock:
            failures = self._failures.pop(host, None) or _Failures()
            failures.count += 1
            failures.retry_at = time.monotonic() + self._recovery
            self._failures[host] = failures  # as the latest
            if len(self._failures) > MAX_HOSTS:
                del self._failures[next(iter(self._failures))]
        if failures.count == FAILURE_THRESHOLD:
            about = {"action": "circuit_opened", "service": self.service}
            log.warning("%s does not answer: calls to it are held back", self._name(host), extra=about)

    def _close(self, host: str) -> None:
        failures = self._failures.pop(host, None)
        if failures is not None and failures.count >= FAILURE_THRESHOLD:
            log.warning(
                "%s answers again", self._name(host), extra={"action": "circuit_closed", "service": self.service}
            )

    def _begin_trial(self, host: str) -> None:
        """Allow this call as a trial if the circuit was open for long enough.

        Others fail until it ends, at most as long.
        """
        with self._lock:
            failures = self._failures.get(host)
            if failures is None or failures.count < FAILURE_THRESHOLD:
                return
            wait = failures.retry_at - time.monotonic()
            if wait <= 0:
                failures.retry_at = time.monotonic() + self._recovery
                return
        reason = f"it failed {FAILURE_THRESHOLD} times in a row; the next try is in {math.ceil(wait)} s"
        error = self._error(self._name(host), reason)
        error.retry_after = timedelta(seconds=math.ceil(wait))
        raise error


def _is_part(value: object) -> bool:
    """Return whether a property of a port is a port itself: neither a function nor a plain value."""
    kind = type(value)
    return (
        not callable(value) and kind.__module__.partition(".")[0] != "builtins" and not isinstance(value, str | tuple)
    )


class _GuardedPort:
    """Guards the methods of a port and of its parts, except `close`, which must always work."""

    def __init__(
        self, port: object, guard: Callable[[Callable[..., Any]], Callable[..., Any]], methods: Container[str] | None
    ) -> None:
        self._port = port
        self._guard = guard
        self._methods = methods

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the port's own
        value = getattr(self._port, name)
        if self._methods is not None and name not in self._methods:
            return value
        if _is_part(value):
            guarded_part = _GuardedPort(value, self._guard, self._methods)
            setattr(self, name, guarded_part)
            return guarded_part
        if name == "close" or not callable(value):
            return value
        guarded = self._guard(value)
        setattr(self, name, guarded)
        return guarded
