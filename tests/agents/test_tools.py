"""What agents get from the tools, over both transports."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from mcp.server.mcpserver.exceptions import ToolError
from tests.agents.conftest import Agent

from cloudsched import Context
from cloudsched.agents.tools import AgentTools
from cloudsched.client import AsyncClient
from cloudsched.testing import Simulation

ZONE = "Europe/Paris"
NEW: dict[str, Any] = {
    "title": "Stretch",
    "handler": "remind",
    "payload": {"text": "stretch"},
    "schedule": "every weekday at 9:00",
    "timezone": ZONE,
}
NEXT = [f"2027-01-{day:02}T09:00:00+01:00" for day in (1, 4, 5, 6, 7)]


def test_a_service_that_is_not_set_up_is_not_asked_again() -> None:
    """What may pass is, with the key of the call; what will not is told to the user."""
    problem = {"title": "Misconfigured", "status": 503, "type": "https://cloudsched.dev/problems/misconfigured"}
    answers = {"not set up": httpx.Response(503, json=problem), "overloaded": httpx.Response(503)}

    async def create(answer: httpx.Response) -> str:
        transport = httpx.MockTransport(lambda _: answer)
        async with AsyncClient("http://api.example", transport=transport, max_retries=0) as client:
            with pytest.raises(ToolError) as caught:
                await AgentTools(client).create_task(**NEW, idempotency_key="Wäsche")
        return str(caught.value)

    lasting, passing = (asyncio.run(create(answer)) for answer in answers.values())
    assert "again" not in lasting
    assert "tell the user" in lasting
    assert "again in a minute" in passing
    assert "'Wäsche'" in passing


def locals_of(answer: dict[str, Any]) -> list[str]:
    return [each["local"] for each in answer["next"]]


def test_a_task_lives_through_the_tools(sim: Simulation, agent: Agent) -> None:
    """Previewed, created, listed, changed, shown with its history, sent an event, and cancelled.

    The zone, a description and the next five instants stand in every answer.
    """
    preview = agent.call("preview_schedule", schedule=NEW["schedule"], timezone=ZONE)
    assert (preview["timezone"], preview["description"]) == (ZONE, "every weekday at 09:00, Europe/Paris")
    assert locals_of(preview) == NEXT
    assert sim.app.tasks().items == []
    created = agent.call("create_task", **NEW, idempotency_key="k1")
    assert (locals_of(created), created["assumptions"]) == (NEXT, ["9:00 is in the morning."])
    assert agent.call("create_task", **NEW, idempotency_key="k1")["task_id"] == created["task_id"]
    task_id = created["task_id"]
    assert sim.app.get(task_id).owner == "ada"
    changed = agent.call("update_task", task_id=task_id, timezone=ZONE, schedule="make it 10:00")
    assert changed["description"] == "every weekday at 10:00, Europe/Paris"
    sim.advance(timedelta(days=1))
    listed = agent.call("list_tasks", timezone="Asia/Tokyo")
    assert (listed["timezone"], [each["task_id"] for each in listed["tasks"]]) == ("Asia/Tokyo", [task_id])
    assert locals_of(listed["tasks"][0])[0] == "2027-01-04T18:00:00+09:00"
    shown = agent.call("get_task", task_id=task_id, timezone=ZONE)
    assert [(each["status"], each["result"]) for each in shown["history"]] == [("SUCCEEDED", "stretch")]
    sent = agent.call("send_event", task_id=task_id, event="approval", payload={"by": "ada"}, timezone=ZONE)
    assert "It waits for no event now." in sent
    cancelled = agent.call("cancel_task", task_id=task_id, timezone=ZONE)
    assert (cancelled["status"], cancelled["next"]) == ("CANCELLED", [])
    assert sim.app.get(task_id).status == "CANCELLED"


def test_an_answer_reaches_the_run_that_asked(sim: Simulation, agent: Agent) -> None:
    """A wrong name is told what is awaited; what is said twice is one answer."""

    @sim.app.handler("ask", access="users")
    def ask(ctx: Context) -> object:
        return ctx.wait_for("approval").by

    task_id = sim.app.create(owner="ada", handler="ask", schedule="every day at 9:00").id
    sim.advance(timedelta(days=1))
    (run,) = sim.app.get(task_id).runs
    answer: dict[str, Any] = {"task_id": task_id, "payload": {"by": "ada"}, "timezone": ZONE}
    said = agent.call("send_event", event="aproval", **answer)
    assert f"Awaited: 'approval' by execution {run.execution_id}" in said
    for _ in range(2):
        sent = agent.call("send_event", event="approval", execution_id=run.execution_id, **answer)
        assert len(sent["task"]["next"]) == 5
        sim.advance(timedelta(minutes=1))
    assert [each.content for each in sim.executions(task_id)] == ["ada"]


def test_errors_say_how_to_correct_the_call(sim: Simulation, agent: Agent) -> None:
    """A wrong handler, a time that is past, two meanings, a zone that is none, and another owner's task."""
    assert "remind" in agent.call("create_task", **{**NEW, "handler": "remember"})
    assert "past" in agent.call("create_task", **{**NEW, "schedule": "2020-01-01T09:00:00Z"})
    asked = agent.call("preview_schedule", schedule="every day at 5", timezone=ZONE)
    assert "05:00" in asked
    assert "17:00" in asked
    assert "Europe/Paris" in agent.call("preview_schedule", schedule="every day", timezone="Paris time")
    assert "payload.text" in agent.call("create_task", **{**NEW, "payload": {}})
    told = agent.call("create_task", **{**NEW, "schedule": "every 0 minutes"})
    assert "schedule: " in told
    assert "Correct 'schedule'" in told
    other = sim.app.create(owner="bob", handler="remind", payload={"text": "x"}, schedule="every day at 9:00").id
    for tool in ("get_task", "cancel_task"):
        assert "list_tasks" in agent.call(tool, task_id=other, timezone=ZONE)
    assert "list_tasks" in agent.call("update_task", task_id=other, timezone=ZONE, title="x")
    assert "list_tasks" in agent.call("send_event", task_id=other, timezone=ZONE, event="x")
    assert agent.call("list_tasks", timezone=ZONE)["tasks"] == []
    assert sim.app.get(other).status == "ACTIVE"
