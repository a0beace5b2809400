"""No thread of ours ends in silence: each is killed from inside in a running service, which goes on and tells it."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.engine.harness import HOUR
from tests.harness import in_steps, request, wait_until
from waitress.channel import HTTPChannel

from cloudsched import App, Context
from cloudsched.adapters import in_process_queue
from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.in_process_queue import InProcessDispatcher
from cloudsched.config.access import Access
from cloudsched.config.settings import Settings
from cloudsched.engine.concurrency import service_threads
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.local import maintenance, service
from cloudsched.local.hand_over import HandOverDispatcher, HandOverListener
from cloudsched.local.service import run_service

ERRORS = (
    MemoryError(),
    sqlite3.OperationalError("disk I/O error"),
    SystemExit(1),
)
READ_THE_CLOCK = ("cloudsched-load", "cloudsched-sweep", "cloudsched-worker")
"""Those of a service that read the clock in each turn: of its workers, the one that leads."""


class Killer:
    """Raises an error in the threads of some names, whenever they read the clock."""

    def __init__(self) -> None:
        self.victims: frozenset[str] = frozenset()
        self.error: BaseException = MemoryError()

    def now(self) -> datetime:
        if threading.current_thread().name in self.victims:
            raise type(self.error)(*self.error.args)
        return datetime.now(UTC)


@pytest.fixture
def killer(monkeypatch: pytest.MonkeyPatch) -> Killer:
    """Nothing waits for long."""
    found = Killer()
    monkeypatch.setattr(SystemClock, "now", found.now)
    for module in (in_process_queue, maintenance):
        monkeypatch.setattr(module, "CLOCK_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(service_threads, "MAX_PAUSE", 0.01)
    return found


@pytest.fixture(autouse=True)
def others() -> set[threading.Thread]:
    """The threads of other services, which other tests have in this process."""
    return {*threading.enumerate()}


def find_threads(others: set[threading.Thread], name: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(name) and each not in others]


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def url(ran: list[str], tmp_path: Path, killer: Killer) -> Iterator[str]:  # noqa: ARG001 - it kills later
    app = App()

    @app.handler("note", access="users")
    def note(ctx: Context) -> None:
        ran.append(ctx.task.id)

    settings = Settings(access=Access(open=True))
    with ExitStack() as parts:
        yield parts.enter_context(run_service(app, settings, data=tmp_path, threads=1)).url


def run_task(url: str, task_id: str) -> None:
    schedule = {"at": (datetime.now(UTC) + HOUR).isoformat()}
    task = {"id": task_id, "owner": "ada", "handler": "note", "schedule": schedule}
    assert request(url, "POST", "/v1/tasks", task).status == 201
    assert request(url, "POST", f"/v1/tasks/{task_id}/trigger").status == 200


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("name", READ_THE_CLOCK)
def test_a_thread_goes_on_and_tells_while_it_does_not(
    url: str, ran: list[str], killer: Killer, name: str, error: BaseException, others: set[threading.Thread]
) -> None:
    """While a thread fails, /ready and /health name it and its error; afterwards it works, and nothing is named."""
    run_task(url, "before")
    wait_until(lambda: ran == ["before"], "the service works")
    threads = find_threads(others, name)
    killer.error, killer.victims = error, frozenset(each.name for each in threads)
    told = list[str]()

    def is_told() -> bool:
        ready, alive = request(url, "GET", "/ready"), request(url, "GET", "/health")
        told.append(str(ready.body.get("detail")))
        faults = alive.body["faults"]
        return (ready.status, alive.status) == (503, 200) and bool(faults) and set(faults) <= killer.victims

    wait_until(is_told, "it is told")
    assert name in told[-1]
    assert type(error).__name__ in told[-1]
    run_task(url, "meanwhile")
    killer.victims = frozenset()
    wait_until(lambda: request(url, "GET", "/ready").status == 200, "it works again")
    assert request(url, "GET", "/health").body["faults"] == {}
    wait_until(lambda: ran == ["before", "meanwhile"], "nothing is lost")
    assert all(each.is_alive() for each in threads)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_the_web_server_outlives_its_threads(url: str, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Each of its requests is answered, whatever their threads meet once they have sent the answer."""
    left, serve = [error] * 10, HTTPChannel.service

    def fail(connection: HTTPChannel) -> None:
        serve(connection)
        if left:
            raise left.pop()

    monkeypatch.setattr(HTTPChannel, "service", fail)
    while left:  # each request is the last one on its connection
        assert request(url, "GET", "/health").status == 200


