"""Wakes an agent for a due task: what the modules of the frameworks have in common.

The handler is durable. Each turn of the model and each call of a tool is a step, so that nothing is paid for twice
after a crash. A call that the person has to agree to waits for an event, for days if need be.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, Field

from cloudsched.agents.scheduling_tools import AgentCall, serving
from cloudsched.agents.tools import TOOLS
from cloudsched.domain.documents.delivery_channels import USERS_CHANNELS
from cloudsched.domain.documents.task import MAX_NAME
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.engine.handlers.async_context import AsyncContext  # noqa: TC001 - handlers are read by their types
from cloudsched.errors import CloudschedError, EventTimedOut, LimitExceeded, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from cloudsched.app import App

T = TypeVar("T")

SILENCE: Final = "[SILENT]"
"""What an agent answers that has nothing to say."""
_IS_SILENT: Final = re.compile(r"(?m)\A\Z|^(?:[^\w\n]|_)*(?:\[[\\ ]*(?i:silent)[\\ ]*\]|SILENT)[\W_]*\Z")
"""Finds an answer that is empty, or whose last line is that, as models spell it: in any case, with marks around it."""
PATIENCE: Final = timedelta(days=3)
"""The time in which a question to the person has to be answered."""
MAX_PROMPT: Final = 10_000
MAX_SUBJECT: Final = 100
MAX_SHOWN: Final = 1_000
"""The number of characters that a question shows of all its calls."""
CALL_EVENT: Final = "call-"
"""What the name of an event begins with that answers a call of a tool. Such an event is kept if it comes early."""
WHEN: Final = "%A %d %B %Y, %H:%M"
LATE_AFTER: Final = timedelta(minutes=5)
"""The delay that the agent is told of."""


class Wake(BaseModel):
    """What an agent is woken for."""

    prompt: str = Field(
        min_length=1, max_length=MAX_PROMPT, description="What the agent is to do at that time, in full sentences."
    )


class Waking:
    """One run of an agent that a task has woken.

    Attributes:
        ctx: The context of the run.
        person: The owner of the task.
        key: The same in each attempt and replay, and no other run's.
    """

    def __init__(self, app: App, ctx: AsyncContext, wake: Wake, max_turns: int) -> None:
        self.ctx = ctx
        self.person = ctx.task.owner
        self.key = f"{ctx.task.id}-{ctx.execution_id}"
        self._app = app
        self._wake = wake
        self._max_turns = max_turns
        self._turns = 0

    def write_prompt(self) -> str:
        """Return what the agent is told: the time, the task, what to do, and how to say nothing."""
        task = self.ctx.task
        zone = load_tzinfo(task.timezone)
        now = self.ctx.now().astimezone(zone)
        due = self.ctx.scheduled_for.astimezone(zone)
        late = ", so you are late" if now - due > LATE_AFTER else ""
        return f"""It is {now:{WHEN}} ({task.timezone}). The scheduled task "{task.title}" ({task.id}) has woken you.
It was due at {due:{WHEN}}{late}.
The person is not here: your answer is delivered to them later. Do now what the task asks for:

{self._wake.prompt}

