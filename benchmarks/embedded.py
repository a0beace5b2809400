"""Compare cloudsched on one machine with APScheduler 3, Celery, DBOS and huey.

    python -m benchmarks.embedded [--tasks 2000] [--page] [--only NAME …]

The rivals run in an environment of their own (`benchmarks.machine`). Each is set up as its documentation says, with
what it offers against loss. The page has a table of what was set. Three need a server of Debian's, and are left out
where its package is not installed: `rabbitmq-server` (Celery with the broker that its documentation names first),
`redis-server` (Celery as well) and `postgresql` (DBOS as it is recommended for production). All servers sync what they
acknowledge. Every other contestant is one process with a new SQLite file; cloudsched is what its users start,
`cloudsched.embedded`. In turn, they

1. create one-off tasks that are due a little later, from one thread (measured: tasks per second);
2. run them, all due at the same instant (measured: tasks per second until the last handler is called);
3. run others that come due one by one, 100 a second (measured: how late each handler is called), and 1,000 a second;
4. run as many whose handlers wait for 20 ms (measured: tasks per second);
5. in another folder, create as many, and end; once they are due, a new process runs them (measured: tasks per second
   from the start of its scheduler, and how long after the process's start the first handler was called);
6. in another folder, run as many whose handlers wait for 20 ms, and are killed by SIGKILL when a third of them has
   begun; a new process runs the rest, until nothing was called for 45 seconds.

Before and after, it is measured how long the disk needs to sync a write as large as that of a created task. What is
synced at each commit cannot be faster than that. DBOS alone does not sync its commits to SQLite.

``--page`` writes the figures into docs/start/comparison.md, with the day, the commit and the machine. A
contestant's process runs this file too, in its own environment, so only the standard library is imported at the top.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SYNCS, SYNCED_BYTES = 50, 40 * 1024
OURS = "cloudsched"
STORES = {
    OURS: "SQLite",
    "APScheduler": "SQLite",
    "Celery, RabbitMQ": "RabbitMQ",
    "Celery, Redis": "Redis",
    "DBOS": "SQLite",
    "DBOS, PostgreSQL": "PostgreSQL",
    "huey": "SQLite",
}
"""What keeps the tasks of each contestant."""
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "start" / "comparison.md"
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
RESTART_SECONDS, KILL_SECONDS = 20.0, 45.0
"""After how many seconds without a call a process that was restarted, or follows a killed one, is not waited for."""
COLUMNS = {
    "created": ("created/s", 1),
    "run": ("run/s", 1),
    "restarted": ("run/s after a restart", 1),
    "unstarted": (f"not run {RESTART_SECONDS:.0f} s after a restart", 1),
    "late_p50": ("late p50 ms", 1e3),
    "late_p99": ("late p99 ms", 1e3),
    "high_p99": ("late p99 ms at 1,000/s", 1e3),
    "waiting": ("20-ms handlers/s", 1),
    "first": ("first run after a start, ms", 1e3),
    "unfinished": (f"not run {KILL_SECONDS:.0f} s after SIGKILL", 1),
    "twice": ("called twice after SIGKILL", 1),
    "recovered": ("the last run after SIGKILL, ms", 1e3),
}
"""The figures, each with its heading and the factor to its unit."""


class TooLateError(Exception):
    """A contestant's tasks came due before all of them were created."""


def main() -> None:
    """Measure all contestants and print the figures."""
    from benchmarks.machine import describe_machine, install_rivals  # noqa: PLC0415 - not in the contestants' processes
    from rich.console import Console  # noqa: PLC0415 - the same
    from rich.table import Table  # noqa: PLC0415 - the same

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000, help="how many tasks are created")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/start/comparison.md")
    parser.add_argument("--only", nargs="+", choices=STORES, default=[*STORES], help="these alone")
    options = parser.parse_args()
    pythons = dict.fromkeys(STORES, str(install_rivals())) | {OURS: sys.executable}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        syncs = [measure_sync(folder)]
        figures = {name: measure(pythons[name], name, options.tasks, folder / name) for name in options.only}
        syncs.append(measure_sync(folder))
    found = {name: result for name, result in figures.items() if result}
    names = [f"{name.partition(',')[0]} {result['version'].partition('.dev')[0]}" for name, result in found.items()]
    rows = [["store", *(result["store"] for result in found.values())]]
    rows += [
        [heading, *(show(each[key], factor) for each in found.values())] for key, (heading, factor) in COLUMNS.items()
    ]
    title = f"{options.tasks} one-off tasks in one process"
    synced = "a sync of the disk takes " + ", then ".join(f"{1e3 * each:.1f} ms" for each in syncs)
    table = Table("", *names, title=title)
    for row in rows:
        table.add_row(*row)
    left_out = ", ".join(name for name, result in figures.items() if not result) or "none"
    Console(width=180).print(table, synced, f"left out: {left_out}", sep="\n")
    if options.page:
        machine = [[name, value] for name, value in describe_machine().items() if name not in {OURS, "rivals", "load"}]
        dated = f"Measured on {datetime.now(UTC):%Y-%m-%d}, at commit {read_commit()}, in one run."
        measured = [dated, to_markdown([title, *names], rows), to_markdown(["machine", synced], machine)]
        text = PAGE.read_text("utf-8")
        PAGE.write_text(_MEASURED.sub(lambda found: "\n\n".join([found[1].strip(), *measured, ""]), text), "utf-8")