def test_a_request_that_ends_its_thread_is_answered(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it had failed in any other way."""
    monkeypatch.setattr(service, "serve_api", lambda *_, **__: sys.exit("enough"))
    assert request(url, "GET", "/health").status == 500


def test_the_web_server_outlives_the_thread_that_accepts(
    url: str, monkeypatch: pytest.MonkeyPatch, others: set[threading.Thread]
) -> None:
    """What makes its loop end begins it again."""
    (accepting,) = find_threads(others, "cloudsched-web-server")
    server = accepting.turn.__self__  # type: ignore[attr-defined]  # from inside
    left, is_readable = [SystemExit(1)], type(server).readable

    def fail(self: object) -> bool:
        if left and self is server:
            raise left.pop()
        return bool(is_readable(self))

    monkeypatch.setattr(type(server), "readable", fail)
    wait_until(lambda: not left, "its loop has ended")
    wait_until(lambda: request(url, "GET", "/ready").status == 200, "it serves")


def test_whichever_worker_of_a_queue_fails_all_is_delivered(
    monkeypatch: pytest.MonkeyPatch, others: set[threading.Thread]
) -> None:
    """Also if it was the one that watches the time for the others, which wait for it."""
    monkeypatch.setattr(in_process_queue, "CLOCK_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(service_threads, "MAX_PAUSE", 0.01)
    killer, delivered = Killer(), set[bytes]()
    monkeypatch.setattr(SystemClock, "now", killer.now)
    with InProcessDispatcher(SystemClock(), in_steps(lambda body, _: delivered.add(body)), workers=4) as queue:
        threads = find_threads(others, "cloudsched-worker-")
        killer.victims = frozenset(each.name for each in threads)
        for number in range(20):
            at = datetime.now(UTC)
            queue.create(QueueMessage(str(number), at, str(number).encode(), "token"))
        wait_until(service_threads.find_faults, "some have failed")
        assert not delivered
        killer.victims = frozenset()
        wait_until(lambda: len(delivered) == 20, "all are delivered")
        wait_until(lambda: not service_threads.find_faults(), "all work")
        assert all(each.is_alive() for each in threads)


def test_what_other_processes_hand_over_is_heard_after_a_failure(tmp_path: Path) -> None:
    """The listener's thread outlives what the queue raises; only that dispatch is left to the sweep."""
    heard: list[str] = []

    def accept(name: str, *_: object) -> None:
        heard.append(name)
        if name == "first":
            raise MemoryError

    listener = HandOverListener(tmp_path, accept)
    listener.start()
    try:
        sender = HandOverDispatcher(tmp_path, InProcessDispatcher(SystemClock(), in_steps(lambda *_: None), workers=0))
        for name in ("first", "second"):
            sender.create(QueueMessage(name, datetime.now(UTC), b"", "token"))
        wait_until(lambda: heard == ["first", "second"], "both are heard")
        wait_until(lambda: not service_threads.find_faults(), "it works")
    finally:
        listener.stop()


def test_a_thread_that_ended_all_the_same_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that the interpreter ended: it is told until the process ends."""
    thread = ServiceThread("gone", lambda: None)
    monkeypatch.setattr(thread, "run", lambda: None)
    thread.start()
    thread.join()
    assert service_threads.find_faults() == {"gone": "has ended"}
    thread.stop()
    assert service_threads.find_faults() == {}
