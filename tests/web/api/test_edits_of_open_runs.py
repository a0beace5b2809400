"""What the API says and shows of runs that began before an edit."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from tests.web.callers import DAY, HOUR, ApiWorld, run_path

from cloudsched import App, Context, Settings

log = logging.getLogger("tests.bank")


app = App(Settings())
"""Handlers that log for admins or for owners, and one for workers."""


@app.handler("inner", access="users")
def inner(ctx: Context) -> str:
    log.warning("the password is hunter2")
    ctx.sleep(HOUR)
    return "inner"


@app.handler("outer", access="users", logs="owner")
def outer() -> str:
    log.warning("we thank you")
    return "outer"


@app.handler("paint", access="users", pull="gpu")
def paint(payload: dict[str, Any]) -> str:
    return f"{payload}"


@pytest.mark.parametrize("is_open", [True, False])
def test_an_edit_opens_no_log(world: ApiWorld, *, is_open: bool) -> None:
    """What a handler has logged for admins is not shown because its task now runs one that logs for owners."""
    task = f"/v1/tasks/{world.create(handler='inner')}"
    world.sim.advance(timedelta(0) if is_open else DAY)
    (execution,) = world.ask("ada", f"{task}/executions", method="GET").json["executions"]
    assert world.ask("ada", task, {"handler": "outer"}, "PATCH").status_code == 200
    logs = f"{task}/executions/{execution['id']}/logs"
    assert world.ask("ada", logs, method="GET").status_code == 403
    assert "hunter2" in world.ask("root", logs, method="GET").text
    shown = world.ask("ada", logs.removesuffix("/logs"), method="GET").json
    assert shown["handler"] == "inner"
    assert "log" not in shown


def test_a_worker_gets_what_the_run_began_with(world: ApiWorld) -> None:
    """In each attempt, also at another queue, and whichever handlers it says that it has."""
    task = f"/v1/tasks/{world.create(handler='paint', payload={'n': 1})}"
    (first,) = world.ask("gpu-1", "/v1/queues/gpu/claim", {}).json["claims"]
    assert world.report("gpu-1", "fail", run_path(first), first["leaseToken"]).status_code == 200
    edit = {"handler": "outer", "payload": {}, "pull": "press"}
    assert world.ask("root", task, edit, "PATCH").status_code == 200
    world.sim.advance(HOUR)
    assert world.ask("gpu-2", "/v1/queues/press/claim", {"handlers": ["outer"]}).json["claims"] == []
    (again,) = world.ask("gpu-2", "/v1/queues/press/claim", {"handlers": ["paint"]}).json["claims"]
    assert (again["attempt"], again["task"]["handler"], again["task"]["payload"]) == (2, "paint", {"n": 1})
