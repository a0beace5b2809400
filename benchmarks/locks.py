"""How runs of a few lock keys share 1, 2 and 4 executors: 1,000 tasks over 10 keys, all due at once.

    python benchmarks/locks.py [--tasks 1000] [--keys 10] [--busy 0.005]

An executor here is a thread that delivers dispatches, over the embedded store in a file (every commit on disk). The
handler is busy for a while as one that waits for somebody else is. Beside it, the same tasks without a lock key: the
difference is what taking turns costs. Checked as well: each task ran once, and no two of a key at the same time.
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
    """Run all tasks; return how many ran a second, and how often two of a key were at work at once."""
    inside: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    together = 0
    done = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        store, clock = SqliteStore(Path(folder) / "tasks.db"), SystemClock()

        def deliver(body: bytes, token: str) -> object:
            return app.deliver(body, token)

        queue = InProcessDispatcher(clock, deliver, workers=executors)
        app = App(Settings(secret="benchmarks have no secrets"), store=store, dispatcher=queue, clock=clock)

        @app.handler("work")
        def work(ctx: Context) -> None:
            nonlocal together
            key = ctx.task.lock_key or ctx.task.id
            inside[key] += 1
            together += inside[key] > 1
            time.sleep(busy)
            inside[key] -= 1
            ran[ctx.task.id] += 1
            if len(ran) == tasks:
                done.set()

        at = datetime.now(UTC) + timedelta(seconds=2 + tasks / 200)
        for number in range(tasks):
            key = f"key/{number % keys}" if keys else None
            app.create(owner="ada", title="Work", handler="work", schedule=Schedule.once(at), lock_key=key)
        with queue:
            time.sleep(max(0.0, (at - datetime.now(UTC)).total_seconds()))
            began = time.perf_counter()
            assert done.wait(300), f"{len(ran)} of {tasks} ran"
            seconds = time.perf_counter() - began
        store.close()
    assert set(ran.values()) == {1}
    return tasks / seconds, together


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=10)
    parser.add_argument("--busy", type=float, default=0.005, help="seconds that the handler takes")
    options = parser.parse_args()
    table = Table(title=f"{options.tasks:,} tasks over {options.keys} keys, {options.busy * 1e3:g} ms each")
    for heading in ("executors", "runs a second", "two of a key at once", "without keys, a second"):
        table.add_column(heading, justify="right")
    for executors in (1, 2, 4):
        rate, together = run(executors, options.tasks, options.keys, options.busy)
        free, _ = run(executors, options.tasks, 0, options.busy)
        table.add_row(str(executors), f"{rate:,.0f}", str(together), f"{free:,.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
