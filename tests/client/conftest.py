"""A client in front of a real server of the API, over a network that the test can break."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from tests import greeting_app
from tests.client.harness import Flaky
from werkzeug.wrappers import Request

from cloudsched.client import Client
from cloudsched.client import client as client_module
from cloudsched.local.wsgi_server import WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched import App
    from cloudsched.testing import Simulation


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    """Let a client that looks for the last time give a busy machine a minute to answer, and not five seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client_module, "MIN_POLL_TIMEOUT", 60.0)
        yield


@pytest.fixture
def app() -> App:
    """The app with the greeting handlers, in place of one without handlers."""
    return greeting_app.app


@pytest.fixture
def flaky(sim: Simulation) -> Flaky:
    """A network that the test can break."""
    return Flaky(sim)


@pytest.fixture
def url(flaky: Flaky) -> Iterator[str]:
    """The address of the API."""
    with WebServer(Request.application(flaky)) as server:
        server.serve()
        yield f"http://{server.address}"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    """A client of it."""
    with Client(url) as made:
        yield made


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the test would have waited; it does not. Other threads do, such as that of a server which stops."""
    waited: list[float] = []
    test, really = threading.get_ident(), time.sleep

    def sleep(seconds: float) -> None:
        waited.append(seconds) if threading.get_ident() == test else really(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    return waited
