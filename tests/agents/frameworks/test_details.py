"""What only one framework has: trees of agents, shared state, hand-overs, and calls that are tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.agents.frameworks.scripted import TOKENS, Adk, OpenAiAgents, PydanticAi, Script, Turn
from tests.harness import new_project

from cloudsched import App
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.agents import current_call, langgraph
from cloudsched.testing import Simulation

DAY = timedelta(days=1)
pytestmark = pytest.mark.parametrize("replay", [False, True])


def run_once(app: App, *, replay: bool) -> Any:
    """Wake the agent of an app once, and return the record."""
    with Simulation(app, replay=replay) as sim:
        task = app.create(owner="ada", handler="wake", payload={"prompt": "Go"})
        sim.advance(DAY)
        (run,) = sim.executions(task.id)
        assert run.status == "SUCCEEDED", run.error
        return run


def count_up(most: int) -> tuple[Callable[[str, list[Any]], Turn], list[int]]:
    """Return what calls `add` some times, and says what it has answered last; and the list of its calls."""
    return lambda _, answers: str(answers[-1]) if len(answers) == most else [("add", {})], []


@pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning")  # ADK says so of its own code
def test_tools_of_adk_share_their_state(*, replay: bool) -> None:
    """Also after a replay, which calls none of them again: state, and agents and toolsets in an agent."""
    from google.adk.agents import Agent
    from google.adk.tools import ToolContext
    from google.adk.tools.agent_tool import AgentTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.adk.tools.function_tool import FunctionTool

    framework = Adk()
    decide, calls = count_up(3)

    def add(tool_context: ToolContext) -> dict[str, int]:
        """Add one."""
        calls.append(1)
        tool_context.state["sum"] = tool_context.state.get("sum", 0) + 1
        return {"sum": tool_context.state["sum"]}

    add.__annotations__["tool_context"] = ToolContext

    class Toolset(BaseToolset):  # type: ignore[misc]
        async def get_tools(self, _: Any = None) -> list[Any]:
            return [FunctionTool(add)]

    inner = framework.make(Script(decide), [], [Toolset()])
    inner.name = "counter"

    def ask(_prompt: str, answers: list[Any]) -> Turn:
        return f"It is {answers[-1]}" if answers else [("counter", {"request": "count to three"})]

    outer = framework.make(Script(ask), [], [AgentTool(inner)])
    assert isinstance(outer, Agent)
    app = App()
    framework.module.wake(app, outer)
    run = run_once(app, replay=replay)
    assert "3" in str(run.content)
    assert len(calls) == 3
    assert run.tokens == (4 + 2) * TOKENS


def test_agents_of_openai_hand_over(*, replay: bool) -> None:
    """To each other and back: turns of either are steps."""
    framework = OpenAiAgents()
    scripts = {
        "first": Script(lambda _, answers: "home" if len(answers) >= 2 else [("transfer_to_second", {})]),
        "second": Script(lambda _, __: [("transfer_to_first", {})]),
    }
    agents = {name: framework.make(script, []) for name, script in scripts.items()}
    for name, agent in agents.items():
        agent.name = name
    agents["first"].handoffs, agents["second"].handoffs = [agents["second"]], [agents["first"]]
    app = App()
    framework.module.wake(app, agents["first"])
    run = run_once(app, replay=replay)
    assert run.content == "home"
    assert run.tokens == 3 * TOKENS
    assert [len(each.prompts) for each in scripts.values()] == [2, 1]


def test_a_tool_of_pydantic_ai_asks_for_another_try(*, replay: bool) -> None:
    """The model learns why, once."""
    from pydantic_ai import ModelRetry

    framework = PydanticAi()
    tried = list[str]()

    def book(day: str) -> str:
        """Book a table."""
        tried.append(day)
        if day == "Monday":
            raise ModelRetry("Closed on Mondays")
        return "booked"

    def decide(_prompt: str, answers: list[Any]) -> Turn:
        if "booked" in answers:
            return "It is booked"
        return [("book", {"day": "Friday" if tried else "Monday"})]

    app = App()
    framework.module.wake(app, framework.make(Script(decide), [book]))
    assert run_once(app, replay=replay).content == "It is booked"
    assert tried == ["Monday", "Friday"]


def test_sessions_of_adk_are_on_firestore_beside_the_tasks(firestore_address: str, *, replay: bool) -> None:
    """In one project: each run adds to the person's session, once, and knows what was said before."""
    from google.adk.integrations.firestore.firestore_session_service import FirestoreSessionService
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import firestore

    project = new_project()
    nobody: Any = AnonymousCredentials  # has no types
    framework = Adk()
    script = Script(lambda *_: f"turn {len(script.prompts)}")
    app = App()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIRESTORE_EMULATOR_HOST", firestore_address)
        client = firestore.AsyncClient(project=project, credentials=nobody())
        framework.module.wake(app, framework.make(script, []), session_service=FirestoreSessionService(client))
        store = FirestoreStore(project=project, emulator=firestore_address, deadline=timedelta(minutes=1))
        with Simulation(app, store=store, replay=replay) as sim:
            task = app.create(owner="ada", handler="wake", payload={"prompt": "Go"}, schedule="every day at 9:00")
            sim.advance(2 * DAY)
            assert [each.content for each in sim.executions(task.id)] == ["turn 1", "turn 2"]
        place = {"app_name": "cloudsched", "user_id": "ada", "session_id": "ada"}
        fresh = FirestoreSessionService(firestore.AsyncClient(project=project, credentials=nobody()))
        session = asyncio.run(fresh.get_session(**place))
    said = [part.text for event in session.events for part in event.content.parts]
    assert [each for each in said if each.startswith("turn")] == ["turn 1", "turn 2"]
    assert len(said) == 4


