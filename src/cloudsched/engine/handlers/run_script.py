"""The built-in handler of tasks that bring a script: a durable one, whose steps are what the script asks for.

The script is run anew from its beginning each time that the handler goes on, in a fresh interpreter, and what it asked
for is answered from the journal. It goes in rounds: it runs until it waits for all that is left of what it asked for;
the calls of a round are begun in its order, then the round waits for the longest of its sleeps and for all its calls.
So the order is the same in every replay. What the script says is checked here, as nobody else's word.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from cloudsched.domain.documents.execution import ProgressStep
from cloudsched.domain.documents.json_limits import MAX_PAYLOAD, require_storable, storable_text
from cloudsched.domain.documents.script import HANDLER, require_exact
from cloudsched.domain.documents.task import MAX_NAME
from cloudsched.engine.handlers.context import MAX_STEPS, MAX_TEXT, Context
from cloudsched.engine.handlers.registry import Handler, Registry
from cloudsched.engine.ports.interpreter import Answer, Brief
from cloudsched.errors import CallFailed, InvalidInput, LimitExceeded, Misconfigured, ScriptFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.script import Script
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.engine.ports.interpreter import Ask, Interpreter, Round

_KNOWN = 1024
"""How many scripts are remembered to have compiled."""
_TEXT = 1000
"""How many characters a script is told of why a call is refused: as many as are recorded at least."""


def with_scripts(registry: Registry, interpreter: Callable[[], Interpreter], most: int) -> Registry:
    """Return a registry whose tasks may bring scripts.

    Args:
        registry: The handlers.
        interpreter: What runs scripts, made when the first one comes.
        most: How many calls and sleeps one execution may ask for.
    """
    scripts = _Scripts(registry, interpreter, most)
    handler = Handler(
        name=HANDLER,
        function=scripts.run,
        takes_context=True,
        payload=TypeAdapter(dict[str, Any]),
        retry=None,
        retry_on=(Exception,),
        expected_duration=None,
        pull=None,
        on_failure=None,
        check=scripts.check,
    )
    return registry.also(handler)


class _Scripts:
    """Checks and runs scripts."""

    def __init__(self, registry: Registry, interpreter: Callable[[], Interpreter], most: int) -> None:
        self._registry = registry
        self._interpreter = interpreter
        self._most = most
        self._compiled: set[bytes] = set()

    def check(self, draft: TaskDraft) -> None:
        """Check a script that is to be stored: its tools are there, it can be told its payload, and it compiles.

        Raises:
            InvalidInput: They are not, or it does not, or nothing here runs scripts.
        """
        if draft.script is None:
            raise InvalidInput("script", "is missing", f"It is what {HANDLER!r} runs.")
        for number, name in enumerate(draft.script.tools or ()):
            if name not in self._tools(None):
                known = ", ".join(self._tools(None)) or "none"
                raise InvalidInput(f"script.tools.{number}", f"no tool is named {name!r}", f"Tools: {known}.")
        require_exact("payload", draft.payload)
        digest = hashlib.sha256(draft.script.source.encode()).digest()
        if digest in self._compiled:
            return
        try:
            self._interpreter().check(draft.script.source)
        except Misconfigured as error:
            raise InvalidInput("script", "cannot be run by this service", str(error)) from error
        except InvalidInput as error:
            raise InvalidInput(f"script.{error.field}", error.problem, error.hint) from error
        if len(self._compiled) >= _KNOWN:
            self._compiled.clear()
        self._compiled.add(digest)

    def run(self, context: Context, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the script returns
        """Run the task's script; return what it returns.

        Raises:
            ScriptFailed: It threw something that it did not catch.
            LimitExceeded: It asks for more than it may have.
        """
        task, script = context.task, context.task.script
        if script is None:
            raise ScriptFailed("There is no script.")
        tools = self._tools(script)
        now = context.now()
        brief = Brief(
            source=script.source,
            input=payload,
            task={"id": task.id, "owner": task.owner, "title": task.title},
            tools=sorted({*tools, *context.journal.called}),  # one that is none any more has answers to be replayed
            seed=context.random.getrandbits(32),
            now=now,
        )
        told: list[ProgressStep] = []
        answers: Sequence[Answer] = ()
        refusals: list[InvalidInput] = []
        left = self._most
        with self._interpreter().run(brief) as running:
            while True:
                reached = running.go_on(answers, now)
                lines = [storable_text(line[:MAX_TEXT]) for line in reached.log[-MAX_STEPS:]]
                told = [*told, *(ProgressStep(at=now, text=line) for line in lines)][-MAX_STEPS:]
                context.retell(told)
                left -= len(reached.asks)
                if left < 0:
                    raise LimitExceeded(f"The script asks for more than {self._most} calls and sleeps, the most here.")
                since = context.journal.position + 1
                begun = {ask.number: self._begun(context, ask, tools) for ask in reached.asks if ask.tool is not None}
                refusals += [each for each in begun.values() if isinstance(each, InvalidInput)]
                if reached.failure is not None:
                    thrown = (each for each in reversed(refusals) if _text_of(each) == reached.failure.problem)
                    raise reached.failure from next(thrown, None)
                if reached.has_ended:
                    return reached.result  # calls that it did not wait for are made, as those of any handler
                answers = _waited(context, reached, begun, now)
                context.journal.told_together(since)
                if context.journal.position >= since:
                    now = max(now, context.journal.reached(since))

    def _tools(self, script: Script | None) -> tuple[str, ...]:
        """Return what a script may call: what is marked as a tool, and in its own list if it has one."""
        tools = sorted(handler.name for handler in self._registry if handler.is_tool)
        narrowed = None if script is None else script.tools
        return tuple(name for name in tools if narrowed is None or name in narrowed)

    def _begun(self, context: Context, ask: Ask, tools: Sequence[str]) -> int | InvalidInput:
        """Begin a call and return its number in the journal, or why it is refused.

        Both are recorded: what was begun when the tool was there, and took what it was given, is replayed for ever.
        """
        tool = storable_text((ask.tool or "")[:MAX_NAME])

        def check() -> None:
            if ask.tool not in tools:
                raise InvalidInput("tool", f"there is no tool {tool!r} for this script", "It was one, or never was.")
            if not isinstance(ask.payload, dict):
                raise InvalidInput("payload", f"what {tool!r} is given has to be an object with its fields")
            require_storable("payload", ask.payload, MAX_PAYLOAD)

        try:
            return context.journal.call(tool, ask.payload, {}, check)
        except InvalidInput as error:
            return error


def _waited(context: Context, reached: Round, begun: Mapping[int, int | InvalidInput], now: datetime) -> list[Answer]:
    """Wait for all that a round asked for; return what came of it, in the order of the asks."""
    sleeps = [ask.seconds for ask in reached.asks if ask.tool is None]
    if sleeps:
        until = now + timedelta(seconds=max(sleeps))
        context.journal.sleep_until(lambda _: until)
    calls = {number: call for number, call in begun.items() if isinstance(call, int)}
    results = context.journal.results([*calls.values()], as_recorded=True) if calls else []
    outcomes = dict(zip(calls, results, strict=True))
    return [_answer(ask, begun.get(ask.number), outcomes.get(ask.number)) for ask in reached.asks]


def _answer(ask: Ask, begun: int | InvalidInput | None, outcome: Any) -> Answer:  # noqa: ANN401 - any result
    if isinstance(begun, InvalidInput):
        return Answer(ask.number, failure=_failure("InvalidInput", _text_of(begun), "REFUSED"))
    if isinstance(outcome, CallFailed):
        return Answer(ask.number, failure=_failure("CallFailed", str(outcome), outcome.status))
    try:
        require_exact("result", outcome)
    except InvalidInput as error:
        return Answer(ask.number, failure=_failure("InvalidInput", str(error), "SUCCEEDED"))
    return Answer(ask.number, outcome)


def _text_of(refusal: InvalidInput) -> str:
    return storable_text(str(refusal))[:_TEXT]


def _failure(name: str, message: str, status: str) -> dict[str, str]:
    return {"name": name, "message": message, "status": status}
