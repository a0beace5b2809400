"""Break the real stack at random, then count: due, succeeded, duplicated, lost.

    python benchmarks/crash_and_recover.py [--seconds 60] [--store sqlite|firestore] [--seed 0] [--json]

Real parts, all over sockets: the store (Google's Firestore emulator, or SQLite), the local Cloud Tasks with its faults
on (deliveries doubled, out of order, answers lost), the executor as it is deployed (functions-framework with gunicorn,
several worker processes), and a sweep in a process of its own. For so many seconds recurring tasks and one-off tasks
come due while executors and sweeps are killed with SIGKILL, without warning, whatever they are doing. Then the killing
stops, everything may finish, and every occurrence that came due is looked for.

* lost: an occurrence that came due and has no record with a final status.
* duplicated: an occurrence whose handler was called again after its success had been recorded.
* recovery: from the end of a dead executor's lease to the next attempt. The lease is the least that it can take.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cloudsched import App, Execution, RetryPolicy, Schedule, Settings, Task
from cloudsched.adapters.firestore.emulator import EmulatorNotFound, find_emulator
from cloudsched.adapters.google.cloud_tasks import queue_id
from cloudsched.domain.documents.policy import Priority
from cloudsched.emulator import CloudTasksEmulator
from cloudsched.emulator.model.faults import Faults

ROOT = Path(__file__).parents[1]
LEASE = timedelta(seconds=3)
SWEEP_EVERY = 1.0
WORKERS = 3
RECURRING = 12
BETWEEN_KILLS = (0.2, 1.2)

HANDLERS = '''
import os, random, time
from cloudsched import App, Context

app = App()
MARKS = os.open(os.environ["MARKS"], os.O_WRONLY | os.O_APPEND)


@app.handler("work")
def work(ctx: Context) -> int:
    """Leave a mark, be busy for a while."""
    os.write(MARKS, f"{ctx.task.id} {ctx.execution_id} {time.time()}\\n".encode())
    time.sleep(random.uniform(0.0, 0.3))
    return ctx.attempt
'''

SWEEPS = f"""
import time
from handlers import app
while True:
    try:
        app.sweep()
    except Exception:
        pass
    time.sleep({SWEEP_EVERY})
"""


class Victims:
    """The processes that are killed, and brought back."""

    def __init__(self, folder: Path, env: dict[str, str], port: int) -> None:
        server = (sys.executable, "-m", "functions_framework", "--target=execute", f"--source={folder / 'main.py'}")
        self._env = {**env, "WORKERS": str(WORKERS), "THREADS": "4"}
        self._folder = folder
        self.log = (folder / "log").open("wb")
        self.server = self._start(*server, f"--port={port}", "--host=127.0.0.1")
        self.sweeper = self._start(sys.executable, "-c", SWEEPS)
        self.killed: Counter[str] = Counter()

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - the benchmark's own commands
            command, cwd=self._folder, env=self._env, stdout=self.log, stderr=subprocess.STDOUT, process_group=0
        )

    def workers(self) -> list[int]:
        """Return the executors' process ids: the children of the server."""
        path = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def kill_an_executor(self, chance: random.Random) -> None:
        """Kill one; the server brings another."""
        if workers := self.workers():
            with suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
                self.killed["executors"] += 1

    def kill_the_sweep(self) -> None:
        """Kill it and begin another."""
        self.sweeper.kill()
        self.sweeper.wait()
        self.killed["sweeps"] += 1
        self.sweeper = self._start(sys.executable, "-c", SWEEPS)

    def end(self) -> None:
        """End all of them."""
        for process in (self.server, self.sweeper):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.log.close()


def create(app: App, seconds: float) -> list[Task]:
    """Create tasks whose occurrences come due all the time: some recur, some run once."""
    patient = RetryPolicy(max_retries=20, base=timedelta(0), jitter=0)
    tasks = []
    for number in range(RECURRING):
        period = timedelta(seconds=2 + number % 3)
        begin = _soon()
        tasks.append(
            app.create(
                owner="chaos",
                title=f"Every {period}",
                handler="work",
                schedule=Schedule.every(period, start=begin),
                until=begin + timedelta(seconds=seconds),
                catch_up="all",
                overlap="allow",
                retry=patient,
            )
        )
    for number in range(int(seconds * 4)):
        at = Schedule.once(_soon() + timedelta(seconds=number / 4))
        tasks.append(app.create(owner="chaos", title="Once", handler="work", schedule=at, retry=patient))
    return tasks


