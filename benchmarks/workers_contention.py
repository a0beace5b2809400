"""Worker processes that compete for the offers of one store; see `benchmarks.workers`."""

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
from cloudsched.adapters.operation_counts import Counts, count_store
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.execution import Lease
from cloudsched.domain.documents.pull import Offer
from cloudsched.engine.ports.store import Commit, VersionedTask
from cloudsched.engine.ports.task_query import TaskQuery
from cloudsched.engine.pull.claim_caller import THIS_PROCESS
from cloudsched.engine.pull.offers import WorkerFilter
from cloudsched.errors import StoreUnavailable, VersionConflict
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

    from cloudsched.engine.ports.queue import QueueMessage
    from cloudsched.engine.ports.store import Store

QUEUE_KEY = "benchmark"
SETTINGS = Settings(secret="benchmarks have no secrets")
TIMEOUT_SECONDS = 300.0
"""How many seconds the processes may take to get ready."""

_spawn = multiprocessing.get_context("spawn")  # as in production: a new interpreter, with connections of its own


@dataclass(frozen=True, slots=True)
class StoreLocation:
    """Which store a process opens: a SQLite file, or a project in the Firestore emulator."""

    path: Path | None = None
    """The file, for SQLite."""
    emulator: str = ""
    project: str = ""

    def open(self) -> Store:
        """Open the store."""
        if self.path is not None:
            return SqliteStore(self.path)
        return FirestoreStore(project=self.project, emulator=self.emulator, deadline=timedelta(minutes=1))


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """The claims of one process, and what they cost."""

    worker: str
    claims: Sequence[tuple[str, str, str]]
    """Task, execution and lease token's hash of each claim."""
    started_at: float
    claimed_at: Sequence[float]
    reads: int
    conflicts: int
    unavailable: int
    """How often the store did not respond in time and the request was repeated."""


@dataclass(frozen=True, slots=True)
class RaceResult:
    """The figures of all processes together."""

    claims: int
    rate: float
    """Claims per second while there was work for all processes."""
    reads: int
    conflicts: int
    unavailable: int
    twice: int


class DiscardingDispatcher:
    """A dispatcher that discards every message."""

    def create(self, message: QueueMessage) -> None:
        """Discard the message."""

    def close(self) -> None:
        """Do nothing: there are no connections to close."""


class ContendedStore:
    """Counts the documents that a store reads, and the commits that fail with a version conflict."""

    def __init__(self, store: Store, counts: Counts) -> None:
        self._store = count_store(store, counts)
        self.conflicts = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the store has it
        """Pass on."""
        return getattr(self._store, name)

    def commit(self, commit: Commit) -> VersionedTask:
        """Commit; count a version conflict."""
        try:
            return self._store.commit(commit)
        except VersionConflict:
            self.conflicts += 1
            raise


def create_template() -> Task:
    """Return a task in the state in which it is offered to workers."""
    app = App()
    app.container.registry.register("work", pull=QUEUE_KEY, expected_duration=timedelta(hours=1))(lambda: None)
    with Simulation(app, datetime.now(UTC)) as sim:
        soon = Schedule.once(sim.now + timedelta(minutes=1))
        task = app.create(owner="ada", title="Work", handler="work", schedule=soon)
        sim.advance(timedelta(minutes=2))
        return app.get(task.id)


def fill_store(location: StoreLocation, size: int, queue_keys: int) -> None:
    """Store `size` offered tasks, divided among that many queue keys; 0: all under the key of the workers."""
    store, task = location.open(), create_template()

    def put(number: int) -> None:
        queue_key = f"{QUEUE_KEY}/{number % queue_keys}" if queue_keys else QUEUE_KEY
        offer = Offer(queue_key=queue_key, order=f"{task.priority.rank} {number:08}")
        store.commit(Commit(task.model_copy(update={"id": f"t{number:08}", "offer": offer})))

    with ThreadPoolExecutor(1 if location.path else 8) as pool:
        list(pool.map(put, range(size)))
    store.close()


