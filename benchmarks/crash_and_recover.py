"""Kill processes of the real stack at random, then count the occurrences that were due, done, duplicated and lost.

    python benchmarks/crash_and_recover.py [--seconds 60] [--kills N] [--store sqlite|firestore] [--seed 0]

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

    python -m benchmarks.crash_and_recover --joined 10000 [--kills 100]

This makes orders with google-cloud-firestore, whose transactions and batches carry tasks (`App.joining`). Processes
contend for few stocks, and are killed at random. Some transactions raise, and some edit or cancel the task of an
earlier order. Then what Firestore and Cloud Tasks have is compared, each dispatch is delivered twice, and a sweep runs.
A transaction in eight locks its stock. The others fail at their commit if it has changed meanwhile, and are made again:
where two that have locked a stock wait for each other, Google's emulator aborts both, after two seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from benchmarks.local_services import run_firestore
from google.api_core.exceptions import Aborted, AlreadyExists, FailedPrecondition, GoogleAPICallError
from google.cloud import firestore, tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport
from tests.harness import free_port

from cloudsched import App, Execution, RetryPolicy, Schedule, Settings, Task
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.firestore.own_client import TaskReference
from cloudsched.adapters.google.cloud_tasks import TOKEN_HEADER, list_queue_ids
from cloudsched.emulator import CloudTasksEmulator
from cloudsched.emulator.model.faults import Faults

if TYPE_CHECKING:
    from cloudsched.engine.ports.queue import QueueMessage

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
                catch_up="ALL",
                overlap="ALLOW",
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
        port = free_port()
        settings = Settings(project="demo-chaos", secret="benchmarks have no secrets")
        location = f"projects/{settings.project}/locations/{settings.location}"
        queues = [f"{location}/queues/{each}" for each in list_queue_ids(settings.queue)]
        faults = Faults(
            duplicate=0.05, out_of_order=0.2, drop_answer=0.05, shuffle_within=timedelta(seconds=0.5), seed=seed
        )
        emulator = stack.enter_context(CloudTasksEmulator(queues=queues, faults=faults))
        address = stack.enter_context(run_firestore()) if store == "firestore" else None
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


# ── Orders and their tasks in one commit ─────────────────────────────────────────────────────────────────────────

BUYERS, STOCKS, LOCKED_STOCKS = 4, 3, 8
DUE_IN = timedelta(hours=6)
"""When the tasks of orders are due: after the end of any run, so that the queue still has each dispatch then."""
SECOND = timedelta(seconds=1)
FATES = {"batch": 0.2, "raises": 0.15, "edits": 0.15, "cancels": 0.1, "creates": 0.4}
"""What a transaction does beside creating an order, and how often."""


@dataclass(frozen=True)
class Market:
    """Where orders are made, as a process needs it. Each attempt is noted in a file before it reads anything."""

    settings: Settings
    folder: Path
    due: datetime

    def open(self, **parts: Any) -> App:
        """Return an app whose handler appends a line for each call."""
        app = App(self.settings, **parts)

        @app.handler("ship")
        def ship(payload: dict[str, str]) -> None:
            with (self.folder / "shipped").open("a") as marks:
                marks.write(f"{payload['task']}\n")

        return app

    def buy(self, numbers: range, notes: Path) -> None:
        """Make orders, from the one on that was noted last."""
        last = read_notes(notes)[-1:]
        app, client = self.open(), firestore.Client(self.settings.project)
        for number in range(int(last[0][0]) if last else numbers.start, numbers.stop, numbers.step):
            while not self._try(app, client, number, partial(self._note, notes, number)):
                pass
        self._note(notes, numbers.stop, b"")
        app.close()

    def _try(self, app: App, client: firestore.Client, number: int, note: Callable[[bytes], None]) -> bool:
        """Make an order; return whether it is made, or was not to be. Otherwise others were faster."""
        try:
            if fate_of(number) == "batch":
                note(b"")
                self._order_by_batch(app, client, number)
            else:
                order: Callable[..., None] = firestore.transactional(self._order)
                order(client.transaction(max_attempts=50), app, client, number, note)
        except (LookupError, AlreadyExists):  # it raises, or a process made it that was killed
            return True
        except (Aborted, FailedPrecondition):
            return False
        return True

    @staticmethod
    def _note(notes: Path, number: int, transaction: bytes) -> None:
        with notes.open("a") as file:
            file.write(f"{number} {transaction.hex()} .\n")

    def _create(self, app: App, number: int) -> list[str]:
        names = [f"{number}-{os.urandom(4).hex()}" for _ in range(3 if number % 10 == 0 else 1)]
        schedule = Schedule.once(self.due)
        for name in names:
            app.create(id=name, owner="ada", title="Ship", handler="ship", payload={"task": name}, schedule=schedule)
        return names

    def _order_by_batch(self, app: App, client: firestore.Client, number: int) -> None:
        batch, stock = client.batch(), number % STOCKS  # it locks nothing
        tasks = self._create(app.joining(batch), number)
        batch.create(client.document(f"orders/{number}"), {"stock": stock, "tasks": tasks})
        batch.update(client.document(f"stocks/{stock}"), {"sold": firestore.Increment(1)})
        batch.commit()

    def _order(
        self,
        transaction: firestore.Transaction,
        app: App,
        client: firestore.Client,
        number: int,
        note: Callable[[bytes], None],
    ) -> None:
        note(transaction.id)
        stock_id = number % STOCKS if number % 8 else STOCKS + number // 8 % LOCKED_STOCKS
        order, stock = client.document(f"orders/{number}"), client.document(f"stocks/{stock_id}")
        if order.get(transaction=transaction).exists:
            return  # made before this process was killed
        found_stock = stock.get(transaction=None if number % 8 else transaction)
        unchanged = client.write_option(last_update_time=found_stock.update_time)
        fate, joined = fate_of(number), app.joining(transaction)
        earlier = client.document(f"orders/{random.Random(number).randrange(max(1, number))}")  # noqa: S311 - the same again
        if fate in {"edits", "cancels"}:
            found = earlier.get(transaction=transaction).to_dict()
            if found is not None and "cancels" not in found:
                if fate == "edits":
                    joined.update(found["tasks"][0], title=str(number), schedule=Schedule.once(self.due + SECOND))
                else:
                    joined.cancel(found["tasks"][0])
                transaction.update(earlier, {fate: str(number)})
        tasks = self._create(joined, number)
        transaction.create(order, {"stock": stock_id, "tasks": tasks})
        transaction.update(stock, {"sold": found_stock.get("sold") + 1}, unchanged if number % 8 else None)
        if fate == "raises":
            raise LookupError

    def deliver(self, messages: list[tuple[bytes, str]]) -> None:
        """Be an executor, once the tasks are due: run each dispatch, and the whole a second time."""
        app = self.open(clock=ManualClock(self.due + 10 * SECOND))
        for body, token in messages * 2:
            app.deliver(body, token)
        app.close()


class Taken:
    """A queue that keeps what it takes."""

    def __init__(self) -> None:
        self.messages: list[tuple[bytes, str]] = []

    def create(self, message: QueueMessage) -> None:
        """Keep it."""
        self.messages.append((message.body, message.token))

    def close(self) -> None:
        """Do nothing."""


def fate_of(number: int) -> str:
    """Return what the transaction of an order does: the same each time it is tried."""
    return random.Random(number).choices(list(FATES), list(FATES.values()))[0]  # noqa: S311 - so it says


def read_notes(notes: Path) -> list[list[str]]:
    """Return the numbers and transactions that a process has noted, but not a line that its death cut off."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [line.split(" ") for line in lines if line.endswith(" .")]


