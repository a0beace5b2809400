"""The built-in durable handler `assistant`: asks a language model to do its task with the task's tools.

Each turn of the model is a step, and each tool that it asks for is a call: a replay gets both from the
journal, so a crash repeats neither a paid request nor a call. The model's answers are not trusted: it can
end the task with a text, or call a handler that the confirmed task names and the app opens to it, as a
task of the same owner. It can do nothing else.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import (
    BaseModel,
    Field,
    PydanticInvalidForJsonSchema,
    PydanticUserError,
    StringConstraints,
    TypeAdapter,
)

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.json_limits import MAX_PAYLOAD, escape_surrogates, require_storable
from cloudsched.domain.documents.system_tasks import ASSISTANT_HANDLER
from cloudsched.domain.documents.task import MAX_NAME, Source, SourceModel, Task, TaskSpec
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.transitions.outcome import Fail, Outcome
from cloudsched.drafts.assistant.brief import (
    INSTRUCTIONS,
    REPAIR,
    choose_tools,
    describe_tools,
    list_open_tools,
    note_call,
    write_brief,
    write_turn,
)
from cloudsched.engine.durable.calls import start_call, wait_for_results
from cloudsched.engine.durable.steps import pin_value
from cloudsched.engine.handlers.registry import Handler
from cloudsched.engine.handlers.user_access import limit_priority
from cloudsched.engine.ports.model import Model, meter_models
from cloudsched.errors import CallFailed, InvalidInput, Misconfigured, UnusableAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.drafts.open_models import LanguageModels
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.registry import Registry

_BYTES_A_TOKEN: Final = 4
"""Four characters of English are a token, as providers say."""
_TURN_TOKENS: Final = 900
"""The tokens of a tool's answer, and of the call of a tool or a result of some paragraphs."""


class AssistantPayload(WireModel):
    """The tools of the assistant. Its instructions are the task's `purpose`."""

    tools: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...], Field(max_length=20)
    ] = ()
    """The handlers that it may call, of those that the app opens to it."""


@dataclass(frozen=True, slots=True)
class AssistantLimits:
    """The limits of one execution: requests to the model, and tokens after which there is no further one."""

    turns: int = 10
    tokens: int = 100_000

    def narrow(self, source: Source | None) -> AssistantLimits:
        """Return the limits with those that a task sets itself, where they are lower."""
        own = find_wishes(source)
        return AssistantLimits(
            min(self.turns, own.max_turns or self.turns), min(self.tokens, own.max_tokens or self.tokens)
        )


def find_wishes(source: Source | None) -> SourceModel:
    """Return what a task asks of its model. All of it is None if it asks for nothing."""
    asked = None if source is None else source.model
    return asked or SourceModel()


