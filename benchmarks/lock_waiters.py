"""Measure a lock for which 1,000 runs wait: what it takes to wait, and to hand the lock over until nobody waits.

    python -m benchmarks.lock_waiters [--waiters 1000] [--passes 3]

The same runs ask for the same lock in two ways, in turns. *Entries* is cloudsched's: each waiter is a document of its
own, and the lock's document has only those that were notified. *One document* is what it was before: the whole wait
list is in the lock's document, which is read and written at each step. Both use the same decisions
(`cloudsched.domain.transitions.locks`) and the embedded store's file, where every commit waits for the disk.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.table import Table

from cloudsched import App, Schedule
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.execution import Lease, Run
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.locks import Lock, Waiter, acquire, release
from cloudsched.engine.state.locks import Locks
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from cloudsched import Task
    from cloudsched.domain.transitions.planning import Dispatch

KEY = "account/42"
NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


class WayToLock(Protocol):
    """Asks for the lock and releases it, each with one commit."""

    def ask(self, number: int) -> bool:
        """Acquire the lock for a run or enqueue the run; return whether it has the lock."""
        ...

    def release(self, number: int) -> None:
        """Release the lock of a run, and notify the next one."""
        ...

    def measure_document(self) -> int:
        """Return the size of the lock's document in bytes."""
        ...


class Entries:
    """The engine's own way."""

    def __init__(self, store: SqliteStore, template: Task) -> None:
        self._store = store
        self._template = template
        self._locks = Locks(store, NoSender())  # type: ignore[arg-type]  # sends nothing

    def ask(self, number: int) -> bool:
        """Acquire the lock for a run or enqueue the run; return whether it has the lock."""
        task, run = self._make_run(number)
        result = self._locks.acquire_for_worker(task, run, NOW)
        if result.lock is not None:
            self._store.commit_lock(result.lock)
        return result.is_acquired

    def release(self, number: int) -> None:
        """Release the lock of a run, and notify the next one."""
        task, run = self._make_run(number)
        lock, _ = self._locks.release(task.id, run, NOW)
        assert lock is not None
        self._store.commit_lock(lock)

    def measure_document(self) -> int:
        """Return the size of the lock's document in bytes."""
        return len(self._store.load_lock(KEY).lock.to_stored_json())

    def _make_run(self, number: int) -> tuple[Task, Run]:
        due_at = NOW + timedelta(milliseconds=number)
        lease = Lease(token_hash="0" * 32, started_at=NOW, until=NOW + HOUR)
        run = Run(execution_id="e", scheduled_for=due_at, due_at=due_at, lease=lease, lock_key=KEY)
        return self._template.model_copy(update={"id": f"t{number:06}", "lock_key": KEY}), run


class OneDocument:
    """The whole wait list in the lock's document."""

    def __init__(self, store: SqliteStore) -> None:
        self._database = store.database
        self._database.write(lambda connection: connection.execute("CREATE TABLE whole (version INTEGER, body TEXT)"))
        self._database.write(lambda connection: connection.execute("INSERT INTO whole VALUES (0, NULL)"))

    def ask(self, number: int) -> bool:
        """Acquire the lock for a run or enqueue the run; return whether it has the lock."""
        due_at = NOW + timedelta(milliseconds=number)
        waiter = Waiter(
            task_id=f"t{number:06}",
            execution_id="e",
            revision=1,
            scheduled_for=due_at,
            attempt=1,
            due_at=due_at,
            limit=1,
            priority=Priority.NORMAL,
        )
        version, lock = self._load()
        changed, is_acquired, _ = acquire(lock, waiter, NOW + HOUR, NOW)
        self._commit(version, changed)
        return is_acquired

    def release(self, number: int) -> None:
        """Release the lock of a run, and notify the next one."""
        version, lock = self._load()
        changed, _ = release(lock, f"t{number:06}", "e", NOW)
        self._commit(version, changed)

    def measure_document(self) -> int:
        """Return the size of the lock's document in bytes."""
        return len(self._load()[1].to_stored_json())

    def _load(self) -> tuple[int, Lock]:
        ((version, body),) = self._database.read("SELECT version, body FROM whole")
        return version, Lock(key=KEY) if body is None else Lock.model_validate_json(body)

    def _commit(self, version: int, lock: Lock) -> None:
        body = lock.to_stored_json()

        def work(connection: sqlite3.Connection) -> None:
            values = (body, version)
            done = connection.execute("UPDATE whole SET body = ?, version = version + 1 WHERE version = ?", values)
            assert done.rowcount == 1

        self._database.write(work)