def show(figure: float, factor: float) -> str:
    """Return a figure in its unit, and a dash if there is none."""
    return "—" if math.isnan(figure) else f"{figure * factor:,.{0 if factor == 1 else 1}f}"


_MEASURED = re.compile(r"(<!-- written by benchmarks\.embedded --page -->\n).*?(?=<!-- end -->)", re.DOTALL)


def to_markdown(headings: list[str], rows: list[list[str]]) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(each)} |" for each in [headings, ["---"] + ["---:"] * (len(headings) - 1), *rows])


def read_commit() -> str:
    """Return the commit that is checked out, with a plus sign if its files were changed."""
    command = ("git", "-C", str(ROOT), "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - git


def measure(python: str, contestant: str, tasks: int, folder: Path) -> dict[str, Any]:
    """Run one contestant and return its figures; none if it fails, its server is missing or it is always too late."""
    for factor in LEAD_FACTORS:
        place = folder / str(factor)
        run = partial(run_part, python, contestant, tasks, factor=factor)
        try:
            with run_store(STORES[contestant], place) as store:
                figures = run(place / "work", "work")
                left = run(place / "restart", "leave")
                time.sleep(max(0.0, left["due_at"] - time.time()) + 0.1)
                figures |= run(place / "restart", "restart")
                run(place / "killed", "killed")
                figures |= run(place / "killed", "recover") | count_calls(place / "killed", tasks)
                return figures | {"store": store}
        except TooLateError:
            continue
        except LookupError:
            break
    return {}


@contextmanager
def run_store(store: str, folder: Path) -> Iterator[str]:
    """Run the server that keeps the tasks, with its address in the environment, and yield the name with its version.

    Raises:
        LookupError: Debian's package of the server is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    match store:
        case "PostgreSQL":
            from tests.outbox.postgres_server import find_binaries, run_server  # noqa: PLC0415 - not in contestants'

            if (binaries := find_binaries()) is None:
                raise LookupError(store)
            with run_server(synced=True) as os.environ["SERVER"]:
                yield f"PostgreSQL {read_version(str(binaries / 'postgres'), '--version')}"
        case "Redis":
            if (redis := shutil.which("redis-server")) is None:
                raise LookupError(store)
            with run_redis(redis, folder) as os.environ["SERVER"]:
                yield f"Redis {read_version(redis, '--version')}"
        case "RabbitMQ":
            places = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin"))
            if not places or (epmd := shutil.which("epmd")) is None:
                raise LookupError(store)
            with run_rabbitmq(places[-1], epmd, folder) as os.environ["SERVER"]:
                yield f"RabbitMQ {places[-1].parent.name.partition('-')[2]}"
        case _:
            import sqlite3  # noqa: PLC0415 - only for its version

            yield f"SQLite {sqlite3.sqlite_version}"


def read_version(*command: str) -> str:
    """Return the first number with dots that a command prints."""
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 - Debian's
    found = re.search(r"\d+(?:\.\d+)+", printed)
    return "" if found is None else found[0]


@contextmanager
def run_redis(redis: str, folder: Path) -> Iterator[str]:
    """Run Redis, which syncs each write, and yield its address."""
    from tests.harness import free_port  # noqa: PLC0415 - not in the contestants' processes

    port = str(free_port())
    options = {"port": port, "bind": "127.0.0.1", "dir": str(folder), "appendonly": "yes", "appendfsync": "always"}
    command = [redis, *(part for name, value in options.items() for part in (f"--{name}", value))]
    with run_process(command, int(port)):
        yield f"127.0.0.1:{port}"


@contextmanager
def run_rabbitmq(programs: Path, epmd: str, folder: Path) -> Iterator[str]:
    """Run RabbitMQ and its port mapper, both on loopback, and yield its address."""
    from tests.harness import free_port  # noqa: PLC0415 - not in the contestants' processes

    port, distribution, mapper = free_port(), free_port(), free_port()
    names = {
        "HOME": str(folder),  # for the cookie of Erlang
        "ERL_EPMD_PORT": str(mapper),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": "benchmark@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
    }
    environment = os.environ | names
    with (
        run_process([epmd, "-port", str(mapper), "-address", "127.0.0.1"], mapper, environment),
        run_process([str(programs / "rabbitmq-server")], port, environment),
    ):
        yield f"127.0.0.1:{port}"


@contextmanager
def run_process(command: list[str], port: int, environment: dict[str, str] | None = None) -> Iterator[None]:
    """Run a server with all that it starts, from the moment that it listens."""
    with subprocess.Popen(  # noqa: S603 - Debian's
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
    ) as server:
        try:
            while True:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                if server.poll() is not None:
                    sys.exit(f"{command[0]} ended with status {server.returncode}")
                time.sleep(0.05)
            yield
        finally:
            os.killpg(server.pid, signal.SIGTERM)


def run_part(python: str, contestant: str, tasks: int, folder: Path, part: str, *, factor: int) -> dict[str, Any]:
    """Run one part of the workload in a process of its own, and return its figures; "killed" is killed on its way.

    Raises:
        TooLateError: The tasks came due before all of them were created.
        LookupError: The process failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(  # noqa: S603 - this file
        (python, __file__, contestant, str(folder), str(tasks), part, str(factor)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "STARTED": str(time.time())},
    ) as process:
        while part == "killed" and process.poll() is None:
            time.sleep(0.005)
            if len(read_calls(folder)) > tasks // 3:
                process.send_signal(signal.SIGKILL)
                return {}
        printed, errors = process.communicate()
    if process.returncode == TOO_LATE:
        raise TooLateError
    if process.returncode:
        print(f"{contestant} failed in {part!r}:\n{printed[-1000:]}{errors[-3000:]}", file=sys.stderr)
        raise LookupError(contestant)
    figures: dict[str, Any] = json.loads(printed.strip().splitlines()[-1])
    return figures


def read_calls(folder: Path) -> list[str]:
    """Return the beginnings and ends of handlers that a folder's processes have written down."""
    return (folder / LOG).read_text("ascii").split() if (folder / LOG).exists() else []


def count_calls(folder: Path, tasks: int) -> dict[str, int]:
    """Return how many handlers never returned, in either process, and how many were called twice."""
    calls = Counter(read_calls(folder))
    numbers = range(WAITING_FROM, WAITING_FROM + tasks)
    return {
        "unfinished": sum(not calls[f"{number}end"] for number in numbers),
        "twice": sum(calls[str(number)] > 1 for number in numbers),
    }


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
    """An app that is embedded in this process, in a folder."""

    def __init__(self, folder: Path) -> None:
        from cloudsched import App, Schedule, Settings, embedded  # noqa: PLC0415 - of this contestant's environment

        self.once = Schedule.once
        self.app = App()
        self.embedded = embedded(self.app, folder, settings=Settings(secret="a secret of this benchmark"))

        @self.app.handler("note")
        def handle(payload: dict[str, int]) -> None:
            note(payload["number"])

    def start(self) -> None:
        """Start it."""
        self.embedded.start()

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
    """Delayed workflows on a queue; its system database in SQLite, its default, or in PostgreSQL."""

    def __init__(self, folder: Path, *, in_postgres: bool = False) -> None:
        import dbos  # type: ignore[import-not-found]  # noqa: PLC0415 - of this contestant's environment

        self.dbos = dbos
        server = f"postgresql://postgres@{os.environ.get('SERVER')}"
        database = f"{server}/{folder.name}" if in_postgres else f"sqlite:///{folder / 'dbos.db'}"
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
    """Its SQLite storage, synced at each commit; one consumer with worker threads in the process."""

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


class CeleryWorker:
    """Tasks with an ETA, acknowledged after they have run, through durable queues; a worker of threads in the process.

    Its messages are persistent unless told otherwise. RabbitMQ confirms each as soon as it is on the disk.
    """

    def __init__(self, folder: Path, *, on_rabbitmq: bool) -> None:
        import celery  # noqa: PLC0415 - of this contestant's environment

        database = ("work", "restart", "killed").index(folder.name)
        server = os.environ["SERVER"]
        broker = f"amqp://guest:guest@{server}//" if on_rabbitmq else f"redis://{server}/{database}"
        self.app = celery.Celery("benchmark", broker=broker)
        self.app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, worker_prefetch_multiplier=1)
        self.app.conf.update(task_default_queue=folder.name, task_ignore_result=True, timezone="UTC")
        if on_rabbitmq:
            self.app.conf.broker_transport_options = {"confirm_publish": True}
        self.task = self.app.task(note, name="note")

    def start(self) -> None:
        """Start the worker."""
        worker = self.app.WorkController(pool="threads", concurrency=10, loglevel="ERROR", quiet=True)
        threading.Thread(target=worker.start, daemon=True).start()

    def create(self, number: int, due_at: float) -> None:
        """Send a task."""
        self.task.apply_async((number,), eta=datetime.fromtimestamp(due_at, UTC))


