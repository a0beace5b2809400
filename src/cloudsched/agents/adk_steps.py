"""Copies of agents of Google's ADK whose models and tools are steps of a durable run."""

from __future__ import annotations

import copy
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from google.adk.agents import LlmAgent
from google.adk.events.event_actions import EventActions
from google.adk.models import LlmResponse
from google.adk.tools import BaseTool, FunctionTool
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_toolset import BaseToolset
from pydantic_core import to_jsonable_python

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from cloudsched.agents.waking import Waking


def copy_agent(waking: Waking, agent: Any) -> Any:
    """Return a copy of an agent, and of those below it, whose models and tools are steps."""
    copied = agent.clone()
    models = [(each, each.canonical_model) for each in _walk(copied) if isinstance(each, LlmAgent)]
    for each, model in models:  # an agent without a model has that of the one above it
        each.model = _copy_model(waking, model, each.name)
        each.tools = [_copy_tool(waking, tool) for tool in each.tools]
    return copied


def _walk(agent: Any) -> Iterator[Any]:
    yield agent
    for each in agent.sub_agents:
        yield from _walk(each)


def _copy_model(waking: Waking, model: Any, agent: str) -> Any:
    async def generate(request: Any, stream: object = None) -> AsyncIterator[Any]:  # noqa: ARG001 - ADK's
        yield await waking.ask_model(agent, LlmResponse, partial(_generate, model, request), _count)

    copied = model.model_copy()
    object.__setattr__(copied, "generate_content_async", generate)  # a model of pydantic
    return copied


async def _generate(model: Any, request: Any) -> Any:
    """Return the model's whole response. Its calls have ids, which ADK would make anew in each replay."""
    found = [LlmResponse(), *[each async for each in model.generate_content_async(request, False)]]  # noqa: FBT003 - ADK's
    for part in (found[-1].content and found[-1].content.parts) or ():
        if part.function_call is not None and not part.function_call.id:
            part.function_call.id = f"adk-{uuid.uuid4()}"
    return found[-1]


def _count(response: Any) -> int | None:
    return getattr(response.usage_metadata, "total_token_count", None)


def _copy_tool(waking: Waking, tool: Any) -> Any:
    made = tool if isinstance(tool, BaseTool | BaseToolset) else FunctionTool(tool)
    copied: Any = copy.copy(made)
    if isinstance(made, BaseToolset):

        async def get_tools(context: Any = None) -> list[Any]:
            return [_copy_tool(waking, each) for each in await made.get_tools(context)]

        copied.get_tools = get_tools
    elif isinstance(made, AgentTool):
        copied.agent = copy_agent(waking, made.agent)
    else:
        copied.run_async = partial(_run_tool, waking, made)
    return copied


async def _run_tool(waking: Waking, tool: Any, *, args: dict[str, Any], tool_context: Any) -> Any:
    """Return what a tool answers, and do again in a replay what it has changed beside that."""

    async def call() -> dict[str, Any]:
        result = await tool.run_async(args=args, tool_context=tool_context)
        actions = tool_context.actions.model_dump(mode="json", exclude_defaults=True)
        return {"result": to_jsonable_python(result, fallback=str), "actions": actions}

    answer = await waking.use_tool(tool.name, tool_context.function_call_id, None, call)
    actions = EventActions.model_validate(answer["actions"])
    for each in actions.model_fields_set - {"state_delta"}:
        setattr(tool_context.actions, each, getattr(actions, each))
    tool_context.state.update(actions.state_delta)
    return answer["result"]
