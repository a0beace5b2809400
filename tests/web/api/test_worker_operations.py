"""A worker over HTTP, in any language: it claims, sends heartbeats, and says how it ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.web.api.test_invalid_input import read_problem
from tests.web.callers import run_path
from tests.web.conftest import Call
from werkzeug.test import TestResponse

from cloudsched.testing import Simulation

SOON = timedelta(minutes=5)
"""When a task without a schedule is due; and how long a lease lasts, if its task says nothing."""


@pytest.fixture
def offer(call: Call, sim: Simulation, greeting: dict[str, Any]) -> Callable[..., str]:
    """Let a task of the queue `gpu` come due; return its path."""

    def offer_task(**more: object) -> str:
        answer = call("POST", "/v1/tasks", {**greeting, "pull": "gpu", "schedule": "PT5M", **more})
        assert answer.status_code == 201, answer.text
        sim.advance(SOON)
        return answer.headers["Location"]

    return offer_task


def claim_from_queue(call: Call, queue: str = "gpu", **wanted: object) -> list[dict[str, Any]]:
    """Claim runs of a queue."""
    answer = call("POST", f"/v1/queues/{queue}/claim", wanted or None)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    found: list[dict[str, Any]] = answer.get_json()["claims"]
    return found


def test_a_claim_returns_only_what_it_asks_for(call: Call, offer: Callable[..., str]) -> None:
    """By queue, skill, handler and number; the most urgent first."""
    offer(id="any", priority="LOW")
    offer(id="skilled", pull={"queue": "gpu", "skill": "cuda"})
    offer(id="other", handler="anything")
    offer(id="urgent", priority="HIGH")
    assert claim_from_queue(call, "render") == []
    assert claim_from_queue(call, handlers=[]) == []
    assert [each["task"]["id"] for each in claim_from_queue(call, handlers=["anything"], limit=100)] == ["other"]
    assert [each["task"]["id"] for each in claim_from_queue(call)] == ["urgent"]
    assert [each["task"]["id"] for each in claim_from_queue(call, limit=100)] == ["any"]
    assert [each["task"]["id"] for each in claim_from_queue(call, skills=["cuda", "cuda", "x"])] == ["skilled"]


def test_a_lost_lease_cannot_end_a_run(call: Call, sim: Simulation, offer: Callable[..., str]) -> None:
    """A worker whose lease has ended gets 409 lease-lost for every report; the next worker's result counts."""
    place = offer(retry={"maxRetries": 1})
    (slow,) = claim_from_queue(call)
    sim.advance(SOON + timedelta(minutes=2))
    assert call("GET", place).get_json()["offeredAt"]
    (quick,) = claim_from_queue(call)
    assert (quick["executionId"], quick["attempt"]) == (slow["executionId"], 2)
    failed = {"error": {"type": "E", "message": "m"}}
    for verb, more in (("heartbeat", {}), ("complete", {"content": 1}), ("fail", failed), ("release", {})):
        lost = read_problem(call("POST", f"{run_path(slow)}/{verb}", {"leaseToken": slow["leaseToken"], **more}), 409)
        assert lost["type"].endswith("/lease-lost")
        assert slow["leaseToken"] not in str(lost)
    assert call("GET", place).get_json()["isRunning"] is True
    call("POST", f"{run_path(quick)}/complete", {"leaseToken": quick["leaseToken"], "content": 2})
    record = call("GET", run_path(quick)).get_json()
    assert (record["content"], [each["status"] for each in record["attempts"]]) == (2, ["TIMED_OUT", "SUCCEEDED"])


def test_a_failure_is_tried_again_as_the_task_says(call: Call, sim: Simulation, offer: Callable[..., str]) -> None:
    """By its policy, or when the worker says; until no attempt is left, or the worker says that none is worth it."""
    place = offer(retry={"maxRetries": 2, "firstDelay": 60})
    error = {"type": "GpuError", "message": "out of memory", "traceback": "line 1"}
    for attempt, wait in ((1, None), (2, 600)):
        (claim,) = claim_from_queue(call)
        assert claim["attempt"] == attempt
        more = {} if wait is None else {"retryAfter": wait}
        task = call("POST", f"{run_path(claim)}/fail", {"leaseToken": claim["leaseToken"], "error": error, **more})
        assert task.get_json()["status"] == "ACTIVE"
        record = call("GET", run_path(claim)).get_json()
        assert (record["status"], record["error"]) == ("RETRYING", error)
        if wait:
            sim.advance(timedelta(seconds=wait - 1))
            assert claim_from_queue(call) == []
        sim.advance(timedelta(minutes=3))
    (last,) = claim_from_queue(call)
    ended = call("POST", f"{run_path(last)}/fail", {"leaseToken": last["leaseToken"], "error": error})
    assert ended.get_json()["status"] == "FAILED"
    record = call("GET", run_path(last)).get_json()
    assert record.pop("allowedVerbs") == ["retry"]
    assert ended.get_json() == {**call("GET", place).get_json(), "failedExecution": record}
    assert ended.headers["ETag"] == call("GET", place).headers["ETag"]


def test_a_repeated_failure_report_does_not_return_a_later_record(
    call: Call, sim: Simulation, offer: Callable[..., str]
) -> None:
    """A worker that repeats a failure after a later one has been recorded does not receive the later record."""
    offer(retry={"maxRetries": 1, "firstDelay": 60})
    said = []
    for _ in range(2):
        (claim,) = claim_from_queue(call)
        body = {"leaseToken": claim["leaseToken"], "error": {"type": "E", "message": "m"}}
        said.append(
            (f"{run_path(claim)}/fail", body, "failedExecution" in call("POST", f"{run_path(claim)}/fail", body).text)
        )
        sim.advance(timedelta(minutes=3))
    again = ["failedExecution" in call("POST", path, body).text for path, body, _ in said]
    assert [had for _, _, had in said] == again == [False, True]


def test_a_lease_token_appears_only_in_its_claim(
    call: Call, sim: Simulation, offer: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    """No list, no task, no execution, no error and no line of the log has it: only the answer to the claim."""
    caplog.set_level(logging.DEBUG)
    place = offer(retry={"maxRetries": 1})
    (claim,) = claim_from_queue(call)
    token = claim["leaseToken"]
    seen: list[TestResponse] = []

    def collect_answers() -> None:
        paths = (place, f"{place}/executions", run_path(claim), f"{place}/tree", "/v1/tasks", "/v1/tasks?status=ACTIVE")
        seen.extend(call("GET", path) for path in paths)

    collect_answers()
    said: list[tuple[str, dict[str, Any]]] = [
        ("heartbeat", {"leaseToken": token, "progress": [{"text": 5}]}),
        ("heartbeat", {"leaseToken": [token]}),
        ("complete", {"leaseToken": token * 5}),
        ("complete", {"leaseToken": f"{token}x"}),
        ("heartbeat", {"leaseToken": token}),
        ("release", {"leaseToken": token, "after": 1}),
    ]
    seen.extend(call("POST", f"{run_path(claim)}/{verb}", body) for verb, body in said)
    collect_answers()
    sim.advance(timedelta(seconds=2))
    seen.append(call("POST", f"{run_path(claim)}/complete", b'{"leaseToken": "' + token.encode() + b'"'))
    assert {answer.status_code for answer in seen} == {200, 400, 409}
    assert not [answer.text for answer in seen if token in answer.text + str(answer.headers)]
    assert token not in caplog.text
    assert token not in repr(caplog.records)
