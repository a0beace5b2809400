"""Measure the speed of the simulation: occurrences per second in a simulated year of hourly tasks.

    python benchmarks/simulation.py [--tasks 5] [--days 366]

Each occurrence runs the whole product: a dispatch through the queue model, its token, a read, two commits to the
embedded store in memory, the handler, the next occurrence. The floor is the store alone with the same documents: one
load and two commits per occurrence.
"""

from __future__ import annotations

import argparse
import time
from datetime import timedelta

from rich.console import Console
from rich.table import Table

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.testing import START, Simulation

app = App(Settings())


@app.handler("tick")
def tick() -> str:
    """Do nothing, successfully."""
    return "tock"


def run_simulation(tasks: int, days: int) -> tuple[int, float]:
    """Run the tasks for that many simulated days; return how many occurrences ran, and the seconds that it took."""
    with Simulation(app) as sim:
        for number in range(tasks):
            app.create(
                owner="ada",
                title=f"Task {number}",
                handler="tick",
                schedule=Schedule.every(timedelta(hours=1), start=START + timedelta(minutes=number)),
            )
        start = time.perf_counter()
        sim.advance(timedelta(days=days))
        seconds = time.perf_counter() - start
        runs = sum(delivery.result is not None and delivery.result.action == "ran" for delivery in sim.queue.deliveries)
        return runs, seconds


def measure_floor(occurrences: int) -> float:
    """Return the seconds that the store alone needs for that many occurrences."""
    with Simulation(app) as sim:
        task = app.create(owner="ada", title="Task", handler="tick", schedule=Schedule.once(START))
        sim.advance(timedelta(minutes=1))
        record = sim.executions(task.id)[0]
        task = app.get(task.id)
    store = SqliteStore()
    store.commit(task, None)
    start = time.perf_counter()
    for _ in range(occurrences):
        stored = store.load(task.id)
        assert stored is not None
        version = store.commit(stored.task, stored.version)
        store.commit(stored.task, version, [record])
    return time.perf_counter() - start


def main() -> None:
    """Measure the simulation and its floor and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=5, help="how many hourly tasks there are")
    parser.add_argument("--days", type=int, default=366, help="how many days are simulated")
    options = parser.parse_args()
    runs, seconds = run_simulation(options.tasks, options.days)
    floor = measure_floor(runs)
    table = Table(title=f"{options.tasks} hourly tasks for {options.days} days")
    for heading in ("", "occurrences", "seconds", "occurrences/s"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("simulation", f"{runs:,}", f"{seconds:.2f}", f"{runs / seconds:,.0f}")
    table.add_row("floor: the store alone", f"{runs:,}", f"{floor:.2f}", f"{runs / floor:,.0f}")
    table.add_row("ratio", "", f"{seconds / floor:.2f}", "")
    Console().print(table)


if __name__ == "__main__":
    main()
