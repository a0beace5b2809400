"""The local stack's web server: clients that send nothing, half a request or nonsense do not disturb the others."""

from __future__ import annotations

import errno
import logging
import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic

import pytest
from tests.harness import WAIT_SECONDS, request, wait_until
from tests.instants import SECOND
from waitress.task import ThreadedTaskDispatcher
from waitress.wasyncore import dispatcher
from werkzeug.wrappers import Request, Response

from cloudsched import App, Schedule, Settings
from cloudsched.config.access import Access
from cloudsched.local import wsgi_server
from cloudsched.local.request_parser import MAX_HEADER_BYTES
from cloudsched.local.service import run_service
from cloudsched.local.wsgi_server import MAX_THREADS, PLACES, WebServer

HEADERS = b"POST / HTTP/1.1\r\nHo"
BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhell"
MANY = PLACES + MAX_THREADS + 100
"""More connections than those that wait and those that are served may be together."""


@Request.application
def echo(request: Request) -> Response:
    return Response(request.get_data())


@contextmanager
def serve(application: object = echo) -> Iterator[tuple[str, int]]:
    with WebServer(application) as server:  # type: ignore[arg-type]  # any application
        server.serve()
        host, _, port = server.address.rpartition(":")
        yield host, int(port)


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with serve() as address:
        yield address


@pytest.fixture
def connect(address: tuple[str, int]) -> Iterator[Callable[..., socket.socket]]:
    """Open a connection, and send something on it. This process may have enough files for very many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    with ExitStack() as connections:

        def open_one(sent: bytes = b"", to: tuple[str, int] = address, source: str = "127.0.0.1") -> socket.socket:
            connection = connections.enter_context(socket.create_connection(to, WAIT_SECONDS, (source, 0)))
            connection.sendall(sent)
            return connection

        yield open_one
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def ask(address: tuple[str, int]) -> bytes:
    """Send a request on a connection of its own, and return the response's body."""
    connection = HTTPConnection(*address, timeout=WAIT_SECONDS)
    try:
        connection.request("POST", "/", b"hello")
        return connection.getresponse().read()
    finally:
        connection.close()


def is_closed(connection: socket.socket) -> bool:
    """Return whether the server has closed a connection, be it because it did not want the rest."""
    connection.settimeout(0)
    try:
        return connection.recv(65536) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.parametrize("sent", [b"", HEADERS, BODY, b"\r\n\r\n"], ids=["nothing", "headers", "body", "empty lines"])
def test_however_many_send_no_whole_request_others_are_served(
    address: tuple[str, int], connect: Callable[..., socket.socket], sent: bytes
) -> None:
    """Those that have waited longest are closed; the newest may go on, and none of them has taken a thread."""
    ask(address)
    threads = threading.active_count()
    waiting = [connect(sent) for _ in range(MANY)]
    assert ask(address) == b"hello"
    assert is_closed(waiting[0])
    assert not is_closed(waiting[-1])
    assert threading.active_count() <= threads + 2


def test_many_of_one_address_close_none_of_another(connect: Callable[..., socket.socket]) -> None:
    """Whoever opens very many loses their own, also if somebody else has waited longer."""
    honest = connect(BODY)
    many = [connect(HEADERS, source="127.0.0.2") for _ in range(MANY)]
    wait_until(lambda: is_closed(many[0]), "the oldest of the many is closed")
    honest.sendall(b"o wor")
    assert honest.recv(12) == b"HTTP/1.1 200"


