"""The local stack's web server: clients that send nothing, half a request or nonsense do not disturb the others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection

import pytest
from cheroot.server import HTTPServer
from tests.harness import WAIT_SECONDS
from werkzeug.wrappers import Request, Response

from cloudsched.local import wsgi_server
from cloudsched.local.wsgi_server import WebServer


@Request.application
def echo(request: Request) -> Response:
    return Response(request.get_data())


@contextmanager
def serve_echo() -> Iterator[tuple[str, int]]:
    with WebServer(echo) as server:
        server._server.timeout = 10 * WAIT_SECONDS  # noqa: SLF001 - it closes no connection before a test gives up
        server.serve()
        host, _, port = server.address.rpartition(":")
        yield host, int(port)


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    with serve_echo() as address:
        yield address


def ask(address: tuple[str, int]) -> bytes:
    """Send a request on a connection of its own, and return the response's body."""
    connection = HTTPConnection(*address, timeout=WAIT_SECONDS)
    try:
        connection.request("POST", "/", b"hello")
        return connection.getresponse().read()
    finally:
        connection.close()


def test_more_idle_connections_than_file_descriptors_do_not_block_others(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit the connection that has waited longest is closed, and the newest are served."""
    monkeypatch.setattr(wsgi_server, "MAX_IDLE_CONNECTIONS", 20)
    with ExitStack() as connections:
        idle = [connections.enter_context(socket.create_connection(address, WAIT_SECONDS)) for _ in range(60)]
        assert ask(address) == b"hello"
        idle[0].settimeout(WAIT_SECONDS)
        assert idle[0].recv(1) == b""
        idle[-1].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle[-1].recv(1) == b"H"


@pytest.mark.parametrize(
    "part",
    [b"POST / HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhell"],
    ids=["headers", "body"],
)
def test_half_sent_requests_do_not_block_others(address: tuple[str, int], part: bytes) -> None:
    """A request is served while the server waits for the rest of 80 others."""
    with ExitStack() as connections:
        for _ in range(80):
            connections.enter_context(socket.create_connection(address, WAIT_SECONDS)).sendall(part)
        assert ask(address) == b"hello"


@pytest.mark.parametrize("length", ["-1", "+5", "1_0", "5, 5", "x"])
def test_a_malformed_content_length_is_refused(address: tuple[str, int], length: str) -> None:
    """The answer is 400, at once, and the connection is closed."""
    with socket.create_connection(address, WAIT_SECONDS) as connection:
        connection.sendall(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\nhello".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")


def send(address: tuple[str, int], *headers: str) -> bytes:
    """Return all that is answered to a request with these headers."""
    text = "".join(f"{each}\r\n" for each in ("POST / HTTP/1.1", *headers, "Connection: close", ""))
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
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 5"],
        ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
        ["Content-Length: 5", " 5"],
    ],
    ids=str,
)
def test_a_body_with_two_ends_is_refused(address: tuple[str, int], headers: list[str]) -> None:
    """Where it ends would depend on who reads it."""
    answer = send(address, "Host: x", *headers)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_lists_may_be_given_in_parts(address: tuple[str, int]) -> None:
    """As HTTP allows; a header whose name would be the same to an app, but for its underscores, is not read at all."""
    usual = ("Host: x", "Content-Length: 5")
    for name in ("Accept", "If-Match", "X-Forwarded-For"):
        assert send(address, *usual, f"{name}: a", f"{name}: b").startswith(b"HTTP/1.1 200 ")
    assert send(address, *usual, "Content_Length: 3").endswith(b"hello")


def test_an_idle_server_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait until cheroot looks by itself whether it should stop, here once an hour."""
    monkeypatch.setattr(HTTPServer, "expiration_interval", 3600.0)
    others = set(threading.enumerate())
    with serve_echo() as address:
        assert ask(address) == b"hello"
        (thread,) = [each for each in {*threading.enumerate()} - others if each.name == "cloudsched-web-server"]
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive()
