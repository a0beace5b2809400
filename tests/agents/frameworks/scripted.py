"""Agents of each framework, with a model that answers by a script, and an app that wakes them."""

from __future__ import annotations

import importlib
import itertools
import json
import os
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from cloudsched import App
from cloudsched.agents import SchedulingTools

Calls = Sequence[tuple[str, dict[str, Any]]]
Turn = str | Calls
"""What a model answers: a text, or calls of tools side by side."""
NUMBERS = itertools.count(os.getpid() * 1000)
"""The numbers of all turns. A model names no two calls alike, whichever process asks it."""
TOKENS = 100
"""The tokens of each turn."""


@dataclass
class Script:
    """A model: decides each turn from the last message of a person, and from what tools have answered since."""

    decide: Callable[[str, list[Any]], Turn]
    prompts: list[str] = field(default_factory=list)
    """The last message of a person, at each turn."""

    def ask(self, prompt: str, answers: list[Any]) -> Turn:
        self.prompts.append(prompt)
        return self.decide(prompt, [_read(each) for each in answers])


def _read(answer: Any) -> Any:
    """Return a tool's answer, which some frameworks make a text."""
    try:
        return json.loads(answer)
    except (TypeError, ValueError):
        return answer


class Framework:
    """What tests do with a framework."""

    name: str
    title: str

    @property
    def module(self) -> ModuleType:
        """The module of cloudsched for it."""
        return importlib.import_module(f"cloudsched.agents.{self.name}")

    def make(self, script: Script, functions: Sequence[Callable[..., Any]], tools: Sequence[Any] = ()) -> Any:
        """Return an agent with plain functions and tools."""
        raise NotImplementedError

    def make_lasting(self, function: Callable[..., Any]) -> Any:
        """Return a tool whose answer comes later."""
        raise NotImplementedError

    async def chat(self, agent: Any, person: str, text: str) -> str:
        """Return what an agent answers a person who is there."""
        raise NotImplementedError


class Adk(Framework):
    name = "adk"
    title = "ADK"

    def make(self, script: Script, functions: Sequence[Callable[..., Any]], tools: Sequence[Any] = ()) -> Any:
        from google.adk.agents import Agent
        from google.adk.models import BaseLlm, LlmResponse
        from google.genai import types

        class Model(BaseLlm):  # type: ignore[misc]
            async def generate_content_async(self, request: Any, stream: bool = False) -> AsyncIterator[Any]:  # noqa: ARG002, FBT001, FBT002
                prompt, answers = "", list[Any]()
                for part in itertools.chain.from_iterable(each.parts or () for each in request.contents):
                    if part.text and part.text.strip():
                        prompt, answers = part.text, []
                    elif part.function_response:
                        answers.append(part.function_response.response)
                turn = script.ask(prompt, answers)
                if isinstance(turn, str):
                    parts = [types.Part(text=turn)]
                else:
                    calls = [types.FunctionCall(name=name, args=arguments) for name, arguments in turn]
                    parts = [types.Part(function_call=each) for each in calls]
                usage = types.GenerateContentResponseUsageMetadata(
                    prompt_token_count=TOKENS, candidates_token_count=0, total_token_count=TOKENS
                )
                yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)

        return Agent(name="assistant", model=Model(model="scripted"), tools=[*functions, *tools])

    def make_lasting(self, function: Callable[..., Any]) -> Any:
        from google.adk.tools import LongRunningFunctionTool

        return LongRunningFunctionTool(function)

    async def chat(self, agent: Any, person: str, text: str) -> str:
        from google.adk.runners import InMemoryRunner
        from google.genai import types

        runner = InMemoryRunner(agent=agent, app_name="chat")
        await runner.session_service.create_session(app_name="chat", user_id=person, session_id="s")
        message = types.Content(role="user", parts=[types.Part(text=text)])
        said = ""
        async for event in runner.run_async(user_id=person, session_id="s", new_message=message):
            said = "".join(each.text or "" for each in (event.content and event.content.parts) or ()) or said
        return said


