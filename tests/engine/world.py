"""One seeded world of executors, sweeps, clients, a queue and a store, in which anything may break at any call.

Every process is a thread, and only one of them runs at a time: at each call to a port it hands over to the world, which
draws who goes on. So a seed is one history, and the same one every time. A process that dies raises `Killed`.
"""

from __future__ import annotations

import json
import random
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from tests.engine.world_clients import one_change
from tests.engine.world_handler import register_handlers
from tests.engine.world_ports import BreakableQueue, BreakableStore, DriftingClock
from tests.engine.world_rules import Rules

from cloudsched import App, Settings
from cloudsched.adapters.sqlite import SqliteStore
from cloudsched.emulator.bucket import Bucket
from cloudsched.emulator.queue import Dispatch as Sent
from cloudsched.emulator.queue import Queue, QueueConfig
from cloudsched.emulator.task import Answer
from cloudsched.engine.sweeper import GRACE
from cloudsched.errors import InvalidInput, NotAllowed, NotFound, QueueUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2027, 3, 27, 20, 0, tzinfo=UTC)
"""The night in which Europe's clocks go forward."""
SECRET = "the-secret-of-this-world-0123456789"  # noqa: S105 - it guards nothing but this test
_MINUTE = timedelta(minutes=1)
_TICK = timedelta(microseconds=1)


class Killed(BaseException):
    """The last thing that a process ever did."""


@dataclass(frozen=True)
class Weather:
    """What sort of world a history lives in."""

    name: str
    fault: float = 0.0
    """How likely a call to a port fails, before or after it took effect, or is made twice."""
    kill: float = 0.0
    """How likely a call is the last thing that its process does."""
    linger: float = 0.0
    """How likely time passes while something is under way."""
    drift: timedelta = timedelta(0)
    """How far a process's clock may be from the true time, either way."""
    purge: float = 0.0
    """How likely the queue forgets everything, at each change by a client."""
    changes: int = 12
    """How many things clients do."""
    length: timedelta = timedelta(hours=6)
    """How long they do it."""
    is_crowded: bool = False
    """Whether all tasks want the same lock at the same time, and their runs take long."""
    is_long: bool = False
    """Whether tasks are days and months apart rather than minutes."""

    @property
    def is_calm(self) -> bool:
        """Whether nothing goes wrong at all, so that everything happens on its instant."""
        return not (self.fault or self.kill or self.linger or self.purge)


WEATHERS = (
    Weather("calm"),
    Weather("slow", linger=0.2),
    Weather("faults", fault=0.08, linger=0.05),
    Weather("deaths", kill=0.05, linger=0.1),
    Weather("storm", fault=0.1, kill=0.04, linger=0.15, purge=0.1, drift=timedelta(seconds=2)),
    Weather("crowd", fault=0.02, kill=0.01, linger=0.4, is_crowded=True),
    Weather("years", fault=0.05, kill=0.02, purge=0.05, changes=8, length=timedelta(days=70), is_long=True),
    Weather("calm years", changes=8, length=timedelta(days=70), is_long=True),
)


@dataclass(eq=False)
class Process:
    """Something under way: a delivery, a sweep or a client's request."""

    name: str
    work: Callable[[], None]
    app: App
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    sent: Sent | None = None
    revision: int | None = None
    """Which revision the dispatch is of that it was given."""
    is_done: bool = False
    is_ok: bool = False
    failure: BaseException | None = None
    thread: threading.Thread | None = None


