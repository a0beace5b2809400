"""What a task estimates that an execution costs, beside what it did cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.web.conftest import Call

from cloudsched.testing import Simulation


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
