"""The built-in durable handler of tasks with a script. Its journal entries are the script's calls and sleeps.

Each time the handler resumes, a fresh interpreter runs the script from the beginning, and its earlier
requests are answered from the journal. It runs in rounds: a round ends when the script waits for all its
open requests. The calls of a round are started in the order of the requests, then the round waits for its
longest sleep and for all its calls, so the order is the same in every replay. Scripts are untrusted:
whatever the interpreter returns is validated here.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.domain.documents.json_limits import MAX_PAYLOAD, escape_surrogates, require_storable, truncate
from cloudsched.domain.documents.script import CALL_PREFIX, SCRIPT_CALL, SCRIPT_HANDLER, require_exact
from cloudsched.domain.documents.task import MAX_NAME, Task
from cloudsched.engine.durable.calls import (
    end_round,
    list_called_handlers,
    start_call,
    start_round,
    wait_for_results,
)
from cloudsched.engine.durable.steps import pin_value
from cloudsched.engine.durable.waits import sleep_until
from cloudsched.engine.handlers.context import MAX_PROGRESS_NOTES, MAX_TEXT, Context
from cloudsched.engine.handlers.user_access import limit_priority
from cloudsched.engine.ports.interpreter import Interpreter, Round, ScriptInput, ScriptRequest, ScriptResponse
from cloudsched.errors import CallFailed, InvalidInput, LimitExceeded, Misconfigured, ScriptFailed
from cloudsched.scripts.called_scripts import CalledScripts, find_tree
from cloudsched.scripts.documents import (
    is_script_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.registry import Registry

_MAX_COMPILED = 1024
"""The number of compiled scripts that are remembered."""
_MAX_REFUSAL_CHARS = 1000
"""The characters of a refused call's reason that a script gets: no fewer than are recorded."""
_WHAT = "a task with a script"


class _PinnedScript(NamedTuple):
    """A script as an execution runs it to its end."""

    source: str
    author: Requesters | None
    tools: tuple[str, ...]


