"""Schedules for agents of the OpenAI Agents SDK: ``pip install 'cloudsched[openai-agents]'``.

::

    scheduling = SchedulingTools(app, lambda context: context.context)
    agent = Agent(name="assistant", tools=openai_agents.tools(scheduling))
    openai_agents.wake(app, agent)
"""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agents.models.multi_provider import MultiProvider
from pydantic_core import to_jsonable_python

from agents import Agent, FunctionTool, Handoff, Model, ModelResponse, RunConfig, Runner
from cloudsched.agents.waking import register

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from agents.tool_context import ToolContext

    from agents import Session
    from cloudsched.agents.scheduling_tools import SchedulingTools, ToolFunction
    from cloudsched.agents.waking import Waking
    from cloudsched.app import App

REMEMBERED: Final = 100
"""The number of the latest items of a session that a woken agent knows."""


def tools(scheduling: SchedulingTools) -> list[Any]:
    """Return the tools for an agent. The context of a call is the SDK's ``ToolContext``."""
    return [
        FunctionTool(
            name=each.__name__,
            description=each.__doc__ or "",
            params_json_schema=each.schema,
            on_invoke_tool=partial(_invoke, each),
            strict_json_schema=False,  # which would make all arguments required
            needs_approval=each.needs_consent,
        )
        for each in scheduling.functions
    ]


async def _invoke(function: ToolFunction, context: ToolContext[Any], arguments: str) -> str:
    answer = await function.answer(_read(arguments), context=context, is_confirmed=True)  # the SDK has asked
    return json.dumps(answer, ensure_ascii=False)


def _read(arguments: str) -> dict[str, Any]:
    try:
        read = json.loads(arguments or "{}")
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {"arguments": arguments}  # which the tool refuses


def wake(
    app: App,
    agent: Agent[Any],
    *,
    make_session: Callable[[str], Session] | None = None,
    make_context: Callable[[str], Any] = str,
    max_turns: int = 10,
    name: str = "wake",
) -> None:
    """Register a handler that wakes an agent for a due task. Its payload is ``{"prompt": …}``.

    Args:
        app: The app.
        agent: The agent. Each turn of its model and each call of its tools is a durable step. An agent that is used as
            a tool is one step, and its tokens are not counted.
        make_session: Returns the session of the task's owner. A run knows it, and adds to it what was said. Without it,
            each run begins anew.
        make_context: Returns the context of a run for the task's owner. By default, it is the owner.
        max_turns: The most turns of the model in one run.
        name: The name of the handler.
    """

    async def run(waking: Waking) -> str | None:
        session = None if make_session is None else make_session(waking.person)
        known: Any = []
        if session is not None:
            known = await waking.ctx.step("read the session", session.get_items, REMEMBERED)
        asked: Any = [*known, {"role": "user", "content": waking.write_prompt()}]
        durable = _OpenAiSteps(waking).copy_agent(agent)
        start = partial(
            Runner.run,
            durable,
            context=make_context(waking.person),
            max_turns=max_turns + 1,
            run_config=RunConfig(tool_not_found_behavior="return_error_to_model"),
        )
        result = await start(asked)
        while result.interruptions:
            state = result.to_state()
            asked = [(each.call_id, each.name, _read(each.arguments)) for each in result.interruptions]
            decide = state.approve if await waking.ask_person(asked) else state.reject
            for call in result.interruptions:
                decide(call)
            result = await start(state)

        if session is not None:
            said = to_jsonable_python(result.to_input_list()[len(known) :])
            await waking.ctx.step("add to the session", _add_items, session, said)
        return str(result.final_output or "")

    register(app, name, max_turns, run)


async def _add_items(session: Session, items: list[Any]) -> None:
    """Add what was said to a session, once, even if this is interrupted and repeated.

    Its items have no ids. What it has of them follows the first one, the prompt, which no other run has.
    """
    left = items
    for each in await session.get_items(REMEMBERED + len(items)):
        left = items[1:] if each == items[0] else left[left[:1] == [each] :]
    await session.add_items(left)


class _RecordedModel(Model):  # type: ignore[misc] # the SDK is not looked at
    def __init__(self, model: Model, agent: str, waking: Waking) -> None:
        self._model = model
        self._agent = agent
        self._waking = waking

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        ask = partial(self._model.get_response, *args, **kwargs)
        return await self._waking.ask_model(self._agent, ModelResponse, ask, lambda answer: answer.usage.total_tokens)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("A woken agent does not stream.")


class _OpenAiSteps:
    """Copies agents, so that their models and tools are steps of a run."""

    def __init__(self, waking: Waking) -> None:
        self._waking = waking
        self._copies: dict[int, Any] = {}
        """The copies by the id of the agent: agents hand over to each other."""

    def copy_agent(self, agent: Agent[Any]) -> Any:
        known = self._copies.get(id(agent))
        if known is not None:
            return known
        model = agent.model if isinstance(agent.model, Model) else MultiProvider().get_model(agent.model)
        copied = agent.clone(model=_RecordedModel(model, agent.name, self._waking))
        self._copies[id(agent)] = copied
        copied.handoffs = [self._copy_handoff(each) for each in agent.handoffs]

        async def get_all_tools(context: Any) -> list[Any]:
            return [self._copy_tool(each) for each in await agent.get_all_tools(context)]

        copied.get_all_tools = get_all_tools  # those of MCP servers, too
        return copied

    def _copy_handoff(self, handoff: Any) -> Any:
        if not isinstance(handoff, Handoff):
            return self.copy_agent(handoff)

        async def hand_over(*args: Any) -> Any:
            return self.copy_agent(await handoff.on_invoke_handoff(*args))

        return dataclasses.replace(handoff, on_invoke_handoff=hand_over)

    def _copy_tool(self, tool: Any) -> Any:
        if not isinstance(tool, FunctionTool):
            return tool  # the model's own, such as its search

        async def invoke(context: ToolContext[Any], arguments: str) -> Any:
            async def call() -> Any:
                return to_jsonable_python(await tool.on_invoke_tool(context, arguments), fallback=str)

            return await self._waking.use_tool(tool.name, context.tool_call_id, None, call)

        return dataclasses.replace(tool, on_invoke_tool=invoke)
