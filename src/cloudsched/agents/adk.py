"""Schedules for agents of Google's ADK: ``pip install 'cloudsched[adk]'``.

::

    scheduling = SchedulingTools(app, lambda context: context.user_id)
    agent = Agent(name="assistant", model="gemini-flash", tools=adk.tools(scheduling))
    adk.wake(app, agent, session_service=sessions)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools import BaseTool
from google.genai import types

from cloudsched.agents.adk_steps import copy_agent
from cloudsched.agents.waking import register

if TYPE_CHECKING:
    from google.adk.agents import BaseAgent
    from google.adk.tools import ToolContext

    from cloudsched.agents.scheduling_tools import SchedulingTools, ToolFunction
    from cloudsched.agents.waking import Waking
    from cloudsched.app import App

REMEMBERED: Final = GetSessionConfig(num_recent_events=100)
"""The part of a session that a woken agent knows."""
CONFIRMATION: Final = "adk_request_confirmation"
"""The call by which ADK asks whether a tool may be called."""


class _SchedulingTool(BaseTool):  # type: ignore[misc] # ADK is not looked at
    def __init__(self, function: ToolFunction) -> None:
        super().__init__(name=function.__name__, description=function.__doc__ or "")
        self._function = function

    def _get_declaration(self) -> Any:
        declared = {"name": self.name, "description": self.description}
        return types.FunctionDeclaration(**declared, parameters_json_schema=self._function.schema)

    async def check_require_confirmation(self, *_: object) -> bool:
        return self._function.needs_consent

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        confirmation = tool_context.tool_confirmation
        if self._function.needs_consent and confirmation is None:
            tool_context.request_confirmation(hint=f"May {self.name} be called with {args}?")
            tool_context.actions.skip_summarization = True
        if self._function.needs_consent and not (confirmation and confirmation.confirmed):
            return {"refused": "Nothing was done: the person has not agreed."}
        return await self._function.answer(args, context=tool_context, is_confirmed=True)


def tools(scheduling: SchedulingTools) -> list[Any]:
    """Return the tools for an agent. The context of a call is ADK's ``ToolContext``, with its ``user_id``."""
    return [_SchedulingTool(each) for each in scheduling.functions]


def wake(
    app: App,
    agent: BaseAgent,
    *,
    session_service: BaseSessionService | None = None,
    app_name: str = "cloudsched",
    max_turns: int = 10,
    name: str = "wake",
) -> None:
    """Register a handler that wakes an agent for a due task. Its payload is ``{"prompt": …}``.

    Args:
        app: The app.
        agent: The agent. Each turn of its model and each call of its tools is a durable step.
        session_service: Has the sessions of people. A run knows the owner's session whose id is the
            `chatId` of the task's source, or else the owner's id, and adds to it what was said. Without it,
            each run begins anew.
        app_name: The name under which the service has them.
        max_turns: The most turns of the model in one run.
        name: The name of the handler.
    """

    async def run(waking: Waking) -> str | None:
        place = _find_place(app_name, waking)
        known = Session(id=place["session_id"], app_name=app_name, user_id=waking.person)
        if session_service is not None:
            known = await waking.ctx.step("read the session", _read_session, session_service, place)

        memory = InMemorySessionService()
        session = await memory.create_session(**place, state=known.state)
        for event in known.events:
            await memory.append_event(session, event)
        runner = Runner(app_name=app_name, agent=copy_agent(waking, agent), session_service=memory)
        answer = await _converse(runner, waking, place["session_id"])

        if session_service is not None:
            said = (await memory.get_session(**place)).events[len(known.events) :]
            await waking.ctx.step("add to the session", _add_events, session_service, place, waking.key, said)
        return answer

    register(app, name, max_turns, run)


def _find_place(app_name: str, waking: Waking) -> dict[str, str]:
    """Return where the session is. It is of the owner, whatever a task of theirs says."""
    source = waking.ctx.task.source
    chat_id = None if source is None else source.chat_id
    return {"app_name": app_name, "user_id": waking.person, "session_id": chat_id or waking.person}


async def _converse(runner: Runner, waking: Waking, session_id: str) -> str:
    """Run the agent, and again with the answers to the calls that have none yet. Return what it says last."""
    parts = [types.Part(text=waking.write_prompt())]
    place = {"user_id": waking.person, "session_id": session_id}
    while parts:
        answer = ""
        waiting: list[Any] = []
        message = types.Content(role="user", parts=parts)
        async for event in runner.run_async(**place, new_message=message):
            lasting = event.long_running_tool_ids or ()
            waiting += [each for each in event.get_function_calls() if each.id in lasting]
            if event.is_final_response() and event.content and event.content.parts:
                texts = [each.text for each in event.content.parts if each.text and not each.thought]
                answer = "".join(texts) or answer
        parts = await _await_answers(waking, waiting)
    return answer


async def _await_answers(waking: Waking, calls: list[Any]) -> list[Any]:
    """Return the responses to calls that have no answer yet, once there are some."""
    asked = {each.id: each.args["originalFunctionCall"] for each in calls if each.name == CONFIRMATION}
    approvals = [(each["id"], each["name"], each.get("args", {})) for each in asked.values()]
    decision = {"confirmed": await waking.ask_person(approvals)}
    parts = []
    for call in calls:
        answer = decision if call.id in asked else await waking.wait_for_tool(call.name, call.id)
        response = answer if isinstance(answer, dict) else {"result": answer}
        found = types.FunctionResponse(id=call.id, name=call.name, response=response)
        parts.append(types.Part(function_response=found))
    return parts


async def _read_session(service: BaseSessionService, place: dict[str, str]) -> Session:
    found = await service.get_session(**place, config=REMEMBERED)
    return found or await service.create_session(**place)


async def _add_events(service: BaseSessionService, place: dict[str, str], key: str, events: list[Any]) -> None:
    """Add what was said to a session, once, even if this is interrupted and repeated."""
    session = await service.get_session(**place)
    known = {each.id for each in session.events}
    for number, event in enumerate(events):
        event.id = f"{key}-{number}"
        if event.id not in known:
            await service.append_event(session, event)