def estimate_cost(spec: TaskSpec, limits: AssistantLimits) -> dict[str, Any]:
    """Return the fields of a task that estimate the cost of one execution.

    It takes one turn for each tool, and one for the result. Each turn reads all that was said before it.
    """
    own = limits.narrow(spec.source)
    turns = min(own.turns, len(spec.payload.get("tools", ())) + 1)
    said = len(json.dumps(write_brief(spec, ""))) + len(INSTRUCTIONS)
    tokens = min(own.tokens, turns * (said // _BYTES_A_TOKEN + _TURN_TOKENS))
    return {"query_per_execution": float(turns), "tokens_per_execution": float(tokens)}


MAX_RESULT: Final = 100_000
"""The longest result, in characters."""


class _NoArguments(BaseModel, extra="forbid"):
    """The arguments of a tool that has none."""


def write_schema(tools: Sequence[Handler]) -> dict[str, Any]:
    """Return the schema of an answer. Without tools, it has to be the result."""
    decisions = ["answer", "nothing"]
    properties: dict[str, Any] = {
        "decision": {"type": "string", "enum": decisions},
        "content": {"type": "string", "description": "The result, for the person. Empty if there is nothing to say."},
    }
    shared: dict[str, Any] = {}
    if tools:
        decisions.append("call")
        properties |= {"tool": {"enum": [each.name for each in tools]}, "arguments": {"type": "object"}}
        with suppress(PydanticInvalidForJsonSchema, PydanticUserError):
            schemas, shared = TypeAdapter.json_schemas(
                (each.name, "validation", each.payload or TypeAdapter(_NoArguments)) for each in tools
            )
            properties["arguments"] = {"anyOf": list(schemas.values())}
    return {"type": "object", "properties": properties, "required": ["decision"], **shared}


def parse_answer(answer: object) -> dict[str, Any]:
    """Return what a step records of an answer: its ``content``, or a ``tool`` with ``arguments`` as a JSON text.

    The content is None if there is nothing to say. The owner, the task and anything else that it may name
    are not looked at.
    """
    match answer:
        case {"decision": "nothing"}:
            return {"content": None}
        case {"decision": "answer", "content": str(content)} if content.strip() and len(content) <= MAX_RESULT:
            return {"content": escape_surrogates(content)}
        case {"decision": "call", "tool": str(tool), **rest} if 0 < len(tool) <= MAX_NAME:
            arguments = rest.get("arguments", {})
            try:
                require_storable("arguments", arguments, MAX_PAYLOAD)
                if isinstance(arguments, dict):
                    return {"tool": escape_surrogates(tool), "arguments": json.dumps(arguments)}
            except (InvalidInput, RecursionError, ValueError) as error:
                raise UnusableAnswer("schema", f"its `arguments` cannot be passed on: {error}"[:500]) from error
    raise UnusableAnswer(
        "schema",
        f'`decision` has to be "answer" with a text of at most {MAX_RESULT} characters as `content`, '
        '"nothing", or "call" with the name of a `tool` and an object as `arguments`',
    )


log: Final = own_logger(__name__)

_WHAT: Final = "the assistant"
_ASK: Final = "ask the model"
_BEGIN: Final = "who asks, and how much it may use"
_MAX_FAILURE: Final = 1_000
"""The number of characters of a tool's failure that the model is told."""


@dataclass(frozen=True, slots=True)
class AssistantRun:
    """Runs the assistant.

    Attributes:
        find_model: Returns the model of a name, or the usual one for None.
        find_name: Returns the name of a person.
    """

    registry: Registry
    find_model: Callable[[str | None], Model]
    find_name: Callable[[str], str]
    limits: AssistantLimits

    def run(self, context: Context, payload: AssistantPayload) -> str | Outcome | None:
        """Return the model's result, None if it has nothing to say, or why there is no result.

        It goes on later if the owner may use no more: each turn of the model is a step, which asks that.
        """
        task = context.task
        begun = context.durable_run.perform(_WHAT, pin_value, _BEGIN, lambda: self._begin(task))
        turns = int(begun["turns"])
        most_tokens = int(begun["tokens"])
        brief = write_brief(task, begun["person"])
        done: list[dict[str, Any]] = []
        problem: str | None = None
        used = 0

        for turn in range(1, turns + 1):
            if used >= most_tokens:
                return Fail(f"The assistant has used {used} tokens, of at most {most_tokens}, without a result.")
            context.progress(f"Asks the model, {turn} of at most {turns} times")
            data = write_turn(brief, done, turns - turn, problem)
            reply = context.step(_ASK, self._ask, context, payload, begun["model"], data)
            used += int(reply["tokens"])

            if "content" in reply:
                content: str | None = reply["content"]
                return content
            if "tool" in reply:
                problem = None
                done.append(self._call(context, payload, reply["tool"], json.loads(reply["arguments"])))
                continue
            # A useless answer is explained to the model once. A second one ends the execution.
            if problem is not None or reply["isRefused"]:
                return Fail(str(reply["problem"]))
            problem = str(reply["problem"])

        times = f"{turns} times, the most for one execution"
        return Fail(f"The assistant has asked the model {times}, without a result.")

    def _begin(self, task: Task) -> dict[str, Any]:
        """Return what an execution follows to its end, whatever becomes of the settings."""
        limits = self.limits.narrow(task.source)
        return {
            "person": self.find_name(task.owner),
            "turns": limits.turns,
            "tokens": limits.tokens,
            "model": find_wishes(task.source).name,
        }

    def _ask(
        self, context: Context, payload: AssistantPayload, model: str | None, turn: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the model answers, or what is wrong with it, and how many tokens that took.

        After ModelUnavailable, the step is tried again as the task's retry policy says.
        """
        tools = choose_tools(self.registry, payload.tools)
        schema = write_schema(tools if turn["turnsLeft"] > 0 else ())
        now = context.durable_run.clock_now().astimezone(load_tzinfo(context.task.timezone))
        here = {"now": now.isoformat(timespec="minutes"), "weekday": f"{now:%A}", "tools": describe_tools(tools)}
        instructions = INSTRUCTIONS + REPAIR if "problem" in turn else INSTRUCTIONS

        with meter_models() as meter:
            try:
                reply = parse_answer(self.find_model(model).complete(instructions, {**turn, **here}, schema))
            except UnusableAnswer as error:
                log.warning("model of no use: %s", error, extra={"action": "model_failed"})
                reply = {"problem": str(error)[:_MAX_FAILURE], "isRefused": error.kind == "refused"}
            finally:
                used = meter.total
                context.used(queries=1, tokens=used.tokens)

        log.info("asked the model", extra={"action": "model_asked", "tokens": used.tokens, "cost": used.cost})
        return {**reply, "tokens": used.tokens}

    def _call(
        self,
        context: Context,
        payload: AssistantPayload,
        tool: str,
        arguments: dict[str, Any],
    ) -> dict[str, Any]:
        """Call a tool as a task of the owner. Return what the model is told of it."""

        def check() -> None:
            known = [each.name for each in choose_tools(self.registry, payload.tools)]
            if tool not in known:
                hint = f"Tools: {', '.join(known) or 'none'}."
                raise InvalidInput("tool", f"there is no tool {tool!r} here", hint)

        context.progress(f"Calls {tool!r}")
        try:
            fields: dict[str, Any] = {}
            handler = self.registry.find(tool)
            if handler is not None:  # no more urgent than users may ask for
                fields["priority"] = limit_priority(handler, context.task.priority)
            number = context.durable_run.perform(_WHAT, start_call, tool, arguments, fields, check).number
        except InvalidInput as refused:
            context.progress(f"{tool!r} was not called")
            return note_call(tool, arguments, failure=str(refused)[:_MAX_FAILURE])

        [outcome] = context.durable_run.perform(_WHAT, wait_for_results, [number], as_recorded=True)
        if isinstance(outcome, CallFailed):
            context.progress(f"{tool!r} has failed")
            return note_call(tool, arguments, failure=outcome.for_owners[:_MAX_FAILURE])
        context.progress(f"{tool!r} has answered")
        return note_call(tool, arguments, result=outcome)


_DOES = "Does what you say, each time anew, with a language model: looks things up, sums them up, writes a text"


def with_assistant(
    registry: Registry,
    models: LanguageModels,
    find_name: Callable[[str], str],
    limits: AssistantLimits,
) -> Registry:
    """Return a registry that has the assistant. See `AssistantRun` for the other arguments."""
    if ASSISTANT_HANDLER in registry:
        hint = "rename it, or set CLOUDSCHED_ASSISTANT=off"
        raise Misconfigured(f"The app has a handler {ASSISTANT_HANDLER!r} of its own: {hint}.")

    run = AssistantRun(registry, models.find, find_name, limits)
    handler = Handler(
        name=ASSISTANT_HANDLER,
        function=run.run,
        takes_context=True,
        payload=TypeAdapter(AssistantPayload),
        retry=None,
        retry_on=(Exception,),
        expected_duration=None,
        on_failure=None,
        is_built_in=True,
        check=partial(_check, registry, models.names),
        access=Requesters.USERS,
        draft=_DOES,
        estimate=partial(estimate_cost, limits=limits),
    )
    return registry.with_builtin(handler)


def _check(registry: Registry, models: tuple[str, ...], draft: TaskDraft, _: Requesters) -> None:
    """Check a task of the assistant: there is something to do, and its tools and its model are open to it."""
    if draft.workers is not None:
        raise InvalidInput("pull", "is given together with the assistant", "Set it on the tools that workers run.")
    if not draft.purpose.strip() and not draft.description.strip():
        raise InvalidInput("purpose", "is empty", "Say in words what the assistant is to do each time.")

    known = [each.name for each in list_open_tools(registry)]
    for number, name in enumerate(AssistantPayload.model_validate(draft.payload).tools):
        if name not in known:
            hint = f"Open: {', '.join(known)}." if known else "The app opens none; see docs/guides/agents.md."
            problem = f"is {name!r}, which is not open to the assistant"
            raise InvalidInput(f"payload.tools.{number}", problem, hint)

    model = find_wishes(draft.source).name
    if model is not None and model not in models:
        hint = f"Leave it out, or choose one of {', '.join(models)}." if models else "Leave it out."
        raise InvalidInput("source.model.name", f"is {model!r}, which is not open to the assistant", hint)
