"""Where a task comes from: the conversation that it keeps, and the chat to which its results belong."""

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
