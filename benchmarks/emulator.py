"""Compare the emulator with the `gcloud-tasks-emulator` package from PyPI, in one run.

    python -m benchmarks.emulator [--rounds 3]

The rival runs in an environment of its own (`benchmarks.machine`). Both get the same requests from the
same client (google-cloud-tasks over gRPC, plain synchronous calls) and deliver to the same trivial target. Eight queues
share the work, because Cloud Tasks limits each queue to 500 dispatches a second and our emulator enforces that limit.
The target is this file as well, in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped]
from benchmarks.machine import install_rivals
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PARENT = "projects/demo/locations/here"
QUEUES = [f"{PARENT}/queues/q{n}" for n in range(8)]
THREADS, TASKS = 4, 1000


def find_free_port() -> int:
    """Return a port on which nothing listens now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def run_server(command: list[str], port: int) -> Iterator[tuple[int, float]]:
    """Run a server; yield its process id and the seconds until it accepted calls."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        channel = grpc.insecure_channel(
            f"127.0.0.1:{port}",
            options=[
                ("grpc.max_reconnect_backoff_ms", 20),
                ("grpc.min_reconnect_backoff_ms", 20),
                ("grpc.initial_reconnect_backoff_ms", 10),
            ],
        )
        grpc.channel_ready_future(channel).result(timeout=30)
        channel.close()
        yield process.pid, time.perf_counter() - start
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def make_client(port: int) -> Any:  # noqa: ANN401 - the stubs refuse the documented dicts
    """Return a Cloud Tasks client of the server on that port."""
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    return tasks_v2.CloudTasksClient(transport=CloudTasksGrpcTransport(channel=channel))


def create_tasks(
    client: Any,  # noqa: ANN401 - see make_client
    url: str,
    count: int,
    at: Callable[[int], datetime | None],
) -> float:
    """Create tasks from several threads; return the seconds that it took."""

    def create_one(number: int) -> None:
        task: dict[str, Any] = {"http_request": {"url": f"{url}/{number}", "http_method": 1}}
        if (scheduled_at := at(number)) is not None:
            task["schedule_time"] = scheduled_at
        client.create_task(parent=QUEUES[number % len(QUEUES)], task=task)

    start = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(create_one, range(count), chunksize=16):
            pass
    return time.perf_counter() - start


def fetch(url: str) -> bytes:
    """Return the body of the response to a GET."""
    with urllib.request.urlopen(url, timeout=30) as response:  # noqa: S310 - our own loopback server
        return bytes(response.read())


def wait_for_arrivals(url: str, count: int) -> None:
    """Wait until the target has received that many tasks; raise TimeoutError after two minutes."""
    deadline = time.perf_counter() + 120
    while int(fetch(f"{url}/count")) < count:
        if time.perf_counter() > deadline:
            raise TimeoutError(f"only {fetch(f'{url}/count')!r} of {count} arrived")
        time.sleep(0.005)


def read_resident_kilobytes(pid: int) -> int:
    """Return the resident memory of a process, in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def read_processor_seconds(pid: int) -> float:
    """Return the processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def pick_best(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Return the best figure of the rounds for each name: the one that other load on the machine disturbed least."""
    names = rounds[0]
    return {name: (max if name.endswith("/s") else min)(figures[name] for figures in rounds) for name in names}


def measure_server(command: list[str], port: int, url: str) -> dict[str, float]:
    """Run a server and return all its figures by name."""
    figures: dict[str, float] = {}
    count = TASKS
    with run_server(command, port) as (pid, startup_seconds):
        figures["start-up, s"] = startup_seconds
        client = make_client(port)
        for name in QUEUES:
            client.create_queue(parent=PARENT, queue={"name": name})
        create_tasks(client, url, 200, lambda _n: None)  # warm-up
        wait_for_arrivals(url, 200)
        fetch(f"{url}/arrivals")
        in_an_hour = datetime.now(UTC) + timedelta(hours=1)
        before = read_resident_kilobytes(pid)
        figures["creates over gRPC, /s"] = count / create_tasks(client, url, count, lambda _n: in_an_hour)
        figures["memory for each waiting task, KB"] = (read_resident_kilobytes(pid) - before) / count
        start, processor_seconds_before = time.perf_counter(), read_processor_seconds(pid)
        create_tasks(client, url, count, lambda _n: None)
        wait_for_arrivals(url, count)
        figures["end to end, /s"] = count / (time.perf_counter() - start)
        figures["processor time, end to end, µs a task"] = (
            (read_processor_seconds(pid) - processor_seconds_before) / count * 1e6
        )
        fetch(f"{url}/arrivals")
        first = datetime.now(UTC) + timedelta(seconds=2)
        plan = [first + timedelta(milliseconds=10 * n) for n in range(500)]
        create_tasks(client, url, len(plan), lambda n: plan[n])
        wait_for_arrivals(url, len(plan))
        lateness = sorted(at - plan[int(number)].timestamp() for number, at in json.loads(fetch(f"{url}/arrivals")))
        figures["lateness at 100/s, p50 ms"] = statistics.median(lateness) * 1000
        figures["lateness at 100/s, p99 ms"] = lateness[int(len(lateness) * 0.99)] * 1000
    return figures


class Target(asyncio.Protocol):
    """Answers 200 at once, and records when each task arrived; HTTP/1.1 with a Content-Length or without a body.

    `GET /arrivals` returns and clears the record: a list of [the name in the path, seconds since the epoch].
    `GET /count` returns its length.
    """

    arrivals: list[tuple[str, float]] = []  # noqa: RUF012 - shared by all connections, on purpose

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Prepare for the requests of a new connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].decode("latin-1")
            length = 0
            for line in head.split("\r\n")[1:]:
                name, _, value = line.partition(":")
                if name.lower() == "content-length":
                    length = int(value)
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            path = head.split(" ", 2)[1]
            body = b""
            if path == "/arrivals":
                body = json.dumps(Target.arrivals).encode()
                Target.arrivals.clear()
            elif path == "/count":
                body = str(len(Target.arrivals)).encode()
            else:
                Target.arrivals.append((path[1:], time.time()))
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def serve_target() -> None:
    """Print the port of the target, and serve until killed."""
    server = await asyncio.get_running_loop().create_server(Target, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Measure both emulators and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often both are measured in alternation; the best round counts"
    )
    options = parser.parse_args()
    with ExitStack() as stack:
        rival = install_rivals().with_name("gcloud-tasks-emulator")
        target = subprocess.Popen((sys.executable, __file__, "target"), stdout=subprocess.PIPE, text=True)  # noqa: S603
        stack.callback(target.wait)
        stack.callback(target.terminate)
        assert target.stdout is not None
        url = f"http://127.0.0.1:{target.stdout.readline().strip()}"
        our_rounds, their_rounds = [], []
        for _ in range(options.rounds):
            port = find_free_port()
            our_rounds.append(
                measure_server([sys.executable, "-m", "cloudsched", "emulator", f"--port={port}"], port, url)
            )
            port = find_free_port()
            their_rounds.append(measure_server([str(rival), "start", "-q", "-p", str(port)], port, url))
        ours, theirs = pick_best(our_rounds), pick_best(their_rounds)
        print(f"{'':40}{'cloudsched':>12}{'rival':>12}{'ratio':>8}")
        for name, figure in ours.items():
            print(f"{name:40}{figure:12.2f}{theirs[name]:12.2f}{figure / theirs[name]:8.2f}")


if __name__ == "__main__":
    if sys.argv[1:] == ["target"]:
        asyncio.run(serve_target())
    else:
        main()
