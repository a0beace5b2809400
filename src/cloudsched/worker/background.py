"""What a worker asks its desk beside its own thread, so that whoever wants it to stop need not wait for the answer."""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LAST_ANSWER = 10.0
"""How many seconds an answer is still waited for once the worker is to stop."""


class Errands(Generic[T]):
    """A thread that does one thing after another, and somebody who waits for each, but not for ever."""

    def __init__(self) -> None:
        self._wishes: SimpleQueue[Callable[[], T]] = SimpleQueue()
        self._answers: SimpleQueue[Callable[[], T] | None] = SimpleQueue()  # whose `put` a signal's handler may call
        self._stops = 0
        threading.Thread(target=self._run, name="worker-errands", daemon=True).start()

    def stop(self) -> None:
        """Wait no longer than `LAST_ANSWER` for what is being done; called again, not at all. Any thread may."""
        self._stops += 1
        self._answers.put(None)

    def send(self, wish: Callable[[], T]) -> T | None:
        """Have that done, and return what it returns; None if it was not waited for. Raises what it raises."""
        self._wishes.put(wish)
        give_up_at = time.monotonic() + LAST_ANSWER if self._stops else None
        while self._stops <= 1:
            try:
                answer = self._answers.get(timeout=None if give_up_at is None else give_up_at - time.monotonic())
            except (Empty, ValueError):  # ValueError: that was a moment ago
                return None
            if answer is not None:
                return answer()
            give_up_at = time.monotonic() + LAST_ANSWER
        return None

    def _run(self) -> None:
        while True:
            self._answers.put(_outcome(self._wishes.get()))


def _outcome(wish: Callable[[], T]) -> Callable[[], T]:
    """Do something, and return what returns its result, or raises what it has raised."""
    try:
        result = wish()
    except Exception as error:  # noqa: BLE001 - whoever waits for it is told
        return _raising(error)
    return lambda: result


def _raising(error: Exception) -> Callable[[], NoReturn]:
    def told() -> NoReturn:
        raise error

    return told
