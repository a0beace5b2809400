"""Every request that leaves takes a limited time in all, and its answer is read, and unpacked, up to a limit."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache

import pytest
import requests
from requests.exceptions import ContentDecodingError
from tests.cases import try_each
from tests.harness import WAIT_SECONDS

from cloudsched.adapters.safe_http import limit_session, make_session
from cloudsched.drafts.language_models import CHAT, HttpModel
from cloudsched.errors import InvalidInput, ModelUnavailable, Unavailable
from cloudsched.features.calendars import sources as calendar_sources
from cloudsched.features.calendars.sources import CalendarSources

LOCAL = ["127.0.0.0/8"]
SHORT = 0.3
"""Seconds: how long a request may take here. What is tried ends by it, or hangs until the test's own limit."""
OK = b"HTTP/1.1 200 OK\r\n"


class Server:
    """Answers each connection with bytes, one at a time if it drips; it never closes one by itself."""

    def __init__(self) -> None:
        self.answer = OK + b"Content-Length: 2\r\n\r\nok"
        self.drips = b""
        """What is repeated after the answer for as long as somebody listens."""
        self.requests = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._opened: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connected, _ = self._listener.accept()
                self._opened.append(connected)
                self._threads.append(threading.Thread(target=self._serve, args=[connected], daemon=True))
                self._threads[-1].start()

    def _serve(self, connected: socket.socket) -> None:
        with suppress(OSError):
            while connected.recv(65_536):
                self.requests += 1
                connected.sendall(self.answer)
                while self.drips:
                    connected.sendall(self.drips)
                    time.sleep(0.02)

    def close(self) -> None:
        self.drips = b""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._opened:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(WAIT_SECONDS)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def open_for_users(max_seconds: float, max_bytes: int) -> requests.Session:
    return make_session(LOCAL, max_seconds=max_seconds, max_bytes=max_bytes)


def open_for_operators(max_seconds: float, max_bytes: int) -> requests.Session:
    return limit_session(requests.Session(), max_seconds=max_seconds, max_bytes=max_bytes)


BOTH = pytest.mark.parametrize("open_session", [open_for_users, open_for_operators])


@BOTH
@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nX-", OK + b"Content-Length: 999999\r\n\r\n"])
def test_a_server_that_drips_is_cut_off(
    server: Server, open_session: Callable[[float, int], requests.Session], answer: bytes
) -> None:
    """In the headers as in the body: each byte came in time, and there was no end."""
    server.answer, server.drips = answer, b"a"
    with open_session(SHORT, 10**7) as web, pytest.raises(requests.RequestException):
        web.get(server.url, timeout=WAIT_SECONDS)


@BOTH
def test_a_connection_that_is_kept_has_the_time_of_each_request(
    server: Server, open_session: Callable[[float, int], requests.Session]
) -> None:
    """A later request over the same connection is cut off, too, and no earlier than the first."""
    with open_session(SHORT, 1000) as web:
        assert web.get(server.url, timeout=WAIT_SECONDS).text == "ok"
        server.answer, server.drips = b"HTTP/1.1 200 OK\r\nX-", b"a"
        with pytest.raises(requests.RequestException):
            web.get(server.url, timeout=WAIT_SECONDS)


@cache
def _pack(*packs: Callable[[bytes], bytes]) -> bytes:
    body = b"0" * {0: 300_000, 1: 5_000_000, 2: 50_000_000}[len(packs)]
    for pack in packs:
        body = pack(body)
    return body


@BOTH
@try_each(
    "coding, packs",
    [
        ("", ()),
        ("gzip", (gzip.compress,)),
        ("deflate", (zlib.compress,)),
        ("gzip, gzip", (gzip.compress, gzip.compress)),
        ("gzip,deflate", (zlib.compress, gzip.compress)),
    ],
)
def test_an_answer_is_unpacked_up_to_a_limit(
    server: Server,
    open_session: Callable[[float, int], requests.Session],
    coding: str,
    packs: tuple[Callable[[bytes], bytes], ...],
) -> None:
    """What is longer, as received or as unpacked, is an error; what is packed twice is not unpacked at all."""
    body = _pack(*packs)
    header = f"Content-Encoding: {coding}\r\n" if coding else ""
    server.answer = OK + f"{header}Content-Length: {len(body)}\r\n\r\n".encode() + body
    with open_session(WAIT_SECONDS, 100_000) as web, pytest.raises(ContentDecodingError):
        web.get(server.url, timeout=WAIT_SECONDS)


def test_redirects_have_one_deadline(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A calendar's server that sends on and on, each time slowly, has no more time for that."""
    monkeypatch.setattr(calendar_sources, "FETCH_SECONDS", SHORT)
    server.answer = b"HTTP/1.1 302 Found\r\nLocation: /\r\nConnection: close\r\nContent-Length: 9999\r\n\r\n"
    server.drips = b"a"
    sources = CalendarSources(lambda **limits: make_session(LOCAL, **limits))
    with pytest.raises(Unavailable):
        sources.fetch(server.url, None)
    assert server.requests == 1


def test_a_calendar_is_cut_off_by_time_and_by_size(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one is the server's fault, and may be over later; the other is an address of no calendar."""
    sources = CalendarSources(lambda **limits: make_session(LOCAL, **limits))
    body = gzip.compress(b"0" * 5_000_000)
    server.answer = OK + f"Content-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    with pytest.raises(InvalidInput, match="2000000 bytes"):
        sources.fetch(server.url, None)
    monkeypatch.setattr(calendar_sources, "FETCH_SECONDS", SHORT)
    server.answer, server.drips = OK + b"Content-Length: 999999\r\n\r\n", b"a"
    with pytest.raises(Unavailable):
        sources.fetch(server.url, None)


def test_a_model_that_drips_is_cut_off(server: Server) -> None:
    """The call ends by its own limit, however long the server goes on."""
    server.answer, server.drips = b"HTTP/1.1 200 OK\r\nX-", b"a"
    with pytest.raises(ModelUnavailable):
        HttpModel(CHAT, server.url, "small", requests.Session, SHORT).complete("", {}, {})
