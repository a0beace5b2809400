"""Tasks with scripts over HTTP, through the client and on the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.harness import LocalClient as Http
from werkzeug.wrappers import Request

from cloudsched import App, Settings
from cloudsched.testing import START, Simulation
from cloudsched.web.functions import serve_api

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
    """An app with a tool for scripts, and a handler that scripts cannot call."""
    app = App(Settings())

    @app.handler("double", tool=True)
    def double(payload: dict[str, int]) -> int:
        return payload["n"] * 2

    @app.handler("internal")
    def internal() -> None: ...

    return app


@pytest.fixture
def http(sim: Simulation) -> Http:
    return Http(Request.application(lambda request: serve_api(sim.app, request)))


def ask(http: Http, method: str, path: str, content: object = None) -> tuple[int, Any]:
    """Return the status and the content of an answer."""
    answer = http.open(path, method=method, json=content) if content is not None else http.open(path, method=method)
    return answer.status_code, answer.json


def test_a_script_runs_from_creation_to_result(http: Http, sim: Simulation) -> None:
    """It is created, shown, edited in part, run, and its calls are in the tree."""
    status, task = ask(http, "POST", "/v1/tasks", DOUBLE)
    assert (status, task["handler"]) == (201, "cloudsched.script")
    path = f"/v1/tasks/{task['id']}"
    assert ask(http, "GET", path)[1]["script"] == DOUBLE["script"]
    source = "return [await tools.double({n: input.n})]"
    edited = ask(http, "PATCH", path, {"script": {"source": source}})[1]
    assert edited["script"] == {"source": source, "tools": ["double"]}
    sim.run_until_idle()
    (execution,) = ask(http, "GET", f"{path}/executions")[1]["executions"]
    assert execution["content"] == [42]
    calls = ask(http, "GET", f"{path}/tree")[1]["children"]
    assert [each["task"]["handler"] for each in calls] == ["double"]
