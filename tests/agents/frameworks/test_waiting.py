"""Woken agents that wait: for a person's word, or for a tool whose answer comes days later."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter
from typing import Any

import pytest
from tests.agents.frameworks.scripted import FRAMEWORKS, Framework, Turn, World

from cloudsched import EventSender
from cloudsched.agents import AgentCall, current_call
from cloudsched.testing import Simulation

DAY = timedelta(days=1)
NAMES = attrgetter("name")


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=NAMES)
@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize(
    ("answer", "is_cancelled"), [({"approved": True}, True), ({"approved": False}, False), (None, False)]
)
def test_a_person_is_asked_first(
    framework: Framework, answer: dict[str, bool] | None, *, is_cancelled: bool, replay: bool
) -> None:
    """The question reaches their inbox. A no, and silence for days, leave all as it was."""

    def decide(prompt: str, answers: list[Any]) -> Turn:
        return "Asked." if answers else [("cancel_task", {"id": prompt.rpartition("Cancel ")[2].split("\n")[0]})]

    world = World(framework, decide, confirm={"cancel_task"})
    with Simulation(world.app, replay=replay) as sim:
        other = world.create(schedule="in 300 days")
        task = world.create(f"Cancel {other}", schedule="today at 9:00")
        sim.advance(DAY)
        (asked,) = [each for each in sim.inbox("ada") if each.event]
        assert "cancel_task" in asked.body
        assert world.app.get(other).status == "ACTIVE"
        if answer is not None:
            sender = EventSender(role="person", subject="user:ada")
            world.app.send_event(task, str(asked.event), answer, execution_id=asked.execution_id, sender=sender)
        sim.advance(5 * DAY)
        (run,) = sim.executions(task)
        assert (run.status, run.content) == ("SUCCEEDED", "Asked."), run.error
        assert (world.app.get(other).status == "CANCELLED") is is_cancelled
        assert len(world.script.prompts) == 2


@pytest.mark.parametrize("framework", [each for each in FRAMEWORKS if each.has_lasting_tools], ids=NAMES)
def test_a_long_running_tool_waits_for_whoever_answers(framework: Framework) -> None:
    """For days, while nothing runs. The agent goes on with the answer."""
    started = list[AgentCall]()

    def order(item: str) -> dict[str, str]:
        """Order something, which takes days."""
        call = current_call()
        if call is not None:
            started.append(call)
        return {"state": f"ordered {item}"}

    def decide(_prompt: str, answers: list[Any]) -> Turn:
        if not answers:
            return [("order", {"item": "tea"})]
        return f"It says {answers[-1]}" if "came" in str(answers) else "It is ordered."

    world = World(framework, decide, tools=[framework.make_lasting(order)])
    with Simulation(world.app) as sim:
        task = world.create(schedule="today at 9:00")
        sim.advance(2 * DAY)
        assert [each.status for each in sim.executions(task)] == ["SUSPENDED"]
        (event,) = world.app.get(task).runs[0].wait_for_event.events  # type: ignore[union-attr] # it waits
        assert (started[0].task_id, started[0].event) == (task, event)
        world.app.send_event(task, event, {"state": "it came"})
        sim.advance(DAY)
        (run,) = sim.executions(task)
        assert run.status == "SUCCEEDED", run.error
        assert "it came" in str(run.content)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=NAMES)
def test_an_agent_cannot_agree_to_its_own_calls(framework: Framework) -> None:
    """Nor can another run of it, which has the person's rights: what answers for the person needs their word."""
    waiting: dict[str, str] = {}

    def decide(prompt: str, answers: list[Any]) -> Turn:
        if answers:
            return "Done."
        if "Agree" in prompt:
            return [("answer", {**waiting, "payload": {"approved": True}})]
        return [("cancel_task", {"id": waiting["id"]})]

    world = World(framework, decide, confirm={"cancel_task"})
    with Simulation(world.app) as sim:
        waiting["id"] = world.create("Cancel", schedule="today at 9:00")
        sim.advance(timedelta(hours=10))
        (asked,) = [each for each in sim.inbox("ada") if each.event]
        waiting["event"] = str(asked.event)
        world.create("Agree", schedule="today at 12:00")
        sim.advance(timedelta(hours=3))
        assert [each.status for each in sim.executions(waiting["id"])] == ["SUSPENDED"]
        assert len([each for each in sim.inbox("ada") if each.event]) == 2
