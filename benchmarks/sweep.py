"""What a sweep costs as tasks grow: 100 overdue ones among 1,000, 100,000 and 1,000,000.

    python benchmarks/sweep.py [--sizes 1000 100000 1000000]

Counted: the documents that the sweep reads. Timed: one sweep, median of several, in the embedded store (in memory).
Both are to stay flat, since the sweep walks an index of what is overdue. In Firestore the same query is one range over
the single-field index of ``wakeAt``; its reads are counted against the emulator by ``tests/contract``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from cloudsched import App, Schedule, Settings, Task
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.counting import CountingDispatcher, CountingStore, Counts
from cloudsched.adapters.sqlite import SqliteStore
from cloudsched.testing import START

if TYPE_CHECKING:
    from cloudsched.engine.ports import Envelope

OVERDUE = 100
ROUNDS = 5


class Nowhere:
    """A dispatcher that takes everything, so that only the sweep itself is timed."""

    def create(self, envelope: Envelope) -> None:
        """Forget it."""

    def close(self) -> None:
        """Nothing to let go of."""


def template(app: App) -> Task:
    """Return a task to make many of."""
    return app.create(owner="ada", title="Task", handler="tick", schedule=Schedule.once(START + timedelta(days=20)))


def fill(store: SqliteStore, task: Task, size: int) -> None:
    """Put so many tasks into the store, the overdue ones spread among them."""
    every = size // OVERDUE
    for number in range(size):
        at: datetime = START + timedelta(hours=1 if number % every == 0 else 20 * 24, microseconds=number)
        store.commit(task.model_copy(update={"id": f"t{number}", "next_execution_time": at, "wake_at": at}), None)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    table = Table(title=f"One sweep, {OVERDUE} tasks overdue")
    for heading in ("tasks", "documents read", "dispatches", "milliseconds", "ratio"):
        table.add_column(heading, justify="right")
    first: float | None = None
    for size in parser.parse_args().sizes:
        counts, clock, store = Counts(), ManualClock(START), SqliteStore()
        app = App(
            Settings(secret="benchmarks have no secrets"),
            store=CountingStore(store, counts),
            dispatcher=CountingDispatcher(Nowhere(), counts),
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
        store.close()
    Console().print(table)


if __name__ == "__main__":
    main()
