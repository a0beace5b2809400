"""The attempts that were made, in Python and over HTTP."""

from __future__ import annotations

import time
from dataclasses import replace
from urllib.parse import quote

import pytest
from tests.emulator.conftest import DAY, QUEUE, START, Client, Http, Target, add

from cloudsched.emulator import CloudTasksEmulator
from cloudsched.emulator.runtime.attempt_history import History


def test_an_attempt_records_its_request_response_and_timing(
    emulator: CloudTasksEmulator, grpc_client: Client, target: Target, http: Http
) -> None:
    target.answer = lambda _hit: (500, {"X-Why": "bug"}, b"no") if len(target.hits) == 1 else (201, {}, b"done")
    name = add(grpc_client, f"{target.url}/x")
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
        add(grpc_client, target.url)
    emulator.run_until_idle()
    kept = emulator.attempts()
    by_number, by_size = History(2), History(max_body_bytes=5)
    for attempt in kept:
        by_number.add(attempt)
        by_size.add(replace(attempt, answer=replace(attempt.answer, body=b"xyz")))
    assert by_number.attempts() == kept[1:]
    assert len(by_size.attempts()) == 1


def test_using_a_stopped_emulator_is_a_clear_error() -> None:
    emulator = CloudTasksEmulator()
    with pytest.raises(RuntimeError, match="not running"):
        emulator.advance(DAY)
    emulator.start()
    with pytest.raises(RuntimeError, match="already running"):
        emulator.start()
    emulator.stop()
    emulator.stop()
