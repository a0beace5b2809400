"""Measure how many executions a second one executor process runs, by its number of threads, of a handler that waits.

    python -m benchmarks.threads [--threads 1 8 32] [--wait 0.2] [--seconds 5] [--json]

The executor is the deployed function, started as the buildpack starts it (functions-framework: gunicorn, with
`THREADS`), over Google's Firestore emulator and the local Cloud Tasks. Its handler sleeps, as one that waits for a
service does. As many clients as there are threads deliver dispatches of recurring tasks that are due, each once; each
execution is claimed, run and recorded (which is checked), and its next occurrence is dispatched.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.local_services import Services, run_services
from rich.console import Console
from rich.table import Table

from cloudsched import App, ExecutionStatus, Schedule
from cloudsched.adapters.firestore.store import FirestoreStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.engine.ports.queue import QueueMessage

SOURCE = """import os
import time

import functions_framework

from cloudsched import App
from cloudsched.adapters.clocks import SystemClock
from cloudsched.web.functions import serve_execute

app = App(clock=SystemClock())  # not the queue's clock, which is asked over HTTP

@app.handler("wait")
def wait() -> None:
    time.sleep(float(os.environ["WAIT_SECONDS"]))

@functions_framework.http
def execute(request):
    return serve_execute(app, request)
"""
MOST = 600
"""How many executions one measurement has at most."""


class CollectingDispatcher:
    """A dispatcher that only keeps the messages, which the benchmark delivers."""

    def __init__(self) -> None:
        self.messages: list[QueueMessage] = []

    def create(self, message: QueueMessage) -> None:
        """Keep the message."""
        self.messages.append(message)

    def close(self) -> None:
        """Do nothing."""


def main() -> None:
    """Measure each number of threads and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8, 32], help="the executor's threads, in turn")
    parser.add_argument("--wait", type=float, default=0.2, help="how many seconds the handler waits")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long ideal threads would take each time")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rates = {}
    with run_services() as services, tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "main.py"
        source.write_text(SOURCE, "utf-8")
        for threads in options.threads:
            count = min(MOST, max(20, round(threads * options.seconds / options.wait)))
            messages = prepare(services, count)
            with run_executor(services, source, threads, options.wait) as port:
                rates[threads] = deliver_all(port, messages, threads)
            require_success(services, messages)
    rows = [
        {"threads": threads, "executionsPerSecond": round(rate, 1), "ratio": round(rate / rates[options.threads[0]], 1)}
        for threads, rate in rates.items()
    ]
    if options.json:
        print(json.dumps({"waitSeconds": options.wait, "rows": rows}))
        return
    table = Table(title=f"Executions a second in one process, of a handler that waits {options.wait:g} s")
    for heading in ("threads", "a second", f"times {options.threads[0]} thread"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(width=90).print(table)


def prepare(services: Services, count: int) -> list[QueueMessage]:
    """Store so many hourly tasks that are due, and return their dispatches."""
    allowance = timedelta(seconds=5 + count / 50)
    while True:  # until all are created before they are due: else their first occurrence would be an hour later
        queue = CollectingDispatcher()
        with open_store(services) as store:
            app = App(services.settings, store=store, dispatcher=queue)
            app.handler("wait")(lambda: None)
            start = (datetime.now(UTC) + allowance).replace(microsecond=0)
            hourly = Schedule(rrule="FREQ=HOURLY", dtstart=start.replace(tzinfo=None).isoformat())
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda _: app.create(handler="wait", schedule=hourly), range(count)))  # noqa: B023 - used here
        if datetime.now(UTC) < start:
            time.sleep((start - datetime.now(UTC)).total_seconds())
            return queue.messages
        allowance *= 3


@contextmanager
def open_store(services: Services) -> Iterator[FirestoreStore]:
    """Yield the services' store, which waits for as long as a busy machine takes."""
    deadline = timedelta(minutes=1)
    store = FirestoreStore(project=str(services.settings.project), emulator=services.firestore, deadline=deadline)
    try:
        yield store
    finally:
        store.close()


def require_success(services: Services, messages: Sequence[QueueMessage]) -> None:
    """Require that each dispatch has run: one that is dropped is answered by a success, too."""

    def check(message: QueueMessage) -> None:
        body = json.loads(message.body)
        record = store.load_execution(body["taskId"], body["executionId"])
        assert record is not None, f"{message.name} has not run"
        assert record.status is ExecutionStatus.SUCCEEDED, record.status

    with open_store(services) as store, ThreadPoolExecutor(8) as pool:
        list(pool.map(check, messages))


@contextmanager
def run_executor(services: Services, source: Path, threads: int, wait: float) -> Iterator[int]:
    """Run the executor's process and yield its port, once it answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    program = Path(sys.executable).with_name("functions-framework")
    command = (str(program), "--target=execute", f"--source={source}", f"--port={port}", "--host=127.0.0.1")
    environment = {
        **os.environ,
        **services.settings.to_environment(),
        "FIRESTORE_EMULATOR_HOST": services.firestore,
        "CLOUDSCHED_OPEN": "on",
        "THREADS": str(threads),
        "WAIT_SECONDS": str(wait),
    }
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
    try:
        while not _is_ready(port):
            assert process.poll() is None, "the executor has exited"
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def _is_ready(port: int) -> bool:
    try:
        return _post(http.client.HTTPConnection("127.0.0.1", port, timeout=60), b"{}", "none") == 401
    except ConnectionError:
        return False


def deliver_all(port: int, messages: Sequence[QueueMessage], clients: int) -> float:
    """Deliver each dispatch once, by so many clients at a time; return the executions a second."""
    parts = [messages[number::clients] for number in range(clients)]

    def deliver(part: Sequence[QueueMessage]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        for message in part:
            status = _post(connection, message.body, message.token)
            assert 200 <= status < 300, status

    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(deliver, parts))
    return len(messages) / (time.perf_counter() - begun)


def _post(connection: http.client.HTTPConnection, body: bytes, token: str) -> int:
    headers = {"X-Cloudsched-Token": token, "Content-Type": "application/json"}
    connection.request("POST", "/", body, headers)
    response = connection.getresponse()
    response.read()
    return response.status


if __name__ == "__main__":
    main()
