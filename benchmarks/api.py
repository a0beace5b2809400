"""Measure the API under its production server: requests per second and their durations, compared with a floor.

    python -m benchmarks.api [--seconds 4] [--rounds 5] [--connections 8]

Both are functions, started as the buildpack starts them (functions-framework: gunicorn, one process, threads). They use
Google's Firestore emulator and the local Cloud Tasks, which share the machine's cores with them and with the client.
The floor makes the same Firestore and Cloud Tasks calls by Google's clients, and does nothing else. Both servers are
measured in alternation.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.local_services import run_services
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
THREADS = 8
SOURCES = {"cloudsched": HERE / "api_product.py", "floor": HERE / "api_floor.py"}
PAGE = 20

RequestParts = tuple[str, str, str | None]
"""Method, path and body."""


def main() -> None:
    """Measure both servers and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4, help="how long each measurement takes")
    parser.add_argument("--rounds", type=int, default=5, help="how often each measurement is repeated")
    parser.add_argument("--connections", type=int, default=8, help="how many connections send requests at once")
    arguments = parser.parse_args()
    durations: dict[tuple[str, str], list[float]] = {}
    rates: dict[tuple[str, str], list[float]] = {}
    with run_services() as service, ExitStack() as servers:
        settings = {
            **service.settings.to_environment(),
            "FIRESTORE_EMULATOR_HOST": service.firestore,
            "CLOUDSCHED_OPEN": "on",
        }
        ports = {name: servers.enter_context(run_server(path, settings)) for name, path in SOURCES.items()}
        ids_by_server = {name: fill_store(port) for name, port in ports.items()}
        for _ in range(arguments.rounds):
            for kind in ("create", "get", "list"):
                for name, port in ports.items():
                    next_request = make_requests(kind, ids_by_server[name])
                    seconds, rate = measure_load(port, next_request, arguments.connections, arguments.seconds)
                    durations.setdefault((kind, name), []).extend(seconds)
                    rates.setdefault((kind, name), []).append(rate)
    show_figures(durations, rates)


@contextmanager
def run_server(source: Path, environment: dict[str, str]) -> Iterator[int]:
    """Run a function under the production server; yield its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    program = Path(sys.executable).with_name("functions-framework")
    command = (str(program), "--target=api", f"--source={source}", f"--port={port}", "--host=127.0.0.1")
    full_environment = {**os.environ, **environment, "THREADS": str(THREADS), "PYTHONPATH": str(HERE.parent)}
    process = subprocess.Popen(command, env=full_environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        _wait_for_server(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_for_server(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server has exited"
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("the server does not accept connections")


def make_task_body() -> str:
    """Return the request body that creates a task."""
    at = datetime.now(UTC) + timedelta(days=1)
    task = {
        "owner": "ada",
        "title": "Is the site up?",
        "handler": "check",
        "payload": {"url": "https://example.com/health"},
        "schedule": {"at": at.isoformat()},
    }
    return json.dumps(task)


def fill_store(port: int) -> list[str]:
    """Create the tasks that the benchmark reads, and return their ids. This also warms the server up."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    ids = []
    for _ in range(200):
        status, content = send(connection, ("POST", "/v1/tasks", make_task_body()))
        while status == http.client.SERVICE_UNAVAILABLE:  # the emulator is still starting, on a busy machine
            status, content = send(connection, ("POST", "/v1/tasks", make_task_body()))
        assert status in {200, 201}, content
        ids.append(json.loads(content)["id"])
        send(connection, ("GET", f"/v1/tasks/{ids[-1]}", None))
    connection.close()
    return ids


def make_requests(kind: str, ids: list[str]) -> Callable[[int], RequestParts]:
    """Return a function from the number of a request to the request."""
    body = make_task_body()
    return {
        "create": lambda _: ("POST", "/v1/tasks", body),
        "get": lambda number: ("GET", f"/v1/tasks/{ids[number % len(ids)]}", None),
        "list": lambda _: ("GET", f"/v1/tasks?owner=ada&pageSize={PAGE}", None),
    }[kind]


def send(connection: http.client.HTTPConnection, parts: RequestParts) -> tuple[int, bytes]:
    """Send one request on a connection that stays open."""
    method, path, body = parts
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    response = connection.getresponse()
    return response.status, response.read()


def measure_load(
    port: int, next_request: Callable[[int], RequestParts], connections: int, seconds: float
) -> tuple[list[float], float]:
    """Send requests on several connections; return the seconds of each request, and the requests per second."""
    durations: list[float] = []
    failed: list[str] = []
    deadline = time.perf_counter() + seconds

    def send_until_deadline(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        number = first
        while (start := time.perf_counter()) < deadline:
            status, content = send(connection, next_request(number))
            durations.append(time.perf_counter() - start)
            if status not in {200, 201}:
                failed.append(f"{status} {content[:300]!r}")
            number += connections
        connection.close()

    threads = [threading.Thread(target=send_until_deadline, args=(first,)) for first in range(connections)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
    return durations, len(durations) / (time.perf_counter() - start)


def show_figures(durations: dict[tuple[str, str], list[float]], rates: dict[tuple[str, str], list[float]]) -> None:
    """Print the table of requests per second and durations."""
    title = f"{os.cpu_count()} cores, gunicorn with {THREADS} threads, Firestore emulator; a list has {PAGE} tasks"
    table = Table(title=title)
    for heading in ("", "requests/s", "p50 ms", "p99 ms", "requests/s / floor"):
        table.add_column(heading, justify="right" if heading else "left")
    for (kind, name), seconds in durations.items():
        percentiles = statistics.quantiles(seconds, n=100)
        rate: Any = statistics.median(rates[kind, name])
        share = rate / statistics.median(rates[kind, "floor"])
        cells = (f"{rate:.0f}", f"{percentiles[49] * 1e3:.1f}", f"{percentiles[98] * 1e3:.1f}", f"{share:.2f}")
        table.add_row(f"{kind}: {name}", *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
