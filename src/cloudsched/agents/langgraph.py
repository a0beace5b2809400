"""Schedules for agents of LangGraph and LangChain: ``pip install 'cloudsched[langgraph]'``.

::

    scheduling = SchedulingTools(app, lambda config: config["configurable"]["person"])
    graph = create_agent(model, tools=langgraph.tools(scheduling))
    langgraph.wake(app, graph)
"""

from __future__ import annotations

import base64
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.constants import START
from langgraph.errors import GraphInterrupt
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from cloudsched.agents.waking import register

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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

    Each call of a tool in a ``ToolNode``, and each run of another node, such as a turn of the model, is a durable step.
    If a node fails, it is repeated as the task's `retry` says. An interrupt whose value has a ``tool`` and
    ``arguments`` asks the person, and goes on with ``{"approved": …}``. Any other one goes on with the payload of the
    event that the run waits for.

    If the graph has a checkpointer, a run knows the thread whose id is the task's owner, and adds to it what was said.
    ``config["configurable"]["person"]`` is the owner, too.

    Args:
        app: The app.
        graph: The compiled graph. Its state has ``messages``.
        max_turns: The most turns of the model in one run.
        name: The name of the handler.
    """

    async def run(waking: Waking) -> str | None:
        steps = _LangGraphSteps(waking)
        config: Any = {"configurable": {"thread_id": waking.person, "person": waking.person}}
        known: list[Any] = []
        if graph.checkpointer:
            known = _load(await waking.ctx.step("read the session", _read_messages, graph, config))
        prompt = HumanMessage(waking.write_prompt(), id=waking.key)

        nodes = {
            key: node if key == START else node.copy({"bound": _StepNode(node.bound, key, steps)})
            for key, node in graph.nodes.items()
        }
        durable = graph.copy({"nodes": nodes, "checkpointer": InMemorySaver()})
        state = await durable.ainvoke({"messages": [*known, prompt]}, config)
        while waiting := state.get("__interrupt__"):
            state = await durable.ainvoke(await steps.answer(waiting), config)

        messages = state["messages"]
        if graph.checkpointer:
            said = messages[len(known) :]
            for number, message in enumerate(said):
                message.id = f"{waking.key}-{number}"
            await waking.ctx.step("add to the session", _add_messages, graph, config, said)
        return _read_text(messages[-1])

    register(app, name, max_turns, run)


class _LangGraphSteps:
    """The runs of nodes and the calls of tools of one run, as steps."""

    def __init__(self, waking: Waking) -> None:
        self.waking = waking
        self._answered = Counter[str]()
        """The number of interrupts of each call that were answered."""
        self._done: dict[str, Any] = {}

    async def run(self, name: str, key: str, call: Callable[[], Awaitable[Any]], *, retry: bool | None) -> Any:
        """Return what a call answers, whose key is the same each time that LangGraph repeats it."""
        answered = self._answered[key]
        has_run = False

        async def step() -> str:
            nonlocal has_run
            has_run = True
            try:
                answer = await call()
            except GraphInterrupt as error:
                return _dump({"interrupt": error.args[0][0].value})
            for message in _find_messages(answer):
                tokens = (message.usage_metadata or {}).get("total_tokens", 0)
                self.waking.ctx.used(queries=1, tokens=tokens)
            return _dump({"answer": answer})

        found = self._done.get(key) or _load(
            await self.waking.use_tool(name, key, str, step, answered=answered, retry=retry)
        )
        for _ in range(0 if has_run else answered):
            interrupt(None)  # returns an answer that the call has had already
        while "interrupt" in found:
            interrupt((key, name, found["interrupt"]))  # raises, once it has no answer left
        self._done[key] = found
        return found["answer"]

    async def answer(self, waiting: Any) -> Any:
        """Return the command that goes on with the answers to interrupts."""
        agreed = [each for each in waiting if isinstance(each.value[2], dict) and "tool" in each.value[2]]
        asks = [(each.value[0], each.value[2]["tool"], each.value[2].get("arguments") or {}) for each in agreed]
        decision = {"approved": await self.waking.ask_person(asks)}
        answers = {each.id: decision for each in agreed}
        for each in waiting:
            key, name, _ = each.value
            if each not in agreed:
                answers[each.id] = await self.waking.wait_for_tool(name, key, self._answered[key])
            self._answered[key] += 1
        alone = [*answers.values()]  # the only one may be that of a graph in a node, whose interrupts have other ids
        return Command(resume=answers if len(alone) > 1 or alone[0] is None else alone[0])


class _StepNode(Runnable[Any, Any]):  # type: ignore[misc] # LangChain is not looked at
    """A node of a graph whose runs are steps of a durable run: that of tools has one for each call."""

    def __init__(self, node: Any, name: str, steps: _LangGraphSteps) -> None:
        self._node = node
        self._name = name
        self._steps = steps
        self._asks_model = False

    def invoke(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("A woken agent is awaited.")

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 - as LangChain has it
        at = config["metadata"]["langgraph_step"]
        use = partial(self._node.ainvoke, config=config, **kwargs)
        if isinstance(self._node, ToolNode):
            calls, _ = self._node._parse_input(input)  # noqa: SLF001 - which no public name says
            answers = []
            for call in calls:
                asked = partial(use, [call] if calls[1:] else input)
                key = f"{at} {call['id']}" if call["id"] else ""
                found = await self._steps.run(call["name"], key, asked, retry=False)
                answers += found if isinstance(found, list) else [found]
            return [each if isinstance(each, Command) else Command(update=each) for each in answers]

        if self._asks_model:
            self._steps.waking.count_turn()
        key = f"{at} {config['metadata']['langgraph_path']}"
        answer = await self._steps.run(self._name, key, partial(use, input), retry=None)
        if not self._asks_model and _find_messages(answer):
            self._asks_model = True
            self._steps.waking.count_turn()
        return answer


def _find_messages(answer: Any) -> list[Any]:
    """Return the answers of models in what a node has answered."""
    parts = answer if isinstance(answer, list | tuple) else [answer]
    updates = [each.update if isinstance(each, Command) else each for each in parts]
    messages = [message for each in updates if isinstance(each, dict) for message in each.get("messages", ())]
    return [each for each in messages if isinstance(each, AIMessage)]


async def _read_messages(graph: Any, config: Any) -> str:
    state = await graph.aget_state(config)
    return _dump(state.values.get("messages", []))


async def _add_messages(graph: Any, config: Any, messages: list[Any]) -> None:
    """Add what was said to a thread, each message once by its id, even if this is repeated."""
    known = {each.id for each in _load(await _read_messages(graph, config))}
    missing = [each for each in messages if each.id not in known]
    await graph.aupdate_state(config, {"messages": missing}, as_node=START)


def _read_text(message: Any) -> str:
    return str(message.text) if isinstance(message, AIMessage) else ""


def _dump(value: object) -> str:
    kind, content = _SERIALIZER.dumps_typed(value)
    return f"{kind} {base64.b64encode(content).decode()}"


def _load(text: str) -> Any:
    kind, _, content = text.partition(" ")
    return _SERIALIZER.loads_typed((kind, base64.b64decode(content)))