def test_few_open_files_leave_room_for_others(
    address: tuple[str, int], connect: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a process may have 100, connections that wait have 40 at most."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    waiting = [connect(HEADERS) for _ in range(60)]
    assert ask(address) == b"hello"
    wait_until(lambda: sum(map(is_closed, waiting)) >= 20, "the oldest are closed")
    assert not is_closed(waiting[-1])


@pytest.mark.parametrize(("name", "sent"), [("HEADER_SECONDS", HEADERS), ("REQUEST_SECONDS", BODY)])
def test_a_request_that_takes_too_long_is_dropped_however_often_it_sends_something(
    connect: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch, name: str, sent: bytes
) -> None:
    """A byte now and then does not extend its time, nor do empty lines before it."""
    monkeypatch.setattr(wsgi_server, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(wsgi_server, name, 0.2)
    slow = connect(b"\r\n\r\n")
    slow.sendall(sent)
    begin = monotonic()

    def is_dropped() -> bool:
        try:
            slow.send(b"a" if name == "HEADER_SECONDS" else b"")
        except ConnectionError:
            return True
        return is_closed(slow)

    wait_until(is_dropped, "it is dropped")
    assert monotonic() - begin > 0.1


def test_bodies_that_never_end_take_little_memory_together(
    address: tuple[str, int], connect: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest is dropped when all of them are too large; a body that ends is served."""
    monkeypatch.setattr(wsgi_server, "PLACES", 12)
    monkeypatch.setattr(wsgi_server, "_PLACE_BYTES", 30_000)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"
    waiting = [connect(head) for _ in range(5)]
    ask(address)  # they have begun
    for each in waiting:
        each.sendall(100_000 * b"a")
    wait_until(lambda: is_closed(waiting[0]), "the oldest is dropped")
    waiting[-1].sendall(100_000 * b"a")
    assert waiting[-1].recv(12) == b"HTTP/1.1 200"


ENDLESS = {
    "a header": (b"GET / HTTP/1.1\r\nHost: x\r\nX-a: ", b"a"),
    "a request line": (b"GET /", b"a"),
    "headers": (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-a: 1\r\n"),
    "a chunk's extension": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;a=", b"a"),
    "trailers": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-a: 1\r\n"),
    "chunks": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"8\r\n01234567\r\n"),
    "a body": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", b"a"),
}


@pytest.mark.parametrize(("head", "rest"), ENDLESS.values(), ids=ENDLESS)
def test_what_has_no_end_is_refused(connect: Callable[..., socket.socket], head: bytes, rest: bytes) -> None:
    """After a few megabytes at most, most of which wait in the system's buffers."""
    connection = connect(head)
    part = rest * (65536 // len(rest))
    with pytest.raises(ConnectionError):
        any(map(connection.sendall, [part] * 300))


def test_longer_headers_than_anybody_sends_are_refused(address: tuple[str, int]) -> None:
    """To read very long ones takes long."""
    answer = send(address, "Host: x", "Content-Length: 5", f"Cookie: {'a' * MAX_HEADER_BYTES}")
    assert answer.split()[1] == b"431"


def test_without_a_file_descriptor_it_waits_and_says_so_once(
    connect: Callable[..., socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It neither spins nor floods the log, and serves whoever has waited as soon as there is one."""
    tries, is_over, accept = list[float](), threading.Event(), dispatcher.accept

    def fail(self: dispatcher) -> object:
        if is_over.is_set():
            return accept(self)
        tries.append(monotonic())
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(dispatcher, "accept", fail)
    monkeypatch.setattr(wsgi_server, "ACCEPT_PAUSE", 0.05)
    monkeypatch.setattr(wsgi_server, "LOOK_SECONDS", 0.01)
    with caplog.at_level(logging.INFO):
        waiting = [connect(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(20)]
        wait_until(lambda: len(tries) > 3, "it tries again")
    assert tries[3] - tries[0] > 0.14
    assert [each.name for each in caplog.records] == ["cloudsched.local.wsgi_server"]
    assert "Too many open files" in caplog.text
    is_over.set()
    assert {each.recv(12) for each in waiting} == {b"HTTP/1.1 200"}


def test_requests_that_take_long_do_not_keep_others_waiting(connect: Callable[..., socket.socket]) -> None:
    """As deliveries do, whose handlers call the API: far more of them at once than there are threads at first."""
    count = 150
    barrier = threading.Barrier(count + 1)

    @Request.application
    def wait(request: Request) -> Response:
        if request.path == "/wait":
            barrier.wait(WAIT_SECONDS)
        return Response("done")

    with serve(wait) as address:
        waiting = [connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n", address) for _ in range(count)]
        assert ask(address) == b"done"
        barrier.wait(WAIT_SECONDS)
        assert {each.recv(12) for each in waiting} == {b"HTTP/1.1 200"}


def test_a_probe_is_answered_before_all_that_keeps_the_processor_busy(
    connect: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a supervisor would end a process that has much to do. More threads would only slow down each other."""
    monkeypatch.setattr(wsgi_server, "THREADS", 1)
    monkeypatch.setattr(wsgi_server, "_FULL", 0)  # the processor always counts as busy
    monkeypatch.setattr(wsgi_server, "LOOK_SECONDS", 3600.0)
    is_over, served = threading.Event(), list[str]()

    @Request.application
    def work(request: Request) -> Response:
        served.append(request.path)
        is_over.wait(WAIT_SECONDS)
        return Response("done")

    def send(path: str, address: tuple[str, int]) -> socket.socket:
        return connect(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), address)

    with WebServer(work) as server:
        server.serve()
        host, _, port = server.address.rpartition(":")
        address = host, int(port)
        queue = server._server.task_dispatcher.queue  # noqa: SLF001 - what waits for a thread
        waiting = [send("/first", address)]
        wait_until(lambda: served, "the thread is busy")
        waiting += [send("/work", address) for _ in range(5)]
        wait_until(lambda: len(queue) == 5, "others wait")
        waiting.append(send("/ready", address))
        wait_until(lambda: len(queue) == 6, "the probe waits")
        is_over.set()
        assert {each.recv(12) for each in waiting} == {b"HTTP/1.1 200"}
    assert served[:2] == ["/first", "/ready"]


def test_a_client_that_is_gone_leaves_no_line_in_the_log(
    address: tuple[str, int], connect: Callable[..., socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    """Strangers could fill a disk with them: in the middle of a request, or before its answer."""
    gone = struct.pack("ii", 1, 0)  # without a word, and what it has sent is lost
    with caplog.at_level(logging.INFO):
        for sent in (HEADERS, BODY, b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", b"nonsense\r\n\r\n", b"") * 20:
            connection = connect(sent)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, gone)
            connection.close()
        assert ask(address) == b"hello"
    assert caplog.records == []


def test_a_stream_is_sent_as_it_is_made(connect: Callable[..., socket.socket]) -> None:
    """Each part arrives before the next one is made."""
    is_read = threading.Event()

    @Request.application
    def stream(_: Request) -> Response:
        def parts() -> Iterator[str]:
            yield "first"
            assert is_read.wait(WAIT_SECONDS)
            yield "second"

        return Response(parts())

    with serve(stream) as address:
        connection = connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", address)
        found = b""
        while b"first" not in found:
            found += connection.recv(65536)
        is_read.set()
        while b"second" not in found:
            found += connection.recv(65536)


def test_tasks_run_and_the_server_is_ready_during_an_attack(
    connect: Callable[..., socket.socket], tmp_path: Path
) -> None:
    """Handlers neither wait for strangers nor lack the files that these have open."""
    app, ran = App(), list[float]()

    @app.handler("tick")
    def tick() -> None:
        with Path(__file__).open("rb"):
            ran.append(monotonic())

    settings = Settings(access=Access(open=True))
    with run_service(app, settings, data=tmp_path, threads=2) as service:
        host, _, port = service.url.removeprefix("http://").rpartition(":")
        app.create(id="tick", owner="ada", title="Tick", handler="tick", schedule=Schedule.every(SECOND))
        for number in range(MANY):
            connect(HEADERS if number % 2 else BODY, (host, int(port)))
        before = len(ran)
        assert request(service.url, "GET", "/ready").status == 200
        wait_until(lambda: len(ran) >= before + 2, "it runs twice")
        assert request(service.url, "GET", "/health").status == 200


@pytest.mark.parametrize(
    ("header", "status"), [("Content-Length: 99999999", 413), ("Content-Length: -1", 400), ("Content-Length: 0", 200)]
)
def test_nobody_is_asked_for_a_body_that_is_not_read(address: tuple[str, int], header: str, status: int) -> None:
    """The answer comes at once. What follows is not taken for the body."""
    with socket.create_connection(address, WAIT_SECONDS) as connection:
        first = f"POST / HTTP/1.1\r\nHost: x\r\n{header}\r\nExpect: 100-continue\r\n\r\n"
        connection.sendall(f"{first}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.count(b"HTTP/1.1 ") == 1 + (status == 200)


def is_cut_off(connection: socket.socket) -> bool:
    """Return whether the server has closed a connection without its client having read anything."""
    try:
        return not connection.send(b"x")
    except ConnectionError:
        return True


def test_who_asks_often_and_reads_nothing_takes_neither_memory_nor_a_thread_for_long(
    connect: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are made only as fast as they are read. Who stops to read is closed, also in the middle of them."""
    monkeypatch.setattr(wsgi_server, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(wsgi_server, "REQUEST_SECONDS", 0.3)
    answers = list[int]()

    @Request.application
    def large(_: Request) -> Response:
        answers.append(1)
        return Response(b"x" * 400_000)

    with serve(large) as address:
        connection = connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 1000, address)
        wait_until(lambda: len(answers) > 2, "the first ones are made")
        wait_until(lambda: is_cut_off(connection), "it is closed")
        assert len(answers) < 50


def test_without_threads_of_the_system_requests_wait_for_those_that_there_are(
    connect: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may start so many, whatever it needs."""
    real = ThreadedTaskDispatcher.start_new_thread

    def start(self: ThreadedTaskDispatcher, target: Callable[[int], object], number: int) -> None:
        if number > 1:
            raise RuntimeError("can't start new thread")
        real(self, target, number)

    monkeypatch.setattr(ThreadedTaskDispatcher, "start_new_thread", start)
    with serve() as address:
        waiting = [connect(BODY + b"o wor", address) for _ in range(100)]
        assert {each.recv(12) for each in waiting} == {b"HTTP/1.1 200"}


def send(address: tuple[str, int], *headers: str, line: str = "POST / HTTP/1.1") -> bytes:
    """Return all that is answered to a request with these headers."""
    text = "".join(f"{each}\r\n" for each in (line, *headers, "Connection: close", ""))
    with socket.create_connection(address, WAIT_SECONDS) as connection:
        connection.sendall(f"{text}hello".encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    "header",
    [
        "Content-Length: 5",
        "Host: x",
        "Authorization: Bearer a",
        "X-Api-Key: a",
        "Idempotency-Key: a",
        "Origin: http://x",
    ],
)
@pytest.mark.parametrize("case", [str, str.upper])
def test_a_header_that_is_given_twice_is_refused(address: tuple[str, int], header: str, case: object) -> None:
    """A proxy may have taken the other one. That holds for equal ones, and however they are written."""
    name, _, value = header.partition(": ")
    others = [each for each in ("Host: x", "Content-Length: 5") if not each.startswith(name)]
    assert send(address, *others, header).startswith(b"HTTP/1.1 200 ")
    for second in (value, "1"):
        again = f"{name.upper() if case is str.upper else name}: {second}"
        answer = send(address, *others, header, again)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "headers",
    [
        *([f"Content-Length: {length}"] for length in ("-1", "+5", "1_0", "5, 5", "x", "9" * 5000)),
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Content-Length: 5", " 5"],
    ],
    ids=lambda headers: str(headers)[:60],
)
def test_a_body_without_one_end_is_refused(
    address: tuple[str, int], headers: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """At once: where it ends would depend on who reads it. Strangers could fill a disk with lines in a log."""
    answer = send(address, "Host: x", *headers)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert caplog.records == []


@pytest.mark.parametrize("url", ["http://[::1/", "http://[x]/"])
def test_an_address_that_cannot_be_read_is_answered_and_not_logged(
    address: tuple[str, int], url: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert send(address, "Host: x", line=f"GET {url} HTTP/1.1").startswith(b"HTTP/1.1 4")
    assert caplog.records == []


def test_a_request_names_its_host(address: tuple[str, int]) -> None:
    """HTTP/1.1 demands it (RFC 9112, section 3.2). HTTP/1.0 has none."""
    assert send(address, "Content-Length: 5").startswith(b"HTTP/1.1 400 ")
    assert send(address, "Host:", "Content-Length: 5").startswith(b"HTTP/1.1 200 ")
    assert send(address, line="GET / HTTP/1.0").startswith(b"HTTP/1.0 200 ")


@pytest.mark.parametrize("sent", ["", "/jobs"])
def test_the_links_of_answers_begin_with_the_path_that_a_proxy_removes(tmp_path: Path, sent: str) -> None:
    """Of a task that was created, and in the description of the API, also if the proxy passes it on."""
    app, later = App(), {"at": "2040-01-01T00:00:00Z"}
    app.handler("note")(lambda: None)
    task = {"id": "a", "owner": "ada", "handler": "note", "schedule": later}
    settings = Settings(access=Access(open=True))
    with run_service(app, settings, data=tmp_path, threads=1, root_path="/jobs") as service:
        created = request(service.url, "POST", f"{sent}/v1/tasks", task)
        assert (created.status, created.headers["Location"]) == (201, "/jobs/v1/tasks/a")
        assert request(service.url, "GET", f"{sent}/openapi.json").body["servers"][0]["url"] == "/jobs"


def test_lists_may_be_given_in_parts(address: tuple[str, int]) -> None:
    """As HTTP allows; a header whose name would be the same to an app, but for its underscores, is not read at all."""
    usual = ("Host: x", "Content-Length: 5")
    for name in ("Accept", "If-Match", "X-Forwarded-For"):
        assert send(address, *usual, f"{name}: a", f"{name}: b").startswith(b"HTTP/1.1 200 ")
    assert send(address, *usual, "Content_Length: 3").endswith(b"hello")


def test_an_idle_server_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait until it looks by itself whether anything has changed, here once an hour."""
    monkeypatch.setattr(wsgi_server, "LOOK_SECONDS", 3600.0)
    others = set(threading.enumerate())
    with serve() as address:
        assert ask(address) == b"hello"
        (thread,) = [each for each in {*threading.enumerate()} - others if each.name == "cloudsched-web-server"]
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
