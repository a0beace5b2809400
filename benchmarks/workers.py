"""What pull workers claim a second, and how soon they have what is offered.

    python -m benchmarks.workers                      # SQLite, in a file: 10,000 tasks
    python -m benchmarks.workers --store firestore    # Google's Firestore emulator: 2,000 tasks, and listening

1, 4 and 16 workers, each a process, race for the same offers in one store until nothing is left, claiming one at a
time and ten at a time. Nothing is run. Who has what is checked from outside (what the processes were told) and from
inside (the leases in the store): every task is to be claimed, by exactly one.

The floor, in the same run: as many processes that read as many offers from the same store and commit as many
documents on the version that they read, each in a lane of its own, with nothing decided and nobody in the way. Both
are counted while there is work for all processes.

* reads a claim: documents read, those that others were quicker to take included (1 is the least).
* lost races a claim: commits that met somebody else's.
* no answer: how often the store did not answer in its time and was asked again (in brackets: in the floor).
* claimed twice: has to be 0.

With the emulator, then: a worker that listens and one that only looks now and then, both as `cloudsched worker` runs
them, and the time from the commit of an offer until it is claimed. The emulator has no indexes: each of its queries
looks at every task, so its claims a second say less than the ratio does.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.workers_contention import Grounds, floor, race
from benchmarks.workers_latency import heard
from rich.console import Console
from rich.table import Table

from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator

TASKS = {"sqlite": 10_000, "firestore": 2_000}


def claims(grounds: Grounds, store: str, options: argparse.Namespace) -> int:
    """Print what so many workers claim a second; return how much was claimed twice."""
    table = Table(title=f"Claims of {grounds.size:,} tasks, {store}, the best of {options.repeat}")
    for heading in (
        "workers",
        "at a time",
        "claims/s",
        "floor/s",
        "time / floor",
        "reads a claim",
        "lost races a claim",
        "no answer",
        "claimed twice",
    ):
        table.add_column(heading, justify="right")
    twice = 0
    for limit in options.limits:
        for number in options.workers:
            tries = [(floor(grounds, number, limit), race(grounds, number, limit)) for _ in range(options.repeat)]
            twice += sum(each.twice for _, each in tries)
            least, found = (max(each, key=lambda one: one.rate) for each in zip(*tries, strict=True))
            table.add_row(
                str(number),
                str(limit),
                f"{found.rate:,.0f}",
                f"{least.rate:,.0f}",
                f"{least.rate / found.rate:.2f}",
                f"{found.reads / found.claims:.2f}",
                f"{found.conflicts / found.claims:.2f}",
                f"{found.unanswered} ({least.unanswered})",
                str(sum(each.twice for _, each in tries)),
            )
    Console(width=110).print(table)
    return twice


def hearing(emulator: str, offers: int) -> None:
    """Print how soon a worker has what is offered."""
    table = Table(title=f"From an offer's commit to its claim, {offers} offers, Firestore emulator")
    for heading in ("worker", "median ms", "99 % below ms", "looks at the store"):
        table.add_column(heading, justify="left" if heading == "worker" else "right")
    for name, listens in (("listens", True), ("looks now and then", False)):
        found = heard(emulator, offers, listens=listens)
        late = statistics.quantiles(found.seconds, n=100)[98]
        table.add_row(name, f"{statistics.median(found.seconds) * 1e3:,.0f}", f"{late * 1e3:,.0f}", f"{found.looks:,}")
    Console(width=110).print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", choices=tuple(TASKS), default="sqlite")
    parser.add_argument("--tasks", type=int, help="how many; 10,000, and 2,000 on the emulator, unless given")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--limits", type=int, nargs="+", default=[1, 10], help="how many are claimed at a time")
    parser.add_argument("--repeat", type=int, default=1, help="how often; the best is shown, of floor and race alike")
    parser.add_argument("--offers", type=int, default=200, help="how many are listened for (0: none)")
    options = parser.parse_args()
    size, twice = options.tasks or TASKS[options.store], 0
    with tempfile.TemporaryDirectory() as folder:
        if options.store == "sqlite":
            twice = claims(Grounds(Path(folder), size), "SQLite in a file", options)
        else:
            google = find_emulator()
            if isinstance(google, EmulatorNotFound):
                sys.exit(f"No Firestore emulator: {google.reason}. {google.hint}")
            with google:
                grounds = Grounds(Path(folder), size, google.address)
                if options.workers:
                    twice = claims(grounds, "Firestore emulator", options)
                if options.offers:
                    hearing(google.address, options.offers)
    if twice:
        sys.exit(f"{twice} were claimed twice.")


if __name__ == "__main__":
    main()