class ScriptHandler:
    """Checks and runs scripts."""

    def __init__(
        self,
        registry: Registry,
        interpreter: Callable[[], Interpreter],
        max_requests: int,
        stored: CalledScripts,
    ) -> None:
        self._registry = registry
        self._interpreter = interpreter
        self._max_requests = max_requests
        self._stored = stored
        self._compiled: set[bytes] = set()

    def check(self, draft: TaskDraft, requesters: Requesters) -> None:
        """Check that a script's tools exist, that it compiles, and that JavaScript can represent its payload.

        A stored script has been compiled already, and has to be the owner's. Raises InvalidInput.
        """
        if draft.script is None:
            raise InvalidInput("script", "is missing", f"It is what {SCRIPT_HANDLER!r} runs.")
        require_exact("payload", draft.payload)
        if draft.script.name is not None and self._stored.find(draft.owner, draft.script.name) is None:
            problem = f"is {draft.script.name!r}, and {draft.owner!r} has stored no such script"
            raise InvalidInput("script.name", problem, "PUT /v1/scripts/{name} stores one.")
        try:
            self.check_source(draft.script.source, draft.script.tools, requesters)
        except InvalidInput as error:
            field = f"script.{error.field}".removesuffix(".script")
            raise InvalidInput(field, error.problem, error.hint) from error

    def check_source(self, source: str | None, tools: Sequence[str] | None, requesters: Requesters) -> None:
        """Check that the tools of a script exist for its author, and that its source compiles."""
        allowed = self._list_allowed_tools(requesters)
        for number, name in enumerate(tools or ()):
            if name not in allowed:
                known = ", ".join(allowed) or "none"
                raise InvalidInput(f"tools.{number}", f"no tool is named {name!r}", f"Tools: {known}.")
        digest = hashlib.sha256((source or "").encode()).digest()
        if source is None or digest in self._compiled:
            return
        try:
            self._interpreter().check(source)
        except Misconfigured as error:
            raise InvalidInput("script", "cannot be run by this service", str(error)) from error
        if len(self._compiled) >= _MAX_COMPILED:
            self._compiled.clear()
        self._compiled.add(digest)

    def run(self, context: Context, payload: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the script returns
        """Run the task's script, and return its result. Raises ScriptFailed or LimitExceeded."""
        task = context.task
        script = self._pin_script(context)
        now = context.now()
        called = context.durable_run.perform(_WHAT, list_called_handlers)
        script_input = ScriptInput(
            source=script.source,
            input=payload,
            task={"id": task.id, "owner": task.owner, "title": task.title},
            tools=sorted({*script.tools, *called}),  # a former tool may have recorded results to replay
            seed=context.random.getrandbits(32),
            now=now,
        )

        notes: list[ProgressNote] = []
        answers: Sequence[ScriptResponse] = ()
        refusals: list[InvalidInput] = []
        left = self._max_requests
        with self._interpreter().run(script_input) as running:
            while True:
                reached = running.resume(answers, now)
                notes = _append_notes(context, notes, reached.log, now)

                left -= len(reached.asks)
                if left < 0:
                    most = f"{self._max_requests} calls and sleeps, the most here"
                    raise LimitExceeded(f"The script asks for more than {most}.")
                since = context.durable_run.perform(_WHAT, start_round)
                calls = {ask.number: self._start_call(context, ask, script) for ask in reached.asks if ask.is_call}
                refusals += [each for each in calls.values() if isinstance(each, InvalidInput)]

                if reached.failure is not None:
                    thrown = (each for each in reversed(refusals) if _refusal_text(each) == reached.failure.problem)
                    raise reached.failure from next(thrown, None)
                if reached.has_ended:
                    return reached.result  # calls that it did not await are made, like those of any handler

                answers = _await_round(context, reached, calls, now)
                last_end = context.durable_run.perform(_WHAT, end_round, since)
                if last_end is not None:
                    now = max(now, last_end)

    def _pin_script(self, context: Context) -> _PinnedScript:
        """Return the script of an execution. A stored one is recorded, so that a later change does not reach it."""
        script = context.task.script
        if script is None:
            raise ScriptFailed("There is no script.")
        author = context.task.defined_by
        if script.name is None:
            return _PinnedScript(script.source or "", author, self._list_allowed_tools(author, script.tools))

        load = partial(self._stored.load, context.task.owner, script.name)
        pinned = context.durable_run.perform(_WHAT, pin_value, f"{CALL_PREFIX}{script.name}", load)
        pinned_by = pinned["definedBy"] and Requesters(pinned["definedBy"])
        context.note_author(pinned_by)
        author = author or pinned_by
        tools = self._list_allowed_tools(author, script.tools, pinned["tools"])
        return _PinnedScript(pinned["source"], author, tools)

    def _list_allowed_tools(
        self,
        author: Requesters | None,
        *narrowed: Sequence[str] | None,
    ) -> tuple[str, ...]:
        """Return the tools that are in all of a script's lists. A user's script has no tools for servers."""
        registry = self._registry
        if author is Requesters.USERS:
            registry = registry.for_users()
        tools = sorted(handler.name for handler in registry if handler.is_tool)
        return tuple(name for name in tools if all(names is None or name in names for names in narrowed))

    def _start_call(
        self,
        context: Context,
        request: ScriptRequest,
        script: _PinnedScript,
    ) -> int | InvalidInput:
        """Start a call and return its number in the journal, or the reason why it is refused.

        Both are recorded: a replay gets the same answer even if the tool has changed or gone since.
        """
        if request.script is not None:
            return self._start_script(context, request.script, request.payload, script.author)
        tool = escape_surrogates((request.tool or "")[:MAX_NAME])

        def check() -> None:
            if request.tool not in script.tools:
                problem = f"there is no tool {tool!r} for this script"
                raise InvalidInput("tool", problem, "It is no longer a tool, or never was one.")
            _require_object(tool, request.payload)

        try:
            fields = self._call_fields(context.task, tool, script.author)
            return context.durable_run.perform(_WHAT, start_call, tool, request.payload, fields, check).number
        except InvalidInput as error:
            return error

    def _start_script(
        self,
        context: Context,
        requested: str,
        payload: Any,  # noqa: ANN401 - any JSON
        author: Requesters | None,
    ) -> int | InvalidInput:
        """Start a stored script of the same owner, with no more rights than the caller's. See `_start_call`."""
        name = escape_surrogates(requested[:MAX_NAME])
        tree = find_tree(context.task, context.execution_id)

        def check() -> None:
            if not is_script_name(name):
                problem = f"there is no stored script {name!r}"
                raise InvalidInput("script", problem, "No script can have this name.")
            _require_object(name, payload)
            self._stored.count_call(tree, context.task.owner)

        handler = f"{CALL_PREFIX}{name}"
        fields = {SCRIPT_CALL: {"name": name, "tree": tree, "definedBy": author}}
        try:
            return context.durable_run.perform(_WHAT, start_call, handler, payload, fields, check).number
        except InvalidInput as error:
            return error

    def _call_fields(self, task: Task, tool: str, author: Requesters | None) -> dict[str, Any]:
        """Return the fields of a call. A user's script may call no more urgently than users may."""
        if author is not Requesters.USERS or tool not in self._registry:
            return {}
        return {"priority": limit_priority(self._registry.get(tool), task.priority)}


def _append_notes(
    context: Context,
    notes: Sequence[ProgressNote],
    log: Sequence[str],
    now: datetime,
) -> list[ProgressNote]:
    """Show a script's log as progress, the last notes of it. Return these."""
    added = [ProgressNote(at=now, text=truncate(line, MAX_TEXT)) for line in log[-MAX_PROGRESS_NOTES:]]
    shown = [*notes, *added][-MAX_PROGRESS_NOTES:]
    context.replace_progress(shown)
    return shown


def _require_object(name: str, payload: object) -> None:
    if not isinstance(payload, dict):
        raise InvalidInput("payload", f"what {name!r} is given has to be an object with its fields")
    require_storable("payload", payload, MAX_PAYLOAD)


def _await_round(
    context: Context,
    script_round: Round,
    started_calls: Mapping[int, int | InvalidInput],
    now: datetime,
) -> list[ScriptResponse]:
    """Wait for all requests of a round. Return their responses in the order of the requests."""
    sleeps = [ask.seconds for ask in script_round.asks if not ask.is_call]
    if sleeps:
        until = now + timedelta(seconds=max(sleeps))
        context.durable_run.perform(_WHAT, sleep_until, lambda _: until)

    calls = {number: call for number, call in started_calls.items() if isinstance(call, int)}
    outcomes: dict[int, Any] = {}
    if calls:
        results = context.durable_run.perform(_WHAT, wait_for_results, [*calls.values()], as_recorded=True)
        outcomes = dict(zip(calls, results, strict=True))
    return [_to_response(ask, started_calls.get(ask.number), outcomes.get(ask.number)) for ask in script_round.asks]


def _to_response(
    request: ScriptRequest,
    started_call: int | InvalidInput | None,
    outcome: Any,  # noqa: ANN401 - any result
) -> ScriptResponse:
    if isinstance(started_call, InvalidInput):
        failure = _failure("InvalidInput", _refusal_text(started_call), "REFUSED")
        return ScriptResponse(request.number, failure=failure)
    if isinstance(outcome, CallFailed):
        return ScriptResponse(request.number, failure=_failure("CallFailed", outcome.for_owners, outcome.status))
    try:
        require_exact("result", outcome)
    except InvalidInput as error:
        return ScriptResponse(request.number, failure=_failure("InvalidInput", str(error), "SUCCEEDED"))
    return ScriptResponse(request.number, outcome)


def _refusal_text(refusal: InvalidInput) -> str:
    return escape_surrogates(str(refusal))[:_MAX_REFUSAL_CHARS]


def _failure(name: str, message: str, status: str) -> dict[str, str]:
    return {"name": name, "message": message, "status": status}
