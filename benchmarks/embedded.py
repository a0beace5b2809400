"""Compare the embedded stack with the alternatives for one machine: APScheduler 3, DBOS and huey, all with SQLite.

    python -m benchmarks.embedded [--tasks 2000]

The rivals run in an environment of their own (`benchmarks.machine`). (procrastinate is not among them: it needs a
PostgreSQL server.) Each contestant is one process with a new SQLite file, set up as its documentation says. In turn,
they

1. create one-off tasks that are due a little later, from one thread (measured: tasks per second);
2. run them, all due at the same instant (measured: tasks per second until the last handler is called);
3. run others that come due one by one, 100 a second (measured: how late each handler is called), and 1,000 a second;
4. run as many whose handlers wait for 20 ms (measured: tasks per second);
5. in another folder, create as many, and end before those are due; once they are, a new process runs them (measured:
   tasks per second, from the moment that its scheduler is told to start).

Before and after, it is measured how long the disk needs to sync a write as large as that of a created task. What is
synced at each commit cannot be faster than that: one thread creates at most one task in that time, and no handler
starts earlier after its claim. DBOS alone does not sync its commits.

A contestant's process runs this file too, in its own environment, so only the standard library is imported at the top.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

SYNCS, SYNCED_BYTES = 50, 40 * 1024
OURS, RIVALS = "cloudsched", ("APScheduler", "DBOS", "huey")
LEAD_FACTORS = (3, 6, 12)
"""How many times the time that creating the tasks should take lies before they are due; the next one if that fails."""
RATE, HIGH_RATE = 100, 1000
"""Tasks per second in the parts that measure lateness."""
WAIT_SECONDS, WAITING_FROM = 0.02, 1_000_000
"""How long the handler of each task from that number on waits, as for an answer from elsewhere."""
TRIAL_TASKS = 100
"""How many tasks, which never come due, are created first to estimate how long a creation takes."""
TOO_LATE = 75
"""The exit status of a process whose tasks came due before all of them were created."""
GIVE_UP_AFTER = 30.0
"""After how many seconds without a run the tasks that a restarted process has not run count as lost."""
COLUMNS = {
    "created": ("created/s", 1),
    "run": ("run/s", 1),
    "restarted": ("run/s after a restart", 1),
    "lost": ("lost", 1),
    "late_p50": ("late p50 ms", 1e3),
    "late_p99": ("late p99 ms", 1e3),
    "high_p99": ("late p99 ms at 1,000/s", 1e3),
    "waiting": ("20-ms handlers/s", 1),
}
"""The figures, each with its heading and the factor to its unit."""


class TooLateError(Exception):
    """A contestant's tasks came due before all of them were created."""


def main() -> None:
    """Measure all contestants and print the figures."""
    from benchmarks.machine import install_rivals  # noqa: PLC0415 - not in the contestants' processes
    from rich.console import Console  # noqa: PLC0415 - the same
    from rich.table import Table  # noqa: PLC0415 - the same

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000, help="how many tasks are created")
    tasks = parser.parse_args().tasks
    pythons = {OURS: sys.executable} | dict.fromkeys(RIVALS, str(install_rivals()))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        syncs = [measure_sync(folder)]
        figures = {name: measure(python, name, tasks, folder / name) for name, python in pythons.items()}
        syncs.append(measure_sync(folder))
    table = Table(title=f"{tasks} one-off tasks in one process over a SQLite file")
    for heading in ("", "version", *(heading for heading, _ in COLUMNS.values())):
        table.add_column(heading, justify="right" if heading else "left")
    for name, result in figures.items():
        cells = (f"{result[key] * factor:,.{0 if factor == 1 else 1}f}" for key, (_, factor) in COLUMNS.items())
        table.add_row(name, *((result["version"], *cells) if result else ("too slow",)))
    console = Console(width=150)
    console.print(table)
    console.print("a sync of the disk takes " + ", then ".join(f"{1e3 * each:.1f} ms" for each in syncs))


def measure(python: str, contestant: str, tasks: int, folder: Path) -> dict[str, Any]:
    """Run one contestant and return its figures; no figures if its tasks are due too early with every lead factor."""
    for factor in LEAD_FACTORS:
        try:
            place = folder / str(factor)
            figures = run_part(python, contestant, tasks, place / "work", "work", factor)
            left = run_part(python, contestant, tasks, place / "restart", "leave", factor)
            time.sleep(max(0.0, left["due_at"] - time.time()) + 0.1)
            return figures | run_part(python, contestant, tasks, place / "restart", "restart", factor)
        except TooLateError:
            continue
    return {}


