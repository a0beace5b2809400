"""A simulated deployment: executors, workers, sweeps, clients, a queue and a store, where any call may fail.

Every process is a greenlet, so only one runs at a time: at each call to a port it yields to the world, which draws the
process that runs next. So a seed always gives the same history. A process that crashes raises `Killed`.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

from greenlet import getcurrent, greenlet
from tests.engine.harness import DAY, HOUR, MINUTE
from tests.simulation.actors_channels import add_person, cancel_all, make_senders
from tests.simulation.actors_clients import IDS, MORE_IDS, apply_random_change, pick_task
from tests.simulation.actors_durable_handlers import register_durable_handlers
from tests.simulation.actors_handlers import register_handlers
from tests.simulation.actors_journeys import add_traveller
from tests.simulation.actors_releases import Releases
from tests.simulation.actors_requests import Requests, register_asked_handlers
from tests.simulation.actors_restarts import Restarts
from tests.simulation.actors_shards import GrowingShards
from tests.simulation.actors_workers import Workers
from tests.simulation.faults import FaultProfile
from tests.simulation.faulty_ports import DriftingClock, FaultyQueue, FaultyStore
from tests.simulation.invariants_backlog import BacklogInvariants
from tests.simulation.invariants_budgets import BudgetInvariants, set_budgets
from tests.simulation.invariants_calendars import CalendarInvariants
from tests.simulation.invariants_channels import ChannelInvariants
from tests.simulation.invariants_children import CallInvariants
from tests.simulation.invariants_documents import DocumentInvariants
from tests.simulation.invariants_failures import FailureInvariants
from tests.simulation.invariants_follow_ups import FollowUpInvariants
from tests.simulation.invariants_journals import JournalInvariants
from tests.simulation.invariants_journeys import JourneyInvariants
from tests.simulation.invariants_pull import PullInvariants
from tests.simulation.invariants_runs import RunInvariants, fail

from cloudsched import App, Settings, Task
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.time_zones import ZoneData
from cloudsched.emulator.model.queue import CloudQueue, QueueConfig
from cloudsched.emulator.model.queue import DispatchAttempt as Sent
from cloudsched.emulator.model.task import HttpResult
from cloudsched.emulator.model.token_bucket import TokenBucket
from cloudsched.engine.execution.executor import TaskReader
from cloudsched.engine.ports.store import Store
from cloudsched.engine.sweep.sweeper import GRACE
from cloudsched.errors import InvalidInput, NotAllowed, NotFound, QueueUnavailable, StoreUnavailable
from cloudsched.features.pull.work_queue import WorkerFilter
from cloudsched.people.wiring import PeopleWiring

START = datetime(2027, 3, 27, 20, 0, tzinfo=UTC)
"""The night in which European clocks go forward."""
SECRET = "the-secret-of-this-world-0123456789"  # noqa: S105 - it guards nothing but this test
_MINUTE = MINUTE
_TICK = timedelta(microseconds=1)
_MAX_STEPS = 1_000_000
"""A hundred times as many as a history takes."""
_NAMES_STAY_TAKEN = (HOUR, DAY, 9 * DAY)
"""How long a dispatch's name stays taken after it: Google's pages have said all of these."""
_PACES: tuple[dict[str, Any], ...] = ({}, {}, {"replays_each_step": True}, {"time_limit": _MINUTE})


class Killed(ControlFlow):
    """The process has crashed. No handler catches it."""


@dataclass(eq=False)
class Process:
    """Something that runs: a delivery, a sweep, a client's request or a worker."""

    name: str
    work: Callable[[], None]
    app: App
    number: int
    begun_at: datetime
    sent: Sent | None = None
    revision: int | None = None
    """The task's revision in the dispatch that it received."""
    wanted: WorkerFilter | None = None
    """What it may claim, if it is a worker."""
    tokens: set[str] = field(default_factory=set)
    """The leases that it may act for."""
    rests_until: datetime | None = None
    """When it resumes, if it waits for time to pass."""
    zone_data: ZoneData = field(default_factory=lambda: time_zones.in_use)
    """The time zone data that it has."""
    fiber: greenlet | None = None
    """What runs it; None until its turn first comes."""
    is_ok: bool = False
    failure: BaseException | None = None