# ── The workload ─────────────────────────────────────────────────────────────────────────────────────────────────

_RAN_AT: dict[int, float] = {}
_LOCK = threading.Lock()
LOG = "calls"
_log: int | None = None


def note(number: int) -> None:
    """Record that a task's handler was called; only the first call counts."""
    with _LOCK:
        _RAN_AT.setdefault(number, time.time())
    if _log is not None:
        os.write(_log, f"{number}\n".encode())
    if number >= WAITING_FROM:
        time.sleep(WAIT_SECONDS)
    if _log is not None:
        os.write(_log, f"{number}end\n".encode())


class Workload:
    """The parts of the workload: ``work`` creates tasks and runs them; ``leave`` and ``restart`` share a folder."""

    def __init__(self, contestant: Contestant, folder: Path, tasks: int, factor: int) -> None:
        self.contestant, self.folder, self.tasks, self.factor = contestant, folder, tasks, factor
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
        while known < self.tasks and time.time() - latest < RESTART_SECONDS:
            time.sleep(0.01)
            if len(_RAN_AT) > known:
                latest, known = time.time(), len(_RAN_AT)
        ran_at = list(_RAN_AT.values()) or [latest]
        first = min(ran_at) - float(os.environ["STARTED"])
        return {"restarted": len(ran_at) / (max(ran_at) - started_at), "unstarted": self.tasks - known, "first": first}

    def killed(self) -> NoReturn:
        """Run tasks that wait, until the process is killed."""
        self._start()
        self._create_all(WAITING_FROM)
        while True:
            time.sleep(1)

    def recover(self) -> dict[str, float]:
        """Run what another process has left, until nothing has been called for long."""
        started_at = latest = time.time()
        self.contestant.start()
        known = ended = 0
        while ended < self.tasks and time.time() - latest < KILL_SECONDS:
            time.sleep(0.1)
            calls = set(read_calls(self.folder))
            ended = sum(call.endswith("end") for call in calls)
            if len(calls) > known:
                latest, known = time.time(), len(calls)
        return {"recovered": max(_RAN_AT.values(), default=math.nan) - started_at}

    def _start(self) -> None:
        """Start the contestant, and estimate how long a creation takes."""
        self.contestant.start()
        start = time.time()
        for number in range(TRIAL_TASKS):
            self.contestant.create(-1 - number, start + 3600)
        self.per_task = (time.time() - start) / TRIAL_TASKS

    def _choose_due_time(self, count: int) -> float:
        return time.time() + max(3.0, self.factor * count * self.per_task)

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
    kinds: dict[str, Callable[[Path], Contestant]] = {
        OURS: Cloudsched,
        "APScheduler": APScheduler,
        "Celery, RabbitMQ": partial(CeleryWorker, on_rabbitmq=True),
        "Celery, Redis": partial(CeleryWorker, on_rabbitmq=False),
        "DBOS": Dbos,
        "DBOS, PostgreSQL": partial(Dbos, in_postgres=True),
        "huey": Huey,
    }
    global _log  # noqa: PLW0603 - of this process
    if part in {"killed", "recover"}:
        _log = os.open(Path(folder) / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    workload = Workload(kinds[name](Path(folder)), Path(folder), int(tasks), int(factor))
    parts = {"work": workload.work, "leave": workload.leave, "restart": workload.restart}
    parts |= {"killed": workload.killed, "recover": workload.recover}
    print(json.dumps({"version": version(name.partition(",")[0]), **parts[part]()}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in STORES:
        run_contestant(*sys.argv[1:])
    main()
