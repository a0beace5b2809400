"""Run a worker's blocking calls to its source on a helper thread, so that shutdown does not wait for them."""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SHUTDOWN_WAIT_SECONDS = 10.0
"""How many seconds to wait for a result after `stop`."""


class BackgroundCalls(Generic[T]):
    """Runs one call at a time on a helper thread; until `stop`, its caller waits for each result."""

    def __init__(self) -> None:
        self._requests: SimpleQueue[Callable[[], T]] = SimpleQueue()
        self._results: SimpleQueue[Callable[[], T] | None] = (
            SimpleQueue()
        )  # its `put` is safe to call from a signal handler
        self._stops = 0
        threading.Thread(target=self._run, name="worker-calls", daemon=True).start()

    def stop(self) -> None:
        """Wait at most `SHUTDOWN_WAIT_SECONDS` longer for a result; after a second call, not at all. Thread-safe."""
        self._stops += 1
        self._results.put(None)

    def call(self, function: Callable[[], T]) -> T | None:
        """Run a function and return its result; None if the wait was cut short. Raises what the function raises."""
        self._requests.put(function)
        deadline = time.monotonic() + SHUTDOWN_WAIT_SECONDS if self._stops else None
        while self._stops <= 1:
            try:
                get_result = self._results.get(timeout=None if deadline is None else deadline - time.monotonic())
            except (Empty, ValueError):  # ValueError: the deadline has just passed
                return None
            if get_result is not None:
                return get_result()
            deadline = time.monotonic() + SHUTDOWN_WAIT_SECONDS
        return None

    def _run(self) -> None:
        while True:
            self._results.put(_capture(self._requests.get()))


def _capture(function: Callable[[], T]) -> Callable[[], T]:
    """Run a function; return a function that returns its result, or raises its exception."""
    try:
        result = function()
    except Exception as error:  # noqa: BLE001 - raised again where the result is read
        return _make_raiser(error)
    return lambda: result


def _make_raiser(error: Exception) -> Callable[[], NoReturn]:
    def raise_error() -> NoReturn:
        raise error

    return raise_error
