"""Durable tasks over HTTP, through the client and on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from pydantic import BaseModel
from tests.instants import about
from tests.web.callers import DAY, MINUTE
from tests.web.conftest import Call
from werkzeug.wrappers import Request

from cloudsched import App, Context, Settings
from cloudsched.cli.main import cloudsched
from cloudsched.client import Client
from cloudsched.errors import (
    AwaitedEvent,
    InvalidInput,
    InvalidPayload,
    NotAllowed,
    NotAwaited,
)
from cloudsched.local.wsgi_server import WebServer
from cloudsched.testing import START, Simulation
from cloudsched.web.functions import serve_api

WHOLE: dict[str, Any] = {
    "id": "w",
    "owner": "ada",
    "title": "Whole",
    "handler": "whole",
    "schedule": {"at": START.isoformat()},
}


class Decision(BaseModel):
    """What an approval says."""

    note: str


app = App(Settings())
"""An app with a durable handler that calls another one three times, and then waits for an event."""


@app.handler("part")
def part(payload: dict[str, int]) -> int:
    return payload["n"]


@app.handler("whole")
def whole(ctx: Context) -> dict[str, Any]:
    parts = ctx.gather(*[ctx.call("part", {"n": n}) for n in range(3)])
    return {"parts": parts, "by": ctx.wait_for("approved").by}


@app.handler("decide", events={"decision": Decision})
def decide(ctx: Context) -> str:
    return ctx.wait_for("decision", Decision, timeout=7 * DAY).note


@pytest.fixture
def url(sim: Simulation) -> Iterator[str]:
    with WebServer(Request.application(lambda request: serve_api(sim.app, request))) as server:
        server.serve()
        yield f"http://{server.address}"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as opened:
        yield opened


def test_a_workflow_runs_over_http_from_creation_to_result(
    client: Client, url: str, call: Call, sim: Simulation
) -> None:
    """Create it, read it while it waits, send the event, and await it; the scheduler's own fields are never shown.

    An event may be for one execution alone, from the client and from the command line. Its name is checked, and whoever
    looked before somebody else's wrong event can still answer.
    """
    client.create(**WHOLE)
    sim.advance(MINUTE)
    (waiting,) = client.executions("w")
    assert (waiting.status, waiting.message) == ("SUSPENDED", "It has asked for the event 'approved'.")
    assert [step.kind for step in client.execution("w", waiting.id).steps] == ["CALL"] * 3 + ["EVENT"]
    seen = call("GET", "/v1/tasks/w").headers["ETag"]
    assert call("POST", "/v1/tasks/w/events/aproved", {}).status_code == 409
    with pytest.raises(NotAwaited, match="There is no open execution 'other'") as refused:
        client.send_event("w", "approved", {"by": "nobody"}, execution_id="other")
    assert [(each.name, each.execution_id) for each in refused.value.awaited] == [("approved", waiting.id)]
    words = ["tasks", "--url", url, "send", "w", "approved", "--payload", '{"by": "grace"}', "--execution"]
    assert isinstance(CliRunner().invoke(cloudsched, [*words, "other"]).exception, NotAwaited)
    for event in ("a b", "ü", "x" * 129):
        with pytest.raises(InvalidInput) as caught:
            client.send_event("w", event)
        assert caught.value.field == "event"
    body = {"payload": {"by": "grace"}}
    assert call("POST", "/v1/tasks/w/events/approved", body, headers={"If-Match": seen}).status_code == 200
    assert CliRunner().invoke(cloudsched, [*words, waiting.id]).exit_code == 0
    told = client.send_event("w", "approved", {"by": "grace"})
    assert told is not None
    assert "runs" not in told.to_wire()
    with pytest.raises(TimeoutError):
        client.wait("w", timedelta(0))
    sim.advance(MINUTE)
    assert client.wait("w", timedelta(0)).content == {"parts": [0, 1, 2], "by": "grace"}
    with pytest.raises(NotAllowed):
        client.send_event("w", "approved")


def test_an_event_that_nobody_awaits_is_told_what_is(client: Client, call: Call, sim: Simulation) -> None:
    """The problem of the API, and the error of the client, have the names, the executions and the deadlines.

    A payload of the wrong shape is refused with the field that is wrong. Nothing of it is kept, and the handlers' list
    has the shape.
    """
    client.create(**{**WHOLE, "handler": "decide"})
    sim.advance(MINUTE)
    (run,) = client.executions("w")
    assert run.started_at is not None
    answer = call("POST", "/v1/tasks/w/events/decided", {"payload": {"note": "fine"}})
    problem = answer.json
    assert (answer.status_code, answer.mimetype) == (409, "application/problem+json")
    assert problem["type"].endswith("/not-awaited")
    (awaited,) = problem["awaited"]
    until = datetime.fromisoformat(awaited["until"])
    assert until == about(run.started_at + 7 * DAY)
    assert (awaited["name"], awaited["executionId"]) == ("decision", run.id)
    with pytest.raises(NotAwaited) as refused:
        client.send_event("w", "decided", {"note": "fine"})
    assert refused.value.awaited == (AwaitedEvent("decision", run.id, until, ("owner", "admin")),)
    assert str(refused.value) == problem["detail"]
    with pytest.raises(InvalidPayload) as invalid:
        client.send_event("w", "decision", {"note": 7})
    assert invalid.value.field == "payload.note"
    assert sim.app.get("w").events == ()
    schemas = {each.name: each.event_schemas for each in client.handlers()}
    assert schemas["decide"] == {"decision": Decision.model_json_schema()}
    assert schemas["whole"] is None


def test_children_are_their_task_s_owner_s(call: Call, sim: Simulation) -> None:
    """Whoever asks: a child that names somebody else is refused, and says where."""
    body = {"title": "W", "owner": "ada", "children": [{"handler": "part", "payload": {"n": 1}, "owner": "eve"}]}
    answer = call("POST", "/v1/tasks", body)
    assert answer.status_code == 400
    assert answer.json["field"] == "children.0.owner"
    assert list(sim.app.tasks().items) == []
