"""Tasks with scripts over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.web.conftest import Call

from cloudsched import App, Settings
from cloudsched.testing import START, Simulation

SOON = {"at": (START + timedelta(minutes=1)).isoformat()}
DOUBLE: dict[str, Any] = {
    "owner": "ada",
    "title": "Double",
    "payload": {"n": 21},
    "schedule": SOON,
    "script": {"source": "return await tools.double({n: input.n})", "tools": ["double"]},
}


@pytest.fixture
def app() -> App:
    """An app with a tool for scripts."""
    app = App(Settings())

    @app.handler("double", tool=True)
    def double(payload: dict[str, int]) -> int:
        return payload["n"] * 2

    return app


def test_a_script_runs_from_creation_to_result(call: Call, sim: Simulation) -> None:
    """It is created, shown, edited in part, run, and its calls are in the tree."""
    made = call("POST", "/v1/tasks", DOUBLE)
    assert (made.status_code, made.get_json()["handler"]) == (201, "cloudsched.script")
    path = f"/v1/tasks/{made.get_json()['id']}"
    assert call("GET", path).get_json()["script"] == DOUBLE["script"]
    source = "return [await tools.double({n: input.n})]"
    edited = call("PATCH", path, {"script": {"source": source}}).get_json()
    assert edited["script"] == {"source": source, "tools": ["double"]}
    sim.run_until_idle()
    (execution,) = call("GET", f"{path}/executions").get_json()["executions"]
    assert execution["content"] == [42]
    calls = call("GET", f"{path}/tree").get_json()["children"]
    assert [each["task"]["handler"] for each in calls] == ["double"]
