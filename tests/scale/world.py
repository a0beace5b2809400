"""A deployment in virtual time: the real engine, planner and adapters over the models of Firestore and Cloud Tasks.

Of a large deployment a part is simulated: some of its shards, with the tasks that the real hash puts there, and as much
of all queues' rate. Shards share no index range, and queues no rate, so such a part behaves as the whole does.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Final, Self
from unittest.mock import patch

from tests.harness import SECRET
from tests.scale.cloud_tasks_model import CREATE_SECONDS, QueueSetup, QueuesModel
from tests.scale.firestore_model import FirestoreModel
from tests.scale.google_limits import (
    QUEUE_RAMP_BASE,
    RAMP_BASE,
    RAMP_GROWTH,
    Ramp,
    VirtualTime,
    to_seconds,
)
from tests.scale.index_ranges import Indexes
from tests.scale.store_limits import RangeLimits, StoreLimits

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.firestore.shards import Placement
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.google.cloud_tasks import CloudTasksDispatcher
from cloudsched.domain.transitions.claim import DeliveryAction
from cloudsched.domain.transitions.wakeups import SWEEP_PREFIX
from cloudsched.engine.handlers.context import Context
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.ports.sweep import choose_shard
from cloudsched.engine.sweep.shard_sweeps import FAN_OUT_THREADS, SweepPart
from cloudsched.engine.sweep.sweeper import SHARD_THREADS
from cloudsched.errors import InvalidInput, Unauthenticated, Unavailable
from cloudsched.testing import START

HANDLER_SECONDS: Final = 0.1
OPERATIONS_PER_OCCURRENCE: Final = 3
"""On the collection of tasks: a read and two writes. The ramp counts them, and the creation of a one-time task."""
LEAD_SECONDS: Final = 5.0
"""How long before it is due a one-time task is created, if that is part of the load."""
RETRY_SECONDS: Final = 1.0
"""How long somebody who creates tasks waits before a new try."""
_PATCHED: Final = (
    "cloudsched.adapters.google.backoff.time",
    "cloudsched.adapters.google.cloud_tasks.time",
    "cloudsched.adapters.firestore.shards.time",
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is deployed, and the part of it that is simulated.

    Attributes:
        tasks: How many tasks there are.
        rate: How many occurrences a second they are asked for.
        shards: `CLOUDSCHED_SHARDS`.
        queues: The queues of each priority.
        indexes: The database's indexes; those that the scripts create for so many shards if None.
        owners: To how many owners the tasks belong. One is `system`, as of tasks that a server creates without saying
            whose they are. One for every hundred tasks if None.
        is_one_time: Whether each task runs once, and is created beside the load, `LEAD_SECONDS` before.
        has_rising_ids: Whether their ids rise, as in `order-1000001`, so that what runs after each other lies together.
    """

    tasks: int
    rate: float
    shards: int = 1
    queues: QueueSetup = field(default_factory=QueueSetup)
    indexes: Indexes | None = None
    owners: int | None = None
    is_one_time: bool = False
    has_rising_ids: bool = False

    @property
    def owner_count(self) -> int:
        return self.owners or max(1, self.tasks // 100)

    @property
    def fraction(self) -> float:
        return self.queues.fraction

    @property
    def simulated_shards(self) -> range:
        """The shards that are simulated: the last ones, so that what is wrongly written into shard 0 shows."""
        return range(self.shards - max(1, round(self.shards * self.fraction)), self.shards)

    @property
    def shard_share(self) -> float:
        """The part of each of these that is simulated."""
        return self.shards * self.fraction / len(self.simulated_shards)

    @property
    def period(self) -> int:
        """Every how many seconds each task is due: whole seconds, as schedules are."""
        return max(1, round(self.tasks / self.rate))

    @property
    def possible_rate(self) -> float:
        """How many occurrences a second that makes."""
        return self.tasks / self.period


class World:
    """One deployment, and what happens in it."""

    def __init__(self, deployment: Deployment, seed: int = 0) -> None:
        self.deployment = deployment
        self.chance = random.Random(seed)  # noqa: S311 - a run is to be repeatable
        self.time = VirtualTime(self.chance)
        limits = StoreLimits(
            RangeLimits(deployment.fraction, deployment.shard_share, deployment.simulated_shards), is_enforced=False
        )
        indexes = deployment.indexes or Indexes.of_shards(deployment.shards, has_rising_ids=deployment.has_rising_ids)
        self.firestore = FirestoreModel(self.time, indexes, limits)
        self.queues = QueuesModel(self.time, deployment.queues, self._deliver)
        self.queues.is_enforced = False
        self.is_executor_down = False
        self.starts: dict[str, list[tuple[float, float]]] = {}
        """For each task, its occurrences: when they were due, and when their handlers began."""
        self.swept: dict[int, float] = {}
        """When the first part of each shard's sweep began last."""
        self.actions: Counter[str] = Counter()
        """What became of deliveries."""
        self._stack = ExitStack()
        self._next_id = 1_000_000
        self._next_owner = 0

    def __enter__(self) -> Self:
        """Put the models and the virtual time in the place of Google's services and of this machine's time."""
        with ExitStack() as stack:
            self._set_up(stack)
            self._stack = stack.pop_all()
        return self

    def _set_up(self, stack: ExitStack) -> None:
        enter = stack.enter_context
        for name in _PATCHED:
            enter(patch(name, self.time))
        enter(patch("cloudsched.adapters.google.backoff.random", self.chance))
        enter(patch("cloudsched.adapters.firestore.rpc.open_channel", lambda *_: self.firestore))
        enter(patch("cloudsched.adapters.google.cloud_tasks.open_channel", lambda *_: self.queues))
        deployment = self.deployment
        threads = max(1, round(SHARD_THREADS * deployment.shard_share))  # of a part of a shard, a part of its threads
        enter(patch("cloudsched.engine.sweep.sweeper.map_in_threads", self._make_lanes(threads)))
        enter(patch("cloudsched.engine.sweep.shard_sweeps.map_in_threads", self._make_lanes(FAN_OUT_THREADS)))
        self.store = FirestoreStore(project="scale", shards=self.deployment.shards)
        self._dispatcher = CloudTasksDispatcher(
            project="scale",
            location="here",
            queue="cloudsched",
            url="http://executor",
            queues_per_priority=self.deployment.queues.count,
        )
        self.app = App(
            Settings(secret=SECRET, executor_url="http://executor"),
            store=self.store,
            dispatcher=self,
            clock=self.time,
            chance=self.chance,
            monotonic=self.time.monotonic,
        )
        self.app.container.registry.register("tick")(self._make_handler())
        if self.deployment.shards > 1:
            self.store._shards.store_placement(Placement(self.deployment.shards))  # noqa: SLF001 - as after `shards grow`

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    # ── What tests and scenarios do ──────────────────────────────────────────────────────────────────────────────

    def create_tasks(self, dues: Sequence[float], period: int | None = None) -> list[str]:
        """Create a task for each due time (in seconds), every `period` seconds from then on; limits do not count."""
        present, ids = self.time.seconds, [self._find_id() for _ in dues]
        for task_id, due in zip(ids, dues, strict=True):
            interval = timedelta(seconds=period or self.deployment.period)
            self._create(task_id, Schedule.every(interval, start=START + timedelta(seconds=due)))
            self.time.seconds = present
        return ids

    def plan_tasks(self, dues: Sequence[float]) -> list[str]:
        """Have a task that runs once created for each due time, shortly before, while limits count."""
        ids = [self._find_id() for _ in dues]
        for task_id, due in zip(ids, dues, strict=True):
            schedule = Schedule.once(START + timedelta(seconds=due))
            at = due - LEAD_SECONDS - self.chance.random()
            self.queues.at(at, partial(self._create_in_time, task_id, schedule))
        return ids

    def _create(self, task_id: str, schedule: Schedule) -> None:
        count = self.deployment.owner_count
        fields: dict[str, Any] = {} if count == 1 else {"owner": f"owner-{self._next_owner % count}"}
        self._next_owner += 1
        self.app.create(id=task_id, title="Task", handler="tick", schedule=schedule, **fields)

    def _create_in_time(self, task_id: str, schedule: Schedule) -> None:
        """Create a task, and try again if that fails, until it is due."""
        try:
            self._create(task_id, schedule)
        except Unavailable:
            self.actions["creation repeated"] += 1
            self.queues.at(self.time.seconds + RETRY_SECONDS, partial(self._create_in_time, task_id, schedule))
        except InvalidInput:
            self.actions["created too late"] += 1

    def enforce_limits(self) -> None:
        """Begin to count, and to enforce what Google's services take of traffic that has reached its rate."""
        rate, fraction = self.deployment.possible_rate, self.deployment.fraction
        limits = self.firestore.limits
        limits.ranges.clear()
        limits.documents.counts.clear()
        operations = OPERATIONS_PER_OCCURRENCE + self.deployment.is_one_time
        level = max(RAMP_BASE, RAMP_GROWTH * operations * rate)
        limits.ramp = Ramp(level, self.time.seconds, fraction)
        limits.is_enforced = self.queues.is_enforced = True
        self.queues.ramp = Ramp(max(QUEUE_RAMP_BASE, RAMP_GROWTH * rate), self.time.seconds, fraction)
        self.firestore.counts.clear()
        self.queues.counts.clear()
        self.queues.busy_seconds = 0.0

    def expire_each_second(self, since: float, until: float) -> None:
        """Have Firestore's TTL delete what has expired, every second."""
        for second in range(math.ceil(since), math.ceil(until)):
            self.queues.at(second, self.firestore.expire)

    def count_ended(self) -> int:
        """Return how many tasks wait for the sweep to remove them."""
        tasks = self.firestore.list_documents("tasks")
        return sum("removeAt" in each.message.fields for each in tasks)

    def sweep_each_minute(self, since: float, until: float) -> None:
        """Sweep at every full minute, as Cloud Scheduler does: not while a sweep is still under way."""
        minute = -(-since // 60) * 60

        def sweep() -> None:
            try:
                self.app.sweep()
            except Unavailable:
                self.actions["failed sweep"] += 1
            following = (self.time.seconds // 60 + 1) * 60
            if following <= until:
                self.queues.at(following, sweep)

        self.queues.at(minute, sweep)

    # ── What the engine calls ────────────────────────────────────────────────────────────────────────────────────

    def create(self, message: QueueMessage) -> None:
        """Create a dispatch; those of sweeps of shards that are not simulated only take their time."""
        part = SweepPart.from_body(message.body) if message.body.startswith(SWEEP_PREFIX) else None
        if part is not None and part.shard not in self.deployment.simulated_shards:
            self.time.pass_latency(CREATE_SECONDS)
            return
        self._dispatcher.create(message)

    def close(self) -> None:
        """Do nothing."""

    def _deliver(self, body: bytes, token: str) -> int:
        if self.is_executor_down:
            return 503
        if body.startswith(SWEEP_PREFIX) and (part := SweepPart.from_body(body)).number == 0:
            self.swept[part.shard] = self.time.seconds
        try:
            action = self.app.deliver(body, token).action
        except Unavailable:
            self.actions["unavailable"] += 1
            return 503
        except (Unauthenticated, InvalidInput):
            self.actions["refused"] += 1
            return 400
        self.actions["ran" if action is DeliveryAction.RAN else str(action)] += 1
        return 204

    def _make_handler(self) -> Callable[..., None]:
        def tick(context: Context) -> None:
            due = to_seconds(context.scheduled_for)
            self.starts.setdefault(context.task.id, []).append((due, self.time.seconds))
            self.time.sleep(HANDLER_SECONDS)

        tick.__annotations__["context"] = Context
        return tick

    def _find_id(self) -> str:
        """Return a task's id that the hash puts into a shard that is simulated."""
        while True:
            self._next_id += 1
            task_id = f"order-{self._next_id}"
            if choose_shard(task_id, self.deployment.shards) in self.deployment.simulated_shards:
                return task_id

    def _make_lanes(self, count: int) -> Callable[..., Iterator[Any]]:
        """Return a `map_in_threads` with so many lanes, which work side by side in virtual time."""
        time = self.time

        def map_in_threads(work: Callable[[Any], Any], items: Sequence[Any], _: int) -> Iterator[Any]:
            lanes, results = [time.seconds] * count, []
            for item in items:
                time.seconds = heapq.heappop(lanes)
                results.append(work(item))
                heapq.heappush(lanes, time.seconds)
            time.seconds = max(lanes)
            return iter(results)

        return map_in_threads
