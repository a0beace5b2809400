"""Measure the speed of the simulation: occurrences per second in a simulated year of hourly tasks.

    python benchmarks/simulation.py [--tasks 5] [--days 366]

Each occurrence runs the whole product: a dispatch through the queue model, its token, a read, two commits to the
embedded store in memory, the handler, the next occurrence. The floor is the store alone with the same documents: one
load and two commits per occurrence. Seconds are of processor time; the floor of each part of the year is measured
directly after it, so that what else the machine does disturbs both alike.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from datetime import timedelta

from rich.console import Console
from rich.table import Table

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.engine.ports.store import Commit
from cloudsched.testing import START, Simulation

SLICES = 24
"""In how many parts the time is simulated."""

app = App(Settings())


@app.handler("tick")
def tick() -> str:
    """Do nothing, successfully."""
    return "tock"


@dataclasses.dataclass(frozen=True, slots=True)
class Slice:
    """A part of the simulated time: its occurrences, and the processor seconds that they and their floor took."""

    runs: int
    seconds: float
    floor: float


def measure(tasks: int, days: int) -> list[Slice]:
    """Run the tasks for that many simulated days; after each part, have the store alone do as much."""
    floor = Floor()
    with Simulation(app) as sim:
        for number in range(tasks):
            app.create(
                owner="ada",
                title=f"Task {number}",
                handler="tick",
                schedule=Schedule.every(timedelta(hours=1), start=START + timedelta(minutes=number)),
            )
        slices, seen = [], 0
        for _ in range(SLICES):
            start = time.process_time()
            sim.advance(timedelta(days=days) / SLICES)
            seconds = time.process_time() - start
            deliveries = sim.queue.deliveries[seen:]
            seen += len(deliveries)
            runs = sum(delivery.result is not None and delivery.result.action == "ran" for delivery in deliveries)
            slices.append(Slice(runs, seconds, floor.measure(runs)))
        return slices


class Floor:
    """The store alone, with a document of a task and a record such as the simulation writes."""

    def __init__(self) -> None:
        with Simulation(app) as sim:
            task = app.create(owner="ada", title="Task", handler="tick", schedule=Schedule.once(START))
            sim.advance(timedelta(minutes=1))
            self._record = sim.executions(task.id)[0]
            self._task_id = task.id
            task = app.get(task.id)
        self._store = SqliteStore()
        self._store.commit(Commit(task))

    def measure(self, occurrences: int) -> float:
        """Return the processor seconds that the store alone needs for that many occurrences."""
        start = time.process_time()
        for _ in range(occurrences):
            stored = self._store.load(self._task_id)
            assert stored is not None
            written = self._store.commit(Commit(stored.task, stored))
            self._store.commit(Commit(stored.task, written, [self._record]))
        return time.process_time() - start


def main() -> None:
    """Measure the simulation and its floor and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=5, help="how many hourly tasks there are")
    parser.add_argument("--days", type=int, default=366, help="how many days are simulated")
    options = parser.parse_args()
    slices = measure(options.tasks, options.days)
    runs, seconds, floor = (sum(getattr(each, name) for each in slices) for name in ("runs", "seconds", "floor"))
    ratios = sorted(each.seconds / each.floor for each in slices)
    table = Table(title=f"{options.tasks} hourly tasks for {options.days} days")
    for heading in ("", "occurrences", "seconds", "occurrences/s"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("simulation", f"{runs:,}", f"{seconds:.2f}", f"{runs / seconds:,.0f}")
    table.add_row("floor: the store alone", f"{runs:,}", f"{floor:.2f}", f"{runs / floor:,.0f}")
    table.add_row("ratio", "", f"{statistics.median(ratios):.2f}", "")
    Console().print(table)
    print(f"The ratio is the median of {SLICES} parts, each measured directly before its floor: ", end="")
    print(f"{ratios[0]:.2f} to {ratios[-1]:.2f}.")


if __name__ == "__main__":
    main()
