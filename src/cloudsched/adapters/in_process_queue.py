"""Delivery within the process: the queue of a process that schedules and runs tasks, and the sweep's fallback.

Like every queue it is only a hint: its content is lost with the process, and the sweep recreates the dispatches from
the documents.

While Cloud Tasks cannot be reached, `FallbackDispatcher` delivers what is due in the sweep's process.
"""

from __future__ import annotations

import contextvars
import heapq
import itertools
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread, report_recovery
from cloudsched.engine.ports.procedure import (
    LongCall,
    Pause,
    Procedure,
    StoreCommit,
    run_procedure,
    throw_into,
    to_thrown,
)
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from cloudsched.domain.transitions.commit import Commit, VersionedTask
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage

_LOG = own_logger(__name__)

INITIAL_BACKOFF = timedelta(seconds=0.1)
MAX_BACKOFF = timedelta(minutes=1)
"""A dispatch that the executor did not accept is redelivered after a delay that doubles from
`INITIAL_BACKOFF` up to `MAX_BACKOFF`."""

MAX_REMEMBERED_NAMES = 2_000
"""The number of delivered dispatches whose names are remembered, so that a duplicate is ignored: those of the
last seconds under load, in 0.4 MB. A later duplicate is delivered, and finds that it is done."""

DEFAULT_WORKERS = 64
"""The most handlers that are called at the same time, unless the caller says otherwise. Most of them wait for
something else."""

QUICK_SECONDS = 0.002
"""The seconds for which the leading thread calls a handler before another thread leads."""
FIRST_PAUSE = 0.05
MAX_PAUSE = 5.0
"""For how many seconds other threads make the calls of a handler that took long, at first and at most. After
that the leading thread tries one again."""
MIN_GROUP_SIZE = 8
"""The number of commits, or a quarter of the threads if that is more, for which the leader commits while a
handler is slow. If all were committed at once, all calls would begin and end at once, and it would stand idle
in between."""
WATCHED_PAUSES = 5
"""The number of times that the thread which watches the leader looks in vain for a call before it sleeps."""

CLOCK_CHECK_SECONDS = 1.0
"""The seconds after which the clock is read even if nothing is due, since a test or another process may set
it."""


class _PendingMessage(NamedTuple):
    at: datetime
    number: int
    """The order of arrival, which breaks ties between dispatches due at the same instant."""
    message: QueueMessage
    failures: int


_DueMessage: TypeAlias = tuple[int, datetime, int, _PendingMessage]
"""A dispatch that waits for a thread, behind what orders it: urgent ones come first, then those due
earlier."""


class _Delivery:
    """A dispatch that is being delivered."""

    __slots__ = ("call", "context", "is_given_up", "pending", "steps")
    steps: Procedure[object]
    call: LongCall | None
    """The call that it waits for, of a handler or of its failure hook."""

    def __init__(self, pending: _PendingMessage) -> None:
        self.pending = pending
        self.call = None
        self.is_given_up = False
        """True if another thread has taken the place of the one in which that call hangs."""
        self.context = contextvars.copy_context()
        """The context variables of its steps, in whichever thread each is."""


_Advance: TypeAlias = Callable[[], Any]


