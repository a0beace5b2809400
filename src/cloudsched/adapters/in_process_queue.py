"""An in-process queue, for a single process that both schedules and runs tasks, without a server.

Like every queue it is only a hint: its content is lost with the process, and the sweep recreates the dispatches from
the documents. Of the worker threads that are idle, one waits until the next dispatch is due, and delivers it itself: no
other thread has to wake it. Another idle one then waits in its place.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import OrderedDict, deque
from datetime import timedelta
from typing import TYPE_CHECKING, Generic, NamedTuple, Self, TypeVar

from cloudsched.engine.ports.service_threads import ServiceThread, tell_recovered
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.queue import QueueMessage

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
            Whether all of them have ended. The others go on in daemon threads.
        """
        with self._lock:
            self._is_closed = True
            for each in self._workers:
                each.stop()
            self._is_earlier.notify_all()
            self._is_free.notify_all()
        deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
        current = threading.current_thread()
        threads = [each for each in self._workers if each.is_alive() and each is not current]
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
        at = self._clock.now() + wait
        with self._lock:
            if not self._is_closed:
                self._put(_PendingMessage(at, next(self._numbers), pending.message, pending.failures + 1))
        _LOG.warning(
            "Dispatch %s was not accepted; it will be redelivered in %s.", pending.message.name, wait, exc_info=True
        )

    def _remember(self, name: str) -> None:
        with self._lock:
            self._note_delivered(name)

    def _note_delivered(self, name: str) -> None:
        self._pending_names.discard(name)
        self._delivered_names[name] = None
        if len(self._delivered_names) > MAX_REMEMBERED_NAMES:
            self._delivered_names.popitem(last=False)


E = TypeVar("E")
"""How a run has ended, which is to be committed."""

MAX_GROUP = 32
"""The most runs that are claimed, and that end, in one group: few enough that none waits long for the others."""


