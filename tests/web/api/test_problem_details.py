"""What a refusal says: all that is wrong with a body and where, which content is taken, what is missing for good."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched.client.responses import error_from_problem
from cloudsched.domain.documents.responses import Problem
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from tests.web.conftest import Call


def pointers(problem: dict[str, Any]) -> set[str]:
    """Return where a problem says that something is wrong."""
    return {each["pointer"] for each in problem["errors"]}


def test_all_faults_of_a_body_are_told_at_once(call: Call, greeting: dict[str, Any]) -> None:
    """Each with its place, also beside a schedule that is invalid, and below a name with a dot; the first as before."""
    body = {**greeting, "maxRuns": 0, "jitter": "x", "priority": "SOON", "titel": "T"}
    problem = call("POST", "/v1/tasks", body).get_json()
    assert pointers(problem) == {"#/maxRuns", "#/jitter", "#/priority", "#/titel"}
    assert problem["errors"][0]["pointer"] == f"#/{problem['field']}"
    assert all(each["detail"] for each in problem["errors"])
    problem = call("POST", "/v1/tasks", {**body, "schedule": {"rrule": "FREQ=NEVER"}}).get_json()
    assert pointers(problem) == {"#/schedule/rrule", "#/maxRuns", "#/jitter", "#/priority", "#/titel"}
    problem = call("POST", "/v1/tasks", {**greeting, "payload": {"times": "many"}}).get_json()
    assert pointers(problem) == {"#/payload/name", "#/payload/times"}
    problem = call("PATCH", "/v1/tasks/absent", {"priority": 1}).get_json()
    assert problem["status"] in {400, 404}
    problem = call("PUT", "/v1/people/ada", {"channels": {"a.b/c~": ["EMAIL"]}}).get_json()
    assert pointers(problem) == {"#/channels/a.b~1c~0/[key]"} or pointers(problem) == {"#/channels/a.b~1c~0"}


def test_a_task_of_a_batch_has_its_place(call: Call, greeting: dict[str, Any]) -> None:
    """Its problem points into the request, and not into the task."""
    body = {"tasks": [greeting, {**greeting, "maxRuns": 0}]}
    results = call("POST", "/v1/tasks/batchCreate", body).get_json()["results"]
    assert pointers(results[1]["problem"]) == {"#/tasks/1/maxRuns"}


def test_what_is_not_in_the_body_has_no_pointer(call: Call, greeting: dict[str, Any]) -> None:
    """Parameters and headers have a field alone; the body itself is `#`."""
    assert "errors" not in call("GET", "/v1/tasks?pageSize=x").get_json()
    assert "errors" not in call("POST", "/v1/tasks?validateOnly=maybe", greeting).get_json()
    assert "errors" not in call("POST", "/v1/tasks", greeting, headers={"Idempotency-Key": "a b"}).get_json()
    assert pointers(call("POST", "/v1/tasks", b"[]").get_json()) == {"#"}


def test_the_client_has_all_faults(call: Call, greeting: dict[str, Any]) -> None:
    """`others` of an error are the further ones, each with its path."""
    problem = call("POST", "/v1/tasks", {**greeting, "maxRuns": 0, "jitter": "x"}).get_json()
    error = error_from_problem(Problem.model_validate(problem))
    assert isinstance(error, InvalidInput)
    assert {error.field, *(each.field for each in error.others)} == {"maxRuns", "jitter"}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("text/plain", 415),
        ("text/html; charset=utf-8", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/xml", 415),
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/merge-patch+json", 200),
        ("application/x-www-form-urlencoded", 200),  # what `curl -d` says of JSON
        (None, 200),
    ],
)
def test_a_body_of_another_type_is_refused(call: Call, greeting: dict[str, Any], kind: str | None, status: int) -> None:
    """415, with what is accepted; what says nothing, or what curl says by itself, is read as JSON."""
    task_id = call("POST", "/v1/tasks", greeting).get_json()["id"]
    headers = {} if kind is None else {"Content-Type": kind}
    answer = call("PATCH", f"/v1/tasks/{task_id}", b'{"title": "New"}', headers=headers)
    assert answer.status_code == status, answer.text
    if status == 415:
        assert answer.headers["Accept-Patch"] == "application/merge-patch+json"
        assert answer.get_json()["type"].endswith("/unsupported-content")


def test_a_page_larger_than_the_largest_is_the_largest(call: Call, greeting: dict[str, Any]) -> None:
    """A program that asks for too many at once gets as many as there are in one page, and no refusal."""
    call("POST", "/v1/tasks", greeting)
    for size in (500, 501, 999_999_999):
        assert len(call("GET", f"/v1/tasks?pageSize={size}").get_json()["tasks"]) == 1
    assert call("GET", "/v1/tasks?pageSize=0").status_code == 400
    assert call("GET", "/v1/tasks?pageSize=many").status_code == 400


def test_a_missing_package_is_no_outage(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """501 and not 503: nobody should ask again."""
    monkeypatch.setitem(sys.modules, "holidays", None)
    answer = call("PUT", "/v1/calendars/fr", {"holidays": {"country": "FR"}})
    assert (answer.status_code, "Retry-After" in answer.headers) == (501, False)
    assert answer.get_json()["type"].endswith("/missing-extra")


def test_an_edit_is_not_a_creation(call: Call, greeting: dict[str, Any]) -> None:
    """A new title leaves no message that says "Created."; a message about what has happened stays."""
    task_id = call("POST", "/v1/tasks", {**greeting, "schedule": "every day at 9"}).get_json()["id"]
    assert call("PATCH", f"/v1/tasks/{task_id}", {"title": "New"}).get_json()["message"] == "Edited."
    paused = call("POST", f"/v1/tasks/{task_id}/pause").get_json()["message"]
    assert call("PATCH", f"/v1/tasks/{task_id}", {"title": "Newer"}).get_json()["message"] == paused


def test_a_task_of_the_system_takes_no_other_payload(call: Call) -> None:
    """An admin may run it now, with its own payload; another one is refused where it failed with a KeyError."""
    made = {"owner": "system", "title": "R", "handler": "cloudsched.calendar.replan", "payload": {"calendar": "shop"}}
    refused = call("POST", "/v1/tasks", made)
    assert (refused.status_code, refused.get_json()["field"]) == (400, "payload")
    refresh = {**made, "handler": "cloudsched.calendar.refresh", "schedule": "every day at 3am", "timezone": "UTC"}
    created = call("POST", "/v1/tasks", refresh)
    assert created.status_code == 201, created.text
    task_id = created.get_json()["id"]
    refused = call("POST", f"/v1/tasks/{task_id}/trigger", {"payload": {"name": "x"}})
    assert (refused.status_code, refused.get_json()["field"]) == (400, "payload")
    assert call("POST", f"/v1/tasks/{task_id}/trigger").status_code == 200