class InProcessDispatcher:
    """A `Dispatcher` that delivers in this process. Use it in a ``with``, or call `start` and `close`.

    One thread at a time leads: it takes what is due, runs the steps of all deliveries, and commits for many
    of them together. It calls quick handlers itself, so their deliveries wake no other thread, and many wait
    for the disk only once. If a handler keeps it for longer than `QUICK_SECONDS`, another thread leads on,
    and the next calls of that handler are made by other threads. The clock must advance at the speed of real
    time. The steps that `deliver` returns end to accept a dispatch, and raise to refuse it.
    """

    def __init__(
        self,
        clock: Clock,
        deliver: Callable[[bytes, str], Procedure[object]],
        *,
        workers: int = DEFAULT_WORKERS,
        commit: Callable[[Sequence[Commit]], Sequence[VersionedTask | Exception]] | None = None,
        head_start: timedelta = timedelta(0),
    ) -> None:
        """Take what it works with. Dispatches are delivered by `head_start` before their time."""
        self._clock = clock
        self._deliver = deliver
        self._commit = commit
        self._head_start = head_start
        self._limit = workers
        self._group_size = max(MIN_GROUP_SIZE, workers // 4)
        self._lock = threading.Lock()
        self._has_work = threading.Condition(self._lock)
        """Wakes the leader."""
        self._is_called = threading.Condition(self._lock)
        """Wakes the thread that watches the leader's calls."""
        self._heap: list[_PendingMessage] = []
        self._numbers = itertools.count()
        self._pending_names: set[str] = set()
        self._delivered_names: OrderedDict[str, None] = OrderedDict()
        self._due: list[_DueMessage] = []
        self._is_closed = False
        self._active: set[_Delivery] = set()
        self._to_call: set[_Delivery] = set()
        """Those of the active deliveries whose handler has not been called to its end. There are at most
        `workers`, apart from those that hang: another thread takes the place of each of their threads."""
        self._leader: threading.Thread | None = None
        self._watcher: threading.Thread | None = None
        self._sleeps = False
        """True if the watcher has to be woken."""
        self._idle: list[threading.Lock] = []
        """A lock for each idle thread, which waits until it is released: to lead, to make a call, or to
        end."""
        self._away = 0
        """The number of threads that make a call."""
        self._call_began: float | None = None
        """The time at which the leader began the call that it is making. None if it makes none."""
        self._call_name = ""
        """The name of that call. Empty if it has none."""
        self._steps: deque[tuple[_Delivery, _Advance]] = deque()
        """The steps that the leader takes next."""
        self._pauses: list[tuple[float, int, _Delivery]] = []
        """Deliveries that pause, in a heap: until when on the monotonic clock, and a number that breaks
        ties."""
        self._commits: list[tuple[_Delivery, StoreCommit]] = []
        """The commits that it makes when nothing else is to be done."""
        self._has_filled_up = False
        """True if more deliveries were begun since the first of these commits was asked for."""
        self._calls: deque[tuple[_Delivery, LongCall]] = deque()
        """The calls that other threads are to make."""
        self._slow: dict[str, tuple[float, float]] = {}
        """By name, until when calls are left to other threads, and for how long that was decided: they took
        long."""
        self._workers = [
            ServiceThread(f"cloudsched-worker-{number}", self._work) for number in range(1, workers + 1 + bool(workers))
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._workers:
            thread.start()

    def create(self, message: QueueMessage) -> None:
        """Queue a dispatch. Ignore it if its name is queued or remembered."""
        with self._lock:
            if self._is_closed:
                raise QueueUnavailable("The in-process queue", "it was closed")
            if message.name in self._pending_names or message.name in self._delivered_names:
                return
            self._pending_names.add(message.name)
            self._put(_PendingMessage(message.at, next(self._numbers), message, 0))

    @property
    def pending(self) -> int:
        """The number of dispatches that were created and not yet accepted."""
        return len(self._pending_names)

    @property
    def is_busy(self) -> bool:
        """Return whether the maximum number of handlers is running, and none of them hangs."""
        with self._lock:
            calls = [delivery.call for delivery in self._to_call]
            return len(calls) >= self._limit and not any(call is not None and call.hangs() for call in calls)

    def close(self) -> None:
        """Finish the deliveries in progress and stop. The sweep sends waiting dispatches again."""
        self.stop()

    def stop(self, timeout: timedelta | None = None) -> bool:
        """Stop like `close`, but wait only so long, and return whether all deliveries have ended.

        The others go on in daemon threads. A delivery that calls this is one of them, and returns at once.
        """
        with self._lock:
            self._is_closed = True
            if self._is_over:
                self._end_threads()
        if threading.current_thread() in self._workers:  # the delivery that calls this goes on
            return False
        if timeout is None:
            deadline = None
        else:
            deadline = time.monotonic() + timeout.total_seconds()
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
            self._has_work.notify()

    def _find_due(self) -> None:
        now = self._clock.now() + self._head_start
        while self._heap and self._heap[0].at <= now:
            pending = self._heap[0]
            due = pending.message.priority.rank, pending.at, pending.number, pending
            # If memory ends between the two, it is delivered twice, which harms nothing.
            heapq.heappush(self._due, due)
            heapq.heappop(self._heap)

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
            "Dispatch %s was not accepted; it will be redelivered in %s.",
            pending.message.name,
            wait,
            exc_info=True,
        )

    def _remember(self, name: str) -> None:
        with self._lock:
            self._pending_names.discard(name)
            self._delivered_names[name] = None
            if len(self._delivered_names) > MAX_REMEMBERED_NAMES:
                self._delivered_names.popitem(last=False)

    def _work(self) -> float | None:
        """Lead, make a call, or watch the leader, whichever is needed, until the queue is closed."""
        me: Any = threading.current_thread()
        while True:
            with self._lock:
                while not self._calls and self._leader is not None and not self._is_over:
                    report_recovery()
                    if self._has_surplus:  # a call that hung has returned
                        self._workers.remove(me)
                        return None
                    if self._watcher is None:
                        self._watch(me)
                    else:
                        self._wait_until_woken()
                if self._is_over:
                    return None
                leads = self._leader is None
                if leads:
                    self._leader = me
                else:
                    delivery, call = self._calls.popleft()
                    self._away += 1

            if leads:
                self._lead(me)
            else:
                self._continue(delivery, self._make(delivery, call))
                del delivery, call  # the thread would hold them, and the task, until it makes another call

    def _wait_until_woken(self) -> None:
        turn = threading.Lock()
        turn.acquire()
        self._idle.append(turn)
        self._lock.release()
        try:
            turn.acquire()
        finally:
            self._lock.acquire()

    @property
    def _has_surplus(self) -> bool:
        """Return whether it has more threads than it needs.

        It needs one for each call that may be made, one that leads, and one for each that was given up.
        """
        surplus = len(self._workers) - self._limit - 1
        return surplus > 0 and surplus > sum(delivery.is_given_up for delivery in self._active)

    @property
    def _is_over(self) -> bool:
        return self._is_closed and not self._active

    def _wake_one(self) -> None:
        """Wake the thread that has worked last, so that no more of them are in use than there is work for.

        The C library gives threads heaps of their own. What stays for a while, such as tasks that are known,
        leaves gaps in each: if threads took turns, all heaps would grow as large as one has to be.
        """
        if self._idle:
            self._idle.pop().release()  # removed here, since the thread that is woken may take a while to run
        else:
            self._is_called.notify()

    def _end_threads(self) -> None:
        """End all threads.

        A thread whose delivery failed is still needed until the last delivery has ended.
        """
        for each in self._workers:
            each.stop()
        while self._idle:
            self._idle.pop().release()
        for condition in (self._has_work, self._is_called):
            condition.notify_all()

    def _watch(self, me: threading.Thread) -> None:
        """Wait while the leader's calls are quick. If one is not, it leads no more."""
        self._watcher = me
        try:
            pauses = 0
            while self._leader is not None and not self._calls and not self._is_over:
                self._sleeps = pauses == WATCHED_PAUSES
                began = self._call_began  # only now: of a call that begins later, the leader tells
                self._is_called.wait(None if self._sleeps and began is None else QUICK_SECONDS)
                if self._sleeps or began is not None:
                    pauses = 0
                else:
                    pauses = pauses + 1

                self._sleeps = False
                # It may be woken before.
                is_slow = began is not None and time.monotonic() - began >= QUICK_SECONDS
                if is_slow and self._call_began == began:
                    self._note_slow(self._call_name)
                    self._leader = self._call_began = None
                    self._away += 1
        finally:
            self._watcher = None
            self._wake_one()  # to watch in its place

    def _lead(self, me: threading.Thread) -> None:
        try:
            while self._leader is me:
                if len(self._commits) >= self._group_size and self._has_slow_calls():
                    self._commit_together()
                elif self._steps:
                    self._take_step(me, *self._steps.popleft())
                elif self._fetch():
                    continue
                elif not self._commits:
                    return
                else:
                    self._commit_together()
        finally:
            with self._lock:
                if self._leader is me:
                    self._leader = self._call_began = None
                    self._wake_one()

    def _fetch(self) -> bool:
        """Take what is due, and return whether there is a step to take now.

        Without a commit to make, wait for one.

        Deliveries that wait for a commit wait for what is taken once, not for all that is due.
        """
        with self._lock:
            while not self._steps:
                while self._pauses and self._pauses[0][0] <= time.monotonic():
                    delivery = self._pauses[0][-1]
                    self._steps.append((delivery, partial(delivery.steps.send, None)))
                    heapq.heappop(self._pauses)
                if len(self._to_call) >= self._limit or self._away + len(self._calls) + 1 >= len(
                    self._workers,
                ):
                    self._replace_hanging()
                room = self._limit - len(self._to_call)
                if room > 0 and not self._is_closed and not (self._commits and self._has_filled_up):
                    self._has_filled_up = bool(self._commits)
                    self._find_due()
                    for _ in range(min(room, len(self._due))):
                        self._begin(self._due[0][-1])
                        heapq.heappop(self._due)  # only now: if memory ends before, it is taken again
                if self._steps or self._commits or self._is_over:
                    break
                report_recovery()
                self._has_work.wait(self._seconds_to_next(room))
            return bool(self._steps)

    def _replace_hanging(self) -> None:
        """Replace the threads of calls that hang, since nothing can stop them."""
        waiting = [each for each in self._active if each.call is not None and not each.is_given_up]
        for delivery in [each for each in waiting if each.call is not None and each.call.hangs()]:
            thread = ServiceThread(f"cloudsched-worker-{len(self._workers) + 1}", self._work)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more threads: the others do what they can
                _LOG.exception(
                    "No thread takes the place of one whose handler hangs",
                    extra={"action": "no_thread"},
                )
                return
            self._workers.append(thread)
            delivery.is_given_up = True
            self._to_call.discard(delivery)

    def _seconds_to_next(self, room: int) -> float:
        """Return how long nothing can be due, or until the clock is to be read again."""
        wait = CLOCK_CHECK_SECONDS
        if self._heap and room > 0:
            wait = min(wait, (self._heap[0].at - self._clock.now() - self._head_start).total_seconds())
        if self._pauses:
            wait = min(wait, self._pauses[0][0] - time.monotonic())
        return max(0.0, wait)

    def _begin(self, pending: _PendingMessage) -> None:
        delivery = _Delivery(pending)
        step = delivery, partial(self._start, delivery)
        try:
            self._active.add(delivery)
            self._to_call.add(delivery)
            self._steps.append(step)
        except BaseException:
            self._active.discard(delivery)
            self._to_call.discard(delivery)
            raise

    def _start(self, delivery: _Delivery) -> LongCall | StoreCommit:
        message = delivery.pending.message
        delivery.steps = self._deliver(message.body, message.token)
        call: LongCall | StoreCommit = next(delivery.steps)
        return call

    def _take_step(self, me: threading.Thread, delivery: _Delivery, advance: _Advance) -> None:
        """Advance a delivery to its next call, which is made now, by others, or with further commits."""
        try:
            call = delivery.context.run(advance)
        except StopIteration:
            self._end(delivery)
            self._remember(delivery.pending.message.name)
        except BaseException:  # noqa: BLE001 - whatever a handler raises
            self._end(delivery)
            self._redeliver(delivery.pending)
        else:
            if isinstance(call, StoreCommit) and self._commit is not None:
                self._commits.append((delivery, call))
            elif isinstance(call, Pause):
                heapq.heappush(self._pauses, (time.monotonic() + call.seconds, next(self._numbers), delivery))
            elif isinstance(call, StoreCommit):
                self._call_here(me, delivery, call)
            elif self._is_for_leader(call):
                delivery.call = call
                self._call_here(me, delivery, call)
            else:
                with self._lock:
                    delivery.call = call
                    self._calls.append((delivery, call))
                    self._wake_one()

    def _end(self, delivery: _Delivery) -> None:
        with self._lock:
            self._active.discard(delivery)
            self._to_call.discard(delivery)
            if self._is_over:
                self._end_threads()

    def _call_here(self, me: threading.Thread, delivery: _Delivery, call: LongCall | StoreCommit) -> None:
        """Make a call in the leader's own thread. If it takes long, another one leads meanwhile."""
        if isinstance(call, LongCall):
            self._call_name = call.name
        else:
            self._call_name = ""
        self._call_began = time.monotonic()
        if self._sleeps:
            with self._lock:
                self._is_called.notify()
        advance = self._make(delivery, call)
        with self._lock:
            if self._leader is me:
                self._call_began = None
                self._steps.append((delivery, advance))
                if self._slow and isinstance(call, LongCall):
                    self._slow.pop(call.name, None)
                return
        self._continue(delivery, advance)

    def _note_slow(self, name: str) -> None:
        """Leave calls of a name to other threads for a while, since this one may never return."""
        if name:
            _, pause = self._slow.get(name, (0.0, FIRST_PAUSE / 2))
            pause = min(2 * pause, MAX_PAUSE)
            self._slow[name] = time.monotonic() + pause, pause

    def _has_slow_calls(self) -> bool:
        return any(until > time.monotonic() for until, _ in self._slow.values())

    def _is_for_leader(self, call: object) -> bool:
        """Return whether the leader makes a call itself, which it does if the call should be quick.

        If it turns out slow, another thread can lead.
        """
        # Whatever else is yielded fails in its own procedure.
        if not isinstance(call, LongCall) or not call.name:
            return False
        until, _ = self._slow.get(call.name, (0.0, 0.0))  # it was quick, or may have become so
        return until <= time.monotonic() and self._away + len(self._calls) + 1 < len(self._workers)

    def _make(self, delivery: _Delivery, call: LongCall | StoreCommit) -> _Advance:
        advance: _Advance
        try:
            advance = partial(delivery.steps.send, delivery.context.run(call.make))
        except BaseException as error:  # noqa: BLE001 - raised where the procedure has yielded
            advance = throw_into(delivery.steps, to_thrown(error))
        if isinstance(call, LongCall):
            with self._lock:
                delivery.call = None
                delivery.is_given_up = False
                if call.name:
                    self._to_call.discard(delivery)
        return advance

    def _continue(self, delivery: _Delivery, advance: _Advance) -> None:
        with self._lock:
            self._away -= 1
            self._steps.append((delivery, advance))
            self._has_work.notify()

    def _commit_together(self) -> None:
        waiting = self._commits
        self._commits = []
        self._has_filled_up = False
        assert self._commit is not None  # noqa: S101 - else nothing waits
        answers: Sequence[VersionedTask | BaseException]
        try:
            answers = self._commit([call.commit for _, call in waiting])
            if len(answers) != len(waiting):
                raise RuntimeError(f"{len(waiting)} commits have {len(answers)} answers")  # noqa: TRY301 - as any error
        except BaseException as error:  # noqa: BLE001 - raised in each of them
            answers = [error] * len(waiting)
        for (delivery, _), answer in zip(reversed(waiting), reversed(answers), strict=True):
            if isinstance(answer, BaseException):
                self._steps.appendleft((delivery, throw_into(delivery.steps, answer)))
            else:
                self._steps.appendleft((delivery, partial(delivery.steps.send, answer)))
        del answers, answer  # an error holds this function's variables


class FallbackDispatcher:
    """A `Dispatcher` that delivers due dispatches itself when the wrapped one cannot be reached.

    One that is due later cannot be stored here, so it remains an error: its task's document has its time, and
    a later sweep finds it.
    """

    def __init__(
        self, dispatcher: Dispatcher, deliver: Callable[[bytes, str], Procedure[object]], clock: Clock
    ) -> None:
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
                run_procedure(self._deliver(message.body, message.token))
            except QueueUnavailable:
                return  # it ran, but its follow-up could not be sent: the sweep finds that when it is due

    def close(self) -> None:
        """Do nothing: the wrapped dispatcher belongs to its owner."""