class NoSender:
    """Sends nothing: the benchmark asks for each run itself."""

    def send_dispatch(self, dispatch: Dispatch, priority: Priority) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one way took, in seconds."""

    uncontended: float
    """To acquire and release, while nobody waits."""
    wait: float
    """For a run to be enqueued, on average."""
    last_wait: float
    """The same, for the last tenth."""
    hand_over: float
    """To release the lock and acquire it for the next run, on average."""
    document: int
    """The size of the lock's document in bytes, with all of them waiting."""


def measure(way: WayToLock, waiters: int) -> Measurement:
    """Let runs ask for a lock that is held, then hand it over from one to the next."""
    rounds = 50
    start = time.perf_counter()
    for number in range(rounds):
        assert way.ask(number)
        way.release(number)
    uncontended = (time.perf_counter() - start) / rounds
    assert way.ask(0)
    times = [time.perf_counter()]
    for number in range(1, waiters + 1):
        assert not way.ask(number)
        times.append(time.perf_counter())
    document, tenth = way.measure_document(), max(1, waiters // 10)
    start = time.perf_counter()
    for number in range(waiters):
        way.release(number)
        assert way.ask(number + 1), "the order is that of the due times"
    hand_over = (time.perf_counter() - start) / waiters
    way.release(waiters)
    wait, last_wait = (times[-1] - times[0]) / waiters, (times[-1] - times[-1 - tenth]) / tenth
    return Measurement(uncontended, wait, last_wait, hand_over, document)


def create_template() -> Task:
    """Return any task."""
    app = App()
    app.handler("work")(lambda: None)
    with Simulation(app, NOW):
        return app.create(owner="ada", title="Work", handler="work", schedule=Schedule.once(NOW + HOUR))


def main() -> None:
    """Measure both ways in turns, and print their medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--waiters", type=int, default=1000, help="how many runs wait")
    parser.add_argument("--passes", type=int, default=3, help="how often each way is measured")
    options = parser.parse_args()
    template = create_template()
    ways: dict[str, Callable[[SqliteStore], WayToLock]] = {
        "one document": OneDocument,
        "entries": lambda store: Entries(store, template),
    }
    results: dict[str, list[Measurement]] = {name: [] for name in ways}
    for _ in range(options.passes):
        for name, make in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                store = SqliteStore(Path(folder) / "tasks.db")
                results[name].append(measure(make(store), options.waiters))
                store.close()
    table = Table(title=f"{options.waiters:,} runs wait for one lock; medians of {options.passes} passes")
    for heading in ("", *ways, "ratio"):
        table.add_column(heading, justify="left" if not heading else "right")
    rows = {
        "acquire and release, nobody waits": ("uncontended", 1e3, "ms"),
        "to wait": ("wait", 1e3, "ms"),
        "to wait, the last tenth": ("last_wait", 1e3, "ms"),
        "to hand over": ("hand_over", 1e3, "ms"),
        "the lock's document": ("document", 1e-3, "kB"),
    }
    for title, (name, factor, unit) in rows.items():
        old, new = (statistics.median(getattr(each, name) for each in results[way]) for way in ways)
        table.add_row(title, f"{old * factor:.2f} {unit}", f"{new * factor:.2f} {unit}", f"{old / new:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
