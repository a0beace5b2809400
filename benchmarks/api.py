"""Requests a second, and how long they take: the API under its production server, beside the bare floor.

    python -m benchmarks.api [--seconds 4] [--rounds 5] [--connections 8]

Both are functions started as the buildpack starts them (functions-framework: gunicorn, one process, threads), over
Google's Firestore emulator and the local Cloud Tasks, which share the machine's cores with them and with the client.
The floor makes the same Firestore and Cloud Tasks calls by Google's clients, and does nothing else. Turn by turn.
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

from benchmarks.local_services import services
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
THREADS = 8
SOURCES = {"cloudsched": HERE / "api_product.py", "floor": HERE / "api_floor.py"}
PAGE = 20

Ask = tuple[str, str, str | None]
"""Method, path and body."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=8)
    arguments = parser.parse_args()
    taken: dict[tuple[str, str], list[float]] = {}
    rates: dict[tuple[str, str], list[float]] = {}
    with services() as service, ExitStack() as servers:
        settings = {
            **service.settings.to_environment(),
            "FIRESTORE_EMULATOR_HOST": service.firestore,
            "CLOUDSCHED_OPEN": "on",
        }
        ports = {name: servers.enter_context(served(path, settings)) for name, path in SOURCES.items()}
        names = {name: fill_store(port) for name, port in ports.items()}
        for _ in range(arguments.rounds):
            for kind in ("create", "get", "list"):
                for name, port in ports.items():
                    next_ask = asks(kind, names[name])
                    seconds, rate = load(port, next_ask, arguments.connections, arguments.seconds)
                    taken.setdefault((kind, name), []).extend(seconds)
                    rates.setdefault((kind, name), []).append(rate)
    show(taken, rates)


@contextmanager
def served(source: Path, environment: dict[str, str]) -> Iterator[int]:
    """Run a function under the production server."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    program = Path(sys.executable).with_name("functions-framework")
    command = (str(program), "--target=api", f"--source={source}", f"--port={port}", "--host=127.0.0.1")
    whole = {**os.environ, **environment, "THREADS": str(THREADS), "PYTHONPATH": str(HERE.parent)}
    process = subprocess.Popen(command, env=whole, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        _wait_for(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, "the server has ended"
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError("the server does not listen")


def new_task() -> str:
    """Return the body of a creation."""
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
    """Create some tasks to be read, and return their ids; it warms the server up as well."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    found = []
    for _ in range(200):
        status, content = send(connection, ("POST", "/v1/tasks", new_task()))
        while status == http.client.SERVICE_UNAVAILABLE:  # the emulator is still starting, on a busy machine
            status, content = send(connection, ("POST", "/v1/tasks", new_task()))
        assert status in {200, 201}, content
        found.append(json.loads(content)["id"])
        send(connection, ("GET", f"/v1/tasks/{found[-1]}", None))
    connection.close()
    return found


def asks(kind: str, names: list[str]) -> Callable[[int], Ask]:
    """Return what to ask for, by the number of the request."""
    body = new_task()
    return {
        "create": lambda _: ("POST", "/v1/tasks", body),
        "get": lambda number: ("GET", f"/v1/tasks/{names[number % len(names)]}", None),
        "list": lambda _: ("GET", f"/v1/tasks?owner=ada&pageSize={PAGE}", None),
    }[kind]


def send(connection: http.client.HTTPConnection, ask: Ask) -> tuple[int, bytes]:
    """Send one request on a connection that stays open."""
    method, path, body = ask
    connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
    response = connection.getresponse()
    return response.status, response.read()


def load(port: int, next_ask: Callable[[int], Ask], connections: int, seconds: float) -> tuple[list[float], float]:
    """Ask on some connections for some seconds; return how long each request took, and how many there were a second."""
    taken: list[float] = []
    failed: list[str] = []
    until = time.perf_counter() + seconds

    def work(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        number = first
        while (began := time.perf_counter()) < until:
            status, content = send(connection, next_ask(number))
            taken.append(time.perf_counter() - began)
            if status not in {200, 201}:
                failed.append(f"{status} {content[:300]!r}")
            number += connections
        connection.close()

    threads = [threading.Thread(target=work, args=(first,)) for first in range(connections)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
    return taken, len(taken) / (time.perf_counter() - began)


def show(taken: dict[tuple[str, str], list[float]], rates: dict[tuple[str, str], list[float]]) -> None:
    """Print what was measured."""
    title = f"{os.cpu_count()} cores, gunicorn with {THREADS} threads, Firestore emulator; a list has {PAGE} tasks"
    table = Table(title=title)
    for heading in ("", "requests/s", "p50 ms", "p99 ms", "of the floor's requests/s"):
        table.add_column(heading, justify="right" if heading else "left")
    for (kind, name), seconds in taken.items():
        hundredths = statistics.quantiles(seconds, n=100)
        rate: Any = statistics.median(rates[kind, name])
        share = rate / statistics.median(rates[kind, "floor"])
        cells = (f"{rate:.0f}", f"{hundredths[49] * 1e3:.1f}", f"{hundredths[98] * 1e3:.1f}", f"{share:.2f}")
        table.add_row(f"{kind}: {name}", *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
