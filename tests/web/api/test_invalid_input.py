"""Every invalid request is answered with a problem document that names the field, at a cost that its size says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.call_counts import count_calls
from tests.cases import try_each
from tests.web.callers import Answer
from tests.web.conftest import Call, create, fetch

from cloudsched.testing import Simulation
from cloudsched.web.api.parse import MAX_VALUES

DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00"}
DEEP: Any = 0
for _ in range(100):
    DEEP = [DEEP]

BAD_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "number that is text": ({"lockLimit": "3"}, "lockLimit"),
    "number that is a boolean": ({"queryPerExecution": True}, "queryPerExecution"),
    "unknown handler": ({"handler": "nobody"}, "handler"),
    "payload that does not fit": ({"payload": {"name": 5}}, "payload.name"),
    "payload with something more": ({"handler": "anything", "payload": {"a": {"": 1}}}, "payload.a"),
    "payload with a huge integer": ({"handler": "anything", "payload": {"a": 2**63}}, "payload.a"),
    "payload with a lone surrogate": ({"payload": {"name": "\ud800"}}, "payload.name"),
    "payload nested deep": ({"handler": "anything", "payload": {"a": DEEP}}, "payload.a" + ".0" * 16),
    "payload too large": ({"payload": {"name": "x" * 300_000}}, "payload"),
    "malformed rule": ({"schedule": {"rrule": "FREQ=SOMETIMES"}}, "schedule.rrule"),
    "rule that never fires": ({"schedule": {"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"}}, "schedule.rrule"),
    "zone that is a path": ({"schedule": {**DAILY, "timezone": "../../etc/passwd"}}, "schedule.timezone"),
    "naive time": ({"schedule": {"at": "2027-02-01T09:00:00"}}, "schedule.at"),
    "past time": ({"schedule": {"at": "2026-12-31T23:59:00Z"}}, "schedule.at"),
    "first year": ({"schedule": {"at": "0001-01-01T00:00:00+14:00"}}, "schedule.at"),
    "words that mean nothing": ({"schedule": "when the cows come home"}, "schedule"),
    "a zone beside a rule": ({"schedule": DAILY, "timezone": "Europe/Paris"}, "timezone"),
    "words in a zone that is none": ({"schedule": "every day at 9:00", "timezone": "Europe/Pariss"}, "timezone"),
    "end beyond time": ({"schedule": DAILY, "until": "0001-01-01T00:00:00+14:00"}, "until"),
    "unknown field": ({"colour": "red"}, "colour"),
    "status": ({"status": "PAUSED"}, "status"),
    "id with a slash": ({"id": "a/b"}, "id"),
    "id that is reserved": ({"id": "__id__"}, "id"),
    "id of 2 KB": ({"id": "x" * 2048}, "id"),
    "title with a lone surrogate": ({"title": "\ud800"}, "title"),
    "run limit beyond any store": ({"maxRuns": 10**30}, "maxRuns"),
    "negative duration": ({"jitter": -1}, "jitter"),
    "context that cannot be kept": ({"source": {"context": {"a": {"__b__": 1}}}}, "source.context.a"),
}

BAD_BODIES: dict[str, bytes] = {
    "nothing": b"",
    "half of it": b'{"owner": "ada"',
    "a list": b"[]",
    "text": b"hello",
    "NaN": b'{"owner": NaN}',
    "a name twice": b'{"owner": "ada", "owner": "bob"}',
    "not UTF-8": b'{"owner": "\xff"}',
    "too deep": b"[" * 100_000,
    "too large": b'{"owner": "' + b"x" * 1024 * 1024 + b'"}',
    "a surrogate for a name": b'{"\\ud800": 1}',
}


def read_problem(answer: Answer, status: int = 400) -> dict[str, Any]:
    """Return an answer's problem document, which has all that RFC 9457 asks for."""
    assert answer.status_code == status, answer.get_data(as_text=True)
    assert answer.content_type == "application/problem+json"
    content: dict[str, Any] = answer.get_json(force=True)
    assert content["status"] == status
    assert content["type"].startswith("https://")
    assert content["title"]
    assert content["detail"]
    return content