class OpenAiAgents(Framework):
    name = "openai_agents"
    title = "OpenAI Agents SDK"

    def make(self, script: Script, functions: Sequence[Callable[..., Any]], tools: Sequence[Any] = ()) -> Any:
        from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

        from agents import Agent, Model, ModelResponse, Usage, function_tool, set_tracing_disabled

        class Scripted(Model):  # type: ignore[misc]
            async def get_response(self, *_: Any, input: Any, **__: Any) -> Any:  # noqa: A002
                prompt, answers = "", list[Any]()
                for item in [{"role": "user", "content": input}] if isinstance(input, str) else input:
                    if item.get("role") == "user":
                        prompt, answers = item["content"], []
                    elif item.get("type") == "function_call_output":
                        answers.append(item["output"])
                turn = script.ask(prompt, answers)
                number = next(NUMBERS)
                output: list[Any]
                if isinstance(turn, str):
                    text = ResponseOutputText(text=turn, type="output_text", annotations=[])
                    output = [
                        ResponseOutputMessage(
                            id=f"m{number}", content=[text], role="assistant", status="completed", type="message"
                        )
                    ]
                else:
                    output = [
                        ResponseFunctionToolCall(
                            call_id=f"c{number}-{each}", name=name, arguments=json.dumps(given), type="function_call"
                        )
                        for each, (name, given) in enumerate(turn)
                    ]
                return ModelResponse(
                    output=output, usage=Usage(requests=1, total_tokens=TOKENS), response_id=f"r{number}"
                )

            def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        set_tracing_disabled(True)  # it would be sent to its maker
        own = [function_tool(each) for each in functions]
        return Agent(name="assistant", model=Scripted(), tools=[*own, *tools])

    async def chat(self, agent: Any, person: str, text: str) -> str:
        from agents import Runner

        return str((await Runner.run(agent, text, context=person)).final_output)


class PydanticAi(Framework):
    name = "pydantic_ai"
    title = "Pydantic AI"

    def make(self, script: Script, functions: Sequence[Callable[..., Any]], tools: Sequence[Any] = ()) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
        from pydantic_ai.models.function import FunctionModel
        from pydantic_ai.usage import RequestUsage

        def answer(messages: list[Any], _: Any) -> Any:
            prompt, answers = "", list[Any]()
            for part in itertools.chain.from_iterable(each.parts for each in messages):
                if isinstance(part, UserPromptPart):
                    prompt, answers = str(part.content), []
                elif isinstance(part, ToolReturnPart):
                    answers.append(part.content)
            turn = script.ask(prompt, answers)
            usage = RequestUsage(input_tokens=TOKENS)
            if isinstance(turn, str):
                return ModelResponse(parts=[TextPart(turn)], usage=usage)
            return ModelResponse(parts=[ToolCallPart(name, given) for name, given in turn], usage=usage)

        return Agent(FunctionModel(answer), name="assistant", deps_type=str, tools=[*functions, *tools])

    def make_lasting(self, function: Callable[..., Any]) -> Any:
        from pydantic_ai import CallDeferred

        def defer(item: str) -> Any:
            """Order something, which takes days."""
            function(item)
            raise CallDeferred

        defer.__name__ = function.__name__
        return defer

    async def chat(self, agent: Any, person: str, text: str) -> str:
        return str((await agent.run(text, deps=person)).output)


