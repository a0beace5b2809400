"""What a worker over HTTP, in any language, is told: no record that is not its own, and no lease token but its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from tests.web.callers import MINUTE, SECOND, Answer, run_path
from tests.web.conftest import Call, create

from cloudsched.testing import Simulation

SOON = 5 * MINUTE
"""When a task without a schedule is due; and how long a lease lasts, if its task says nothing."""


@pytest.fixture
def offer(call: Call, sim: Simulation) -> Callable[..., str]:
    """Let a task of the queue `gpu` come due; return its path."""

    def offer_task(**more: object) -> str:
        answer = create(call, pull="gpu", schedule="PT5M", **more)
        assert answer.status_code == 201, answer.text
        sim.advance(SOON)
        return answer.headers["Location"]

    return offer_task


def claim_from_queue(call: Call, queue: str = "gpu", **wanted: object) -> list[dict[str, Any]]:
    answer = call("POST", f"/v1/queues/{queue}/claim", wanted or None)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    found: list[dict[str, Any]] = answer.json["claims"]
    return found


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
        sim.advance(3 * MINUTE)
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
    seen: list[Answer] = []

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
    sim.advance(2 * SECOND)
    seen.append(call("POST", f"{run_path(claim)}/complete", b'{"leaseToken": "' + token.encode() + b'"'))
    assert {answer.status_code for answer in seen} == {200, 400, 409}
    assert not [answer.text for answer in seen if token in answer.text + str(answer.headers)]
    assert token not in caplog.text
    assert token not in repr(caplog.records)
