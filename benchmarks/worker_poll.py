"""Measure how soon a worker at the API gets a run, and what it costs while there is none.

    python -m benchmarks.worker_poll [--runs 60] [--idle 60]

One worker is a process of its own, `cloudsched worker`. Its API is first `cloudsched serve` with SQLite, in another
process. Then it is an API over Google's Firestore emulator with the local Cloud Tasks, in this process, whose reads are
counted. A run is late by the time from its due time to its claim, by the API's clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.local_services import run_services

from cloudsched import App, Schedule
from cloudsched.adapters.operation_counts import Counts, count_store
from cloudsched.client import Client
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.functions import wsgi

HANDLERS = "from cloudsched import App\n\napp = App()\n\n\n@app.handler('act')\ndef act() -> None: ...\n"
GAP = timedelta(seconds=0.73)
"""The time between two runs: no multiple of the interval at which an API looks."""


def main() -> None:
    """Measure both APIs, and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60, help="how many runs come due")
    parser.add_argument("--idle", type=int, default=60, help="the seconds without work in which reads are counted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        handlers = Path(folder, "handlers.py")
        handlers.write_text(HANDLERS)
        with run_serve(handlers) as url, run_worker(handlers, url):
            report("SQLite, cloudsched serve", measure(url, options.runs))
        counts = Counts()
        with run_on_firestore(counts) as url, run_worker(handlers, url):
            report("Firestore emulator", measure(url, options.runs))
            time.sleep(5)  # the work is done
            before = counts.copy()
            time.sleep(options.idle)
            used = counts.since(before)
            hourly = 3600 / options.idle
            sys.stdout.write(f"idle, an hour: {used.reads * hourly:.0f} reads, {used.writes * hourly:.0f} writes\n")


def measure(url: str, count: int) -> list[float]:
    """Return the seconds by which a worker's runs were late, in their order of size."""
    with Client(url, timeout=60) as client:
        first = datetime.now(UTC) + timedelta(seconds=8)
        tasks = [
            client.create(owner="ada", title="act", handler="act", pull="gpu", schedule=Schedule.once(first + n * GAP))
            for n in range(count)
        ]
        runs = [client.wait(task.id, timedelta(minutes=5)) for task in tasks]
    return sorted((run.attempts[0].started_at - run.scheduled_for).total_seconds() for run in runs)


def report(name: str, late: list[float]) -> None:
    """Print the median, the 99th percentile and the largest."""
    high = late[max(0, -(-len(late) * 99 // 100) - 1)]
    sys.stdout.write(f"{name}: {len(late)} runs, p50 {statistics.median(late):.2f} s, p99 {high:.2f} s\n")
    sys.stdout.flush()


@contextmanager
def run_process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `cloudsched` with arguments, and stop it in the end."""
    command = (sys.executable, "-m", "cloudsched", *arguments)
    environment = {**os.environ, "CLOUDSCHED_OPEN": "on", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)  # noqa: S603 - ours
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def run_worker(handlers: Path, url: str) -> Iterator[None]:
    """Run a worker."""
    with run_process("worker", "--queue=gpu", f"--handlers={handlers}", f"--url={url}"):
        yield


@contextmanager
def run_serve(handlers: Path) -> Iterator[str]:
    """Run `cloudsched serve` on a new folder, and return its address."""
    data = f"--data={handlers.parent / 'data'}"
    with run_process("serve", "--port=0", data, f"--handlers={handlers}") as process:
        assert process.stdout is not None  # it is a pipe
        words = next(line for line in process.stdout if "http://" in line).split()
        yield next(word for word in words if word.startswith("http://")).removesuffix("/v1/tasks")


@contextmanager
def run_on_firestore(counts: Counts) -> Iterator[str]:
    """Run an API and an executor on the emulators, and return their address."""
    app = App()

    @app.handler("act")
    def act() -> None: ...

    with run_services() as service, WebServer(wsgi(app)) as server:
        url = f"http://{server.address}"
        access = replace(service.settings.access, open=True)
        settings = replace(
            service.settings,
            executor_url=url,
            public_url=url,
            access=access,
            store="firestore",
            firestore_emulator=service.firestore,
        )
        opened = App(settings)
        with app.override(settings, store=count_store(opened.container.store, counts)):
            app.container.replace(listener=opened.container.listener)
            server.serve()
            yield url
        opened.close()


if __name__ == "__main__":
    main()
