"""Delivery within the process: a queue for one that both schedules and runs tasks, and what the sweep falls back on.

Like every queue it is only a hint: its content is lost with the process, and the sweep recreates the dispatches from
the documents. Of the worker threads that are idle, one waits until the next dispatch is due, and delivers it itself: no
other thread has to wake it. Another idle one then waits in its place.

While Cloud Tasks cannot be reached, `FallbackDispatcher` delivers what is due in the sweep's process.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, Self

from cloudsched.engine.ports.service_threads import ServiceThread, tell_recovered
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage


_LOG = logging.getLogger(__name__)

INITIAL_BACKOFF = timedelta(seconds=0.1)
MAX_BACKOFF = timedelta(minutes=1)
"""A dispatch that the executor did not accept is redelivered after a delay that doubles from `INITIAL_BACKOFF` up to
`MAX_BACKOFF`."""

MAX_REMEMBERED_NAMES = 10_000
"""How many names of delivered dispatches are remembered, the latest ones, so that a duplicate is ignored: those of the
last seconds under load, in 2 MB. A later duplicate is delivered, and finds that it is done."""

DEFAULT_WORKERS = 32
"""How many dispatches are delivered at the same time unless the caller says otherwise. Deliveries mostly wait: for the
handler, and for the disk at both of their commits. Those that wait at the same time share one wait for the disk."""

CLOCK_CHECK_SECONDS = 1.0
"""How often the clock is read even if nothing is due by then: a test or another process may have set it."""


class _PendingMessage(NamedTuple):
    at: datetime
    number: int
    """The order of arrival, which breaks ties between dispatches due at the same instant."""
    message: QueueMessage
    failures: int


class _DueMessage(NamedTuple):
    """A dispatch that waits for a thread: urgent ones come first, then those due earlier."""

    rank: int
    at: datetime
    number: int
    pending: _PendingMessage


class QueueCounts(NamedTuple):
    """What an in-process queue contains."""

    pending: int
    """Dispatches that were created and not yet accepted."""
    due: int
    """Those of them that are due and wait for a worker thread."""
    remembered: int
    """Names of delivered dispatches that are still refused as duplicates."""


class InProcessDispatcher:
    """A `Dispatcher` that calls the executor from its own threads. Use it in a ``with``, or call `start` and `close`.

    Args:
        clock: Decides when a dispatch is due; it must advance at the speed of real time.
        deliver: The executor: called with body and token, it returns to accept the dispatch and raises to refuse it.
        workers: The most dispatches that are delivered at the same time.
    """

    def __init__(
        self, clock: Clock, deliver: Callable[[bytes, str], object], *, workers: int = DEFAULT_WORKERS
    ) -> None:
        self._clock = clock
        self._deliver = deliver
        self._lock = threading.Lock()
        self._is_earlier = threading.Condition(self._lock)
        """Wakes the thread that watches the time."""
        self._is_free = threading.Condition(self._lock)
        """Wakes an idle thread to watch the time, or to deliver what is due."""
        self._is_watched = False
        self._heap: list[_PendingMessage] = []
        self._numbers = itertools.count()
        self._pending_names: set[str] = set()
        self._delivered_names: OrderedDict[str, None] = OrderedDict()
        self._due: list[_DueMessage] = []
        self._is_closed = False
        self._workers = [
            ServiceThread(f"cloudsched-worker-{number}", self._deliver_next) for number in range(1, workers + 1)
        ]

    def start(self) -> None:
        """Start the worker threads."""
        for thread in self._workers:
            thread.start()

    def create(self, message: QueueMessage) -> None:
        """Queue a dispatch; ignore it if its name is queued or remembered.

        Raises:
            QueueUnavailable: The queue was closed.
        """
        with self._lock:
            if self._is_closed:
                raise QueueUnavailable("The in-process queue", "it was closed")
            if message.name in self._pending_names or message.name in self._delivered_names:
                return
            self._pending_names.add(message.name)
            self._put(_PendingMessage(message.at, next(self._numbers), message, 0))

    def inspect(self) -> QueueCounts:
        """Return what the queue contains now."""
        with self._lock:
            self._find_due()
            return QueueCounts(len(self._pending_names), len(self._due), len(self._delivered_names))

    def close(self) -> None:
        """Finish the deliveries in progress and stop. Waiting dispatches are dropped; the sweep sends them again."""
        self.stop()

    def stop(self, timeout: timedelta | None = None) -> bool:
        """Stop like `close`, but wait only so long for the deliveries in progress; None waits until they end.

        Returns:
            Whether all of them have ended. The others go on in daemon threads. A delivery that calls this is one of
            them: it is told at once.
        """
        with self._lock:
            self._is_closed = True
            for each in self._workers:
                each.stop()
            self._is_earlier.notify_all()
            self._is_free.notify_all()
        if threading.current_thread() in self._workers:  # the delivery that calls this goes on
            return False
        deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
        threads = [each for each in self._workers if each.is_alive()]
        for thread in threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _put(self, pending: _PendingMessage) -> None:
        heapq.heappush(self._heap, pending)
        if self._heap[0] is pending:
            (self._is_earlier if self._is_watched else self._is_free).notify()

    def _deliver_next(self) -> float | None:
        """Wait for a dispatch that is due, and deliver it. What a handler raises is no fault of the thread."""
        pending = self._take()
        if pending is None:
            return None
        try:
            self._deliver(pending.message.body, pending.message.token)
        except BaseException:  # noqa: BLE001 - whatever a handler raises
            self._redeliver(pending)
        else:
            self._remember(pending.message.name)
        return 0.0

    def _take(self) -> _PendingMessage | None:
        """Wait for a dispatch that is due, and return it; None once the queue is closed."""
        with self._lock:
            while not self._is_closed:
                self._find_due()
                if self._due:
                    pending = heapq.heappop(self._due).pending
                    if not self._is_watched:
                        self._is_free.notify()
                    return pending
                tell_recovered()
                if self._is_watched:
                    self._is_free.wait()
                else:
                    self._watch_time()
        return None

    def _find_due(self) -> None:
        now = self._clock.now()
        while self._heap and self._heap[0].at <= now:
            pending = self._heap[0]
            due = _DueMessage(pending.message.priority.rank, pending.at, pending.number, pending)
            heapq.heappush(self._due, due)  # if memory ends between the two, it is delivered twice, which harms nothing
            heapq.heappop(self._heap)

    def _watch_time(self) -> None:
        """Wait until the next dispatch may be due, or the clock is to be read again."""
        wait = (self._heap[0].at - self._clock.now()).total_seconds() if self._heap else CLOCK_CHECK_SECONDS
        self._is_watched = True
        try:
            self._is_earlier.wait(max(0.0, min(wait, CLOCK_CHECK_SECONDS)))
        finally:
            self._is_watched = False

    def _redeliver(self, pending: _PendingMessage) -> None:
        wait = min(INITIAL_BACKOFF * 2 ** min(pending.failures, 20), MAX_BACKOFF)
        try:
            at = self._clock.now() + wait
            with self._lock:
                if not self._is_closed:
                    self._put(_PendingMessage(at, next(self._numbers), pending.message, pending.failures + 1))
        except BaseException:  # the sweep sends it again, under the same name
            with self._lock:
                self._pending_names.discard(pending.message.name)
            raise
        _LOG.warning(
            "Dispatch %s was not accepted; it will be redelivered in %s.", pending.message.name, wait, exc_info=True
        )

    def _remember(self, name: str) -> None:
        with self._lock:
            self._pending_names.discard(name)
            self._delivered_names[name] = None
            if len(self._delivered_names) > MAX_REMEMBERED_NAMES:
                self._delivered_names.popitem(last=False)


class FallbackDispatcher:
    """A `Dispatcher` that delivers due dispatches itself when the wrapped one cannot be reached.

    One that is due later cannot be stored here, so it remains an error: its task's document has its time, and a later
    sweep finds it.
    """

    def __init__(self, dispatcher: Dispatcher, deliver: Callable[[bytes, str], object], clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._deliver = deliver
        self._clock = clock

    def create(self, message: QueueMessage) -> None:
        """Create the dispatch, or deliver it here if it is due and the queue is out of reach."""
        try:
            self._dispatcher.create(message)
        except QueueUnavailable:
            if message.at > self._clock.now():
                raise
            _LOG.warning("delivered by the sweep", extra={"action": "delivered_by_sweep"})
            try:
                self._deliver(message.body, message.token)
            except QueueUnavailable:
                return  # it ran, but its follow-up could not be sent: the sweep finds that when it is due

    def close(self) -> None:
        """Do nothing: the wrapped dispatcher belongs to its owner."""
