"""The emulator's figures, beside the `gcloud-tasks-emulator` package from PyPI, in one run.

    python benchmarks/emulator.py [--quick] [--rounds N]

The rival lives in a virtual environment of its own, made in a temporary folder. Both are asked the same by the same
client (google-cloud-tasks over gRPC, plain synchronous calls) and deliver to the same trivial target. Eight queues
share the work, because Cloud Tasks' cap of 500 dispatches a second holds for each queue, and ours keeps to it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped]
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


def free_port() -> int:
    """A port that nobody listens on now."""
    import socket  # noqa: PLC0415

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def running(command: list[str], port: int) -> Iterator[tuple[int, float]]:
    """Run a server; yields its process id and the seconds until it took its first call."""
    began = time.perf_counter()
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
        yield process.pid, time.perf_counter() - began
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def client(port: int, transport: str = "grpc") -> Any:  # noqa: ANN401 - the stubs refuse the documented dicts
    """A client of a server."""
    if transport == "grpc":
        return tasks_v2.CloudTasksClient(
            transport=CloudTasksGrpcTransport(channel=grpc.insecure_channel(f"127.0.0.1:{port}"))
        )
    anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
    return tasks_v2.CloudTasksClient(
        transport=CloudTasksRestTransport(host=f"127.0.0.1:{port}", url_scheme="http", credentials=anonymous)
    )


def create(made: Any, url: str, count: int, at: Callable[[int], datetime | None], threads: int = THREADS) -> float:  # noqa: ANN401
    """Create tasks from some threads; returns the seconds that took."""

    def one(number: int) -> None:
        task: dict[str, Any] = {"http_request": {"url": f"{url}/{number}", "http_method": 1}}
        if (instant := at(number)) is not None:
            task["schedule_time"] = instant
        made.create_task(parent=QUEUES[number % len(QUEUES)], task=task)

    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(one, range(count), chunksize=16):
            pass
    return time.perf_counter() - began


def get(url: str) -> bytes:
    """A plain GET."""
    with urllib.request.urlopen(url, timeout=30) as response:  # noqa: S310 - our own loopback server
        return bytes(response.read())


def wait_for(url: str, count: int, seconds: float = 120) -> None:
    """Wait until the target has got that many tasks."""
    end = time.perf_counter() + seconds
    while int(get(f"{url}/count")) < count:
        if time.perf_counter() > end:
            raise TimeoutError(f"only {get(f'{url}/count')!r} of {count} arrived")
        time.sleep(0.005)


def resident_kilobytes(pid: int) -> int:
    """The memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def best(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The best of some rounds: what other load on the machine disturbed least."""
    names = rounds[0]
    return {name: (max if name.endswith("/s") else min)(one[name] for one in rounds) for name in names}


def measure(command: list[str], port: int, url: str, count: int) -> dict[str, float]:
    """All figures of one server."""
    figures: dict[str, float] = {}
    with running(command, port) as (pid, started):
        figures["start-up, s"] = started
        made = client(port)
        for name in QUEUES:
            made.create_queue(parent=PARENT, queue={"name": name})
        create(made, url, 200, lambda _n: None)  # warm
        wait_for(url, 200)
        get(f"{url}/arrivals")
        later = datetime.now(UTC) + timedelta(hours=1)
        before = resident_kilobytes(pid)
        figures["creates over gRPC, /s"] = count / create(made, url, count, lambda _n: later)
        figures["memory for each waiting task, KB"] = (resident_kilobytes(pid) - before) / count
        if "cloudsched.emulator" in command:
            figures["creates over REST, /s"] = (
                count / 2 / create(client(port, "rest"), url, count // 2, lambda _n: later)
            )
        began, used = time.perf_counter(), processor_seconds(pid)
        create(made, url, count, lambda _n: None)
        wait_for(url, count)
        figures["end to end, /s"] = count / (time.perf_counter() - began)
        figures["processor time, end to end, µs a task"] = (processor_seconds(pid) - used) / count * 1e6
        get(f"{url}/arrivals")
        first = datetime.now(UTC) + timedelta(seconds=2)
        plan = [first + timedelta(milliseconds=10 * n) for n in range(500)]
        create(made, url, len(plan), lambda n: plan[n])
        wait_for(url, len(plan))
        late = sorted(at - plan[int(number)].timestamp() for number, at in json.loads(get(f"{url}/arrivals")))
        figures["lateness at 100/s, p50 ms"] = statistics.median(late) * 1000
        figures["lateness at 100/s, p99 ms"] = late[int(len(late) * 0.99)] * 1000
    return figures


def dispatch_cost(waiting: int) -> float:
    """Microseconds that the model spends on one dispatch and its answer with so many other tasks waiting."""
    now = datetime.now(UTC)
    board = Queues()
    name = QUEUES[0]
    board.create_queue(name, QueueConfig(rate_limits=RateLimits(burst=10**9)), now)
    target, answer = HttpTarget("http://127.0.0.1/"), HttpResult(status=200)
    for number in range(waiting):
        board.create_task(name, Task(f"w{number}", target, now + timedelta(hours=1, seconds=number % 977), now), now)
    rounds = 5000
    for number in range(rounds):
        board.create_task(name, Task(f"d{number}", target, now, now), now)
    began = time.process_time()
    sent = 0
    while sent < rounds:
        for dispatch in board.take_due(now):
            board.finish_attempt(dispatch, answer, now)
            sent += 1
    return (time.process_time() - began) / rounds * 1e6


def memory_of_100_000(url: str) -> float:
    """Megabytes that 100,000 waiting tasks take, created in batches."""
    port = free_port()
    with running([sys.executable, "-m", "cloudsched.emulator", "--port", str(port), "--queue", QUEUES[0]], port) as (
        pid,
        _,
    ):
        made = client(port)
        before = resident_kilobytes(pid)
        seconds = int(time.time()) + 3600
        task = {
            "http_request": {"url": url, "body": b"x" * 100},
            "schedule_time": timestamp_pb2.Timestamp(seconds=seconds),
        }
        one = {"parent": QUEUES[0], "task": task}
        for _ in range(1000):
            made.batch_create_tasks(request={"parent": QUEUES[0], "requests": [one] * 100})
        return (resident_kilobytes(pid) - before) / 1024


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer tasks")
    parser.add_argument("--rival", type=Path, help="a virtual environment that has gcloud-tasks-emulator already")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in turn, of which the best counts")
    options = parser.parse_args()
    count = 1000 if options.quick else 4000
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rival = options.rival or folder / "rival"
        if options.rival is None:
            venv.create(rival, with_pip=True)
            install = [str(rival / "bin/pip"), "install", "-q", "gcloud-tasks-emulator"]
            subprocess.run(install, check=True)  # noqa: S603
        target = subprocess.Popen(  # noqa: S603
            [sys.executable, str(Path(__file__).with_name("emulator_target.py"))], stdout=subprocess.PIPE, text=True
        )
        stack.callback(target.wait)
        stack.callback(target.terminate)
        assert target.stdout is not None
        url = f"http://127.0.0.1:{target.stdout.readline().strip()}"
        our_rounds, their_rounds = [], []
        for _ in range(options.rounds):
            port = free_port()
            command = [sys.executable, "-m", "cloudsched.emulator", "--port", str(port)]
            our_rounds.append(measure(command, port, url, count))
            port = free_port()
            command = [str(rival / "bin/gcloud-tasks-emulator"), "start", "-q", "-p", str(port)]
            their_rounds.append(measure(command, port, url, count))
        ours, theirs = best(our_rounds), best(their_rounds)
        print(f"{'':40}{'cloudsched':>12}{'rival':>12}{'ratio':>8}")
        for name, figure in ours.items():
            if name in theirs:
                print(f"{name:40}{figure:12.2f}{theirs[name]:12.2f}{figure / theirs[name]:8.2f}")
            else:
                print(f"{name:40}{figure:12.2f}{'none':>12}")
        for waiting in (1_000, 100_000):
            print(f"{f'model, µs a dispatch, {waiting} wait':40}{dispatch_cost(waiting):12.1f}")
        if not options.quick:
            print(f"{'memory for 100,000 waiting tasks, MB':40}{memory_of_100_000(url):12.1f}")


if __name__ == "__main__":
    main()