class World:
    """One history: generated from a seed, run once, and checked against the invariants throughout and at its end."""

    _steps = 0

    def __init__(self, seed: int, fault_profile: FaultProfile) -> None:
        self.seed = seed
        self.fault_profile = fault_profile
        self.random = random.Random(seed)  # noqa: S311 - a history is to be repeatable
        self.now = start = START + fault_profile.starts_after
        self.faults_enabled = True
        self.real_store = SqliteStore()
        names = random.Random(f"names {seed}").choice(_NAMES_STAY_TAKEN)  # noqa: S311 - the same
        self._queue_config = QueueConfig(name_retention=names)
        self.model = self._make_queue()
        self.rules = RunInvariants(self)
        self.journals = JournalInvariants(self)
        self.trees = CallInvariants(self)
        self.pulls = PullInvariants(self)
        self.follow_ups = FollowUpInvariants(self)
        self.backlogs = BacklogInvariants(self)
        self.calendars = CalendarInvariants(self)
        self.journeys = JourneyInvariants(self)
        self.channels = ChannelInvariants(self)
        self.budgets = BudgetInvariants(self)
        self.failures = FailureInvariants()
        self.documents = DocumentInvariants()
        self.workers = Workers(self)
        self._trace: deque[tuple[datetime, str, str | Callable[[], str]]] = deque(maxlen=400)
        self.processes: list[Process] = []
        self.current: Process | None = None
        self.deliveries = 0
        self.committed: dict[str, Task] = {}
        """The tasks as they were committed last; those that are purged are gone."""
        self._task_ids: set[str] = set()
        self._journal_keys: set[tuple[str, str]] = set()
        self._fiber = getcurrent()
        self._wake_at: datetime | None = None
        self._has_changed = True
        self._number, self._swept_at, self.faults_end_at = 0, start, start + fault_profile.length
        self.ids = (*IDS, *MORE_IDS) if fault_profile.has_workers else IDS
        self.kinds = {each: fault_profile.pick_kind(self.random) for each in self.ids}
        self._paces: dict[str, Any] = self.random.choice(_PACES) if fault_profile.is_durable else {}
        errors = (fault_profile.wrong_clock, *[timedelta(0)] * (5 if fault_profile.has_workers else 3))
        self.apps = [self.start_app(each) for each in errors]
        """Three for executors, one for clients and, where there are workers, two for them."""
        self.releases = Releases(self)
        given = fault_profile.has_channels, fault_profile.has_journeys, fault_profile.has_budgets
        for is_given, prepare in zip(given, (add_person, add_traveller, set_budgets), strict=True):
            if is_given:
                prepare(self)
        self.shards = GrowingShards(self)
        self.requests = Requests(self)
        self.restarts = Restarts(self)
        moments = (start + fault_profile.length * self.random.random() for _ in range(fault_profile.changes))
        self._changes = deque(sorted(moments))

    def start_app(self, clock_error: timedelta) -> App:
        """Return what a process runs."""
        app = App(
            Settings(secret=SECRET, executor_url="http://executor", access=Access(open=True), **self._paces),
            store=cast("Store", FaultyStore(self)),
            dispatcher=FaultyQueue(self),
            clock=DriftingClock(self, clock_error),
            chance=random.Random(self.random.random()),  # noqa: S311 - the same
            monotonic=lambda: 0.0,  # a history is the same on a busy machine
        )
        store, clock = app.container.store, app.container.clock
        tasks = TaskReader(store, clock, checks_clock=True, seconds=self._tell_seconds, is_alone=False)
        app.container.executor._tasks = tasks  # noqa: SLF001 - as by the system's clock
        app.container.executor._sleep = lambda _: None  # noqa: SLF001 - the same
        register_handlers(app, self)
        register_durable_handlers(app, self)
        register_asked_handlers(app, self)
        if self.fault_profile.has_channels:
            PeopleWiring.of(app.container).replace(senders=make_senders(self))
        return app

    # ── What processes call ──────────────────────────────────────────────────────────────────────────────────────

    def log(self, text: str | Callable[[], str]) -> None:
        """Add a line to the trace that a failing history prints; what takes long to write is written only then."""
        self._trace.append((self.now, self.current.name if self.current else "-", text))

    @property
    def trace(self) -> list[str]:
        """What has happened last, line by line."""
        return [
            f"{at:%m-%dT%H:%M:%S.%f} {who:<12} {text if isinstance(text, str) else text()}"
            for at, who, text in self._trace
        ]

    def yield_control(self) -> None:
        process = self.current
        assert process
        self._fiber.switch()
        self.maybe_crash("while it waited")

    def wait(self, seconds: float) -> None:
        """Suspend the current process for at least so many seconds."""
        process = self.current
        assert process
        process.rests_until = self.now + timedelta(seconds=seconds)
        self.yield_control()
        process.rests_until = None

    def _tell_seconds(self) -> float:
        return self.now.timestamp()

    def spawn_sibling(self, kind: str, work: Callable[[], None]) -> None:
        """Create a process with the same app and the same leases; the world draws when it starts."""
        process = self.current
        assert process
        self._create_process(kind, process.app, work).tokens = process.tokens

    def maybe_crash(self, when: str) -> None:
        """Crash the current process, with the probability that the fault profile gives."""
        if self.faults_enabled and self.random.random() < self.fault_profile.kill / 2:
            self.log(f"CRASHES {when}")
            raise Killed

    def is_faulty(self) -> bool:
        return self.faults_enabled and self.random.random() < self.fault_profile.fault

    def is_deadline_over(self) -> bool:
        """Draw whether the deadline of a call that failed is over, so that the adapter does not repeat it."""
        return self.random.random() < 0.5

    @property
    def process_count(self) -> int:
        return self._number

    def draw_yield(self) -> bool:
        """Draw whether other processes run between the effect of a call and its caller."""
        return self.random.random() < self.fault_profile.yields

    def latest_time(self, process: Process) -> datetime:
        """Return the latest time that a process may have read from its clock by now."""
        return self.now + self.fault_profile.drift if self.fault_profile.steps else process.app.container.clock.now()

    def tasks(self) -> list[Task]:
        """Return all tasks that are stored, including those that are being deleted, which no list shows."""
        return [stored.task for task_id in sorted(self._task_ids) if (stored := self.real_store.load(task_id))]

    def open_journals(self) -> list[tuple[str, str]]:
        """Return the task and the execution of each journal that the store still holds entries of."""
        return [key for key in sorted(self._journal_keys) if self.real_store.load_journal(*key)]

    def on_write(self) -> None:
        """Note that the store has changed, so that the earliest wake-up is read again."""
        self._has_changed = True

    def on_commit(self, task: Task, entries: Sequence[JournalEntry]) -> None:
        """Remember a committed task, to check what follows it, and the end."""
        self.committed[task.id] = task
        self._task_ids.add(task.id)
        self._journal_keys.update((task.id, each.execution_id) for each in entries)

    # ── How a history runs ──────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """Run the history, then stop all faults, let the remaining work finish, and check the final state."""
        try:
            while self.now < self.faults_end_at:
                self._step(self.faults_end_at)
            self.faults_enabled = False
            if self.fault_profile.has_workers:
                self.workers.notify()
            settled = self.faults_end_at + 3 * HOUR
            if self.fault_profile.has_channels:
                while any(each.name.startswith("client") for each in self.processes):
                    self._step(settled)  # they may still create a task
                cancel_all(self)  # so that nothing new is delivered while the rest is
                settled += 3 * DAY
            while self.now < settled or self.processes:
                self._step(settled)
            for rules in (self.releases, self.rules, self.trees, self.journals, self.pulls):
                rules.check_end_state()
            for others in (self.calendars, self.journeys, self.channels, self.shards, self.requests):
                others.check_end_state()
        finally:
            self._kill_remaining()
            self.real_store.close()

    def _step(self, end: datetime) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            fail(f"the history stands still: {[each.name for each in self.processes]}")
        waiting = self.model.wake_at()
        awake = self._runnable_processes()
        choices: list[tuple[float, Callable[[], None]]] = []
        if awake:
            choices.append((6.0, self._resume_any))
        if waiting is not None and waiting <= self.now and len(awake) < 6:
            choices.append((3.0, self._start_deliveries))
        if self._changes and self._changes[0] <= self.now:
            choices.append((2.0, self._start_change))
        if (sweep_at := self._next_sweep_at()) is not None and sweep_at <= self.now:
            choices.append((2.0, self._start_sweep))
        actors: tuple[GrowingShards | Releases | Restarts, ...] = (self.shards, self.releases, self.restarts)
        act_at = [each.next_at() for each in actors]
        choices += [
            (2.0, each.act) for each, at in zip(actors, act_at, strict=True) if at is not None and at <= self.now
        ]
        if (request_at := self.requests.next_at()) is not None and request_at <= self.now and len(awake) < 6:
            choices.append((2.0, self.requests.act))
        visit_at = self.workers.next_at() if self.now < end else None
        if visit_at is not None and visit_at <= self.now and len(awake) < 6:
            choices.append((2.0, self.workers.start_visit))
        lingers = self.faults_enabled and self.random.random() < self.fault_profile.linger
        if not choices or (lingers and awake):
            self._advance_clock(end, waiting, sweep_at, visit_at, request_at, *act_at)
            return
        (_, act), *_ = self.random.choices(choices, [weight for weight, _ in choices])
        act()

    def _runnable_processes(self) -> list[Process]:
        return [each for each in self.processes if each.rests_until is None or each.rests_until <= self.now]

    def _advance_clock(self, end: datetime, *moments: datetime | None) -> None:
        if self._runnable_processes():
            steps = [0.01, 1, 5, 90] if self.fault_profile.is_crowded else [0.01, 1, 30, 100, 400]
            self.now += timedelta(seconds=self.random.choice(steps) * self.random.random())
            return
        rests = [each.rests_until for each in self.processes]
        changes = [self._changes[0]] if self._changes else []
        end = end if end > self.now else datetime.max.replace(tzinfo=UTC)
        self.now = max(self.now, min([end, *(at for at in (*moments, *rests, *changes) if at is not None)]))

    def _next_sweep_at(self) -> datetime | None:
        if self._has_changed:
            self._wake_at, self._has_changed = self.real_store.sweep.next_wakeup(), False
        if self._wake_at is None:
            return None
        earliest = max(self._wake_at + GRACE, self._swept_at + _TICK, self.now)
        past = timedelta(seconds=earliest.second, microseconds=earliest.microsecond)
        return earliest if not past else earliest - past + _MINUTE

    def _resume_any(self) -> None:
        self._resume_process(self.random.choice(self._runnable_processes()))

    def _start_deliveries(self) -> None:
        due = list(self.model.take_due(self.now))
        self.random.shuffle(due)
        for sent in due:
            body, token = sent.target.body, sent.target.headers["X-Cloudsched-Token"]
            app = self.random.choice(self.apps[:3])
            self.start_process("deliver", app, partial(self._run_delivery, app, body, token), sent)
            if self.is_faulty():
                self.log("the queue delivers twice")
                self.start_process("again", app, partial(self._run_delivery, app, body, token))

    def _run_delivery(self, app: App, body: bytes, token: str) -> None:
        self.deliveries += 1
        self.log(f"gets {body.decode()}")
        assert self.current
        self.current.revision = json.loads(body).get("revision", 0)
        verdict = app.deliver(body, token)
        self.log(f"{verdict.action}: {verdict.reason}")

    def _start_sweep(self) -> None:
        self._swept_at = self.now
        app = self.random.choice(self.apps)
        self.start_process("sweep", app, lambda: self.log(f"swept {app.sweep()}"))

    def _start_change(self) -> None:
        self._changes.popleft()
        if self.random.random() < self.fault_profile.purge:
            self.log("THE QUEUE LOSES EVERYTHING")
            self.model.purge(self.now)
        app, rivals = self.apps[3], self.random.choice(self.fault_profile.rivals)
        task_id = pick_task(self)
        for _ in range(rivals):
            self.start_process("client", app, lambda: self._run_change(app, task_id))

    def _run_change(self, app: App, task_id: str) -> None:
        with suppress(NotFound, NotAllowed, InvalidInput):
            apply_random_change(self, app, task_id)

    def start_process(
        self,
        kind: str,
        app: App,
        work: Callable[[], None],
        sent: Sent | None = None,
        wanted: WorkerFilter | None = None,
    ) -> None:
        """Start a process and run it until it first yields."""
        process = self._create_process(kind, app, work)
        process.sent, process.wanted = sent, wanted
        self._resume_process(process)

    def _create_process(self, kind: str, app: App, work: Callable[[], None]) -> Process:
        self._number += 1
        process = Process(f"{kind}-{self._number}", work, app, number=self._number, begun_at=self.now)
        process.zone_data = self.releases.data_of(app)
        self.processes.append(process)
        return process

    def _run_process(self, process: Process) -> None:
        try:
            process.work()
            process.is_ok = True
        except (StoreUnavailable, QueueUnavailable) as error:
            self.log(f"fails: {error}")
            if not self.fault_profile.fault:
                process.failure = error
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - the world raises it
            process.failure = error
        self.rules.on_handler_end(process)

    def _resume_process(self, process: Process) -> None:
        self.current = process
        if process.fiber is None:
            process.fiber = greenlet(partial(self._run_process, process), self._fiber)
        with time_zones.use(process.zone_data):
            process.fiber.switch()
        self.current = None
        if not process.fiber.dead:
            return
        self.processes.remove(process)
        if process.failure is not None:
            raise process.failure
        if process.sent is not None:
            self.model.finish_attempt(process.sent, HttpResult(status=204 if process.is_ok else 503), self.now)

    def crash(self, process: Process) -> None:
        """End a process where it is, from outside."""
        while process.fiber is not None and not process.fiber.dead:
            self.current = process
            process.fiber.throw(Killed)
            self.current = None
        self.processes.remove(process)
        if process.sent is not None:
            self.model.finish_attempt(process.sent, HttpResult(status=503), self.now)

    def replace_queue(self) -> None:
        """Use another queue, which is empty and knows no names."""
        self.model = self._make_queue()

    def _make_queue(self) -> CloudQueue:
        return CloudQueue("queue", self._queue_config, TokenBucket.full(self._queue_config.rate_limits, self.now))

    def _kill_remaining(self) -> None:
        """Crash all processes that are left when a history has failed."""
        self.faults_enabled = True
        self.fault_profile = FaultProfile("the end", kill=2.0)
        while self.processes:
            process = self.processes[-1]
            with suppress(BaseException):
                self._resume_process(process)
