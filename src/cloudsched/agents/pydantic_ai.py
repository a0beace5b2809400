"""Schedules for agents of Pydantic AI: ``pip install 'cloudsched[pydantic-ai]'``.

::

    scheduling = SchedulingTools(app, lambda context: context.deps)
    agent = Agent(model, deps_type=str, tools=pydantic_ai.tools(scheduling))
    pydantic_ai.wake(app, agent)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import TypeAdapter
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ModelRetry, Tool, ToolDenied
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolRetryError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_core import to_jsonable_python

from cloudsched.agents.waking import SILENCE, register

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pydantic_ai import Agent, RunContext

    from cloudsched.agents.scheduling_tools import SchedulingTools, ToolFunction
    from cloudsched.agents.waking import Waking
    from cloudsched.app import App

_MESSAGES: TypeAdapter[list[Any]] = TypeAdapter(list[ModelMessage])
_DEFERRALS = {each.__name__: each for each in (ApprovalRequired, CallDeferred)}


def tools(scheduling: SchedulingTools) -> list[Any]:
    """Return the tools for an agent. The context of a call is the ``RunContext``, with its ``deps``."""
    return [_make_tool(each) for each in scheduling.functions]


def _make_tool(function: ToolFunction) -> Any:
    async def call(context: RunContext[Any], **arguments: Any) -> dict[str, Any]:
        return await function.answer(arguments, context=context, is_confirmed=True)  # Pydantic AI has asked

    tool = Tool.from_schema(call, function.__name__, function.__doc__, function.schema, takes_ctx=True)
    tool.requires_approval = function.needs_consent
    return tool


class Conversations(Protocol):
    """Keeps what was said in conversations. Pydantic AI leaves that to its users."""

    async def load(self, person: str) -> list[ModelMessage]:
        """Return what was said, the oldest first."""

    async def add(self, person: str, messages: list[ModelMessage]) -> None:
        """Add what was said since, each message once: its `metadata` has its key as ``"cloudsched"``.

        If a process dies meanwhile, it is called again with those that `load` does not return then, maybe none.
        """


def wake(
    app: App,
    agent: Agent[Any, Any],
    *,
    conversations: Conversations | None = None,
    make_deps: Callable[[str], Any] = str,
    max_turns: int = 10,
    name: str = "wake",
) -> None:
    """Register a handler that wakes an agent for a due task. Its payload is ``{"prompt": …}``.

    Args:
        app: The app.
        agent: The agent. Each turn of its model and each call of its tools is a durable step.
        conversations: Keeps what was said to each person. A run knows that of the task's owner, and adds to it. Without
            it, each run begins anew.
        make_deps: Returns the dependencies of a run for the task's owner. By default, they are the owner.
        max_turns: The most turns of the model in one run.
        name: The name of the handler.
    """

    async def run(waking: Waking) -> str | None:
        known: list[Any] = []
        if conversations is not None:
            known = _MESSAGES.validate_python(
                await waking.ctx.step("read the session", _load, conversations, waking.person)
            )
        start = partial(
            agent.run,
            deps=make_deps(waking.person),
            output_type=[agent.output_type, DeferredToolRequests],
            capabilities=[_PydanticAiSteps(waking)],
        )
        result = await start(waking.write_prompt(), message_history=known)
        while isinstance(result.output, DeferredToolRequests):
            answers = DeferredToolResults()
            asked = [(each.tool_call_id, each.tool_name, each.args_as_dict()) for each in result.output.approvals]
            decision = await waking.ask_person(asked) or ToolDenied("The person did not agree.")
            answers.approvals.update({each[0]: decision for each in asked})
            for call in result.output.calls:
                answers.calls[call.tool_call_id] = await waking.wait_for_tool(call.tool_name, call.tool_call_id)
            result = await start(message_history=result.all_messages(), deferred_tool_results=answers)

        if conversations is not None:
            said = result.all_messages()[len(known) :]
            for number, message in enumerate(said):
                message.metadata = {"cloudsched": f"{waking.key}-{number}"}
            await waking.ctx.step("add to the session", _add, conversations, waking.person, said)
        return str(result.output or "")

    register(app, name, max_turns, run)


async def _load(conversations: Conversations, person: str) -> Any:
    return _MESSAGES.dump_python(await conversations.load(person), mode="json")


async def _add(conversations: Conversations, person: str, said: list[ModelMessage]) -> None:
    known = [each.metadata for each in await conversations.load(person)]
    await conversations.add(person, [each for each in said if each.metadata not in known])


class _StepModel(WrapperModel):  # type: ignore[misc] # Pydantic AI is not looked at
    def __init__(self, model: Any, agent: str, waking: Waking) -> None:
        super().__init__(model)
        self._agent = agent
        self._waking = waking

    async def request(self, *args: Any) -> ModelResponse:
        ask = partial(self.wrapped.request, *args)
        answer = await self._waking.ask_model(self._agent, ModelResponse, ask, lambda each: each.usage.total_tokens)
        if not answer.tool_calls and not (answer.text or "").strip():
            answer.parts = [*answer.parts, TextPart(SILENCE)]  # Pydantic AI takes an empty answer for a mistake
        return answer


class _PydanticAiSteps(AbstractCapability[Any]):  # type: ignore[misc] # Pydantic AI is not looked at
    """Makes each request to a model, and each call of a tool, a step of a run."""

    def __init__(self, waking: Waking) -> None:
        self._waking = waking

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: Any,
        handler: Callable[[Any], Awaitable[Any]],
    ) -> Any:
        name = ctx.agent.name if ctx.agent is not None and ctx.agent.name else "agent"
        request_context.model = _StepModel(request_context.model, name, self._waking)
        return await handler(request_context)

    async def wrap_tool_execute(
        self,
        _ctx: RunContext[Any],
        *,
        call: Any,
        args: Any,
        handler: Callable[[Any], Awaitable[Any]],
        **_: Any,
    ) -> Any:
        async def use() -> dict[str, Any]:
            try:
                return {"result": to_jsonable_python(await handler(args), fallback=str)}
            except ModelRetry as retry:
                return {"retry": retry.message}
            except ToolRetryError as retry:  # what Pydantic AI makes of it
                return {"retry": str(retry.tool_retry.content)}
            except tuple(_DEFERRALS.values()) as deferral:
                return {"deferral": type(deferral).__name__, "metadata": to_jsonable_python(deferral.metadata)}

        answer = await self._waking.use_tool(call.tool_name, call.tool_call_id, None, use)
        if "retry" in answer:
            raise ModelRetry(answer["retry"])
        if "deferral" in answer:
            raise _DEFERRALS[answer["deferral"]](answer["metadata"])
        return answer["result"]
