"""Workers in processes of their own that race for what one store offers; see `benchmarks.workers`."""

from __future__ import annotations

import multiprocessing
import shutil
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from queue import Empty
from typing import TYPE_CHECKING, Any

from cloudsched import App, Schedule, Settings, Task
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.operation_counts import CountingStore, Counts
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.execution import Lease
from cloudsched.domain.documents.pull import Offer
from cloudsched.engine.ports.store import TaskQuery
from cloudsched.engine.pull.offers import WorkerFilter
from cloudsched.errors import StoreUnavailable, VersionConflict
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

    from cloudsched.engine.ports.queue import QueueMessage
    from cloudsched.engine.ports.store import Store, Version

QUEUE_KEY = "bench"
SETTINGS = Settings(secret="benchmarks have no secrets")
PATIENCE = 300.0
"""How many seconds the processes may take to be ready."""

_spawned = multiprocessing.get_context("spawn")  # what a worker is: a new interpreter, with connections of its own


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """Where a store is, for a process that opens it."""

    path: Path | None = None
    """The file, for SQLite."""
    emulator: str = ""
    project: str = ""

    def open(self) -> Store:
        """Open it."""
        if self.path is not None:
            return SqliteStore(self.path)
        return FirestoreStore(project=self.project, emulator=self.emulator, deadline=timedelta(minutes=1))


@dataclass(frozen=True, slots=True)
class Told:
    """What one process was told, and what that took."""

    worker: str
    claims: Sequence[tuple[str, str, str]]
    """Task, execution and lease token's hash of each claim."""
    began_at: float
    claimed_at: Sequence[float]
    reads: int
    conflicts: int
    unanswered: int
    """How often the store did not answer in its time, and was asked again."""


@dataclass(frozen=True, slots=True)
class Race:
    """What came of a race."""

    claims: int
    rate: float
    """Claims a second, while there was work for all."""
    reads: int
    conflicts: int
    unanswered: int
    twice: int


class DiscardingDispatcher:
    """A dispatcher that takes everything and does nothing with it."""

    def create(self, message: QueueMessage) -> None:
        """Forget it."""

    def close(self) -> None:
        """Nothing to let go of."""


class ContendedStore(CountingStore):
    """Counts what another store reads, and the commits that lost a race."""

    conflicts = 0

    def commit(self, *arguments: Any, **named: Any) -> Version:
        """Pass on; a conflict is counted."""
        try:
            return super().commit(*arguments, **named)
        except VersionConflict:
            self.conflicts += 1
            raise


def template() -> Task:
    """Return a task as it is stored while it is offered to workers."""
    app = App()
    app.registry.register("work", pull=QUEUE_KEY, expected_duration=timedelta(hours=1))(lambda: None)
    with Simulation(app, datetime.now(UTC)) as sim:
        soon = Schedule.once(sim.now + timedelta(minutes=1))
        task = app.create(owner="ada", title="Work", handler="work", schedule=soon)
        sim.advance(timedelta(minutes=2))
        return app.get(task.id)


def fill_store(place: StoreLocation, size: int, lanes: int) -> None:
    """Put so many offered tasks into the store, over so many lanes; all into the workers' one if that is 0."""
    store, task = place.open(), template()

    def put(number: int) -> None:
        lane = f"{QUEUE_KEY}/{number % lanes}" if lanes else QUEUE_KEY
        offer = Offer(queue_key=lane, order=f"{task.priority.rank} {number:08}")
        store.commit(task.model_copy(update={"id": f"t{number:08}", "offer": offer}), None)

    with ThreadPoolExecutor(1 if place.path else 8) as pool:
        list(pool.map(put, range(size)))
    store.close()


class Grounds:
    """Where races are held: each in a store of its own that holds the same tasks."""

    def __init__(self, folder: Path, size: int, emulator: str = "") -> None:
        self._folder = folder
        self._emulator = emulator
        self._made: dict[int, Path] = {}
        self.size = size

    @contextmanager
    def prepared(self, lanes: int) -> Iterator[StoreLocation]:
        """Make a store, filled, and remove it afterwards."""
        if self._emulator:
            place = StoreLocation(emulator=self._emulator, project=f"demo-{uuid.uuid4().hex[:12]}")
            fill_store(place, self.size, lanes)
            yield place
            return
        if lanes not in self._made:
            self._made[lanes] = self._folder / f"lanes-{lanes}"
            self._made[lanes].mkdir()
            fill_store(StoreLocation(self._made[lanes] / "tasks.db"), self.size, lanes)
        copy = self._folder / "race"
        shutil.copytree(self._made[lanes], copy)
        yield StoreLocation(copy / "tasks.db")
        shutil.rmtree(copy)


def race(grounds: Grounds, workers: int, limit: int) -> Race:
    """Let so many workers claim everything, so many at a time, and check from both sides who has what."""
    with grounds.prepared(0) as place:
        told = _raced(place, _claims, workers, limit)
        reports = Counter((task, execution) for each in told for task, execution, _ in each.claims)
        twice = sum(reports.values()) - len(reports)
        unknown = sum(each.unanswered for each in told)  # a claim without an answer may have taken effect
        assert len(reports) >= grounds.size - unknown, f"{len(reports)} of {grounds.size} were claimed"
        leases = _leases(place)
        holders = {task: (token, each.worker) for each in told for task, _, token in each.claims}
        assert twice or all(leases[task] == holder for task, holder in holders.items()), "told what is not so"
    return _summed(told, twice)


