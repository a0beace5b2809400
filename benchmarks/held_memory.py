"""Measure what handlers that have ended still hold: a megabyte in a variable of each, however they end.

    python -m benchmarks.held_memory [--runs 1000] [--soak SECONDS]

Each kind of end is run so many times in turn, in an app that is embedded, in one that a worker runs, and in a
Simulation, whose executor is that of the functions. Each has a process of its own, so that none takes what another left
free. The figures are megabytes of resident memory more than before it.
With `--soak`, 50 runs a second are created for so long instead: a third fails, a third is suspended, a third succeeds.
It counts those that wait, and says by how much the memory has grown for each thousand of them.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from multiprocessing import Process
from pathlib import Path
from typing import Any

import cloudsched
from cloudsched import App, AsyncContext, Cancel, Context, Schedule, Settings, Task
from cloudsched.config.access import Access
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.features.pull.work_queue import WorkerFilter
from cloudsched.testing import Simulation
from cloudsched.worker.store_source import StoreSource
from cloudsched.worker.worker import Worker

SIZE = 1_000_000
CACHES_FULL = 10_000
"""The number of runs after which nothing grows but what waits. The caches are full before."""
HOUR = timedelta(hours=1)


def succeed() -> int:
    """End with a result."""
    data = bytearray(SIZE)
    return len(data)


def fail() -> None:
    """Raise an error."""
    data = bytearray(SIZE)
    raise ValueError(len(data))


def cancel() -> Cancel:
    """Cancel the run."""
    data = bytearray(SIZE)
    return Cancel(str(len(data)))


def sleep(ctx: Context) -> None:
    """Suspend the run."""
    data = bytearray(SIZE)
    ctx.sleep(HOUR)
    data.clear()


def fail_in_step(ctx: Context) -> None:
    """Fail in a step."""
    data = bytearray(SIZE)
    ctx.step("one", fail, retry=False)
    data.clear()


async def fail_async() -> None:
    """Raise an error on the event loop."""
    data = bytearray(SIZE)
    raise ValueError(len(data))


async def sleep_async(ctx: AsyncContext) -> None:
    """Suspend the run from the event loop."""
    data = bytearray(SIZE)
    await ctx.sleep(HOUR)
    data.clear()


HANDLERS: tuple[Callable[..., Any], ...] = (succeed, fail, cancel, sleep, fail_in_step, fail_async, sleep_async)


def resident_mb() -> float:
    """Return the megabytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def held_mb() -> float:
    """Return the same once garbage is collected, and glibc has given back what is free."""
    gc.collect()
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    return resident_mb()


def make_app() -> App:
    """Return an app with all handlers, which are not tried again."""
    logging.disable(logging.CRITICAL)  # thousands of failures are no news here
    app = App(Settings())
    for each in HANDLERS:
        app.handler(each.__name__, retry=False)(each)
    return app


def wait_for(app: App, tasks: list[Task]) -> None:
    """Wait until all have run once."""
    for each in tasks:
        while any(run.lease or (run.started_at is None) for run in app.get(each.id).runs):
            time.sleep(0.005)


@contextmanager
def run_embedded() -> Iterator[Callable[[str, int], None]]:
    """Yield what runs a handler so often in an embedded app."""
    app = make_app()

    def run(handler: str, count: int) -> None:
        wait_for(app, [app.create(handler=handler) for _ in range(count)])

    with (
        tempfile.TemporaryDirectory() as folder,
        cloudsched.embedded(app, folder, settings=Settings(access=Access(open=True)), threads=4),
    ):
        yield run


@contextmanager
def run_worker() -> Iterator[Callable[[str, int], None]]:
    """Yield what lets a worker run it."""
    app = make_app()
    with Simulation(app) as sim:
        source = StoreSource(app, WorkerFilter("q", (), frozenset(each.__name__ for each in HANDLERS)), "here")

        def run(handler: str, count: int) -> None:
            for _ in range(count):
                app.create(handler=handler, pull="q", schedule=Schedule.once(sim.now))
            sim.advance(timedelta(0))
            Worker(source, concurrency=1).run(once=True)

        yield run


@contextmanager
def run_simulated() -> Iterator[Callable[[str, int], None]]:
    """Yield what runs it in a Simulation."""
    app = make_app()
    with Simulation(app) as sim:

        def run(handler: str, count: int) -> None:
            for _ in range(count):
                app.create(handler=handler, schedule=Schedule.once(sim.now))
            sim.advance(timedelta(seconds=1))

        yield run


def soak(seconds: float) -> None:
    """Create 50 runs a second, and print the memory now and then."""
    app = make_app()
    kinds = [succeed.__name__, fail.__name__, sleep.__name__]
    with (
        tempfile.TemporaryDirectory() as folder,
        cloudsched.embedded(app, folder, settings=Settings(access=Access(open=True))),
    ):
        search, everybody = app.container.store.search, ExecutionQuery(owner=None)
        began, number, found = time.monotonic(), 0, list[tuple[int, float]]()
        while (passed := time.monotonic() - began) < seconds:
            if number <= passed * 50:
                app.create(handler=kinds[number % 3])
                number += 1
                if number % 500 == 0:
                    waiting = search.count_open(everybody, ExecutionStatus.SUSPENDED, number).value
                    print(f"{passed:6.0f} s  {number:7,} runs  {waiting:7,} wait  {resident_mb():7.1f} MB", flush=True)
                    if number == CACHES_FULL:
                        found.append((waiting, held_mb()))
            else:
                time.sleep(0.002)
        print(f"{number:,} runs in {seconds:.0f} s, {threading.active_count()} threads")
        for few, before in found:
            many, after = search.count_open(everybody, ExecutionStatus.SUSPENDED, number).value, held_mb()
            grown = (after - before) / (many - few) * 1000
            print("Without what the C library keeps free for what comes:")
            print(f"{before:.1f} MB with {few:,} that wait, {after:.1f} MB with {many:,}: {grown:+.2f} MB per 1,000")


def measure(run_all: Callable[[], AbstractContextManager[Callable[[str, int], None]]], handler: str, runs: int) -> None:
    """Print by how much the memory grows with so many runs of a handler."""
    with run_all() as run:
        run(succeed.__name__, 50)
        gc.collect()
        before = resident_mb()
        run(handler, runs)
        print(f"{run_all.__name__:14} {handler:14} {resident_mb() - before:+7.1f} MB", flush=True)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--soak", type=float, metavar="SECONDS")
    options = parser.parse_args()
    if options.soak is not None:
        soak(options.soak)
        return
    for run_all in (run_embedded, run_worker, run_simulated):
        for each in HANDLERS:
            process = Process(target=measure, args=(run_all, each.__name__, options.runs))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
