"""A new world for each test of a worker: with the store as its source, and once more with the API."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.worker.harness import Gate, WorkerHarness

from cloudsched import App
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.api import problems
from cloudsched.web.functions import wsgi
from cloudsched.worker import slot, worker


@pytest.fixture(autouse=True)
def _shorten_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let waits that are there for a service's sake be short."""
    monkeypatch.setattr(slot, "INITIAL_BACKOFF", 0.01)
    monkeypatch.setattr(slot, "MAX_BACKOFF", 0.01)
    monkeypatch.setattr(problems, "RETRY_AFTER_SECONDS", 0)
    monkeypatch.setattr(worker.PollBackoff, "INITIAL_BACKOFF", 0.01)
    monkeypatch.setattr(worker.PollBackoff, "MAX_BACKOFF", 0.01)


@pytest.fixture
def sim(app: App, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulation]:
    """A simulation whose queue takes dispatches from several threads."""
    with Simulation(app, default_lead=timedelta(0)) as simulation:
        create, lock = simulation.queue.create, threading.RLock()

        def create_one_at_a_time(*arguments: Any) -> None:
            with lock:
                create(*arguments)

        monkeypatch.setattr(simulation.queue, "create", create_one_at_a_time)
        yield simulation


@pytest.fixture(params=["store", "api"])
def harness(request: pytest.FixtureRequest, sim: Simulation) -> Iterator[WorkerHarness]:
    """The world, with desks of one kind."""
    if request.param == "store":
        yield WorkerHarness(sim, "", "store")
        return
    with WebServer(wsgi(sim.app)) as server:
        server.serve()
        yield WorkerHarness(sim, f"http://{server.address}", "api")


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate for a test's handlers, which is open in the end."""
    made = Gate()
    yield made
    made.open()