class LangGraph(Framework):
    name = "langgraph"
    title = "LangGraph"

    def make(self, script: Script, functions: Sequence[Callable[..., Any]], tools: Sequence[Any] = ()) -> Any:
        from langchain.agents import create_agent
        from langchain_core.language_models import BaseChatModel
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
        from langchain_core.outputs import ChatGeneration, ChatResult

        class Scripted(BaseChatModel):  # type: ignore[misc]
            @property
            def _llm_type(self) -> str:
                return "scripted"

            def bind_tools(self, *_: Any, **__: Any) -> Any:
                return self

            def _generate(self, messages: list[Any], *_: Any, **__: Any) -> Any:
                prompt, answers = "", list[Any]()
                for each in messages:
                    if isinstance(each, HumanMessage):
                        prompt, answers = str(each.content), []
                    elif isinstance(each, ToolMessage):
                        answers.append(each.content)
                turn = script.ask(prompt, answers)
                number = next(NUMBERS)
                calls: list[Any] = []
                if not isinstance(turn, str):
                    calls = [
                        {"name": name, "args": given, "id": f"c{number}-{each}"}
                        for each, (name, given) in enumerate(turn)
                    ]
                usage = {"input_tokens": TOKENS, "output_tokens": 0, "total_tokens": TOKENS}
                message = AIMessage(turn if isinstance(turn, str) else "", tool_calls=calls, usage_metadata=usage)
                return ChatResult(generations=[ChatGeneration(message=message)])

        return create_agent(Scripted(), tools=[*functions, *tools])

    def make_lasting(self, function: Callable[..., Any]) -> Any:
        from langgraph.types import interrupt

        def wait(item: str) -> Any:
            """Order something, which takes days."""
            return interrupt(function(item))

        wait.__name__ = function.__name__
        return wait

    async def chat(self, agent: Any, person: str, text: str) -> str:
        config = {"configurable": {"person": person, "thread_id": "chat"}}
        state = await agent.ainvoke({"messages": [{"role": "user", "content": text}]}, config)
        return str(state["messages"][-1].content)


FRAMEWORKS = [Adk(), OpenAiAgents(), PydanticAi(), LangGraph()]
PROMISES: dict[str, dict[str, str]] = {}
"""What woken agents promise, and why a framework does not keep it. A table in docs/guides/agent-schedules.md."""
FEW_TOOLS = {"openai_agents": "its tools cannot wait"}


def promise(words: str, lacks: dict[str, str] | None = None) -> pytest.MarkDecorator:
    """Run a test over each framework. It has to fail where the promise is not kept."""
    PROMISES[words] = lacks = lacks or {}
    marks = {name: [pytest.mark.xfail(strict=True, reason=why)] for name, why in lacks.items()}
    cells = [pytest.param(each, id=each.name, marks=marks.get(each.name, ())) for each in FRAMEWORKS]
    return pytest.mark.parametrize("framework", cells)


def find_person(context: Any) -> str:
    """Return whom a call is for."""
    if isinstance(context, dict):
        return str(context["configurable"]["person"])
    found = getattr(context, "user_id", None) or getattr(context, "deps", None) or getattr(context, "context", None)
    return str(found)


class World:
    """An app whose agent looks at the weather."""

    def __init__(
        self,
        framework: Framework,
        decide: Callable[[str, list[Any]], Turn],
        *functions: Callable[..., Any],
        confirm: Collection[str] = (),
        tools: Collection[Any] = (),
        checkpointer: Any = None,
        **options: Any,
    ) -> None:
        self.app = App()
        self.looked = list[str]()
        self.script = Script(decide)
        scheduling = SchedulingTools(self.app, find_person, zone="Europe/Paris", confirm=confirm)
        own = framework.module.tools(scheduling)

        def weather(city: str) -> dict[str, str]:
            """Return the weather of a city."""
            self.looked.append(city)
            return {"weather": f"sun in {city}"}

        self.agent = framework.make(self.script, [weather, *functions], [*own, *tools])
        if checkpointer is not None:
            self.agent.checkpointer = checkpointer
        framework.module.wake(self.app, self.agent, **options)

    def create(self, prompt: str = "How is the weather?", schedule: str = "every day at 9:00", **fields: Any) -> str:
        """Create a task of Ada that wakes the agent."""
        defaults: dict[str, Any] = {"owner": "ada", "timezone": "Europe/Paris", "delivery_channels": ["WEB"]}
        given = {**defaults, **fields}
        return self.app.create(handler="wake", payload={"prompt": prompt}, schedule=schedule, **given).id
