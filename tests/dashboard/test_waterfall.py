"""A run's page: one linear axis, one value for what a run took, and what the run got."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import NOW, look

from cloudsched.dashboard.charts import list_rows
from cloudsched.dashboard.times import NONE, write_duration, write_took
from cloudsched.dashboard.views.execution import build, build_comparison, find_payload
from cloudsched.dashboard.views.runs import build_execution
from cloudsched.domain.documents.execution import Execution

START = datetime(2027, 3, 20, 8, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def at(seconds: float) -> str:
    return (START + seconds * SECOND).isoformat()


def attempt(number: int, start: float, end: float, status: str = "FAILED", **more: str) -> dict[str, Any]:
    return {"number": number, "startedAt": at(start), "finishedAt": at(end), "status": status, **more}


def step(kind: str, start: float, end: float | None, number: int = 1, **more: Any) -> dict[str, Any]:
    ended = {} if end is None else {"finishedAt": at(end)}
    status = "WAITING" if end is None else "SUCCEEDED"
    return {"number": number, "kind": kind, "name": "s", "startedAt": at(start), "status": status, **ended, **more}


def record(*attempts: dict[str, Any], steps: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "e",
        "taskId": "t",
        "owner": "ada",
        "status": "FAILED",
        "scheduledFor": at(0),
        "startedAt": attempts[0]["startedAt"] if attempts else at(0),
        "finishedAt": attempts[-1]["finishedAt"] if attempts else at(9),
        "attempts": list(attempts),
        "steps": steps or [],
        **more,
    }


SPANS = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 900)), max_size=6)
STEPS = st.lists(
    st.tuples(st.sampled_from(["STEP", "SLEEP", "EVENT", "CALL"]), st.integers(0, 5000), st.integers(0, 900))
)
STATUSES = st.sampled_from(["FAILED", "SUCCEEDED", "CANCELLED", "RUNNING", "RETRYING", "SUSPENDED", "SKIPPED"])


def make_record(spans: list[tuple[int, int]], steps: list[tuple[str, int, int]], status: str) -> dict[str, Any]:
    """Return a record whose attempts follow each other, with steps anywhere."""
    attempts, begin = [], 0
    for number, (pause, took) in enumerate(spans, 1):
        begin += pause
        attempts.append(attempt(number, begin, begin + took))
        begin += took
    made = [step(kind, start, start + took, index + 1) for index, (kind, start, took) in enumerate(steps)]
    said = {"message": "It bounced.", "error": {"type": "ValueError", "message": "bad"}}
    found = record(*attempts, steps=made, status=status, **said)
    found["finishedAt"] = at(max([begin, *(start + took for _, start, took in steps)]))
    if status in {"RUNNING", "RETRYING", "SUSPENDED"}:
        del found["finishedAt"]
    if status in {"RUNNING", "SUSPENDED"}:
        found["attemptStartedAt"] = at(begin + 60)
    if status == "SKIPPED":
        del found["startedAt"]
    return found


@given(SPANS, STEPS, STATUSES)
def test_bars_stand_where_their_times_are(
    spans: list[tuple[int, int]], steps: list[tuple[str, int, int]], status: str
) -> None:
    """The axis is linear: a bar's place and width are those of its time, and none leaves the axis."""
    found = make_record(spans, steps, status)
    end = datetime.fromisoformat(found["finishedAt"]) if "finishedAt" in found else NOW
    length = max(end - START, timedelta(milliseconds=1))
    for each, row in zip(found["steps"], list_rows(found, NOW)[1:], strict=True):
        ((x, width),) = re.findall(r'x="([0-9.]+)%"[^>]* width="([0-9.]+%?)"', row["chart"])
        begin, finish = (datetime.fromisoformat(each[name]) for name in ("startedAt", "finishedAt"))
        assert abs(float(x) - 100 * ((begin - START) / length)) < 0.02
        share = 100 * ((finish - begin) / length)
        assert width == "3" if share <= 0.3 else abs(float(width[:-1]) - share) < 0.02
        assert float(x) + share <= 100.02


@given(SPANS, STEPS, STATUSES)
def test_what_a_run_took_is_one_value(
    spans: list[tuple[int, int]], steps: list[tuple[str, int, int]], status: str
) -> None:
    """The lists, the run's page, its timeline, a comparison, and the API's filter all mean the same."""
    found = make_record(spans, steps, status)
    told = write_took(found, NOW)
    ran = sum((took for _, took in spans), 0) * SECOND
    if "attemptStartedAt" in found:
        ran += NOW - datetime.fromisoformat(found["attemptStartedAt"])
    assert told == (write_duration(ran) if "startedAt" in found else NONE)
    assert Execution.model_validate(found).took(NOW) == (ran if "startedAt" in found else None)
    assert build_execution(found, look())["took"] == told
    task = {"id": "t", "title": "T", "status": "ACTIVE", "revision": 1, "payload": {}}
    answer: dict[str, Any] = {"both": [found, found], "logs": [[], []], "task": task, "history": None}
    assert (" ", f"Took: {told}") in build_comparison(answer, look())["lines"]
    nothing: dict[str, Any] = dict.fromkeys(("logs", "history"))
    page = build(
        {
            **nothing,
            "execution": found,
            "task": task,
            "mayStart": False,
            "why": "",
            "eventSchemas": {},
            "deliveries": [],
        },
        look(),
    )
    assert dict(page["facts"]).get("Took", NONE) == told
    if "startedAt" in found:
        assert page["rows"][0]["took"] == told
    assert ("with ValueError: bad. It bounced." in page["sentence"]) == (status == "FAILED")


@pytest.mark.parametrize(
    ("record_has", "history", "revision", "payload", "words"),
    [
        ({"payload": {"a": 1}}, None, 1, {"a": 1}, "its own payload"),
        ({"hasUnrecordedPayload": True}, None, 1, None, "too large"),
        ({}, None, 1, {"now": 2}, "The task's payload."),
        ({}, None, 2, None, "was not recorded"),
        (
            {},
            {
                "entries": [
                    {"number": 4, "at": at(5), "action": "PAUSED"},
                    {"number": 2, "at": at(-5), "action": "EDITED"},
                ]
            },
            9,
            None,
            "was not recorded",
        ),
        (
            {},
            {
                "entries": [
                    {"number": 4, "at": at(5), "action": "PAUSED"},
                    {"number": 3, "at": at(-5), "action": "EDITED"},
                ]
            },
            9,
            {"now": 2},
            "The task's payload.",
        ),
        (
            {},
            {"entries": [{"number": 1, "at": at(5), "action": "EDITED", "fields": [{"field": "payload"}]}]},
            2,
            None,
            "edited since",
        ),
        (
            {},
            {"entries": [{"number": 1, "at": at(5), "action": "EDITED", "fields": [{"field": "title"}]}]},
            2,
            {"now": 2},
            "task's",
        ),
    ],
)
def test_what_a_run_got_is_known_or_said_not_to_be(
    record_has: dict[str, Any], history: dict[str, Any] | None, revision: int, payload: object, words: str
) -> None:
    """Its own payload, or its task's as long as no later edit may have changed that."""
    task = {"payload": {"now": 2}, "revision": revision}
    found, note = find_payload({"scheduledFor": at(0), **record_has}, task, history)
    assert found == payload
    assert words in note