def floor(grounds: Grounds, workers: int, limit: int) -> Race:
    """Let as many processes read and write as many documents in the same store, each those of a lane of its own."""
    with grounds.prepared(workers) as place:
        return _summed(_raced(place, _reads_and_commits, workers, limit), each_alone=True)


def _summed(told: Sequence[Told], twice: int = 0, *, each_alone: bool = False) -> Race:
    began_at, last = min(each.began_at for each in told), [each.claimed_at[-1] for each in told if each.claimed_at]
    ended_at = min(last) if each_alone else max(last)  # who has all of its own lane waits for nobody
    meanwhile = sum(at <= ended_at for each in told for at in each.claimed_at)
    return Race(
        claims=sum(len(each.claims) for each in told),
        rate=meanwhile / (ended_at - began_at),
        reads=sum(each.reads for each in told),
        conflicts=sum(each.conflicts for each in told),
        unanswered=sum(each.unanswered for each in told),
        twice=twice,
    )


def _raced(place: StoreLocation, work: Any, workers: int, limit: int) -> list[Told]:  # noqa: ANN401 - a function of this module
    start, answers = _spawned.Barrier(workers), _spawned.Queue()
    processes = [_spawned.Process(target=work, args=(place, n, limit, start, answers)) for n in range(workers)]
    for each in processes:
        each.start()
    told: list[Told] = []
    try:
        while len(told) < workers:
            with suppress(Empty):
                told.append(answers.get(timeout=1))
            assert not any(each.exitcode for each in processes), "a worker died"
        return told
    finally:
        for each in processes:
            each.join(10)
            each.kill()


def _claims(place: StoreLocation, number: int, limit: int, start: Barrier, answers: Queue[Told]) -> None:
    """Claim until nothing is left."""
    store = ContendedStore(place.open(), Counts())
    app, wanted = (
        App(SETTINGS, store=store, dispatcher=DiscardingDispatcher()),
        WorkerFilter(QUEUE_KEY, worker=f"w{number}"),
    )
    app.worker_claims.claim(WorkerFilter("nothing"))  # connects
    before = store._counts.copy()  # noqa: SLF001 - the figure
    claims, claimed_at = list[tuple[str, str, str]](), list[float]()
    start.wait(PATIENCE)
    began_at, unanswered = time.monotonic(), 0
    while True:
        try:
            found = app.worker_claims.claim(wanted, limit)
            if not found and not store.list_claimable([QUEUE_KEY], limit=1):
                break
        except StoreUnavailable:  # sixteen who want SQLite's write lock may wait for too long; a worker asks again
            unanswered += 1
            continue
        claimed_at += [time.monotonic()] * len(found)
        claims += [(each.stored.task.id, each.run.execution_id, _token(each.run)) for each in found]
    reads = store._counts.since(before).reads  # noqa: SLF001 - the same
    answers.put(Told(wanted.worker, claims, began_at, claimed_at, reads, store.conflicts, unanswered))
    store.close()


def _reads_and_commits(place: StoreLocation, number: int, limit: int, start: Barrier, answers: Queue[Told]) -> None:
    """Read what a claim reads and commit what it commits, with nothing decided, where nobody else does."""
    store, lane = place.open(), f"{QUEUE_KEY}/{number}"
    claims, claimed_at = list[tuple[str, str, str]](), list[float]()
    store.list_claimable(["nothing"], limit=1)  # connects
    (first,) = store.list_claimable([lane], limit=1) or (None,)
    now = datetime.now(UTC)
    lease = Lease(token_hash="0" * 32, started_at=now, until=now + timedelta(hours=6), worker=f"w{number}")
    runs = [each.model_copy(update={"lease": lease, "waiting_for": None}) for each in first.task.runs] if first else []
    start.wait(PATIENCE)
    began_at, unanswered = time.monotonic(), 0
    while found := store.list_claimable([lane], limit=limit):
        for each in found:
            try:
                store.commit(each.task.model_copy(update={"offer": None, "runs": tuple(runs)}), each.version)
            except StoreUnavailable:
                unanswered += 1
                break
            claims.append((each.task.id, "", ""))
            claimed_at.append(time.monotonic())
    answers.put(Told(f"w{number}", claims, began_at, claimed_at, len(claims), 0, unanswered))
    store.close()


def _token(run: Any) -> str:  # noqa: ANN401 - a Run
    assert run.lease
    token: str = run.lease.token_hash
    return token


def _leases(place: StoreLocation) -> dict[str, tuple[str, str | None]]:
    """Return each task's lease token hash and worker, as the store has them."""
    store, token = place.open(), None
    leases: dict[str, tuple[str, str | None]] = {}
    while True:
        page = store.list_tasks(TaskQuery(), limit=500, page_token=token)
        for task in page.items:
            (run,) = task.runs
            assert run.lease, f"{task.id} is nobody's"
            assert task.offer is None
            leases[task.id] = run.lease.token_hash, run.lease.worker
        token = page.next_page_token
        if token is None:
            store.close()
            return leases
