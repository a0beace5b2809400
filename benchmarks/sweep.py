"""What a sweep costs as tasks grow: 100 overdue ones among 1,000, 100,000 and 1,000,000.

    python benchmarks/sweep.py [--sizes 1000 100000 1000000]

Counted: the documents that the sweep reads. Timed: one sweep, median of several, in the embedded store (in memory).
Both are to stay flat, since the sweep walks an index of what is overdue. With ``--store firestore`` the same runs
against Google's emulator (give it smaller sizes), and the query is printed: one range over the single-field index of
``wakeAt``; the documents counted are those that came over the wire.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from cloudsched import App, Schedule, Settings, Task
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.operation_counts import CountingDispatcher, CountingStore, Counts
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.testing import START

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.engine.ports.queue import QueueMessage
    from cloudsched.engine.ports.store import Store

OVERDUE = 100
ROUNDS = 5


class DiscardingDispatcher:
    """A dispatcher that takes everything, so that only the sweep itself is timed."""

    def create(self, message: QueueMessage) -> None:
        """Forget it."""

    def close(self) -> None:
        """Nothing to let go of."""


def template(app: App) -> Task:
    """Return a task to make many of."""
    return app.create(owner="ada", title="Task", handler="tick", schedule=Schedule.once(START + timedelta(days=20)))


def fill(store: Store, task: Task, size: int) -> None:
    """Put so many tasks into the store, the overdue ones spread among them."""
    every = size // OVERDUE
    for number in range(size):
        at: datetime = START + timedelta(hours=1 if number % every == 0 else 20 * 24, microseconds=number)
        store.commit(task.model_copy(update={"id": f"t{number}", "next_execution_time": at, "wake_at": at}), None)


def on_the_wire(store: FirestoreStore, counts: Counts) -> FirestoreStore:
    """Count each document that a query of the store brings, and print the first query."""
    query, shown = store._rpc.query, False  # noqa: SLF001 - what goes over the wire is the figure

    def counted(parent: str, wanted: Any) -> list[Any]:  # noqa: ANN401 - protobuf has no static types
        nonlocal shown
        if not shown:
            print(f"{wanted.where}{''.join(f'order by {each.field.field_path} ' for each in wanted.order_by)}")
            shown = True
        found = query(parent, wanted)
        counts.add(reads=len(found))
        return found

    store._rpc.query = counted  # type: ignore[assignment, method-assign]  # noqa: SLF001 - the same
    return store


@contextmanager
def opened(kind: str, counts: Counts) -> Iterator[tuple[Store, Store]]:
    """Open a store: as it is filled, and as its reads are counted."""
    if kind == "sqlite":
        embedded = SqliteStore()
        yield embedded, CountingStore(embedded, counts)
        embedded.close()
        return
    google = find_emulator()
    if isinstance(google, EmulatorNotFound):
        raise SystemExit(f"No Firestore emulator: {google.reason} {google.hint}")
    with google:
        store = FirestoreStore(project="demo-sweep", emulator=google.address)
        yield store, on_the_wire(store, counts)
        store.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--store", choices=("sqlite", "firestore"), default="sqlite")
    options = parser.parse_args()
    table = Table(title=f"One sweep, {OVERDUE} tasks overdue, {options.store}")
    for heading in ("tasks", "documents read", "dispatches", "milliseconds", "ratio"):
        table.add_column(heading, justify="right")
    first: float | None = None
    for size in options.sizes:
        counts, clock = Counts(), ManualClock(START)
        parts = ExitStack()
        store, counted = parts.enter_context(opened(options.store, counts))
        app = App(
            Settings(secret="benchmarks have no secrets"),
            store=counted,
            dispatcher=CountingDispatcher(DiscardingDispatcher(), counts),
            clock=clock,
        )
        app.registry.register("tick")(lambda: None)
        fill(store, template(app), size)
        clock.advance(timedelta(hours=2))
        seconds = []
        for _ in range(ROUNDS):
            before = counts.copy()
            began = time.perf_counter()
            done = app.sweep()
            seconds.append(time.perf_counter() - began)
            assert done.examined == OVERDUE
        spent = counts.since(before)
        median = statistics.median(seconds)
        first = first or median
        table.add_row(
            f"{size:,}", str(spent.reads), str(spent.dispatches), f"{median * 1e3:.1f}", f"{median / first:.2f}"
        )
        parts.close()
    Console().print(table)


if __name__ == "__main__":
    main()