def run_joined(transactions: int, kills: int) -> dict[str, Any]:
    """Make orders while processes are killed; return the counts, and what is broken."""
    context, rng, begin = get_context("forkserver"), random.Random(0), time.monotonic()  # noqa: S311 - a seed
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cloudsched-")))
        settings = Settings(project=f"demo-{os.urandom(4).hex()}", secret="benchmarks have no secrets")
        queue = f"projects/{settings.project}/locations/{settings.location}/queues/{settings.queue}"
        emulator = stack.enter_context(CloudTasksEmulator(queues=[queue]))
        address = stack.enter_context(run_firestore())
        settings = replace(
            settings,
            store="firestore",
            firestore_emulator=address,
            executor_url="http://127.0.0.1:9",
            tasks_emulator=emulator.address,
        )
        os.environ["FIRESTORE_EMULATOR_HOST"] = address
        market = Market(settings, folder, datetime.now(UTC).replace(microsecond=0) + DUE_IN)
        client = firestore.Client(settings.project)
        for stock in range(STOCKS + LOCKED_STOCKS):
            client.document(f"stocks/{stock}").set({"sold": 0})
        buyers = [(range(each, transactions, BUYERS), folder / f"buyer-{each}") for each in range(BUYERS)]

        def start(buyer: int) -> Any:  # noqa: ANN401 - multiprocessing has no public name for it
            process = context.Process(target=market.buy, args=buyers[buyer])
            process.start()
            return process

        processes = {buyer: start(buyer) for buyer in range(BUYERS)}
        killed = 0
        while any(process.is_alive() for process in processes.values()):
            begun = sum(len({number for number, *_ in read_notes(notes)}) for _, notes in buyers)
            if killed < kills and begun >= transactions * (killed + rng.random()) / (kills + 1):
                buyer = rng.choice([each for each, process in processes.items() if process.is_alive()])
                time.sleep(rng.uniform(0, 0.02))
                processes[buyer].kill()
                processes[buyer].join()
                end_transaction(client, buyers[buyer][1])
                killed += processes[buyer].exitcode == -signal.SIGKILL
                processes[buyer] = start(buyer)
            time.sleep(0.1)
        failed = [f"buyer {each} ended with {one.exitcode}" for each, one in processes.items() if one.exitcode]
        attempts = sum(len(read_notes(notes)) - 1 for _, notes in buyers)
        counts, broken = compare(market, client, transactions, list_dispatches(emulator.address, queue))
    seconds = round(time.monotonic() - begin)
    counts = {"transactions": transactions, "attempts": attempts, "kills": killed, **counts, "seconds": seconds}
    return {**counts, "broken": failed + broken}


