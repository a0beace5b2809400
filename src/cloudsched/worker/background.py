"""What a worker asks its desk beside its own thread, so that whoever wants it to stop need not wait for the answer."""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SHUTDOWN_WAIT_SECONDS = 10.0
"""How many seconds an answer is still waited for once the worker is to stop."""


class BackgroundCalls(Generic[T]):
    """A thread that does one thing after another, and somebody who waits for each, but not for ever."""

    def __init__(self) -> None:
        self._requests: SimpleQueue[Callable[[], T]] = SimpleQueue()
        self._results: SimpleQueue[Callable[[], T] | None] = SimpleQueue()  # whose `put` a signal's handler may call
        self._stops = 0
        threading.Thread(target=self._run, name="worker-errands", daemon=True).start()

    def stop(self) -> None:
        """Wait no longer than `SHUTDOWN_WAIT_SECONDS` for what is being done; called again, not at all. Any thread may."""
        self._stops += 1
        self._results.put(None)

    def call(self, function: Callable[[], T]) -> T | None:
        """Have that done, and return what it returns; None if it was not waited for. Raises what it raises."""
        self._requests.put(function)
        give_up_at = time.monotonic() + SHUTDOWN_WAIT_SECONDS if self._stops else None
        while self._stops <= 1:
            try:
                answer = self._results.get(timeout=None if give_up_at is None else give_up_at - time.monotonic())
            except (Empty, ValueError):  # ValueError: that was a moment ago
                return None
            if answer is not None:
                return answer()
            give_up_at = time.monotonic() + SHUTDOWN_WAIT_SECONDS
        return None

    def _run(self) -> None:
        while True:
            self._results.put(_capture(self._requests.get()))


def _capture(function: Callable[[], T]) -> Callable[[], T]:
    """Do something, and return what returns its result, or raises what it has raised."""
    try:
        result = function()
    except Exception as error:  # noqa: BLE001 - whoever waits for it is told
        return _make_raiser(error)
    return lambda: result


def _make_raiser(error: Exception) -> Callable[[], NoReturn]:
    def told() -> NoReturn:
        raise error

    return told