def run_part(python: str, contestant: str, tasks: int, folder: Path, part: str, factor: int) -> dict[str, Any]:
    """Run one part of the workload in a process of its own, and return its figures.

    Raises:
        TooLateError: The tasks came due before all of them were created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.run(  # noqa: S603 - this file
        (python, __file__, contestant, str(folder), str(tasks), part, str(factor)),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode == TOO_LATE:
        raise TooLateError
    if process.returncode:
        sys.exit(f"{contestant} failed in {part!r}:\n{process.stdout[-1000:]}{process.stderr[-3000:]}")
    figures: dict[str, Any] = json.loads(process.stdout.strip().splitlines()[-1])
    return figures


def measure_sync(folder: Path) -> float:
    """Return the median of the seconds that the disk needs to sync what was appended to a file."""
    seconds = []
    with (folder / "synced").open("ab", buffering=0) as file:
        for _ in range(SYNCS):
            file.write(os.urandom(SYNCED_BYTES))
            start = time.perf_counter()
            os.fsync(file.fileno())
            seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


# ── The contestants ──────────────────────────────────────────────────────────────────────────────────────────────


class Contestant(Protocol):
    """A scheduler in a folder, with one handler: `note`."""

    def start(self) -> None:
        """Start to run due tasks, also those that another process has created in the same folder."""
        ...

    def create(self, number: int, due_at: float) -> None:
        """Create the one-off task of that number, due at that time (Unix seconds); return once it is on disk."""
        ...


class Cloudsched:
    """The embedded store in a file, the queue in the process."""

    def __init__(self, folder: Path) -> None:
        from cloudsched.config.imports import pause_collection  # noqa: PLC0415 - of this contestant's environment

        with pause_collection(keeps_all=True):  # as `cloudsched serve` does
            from cloudsched import App, Schedule, Settings  # noqa: PLC0415 - of this contestant's environment
            from cloudsched.adapters.clocks import SystemClock  # noqa: PLC0415 - the same
            from cloudsched.adapters.in_process_queue import DEFAULT_WORKERS  # noqa: PLC0415 - the same
            from cloudsched.adapters.sqlite.store import SqliteStore  # noqa: PLC0415 - the same
            from cloudsched.local.runner import make_queue  # noqa: PLC0415 - the same

        clock = SystemClock()
        self.once = Schedule.once
        self.app = App(
            Settings(secret="a secret of this benchmark"), store=SqliteStore(folder / "tasks.db"), clock=clock
        )
        self.queue = make_queue(self.app, clock, threads=DEFAULT_WORKERS)
        self.app.container.replace(dispatcher=self.queue)

        @self.app.handler("note")
        def handle(payload: dict[str, int]) -> None:
            note(payload["number"])

    def start(self) -> None:
        """Start the queue, and fill it from the store, as `cloudsched serve` does."""
        self.queue.start()
        self.app.container.sweeper.resend(datetime.now(UTC) + timedelta(minutes=10))

    def create(self, number: int, due_at: float) -> None:
        """Create a one-off task."""
        schedule = self.once(datetime.fromtimestamp(due_at, UTC))
        self.app.create(owner="ada", title="Note", handler="note", payload={"number": number}, schedule=schedule)


class APScheduler:
    """Its SQLAlchemy job store over SQLite, its default thread pool."""

    def __init__(self, folder: Path) -> None:
        from apscheduler.executors.pool import ThreadPoolExecutor  # noqa: PLC0415 - of this contestant's environment
        from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore  # noqa: PLC0415 - the same
        from apscheduler.schedulers.background import BackgroundScheduler  # noqa: PLC0415 - the same

        self.scheduler = BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(url=f"sqlite:///{folder / 'jobs.db'}")},
            executors={"default": ThreadPoolExecutor(10)},
            job_defaults={"misfire_grace_time": None},
            timezone=UTC,
        )

    def start(self) -> None:
        """Start the scheduler, which reads its job store."""
        self.scheduler.start()

    def create(self, number: int, due_at: float) -> None:
        """Create a one-off job."""
        self.scheduler.add_job(note, "date", run_date=datetime.fromtimestamp(due_at, UTC), args=(number,))


class Dbos:
    """Delayed workflows on a queue, its system database in SQLite."""

    def __init__(self, folder: Path) -> None:
        import dbos  # type: ignore[import-not-found]  # noqa: PLC0415 - of this contestant's environment

        self.dbos = dbos
        database = f"sqlite:///{folder / 'dbos.db'}"
        settings = {"name": "benchmark", "system_database_url": database, "log_level": "ERROR"}
        dbos.DBOS(config={**settings, "run_admin_server": False})
        self.workflow = dbos.DBOS.workflow()(note)

    def start(self) -> None:
        """Launch it, and register the queue, which it then polls."""
        self.dbos.DBOS.launch()
        self.dbos.DBOS.register_queue("queue")

    def create(self, number: int, due_at: float) -> None:
        """Enqueue a delayed workflow."""
        with self.dbos.SetEnqueueOptions(delay_seconds=max(0.0, due_at - time.time())):
            self.dbos.DBOS.enqueue_workflow("queue", self.workflow, number)


class Huey:
    """Its SQLite storage, one consumer with worker threads in the process.

    Its file is synced at each commit (``fsync=True``), so a created task is on disk. It runs without durability all the
    same: a task leaves the file before its handler is called, and is lost if the process dies then.
    """

    def __init__(self, folder: Path) -> None:
        from huey import SqliteHuey  # type: ignore[import-not-found]  # noqa: PLC0415 - of this contestant's environment

        self.huey = SqliteHuey(filename=str(folder / "huey.db"), fsync=True, results=False)
        self.task = self.huey.task()(note)

    def start(self) -> None:
        """Start its scheduler, which looks for due tasks once a second, and its worker threads."""
        self.huey.create_consumer(workers=8, scheduler_interval=1, initial_delay=0.01, max_delay=0.01).start()

    def create(self, number: int, due_at: float) -> None:
        """Schedule a task."""
        self.task.schedule(args=(number,), eta=datetime.fromtimestamp(due_at, UTC))


# ── The workload ─────────────────────────────────────────────────────────────────────────────────────────────────

_RAN_AT: dict[int, float] = {}
_LOCK = threading.Lock()


def note(number: int) -> None:
    """Record that a task's handler was called; only the first call counts."""
    with _LOCK:
        _RAN_AT.setdefault(number, time.time())
    if number >= WAITING_FROM:
        time.sleep(WAIT_SECONDS)


