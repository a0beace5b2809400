"""Wakes an agent for a due task: what the modules of the frameworks have in common.

The handler is durable. Each turn of the model and each call of a tool is a step, so that nothing is paid for twice
after a crash. A call that the person has to agree to waits for an event, for days if need be.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, Field

from cloudsched.agents.scheduling_tools import AgentCall, serving
from cloudsched.domain.documents.delivery_channels import USERS_CHANNELS
from cloudsched.domain.documents.task import MAX_NAME
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.engine.handlers.async_context import AsyncContext  # noqa: TC001 - handlers are read by their types
from cloudsched.errors import EventTimedOut, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
"""The number of characters of a call that a question shows."""
LATE_AFTER: Final = timedelta(minutes=5)
"""The delay that the agent is told of."""
_INSTRUCTIONS: Final = """It is {now} ({zone}). The scheduled task "{title}" ({id}) has woken you.
It was due at {due}{late}.
The person is not here: your answer is delivered to them later. Do now what the task asks for:

{prompt}

If the person needs to know nothing of it, answer exactly {silence}, and nobody is told anything."""


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

    def __init__(self, ctx: AsyncContext, wake: Wake, max_turns: int) -> None:
        self.ctx = ctx
        self.person = ctx.task.owner
        self.key = f"{ctx.task.id}-{ctx.execution_id}"
        self._wake = wake
        self._max_turns = max_turns
        self._turns = 0
        self._calls = Counter[str]()

    @property
    def _channels(self) -> list[str]:
        """The channels of the task by which the person can be asked, beside the inbox."""
        return [each for each in self.ctx.task.delivery_channels if each in USERS_CHANNELS]

    def write_prompt(self) -> str:
        """Return what the agent is told: the time, the task, what to do, and how to say nothing."""
        task = self.ctx.task
        now = self.ctx.now()
        due = self.ctx.scheduled_for
        zone = load_tzinfo(task.timezone)
        return _INSTRUCTIONS.format(
            now=f"{now.astimezone(zone):%A %d %B %Y, %H:%M}",
            zone=task.timezone,
            title=task.title,
            id=task.id,
            due=f"{due.astimezone(zone):%A %d %B %Y, %H:%M}",
            late=", so you are late" if now - due > LATE_AFTER else "",
            prompt=self._wake.prompt,
            silence=SILENCE,
        )

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
        self, tool: str, arguments: object, answer: type[T] | None, call: Callable[[], Awaitable[T]]
    ) -> T:
        """Return the answer of a tool, which is called once. If that is interrupted, it is repeated with its key.

        `answer` is its type, None for any JSON.
        """
        name = f"{tool}-{_digest(arguments)}"
        self._calls[name] += 1
        key = f"{self.key} {name} {self._calls[name]}"
        present = AgentCall(self.ctx.task.id, self.ctx.execution_id, _name_event(tool, arguments), key)

        async def use() -> T:
            with serving(present):
                return await call()

        use.__annotations__["return"] = Any if answer is None else answer
        return await self.ctx.step(name[-MAX_NAME:], use, retry=False)

    async def ask_person(self, tool: str, arguments: object) -> bool:
        """Return whether the person agrees to a call. A question that is not answered in time is a no."""
        shown = json.dumps(arguments, ensure_ascii=False, default=str)[:MAX_SHOWN]
        question = f"{self.ctx.task.title}: may {tool} be called with {shown}?"
        event = _name_event("approval", [tool, arguments])
        try:
            answer = await self.ctx.wait_for(
                event, timeout=PATIENCE, by=[f"user:{self.person}"], question=question, channels=self._channels
            )
        except EventTimedOut:
            return False
        return isinstance(answer, dict) and answer.get("approved") is True

    async def wait_for_tool(self, tool: str, arguments: object) -> Any:  # noqa: ANN401 - JSON
        """Return what a long-running tool has been answered, or that it was not."""
        try:
            return await self.ctx.wait_for(_name_event(tool, arguments), timeout=PATIENCE)
        except EventTimedOut:
            return {"error": f"Nobody has answered within {PATIENCE.days} days."}


def _name_event(subject: str, details: object) -> str:
    plain = re.sub(r"[^\w.-]", "_", subject, flags=re.ASCII)[:MAX_SUBJECT]
    return f"{plain}-{_digest(details)}"


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def register(app: App, name: str, max_turns: int, run: Callable[[Waking], Awaitable[str | None]]) -> None:
    """Register the handler that wakes an agent. `run` runs it, and returns what the person is told."""

    @app.handler(name, access="users", draft="Wakes the assistant at that time, to do what it is told to")
    async def wake_agent(ctx: AsyncContext, wake: Wake) -> str | None:
        """Wake the agent, and deliver what it answers. None if it has nothing to say, so that nobody is told."""
        answer = (await run(Waking(ctx, wake, max_turns)) or "").strip()
        return None if _IS_SILENT.search(answer) else answer