If the person needs to know nothing of it, answer exactly {SILENCE}, and nobody is told anything."""

    def count_turn(self) -> None:
        """Count a turn of the model, before it is asked. Raises LimitExceeded."""
        self._turns += 1
        if self._turns > self._max_turns:
            raise LimitExceeded(f"The agent has asked its model {self._max_turns} times, the most in one run.")

    async def ask_model(
        self, agent: str, answer: type[T], ask: Callable[[], Awaitable[T]], count: Callable[[T], int | None]
    ) -> T:
        """Return the answer of a model, which is asked once. `count` returns the tokens that it took."""

        async def turn() -> T:
            found = await ask()
            self.ctx.used(queries=1, tokens=count(found) or 0)
            return found

        self.count_turn()
        turn.__annotations__["return"] = answer
        return await self.ctx.step(f"{agent}: model"[:MAX_NAME], turn)

    async def use_tool(
        self,
        tool: str,
        call_id: str | None,
        answer: type[T] | None,
        call: Callable[[], Awaitable[T]],
        *,
        answered: int = 0,
        retry: bool | None = False,
    ) -> T:
        """Return the answer of a tool, which is called once. If that is interrupted, it is repeated with its key.

        Args:
            tool: Its name.
            call_id: The framework's id of the call, the same each time that it is repeated or goes on.
            answer: The type of the answer, None for any JSON.
            call: Calls it.
            answered: The number of answers from outside that the call has had.
            retry: None if it may be repeated as the task's `retry` says.
        """
        if not call_id:
            raise WorkflowError(f"A call of {tool} has no id. Let the model, or what connects it, give it one.")
        name = f"{tool}-{_digest(call_id)}"
        present = AgentCall(
            self.ctx.task.id,
            self.ctx.execution_id,
            self._name_event(tool, call_id, answered),
            f"{self.key} {name}",
        )

        async def use() -> T:
            with serving(present):
                return await call()

        use.__annotations__["return"] = Any if answer is None else answer
        return await self.ctx.step(name[-MAX_NAME:], use, retry=retry)

    async def ask_person(self, calls: Sequence[tuple[str, str, object]]) -> bool:
        """Return whether the person agrees to calls: the id, the tool and the arguments of each.

        They are asked once for all of them. A question that is not answered in time is a no.
        """
        if not calls:
            return False
        question = await self.ctx.step("word the question", self._word_question, calls)
        event = f"approval-{_digest([each[0] for each in calls])}"
        by = [f"user:{self.person}"]
        channels = [each for each in self.ctx.task.delivery_channels if each in USERS_CHANNELS]
        try:
            answer = await self.ctx.wait_for(event, timeout=PATIENCE, by=by, question=question, channels=channels)
        except EventTimedOut:
            return False
        return isinstance(answer, dict) and answer.get("approved") is True

    def _word_question(self, calls: Sequence[tuple[str, str, object]]) -> str:
        task = self.ctx.task
        until = (self.ctx.now() + PATIENCE).astimezone(load_tzinfo(task.timezone))
        asked = "; ".join(self._word_call(*each[1:])[: MAX_SHOWN // len(calls)] for each in calls)
        return f"May “{task.title}” do this: {asked}? Without an answer until {until:{WHEN}}, it does not."

    def _word_call(self, tool: str, arguments: Any) -> str:  # noqa: ANN401 - of any tool
        shown, name = dict(arguments), tool
        with suppress(CloudschedError):  # of which the tool speaks
            if tool in TOOLS and "id" in shown:
                name = f"{tool} “{self._app.acting_for(self.person).get(shown['id']).title}”"
                del shown["id"]
        return " ".join([name, *(f"{key}: {_dump(each)}" for key, each in shown.items())])

    async def wait_for_tool(self, tool: str, call_id: str, answered: int = 0) -> Any:  # noqa: ANN401 - JSON
        """Return what a long-running tool has been answered, or that it was not."""
        try:
            return await self.ctx.wait_for(self._name_event(tool, call_id, answered), timeout=PATIENCE)
        except EventTimedOut:
            return {"error": f"Nobody has answered within {PATIENCE.days} days."}

    def _name_event(self, tool: str, call_id: str, answered: int) -> str:
        plain = re.sub(r"[^\w.-]", "_", tool, flags=re.ASCII)[:MAX_SUBJECT]
        return f"{CALL_EVENT}{plain}-{_digest([self.key, call_id, answered])}"


def _dump(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _digest(value: object) -> str:
    return hashlib.sha256(_dump(value).encode()).hexdigest()[:12]


def register(app: App, name: str, max_turns: int, run: Callable[[Waking], Awaitable[str | None]]) -> None:
    """Register the handler that wakes an agent. `run` runs it, and returns what the person is told."""
    told = "Wakes the assistant at that time, to do what it is told to"

    @app.handler(name, access="users", draft=told, early_events=[f"{CALL_EVENT}*"])
    async def wake_agent(ctx: AsyncContext, wake: Wake) -> str | None:
        """Wake the agent, and deliver what it answers. None if it has nothing to say, so that nobody is told."""
        answer = (await run(Waking(app, ctx, wake, max_turns)) or "").strip()
        return None if _IS_SILENT.search(answer) else answer
