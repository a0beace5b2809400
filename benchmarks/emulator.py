"""Compare the emulator with the `gcloud-tasks-emulator` package from PyPI, in one run.

    python -m benchmarks.emulator [--quick] [--rounds N]

The rival runs in an environment of its own (`benchmarks.rivals`). Both get the same requests from the
same client (google-cloud-tasks over gRPC, plain synchronous calls) and deliver to the same trivial target. Eight queues
share the work, because Cloud Tasks limits each queue to 500 dispatches a second and our emulator enforces that limit.
"""

from __future__ import annotations

import argparse
import json
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
from benchmarks.rivals import install_rivals
from google.auth.credentials import AnonymousCredentials
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport, CloudTasksRestTransport
from google.protobuf import timestamp_pb2  # type: ignore[import-untyped]

from cloudsched.emulator.model.queue import QueueConfig
from cloudsched.emulator.model.queues import Queues
from cloudsched.emulator.model.task import HttpResult, HttpTarget, RateLimits, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PARENT = "projects/demo/locations/here"
QUEUES = [f"{PARENT}/queues/q{n}" for n in range(8)]
THREADS = 4


def find_free_port() -> int:
    """Return a port on which nothing listens now."""
    import socket  # noqa: PLC0415

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


def make_client(port: int, transport: str = "grpc") -> Any:  # noqa: ANN401 - the stubs refuse the documented dicts
    """Return a Cloud Tasks client of the server on that port, over `grpc` or `rest`."""
    if transport == "grpc":
        return tasks_v2.CloudTasksClient(
            transport=CloudTasksGrpcTransport(channel=grpc.insecure_channel(f"127.0.0.1:{port}"))
        )
    anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
    return tasks_v2.CloudTasksClient(
        transport=CloudTasksRestTransport(host=f"127.0.0.1:{port}", url_scheme="http", credentials=anonymous)
    )


def create_tasks(
    client: Any,  # noqa: ANN401 - see make_client
    url: str,
    count: int,
    at: Callable[[int], datetime | None],
    threads: int = THREADS,
) -> float:
    """Create tasks from several threads; return the seconds that it took."""

    def create_one(number: int) -> None:
        task: dict[str, Any] = {"http_request": {"url": f"{url}/{number}", "http_method": 1}}
        if (scheduled_at := at(number)) is not None:
            task["schedule_time"] = scheduled_at
        client.create_task(parent=QUEUES[number % len(QUEUES)], task=task)

    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(create_one, range(count), chunksize=16):
            pass
    return time.perf_counter() - start


def fetch(url: str) -> bytes:
    """Return the body of the response to a GET."""
    with urllib.request.urlopen(url, timeout=30) as response:  # noqa: S310 - our own loopback server
        return bytes(response.read())


def wait_for_arrivals(url: str, count: int, seconds: float = 120) -> None:
    """Wait until the target has received that many tasks; raise TimeoutError after `seconds`."""
    deadline = time.perf_counter() + seconds
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


def measure_server(command: list[str], port: int, url: str, count: int) -> dict[str, float]:
    """Run a server and return all its figures by name."""
    figures: dict[str, float] = {}
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
        if "cloudsched.emulator" in command:
            figures["creates over REST, /s"] = (
                count / 2 / create_tasks(make_client(port, "rest"), url, count // 2, lambda _n: in_an_hour)
            )
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


def measure_dispatch(waiting: int) -> float:
    """Return the microseconds that the queue model spends on one dispatch and its result while other tasks wait."""
    now = datetime.now(UTC)
    queues = Queues()
    name = QUEUES[0]
    queues.create_queue(name, QueueConfig(rate_limits=RateLimits(burst=10**9)), now)
    target, result = HttpTarget("http://127.0.0.1/"), HttpResult(status=200)
    for number in range(waiting):
        queues.create_task(name, Task(f"w{number}", target, now + timedelta(hours=1, seconds=number % 977), now), now)
    rounds = 5000
    for number in range(rounds):
        queues.create_task(name, Task(f"d{number}", target, now, now), now)
    start = time.process_time()
    finished = 0
    while finished < rounds:
        for dispatch in queues.take_due(now):
            queues.finish_attempt(dispatch, result, now)
            finished += 1
    return (time.process_time() - start) / rounds * 1e6


def measure_memory_of_100_000(url: str) -> float:
    """Return the megabytes that 100,000 waiting tasks take in the emulator, created in batches."""
    port = find_free_port()
    with run_server([sys.executable, "-m", "cloudsched.emulator", "--port", str(port), "--queue", QUEUES[0]], port) as (
        pid,
        _,
    ):
        client = make_client(port)
        before = read_resident_kilobytes(pid)
        seconds = int(time.time()) + 3600
        task = {
            "http_request": {"url": url, "body": b"x" * 100},
            "schedule_time": timestamp_pb2.Timestamp(seconds=seconds),
        }
        creation = {"parent": QUEUES[0], "task": task}
        for _ in range(1000):
            client.batch_create_tasks(request={"parent": QUEUES[0], "requests": [creation] * 100})
        return (read_resident_kilobytes(pid) - before) / 1024


def main() -> None:
    """Measure both emulators and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer tasks")
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often both are measured in alternation; the best round counts"
    )
    options = parser.parse_args()
    count = 1000 if options.quick else 4000
    with ExitStack() as stack:
        rival = install_rivals().with_name("gcloud-tasks-emulator")
        target = subprocess.Popen(  # noqa: S603
            [sys.executable, str(Path(__file__).with_name("emulator_target.py"))], stdout=subprocess.PIPE, text=True
        )
        stack.callback(target.wait)
        stack.callback(target.terminate)
        assert target.stdout is not None
        url = f"http://127.0.0.1:{target.stdout.readline().strip()}"
        our_rounds, their_rounds = [], []
        for _ in range(options.rounds):
            port = find_free_port()
            command = [sys.executable, "-m", "cloudsched.emulator", "--port", str(port)]
            our_rounds.append(measure_server(command, port, url, count))
            port = find_free_port()
            command = [str(rival), "start", "-q", "-p", str(port)]
            their_rounds.append(measure_server(command, port, url, count))
        ours, theirs = pick_best(our_rounds), pick_best(their_rounds)
        print(f"{'':40}{'cloudsched':>12}{'rival':>12}{'ratio':>8}")
        for name, figure in ours.items():
            if name in theirs:
                print(f"{name:40}{figure:12.2f}{theirs[name]:12.2f}{figure / theirs[name]:8.2f}")
            else:
                print(f"{name:40}{figure:12.2f}{'none':>12}")
        for waiting in (1_000, 100_000):
            print(f"{f'model, µs a dispatch, {waiting} waiting':40}{measure_dispatch(waiting):12.1f}")
        if not options.quick:
            print(f"{'memory for 100,000 waiting tasks, MB':40}{measure_memory_of_100_000(url):12.1f}")


if __name__ == "__main__":
    main()
