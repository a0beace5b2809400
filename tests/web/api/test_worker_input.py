"""Invalid input of a worker is a 400 that names the field, and ends nothing; long texts are cut as in process."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cases import try_each
from tests.web.api.test_invalid_input import DEEP, read_problem
from tests.web.api.test_worker_operations import claim_from_queue
from tests.web.callers import MINUTE, run_path
from tests.web.conftest import Call, create, fetch

from cloudsched.domain.documents.task import MAX_COUNT
from cloudsched.engine.execution.call import MAX_MESSAGE, MAX_TRACEBACK
from cloudsched.engine.handlers.context import MAX_NOTICES, MAX_PROGRESS_NOTES, MAX_TEXT
from cloudsched.testing import Simulation

ERROR = {"type": "E", "message": "m"}
NOTICE = {"title": "t", "body": "b"}

BAD_WISHES: dict[str, tuple[object, str]] = {
    "no claims": ({"limit": 0}, "limit"),
    "too many claims": ({"limit": 101}, "limit"),
    "a limit beyond any store": ({"limit": 10**40}, "limit"),
    "a name with a lone surrogate": ({"worker": "\ud800"}, "worker"),
    "a skill with a slash": ({"skills": ["a/b"]}, "skills.0"),
    "no owner's name": ({"owner": "a/b"}, "owner"),
    "an unknown field": ({"status": "ACTIVE"}, "status"),
}
BAD_WORDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "no token": ("heartbeat", {"leaseToken": None}, "leaseToken"),
    "a token of 1 KB": ("release", {"leaseToken": "x" * 1024}, "leaseToken"),
    "progress that is texts": ("heartbeat", {"progress": ["half"]}, "progress.0"),
    "progress at a naive time": (
        "complete",
        {"progress": [{"text": "x", "at": "2027-01-01T00:00:00"}]},
        "progress.0.at",
    ),
    "a log that is lines": ("heartbeat", {"logs": [{"text": "x"}]}, "logs"),
    "a line of another attempt": (
        "fail",
        {"error": ERROR, "logs": {"lines": [{"text": "x", "attempt": 1}]}},
        "logs.lines.0.attempt",
    ),
    "a line at a naive time": (
        "release",
        {"logs": {"lines": [{"text": "x", "at": "2027-01-01T00:00:00"}]}},
        "logs.lines.0.at",
    ),
    "too many lines": ("heartbeat", {"logs": {"lines": [{"text": "x"}] * 1001}}, "logs.lines"),
    "too many lines before": ("heartbeat", {"logs": {"omittedLines": MAX_COUNT + 1}}, "logs.omittedLines"),
    "a result nested deep": ("complete", {"content": DEEP}, "content" + ".0" * 17),
    "a result too large": ("complete", {"content": "x" * 600_000}, "content"),
    "a result of a cancelled one": ("complete", {"status": "CANCELLED", "content": 0}, "content"),
    "too many notices": ("complete", {"notices": [NOTICE] * (MAX_NOTICES + 1)}, "notices"),
    "a notice too large": ("complete", {"notices": [NOTICE, {"title": "t", "body": "x" * 600_000}]}, "notices.1.body"),
    "queries beyond any store": ("complete", {"queries": MAX_COUNT + 1}, "queries"),
    "no error": ("fail", {}, "error"),
    "final and again": ("fail", {"error": ERROR, "isFinal": True, "retryAfter": 1}, "retryAfter"),
    "again after all time": ("fail", {"error": ERROR, "retryAfter": 1e300}, "retryAfter"),
    "put off for ever": ("release", {"after": 10**11}, "after"),
}


@pytest.fixture
def claim(call: Call, sim: Simulation) -> dict[str, Any]:
    """A run that was claimed just now."""
    create(call, id="t", pull="gpu", expectedDuration=3600)
    sim.advance(5 * MINUTE)
    (made,) = claim_from_queue(call)
    return made


@pytest.mark.parametrize(("wish", "field"), BAD_WISHES.values(), ids=BAD_WISHES)
def test_an_invalid_claim_request_claims_nothing(call: Call, sim: Simulation, wish: object, field: str) -> None:
    """400 names the invalid field, and the offer is still there."""
    create(call, pull="gpu")
    sim.advance(5 * MINUTE)
    before = sim.counts.commits
    assert read_problem(call("POST", "/v1/queues/gpu/claim", json.dumps(wish).encode()))["field"] == field
    assert sim.counts.commits == before
    assert len(claim_from_queue(call)) == 1


@try_each("queue", ["a b", "a.b", "x" * 65, "%2E%2E", "a%00", "ü", "gpu%0A"])
def test_a_queues_name_is_checked(call: Call, queue: str) -> None:
    """A name that no queue can have is a 400."""
    assert read_problem(call("POST", f"/v1/queues/{queue}/claim"))["field"] == "queue"


@try_each("verb, words, field", BAD_WORDS.values())
def test_an_invalid_report_ends_nothing(
    call: Call, sim: Simulation, claim: dict[str, Any], verb: str, words: dict[str, Any], field: str
) -> None:
    """400 names the invalid field, and the claim stays valid."""
    before = sim.counts.commits
    body = {"leaseToken": claim["leaseToken"], **words}
    found = read_problem(call("POST", f"{run_path(claim)}/{verb}", json.dumps(body).encode()))
    assert found["field"] == field
    assert claim["leaseToken"] not in str(found)
    assert sim.counts.commits == before
    assert call("POST", f"{run_path(claim)}/heartbeat", {"leaseToken": claim["leaseToken"]}).status_code == 200


@pytest.mark.parametrize("verb", ["heartbeat", "complete", "fail", "release"])
@try_each("execution", ["x", "..", "__x__", "x" * 2000, "%00", "ü", "20270101T000500Z%0A"])
def test_an_execution_that_is_not_there_is_a_lost_lease(
    call: Call, claim: dict[str, Any], verb: str, execution: str
) -> None:
    """An execution with any other id has no claim."""
    body = {"leaseToken": claim["leaseToken"], **({"error": ERROR} if verb == "fail" else {})}
    answer = call("POST", f"/v1/tasks/t/executions/{execution}/{verb}", body)
    assert read_problem(answer, 409)["type"].endswith("/lease-lost")


def test_long_texts_are_shortened_as_in_process(call: Call, claim: dict[str, Any]) -> None:
    """Progress, titles, errors and reasons are cut as for a handler in process; the end of a traceback is kept."""
    token = {"leaseToken": claim["leaseToken"]}
    steps = [{"text": f"{number}" + "x" * 300} for number in range(MAX_PROGRESS_NOTES + 10)]
    assert call("POST", f"{run_path(claim)}/heartbeat", {**token, "progress": steps}).status_code == 200
    error = {"type": "T" * 500, "message": "m" * 5000, "traceback": "a" * 5000 + "z" * 10}
    assert call("POST", f"{run_path(claim)}/fail", {**token, "error": error}).status_code == 200
    record = fetch(call, run_path(claim))
    assert len(record["progress"]) == MAX_PROGRESS_NOTES
    assert record["progress"][-1]["text"] == steps[-1]["text"][:MAX_TEXT]
    kept = record["error"]
    assert [len(kept[name]) for name in ("type", "message", "traceback")] == [MAX_TEXT, MAX_MESSAGE, MAX_TRACEBACK]
    assert kept["traceback"].endswith("z" * 10)
    (again,) = claim_from_queue(call)
    told = {"leaseToken": again["leaseToken"], "notices": [{"title": "t" * 500, "body": "b" * 5000}] * MAX_NOTICES}
    assert call("POST", f"{run_path(again)}/complete", told).status_code == 200
    messages = fetch(call, "/v1/inboxes/ada/messages")["messages"]
    assert [(len(each["title"]), each["body"].count("b")) for each in messages] == [(MAX_TEXT, 5000)] * MAX_NOTICES
