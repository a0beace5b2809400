"""A client in front of a real server of the API, over a network that the test can break."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import cast

import pytest
from tests.client.harness import Awaited, Flaky
from tests.web.conftest import _allow_slow_last_poll, app
from werkzeug.wrappers import Request

from cloudsched.client import AsyncClient, Client
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation

__all__ = ["_allow_slow_last_poll", "app"]  # fixtures of the API's tests


@pytest.fixture
def flaky(sim: Simulation) -> Flaky:
    return Flaky(sim)


@pytest.fixture
def url(flaky: Flaky) -> Iterator[str]:
    with WebServer(Request.application(flaky)) as server:
        server.serve()
        yield f"http://{server.address}"


@pytest.fixture(params=["blocking", "asynchronous"])
def client(url: str, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of the API; the asynchronous one is awaited through a wrapper that looks like the blocking one."""
    if request.param == "blocking":
        with Client(url) as made:
            yield made
        return
    with asyncio.Runner() as runner:
        asynchronous = AsyncClient(url)
        yield cast("Client", Awaited(asynchronous, runner))
        runner.run(asynchronous.close())


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the test would have waited; it does not. Other threads do, such as that of a server which stops."""
    waited: list[float] = []
    test, really = threading.get_ident(), time.sleep

    def sleep(seconds: float) -> None:
        waited.append(seconds) if threading.get_ident() == test else really(seconds)

    monkeypatch.setattr(time, "sleep", sleep)

    async def sleep_on_loop(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep_on_loop)
    return waited
