"""The effect of each request of the API, and the problems with which invalid ones are answered."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import pytest
from tests.web.api.test_invalid_input import DAILY, read_problem
from tests.web.callers import GREETING, MINUTE
from tests.web.conftest import Call, create, fetch

from cloudsched import TaskQuery
from cloudsched.engine.storage.pages import make_token
from cloudsched.testing import START, Simulation


def test_a_task_runs_from_creation_to_its_record(call: Call, sim: Simulation) -> None:
    """It is created (201, with its location), read, listed and run, and its execution is read below that location."""
    made = create(call, deliveryChannels=["WEB"])
    assert made.status_code == 201
    place = made.headers["Location"]
    task = {name: value for name, value in made.json.items() if name not in {"readBack", "receipt"}}
    assert fetch(call, place) == task
    assert fetch(call, "/v1/tasks?owner=ada&status=ACTIVE")["tasks"] == [task]
    sim.advance(5 * MINUTE)
    assert fetch(call, place)["status"] == "COMPLETED"
    (execution,) = fetch(call, f"{place}/executions")["executions"]
    assert (execution["status"], execution["content"]) == ("SUCCEEDED", "hello Ada")
    assert fetch(call, f"{place}/executions/{execution['id']}") == execution
    (message,) = fetch(call, "/v1/inboxes/ada/messages")["messages"]
    assert message["body"] == "hello Ada"
    assert call("DELETE", place).status_code == 204
    read_problem(call("GET", place), 404)


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/task", "/v1/tasks"),
        ("/v1/tasks/t/run", "/v1/tasks/{taskId}/trigger"),
        ("/v1/tasks/t/disable", "/v1/tasks/{taskId}/pause"),
        ("/v1/tasks/t/execution", "/v1/tasks/{taskId}/executions"),
    ],
)
def test_a_path_that_is_nearly_right_says_which_is_meant(call: Call, path: str, meant: str) -> None:
    """Any other says where all are."""
    assert f"Did you mean {meant}?" in read_problem(call("POST", path, {}), 404)["detail"]
    assert "openapi.json" in read_problem(call("POST", "/v1/nothing/like/it/at/all", {}), 404)["detail"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"owner": None}, "owner"),
        ({"owner": 7}, "owner"),
        ({"lockLimit": 2}, "lockLimit"),
        ({"timezone": "Europe/Paris"}, "timezone"),
        ({"timezone": "Europe/Paris", "schedule": None}, "timezone"),
    ],
)
def test_what_would_be_without_effect_is_refused(call: Call, change: dict[str, Any], field: str) -> None:
    """Alone, in a batch and in a check, each with what to write; nothing is stored."""
    task = {**GREETING, **change}
    for answer in (call("POST", "/v1/tasks", task), call("POST", "/v1/tasks?validateOnly=true", task)):
        problem = read_problem(answer)
        assert problem["field"] == field
        assert problem["hint"]
    (result,) = call("POST", "/v1/tasks/batchCreate", {"tasks": [task]}).json["results"]
    assert result["problem"]["field"] == field
    assert fetch(call, "/v1/tasks")["tasks"] == []


@pytest.mark.parametrize(
    "schedule",
    [
        {"schedule": "every day at 9 am", "timezone": "Etc/GMT+2"},
        {"schedule": "every day at 9 am Etc/GMT+2"},
        {"schedule": "0 9 * * *", "timezone": "Etc/GMT+2"},
        {"schedule": {"rrule": "FREQ=DAILY", "timezone": "Etc/GMT+2"}},
    ],
)
def test_a_zone_that_counts_west_is_told_in_a_preview_and_with_the_task(call: Call, schedule: dict[str, Any]) -> None:
    """Once each, in words, in a notation and in an object."""
    preview = call("POST", "/v1/schedules/preview", schedule).json
    made = create(call, **schedule).json
    for told in (preview["assumptions"], made["readBack"]["assumed"]):
        assert told.count("Etc/GMT+2 is 2 hours behind UTC.") == 1


def test_null_resets_a_field_to_its_default(call: Call) -> None:
    """In a patch, null means the default: also a handler's own, and the schedule that a task has by itself."""
    made = {**GREETING, "id": "t", "schedule": DAILY, "maxRuns": 3, "retry": {"maxRetries": 9}, "purpose": "fun"}
    call("POST", "/v1/tasks", made)
    patch = {"maxRuns": None, "retry": None, "purpose": None, "schedule": None}
    found = call("PATCH", "/v1/tasks/t", patch).json
    assert ("maxRuns" in found, found["retry"]["maxRetries"], found["purpose"]) == (False, 2, "")
    assert found["schedule"]["at"] == found["updatedAt"]
    assert call("PATCH", "/v1/tasks/t", {"title": None}).json["title"] == "greet"
    assert read_problem(call("PATCH", "/v1/tasks/t", {"handler": None}))["field"] == "handler"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "start"),
        ({"start": "2026-01-01T00:00:00", "end": "2026-02-01T00:00:00Z"}, "start"),
        ({"start": "2026-02-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "end"),
        ({"start": "2026-02-01T00:00:00Z", "end": "2028-01-01T00:00:00Z"}, "end"),
    ],
)
def test_a_bad_range_is_named(call: Call, body: dict[str, Any], field: str) -> None:
    """A backfill needs two instants with offsets, in order, both past."""
    create(call, id="t", schedule=DAILY)
    assert read_problem(call("POST", "/v1/tasks/t/backfill", body))["field"] == field


