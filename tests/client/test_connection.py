"""The proxy that the environment names: each client obeys it, and none asks it for this machine's own addresses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tests.cases import try_each
from tests.client.harness import IN_BOTH_COLOURS

from cloudsched.client import AsyncClient, Client
from cloudsched.client.connection import find_proxy
from cloudsched.errors import Misconfigured, NotFound

NOT_FOUND = b'{"type": "about:blank", "title": "Not found", "status": 404, "code": "NotFound", "detail": "none"}'
NAMES = [f"{name}{kind}" for name in ("http", "https", "all", "no") for kind in ("_proxy", "_PROXY")]


class Proxy(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(404)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(NOT_FOUND)))
        self.end_headers()
        self.wfile.write(NOT_FOUND)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def proxy() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Proxy)
    Proxy.asked = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@IN_BOTH_COLOURS
def test_every_client_asks_the_proxy(proxy: HTTPServer, monkeypatch: pytest.MonkeyPatch, *, is_async: bool) -> None:
    """Blocking or not, and neither for an address of this machine."""

    def get(url: str) -> None:
        if not is_async:
            with Client(url, key="k") as client:
                client.get("t")
            return

        async def get_async() -> None:
            async with AsyncClient(url, key="k") as client:
                await client.get("t")

        asyncio.run(get_async())

    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.server_port}")
    for url in ("http://api.example", f"http://127.0.0.1:{proxy.server_port}"):
        with pytest.raises(NotFound):
            get(url)
    assert Proxy.asked == ["http://api.example/v1/tasks/t", "/v1/tasks/t"]


@try_each(
    "variables, url, expected",
    [
        ({}, "https://api.example", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://api.example", "http://p:1"),
        ({"https_proxy": "p:1"}, "https://api.example", "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1"}, "http://api.example", None),
        ({"ALL_PROXY": "http://p:1"}, "http://api.example", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "other,.example"}, "http://api.example:80", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "api.example:81"}, "http://api.example:81/x", None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, "http://api.example", None),
        ({"ALL_PROXY": "http://p:1"}, "http://localhost:8080", None),
        ({"ALL_PROXY": "http://p:1"}, "http://127.3.2.1:8080", None),
        ({"ALL_PROXY": "http://p:1"}, "http://[::1]:8080", None),
        ({"ALL_PROXY": "http://p:1"}, "http://dev.localhost:8080", None),
    ],
)
def test_the_usual_variables_name_it(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str, expected: str | None
) -> None:
    """In either case of letters, as other programs read them."""
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        found = find_proxy(url)
    assert (None if found is None else str(found.url)) == expected


@try_each("proxy", ["ftp://p:1", "socks://p:1", "SOCKS5://p:1", "socks5h://p:1"])
def test_a_proxy_that_cannot_be_used_is_told_at_once(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    """And not as an API that does not answer. SOCKS needs a package that is not installed here."""
    with monkeypatch.context() as patch:
        patch.setattr("cloudsched.client.connection.find_spec", lambda _: None)
        patch.setenv("ALL_PROXY", proxy)
        with pytest.raises(Misconfigured, match=r"http://api\.example"):
            Client("http://api.example")