def end_transaction(client: firestore.Client, notes: Path) -> None:
    """Roll back what a killed process has begun. Firestore would hold its documents for a minute, until it expires."""
    last = read_notes(notes)[-1:]
    if last and last[0][1]:
        name = {"database": client._database_string, "transaction": bytes.fromhex(last[0][1])}  # noqa: SLF001 - it has no other
        with suppress(GoogleAPICallError):  # it has ended
            client._firestore_api.rollback(name)  # noqa: SLF001 - the library offers it to the transaction's owner only


def list_dispatches(address: str, queue: str) -> list[tuple[bytes, str]]:
    """Return the bodies and tokens of all that Cloud Tasks has taken."""
    channel = grpc.insecure_channel(address)
    tasks = tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=channel))
    requests = [each.http_request for each in tasks.list_tasks(request={"parent": queue, "response_view": 2})]
    return [(each.body, each.headers[TOKEN_HEADER]) for each in requests]


def compare(
    market: Market, client: firestore.Client, transactions: int, dispatches: list[tuple[bytes, str]]
) -> tuple[dict[str, int], list[str]]:
    """Compare the orders with their tasks and dispatches, run what is due, and return the counts and what is broken."""
    orders = {int(each.id): each.to_dict() or {} for each in client.collection("orders").stream()}
    found = [TaskReference.to_task(each) for each in client.collection("tasks").stream()]
    tasks = {each.id: each for each in found if each is not None}
    ordered = [name for order in orders.values() for name in order["tasks"]]
    expected = {number for number in range(transactions) if fate_of(number) != "raises"}
    sold = Counter(order["stock"] for order in orders.values())
    stocks = [client.document(f"stocks/{each}").get().get("sold") for each in range(STOCKS + LOCKED_STOCKS)]
    sent = {json.loads(body)["taskId"] for body, _ in dispatches}
    cancelled = {order["tasks"][0] for order in orders.values() if "cancels" in order}
    edited = {order["tasks"][0]: order["edits"] for order in orders.values() if "edits" in order}
    broken = {
        "orders that are lost": expected - orders.keys(),
        "orders of a transaction that raised": orders.keys() - expected,
        "orders without a task": set(ordered) - tasks.keys(),
        "tasks without an order": tasks.keys() - set(ordered),
        "dispatches for no task": sent - tasks.keys(),
        "cancels": {name for name, each in tasks.items() if (each.status == "CANCELLED") != (name in cancelled)},
        "edits": {name for name, each in tasks.items() if each.title != edited.get(name, "Ship")},
        "stocks": {each for each in range(STOCKS + LOCKED_STOCKS) if stocks[each] != sold[each]},
    }
    due = tasks.keys() - cancelled
    current = {(name, tasks[name].revision) for name in due}
    unsent = current - {(each["taskId"], each["revision"]) for each in (json.loads(body) for body, _ in dispatches)}
    run_all(market, dispatches)
    repairs = 0
    app = market.open(dispatcher=(taken := Taken()), clock=ManualClock(market.due + timedelta(minutes=2)))
    while app.sweep() is not None and taken.messages:
        repairs += len(taken.messages)
        run_all(market, taken.messages)
        taken.messages.clear()
        app.container.clock.advance(timedelta(minutes=1))  # type: ignore[attr-defined]  # it is the one above
    app.close()
    ran = Counter((market.folder / "shipped").read_text().split())
    broken["runs"] = {name for name in tasks.keys() | ran.keys() if ran[name] != (name in due)}
    counts = {
        "orders": len(orders),
        "tasks": len(tasks),
        "edited": len(edited),
        "cancelled": len(cancelled),
        "dispatches": len(dispatches),
        "due, with no dispatch after a kill": len(unsent),
        "sent by the sweep": repairs,
        "run once": sum(count == 1 for count in ran.values()),
    }
    return counts, [f"{name}: {sorted(those)[:5]}" for name, those in broken.items() if those]


def run_all(market: Market, messages: list[tuple[bytes, str]]) -> None:
    """Run dispatches in two executors."""
    with get_context("forkserver").Pool(2) as pool:
        pool.map(market.deliver, [messages[::2], messages[1::2]])


def main() -> None:
    """Run, print the counts, and exit with 1 if an occurrence was lost or duplicated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long work comes due, and processes are killed")
    parser.add_argument("--kills", type=int, help="how many executors are killed instead, however long that takes")
    parser.add_argument("--store", choices=("sqlite", "firestore"), default="firestore")
    parser.add_argument("--seed", type=int, default=0, help="seed of the kills and of the queue's faults")
    parser.add_argument("--joined", type=int, metavar="N", help="make so many orders with tasks instead, in one commit")
    options = parser.parse_args()
    if options.joined is None:
        counts = run(options.seconds, options.store, options.seed, options.kills)
    else:
        counts = run_joined(options.joined, 100 if options.kills is None else options.kills)
    print(json.dumps(counts))
    sys.exit(any(counts.get(name) for name in ("lost", "duplicated", "broken")))


if __name__ == "__main__":
    main()