@pytest.mark.parametrize("count", ["0", "1001", "1e3", "٣", "9" * 5000, ""])
def test_a_count_is_a_number_within_bounds(call: Call, count: str) -> None:
    """No spelling of the number requests more than the maximum."""
    create(call, id="t", schedule=DAILY)
    assert read_problem(call("GET", "/v1/tasks/t/upcoming", query_string={"count": count}))["field"] == "count"
    preview = {"schedule": DAILY, "count": count}
    assert read_problem(call("POST", "/v1/schedules/preview", preview))["field"] == "count"


@pytest.mark.parametrize(
    "token",
    ["é", make_token(TaskQuery(owner="bob"), START, "a"), base64.urlsafe_b64encode(b"[" * 50_000).decode()],
)
def test_a_made_up_page_token_is_refused(call: Call, token: str) -> None:
    """A token that was not issued for this list is a 400, whatever its content."""
    assert read_problem(call("GET", "/v1/tasks", query_string={"pageToken": token}))["field"] == "pageToken"


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/v1/tasks"), ("DELETE", "/v1/tasks"), ("OPTIONS", "/v1/tasks/t"), ("GET", "/v1/tasks/t/pause")],
)
def test_a_wrong_method_says_which_are_right(call: Call, method: str, path: str) -> None:
    """405 with Allow (RFC 9110, section 15.5.6)."""
    answer = call(method, path)
    read_problem(answer, 405)
    assert answer.headers["Allow"]


def test_head_is_get_without_its_body(call: Call) -> None:
    """HEAD answers what GET would, and no body."""
    create(call, id="t")
    answer = call("HEAD", "/v1/tasks/t")
    assert (answer.status_code, answer.get_data()) == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v2/tasks",
        "/v1/tasks/t/fly",
        "/v1/tasks/a%2Fb",
        "/v1/tasks/" + "x" * 2048,
    ],
)
def test_an_unknown_path_is_not_found(call: Call, path: str) -> None:
    """Any unknown path is a 404 with a problem document."""
    read_problem(call("GET", path), 404)


def test_a_queue_that_is_down_defers_and_says_so(call: Call, sim: Simulation) -> None:
    """The task is saved, the response says that its dispatch is deferred, and the sweep sends it."""
    sim.queue.is_down = True
    made = create(call, id="t", schedule="PT5M")
    assert made.json["dispatchDeferred"] is True
    assert "deferred" in made.json["message"]
    sim.queue.is_down = False
    sim.advance(2 * MINUTE)
    assert "dispatchDeferred" not in fetch(call, "/v1/tasks/t")
    sim.advance(3 * MINUTE)
    assert [one.status for one in sim.executions("t")] == ["SUCCEEDED"]
    due = made.json["nextExecutionTime"]
    assert [delivery.at for delivery in sim.queue.deliveries] == [datetime.fromisoformat(due)]
