"""Measure a sweep as the number of tasks grows: 100 overdue ones among 1,000, 100,000 and 1,000,000.

    python benchmarks/sweep.py [--sizes 1000 100000 1000000]

The figures are the documents that the sweep reads, and the median time of several sweeps, in the embedded store (in
memory). Both should stay constant, because the sweep reads an index of the overdue tasks. With ``--store firestore``
the same sweeps use Google's emulator (choose smaller sizes). The query is then printed: one range over the
single-field index of ``wakeAt``; the documents counted are those that were received from the emulator.
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
from cloudsched.adapters.operation_counts import Counts, count_dispatcher, count_store
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.engine.ports.store import Commit
from cloudsched.testing import START

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.engine.ports.queue import QueueMessage
    from cloudsched.engine.ports.store import Store

OVERDUE = 100
ROUNDS = 5


class DiscardingDispatcher:
    """A dispatcher that discards every message, so that only the sweep itself is timed."""

    def create(self, message: QueueMessage) -> None:
        """Discard the message."""

    def close(self) -> None:
        """Do nothing: there are no connections to close."""


def create_template(app: App) -> Task:
    """Create the task that `fill_store` copies."""
    return app.create(owner="ada", title="Task", handler="tick", schedule=Schedule.once(START + timedelta(days=20)))


def fill_store(store: Store, task: Task, size: int) -> None:
    """Store `size` copies of a task; the overdue ones are spread evenly among them."""
    stride = size // OVERDUE
    for number in range(size):
        at: datetime = START + timedelta(hours=1 if number % stride == 0 else 20 * 24, microseconds=number)
        store.commit(Commit(task.model_copy(update={"id": f"t{number}", "next_execution_time": at, "wake_at": at})))


def count_wire_reads(store: FirestoreStore, counts: Counts) -> FirestoreStore:
    """Count each document that the store's queries return, and print the first query."""
    query, is_query_printed = store._rpc.query, False  # noqa: SLF001 - the figure is the documents received

    def query_and_count(parent: str, structured_query: Any) -> list[Any]:  # noqa: ANN401 - protobuf has no static types
        nonlocal is_query_printed
        if not is_query_printed:
            ordering = "".join(f"order by {order.field.field_path} " for order in structured_query.order_by)
            print(f"{structured_query.where}{ordering}")
            is_query_printed = True
        documents = query(parent, structured_query)
        counts.add(reads=len(documents))
        return documents

    store._rpc.query = query_and_count  # type: ignore[assignment, method-assign]  # noqa: SLF001 - the same
    return store


@contextmanager
def open_store(kind: str, counts: Counts) -> Iterator[tuple[Store, Store]]:
    """Open a store; yield it as it is to be filled, and as it counts its reads."""
    if kind == "sqlite":
        embedded = SqliteStore()
        yield embedded, count_store(embedded, counts)
        embedded.close()
        return
    google = find_emulator()
    if isinstance(google, EmulatorNotFound):
        raise SystemExit(f"No Firestore emulator: {google.reason} {google.hint}")
    with google:
        store = FirestoreStore(project="demo-sweep", emulator=google.address)
        yield store, count_wire_reads(store, counts)
        store.close()


def main() -> None:
    """Measure the sweep at each size and print the table."""
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
        stack = ExitStack()
        store, counting_store = stack.enter_context(open_store(options.store, counts))
        app = App(
            Settings(secret="benchmarks have no secrets"),
            store=counting_store,
            dispatcher=count_dispatcher(DiscardingDispatcher(), counts),
            clock=clock,
        )
        app.container.registry.register("tick")(lambda: None)
        fill_store(store, create_template(app), size)
        clock.advance(timedelta(hours=2))
        seconds = []
        for _ in range(ROUNDS):
            before = counts.copy()
            start = time.perf_counter()
            result = app.sweep()
            seconds.append(time.perf_counter() - start)
            assert result.examined == OVERDUE
        used = counts.since(before)
        median = statistics.median(seconds)
        first = first or median
        table.add_row(
            f"{size:,}", str(used.reads), str(used.dispatches), f"{median * 1e3:.1f}", f"{median / first:.2f}"
        )
        stack.close()
    Console().print(table)


if __name__ == "__main__":
    main()
