"""The queue inside this process: for one process that both schedules and runs tasks, without a server.

Like every queue it is only a hint: its content is lost with the process, and the sweep dispatches it again from the
documents. One thread watches the time; others deliver.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections import OrderedDict
from datetime import timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, Self

from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.queue import QueueMessage

_LOG = logging.getLogger(__name__)

INITIAL_BACKOFF = timedelta(seconds=0.1)
MAX_BACKOFF = timedelta(minutes=1)
"""The wait before a dispatch that was not accepted is delivered again doubles from the first of these to the last."""

MAX_REMEMBERED_NAMES = 100_000
"""How many names of delivered dispatches stay taken: the latest ones."""

CLOCK_CHECK_SECONDS = 1.0
"""How often the clock is read although nothing should be due: it may have been set."""


class _PendingMessage(NamedTuple):
    at: datetime
    number: int
    """The order of arrival, for those that are due at the same instant."""
    envelope: QueueMessage
    failures: int


class InProcessDispatcher:
    """A `Dispatcher` that calls the executor from threads of its own. Use it in a ``with``, or `start` and `close` it.

    Args:
        clock: What says when a dispatch is due; it runs as real time does.
        deliver: The executor: given body and token, it returns if it accepts the dispatch, and raises if not.
        workers: How many dispatches are delivered at the same time at most.
    """

    def __init__(self, clock: Clock, deliver: Callable[[bytes, str], object], *, workers: int = 8) -> None:
        self._clock = clock
        self._deliver = deliver
        self._changed = threading.Condition()
        self._heap: list[_PendingMessage] = []
        self._numbers = itertools.count()
        self._pending_names: set[str] = set()
        self._delivered_names: OrderedDict[str, None] = OrderedDict()
        self._due: SimpleQueue[_PendingMessage | None] = SimpleQueue()
        self._is_closed = False
        self._timer_thread = threading.Thread(target=self._watch_time, name="cloudsched-queue", daemon=True)
        self._workers = [
            threading.Thread(target=self._work, name=f"cloudsched-worker-{number}", daemon=True)
            for number in range(1, workers + 1)
        ]

    def start(self) -> None:
        """Start the threads that deliver."""
        for thread in (self._timer_thread, *self._workers):
            thread.start()

    def create(self, message: QueueMessage) -> None:
        """Take a dispatch, unless its name is taken."""
        with self._changed:
            if self._is_closed:
                raise QueueUnavailable("The queue in this process", "it was closed")
            if message.name in self._pending_names or message.name in self._delivered_names:
                return
            self._pending_names.add(message.name)
            self._put(_PendingMessage(message.at, next(self._numbers), message, 0))

    def close(self) -> None:
        """Finish the deliveries in progress and stop. Waiting dispatches are dropped; the sweep sends them again."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._changed.notify_all()
        for _ in self._workers:
            self._due.put(None)
        for thread in (self._timer_thread, *self._workers):
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _put(self, waiting: _PendingMessage) -> None:
        heapq.heappush(self._heap, waiting)
        if self._heap[0] is waiting:
            self._changed.notify()

    def _watch_time(self) -> None:
        with self._changed:
            while not self._is_closed:
                now = self._clock.now()
                while self._heap and self._heap[0].at <= now:
                    self._due.put(heapq.heappop(self._heap))
                wait = (self._heap[0].at - self._clock.now()).total_seconds() if self._heap else CLOCK_CHECK_SECONDS
                self._changed.wait(max(0.0, min(wait, CLOCK_CHECK_SECONDS)))

    def _work(self) -> None:
        while (waiting := self._due.get()) is not None and not self._is_closed:
            try:
                self._deliver(waiting.envelope.body, waiting.envelope.token)
            except BaseException:  # noqa: BLE001 - the thread goes on, whatever a handler did
                self._redeliver(waiting)
            else:
                self._remember(waiting.envelope.name)

    def _redeliver(self, waiting: _PendingMessage) -> None:
        wait = min(INITIAL_BACKOFF * 2 ** min(waiting.failures, 20), MAX_BACKOFF)
        _LOG.warning(
            "Dispatch %s was not accepted; it is delivered again in %s.", waiting.envelope.name, wait, exc_info=True
        )
        at = self._clock.now() + wait
        with self._changed:
            if not self._is_closed:
                self._put(_PendingMessage(at, next(self._numbers), waiting.envelope, waiting.failures + 1))

    def _remember(self, name: str) -> None:
        with self._changed:
            self._pending_names.discard(name)
            self._delivered_names[name] = None
            if len(self._delivered_names) > MAX_REMEMBERED_NAMES:
                self._delivered_names.popitem(last=False)
