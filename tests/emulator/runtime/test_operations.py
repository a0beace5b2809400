"""Inspection from Python and over HTTP: attempts, why a task waits, waiting for its end, and reset."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from tests.emulator.conftest import Client, Hit, Http, Target
from tests.harness import WAIT_SECONDS, wait_until

from cloudsched.emulator import CloudTasksEmulator, Faults, StillWaiting, UnknownTask
from cloudsched.emulator.runtime.history import History
from cloudsched.emulator.runtime.operations import CompletionWaiters

LOCATION = "projects/demo/locations/us-central1"
QUEUE = f"{LOCATION}/queues/default"
START = datetime(2027, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def add(client: Client, url: str, at: datetime = START, **fields: Any) -> str:
    task = client.create_task(parent=QUEUE, task={"http_request": {"url": url}, "schedule_time": at, **fields})
    return str(task.name)


def test_an_attempt_records_its_request_response_and_timing(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target, http: Http
) -> None:
    target.answer = lambda _hit: (500, {"X-Why": "bug"}, b"no") if len(target.hits) == 1 else (201, {}, b"done")
    name = add(grpc_client, f"{target.url}/x", START + DAY)
    began = time.monotonic()
    emulator.run_until_idle()
    first, second = emulator.attempts(task=name)
    assert (first.attempt, second.attempt) == (1, 2)
    assert (first.dispatch_at, first.response_at) == (START + DAY, START + DAY)
    assert (first.answer.status, first.answer.headers["X-Why"], first.answer.body) == (500, "bug", b"no")
    assert first.request.url == f"{target.url}/x"
    assert 0 < first.seconds <= time.monotonic() - began
    shown = http("GET", f"/attempts?task={quote(name)}")[1]["attempts"]
    assert [(one["attempt"], one["response"]["status"], one["ok"]) for one in shown] == [
        (1, 500, False),
        (2, 201, True),
    ]
    assert shown[1]["scheduleTime"] == "2027-01-02T00:00:00.100000Z"
    assert http("GET", "/attempts?queue=other")[1] == {"attempts": []}
    assert emulator.attempts(queue=QUEUE) == emulator.attempts()


def test_the_oldest_attempts_are_dropped_first(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    for _ in range(3):
        add(grpc_client, target.url, START + DAY)
    emulator.run_until_idle()
    kept = emulator.attempts()
    by_number, by_size = History(2), History(max_body_bytes=5)
    for attempt in kept:
        by_number.add(attempt)
        by_size.add(replace(attempt, answer=replace(attempt.answer, body=b"xyz")))
    assert by_number.attempts() == kept[1:]
    assert len(by_size.attempts()) == 1


def test_a_waiting_task_has_a_reason_and_a_next_instant(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target, http: Http
) -> None:
    released = threading.Event()

    def answer(hit: Hit) -> int:
        if hit.path == "/slow":
            released.wait(WAIT_SECONDS)
        return 404

    target.answer = answer
    later = add(grpc_client, target.url, START + DAY)

    def why(name: str) -> tuple[str, datetime | None]:
        explanation = emulator.explain(name)
        assert explanation is not None
        return explanation.reason, explanation.next_at

    assert why(later) == ("SCHEDULED", START + DAY)
    emulator.advance(DAY)
    assert why(later) == ("BACKOFF", START + DAY + timedelta(seconds=0.1))
    slow = add(grpc_client, f"{target.url}/slow", START + DAY)
    wait_until(lambda: len(target.hits) == 2)
    assert why(slow) == ("RUNNING", None)
    grpc_client.update_queue(queue={"name": QUEUE, "rate_limits": {"max_concurrent_dispatches": 1}})
    third = add(grpc_client, target.url, START + DAY)
    assert why(third) == ("CONCURRENCY", None)
    grpc_client.pause_queue(name=QUEUE)
    assert why(third) == ("PAUSED", None)
    shown = http("GET", f"/tasks?queue={quote(QUEUE)}")[1]["tasks"]
    assert {one["reason"] for one in shown} == {"PAUSED", "RUNNING"}
    assert http("GET", f"/tasks?task={quote(slow)}")[1]["tasks"][0]["reason"] == "RUNNING"
    assert len(emulator.waiting()) == 3
    released.set()


def test_a_task_delayed_by_rate_or_fault_says_so(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target
) -> None:
    grpc_client.update_queue(queue={"name": QUEUE, "rate_limits": {"max_dispatches_per_second": 0.5}})
    names = [add(grpc_client, target.url) for _ in range(11)]
    for name in names[:10]:
        emulator.wait(name, WAIT_SECONDS)
    explanation = emulator.explain(names[10])
    assert explanation is not None
    assert (explanation.reason, explanation.next_at) == ("RATE", START + timedelta(seconds=2))
    emulator.inject(Faults(late=1))
    held = emulator.explain(add(grpc_client, target.url))
    assert held is not None
    assert (held.reason, held.next_at) == ("HELD", START + timedelta(minutes=5))


def test_wait_returns_when_the_task_is_done(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target, http: Http
) -> None:
    now = add(grpc_client, target.url)
    assert [attempt.answer.status for attempt in emulator.wait(now, WAIT_SECONDS)] == [200]
    assert http("POST", "/wait", {"task": now})[1]["attempts"][0]["ok"] is True
    later = add(grpc_client, target.url, START + DAY)
    with pytest.raises(StillWaiting, match="It is scheduled for 2027-01-02"):
        emulator.wait(later, timeout=0.01)
    reply = http("POST", "/wait", {"task": later, "timeout": 0.01})[1]
    assert (reply["done"], reply["why"]["nextTime"]) == (False, "2027-01-02T00:00:00.000000Z")
    done: list[int] = []
    waiter = threading.Thread(target=lambda: done.append(len(emulator.wait(later, WAIT_SECONDS))))
    waiter.start()
    emulator.advance(DAY)
    waiter.join(WAIT_SECONDS)
    assert done == [1]


def test_deleting_ends_the_wait(emulator: CloudTasksEmulator, grpc_client: Client, target: Target) -> None:
    name = add(grpc_client, target.url, START + DAY)
    done: list[int] = []
    waiter = threading.Thread(target=lambda: done.append(len(emulator.wait(name, WAIT_SECONDS))))
    waiter.start()
    grpc_client.delete_task(name=name)
    waiter.join(WAIT_SECONDS)
    assert done == [0]
    assert emulator.explain(name) is None


def test_reset_ends_the_wait() -> None:
    async def run() -> bool:
        waiters = CompletionWaiters()
        waiting = asyncio.create_task(waiters.wait("a task", 60))
        await asyncio.sleep(0)
        waiters.release_all()
        return await waiting

    assert asyncio.run(run()) is True


def test_waiting_for_a_task_that_never_existed_is_an_error(emulator: CloudTasksEmulator, http: Http) -> None:
    for name in (f"{QUEUE}/tasks/never", f"{LOCATION}/queues/none/tasks/x", "nonsense"):
        with pytest.raises(UnknownTask):
            emulator.wait(name)
        assert http("POST", "/wait", {"task": name})[0] == 404
    for body in ({}, {"task": 5}, {"task": "x", "timeout": -1}, {"task": "x", "more": 1}):
        assert http("POST", "/wait", body)[0] == 400


def test_reset_keeps_only_the_declared_queues(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target, http: Http
) -> None:
    released = threading.Event()
    target.answer = lambda _hit: 200 if released.wait(WAIT_SECONDS) else 500
    name = add(grpc_client, target.url, name=f"{QUEUE}/tasks/again")
    wait_until(lambda: len(target.hits) == 1)
    grpc_client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/extra"})
    grpc_client.delete_queue(name=f"{LOCATION}/queues/extra")
    assert http("POST", "/reset", {})[0] == 200
    released.set()
    assert [queue.name for queue in grpc_client.list_queues(parent=LOCATION)] == [QUEUE]
    assert emulator.attempts() == []
    assert emulator.waiting() == []
    grpc_client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/extra"})
    assert add(grpc_client, target.url, name=name) == name
    emulator.reset()
    assert emulator.waiting() == []


def test_using_a_stopped_emulator_is_a_clear_error() -> None:
    emulator = CloudTasksEmulator()
    with pytest.raises(RuntimeError, match="not running"):
        emulator.advance(DAY)
    emulator.start()
    with pytest.raises(RuntimeError, match="already running"):
        emulator.start()
    emulator.stop()
    emulator.stop()
