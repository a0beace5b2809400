"""Kill processes of the real stack at random, then count the occurrences that were due, done, duplicated and lost.

    python benchmarks/crash_and_recover.py [--seconds 60] [--kills N] [--store sqlite|firestore] [--seed 0] [--json]

The parts are real: the store (Google's Firestore emulator, or SQLite), the local Cloud Tasks with its faults switched
on (duplicate deliveries, deliveries out of order, lost responses), the executor as it is deployed (functions-framework
with gunicorn, several worker processes), and a sweeper in a process of its own. For the given number of seconds
recurring and one-off tasks come due while executors and the sweeper are killed with SIGKILL, at any point of their
work. Then the killing stops. Once every task has ended, or nothing has changed for `PATIENCE`, every occurrence that
came due since its task was created is checked: on a busy machine they come late, which is no loss.

* lost: an occurrence that came due and has no record with a final status.
* duplicated: an occurrence whose handler was called again after its success had been recorded.
* recovery: the time from the end of a killed executor's lease to the next attempt. No attempt can start before the
  lease ends.

The exit status is 1 if anything was lost or duplicated.
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
from cloudsched.adapters.google.cloud_tasks import list_queue_ids
from cloudsched.emulator import CloudTasksEmulator
from cloudsched.emulator.model.faults import Faults

ROOT = Path(__file__).parents[1]
LEASE = timedelta(seconds=3)
SWEEP_INTERVAL_SECONDS = 1.0
WORKERS = 3
RECURRING = 12
SECONDS_BETWEEN_KILLS = (0.2, 1.2)
PATIENCE = timedelta(minutes=2)
"""How long nothing may change before what has not ended counts as lost."""
LONGEST_WAIT = timedelta(minutes=30)
"""How long the tasks may take to end, whatever changes: one whose attempts never end changes with each of them."""

HANDLERS = '''
import os, random, time
from cloudsched import App, Context

app = App()
MARKS = os.open(os.environ["MARKS"], os.O_WRONLY | os.O_APPEND)


@app.handler("work")
def work(ctx: Context) -> int:
    """Append a line for this call, then be busy for up to 0.3 seconds."""
    os.write(MARKS, f"{ctx.task.id} {ctx.execution_id} {time.time()}\\n".encode())
    time.sleep(random.uniform(0.0, 0.3))
    return ctx.attempt
'''

SWEEPER = f"""
import time
from handlers import app
while True:
    try:
        app.sweep()
    except Exception:
        pass
    time.sleep({SWEEP_INTERVAL_SECONDS})
"""


class StackProcesses:
    """The executor's server and the sweeper: the processes that are killed and replaced."""

    def __init__(self, folder: Path, env: dict[str, str], port: int) -> None:
        server = (sys.executable, "-m", "functions_framework", "--target=execute", f"--source={folder / 'main.py'}")
        self._env = {**env, "WORKERS": str(WORKERS), "THREADS": "4"}
        self._folder = folder
        self.log = (folder / "log").open("wb")
        self.server = self._start(*server, f"--port={port}", "--host=127.0.0.1")
        self.sweeper = self._start(sys.executable, "-c", SWEEPER)
        self.killed: Counter[str] = Counter()

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - the benchmark's own commands
            command, cwd=self._folder, env=self._env, stdout=self.log, stderr=subprocess.STDOUT, process_group=0
        )

    def list_workers(self) -> list[int]:
        """Return the process ids of the executors, which are the children of the server."""
        path = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def kill_executor(self, rng: random.Random) -> None:
        """Kill one executor; the server starts another."""
        if workers := self.list_workers():
            with suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
                self.killed["executors"] += 1

    def restart_sweeper(self) -> None:
        """Kill the sweeper and start another."""
        self.sweeper.kill()
        self.sweeper.wait()
        self.killed["sweeps"] += 1
        self.sweeper = self._start(sys.executable, "-c", SWEEPER)

    def stop(self) -> None:
        """Kill all processes."""
        for process in (self.server, self.sweeper):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.log.close()


def create(app: App, seconds: float) -> list[Task]:
    """Create tasks, recurring and one-off, whose occurrences come due all the time."""
    retry = RetryPolicy(max_retries=20, base=timedelta(0), jitter=0)
    tasks = []
    for number in range(RECURRING):
        period = timedelta(seconds=2 + number % 3)
        start = _next_start()
        tasks.append(
            app.create(
                owner="chaos",
                title=f"Every {period}",
                handler="work",
                schedule=Schedule.every(period, start=start),
                until=start + timedelta(seconds=seconds),
                catch_up="all",
                overlap="allow",
                retry=retry,
            )
        )
    for number in range(int(seconds * 4)):
        at = Schedule.once(_next_start() + timedelta(seconds=number / 4))
        tasks.append(app.create(owner="chaos", title="Once", handler="work", schedule=at, retry=retry))
    return tasks


def _next_start() -> datetime:
    """Return an instant far enough ahead that even a busy machine creates the task before it."""
    return datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=4)


def list_all_executions(app: App, task: Task) -> list[Execution]:
    """Return the execution records of a task, from all pages."""
    page = app.executions(task.id, limit=500)
    executions = list(page.items)
    while page.next_page_token:
        page = app.executions(task.id, limit=500, page_token=page.next_page_token)
        executions += page.items
    return executions


