"""Measure how many tasks pull workers claim per second, and how soon they claim a task after it is offered.

    python -m benchmarks.workers                      # SQLite in a file: 10,000 tasks
    python -m benchmarks.workers --store firestore    # Google's Firestore emulator: 2,000 tasks, and the delays

1, 4 and 16 workers, each a process, compete for the same offers in one store until all are claimed, one at a time and
ten at a time. The handlers are not run. The claims are checked twice, in what the processes report and in the leases
that the store holds: every task must be claimed, by exactly one worker.

The floor, in the same run, is the same number of processes that read and commit the same number of documents in the
same kind of store, each with a queue key of its own, so that no commit conflicts. Both rates count only the time while
there is work for all processes.

* reads / claim: documents read, including those that another worker claimed first (the minimum is 1).
* conflicts / claim: commits that failed because another worker had committed first.
* unavailable: how often the store did not respond in time and the request was repeated (in brackets: in the floor).
* claimed twice: must be 0.

With the emulator, the second table then compares a worker that listens for offers with one that only polls, both as
`cloudsched worker` runs them: the time from the commit of an offer until it is claimed. The emulator has no indexes:
each of its queries examines every task, so the ratio says more than the claims per second.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.workers_contention import StoreFactory, measure_floor, run_race
from benchmarks.workers_latency import measure_delays
from rich.console import Console
from rich.table import Table

from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator

TASKS = {"sqlite": 10_000, "firestore": 2_000}


def show_claims(stores: StoreFactory, store: str, options: argparse.Namespace) -> int:
    """Measure and print the claims for each number of workers; return how many tasks were claimed twice."""
    table = Table(title=f"Claims of {stores.size:,} tasks, {store}, the best of {options.repeat}")
    for heading in (
        "workers",
        "at a time",
        "claims/s",
        "floor/s",
        "time / floor",
        "reads / claim",
        "conflicts / claim",
        "unavailable",
        "claimed twice",
    ):
        table.add_column(heading, justify="right")
    twice = 0
    for limit in options.limits:
        for number in options.workers:
            floors, races = [], []
            for _ in range(options.repeat):
                floors.append(measure_floor(stores, number, limit))
                races.append(run_race(stores, number, limit))
            claimed_twice = sum(each.twice for each in races)
            twice += claimed_twice
            floor, result = (max(each, key=lambda one: one.rate) for each in (floors, races))
            table.add_row(
                str(number),
                str(limit),
                f"{result.rate:,.0f}",
                f"{floor.rate:,.0f}",
                f"{floor.rate / result.rate:.2f}",
                f"{result.reads / result.claims:.2f}",
                f"{result.conflicts / result.claims:.2f}",
                f"{result.unavailable} ({floor.unavailable})",
                str(claimed_twice),
            )
    Console(width=110).print(table)
    return twice


def show_delays(emulator: str, offers: int) -> None:
    """Measure and print the delays of a worker that listens and of one that polls."""
    table = Table(title=f"From an offer's commit to its claim, {offers} offers, Firestore emulator")
    for heading in ("worker", "median ms", "99th percentile ms", "polls"):
        table.add_column(heading, justify="left" if heading == "worker" else "right")
    for name, listens in (("listens", True), ("polls", False)):
        result = measure_delays(emulator, offers, listens=listens)
        percentile = statistics.quantiles(result.seconds, n=100)[98]
        table.add_row(
            name, f"{statistics.median(result.seconds) * 1e3:,.0f}", f"{percentile * 1e3:,.0f}", f"{result.polls:,}"
        )
    Console(width=110).print(table)


def main() -> None:
    """Measure and print; exit with a message if a task was claimed twice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=tuple(TASKS), default="sqlite")
    parser.add_argument(
        "--tasks", type=int, help="how many tasks are claimed (default: 10,000 with SQLite, 2,000 with Firestore)"
    )
    parser.add_argument(
        "--workers", type=int, nargs="*", default=[1, 4, 16], help="numbers of workers (none: no claims)"
    )
    parser.add_argument("--limits", type=int, nargs="+", default=[1, 10], help="how many tasks one call claims at most")
    parser.add_argument(
        "--repeat", type=int, default=1, help="how often each is measured; the best result is shown, also of the floor"
    )
    parser.add_argument(
        "--offers", type=int, default=200, help="how many offers the delays are measured with (0: none)"
    )
    options = parser.parse_args()
    size, twice = options.tasks or TASKS[options.store], 0
    with tempfile.TemporaryDirectory() as folder:
        if options.store == "sqlite":
            twice = show_claims(StoreFactory(Path(folder), size), "SQLite in a file", options)
        else:
            google = find_emulator()
            if isinstance(google, EmulatorNotFound):
                sys.exit(f"No Firestore emulator: {google.reason}. {google.hint}")
            with google:
                stores = StoreFactory(Path(folder), size, google.address)
                if options.workers:
                    twice = show_claims(stores, "Firestore emulator", options)
                if options.offers:
                    show_delays(google.address, options.offers)
    if twice:
        sys.exit(f"{twice} tasks were claimed twice.")


if __name__ == "__main__":
    main()
