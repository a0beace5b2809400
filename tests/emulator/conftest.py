"""Fixtures of the emulator's tests: a target that records its requests, and real clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TypeAlias

import grpc  # type: ignore[import-untyped]
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import tasks_v2
from google.cloud.tasks_v2.services.cloud_tasks.transports import CloudTasksGrpcTransport, CloudTasksRestTransport

from cloudsched.emulator import CloudTasksEmulator, MovableClock

LOCATION = "projects/demo/locations/us-central1"
QUEUE = f"{LOCATION}/queues/default"
URL = "http://127.0.0.1:9/"
START = datetime(2027, 1, 1, tzinfo=UTC)
"""What the frozen clock shows."""
DAY = timedelta(days=1)
LATER = START + DAY

Client: TypeAlias = Any
"""The Python client. Its stubs refuse the dicts that its documentation recommends."""


def make_task(**fields: Any) -> dict[str, Any]:
    """Return the fields of a task for ``create_task``, which is due a day after the frozen clock, some replaced."""
    return {"http_request": {"url": URL}, "schedule_time": LATER, **fields}


def add(client: Client, url: str, after: timedelta = DAY, **request: Any) -> str:
    """Create a task that is due so long after the frozen clock, and return its name."""
    task = {"http_request": {"url": url, **request}, "schedule_time": START + after}
    return str(client.create_task(parent=QUEUE, task=task).name)


class Connect(Protocol):
    def __call__(self, address: str, transport: str = ...) -> Client: ...


class Http(Protocol):
    def __call__(self, method: str, path: str, body: object = ...) -> tuple[int, Any]: ...


@dataclass
class Hit:
    """One request that reached the target."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: datetime


@dataclass
class Target:
    """An HTTP server that records requests and responds with what `answer` returns."""

    clock: MovableClock
    url: str = ""
    hits: list[Hit] = field(default_factory=list)
    answer: Callable[[Hit], int | tuple[int, dict[str, str], bytes]] = lambda _hit: 200

    @property
    def paths(self) -> list[str]:
        return [hit.path for hit in self.hits]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect: the tests do that on purpose."""


def serve(target: Target) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            hit = Hit(self.command, self.path, dict(self.headers), body, target.clock.now())
            target.hits.append(hit)
            answer = target.answer(hit)
            status, headers, content = (answer, {}, b"") if isinstance(answer, int) else answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _any  # noqa: N815 - http.server's names

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    target.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make a Python client, over gRPC or REST."""
    with ExitStack() as opened:

        def make(address: str, transport: str = "grpc") -> Client:
            chosen: CloudTasksGrpcTransport | CloudTasksRestTransport
            if transport == "grpc":
                chosen = CloudTasksGrpcTransport(channel=grpc.insecure_channel(address))
            else:
                anonymous = AnonymousCredentials()  # type: ignore[no-untyped-call]
                chosen = CloudTasksRestTransport(host=address, url_scheme="http", credentials=anonymous)
            return opened.enter_context(tasks_v2.CloudTasksClient(transport=chosen))

        yield make


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(START, frozen=True)


@pytest.fixture
def emulator(clock: MovableClock) -> Iterator[CloudTasksEmulator]:
    """An emulator whose clock is frozen at the start of 2027, with one queue."""
    with CloudTasksEmulator(clock=clock, queues=[QUEUE]) as running:
        yield running


@pytest.fixture
def target(clock: MovableClock) -> Iterator[Target]:
    recorded = Target(clock)
    server = serve(recorded)
    yield recorded
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["grpc", "rest"])
def client(emulator: CloudTasksEmulator, connect: Connect, request: pytest.FixtureRequest) -> Client:
    """The Python client, over each of its transports."""
    return connect(emulator.address, request.param)


@pytest.fixture
def grpc_client(emulator: CloudTasksEmulator, connect: Connect) -> Client:
    """The Python client over gRPC, for tests that do not depend on the transport."""
    return connect(emulator.address)


@pytest.fixture
def http(emulator: CloudTasksEmulator) -> Http:
    """Call the emulator as curl does, and return the status and the JSON."""

    def call(method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection = HTTPConnection(emulator.address, timeout=60)
        try:
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    return call


@pytest.fixture(scope="module")
def shared_emulator() -> Iterator[CloudTasksEmulator]:
    """An emulator shared by tests with many examples, which leave nothing behind."""
    with CloudTasksEmulator(queues=[QUEUE]) as running:
        yield running
