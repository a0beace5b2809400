"""Claims that wait for work at the API: who gets it, how many wait, and when they stop."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import httpx
import pytest
from tests.harness import wait_until
from tests.web.callers import DAY, MINUTE, SECOND

from cloudsched import App, Schedule, Task
from cloudsched.client import Client
from cloudsched.errors import InvalidInput
from cloudsched.local import wsgi_server
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import Simulation
from cloudsched.web.functions import wsgi
from cloudsched.web.waiting_room import WaitingRoom

WAIT = 20 * SECOND


@pytest.fixture
def sim() -> Iterator[Simulation]:
    app = App()

    app.handler("act")(lambda: None)

    with Simulation(app, default_lead=timedelta(0)) as simulation:
        yield simulation


class Place:
    """An API that listens, and those who wait there."""

    def __init__(self, sim: Simulation, server: WebServer) -> None:
        self.sim = sim
        self.server = server
        self.url = f"http://{server.address}"
        self.room = server.room
        self._pool = ThreadPoolExecutor(16)

    def ask(self, worker: str = "box", queue: str = "gpu") -> Future[list[str]]:
        """Claim with a wait, beside the test. The result is the ids of the tasks."""

        def claim() -> list[str]:
            with Client(self.url, timeout=60) as client:
                return [each.task.id for each in client.claim(queue, worker=worker, wait=WAIT)]

        return self._pool.submit(claim)

    def wait_until_waiting(self, count: int) -> None:
        wait_until(lambda: self.room.count == count, f"{count} wait")

    def offer(self) -> Task:
        fields = {"owner": "ada", "title": "act", "handler": "act", "pull": "gpu"}
        task = self.sim.app.create(**fields, schedule=Schedule.once(self.sim.now + MINUTE))  # type: ignore[arg-type]
        self.sim.advance(MINUTE)
        return task

    def is_free(self, task: Task) -> bool:
        return not any(run.lease for run in self.sim.app.get(task.id).runs)


@pytest.fixture
def place(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server with places for four who wait."""
    monkeypatch.setattr(wsgi_server, "MAX_THREADS", 8)
    with WebServer(wsgi(sim.app)) as server:
        server.serve()
        yield Place(sim, server)


def test_one_of_those_who_wait_gets_a_run_that_comes_due(place: Place) -> None:
    """The answer has the run, and the others go on waiting: no two get the same."""
    waiting = {place.ask("box-1"), place.ask("box-2")}
    place.wait_until_waiting(2)
    first = place.offer()
    place.wait_until_waiting(1)
    second = place.offer()
    assert sorted(task for each in waiting for task in each.result(60)) == sorted([first.id, second.id])


def test_those_beyond_the_places_are_answered_at_once(place: Place) -> None:
    """They are told when to ask again, and requests that do not wait are served as ever.

    No claim keeps a server from its end, nor gets work after that.
    """
    waiting = [place.ask(f"box-{number}") for number in range(4)]
    place.wait_until_waiting(4)
    answer = httpx.post(f"{place.url}/v1/queues/gpu/claim", json={"wait": 20}, timeout=60)
    assert answer.json() == {"claims": []}
    assert int(answer.headers["Retry-After"]) > 0
    assert httpx.get(f"{place.url}/v1/tasks", timeout=60).is_success
    place.server.stop()
    assert [each.result(60) for each in waiting] == [[]] * 4


def test_a_client_that_has_gone_gets_nothing(place: Place) -> None:
    """A run that it claimed would stand still until the lease ended. So it is there for the next one."""
    host, _, port = place.server.address.rpartition(":")
    with closing(socket.create_connection((host, int(port)))) as connection:
        body = b'{"wait": 20}'
        connection.sendall(
            b"POST /v1/queues/gpu/claim HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        connection.sendall(body)
        place.wait_until_waiting(1)
    task = place.offer()
    place.wait_until_waiting(0)
    assert place.is_free(task)


@pytest.mark.parametrize("wait", [-1, 20.5, 1e400, "soon", True, [1]])
def test_a_wait_that_is_none_is_refused(place: Place, wait: object) -> None:
    """A negative one, one that is too long, and what is no number of seconds: 400, with the field."""
    content = json.dumps({"wait": wait}).replace("Infinity", "1e400")
    answer = httpx.post(f"{place.url}/v1/queues/gpu/claim", content=content, timeout=60)
    assert answer.status_code == 400
    assert "wait" in answer.text


@pytest.mark.parametrize("wait", [timedelta(seconds=-90), 9 * DAY])
def test_the_client_says_so_as_well(place: Place, wait: timedelta) -> None:
    """A wait that the API refuses is InvalidInput, and no error of the connection."""
    with Client(place.url, timeout=60) as client, pytest.raises(InvalidInput):
        client.claim("gpu", wait=wait)


def test_without_a_server_that_knows_its_threads_nobody_waits(sim: Simulation) -> None:
    """The answer comes at once, with the time to ask again."""
    transport = httpx.WSGITransport(wsgi(sim.app))
    with httpx.Client(transport=transport, base_url="http://localhost") as client:
        answer = client.post("/v1/queues/gpu/claim", json={"wait": 20})
    assert answer.json() == {"claims": []}
    assert "Retry-After" in answer.headers


def test_users_who_wait_leave_places_for_workers() -> None:
    """However many connections one of them opens."""
    room = WaitingRoom(16)
    users = [room.enter(threading.Event(), is_user=True) for _ in range(20)]
    assert 0 < sum(users) < 8
    assert room.enter(threading.Event()), "a worker gets in"
