"""What agents get from the tools, over both transports."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests.agents.conftest import Agent

from cloudsched import Context
from cloudsched.agents.arguments import ToolRefused
from cloudsched.agents.tools import AgentTools
from cloudsched.client import AsyncClient
from cloudsched.domain.responses.api_responses import CallerInfo
from cloudsched.testing import START, Simulation

NEW: dict[str, Any] = {
    "title": "Stretch",
    "handler": "remind",
    "payload": {"text": "stretch", "city": "Rome"},
    "when": "every weekday at 9:00",
}
NEXT = [f"2027-01-{day:02}T09:00:00+01:00" for day in (1, 4, 5)]


def test_a_service_that_is_not_set_up_is_not_asked_again() -> None:
    """What may pass is, after a look at what was done; what will not is told to the person."""
    problem = {"title": "Misconfigured", "status": 503, "type": "https://cloudsched.dev/problems/misconfigured"}
    answers = {"not set up": httpx.Response(503, json=problem), "overloaded": httpx.Response(503)}
    server = CallerInfo(role="admin", sees_all=True, may_change=True, now=START)

    async def create(answer: httpx.Response) -> str:
        transport = httpx.MockTransport(lambda _: answer)
        async with AsyncClient("http://api.example", transport=transport, max_retries=0) as client:
            with pytest.raises(ToolRefused) as caught:
                await AgentTools(client, server).call("create_task", {**NEW, "key": "Wäsche"})
        return str(caught.value)

    lasting, passing = (asyncio.run(create(answer)) for answer in answers.values())
    assert "Do not repeat" in lasting
    assert "Tell the person" in lasting
    assert "in a minute" in passing
    assert "find_tasks" in passing


def test_a_task_lives_through_the_tools(sim: Simulation, agent: Agent) -> None:
    """Previewed, created, found, changed, moved, paused, shown with its runs, and cancelled, in the person's zone."""
    assert "i_am_in" in agent.call("preview", when=NEW["when"])
    assert agent.call("i_am_in", zone="Europe/Paris")["zone"] == "Europe/Paris"
    preview = agent.call("preview", when=NEW["when"])
    assert preview["schedule"] == "every weekday at 09:00, Europe/Paris"
    assert preview["next"][:3] == NEXT
    assert sim.app.tasks().items == []

    created = agent.call("create_task", **NEW)
    task_id = created["id"]
    assert (created["next"], created["assumed"][0], created["scheduled"]) == (NEXT, "9:00 is in the morning.", True)
    assert created["told"].startswith("Created. It runs next on Friday 1 January 2027 at 09:00")
    assert sim.app.get(task_id).owner == "ada"

    agent.call("change_task", id=task_id, when="make it 10:00", payload_merge={"text": "bend"})
    assert agent.call("read_task", id=task_id)["payload"] == {"text": "bend", "city": "Rome"}
    moved = agent.call("move_next", id=task_id, to="17:00")
    assert moved["next"][:2] == ["2027-01-01T17:00:00+01:00", "2027-01-04T10:00:00+01:00"]
    sim.advance(timedelta(days=1))
    (found,) = agent.call("find_tasks", words="stretch bend")["tasks"]
    assert (found["id"], found["next"]) == (task_id, "2027-01-04T10:00:00+01:00")
    shown = agent.call("read_task", id=task_id)
    assert [(each["status"], each["result"]) for each in shown["runs"]] == [("SUCCEEDED", "bend")]

    paused = agent.call("pause_task", id=task_id, until="15 January")
    assert (paused["status"], paused["next"][0]) == ("PAUSED", "2027-01-15T10:00:00+01:00")
    assert agent.call("cancel_task", id=task_id)["next"] == []
    assert "CANCELLED" in agent.call("change_task", id=task_id, when="every day at 9:00")
    assert sim.app.get(task_id).status == "CANCELLED"


def test_an_answer_reaches_the_run_that_asked(sim: Simulation, agent: Agent) -> None:
    """A wrong name is told what is awaited; what is said twice is one answer. What waits can be seen."""

    @sim.app.handler("ask", access="users")
    def ask(ctx: Context) -> object:
        return ctx.wait_for("approval").by

    task_id = sim.app.create(owner="ada", handler="ask", schedule="every day at 9:00").id
    sim.advance(timedelta(days=1))
    (run,) = sim.app.get(task_id).runs
    (awaited,) = agent.call("read_task", id=task_id)["awaits"]
    assert awaited["run"] == run.execution_id
    assert "'approval'" in awaited["told"]
    answer: dict[str, Any] = {"id": task_id, "payload": {"by": "ada"}}
    assert f"'approval' by run {run.execution_id}" in agent.call("answer", event="aproval", **answer)
    for _ in range(2):
        assert agent.call("answer", event="approval", run=run.execution_id, **answer)["told"].startswith("Sent")
        sim.advance(timedelta(minutes=1))
    assert [each.content for each in sim.executions(task_id)] == ["ada"]


def test_errors_say_how_to_correct_the_call(sim: Simulation, agent: Agent) -> None:
    """A wrong handler, a time that is past, two meanings, a zone that is none, and another owner's task."""
    assert "Europe/Paris" in agent.call("i_am_in", zone="Paris")
    agent.call("i_am_in", zone="Europe/Paris")
    assert "remind" in agent.call("create_task", **{**NEW, "handler": "remember"})
    assert "past" in agent.call("create_task", **{**NEW, "when": "2020-01-01T09:00:00Z"})
    asked = agent.call("preview", when="every day at 5")
    assert "05:00" in asked
    assert "17:00" in asked
    assert "'payload.text'" in agent.call("create_task", **{**NEW, "payload": {}})
    assert "'when'" in agent.call("create_task", **{**NEW, "when": "every 0 minutes"})
    told = agent.call("create_task", **NEW, delivery_channels=["EMAIL"], owner="bob")
    assert "no argument 'delivery_channels'. Did you mean 'channels'?" in told
    assert "no argument 'owner'" in told
    assert "'words'" in agent.call("find_tasks", search="passport")
    assert sim.app.tasks().items == []

    other = sim.app.create(owner="bob", handler="remind", payload={"text": "x"}, schedule="every day at 9:00").id
    for tool in agent.tools():
        arguments = {"move_next": {"to": "17:00"}, "answer": {"event": "x"}, "change_task": {"title": "x"}}
        if tool.endswith(("_task", "_next", "_run", "_log", "answer")) and tool != "create_task":
            assert "find_tasks" in agent.call(tool, id=other, **arguments.get(tool, {})), tool
    assert agent.call("find_tasks")["tasks"] == []
    assert sim.app.get(other).status == "ACTIVE"
