"""Fields of tasks over HTTP: where a task comes from, what it is expected to cost, and the labels that find it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.web.conftest import Call

from cloudsched.testing import Simulation

SAID = [{"role": "user", "content": "Greet me each day"}, {"role": "assistant", "content": "With pleasure."}]


def test_a_task_keeps_its_conversation(call: Call, greeting: dict[str, Any]) -> None:
    """Messages and the model's settings come back as they were sent; an edit of something else leaves them alone."""
    source = {"chatId": "c1", "messageId": "m1", "messages": SAID, "model": {"name": "small", "maxTurns": 3}}
    call("POST", "/v1/tasks", {**greeting, "id": "a", "source": source})
    call("PATCH", "/v1/tasks/a", {"title": "Other"})
    assert call("GET", "/v1/tasks/a").get_json()["source"] == source


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"messages": [{"role": "boss", "content": "x"}]}, "source.messages.0.role"),
        ({"messages": [{"role": "user", "content": "x" * 10_001}]}, "source.messages.0.content"),
        ({"messages": [SAID[0]] * 102}, "source.messages"),
        ({"messages": [{"role": "user", "content": "x" * 9_999}] * 7}, "source"),
        ({"messages": [SAID[0]], "context": {"x": "y" * 65_480}}, "source"),
        ({"model": {"maxTurns": 0}}, "source.model.maxTurns"),
        ({"model": {"temperature": 2}}, "source.model.temperature"),
    ],
)
def test_a_source_has_bounds(call: Call, greeting: dict[str, Any], wrong: dict[str, Any], field: str) -> None:
    """64 KiB together, at most 101 messages, known roles and settings alone: the answer names what is wrong."""
    refused = call("POST", "/v1/tasks", {**greeting, "source": wrong})
    assert (refused.status_code, refused.get_json()["field"]) == (400, field)


def test_a_result_belongs_to_the_chat_of_its_task(call: Call, sim: Simulation, greeting: dict[str, Any]) -> None:
    """Its record has the chat and the message's id there, which is that of the inbox; without a chat it has neither."""
    due = {"schedule": {"at": sim.now.isoformat()}, "deliveryChannels": ["WEB"]}
    call("POST", "/v1/tasks", {**greeting, **due, "id": "a", "source": {"chatId": "c1"}})
    call("POST", "/v1/tasks", {**greeting, **due, "id": "b", "source": {"messageId": "m1"}})
    sim.advance(timedelta(minutes=6))
    found = {one: call("GET", f"/v1/tasks/{one}/executions").get_json()["executions"][0] for one in ("a", "b")}
    [message] = [each for each in sim.inbox(greeting["owner"]) if each.task_id == "a"]
    assert (found["a"]["chatId"], found["a"]["messageId"]) == ("c1", message.id)
    assert found["b"].keys().isdisjoint({"chatId", "messageId"})


def test_an_execution_keeps_what_was_estimated(call: Call, sim: Simulation, greeting: dict[str, Any]) -> None:
    """As its task said when it ended, beside what the handler reported; without an estimate it has none."""
    due = {"schedule": {"at": sim.now.isoformat()}}
    call("POST", "/v1/tasks", {**greeting, **due, "id": "a", "queryPerExecution": 2.5, "tokensPerExecution": 900})
    call("POST", "/v1/tasks", {**greeting, **due, "id": "b"})
    sim.advance(timedelta(minutes=6))
    call("PATCH", "/v1/tasks/a", {"queryPerExecution": 7})
    found = {one: call("GET", f"/v1/tasks/{one}/executions").get_json()["executions"][0] for one in ("a", "b")}
    assert (found["a"]["estimatedQueries"], found["a"]["estimatedTokens"], found["a"]["queries"]) == (2.5, 900, 0)
    assert found["b"].keys().isdisjoint({"estimatedQueries", "estimatedTokens"})
    assert call("POST", "/v1/tasks", {**greeting, "tokensPerExecution": -1}).status_code == 400


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
