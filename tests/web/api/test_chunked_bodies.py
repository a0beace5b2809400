"""A body without `Content-Length`, as many HTTP clients send it, through a real socket: it is read like any other."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest
from tests.harness import WAIT_SECONDS, Reply, request
from tests.web.callers import MINUTE

from cloudsched import App, Schedule, Settings
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import START, Simulation
from cloudsched.web.api.parse import MAX_BODY
from cloudsched.web.functions import wsgi

CHUNKED = {"Transfer-Encoding": "chunked"}
TASK: dict[str, Any] = {"owner": "ada", "handler": "work"}


app = App(Settings())
"""An app with a handler for workers."""


app.handler("work", pull="gpu")(lambda: None)


@pytest.fixture
def address(sim: Simulation) -> Iterator[str]:
    with WebServer(wsgi(sim.app)) as server:
        server.serve()
        yield server.address


def post(address: str, path: str, content: object) -> Reply:
    return request(f"http://{address}", "POST", path, content, CHUNKED)


def test_a_chunked_claim_is_read_in_full(sim: Simulation, address: str) -> None:
    """Its handlers, its owner and its worker take effect."""
    for title, owner in (("first", "bob"), ("second", "ada")):
        sim.app.create(**{**TASK, "title": title, "owner": owner, "schedule": Schedule.once(START)})
    sim.advance(MINUTE)
    assert post(address, "/v1/queues/gpu/claim", {"handlers": ["other"]}).body == {"claims": []}
    (claim,) = post(address, "/v1/queues/gpu/claim", {"owner": "ada", "worker": "box", "limit": 9}).body["claims"]
    (run,) = sim.app.get(claim["task"]["id"]).runs
    assert (claim["task"]["title"], run.lease and run.lease.worker) == ("second", "box")


def test_an_empty_body_stands_for_defaults_where_it_is_optional(sim: Simulation, address: str) -> None:
    """Where it is optional, one without bytes stands for all defaults; where it is not, it is refused."""
    sim.app.create(**TASK, schedule=Schedule.once(START))
    sim.advance(MINUTE)
    assert len(post(address, "/v1/queues/gpu/claim", b"").body["claims"]) == 1
    assert post(address, "/v1/tasks", b"").status == 400


@pytest.mark.parametrize("path", ["/v1/queues/gpu/claim", "/v1/tasks", "/v1/sweep", "/v1/tasks/execute"])
def test_a_chunked_body_that_is_too_large_is_refused(address: str, path: str) -> None:
    """The limit also applies to bodies without a declared length."""
    reply = post(address, path, b" " * (MAX_BODY + 1))
    assert (reply.status, reply.headers["Content-Type"]) == (413, "application/problem+json")
    assert post(address, "/v1/queues/gpu/claim", b"{}" + b" " * (MAX_BODY - 2)).status == 200


BROKEN = {
    "no size": b"zz\r\n{}\r\n0\r\n\r\n",
    "longer than it says": b"2\r\n{}}}\r\n0\r\n\r\n",
    "cut off in a chunk": b"20\r\n{}",
    "cut off after a chunk": b"2\r\n{}\r\n",
    "nothing": b"",
}


def send_and_stay_silent(address: str, head: str, body: bytes) -> bytes:
    """Send a request whose sender then falls silent, and return all that is answered."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), WAIT_SECONDS) as connection:
        start = f"POST /v1/queues/gpu/claim HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n"
        connection.sendall(start.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_truncated_body_is_refused_and_claims_nothing(sim: Simulation, address: str, body: bytes) -> None:
    """It is a client error, and never taken for a missing body."""
    sim.app.create(**TASK, schedule=Schedule.once(START))
    sim.advance(MINUTE)
    for head in ("Transfer-Encoding: chunked", "Content-Length: 1000"):
        assert send_and_stay_silent(address, head, body).startswith(b"HTTP/1.1 400 ")
    assert len(post(address, "/v1/queues/gpu/claim", b"").body["claims"]) == 1


@pytest.mark.parametrize(
    ("path", "status"),
    [("/v1/tasks/it/cancel", 200), ("/v1/tasks", 400), ("/nothing", 404), ("/v1/tasks/execute", 401)],
)
def test_an_unread_body_is_not_taken_for_the_next_request(
    sim: Simulation, address: str, path: str, status: int
) -> None:
    """A connection stays usable after an unread body with any content."""
    sim.app.create(**TASK, id="it")
    body = b"DELETE /v1/tasks/it HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000
    with closing(HTTPConnection(address, timeout=WAIT_SECONDS)) as connection:
        for _ in range(2):
            connection.request("POST", path, iter([body, body]), CHUNKED, encode_chunked=True)
            with connection.getresponse() as answer:
                answer.read()
                assert answer.status == status
        connection.request("GET", "/v1/tasks/it")
        with connection.getresponse() as answer:
            assert json.load(answer)["id"] == "it"


def test_an_endless_body_is_not_held_in_memory(address: str) -> None:
    """The server of the local stack reads no chunk that is larger than any body."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), WAIT_SECONDS) as connection:
        connection.sendall(
            b"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n"
        )
        answer = b"".join(iter(lambda: connection.recv(65536), b""))  # to the end: the connection is closed
    assert answer.startswith(b"HTTP/1.1 400 ")