class GroupDispatcher(InProcessDispatcher, Generic[E]):
    """A `Dispatcher` that has many runs share their commits.

    One thread watches the time, claims what is due and stores how runs have ended, many at a time. The others call
    handlers and never wait for the disk. While a commit is under way, more comes due and more runs end: they are the
    next group. So a group has one run where there is little to do, and the disk keeps up where there is much.

    Args:
        clock: Decides when a dispatch is due; it must advance at the speed of real time.
        commit: Takes dispatches that are due and the ends of runs. Returns what to call for each dispatch, and for each
            end what is left to do, if anything. A call returns the end of its run if that is to be committed. If it
            raises, or `commit` does, the dispatch is delivered again.
        workers: The most calls at the same time.
    """

    def __init__(
        self,
        clock: Clock,
        commit: Callable[
            [Sequence[QueueMessage], Sequence[E]],
            tuple[Sequence[Callable[[], E | None]], Sequence[Callable[[], E | None] | None]],
        ],
        *,
        workers: int = DEFAULT_WORKERS,
    ) -> None:
        super().__init__(clock, _refuse, workers=workers)
        self._commit = commit
        self._limit = workers
        self._calls: deque[tuple[_PendingMessage, Callable[[], E | None]]] = deque()
        """What waits for a thread."""
        self._ends: deque[tuple[_PendingMessage, E]] = deque()
        self._has_call = threading.Condition(self._lock)
        self._idle = 0
        """How many threads wait for a call."""
        self._running = 0
        """How many calls are under way."""
        self._lost: list[_PendingMessage] = []
        """What could not even be queued again; it is as soon as that works."""
        self._is_over = False
        """Whether it is closed, and all that was begun has ended."""
        self._workers = [
            *(ServiceThread(f"cloudsched-worker-{number}", self._call_next) for number in range(1, workers + 1)),
            ServiceThread("cloudsched-commits", self._commit_next),
        ]

    def stop(self, timeout: timedelta | None = None) -> bool:
        """Stop as `InProcessDispatcher` does. What was claimed runs, and what ended is committed."""
        with self._lock:
            self._is_closed = True
            self._is_earlier.notify_all()
        current = threading.current_thread()
        if current in self._workers:  # nothing else ends before this call does
            return False
        deadline = None if timeout is None else time.monotonic() + timeout.total_seconds()
        threads = [each for each in self._workers if each.is_alive()]
        for thread in threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def _put(self, pending: _PendingMessage) -> None:
        heapq.heappush(self._heap, pending)
        if self._heap[0] is pending and self._is_watched:
            self._is_earlier.notify()

    def _redeliver(self, pending: _PendingMessage) -> None:
        try:
            super()._redeliver(pending)
        except BaseException:
            with self._lock:
                self._lost.append(pending)
            raise

    # ── The thread that commits ──────────────────────────────────────────────────────────────────────────────────────

    def _commit_next(self) -> float | None:
        """Wait for a group, and commit it. What is not handed over is delivered again, whatever is raised."""
        if self._redeliver_lost():
            return 0.0
        due, ends = list[_PendingMessage](), list[tuple[_PendingMessage, E]]()
        try:
            if not self._take_group(due, ends):
                return None
            calls, left = self._commit([each.message for each in due], [end for _, end in ends])
            self._hand_over(due, calls, ends, left)
        except BaseException:
            with self._lock:
                self._lost += (*due, *(pending for pending, _ in ends))
            if not due and not ends:
                raise
            _LOG.exception("A group of %d runs was not committed", len(due) + len(ends))
        return 0.0

    def _redeliver_lost(self) -> bool:
        with self._lock:
            lost, self._lost = self._lost, []
        has_lost = bool(lost)
        try:
            while lost:
                self._redeliver(lost.pop())
        finally:
            with self._lock:
                self._lost += lost
        return has_lost

    def _take_group(self, due: list[_PendingMessage], ends: list[tuple[_PendingMessage, E]]) -> bool:
        """Wait for something to commit, and add it to the lists; False once the queue is closed and all have ended."""
        with self._lock:
            while not self._lost:
                if not self._is_closed:
                    self._find_due()
                    free = self._limit - self._running - len(self._calls)
                    due += [heapq.heappop(self._due).pending for _ in range(min(len(self._due), free, MAX_GROUP))]
                ends += [self._ends.popleft() for _ in range(min(len(self._ends), MAX_GROUP))]
                if due or ends:
                    return True
                if self._is_closed and not self._running and not self._calls:
                    self._is_over = True
                    self._has_call.notify_all()
                    return False
                tell_recovered()
                self._wait()
        return True

    def _wait(self) -> None:
        """Wait until the next dispatch may be due, a run ends, or the clock is to be read again."""
        wait = CLOCK_CHECK_SECONDS
        if self._heap and not self._due:
            wait = min(wait, (self._heap[0].at - self._clock.now()).total_seconds())
        self._is_watched = True
        try:
            self._is_earlier.wait(max(0.0, wait))
        finally:
            self._is_watched = False

    def _hand_over(
        self,
        due: Sequence[_PendingMessage],
        calls: Sequence[Callable[[], E | None]],
        ends: Sequence[tuple[_PendingMessage, E]],
        left: Sequence[Callable[[], E | None] | None],
    ) -> None:
        """Give what is to be done to the threads, and forget what is done."""
        with self._lock:
            for (pending, _), call in zip(ends, left, strict=True):
                if call is None:
                    self._note_delivered(pending.message.name)
                else:  # before those that begin: nobody else may finish these
                    self._calls.append((pending, call))
            self._calls.extend(zip(due, calls, strict=True))
            if self._calls and self._idle:
                self._has_call.notify()

    # ── The threads that call handlers ───────────────────────────────────────────────────────────────────────────────

    def _call_next(self) -> float | None:
        """Wait for a call, and make it. What a handler raises is no fault of the thread."""
        taken = self._take_call()
        if taken is None:
            return None
        pending, call = taken
        end = None
        try:
            end = call()
            if end is None:
                self._remember(pending.message.name)
        except BaseException:  # noqa: BLE001 - whatever a handler raises
            self._redeliver(pending)
        finally:
            with self._lock:
                self._running -= 1
                if end is not None:
                    self._ends.append((pending, end))
                if self._is_watched and (end is not None or self._due or self._lost or self._is_closed):
                    self._is_earlier.notify()
        return 0.0

    def _take_call(self) -> tuple[_PendingMessage, Callable[[], E | None]] | None:
        with self._lock:
            while not self._calls:
                if self._is_over:
                    return None
                tell_recovered()
                self._idle += 1
                try:
                    self._has_call.wait()
                finally:
                    self._idle -= 1
            taken = self._calls.popleft()
            self._running += 1
            if self._calls and self._idle:
                self._has_call.notify()  # in turn, so that no more threads wake than there is to do for
            return taken


def _refuse(_body: bytes, _token: str) -> None:
    raise NotImplementedError("a group queue commits")