class StoreFactory:
    """Makes stores that hold the same offered tasks, a new one for each measurement."""

    def __init__(self, folder: Path, size: int, emulator: str = "") -> None:
        self._folder = folder
        self._emulator = emulator
        self._templates: dict[int, Path] = {}
        self.size = size

    @contextmanager
    def prepare_store(self, queue_keys: int) -> Iterator[StoreLocation]:
        """Make and fill a store, and remove it afterwards if it is a file."""
        if self._emulator:
            location = StoreLocation(emulator=self._emulator, project=f"demo-{uuid.uuid4().hex[:12]}")
            fill_store(location, self.size, queue_keys)
            yield location
            return
        if queue_keys not in self._templates:
            self._templates[queue_keys] = self._folder / f"queue-keys-{queue_keys}"
            self._templates[queue_keys].mkdir()
            fill_store(StoreLocation(self._templates[queue_keys] / "tasks.db"), self.size, queue_keys)
        copy = self._folder / "race"
        shutil.copytree(self._templates[queue_keys], copy)
        yield StoreLocation(copy / "tasks.db")
        shutil.rmtree(copy)


def run_race(stores: StoreFactory, workers: int, limit: int) -> RaceResult:
    """Let workers claim all tasks, up to `limit` at a time; check their reports against the leases in the store."""
    with stores.prepare_store(0) as location:
        reports = _run_processes(location, _claim_all, workers, limit)
        claim_counts = Counter((task, execution) for each in reports for task, execution, _ in each.claims)
        twice = sum(claim_counts.values()) - len(claim_counts)
        uncertain = sum(each.unavailable for each in reports)  # a claim without a response may have taken effect
        assert len(claim_counts) >= stores.size - uncertain, f"{len(claim_counts)} of {stores.size} were claimed"
        leases = _load_leases(location)
        holders = {task: (token, each.worker) for each in reports for task, _, token in each.claims}
        assert twice or all(leases[task] == holder for task, holder in holders.items()), (
            "a report differs from the lease in the store"
        )
    return _summarize(reports, twice)


def measure_floor(stores: StoreFactory, workers: int, limit: int) -> RaceResult:
    """Let processes read and commit the same number of documents, each process those of its own queue key."""
    with stores.prepare_store(workers) as location:
        return _summarize(_run_processes(location, _read_and_commit_all, workers, limit), each_has_own_key=True)


def _summarize(reports: Sequence[ProcessReport], twice: int = 0, *, each_has_own_key: bool = False) -> RaceResult:
    started_at = min(each.started_at for each in reports)
    last_claims = [each.claimed_at[-1] for each in reports if each.claimed_at]
    # With a queue key for each process, the first to claim all of its own ends the time in which all have work.
    finished_at = min(last_claims) if each_has_own_key else max(last_claims)
    claims_in_time = sum(at <= finished_at for each in reports for at in each.claimed_at)
    return RaceResult(
        claims=sum(len(each.claims) for each in reports),
        rate=claims_in_time / (finished_at - started_at),
        reads=sum(each.reads for each in reports),
        conflicts=sum(each.conflicts for each in reports),
        unavailable=sum(each.unavailable for each in reports),
        twice=twice,
    )


def _run_processes(location: StoreLocation, work: Any, workers: int, limit: int) -> list[ProcessReport]:  # noqa: ANN401 - a function of this module
    start, reports_queue = _spawn.Barrier(workers), _spawn.Queue()
    processes = [_spawn.Process(target=work, args=(location, n, limit, start, reports_queue)) for n in range(workers)]
    for each in processes:
        each.start()
    reports: list[ProcessReport] = []
    try:
        while len(reports) < workers:
            with suppress(Empty):
                reports.append(reports_queue.get(timeout=1))
            assert not any(each.exitcode for each in processes), "a worker died"
        return reports
    finally:
        for each in processes:
            each.join(10)
            each.kill()


