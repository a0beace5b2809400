"""How soon a worker has what is offered, where it listens and where it looks now and then; see `benchmarks.workers`."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
import uuid
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.workers_contention import QUEUE_KEY, DiscardingDispatcher, StoreLocation, template

from cloudsched import App, Settings
from cloudsched.domain.documents.pull import Offer
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
"""How many offers are not counted."""
PATIENCE = 120.0

_spawned = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Heard:
    """What a worker did."""

    claimed_at: dict[str, float]
    looks: int


@dataclass(frozen=True, slots=True)
class Delays:
    """What came of it."""

    seconds: Sequence[float]
    looks: int
    """How often the worker asked the store for work."""


class TimedSource(StoreSource):
    """Notes when each claim was there, and how often it was looked for."""

    def __init__(self, app: App, worker_filter: WorkerFilter, *, listens: bool) -> None:
        super().__init__(app, worker_filter, "benchmark")
        self._hears = listens
        self.claimed_at: dict[str, float] = {}
        self.looks = 0

    def claim(self, limit: int) -> Sequence[StoreWork]:
        """Claim as ever."""
        found = super().claim(limit)
        self.looks += 1
        self.claimed_at.update({each.task.id: time.monotonic() for each in found})
        return found

    @property
    def can_listen(self) -> bool:
        """Whether it is to."""
        return self._hears

    def listen(self, notify: Callable[[], None]) -> AbstractContextManager[None]:
        """Listen, or not."""
        return super().listen(notify) if self._hears else nullcontext()


def heard(emulator: str, offers: int, *, listens: bool) -> Delays:
    """Offer one task after the other at any moment, and return how long each took until a worker had claimed it."""
    place, task = StoreLocation(emulator=emulator, project=f"demo-{uuid.uuid4().hex[:12]}"), template()
    is_up, is_over, answers = _spawned.Event(), _spawned.Event(), _spawned.Queue()
    worker = _spawned.Process(target=_work, args=(place, listens, WARM_UP + offers, is_up, is_over, answers))
    worker.start()
    chance, store, offered_at = random.Random(0), place.open(), dict[str, float]()  # noqa: S311 - repeatable
    try:
        assert is_up.wait(PATIENCE), "the worker did not begin"
        for number in range(WARM_UP + offers):
            time.sleep(chance.uniform(0.1, 0.7))
            offer = Offer(queue_key=QUEUE_KEY, order=f"{task.priority.rank} {number:08}")
            one = task.model_copy(update={"id": f"t{number:08}", "offer": offer})
            store.commit(one, None)
            offered_at[one.id] = time.monotonic()
        assert is_over.wait(PATIENCE), "not everything was claimed"
        found: Heard = answers.get(timeout=PATIENCE)
    finally:
        store.close()
        worker.join(10)
        worker.kill()
    counted = sorted(offered_at)[WARM_UP:]
    return Delays([max(0.0, found.claimed_at[each] - offered_at[each]) for each in counted], found.looks)


def _work(
    place: StoreLocation,
    listens: bool,  # noqa: FBT001 - what a process is given
    offers: int,
    is_up: Event,
    is_over: Event,
    answers: Queue[Heard],
) -> None:
    """Be a worker until so many were claimed."""
    settings = Settings(project=place.project, firestore_emulator=place.emulator, secret="benchmarks have no secrets")
    app = App(settings, dispatcher=DiscardingDispatcher())
    app.registry.register("work", pull=QUEUE_KEY)(lambda: None)
    desk = TimedSource(app, WorkerFilter(QUEUE_KEY), listens=listens)
    desk.claim(1)  # connects
    desk.looks = 0
    worker = Worker(desk)
    thread = threading.Thread(target=worker.run)
    thread.start()
    is_up.set()
    while len(desk.claimed_at) < offers and thread.is_alive():
        time.sleep(0.05)
    worker.stop()
    thread.join()
    answers.put(Heard(desk.claimed_at, desk.looks))
    is_over.set()
    app.close()