class Workload:
    """The parts of the workload: ``work`` creates tasks and runs them; ``leave`` and ``restart`` share a folder."""

    def __init__(self, contestant: Contestant, tasks: int, factor: int) -> None:
        self.contestant, self.tasks, self.factor = contestant, tasks, factor
        self.per_task = 0.0

    def work(self) -> dict[str, float]:
        """Create tasks and run them: all at once, one by one, and waiting."""
        self._start()
        start = time.time()
        due_at = self._create_all(0)
        created = self.tasks / (time.time() - start)
        self._wait_for_runs(self.tasks)
        run = self.tasks / (max(_RAN_AT.values()) - due_at)
        lateness = self._measure_lateness(self.tasks, RATE, 10 * RATE)
        high = self._measure_lateness(2 * self.tasks, HIGH_RATE, 2 * HIGH_RATE)
        _RAN_AT.clear()
        due_at = self._create_all(WAITING_FROM)
        self._wait_for_runs(self.tasks)
        return {
            "created": created,
            "run": run,
            "late_p50": statistics.median(lateness),
            "late_p99": lateness[int(0.99 * len(lateness))],
            "high_p99": high[int(0.99 * len(high))],
            "waiting": self.tasks / (max(_RAN_AT.values()) + WAIT_SECONDS - due_at),
        }

    def leave(self) -> dict[str, float]:
        """Create the tasks, due when all of them exist, in a process that ends before that."""
        self._start()
        return {"due_at": self._create_all(0)}

    def restart(self) -> dict[str, float]:
        """Run what is overdue; the time counts from the moment that the scheduler is told to start."""
        started_at = latest = time.time()
        self.contestant.start()
        known = 0
        while known < self.tasks and time.time() - latest < GIVE_UP_AFTER:
            time.sleep(0.01)
            if len(_RAN_AT) > known:
                latest, known = time.time(), len(_RAN_AT)
        ran_at = list(_RAN_AT.values()) or [latest]
        return {"restarted": len(ran_at) / (max(ran_at) - started_at), "lost": self.tasks - known}

    def _start(self) -> None:
        """Start the contestant, and estimate how long a creation takes."""
        self.contestant.start()
        start = time.time()
        for number in range(TRIAL_TASKS):
            self.contestant.create(-1 - number, start + 3600)
        self.per_task = (time.time() - start) / TRIAL_TASKS

    def _choose_due_time(self, count: int) -> float:
        return time.time() + max(5.0, self.factor * count * self.per_task)

    def _create_all(self, first: int) -> float:
        """Create tasks that are all due at once, and return when; end the process if that is already over."""
        due_at = self._choose_due_time(self.tasks)
        for number in range(self.tasks):
            self.contestant.create(first + number, due_at)
        if time.time() > due_at:
            os._exit(TOO_LATE)
        return due_at

    def _measure_lateness(self, first: int, rate: int, count: int) -> list[float]:
        """Run tasks that come due one by one; return by how much each was late, in order."""
        _RAN_AT.clear()
        due_at = self._choose_due_time(count)
        for number in range(count):
            self.contestant.create(first + number, due_at + number / rate)
        self._wait_for_runs(count)
        return sorted(at - due_at - (number - first) / rate for number, at in _RAN_AT.items())

    def _wait_for_runs(self, count: int) -> None:
        deadline = time.time() + 300
        while len(_RAN_AT) < count:
            if time.time() > deadline:
                sys.exit(f"only {len(_RAN_AT)} of {count} tasks ran")
            time.sleep(0.01)


def run_contestant(name: str, folder: str, tasks: str, part: str, factor: str) -> None:
    """Run a part, print its figures as JSON, and end the process as a kill would."""
    kinds: dict[str, Callable[[Path], Contestant]] = {OURS: Cloudsched}
    kinds |= {"APScheduler": APScheduler, "DBOS": Dbos, "huey": Huey}
    workload = Workload(kinds[name](Path(folder)), int(tasks), int(factor))
    parts = {"work": workload.work, "leave": workload.leave, "restart": workload.restart}
    print(json.dumps({"version": version(name), **parts[part]()}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) > 5:
        run_contestant(*sys.argv[1:])
    main()