def _claim_all(
    location: StoreLocation, number: int, limit: int, start: Barrier, reports_queue: Queue[ProcessReport]
) -> None:
    """Claim until no task is offered any more."""
    store = ContendedStore(location.open(), Counts())
    app = App(SETTINGS, store=store, dispatcher=DiscardingDispatcher())
    worker_filter = WorkerFilter(QUEUE_KEY, worker=f"w{number}")
    app.container.work_queue.claim(WorkerFilter("nothing"), THIS_PROCESS)  # connects
    before = store._counts.copy()  # noqa: SLF001 - the figure
    claims, claimed_at = list[tuple[str, str, str]](), list[float]()
    start.wait(TIMEOUT_SECONDS)
    started_at, unavailable = time.monotonic(), 0
    while True:
        try:
            works = app.container.work_queue.claim(worker_filter, THIS_PROCESS, limit)
            if not works and not store.list_offers([QUEUE_KEY], None, limit=1):
                break
        except StoreUnavailable:  # 16 workers may wait too long for SQLite's write lock; a worker tries again
            unavailable += 1
            continue
        claimed_at += [time.monotonic()] * len(works)
        claims += [(each.stored.task.id, each.run.execution_id, _token_hash(each.run)) for each in works]
    reads = store._counts.since(before).reads  # noqa: SLF001 - the same
    reports_queue.put(
        ProcessReport(worker_filter.worker, claims, started_at, claimed_at, reads, store.conflicts, unavailable)
    )
    store.close()


def _read_and_commit_all(
    location: StoreLocation, number: int, limit: int, start: Barrier, reports_queue: Queue[ProcessReport]
) -> None:
    """Read what a claim reads and commit what it commits, without the engine and without competitors."""
    store, queue_key = location.open(), f"{QUEUE_KEY}/{number}"
    claims, claimed_at = list[tuple[str, str, str]](), list[float]()
    store.list_offers(["nothing"], None, limit=1)  # connects
    (first,) = store.load_many([each.task_id for each in store.list_offers([queue_key], None, limit=1)]) or (None,)
    now = datetime.now(UTC)
    lease = Lease(token_hash="0" * 32, started_at=now, until=now + timedelta(hours=6), worker=f"w{number}")
    runs = [each.model_copy(update={"lease": lease, "waiting_for": None}) for each in first.task.runs] if first else []
    start.wait(TIMEOUT_SECONDS)
    started_at, unavailable = time.monotonic(), 0
    while offers := store.list_offers([queue_key], None, limit=limit):
        for each in store.load_many([offer.task_id for offer in offers]):
            try:
                store.commit(Commit(each.task.model_copy(update={"offer": None, "runs": tuple(runs)}), each))
            except StoreUnavailable:
                unavailable += 1
                break
            claims.append((each.task.id, "", ""))
            claimed_at.append(time.monotonic())
    reports_queue.put(ProcessReport(f"w{number}", claims, started_at, claimed_at, len(claims), 0, unavailable))
    store.close()


def _token_hash(run: Any) -> str:  # noqa: ANN401 - a Run
    assert run.lease
    token: str = run.lease.token_hash
    return token


def _load_leases(location: StoreLocation) -> dict[str, tuple[str, str | None]]:
    """Return each task's lease token hash and worker from the store."""
    store, token = location.open(), None
    leases: dict[str, tuple[str, str | None]] = {}
    while True:
        page = store.list_tasks(TaskQuery(), limit=500, page_token=token)
        for task in page.items:
            (run,) = task.runs
            assert run.lease, f"no worker has claimed {task.id}"
            assert task.offer is None
            leases[task.id] = run.lease.token_hash, run.lease.worker
        token = page.next_page_token
        if token is None:
            store.close()
            return leases