def _soon() -> datetime:
    """Return an instant that even a busy machine reaches only after it has created the task."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=4)


def all_executions(app: App, task: Task) -> list[Execution]:
    """Return every record of a task."""
    page = app.executions(task.id, limit=500)
    found = list(page.items)
    while page.next_page_token:
        page = app.executions(task.id, limit=500, page_token=page.next_page_token)
        found += page.items
    return found


def examine(app: App, tasks: list[Task], marks: Path) -> dict[str, float]:
    """Count what became of everything that came due."""
    calls: dict[tuple[str, str], list[float]] = {}
    for line in marks.read_text().splitlines():
        task_id, execution_id, at = line.split()
        calls.setdefault((task_id, execution_id), []).append(float(at))
    found: Counter[str] = Counter()
    recoveries: list[float] = []
    for task in tasks:
        records = {record.scheduled_for: record for record in all_executions(app, task)}
        last = task.until or task.schedule.first()
        first = task.schedule.first()
        assert first is not None
        assert last is not None
        for occurrence in task.schedule.between(first, last + timedelta(microseconds=1)):
            record = records.get(occurrence)
            found["due"] += 1
            if record is None or not record.status.is_final or record.finished_at is None:
                found["lost"] += 1
                continue
            found[record.status.lower()] += 1
            found["attempts that died"] += sum(attempt.status == "TIMED_OUT" for attempt in record.attempts)
            after = record.finished_at.timestamp()
            called = calls.get((task.id, record.id), [])
            found["duplicated"] += record.status == "SUCCEEDED" and any(at > after for at in called)
            found["handler calls"] += len(called)
            for dead, following in zip(record.attempts, record.attempts[1:], strict=False):
                if dead.status == "TIMED_OUT":
                    waited = following.started_at - dead.started_at - LEASE
                    recoveries.append(waited.total_seconds())
    result: dict[str, float] = {name: found[name] for name in ("due", "succeeded", "skipped", "duplicated", "lost")}
    result |= {name: found[name] for name in ("attempts that died", "handler calls")}
    if recoveries:
        result["recovery after the lease, median s"] = round(statistics.median(recoveries), 2)
        result["recovery after the lease, longest s"] = round(max(recoveries), 2)
    return result


def run(seconds: float, store: str, seed: int) -> dict[str, float]:
    """Break things for so many seconds; return the counts."""
    chance = random.Random(seed)  # noqa: S311 - it is meant to be repeatable
    with ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="cloudsched-")))
        shutil.copy(ROOT / "functions" / "main.py", folder)
        (folder / "handlers.py").write_text(HANDLERS)
        marks = folder / "marks"
        marks.touch()
        port = _free_port()
        settings = Settings(project="demo-chaos", secret="benchmarks have no secrets")
        location = f"projects/{settings.project}/locations/{settings.location}"
        queues = [f"{location}/queues/{queue_id(settings.queue, priority)}" for priority in Priority]
        faults = Faults(
            duplicate=0.05, out_of_order=0.2, drop_answer=0.05, shuffle_within=timedelta(seconds=0.5), seed=seed
        )
        emulator = parts.enter_context(CloudTasksEmulator(queues=queues, faults=faults))
        address = None
        if store == "firestore":
            google = find_emulator()
            if isinstance(google, EmulatorNotFound):
                raise SystemExit(f"No Firestore emulator: {google.reason} {google.hint}")
            parts.enter_context(google)
            address = google.address
        settings = Settings(
            project=settings.project,
            secret=settings.secret,
            store="firestore" if store == "firestore" else "sqlite",
            firestore_emulator=address,
            data=folder / "tasks.db" if store == "sqlite" else None,
            executor_url=f"http://127.0.0.1:{port}",
            tasks_emulator=emulator.address,
            retention=None,
        )
        app = App(settings)
        app.handler("work", expected_duration=LEASE)(lambda: None)
        parts.callback(app.close)
        victims = Victims(folder, settings.to_child_environment(MARKS=str(marks)), port)
        parts.callback(victims.end)
        tasks = create(app, seconds)
        until = time.monotonic() + seconds + 4
        while time.monotonic() < until or not victims.killed["executors"]:  # they may take long to start
            time.sleep(chance.uniform(*BETWEEN_KILLS))
            victims.kill_an_executor(chance)
            if chance.random() < 0.15:
                victims.kill_the_sweep()
        _await_the_end(app, tasks)
        return {
            "seconds": seconds,
            "tasks": len(tasks),
            "executors killed": victims.killed["executors"],
            "sweeps killed": victims.killed["sweeps"],
            **examine(app, tasks, marks),
        }


def _await_the_end(app: App, tasks: list[Task]) -> None:
    give_up_at = time.monotonic() + 120
    waiting = list(tasks)
    while waiting and time.monotonic() < give_up_at:
        waiting = [task for task in waiting if not app.get(task.id).has_ended]
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main() -> None:
    """Break, count, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--store", choices=("sqlite", "firestore"), default="firestore")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the counts for a program")
    options = parser.parse_args()
    counts = run(options.seconds, options.store, options.seed)
    if options.json:
        print(json.dumps(counts))
    else:
        table = Table("", "", title=f"Crash and recover, {options.store}", show_header=False)
        for name, value in counts.items():
            table.add_row(name, f"{value:,g}")
        Console().print(table)
    sys.exit(bool(counts["lost"] or counts["duplicated"]))


if __name__ == "__main__":
    main()
