"""Measures how soon a worker claims a task after it is offered, listening or polling; see `benchmarks.workers`."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
import uuid
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.workers_contention import QUEUE_KEY, DiscardingDispatcher, StoreLocation, create_template

from cloudsched import App, Settings
from cloudsched.domain.documents.pull import Offer
from cloudsched.engine.ports.store import Commit
from cloudsched.engine.pull.offers import WorkerFilter
from cloudsched.worker.store_source import StoreSource
from cloudsched.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Event

    from cloudsched.worker.store_source import StoreWork

WARM_UP = 5
"""How many offers come first and are not counted."""
TIMEOUT_SECONDS = 120.0

_spawn = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """When a worker claimed each task, by id, and how often it polled."""

    claimed_at: dict[str, float]
    polls: int


@dataclass(frozen=True, slots=True)
class Delays:
    """The time from the commit of each offer to its claim."""

    seconds: Sequence[float]
    polls: int
    """How often the worker queried the store for work."""


class TimedSource(StoreSource):
    """A source that records when each task was claimed, and how often the worker polled."""

    def __init__(self, app: App, worker_filter: WorkerFilter, *, listens: bool) -> None:
        super().__init__(app, worker_filter, "benchmark")
        self._listens = listens
        self.claimed_at: dict[str, float] = {}
        self.polls = 0

    def claim(self, limit: int) -> Sequence[StoreWork]:
        """Claim, and record the time."""
        works = super().claim(limit)
        self.polls += 1
        self.claimed_at.update({each.task.id: time.monotonic() for each in works})
        return works

    @property
    def can_listen(self) -> bool:
        """Whether this source is to listen."""
        return self._listens

    def listen(self, notify: Callable[[], None]) -> AbstractContextManager[None]:
        """Listen if this source is to; otherwise never notify."""
        return super().listen(notify) if self._listens else nullcontext()


def measure_delays(emulator: str, offers: int, *, listens: bool) -> Delays:
    """Offer tasks one by one at random intervals; return how long each took until a worker had claimed it."""
    location, task = StoreLocation(emulator=emulator, project=f"demo-{uuid.uuid4().hex[:12]}"), create_template()
    is_ready, is_finished, reports = _spawn.Event(), _spawn.Event(), _spawn.Queue()
    worker = _spawn.Process(
        target=_run_worker, args=(location, listens, WARM_UP + offers, is_ready, is_finished, reports)
    )
    worker.start()
    rng, store, offered_at = random.Random(0), location.open(), dict[str, float]()  # noqa: S311 - repeatable
    try:
        assert is_ready.wait(TIMEOUT_SECONDS), "the worker did not start"
        for number in range(WARM_UP + offers):
            time.sleep(rng.uniform(0.1, 0.7))
            offer = Offer(queue_key=QUEUE_KEY, order=f"{task.priority.rank} {number:08}")
            offered = task.model_copy(update={"id": f"t{number:08}", "offer": offer})
            store.commit(Commit(offered))
            offered_at[offered.id] = time.monotonic()
        assert is_finished.wait(TIMEOUT_SECONDS), "not every task was claimed"
        report: WorkerReport = reports.get(timeout=TIMEOUT_SECONDS)
    finally:
        store.close()
        worker.join(10)
        worker.kill()
    counted = sorted(offered_at)[WARM_UP:]
    return Delays([max(0.0, report.claimed_at[each] - offered_at[each]) for each in counted], report.polls)


def _run_worker(
    location: StoreLocation,
    listens: bool,  # noqa: FBT001 - a process gets positional arguments
    offers: int,
    is_ready: Event,
    is_finished: Event,
    reports: Queue[WorkerReport],
) -> None:
    """Run a worker in this process until it has claimed that many tasks."""
    settings = Settings(
        project=location.project, firestore_emulator=location.emulator, secret="benchmarks have no secrets"
    )
    app = App(settings, dispatcher=DiscardingDispatcher())
    app.container.registry.register("work", pull=QUEUE_KEY)(lambda: None)
    source = TimedSource(app, WorkerFilter(QUEUE_KEY), listens=listens)
    source.claim(1)  # connects
    source.polls = 0
    worker = Worker(source)
    thread = threading.Thread(target=worker.run)
    thread.start()
    is_ready.set()
    while len(source.claimed_at) < offers and thread.is_alive():
        time.sleep(0.05)
    worker.stop()
    thread.join()
    reports.put(WorkerReport(source.claimed_at, source.polls))
    is_finished.set()
    app.close()