class World:
    """A history: made by a seed, run once, judged by `Rules` as it goes and at its end."""

    def __init__(self, seed: int, weather: Weather) -> None:
        self.seed = seed
        self.weather = weather
        self.random = random.Random(seed)  # noqa: S311 - a history is to be repeatable
        self.now = START
        self.is_stormy = True
        self.inner = SqliteStore()
        self.model = Queue("queue", QueueConfig(), Bucket.full(QueueConfig().rate_limits, START))
        self.rules = Rules(self)
        self.trace: deque[str] = deque(maxlen=400)
        self.processes: list[Process] = []
        self.current: Process | None = None
        self.deliveries = 0
        self._baton = threading.Semaphore(0)
        self._number = 0
        self._swept_at = START
        self.apps = [self._app() for _ in range(4)]
        spread = weather.length.total_seconds()
        self._changes = deque(
            sorted(START + timedelta(seconds=self.random.random() * spread) for _ in range(weather.changes))
        )

    def _app(self) -> App:
        drift = self.weather.drift * (2 * self.random.random() - 1)
        app = App(
            Settings(secret=SECRET, executor_url="http://executor"),
            store=BreakableStore(self),
            dispatcher=BreakableQueue(self),
            clock=DriftingClock(self, drift),
            chance=random.Random(self.random.random()),  # noqa: S311 - the same
        )
        register_handlers(app, self)
        return app

    # ── What processes call ──────────────────────────────────────────────────────────────────────────────────────

    def say(self, text: str) -> None:
        """Note what happened, for whoever reads a failing history."""
        who = self.current.name if self.current else "-"
        self.trace.append(f"{self.now:%m-%dT%H:%M:%S.%f} {who:<12} {text}")

    def hand_over(self) -> None:
        """Let somebody else go on first."""
        process = self.current
        assert process
        self._baton.release()
        process.go.acquire()
        self.maybe_die("while it waited")

    def maybe_die(self, when: str) -> None:
        """End the current process, if it is so drawn."""
        if self.is_stormy and self.random.random() < self.weather.kill / 2:
            self.say(f"DIES {when}")
            raise Killed

    def is_faulty(self) -> bool:
        """Draw whether a call goes wrong."""
        return self.is_stormy and self.random.random() < self.weather.fault

    # ── What the world does ──────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Live through the history, then let the sky clear and everything settle, and judge."""
        end = START + self.weather.length
        try:
            while self.now < end:
                self._step(end)
            self.is_stormy = False
            settled = end + timedelta(hours=3)
            while self.now < settled or self.processes:
                self._step(settled)
            self.rules.judge_end()
        finally:
            self._put_down()
            self.inner.close()

    def _step(self, end: datetime) -> None:
        waiting = self.model.wake_at()
        choices: list[tuple[float, Callable[[], None]]] = []
        if self.processes:
            choices.append((6.0, self._go_on))
        if waiting is not None and waiting <= self.now and len(self.processes) < 6:
            choices.append((3.0, self._deliver))
        if self._changes and self._changes[0] <= self.now:
            choices.append((2.0, self._change))
        if (sweep_at := self._next_sweep()) is not None and sweep_at <= self.now:
            choices.append((2.0, self._sweep))
        lingers = self.is_stormy and self.random.random() < self.weather.linger
        if not choices or (lingers and self.processes):
            self._let_time_pass(end, waiting, sweep_at)
            return
        (_, act), *_ = self.random.choices(choices, [weight for weight, _ in choices])
        act()

    def _let_time_pass(self, end: datetime, waiting: datetime | None, sweep_at: datetime | None) -> None:
        if self.processes:
            steps = [0.01, 1, 5, 90] if self.weather.is_crowded else [0.01, 1, 30, 100, 400]
            self.now += timedelta(seconds=self.random.choice(steps) * self.random.random())
            return
        moments = [at for at in (waiting, sweep_at, self._changes[0] if self._changes else None) if at is not None]
        self.now = max(self.now, min([end, *moments]))

    def _next_sweep(self) -> datetime | None:
        wake_at = self.inner.next_wake()
        if wake_at is None:
            return None
        earliest = max(wake_at + GRACE, self._swept_at + _TICK, self.now)
        past = timedelta(seconds=earliest.second, microseconds=earliest.microsecond)
        return earliest if not past else earliest - past + _MINUTE

    def _go_on(self) -> None:
        self._resume(self.random.choice(self.processes))

    def _deliver(self) -> None:
        due = list(self.model.due(self.now))
        self.random.shuffle(due)
        for sent in due:
            body, token = sent.target.body, sent.target.headers["X-Cloudsched-Token"]
            app = self.random.choice(self.apps[:3])
            self._begin("deliver", app, partial(self._delivered, app, body, token), sent)
            if self.is_faulty():
                self.say("the queue delivers twice")
                self._begin("again", app, partial(self._delivered, app, body, token))

    def _delivered(self, app: App, body: bytes, token: str) -> None:
        self.deliveries += 1
        self.say(f"gets {body.decode()}")
        assert self.current
        self.current.revision = json.loads(body)["revision"]
        verdict = app.deliver(body, token)
        self.say(f"{verdict.action}: {verdict.why}")

    def _sweep(self) -> None:
        self._swept_at = self.now
        app = self.random.choice(self.apps)
        self._begin("sweep", app, lambda: self.say(f"swept {app.sweep()}"))

    def _change(self) -> None:
        self._changes.popleft()
        if self.random.random() < self.weather.purge:
            self.say("THE QUEUE FORGETS EVERYTHING")
            self.model.purge(self.now)
        self._begin("client", self.apps[3], lambda: self._changed(self.apps[3]))

    def _changed(self, app: App) -> None:
        with suppress(NotFound, NotAllowed, InvalidInput):
            one_change(self, app)

    def _begin(self, kind: str, app: App, work: Callable[[], None], sent: Sent | None = None) -> None:
        self._number += 1
        process = Process(f"{kind}-{self._number}", work, app, sent=sent)
        process.thread = threading.Thread(target=self._live, args=(process,), daemon=True)
        self.processes.append(process)
        process.thread.start()
        self._resume(process)

    def _live(self, process: Process) -> None:
        process.go.acquire()
        try:
            process.work()
            process.is_ok = True
        except (StoreUnavailable, QueueUnavailable) as error:
            self.say(f"fails: {error}")
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - the world judges it in its own thread
            process.failure = error
        self.rules.ended(process)
        process.is_done = True
        self._baton.release()

    def _resume(self, process: Process) -> None:
        self.current = process
        process.go.release()
        self._baton.acquire()
        self.current = None
        if not process.is_done:
            return
        self.processes.remove(process)
        if process.failure is not None:
            raise process.failure
        if process.sent is not None:
            self.model.answered(process.sent, Answer(status=204 if process.is_ok else 503), self.now)

    def _put_down(self) -> None:
        """End what is still under way, when a history has failed."""
        self.is_stormy = True
        self.weather = Weather("the end", kill=2.0)
        while self.processes:
            process = self.processes[-1]
            with suppress(BaseException):
                self._resume(process)
