"""Tests of your own schedules, in which time is moved instead of waited for.

::

    from datetime import timedelta
    from cloudsched.testing.simulation import Simulation
    from handlers import app

    def test_the_birthday_comes_every_year():
        with Simulation(app) as sim:
            task = app.create(owner="ada", title="Birthday", handler="remind", ...)
            sim.advance(timedelta(days=400))
            assert [e.status for e in sim.executions(task.id)] == ["SUCCEEDED"]

The simulation is the product itself on an embedded store in memory, the queue model of the local Cloud Tasks and a
clock that stands still: no sockets, no threads, no waiting. Dispatches go through the bytes and the token that they
have in production, payloads through real JSON, and the sweep comes by every minute.

With pytest, define a fixture `cloudsched_app` that returns your app, and use the fixture `simulation`.
"""

from __future__ import annotations

import random
import secrets
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import ValidationError

from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.operation_counts import CountingDispatcher, CountingStore, Counts
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.settings import Settings
from cloudsched.domain.documents.pull import Pull
from cloudsched.emulator.model.errors import Code, RpcError
from cloudsched.emulator.model.queue import Queue, QueueConfig
from cloudsched.emulator.model.task import HORIZON, HttpResult, HttpTarget
from cloudsched.emulator.model.task import Task as QueuedTask
from cloudsched.emulator.model.token_bucket import TokenBucket
from cloudsched.engine.pull.offers import WorkerFilter
from cloudsched.engine.tasks.sweeper import GRACE
from cloudsched.errors import InvalidInput, QueueUnavailable, StoreUnavailable, Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from cloudsched.app import App
    from cloudsched.domain.documents.execution import Execution, Message
    from cloudsched.engine.execution.attempts import DeliveryResult
    from cloudsched.engine.ports.queue import QueueMessage
    from cloudsched.engine.ports.store import Page, Store

START = datetime(2027, 1, 1, tzinfo=UTC)
"""When a simulation begins unless it is told otherwise: a Friday."""

_MINUTE = timedelta(minutes=1)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One dispatch that reached the executor."""

    at: datetime
    name: str
    body: bytes
    result: DeliveryResult | None
    error: Exception | None = None


class SimulatedQueue:
    """A `Dispatcher` over the local Cloud Tasks' queue model, delivering when it is told the time."""

    def __init__(self, clock: ManualClock, deliver: Callable[[bytes, str], DeliveryResult]) -> None:
        config = QueueConfig()
        self._model = Queue("simulated", config, TokenBucket.full(config.rate_limits, clock.now()))
        self._clock = clock
        self._deliver = deliver
        self.is_down = False
        """Set it to see what happens while the queue cannot be reached."""
        self.deliveries: list[Delivery] = []
        """Everything that was delivered, in order."""

    def create(self, message: QueueMessage) -> None:
        """Take a dispatch, as the model of the real service does."""
        if self.is_down:
            raise QueueUnavailable("The simulated queue", "it is down, as the test says")
        now = self._clock.now()
        if message.at > now + HORIZON:
            raise QueueUnavailable(
                "The simulated queue", f"it takes nothing that is more than {HORIZON.days} days ahead"
            )
        target = HttpTarget("http://executor", headers={"X-Cloudsched-Token": message.token}, body=message.body)
        try:
            self._model.add(QueuedTask(message.name, target, max(message.at, now), now), now)
        except RpcError as refused:
            if refused.code is not Code.ALREADY_EXISTS:
                raise QueueUnavailable("The simulated queue", str(refused)) from refused

    def close(self) -> None:
        """Nothing to let go of."""

    def purge(self) -> None:
        """Forget all that waits, as a purge of the real queue does."""
        self._model.purge(self._clock.now())

    def wake_at(self) -> datetime | None:
        """Return when the queue has something to deliver."""
        return self._model.wake_at()

    def deliver_due(self) -> None:
        """Deliver what is due now; what fails is put back, with the queue's backoff."""
        while (sent := next(self._model.take_due(self._clock.now()), None)) is not None:
            answer = self._attempt(sent.task)
            self._model.finish_attempt(sent, answer, self._clock.now())

    def _attempt(self, task: QueuedTask) -> HttpResult:
        target = task.target
        at = self._clock.now()
        try:
            verdict = self._deliver(target.body, target.headers["X-Cloudsched-Token"])
        except (Unauthenticated, InvalidInput, Unavailable) as error:
            self.deliveries.append(Delivery(at, task.id, target.body, None, error))
            return HttpResult(status=503 if isinstance(error, Unavailable) else 400)
        self.deliveries.append(Delivery(at, task.id, target.body, verdict))
        return HttpResult(status=204)


