"""Labels over HTTP: given to tasks, listed by, logged, and refused where no list could find them."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.web.conftest import Call


def test_a_label_finds_its_tasks(call: Call, greeting: dict[str, Any]) -> None:
    """With the owner and the status, and after an edit by what the task has then; they are sorted by key."""
    made = call("POST", "/v1/tasks", {**greeting, "id": "a", "labels": ["team=payments", "env=prod"]})
    assert made.get_json()["labels"] == ["env=prod", "team=payments"]
    call("POST", "/v1/tasks", {**greeting, "id": "b", "owner": "bob", "labels": ["team=payments"]})
    call("POST", "/v1/tasks", {**greeting, "id": "c", "labels": ["team=payroll"]})

    def find(**filters: str) -> list[str]:
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        return [task["id"] for task in call("GET", f"/v1/tasks?{query}").get_json()["tasks"]]

    assert sorted(find(label="team=payments")) == ["a", "b"]
    assert find(label="team%3Dpayments", owner="ada", status="ACTIVE") == ["a"]
    assert find(label="team=pay") == find(label="team=payments", status="PAUSED") == []
    call("PATCH", "/v1/tasks/a", {"labels": ["team=payroll"]})
    assert find(label="team=payments") == ["b"]
    assert sorted(find(label="team=payroll")) == ["a", "c"]
    call("DELETE", "/v1/tasks/c")
    assert find(label="team=payroll") == ["a"]


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (["payments"], "labels.0"),
        (["Team=payments"], "labels.0"),
        (["team=two words"], "labels.0"),
        ([f"team={'x' * 64}"], "labels.0"),
        (["team=a", "team=b"], "'team' twice"),
        ([f"key{number}=x" for number in range(17)], "labels"),
        ({"team": "a"}, "labels"),
    ],
    ids=str,
)
def test_a_label_that_nobody_could_list_by_is_refused(
    call: Call, greeting: dict[str, Any], labels: object, says: str
) -> None:
    """The answer names the label."""
    answer = call("POST", "/v1/tasks", {**greeting, "labels": labels})
    assert answer.status_code == 400
    assert says in answer.text


@pytest.mark.parametrize(
    "other",
    ["handler=greet", "dueFrom=2027-01-01T00:00:00Z", "dueUntil=2027-01-01T00:00:00Z", "orderBy=nextExecutionTime"],
)
def test_a_list_without_an_index_is_refused(call: Call, other: str) -> None:
    """The answer says what a label goes with."""
    answer = call("GET", f"/v1/tasks?label=team=payments&{other}")
    assert answer.status_code == 400
    assert "Combine it with owner and status only" in answer.text


def test_the_log_has_the_labels(call: Call, greeting: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """Every line about a task that has some."""
    with caplog.at_level(logging.INFO, "cloudsched.events"):
        call("POST", "/v1/tasks", {**greeting, "id": "a", "labels": ["team=payments"]})
        call("POST", "/v1/tasks", {**greeting, "id": "b"})
    labels = {vars(line)["taskId"]: vars(line).get("labels") for line in caplog.records}
    assert labels == {"a": ["team=payments"], "b": None}
