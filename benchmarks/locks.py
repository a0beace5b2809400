"""Measure runs with a few lock keys on 1, 2 and 4 executors: 1,000 tasks with 10 keys, all due at once.

    python benchmarks/locks.py [--tasks 1000] [--keys 10] [--busy 0.005]

An executor here is a thread that delivers dispatches, with the embedded store in a file (every commit on disk). The
handler sleeps for a while, like one that waits for a remote service. The same tasks also run without lock keys: the
difference is the cost of the locks. The benchmark checks that each task ran once, and counts the runs that started
while another run with the same key was in progress (expected: 0).
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cloudsched import App, Context, Schedule, Settings
from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.in_process_queue import InProcessDispatcher
from cloudsched.adapters.sqlite.store import SqliteStore


def run(executors: int, tasks: int, keys: int, busy: float) -> tuple[float, int]:
    """Run all tasks; return the runs per second, and how often two runs with one key overlapped. 0 keys: no locks."""
    running: Counter[str] = Counter()
    finished: Counter[str] = Counter()
    overlaps = 0
    all_finished = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        store, clock = SqliteStore(Path(folder) / "tasks.db"), SystemClock()

        def deliver(body: bytes, token: str) -> object:
            return app.deliver(body, token)

        queue = InProcessDispatcher(clock, deliver, workers=executors)
        app = App(Settings(secret="benchmarks have no secrets"), store=store, dispatcher=queue, clock=clock)

        @app.handler("work")
        def work(ctx: Context) -> None:
            nonlocal overlaps
            key = ctx.task.lock_key or ctx.task.id
            running[key] += 1
            overlaps += running[key] > 1
            time.sleep(busy)
            running[key] -= 1
            finished[ctx.task.id] += 1
            if len(finished) == tasks:
                all_finished.set()

        at = datetime.now(UTC) + timedelta(seconds=2 + tasks / 200)
        for number in range(tasks):
            key = f"key/{number % keys}" if keys else None
            app.create(owner="ada", title="Work", handler="work", schedule=Schedule.once(at), lock_key=key)
        with queue:
            time.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
            start = time.perf_counter()
            assert all_finished.wait(300), f"only {len(finished)} of {tasks} tasks ran"
            seconds = time.perf_counter() - start
        store.close()
    assert set(finished.values()) == {1}
    return tasks / seconds, overlaps


def main() -> None:
    """Measure with each number of executors and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000, help="how many tasks run")
    parser.add_argument("--keys", type=int, default=10, help="how many lock keys the tasks share")
    parser.add_argument("--busy", type=float, default=0.005, help="how many seconds the handler takes")
    options = parser.parse_args()
    table = Table(title=f"{options.tasks:,} tasks with {options.keys} keys, {options.busy * 1e3:g} ms each")
    for heading in ("executors", "runs/s", "overlaps within a key", "runs/s without keys"):
        table.add_column(heading, justify="right")
    for executors in (1, 2, 4):
        rate, overlaps = run(executors, options.tasks, options.keys, options.busy)
        rate_without_keys, _ = run(executors, options.tasks, 0, options.busy)
        table.add_row(str(executors), f"{rate:,.0f}", str(overlaps), f"{rate_without_keys:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