def examine(app: App, tasks: list[Task], marks: Path) -> dict[str, float]:
    """Return the counts of occurrences by result, and the recovery times."""
    calls: dict[tuple[str, str], list[float]] = {}
    for line in marks.read_text().splitlines():
        task_id, execution_id, at = line.split()
        calls.setdefault((task_id, execution_id), []).append(float(at))
    counts: Counter[str] = Counter()
    recoveries: list[float] = []
    for task in tasks:
        records = {record.scheduled_for: record for record in list_all_executions(app, task)}
        last = task.until or task.schedule.first()
        first = task.schedule.first()
        assert first is not None
        assert last is not None
        first = max(first, task.created_at)  # on a busy machine a task may be created after its first instant
        for occurrence in task.schedule.between(first, last + timedelta(microseconds=1)):
            record = records.get(occurrence)
            counts["due"] += 1
            if record is None or not record.status.is_final or record.finished_at is None:
                counts["lost"] += 1
                continue
            counts[record.status.lower()] += 1
            counts["attempts that died"] += sum(attempt.status == "TIMED_OUT" for attempt in record.attempts)
            finished_at = record.finished_at.timestamp()
            call_times = calls.get((task.id, record.id), [])
            counts["duplicated"] += record.status == "SUCCEEDED" and any(at > finished_at for at in call_times)
            counts["handler calls"] += len(call_times)
            for timed_out, next_attempt in zip(record.attempts, record.attempts[1:], strict=False):
                if timed_out.status == "TIMED_OUT":
                    delay = next_attempt.started_at - timed_out.started_at - LEASE
                    recoveries.append(delay.total_seconds())
    result: dict[str, float] = {name: counts[name] for name in ("due", "succeeded", "skipped", "duplicated", "lost")}
    result |= {name: counts[name] for name in ("attempts that died", "handler calls")}
    if recoveries:
        result["recovery after the lease, median s"] = round(statistics.median(recoveries), 2)
        result["recovery after the lease, longest s"] = round(max(recoveries), 2)
    return result


def run(seconds: float, store: str, seed: int, kills: int | None = None) -> dict[str, float]:
    """Run the stack and kill its processes, for this many seconds or so many times; return the counts."""
    rng = random.Random(seed)  # noqa: S311 - a seed makes the run repeatable
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cloudsched-")))
        shutil.copy(ROOT / "functions" / "main.py", folder)
        (folder / "handlers.py").write_text(HANDLERS)
        marks = folder / "marks"
        marks.touch()
        port = _find_free_port()
        settings = Settings(project="demo-chaos", secret="benchmarks have no secrets")
        location = f"projects/{settings.project}/locations/{settings.location}"
        queues = [f"{location}/queues/{each}" for each in list_queue_ids(settings.queue)]
        faults = Faults(
            duplicate=0.05, out_of_order=0.2, drop_answer=0.05, shuffle_within=timedelta(seconds=0.5), seed=seed
        )
        emulator = stack.enter_context(CloudTasksEmulator(queues=queues, faults=faults))
        address = None
        if store == "firestore":
            google = find_emulator(os.environ.get("FIRESTORE_EMULATOR_HOST"))
            if isinstance(google, EmulatorNotFound):
                raise SystemExit(f"No Firestore emulator: {google.reason} {google.hint}")
            stack.enter_context(google)
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
        stack.callback(app.close)
        processes = StackProcesses(folder, settings.to_child_environment(MARKS=str(marks)), port)
        stack.callback(processes.stop)
        tasks = create(app, seconds)
        until = time.monotonic() + seconds + 4
        # The executors may be slow to start: go on until at least one was killed.
        while processes.killed["executors"] < (kills or 1) or (kills is None and time.monotonic() < until):
            time.sleep(rng.uniform(*SECONDS_BETWEEN_KILLS))
            processes.kill_executor(rng)
            if rng.random() < 0.15:
                processes.restart_sweeper()
        waited = _wait_until_finished(app, tasks)
        return {
            "seconds": seconds,
            "seconds until all had ended": round(waited, 1),
            "tasks": len(tasks),
            "executors killed": processes.killed["executors"],
            "sweeps killed": processes.killed["sweeps"],
            **examine(app, tasks, marks),
        }


def _wait_until_finished(app: App, tasks: list[Task]) -> float:
    """Wait until all tasks have ended, as long as something still changes; return the seconds that it took."""
    begin = changed_at = time.monotonic()
    unfinished = {task.id: task for task in tasks}
    while unfinished and time.monotonic() < min(
        changed_at + PATIENCE.total_seconds(), begin + LONGEST_WAIT.total_seconds()
    ):
        read = [app.get(task_id) for task_id in unfinished]
        if any(task.updated_at != unfinished[task.id].updated_at for task in read):
            changed_at = time.monotonic()
        unfinished = {task.id: task for task in read if not task.has_ended}
        time.sleep(0.5)
    return time.monotonic() - begin


def _find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main() -> None:
    """Run, print the counts, and exit with 1 if an occurrence was lost or duplicated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long work comes due, and processes are killed")
    parser.add_argument("--kills", type=int, help="how many executors are killed instead, however long that takes")
    parser.add_argument("--store", choices=("sqlite", "firestore"), default="firestore")
    parser.add_argument("--seed", type=int, default=0, help="seed of the kills and of the queue's faults")
    parser.add_argument("--json", action="store_true", help="print the counts as one line of JSON")
    options = parser.parse_args()
    counts = run(options.seconds, options.store, options.seed, options.kills)
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
