"""The tools by which an agent keeps a person's schedules, as functions for any framework of agents.

::

    tools = SchedulingTools(app, "ada", zone="Europe/Paris", confirm={"cancel_task"})
    for tool in tools.functions:
        framework.add(tool, name=tool.__name__, description=tool.__doc__, schema=tool.schema)
"""

from __future__ import annotations

import inspect
import json
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cloudsched.agents.advice import advise
from cloudsched.agents.arguments import AgentTool, ToolRefused
from cloudsched.agents.tools import TOOLS, AgentTools
from cloudsched.client.local_client import AsyncLocalClient
from cloudsched.domain.call_arguments import check_arguments
from cloudsched.domain.recurrence.time_zones import require_zone
from cloudsched.errors import CloudschedError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from cloudsched.app import AppLike, AsyncAppLike

    OfContext: TypeAlias = str | Callable[[Any], str]
    """A text, or a function that takes it from the context that the framework hands to tools."""


@dataclass(frozen=True)
class AgentCall:
    """A call of a tool by an agent that a task has woken. Whoever answers a long-running tool needs to know it.

    ::

        call = current_call()
        app.send_event(call.task_id, call.event, {"status": "done"}, execution_id=call.execution_id)
    """

    task_id: str
    execution_id: str
    event: str
    """The event that the run waits for if the tool is a long-running one."""
    key: str
    """The same if the call is repeated after a crash, and no other call's. Use it as an idempotency key."""


_CALL: ContextVar[AgentCall | None] = ContextVar("cloudsched_agent_call", default=None)


def current_call() -> AgentCall | None:
    """Return the call that the code of a tool belongs to. None outside of an agent that a task has woken."""
    return _CALL.get()


@contextmanager
def serving(call: AgentCall) -> Iterator[None]:
    """Run the code of a tool in the block."""
    before = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(before)


ANSWER: Final = "answer"
"""The tool that answers questions in the person's name."""


class SchedulingTools:
    """The tools by which an agent keeps a person's schedules, with exactly the person's rights.

    They are those of ``cloudsched mcp``.

    Args:
        app_or_client: The app in this process, or a client of its API. The key of a client is an admin's, a
            delegate's, or the person's own.
        person: The owner of the tasks. Or a function of the context of a call, where one agent serves many people. Take
            it from what your app knows, never from what a model says.
        zone: The person's IANA time zone, or such a function, if your app knows it: it is stored of the person. Without
            it, the agent asks.
        confirm: The names of tools that run only once the person has agreed to the call, in your framework's own way.
            If there is one, `answer` is another: else an agent could agree to its own calls.

    Raises:
        InvalidInput: There is no tool, or no zone, of that name.
    """

    @check_arguments
    def __init__(
        self,
        app_or_client: AppLike | AsyncAppLike,
        person: OfContext,
        *,
        zone: OfContext | None = None,
        confirm: Collection[str] = (),
    ) -> None:
        unknown = sorted({*confirm}.difference(TOOLS))
        if unknown:
            raise InvalidInput("confirm", f"names no tool: {', '.join(unknown)}", f"There are: {', '.join(TOOLS)}.")
        if isinstance(zone, str):
            require_zone(zone)
        self._app_or_client = app_or_client
        self._person = person
        self._zone = zone
        self._confirm = frozenset(confirm) | ({ANSWER} if confirm else set())

    @cached_property
    def functions(self) -> tuple[ToolFunction, ...]:
        """The tools as functions, to be awaited."""
        offered = [each for name, each in TOOLS.items() if self._zone is None or name != "i_am_in"]
        return tuple(ToolFunction(self, each, needs_consent=each.name in self._confirm) for each in offered)

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, context: object = None, is_confirmed: bool = False
    ) -> dict[str, Any]:
        """Call a tool by its name, and return its answer, as JSON.

        Args:
            name: The tool.
            arguments: Its arguments, as a model has given them.
            context: What `person` and `zone` take the person and the zone from, if they are functions.
            is_confirmed: True if the person has agreed to this call.

        Raises:
            ToolRefused: It did nothing. The message says why, for the agent.
        """
        if name in self._confirm and not is_confirmed:
            raise ToolRefused(f"Nothing was done: the person has to agree to {name} first.")
        try:
            call = current_call()
            client = self._act_for(_read(self._person, context))
            tools = await AgentTools.of(client, call.key if call else None)
            if self._zone is not None:
                await tools.be_in(_read(self._zone, context))
            answer: dict[str, Any] = json.loads(json.dumps(await tools.call(name, arguments)))
        except CloudschedError as error:
            raise ToolRefused(advise(error, ())) from error
        return answer

    def _act_for(self, person: str) -> Any:  # noqa: ANN401 - a client whose methods are awaited, of either kind
        acting: Any = self._app_or_client.acting_for(person)
        return acting if hasattr(acting, "run_flow_async") else AsyncLocalClient(acting)


def _read(value: OfContext, context: object) -> str:
    return value if isinstance(value, str) else value(context)


class ToolFunction:
    """A tool as a function to be awaited: it takes its arguments by name, and returns JSON.

    Its name, docstring and signature are the tool's. It raises `ToolRefused` if it did nothing.

    Attributes:
        schema: The JSON schema of its arguments. It takes no others.
        reads: True if it changes nothing.
        needs_consent: True if the person has to agree to each call first.
    """

    def __init__(self, tools: SchedulingTools, tool: AgentTool, *, needs_consent: bool) -> None:
        self._tools = tools
        self.schema: Final = tool.schema
        self.reads: Final = tool.effects.reads
        self.needs_consent: Final = needs_consent
        self.__name__ = self.__qualname__ = tool.name
        self.__doc__ = tool.description
        of_method = inspect.signature(tool.method, eval_str=True)
        self.__signature__ = of_method.replace(parameters=[*of_method.parameters.values()][1:])
        self.__annotations__ = {name: each.annotation for name, each in self.__signature__.parameters.items()}

    async def __call__(self, **arguments: Any) -> dict[str, Any]:
        """Call the tool."""
        return await self._tools.call(self.__name__, arguments)

    async def answer(
        self, arguments: Mapping[str, Any], *, context: object = None, is_confirmed: bool = False
    ) -> dict[str, Any]:
        """Return what the tool answers, or ``{"refused": …}`` if it did nothing. See `SchedulingTools.call`."""
        try:
            return await self._tools.call(self.__name__, arguments, context=context, is_confirmed=is_confirmed)
        except ToolRefused as refusal:
            return {"refused": str(refusal)}