@try_each("more, field", BAD_FIELDS.values())
def test_a_bad_field_is_named_and_nothing_is_stored(
    call: Call, sim: Simulation, more: dict[str, Any], field: str
) -> None:
    """The answer is 400 with the field's path as the caller wrote it; no task, and no part of one, is stored.

    The same holds for an edit, which may not touch id, owner and status at all.
    """
    create(call, id="t", schedule=DAILY)
    before = fetch(call, "/v1/tasks")
    assert read_problem(create(call, **more))["field"] == field
    assert read_problem(call("PATCH", "/v1/tasks/t", more))["field"] == field
    assert fetch(call, "/v1/tasks") == before
    assert sim.counts.commits == 1


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/tasks"), ("PATCH", "/v1/tasks/t"), ("POST", "/v1/schedules/preview")]
)
@try_each("body", BAD_BODIES.values())
def test_a_body_that_is_not_json_is_refused(call: Call, sim: Simulation, method: str, path: str, body: bytes) -> None:
    """Whatever is not one JSON object in UTF-8 of a sensible size is a 400, or a 413 if it is too large."""
    read_problem(call(method, path, body), 413 if len(body) > 1024 * 1024 else 400)
    assert sim.counts.commits == 0


@pytest.mark.parametrize("patch", [{"unknown": None}, {"revision": None}, {"max_runs": 5}, {"retry": {"x": None}}])
def test_a_misspelled_field_is_refused_even_if_it_is_null(call: Call, patch: dict[str, Any]) -> None:
    """Otherwise a merge patch that removes an unknown field would be answered as if it had worked."""
    create(call, id="t")
    read_problem(call("PATCH", "/v1/tasks/t", patch))


def test_an_end_before_the_first_run_is_refused(call: Call, sim: Simulation) -> None:
    """A task that could never run is not created; an end put into the past later on completes the task."""
    over = {"until": "2026-12-31T00:00:00Z"}
    assert read_problem(create(call, schedule=DAILY, **over))["field"] == "until"
    assert sim.counts.commits == 0
    create(call, id="t", schedule=DAILY)
    assert call("PATCH", "/v1/tasks/t", over).json["status"] == "COMPLETED"


NAMES = 80_000


def test_a_name_that_stands_twice_is_found_in_one_pass(call: Call) -> None:
    """Each name is compared with none of the others. Comparisons are counted: those of a `str` that reports them."""
    from cloudsched.web.api import parse  # noqa: PLC0415 - its parser is called with names of its own

    compared = 0

    class Name(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    pairs: list[tuple[str, Any]] = [(Name(number), 0) for number in range(3000)]
    with pytest.raises(ValueError, match="'2999' appears twice"):
        parse._reject_duplicates([*pairs, (Name(2999), 0)])  # noqa: SLF001 - json calls it
    assert compared < 20_000
    twice = "{" + ",".join(f'"{number}":0' for number in range(NAMES)) + f',"{NAMES - 1}":0}}'
    answer = call("POST", "/v1/tasks", twice.encode())
    assert (answer.status_code, answer.json["field"]) == (400, "(body)")
    assert f"'{NAMES - 1}' appears twice" in answer.json["detail"]


def test_a_body_has_so_many_values_at_most(call: Call) -> None:
    """More are refused before they are made; commas and braces within texts are none."""
    many = b'{"payload":{"a":[' + b"0," * MAX_VALUES + b"0]}}"
    answer = call("POST", "/v1/tasks", many)
    assert (answer.status_code, answer.json["field"]) == (400, "(body)")
    assert "values" in answer.json["detail"]
    text = {"owner": "ada", "handler": "anything", "payload": {"a": "[" * 110_000}}
    assert call("POST", "/v1/tasks", json.dumps(text).encode()).status_code == 201


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"labels": [0] * 90_000}, "labels.0"),
        ({"schedule": {"rrule": [0] * 90_000}}, "schedule.rrule"),
        ({f"{number:x}": 0 for number in range(80_000)}, "0"),
        ({"payload": {f"{number:x}": 0 for number in range(80_000)}}, "payload"),
    ],
)
def test_the_first_of_many_mistakes_is_named(call: Call, content: dict[str, Any], field: str) -> None:
    """Without an object for each of the others: calls do not grow with them."""
    body = json.dumps({"owner": "ada", "handler": "greet", **content}).encode()
    with count_calls() as calls:
        answer = call("POST", "/v1/tasks", body)
    assert answer.status_code == 400
    assert answer.json["field"].startswith(field)
    assert calls.count < 25_000, calls.count


def test_a_path_is_written_for_the_value_that_is_refused_only(call: Call) -> None:
    """Names of 1,490 letters, 14 of them around 50,000 numbers, are not written out once a number: that took 1 GB."""
    value: Any = [0] * 50_000
    for number in range(14):
        value = {"k" * 1490 + str(number): value}
    body = {"owner": "ada", "handler": "anything", "payload": value}
    import tracemalloc  # noqa: PLC0415 - only here

    tracemalloc.start()
    try:
        assert call("POST", "/v1/tasks", json.dumps(body).encode()).status_code == 201
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000
