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

from langchain_core.callbacks import BaseCallbackHandler
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
        place = {"thread_id": waking.person, "person": waking.person}
        config: Any = {"configurable": place, "callbacks": [steps]}
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
            said = [_name(each, f"{waking.key}-{number}") for number, each in enumerate(messages[len(known) :])]
            await waking.ctx.step("add to the session", _add_messages, graph, config, said)
        return _read_text(messages[-1])

    register(app, name, max_turns, run)


class _LangGraphSteps(BaseCallbackHandler):  # type: ignore[misc] # LangChain is not looked at
    """The runs of nodes and the calls of tools of one run, as steps. LangChain tells it of each turn of a model."""

    raise_error = True
    run_inline = True

    def __init__(self, waking: Waking) -> None:
        self._waking = waking
        self._asked = 0
        """The number of times that the present step has asked a model."""
        self._answered = Counter[str]()
        """The number of interrupts of each call that were answered."""
        self._open: dict[str, tuple[str, Any]] = {}
        """The name and the value of the interrupt that each call waits for."""
        self._done: dict[str, Any] = {}

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        self._asked += 1
        self._waking.require_turns(self._asked)

    on_llm_start = on_chat_model_start

    def on_llm_end(self, response: Any, **_: Any) -> None:
        messages = [getattr(each, "message", None) for part in response.generations for each in part]
        usage = [each.usage_metadata or {} for each in messages if isinstance(each, AIMessage)]
        self._waking.ctx.used(queries=1, tokens=sum(each.get("total_tokens", 0) for each in usage))

    async def run(self, name: str, key: str, call: Callable[[], Awaitable[Any]], *, retry: bool | None) -> Any:
        """Return what a call answers, whose key is the same each time that LangGraph repeats it."""
        answered = self._answered[key]
        has_run = False

        async def step() -> str:
            nonlocal has_run
            has_run, self._asked = True, 0
            try:
                found = {"answer": await call()}
            except GraphInterrupt as error:
                found = {"interrupt": error.args[0][0].value}
            except Exception:
                if self._waking.allows(self._asked):
                    raise
                found = {}
            return _dump({**found, "turns": self._asked})

        found = self._done.get(key)
        if found is None:
            found = _load(await self._waking.use_tool(name, key, str, step, answered=answered, retry=retry))
            self._waking.count_turns(found["turns"])
        for _ in range(0 if has_run else answered):
            interrupt(None)  # returns an answer that the call has had already
        while "interrupt" in found:
            self._open[key] = (name, found["interrupt"])
            interrupt(key)  # raises, once it has no answer left
        self._done[key] = found
        return found["answer"]

    async def answer(self, waiting: Any) -> Any:
        """Return the command that goes on with the answers to interrupts."""
        asked = {each.value: self._open.pop(each.value) for each in waiting}
        approvals = [
            (key, value["tool"], value.get("arguments"))
            for key, (_, value) in asked.items()
            if isinstance(value, dict) and "tool" in value
        ]
        answers = {}
        if approvals:
            decision = {"approved": await self._waking.ask_person(approvals)}
            answers = {key: decision for key, *_ in approvals}
        for key, (name, _) in asked.items():
            if key not in answers:
                answers[key] = await self._waking.wait_for_tool(name, key, self._answered[key])
        self._answered.update(asked.keys())
        return Command(resume={each.id: answers[each.value] for each in waiting})


class _StepNode(Runnable[Any, Any]):  # type: ignore[misc] # LangChain is not looked at
    """A node of a graph whose runs are steps of a durable run: that of tools has one for each call."""

    def __init__(self, node: Any, name: str, steps: _LangGraphSteps) -> None:
        self._node = node
        self._name = name
        self._steps = steps

    def invoke(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("A woken agent is awaited.")

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 - as LangChain has it
        at = config["metadata"]["langgraph_step"]
        use = partial(self._node.ainvoke, config=config, **kwargs)
        if not isinstance(self._node, ToolNode):
            key = f"{at} {config['metadata']['langgraph_path']}"
            return await self._steps.run(self._name, key, partial(use, input), retry=None)
        calls = _find_calls(input)
        answers = []
        for call in calls:
            asked = [call] if len(calls) > 1 else input
            key = f"{at} {call['id']}" if call["id"] else ""
            answers.append(await self._steps.run(call["name"], key, partial(use, asked), retry=False))
        return _merge(answers) if len(calls) > 1 else answers[0]


def _find_calls(asked: Any) -> list[Any]:
    """Return the calls of tools that a node is handed, alone or in the last message of a model."""
    if isinstance(asked, dict) and "tool_call" in asked:
        return [asked["tool_call"]]
    if isinstance(asked, list) and isinstance(asked[-1], dict):
        return asked
    messages = asked["messages"] if isinstance(asked, dict) else getattr(asked, "messages", asked)
    return next(each.tool_calls for each in reversed(messages) if isinstance(each, AIMessage))  # type: ignore[no-any-return] # LangChain's


def _merge(answers: list[Any]) -> Any:
    """Return one update of the state for those of several calls."""
    parts = [part for each in answers for part in (each if isinstance(each, list) else [each])]
    if any(isinstance(each, Command) for each in parts):
        return parts
    return {key: [message for each in parts for message in each[key]] for key in parts[0]}


async def _read_messages(graph: Any, config: Any) -> str:
    state = await graph.aget_state(config)
    return _dump(state.values.get("messages", []))


async def _add_messages(graph: Any, config: Any, messages: list[Any]) -> None:
    """Add what was said to a thread, each message once by its id, even if this is repeated."""
    known = {each.id for each in _load(await _read_messages(graph, config))}
    missing = [each for each in messages if each.id not in known]
    if missing:
        await graph.aupdate_state(config, {"messages": missing}, as_node=START)


def _name(message: Any, key: str) -> Any:
    return message.model_copy(update={"id": key})


def _read_text(message: Any) -> str:
    return str(message.text) if isinstance(message, AIMessage) else ""


def _dump(value: object) -> str:
    kind, content = _SERIALIZER.dumps_typed(value)
    return f"{kind} {base64.b64encode(content).decode()}"


def _load(text: str) -> Any:
    kind, _, content = text.partition(" ")
    return _SERIALIZER.loads_typed((kind, base64.b64decode(content)))