@pytest.mark.parametrize("nested", [False, True])
def test_interrupts_of_a_graph_of_langgraph_get_their_answers(*, nested: bool, replay: bool) -> None:
    """Two in each call of a node of tools, or one in a graph that is a node."""
    from langchain_core.messages import AIMessage
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode
    from langgraph.types import interrupt

    calls: dict[str, str] = {}

    def order(item: str) -> str:
        """Order something."""
        call = current_call()
        assert call is not None
        calls.setdefault(call.event, call.key)
        return f"{item} {interrupt('price')['number']} {interrupt('date')['number']}"

    def ask(_: Any) -> Any:
        return {"messages": [AIMessage(f"tea {interrupt('price')['number']}")]}

    def call(_: Any) -> Any:
        wanted = [{"name": "order", "args": {"item": each}, "id": each} for each in ("tea", "cup")]
        return {"messages": [AIMessage("", tool_calls=wanted)]}

    def tell(state: Any) -> Any:
        return {"messages": [AIMessage(" ".join(each.text for each in state["messages"][-1 if nested else -2 :]))]}

    graph: Any = StateGraph(MessagesState)
    steps = [call, ToolNode([order]), tell]
    if nested:
        inner: Any = StateGraph(MessagesState).add_sequence([ask]).add_edge(START, "ask").compile()
        steps = [("inner", inner), tell]
    graph.add_sequence(steps).add_edge(START, "inner" if nested else "call")
    app = App()
    langgraph.wake(app, graph.compile())
    with Simulation(app, replay=replay) as sim:
        task = app.create(owner="ada", handler="wake", payload={"prompt": "Go"}).id
        for number in range(1 if nested else 4):
            sim.advance(timedelta(hours=1))
            (event,) = app.get(task).runs[0].wait_for_event.events  # type: ignore[union-attr] # it waits
            app.send_event(task, event, {"number": number})
        sim.advance(timedelta(hours=1))
        (run,) = sim.executions(task)
        assert run.content == ("tea 0" if nested else "tea 0 1 cup 2 3"), run.error
    assert len({*calls.values()}) == (0 if nested else 2)
