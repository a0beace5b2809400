"""Schedules for agents of LangGraph and LangChain: ``pip install 'cloudsched[langgraph]'``.

::

    scheduling = SchedulingTools(app, lambda config: config["configurable"]["person"])
    graph = create_agent(model, tools=langgraph.tools(scheduling))
    langgraph.wake(app, graph)
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.constants import START
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, Interrupt, interrupt

from cloudsched.agents.waking import register

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from cloudsched.agents.scheduling_tools import SchedulingTools, ToolFunction
    from cloudsched.agents.waking import Waking
    from cloudsched.app import App

_SERIALIZER = JsonPlusSerializer()


def tools(scheduling: SchedulingTools) -> list[Any]:
    """Return the tools for an agent. The context of a call is the ``RunnableConfig`` of the graph's run."""
    return [_make_tool(each) for each in scheduling.functions]


def _make_tool(function: ToolFunction) -> Any:
    async def call(config: RunnableConfig, **arguments: Any) -> dict[str, Any]:
        if function.needs_consent and not _agrees(interrupt({"tool": function.__name__, "arguments": arguments})):
            return {"refused": "Nothing was done: the person did not agree."}
        return await function.answer(arguments, context=config, is_confirmed=True)

    return StructuredTool(
        name=function.__name__, description=function.__doc__ or "", args_schema=function.schema, coroutine=call
    )


def _agrees(answer: object) -> bool:
    return answer is True or (isinstance(answer, dict) and answer.get("approved") is True)


def wake(app: App, graph: CompiledStateGraph[Any, Any, Any, Any], *, max_turns: int = 10, name: str = "wake") -> None:
    """Register a handler that wakes an agent for a due task. Its payload is ``{"prompt": …}``.

    Each run of a node of the graph, such as a turn of the model or a call of a tool, is a durable step. An interrupt
    whose value has a ``tool`` and ``arguments`` asks the person, and goes on with ``{"approved": …}``. Any other one
    goes on with the payload of the event that the run waits for.

    If the graph has a checkpointer, a run knows the thread whose id is the task's owner, and adds to it what was said.
    ``config["configurable"]["person"]`` is the owner, too.

    Args:
        app: The app.
        graph: The compiled graph. Its state has ``messages``.
        max_turns: The most turns of the model in one run.
        name: The name of the handler.
    """

    async def run(waking: Waking) -> str | None:
        config: Any = {"configurable": {"thread_id": waking.person, "person": waking.person}}
        known: list[Any] = []
        if graph.checkpointer:
            known = _load(await waking.ctx.step("read the session", _read_messages, graph, config))
        prompt = HumanMessage(waking.write_prompt(), id=waking.key)

        calls: dict[str, tuple[str, Any]] = {}
        nodes = {
            key: node if key == START else node.copy({"bound": _StepNode(node.bound, key, waking, calls)})
            for key, node in graph.nodes.items()
        }
        durable = graph.copy({"nodes": nodes, "checkpointer": InMemorySaver()})
        asked: Any = {"messages": [*known, prompt]}
        while True:
            state = await durable.ainvoke(asked, config)
            waiting = state.get("__interrupt__", ())
            if not waiting:
                break
            answers = {each.id: await _ask(waking, each, calls) for each in waiting}
            asked = Command(resume=answers)

        messages = state["messages"]
        if graph.checkpointer:
            said = messages[len(known) :]
            await waking.ctx.step("add to the session", _add_messages, graph, config, said)
        return _read_text(messages[-1])

    register(app, name, max_turns, run)


class _StepNode(Runnable[Any, Any]):  # type: ignore[misc] # LangChain is not looked at
    """A node of a graph whose runs are steps of a durable run. `calls` gets what each interrupt is about."""

    def __init__(self, node: Any, name: str, waking: Waking, calls: dict[str, tuple[str, Any]]) -> None:
        self._node = node
        self._name = name
        self._waking = waking
        self._calls = calls
        self._asks_model = False

    def invoke(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("A woken agent is awaited.")

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 - as LangChain has it
        async def run() -> str:
            try:
                answer = await self._node.ainvoke(input, config, **kwargs)
            except GraphInterrupt as error:
                return _dump({"interrupts": [each.value for each in error.args[0]]})
            for message in _find_messages(answer):
                tokens = (message.usage_metadata or {}).get("total_tokens", 0)
                self._waking.ctx.used(queries=1, tokens=tokens)
            return _dump({"answer": answer})

        if self._asks_model:
            self._waking.count_turn()
        call = input.get("tool_call") if isinstance(input, dict) else None
        found = _load(await self._waking.use_tool(self._name, call, str, run))
        if "interrupts" in found:
            namespace = config["configurable"]["checkpoint_ns"]
            interrupts = tuple(Interrupt.from_ns(each, namespace) for each in found["interrupts"])
            self._calls.update({each.id: (self._name, call) for each in interrupts})
            raise GraphInterrupt(interrupts)
        if not self._asks_model and _find_messages(found["answer"]):
            self._asks_model = True
            self._waking.count_turn()
        return found["answer"]


def _find_messages(answer: Any) -> list[Any]:
    """Return the answers of models in what a node has answered."""
    parts = answer if isinstance(answer, list | tuple) else [answer]
    updates = [each.update if isinstance(each, Command) else each for each in parts]
    messages = [message for each in updates if isinstance(each, dict) for message in each.get("messages", ())]
    return [each for each in messages if isinstance(each, AIMessage)]


async def _ask(waking: Waking, asked: Any, calls: dict[str, tuple[str, Any]]) -> Any:
    """Return the answer to an interrupt: of the person, to what may be called, or else any event's payload."""
    if isinstance(asked.value, dict) and "tool" in asked.value:
        return {"approved": await waking.ask_person(asked.value["tool"], asked.value.get("arguments"))}
    name, call = calls.get(asked.id, ("interrupt", asked.value))
    return await waking.wait_for_tool(name, call)


async def _read_messages(graph: Any, config: Any) -> str:
    state = await graph.aget_state(config)
    return _dump(state.values.get("messages", []))


async def _add_messages(graph: Any, config: Any, messages: list[Any]) -> None:
    """Add what was said to a thread. A message has an id, so that it is added once, even if this is repeated."""
    await graph.aupdate_state(config, {"messages": messages}, as_node=START)


def _read_text(message: Any) -> str:
    return str(message.text) if isinstance(message, AIMessage) else ""


def _dump(value: object) -> str:
    kind, content = _SERIALIZER.dumps_typed(value)
    return f"{kind} {base64.b64encode(content).decode()}"


def _load(text: str) -> Any:
    kind, _, content = text.partition(" ")
    return _SERIALIZER.loads_typed((kind, base64.b64decode(content)))