class Simulation:
    """An app in a world of its own, whose clock the test moves.

    Args:
        app: The app whose handlers run. While the simulation is open, the app itself uses its parts.
        start: When it is, at first.
        seed: What chance (the jitter of retries) is drawn from, so that a run can be repeated.
        store: A store of the test's own instead of one in memory.
        retention: How long ended tasks are kept. For ever unless a test is about that, so that it can look at them.
        replay: Whether durable handlers are suspended and replayed at every durable point, which shows what in them is
            not deterministic.
        settings: Any other of the `Settings`, by its name.
    """

    def __init__(
        self,
        app: App,
        start: datetime = START,
        *,
        seed: int = 0,
        store: Store | None = None,
        retention: timedelta | None = None,
        replay: bool = False,
        **settings: Any,
    ) -> None:
        self.app = app
        self.clock = ManualClock(start)
        self.counts = Counts()
        self.queue = SimulatedQueue(self.clock, app.deliver)
        self._inner = SqliteStore() if store is None else store
        self._owns_store = store is None
        self._store = CountingStore(self._inner, self.counts)
        self._chance = random.Random(seed)  # noqa: S311 - it is meant to be repeatable
        self._swept_at = start
        settings = {"replays_each_step": replay, **settings}
        self._settings = Settings(secret=secrets.token_hex(16), retention=retention, **settings)
        self._stack = ExitStack()
        self._workers: list[WorkerFilter] = []

    def __enter__(self) -> Self:
        """Give the app this simulation's parts."""
        self._stack.enter_context(
            self.app.override(
                self._settings,
                store=self._store,
                dispatcher=CountingDispatcher(self.queue, self.counts),
                clock=self.clock,
                chance=self._chance,
            )
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the app its own parts back."""
        self._stack.close()
        if self._owns_store:
            self._inner.close()

    @property
    def now(self) -> datetime:
        """The present instant of this world, in UTC."""
        return self.clock.now()

    def advance(self, by: timedelta) -> None:
        """Let so much time pass: everything due on the way runs at its instant, in order.

        Raises:
            TypeError: It is no `timedelta`.
            ValueError: It is negative: time does not go back.
        """
        _require_duration("advance", by)
        self.advance_to(self.now + by)

    def advance_to(self, until: datetime) -> None:
        """Let time pass up to an instant, which is included.

        Raises:
            ValueError: It is in the past: time does not go back.
        """
        if until < self.now:
            raise ValueError(f"{until} is in the past: it is {self.now}, and time does not go back.")
        self._work()
        while (at := self._next_event()) is not None and at <= until:
            self._run_events_at(at)
        self.clock.move_to(until)

    def run_until_idle(self, limit: timedelta = timedelta(days=366)) -> None:
        """Let time pass until nothing waits any more, or at the most so much of it."""
        _require_duration("run_until_idle", limit)
        until = self.now + limit
        self._work()
        while (at := self._next_event()) is not None and at <= until:
            self._run_events_at(at)

    def add_worker(
        self, queue: str, *skills: str, handlers: Iterable[str] | None = None, owner: str | None = None
    ) -> None:
        """Let a worker of a queue take what is offered, from now on, whenever something is.

        It runs the app's own handlers, in this process. Tasks of queues without a worker wait.

        Args:
            queue: Whose tasks it takes.
            skills: What it can do besides.
            handlers: The handlers that it has; all of the app's if None.
            owner: Whose tasks it may run; everybody's if None.

        Raises:
            ValueError: No task can name such a queue or skill.
        """
        for skill in (None, *skills):
            _require_valid_queue(queue, skill)
        names = [each.name for each in self.app.registry] if handlers is None else handlers
        self._workers.append(WorkerFilter(queue, skills, frozenset(names), owner, f"worker-{len(self._workers) + 1}"))

    def work(self) -> int:
        """Let the workers take and run all that is offered now; return how many attempts that were.

        Time does it by itself as it passes.
        """
        attempts = 0
        for wanted in self._workers:
            while claims := self.app.worker_claims.claim(wanted):
                begun = self.app.worker_claims.start(claims[0])
                if begun is not None:
                    self.app.worker_claims.finish(begun, self.app.worker_claims.invoke_handler(begun))
                attempts += 1
        return attempts

    def executions(self, task_id: str) -> list[Execution]:
        """Return all executions of a task, the earliest first."""
        return list(_iter_pages(lambda token: self.app.executions(task_id, limit=500, page_token=token)))[::-1]

    def inbox(self, owner: str) -> list[Message]:
        """Return all messages in an owner's inbox, the earliest first."""
        return list(_iter_pages(lambda token: self.app.inbox(owner, limit=500, page_token=token)))[::-1]

    def _next_event(self) -> datetime | None:
        moments = [at for at in (self.queue.wake_at(), self._next_sweep()) if at is not None]
        return min(moments, default=None)

    def _next_sweep(self) -> datetime | None:
        """Return the first minute at which the sweep will find something; at all others it does nothing."""
        wake_at = self._store.next_wakeup()
        if wake_at is None:
            return None
        earliest = max(wake_at + GRACE, self._swept_at + timedelta(microseconds=1), self.now)
        past = timedelta(seconds=earliest.second, microseconds=earliest.microsecond)
        return earliest if not past else earliest - past + _MINUTE

    def _run_events_at(self, at: datetime) -> None:
        sweep_at = self._next_sweep()
        self.clock.move_to(at)
        if sweep_at is not None and sweep_at <= at:
            self._swept_at = at
            with suppress(QueueUnavailable):  # as Cloud Scheduler does: the next sweep goes on
                self.app.sweep()
        self.queue.deliver_due()
        self._work()

    def _work(self) -> None:
        """Let the workers work, and what follows from that at this very instant happen, until nothing is left."""
        with suppress(StoreUnavailable):  # as a worker does: it comes again
            while self._workers and self.work():
                self.queue.deliver_due()


def _require_duration(method: str, value: object) -> None:
    if not isinstance(value, timedelta):
        kind = type(value).__name__
        raise TypeError(f"{method} takes a timedelta, such as timedelta(seconds=60); {value!r} is of type {kind}.")
    if value < timedelta(0):
        raise ValueError(f"{method} was given {value!r}; time does not go back.")


def _require_valid_queue(queue: str, skill: str | None) -> None:
    try:
        Pull(queue=queue, skill=skill)
    except ValidationError as error:
        which = f"The queue {queue!r}" if error.errors()[0]["loc"] == ("queue",) else f"The skill {skill!r}"
        raise ValueError(f"{which}: letters, digits, - and _ (a skill: dots, too), at most 64.") from None


def _iter_pages(page_after: Callable[[str | None], Page[T]]) -> Iterator[T]:
    page = page_after(None)
    yield from page.items
    while page.next_page_token:
        page = page_after(page.next_page_token)
        yield from page.items
