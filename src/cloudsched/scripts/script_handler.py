"""The built-in durable handler of tasks with a script. Its journal entries are the script's calls and sleeps.

Each time the handler resumes, a fresh interpreter runs the script from the beginning, and its earlier requests are
answered from the journal. It runs in rounds: a round ends when the script waits for all its open requests. The calls of
a round are started in the order of the requests, then the round waits for its longest sleep and for all its calls, so
the order is the same in every replay. Scripts are untrusted: whatever the interpreter returns is validated here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.domain.documents.json_limits import MAX_PAYLOAD, escape_surrogates, require_storable, truncate
from cloudsched.domain.documents.script import SCRIPT_CALL, SCRIPT_HANDLER, require_exact
from cloudsched.domain.documents.task import MAX_NAME, Task
from cloudsched.engine.durable.calls import end_round, list_called_handlers, start_call, start_round, wait_for_results
from cloudsched.engine.durable.steps import pin_value
from cloudsched.engine.durable.waits import sleep_until
from cloudsched.engine.handlers.context import MAX_PROGRESS_NOTES, MAX_TEXT, Context
from cloudsched.engine.handlers.user_access import limit_priority
from cloudsched.engine.ports.interpreter import Interpreter, Round, ScriptInput, ScriptRequest, ScriptResponse
from cloudsched.engine.state.record_changes import change_record
from cloudsched.errors import CallFailed, InvalidInput, LimitExceeded, Misconfigured, ScriptFailed
from cloudsched.scripts.documents import (
    MAX_TREE_CALLS,
    ScriptTree,
    StoredScript,
    is_script_name,
    script_key,
)

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore

_MAX_COMPILED = 1024
"""The number of compiled scripts that are remembered."""
_MAX_REFUSAL_CHARS = 1000
"""The characters of a refused call's reason that a script gets: no fewer than are recorded."""

_WHAT = "a task with a script"


class ScriptHandler:
    """Checks and runs scripts."""

    def __init__(
        self, registry: Registry, interpreter: Callable[[], Interpreter], max_requests: int, stored: CalledScripts
    ) -> None:
        self._registry = registry
        self._interpreter = interpreter
        self._max_requests = max_requests
        self._stored = stored
        self._compiled: set[bytes] = set()

    def check(self, draft: TaskDraft, requesters: Requesters) -> None:
        """Check a script before it is stored: its tools exist, JavaScript can represent its payload, and it compiles.

        A stored script has been compiled. It has to be the owner's. Raises InvalidInput.
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
            raise InvalidInput(f"script.{error.field}".removesuffix(".script"), error.problem, error.hint) from error

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
        task, script = context.task, context.task.script
        if script is None:
            raise ScriptFailed("There is no script.")
        source, author, narrowed = script.source or "", task.defined_by, [script.tools]
        if script.name is not None:
            load = partial(self._stored.load, task.owner, script.name)
            pinned = context.durable_run.perform(_WHAT, pin_value, f"{CALL_PREFIX}{script.name}", load)
            pinned_by = None if pinned["definedBy"] is None else Requesters(pinned["definedBy"])
            source, author = pinned["source"], author or pinned_by
            narrowed.append(pinned["tools"])
            context.note_author(pinned_by)
        tools = self._list_allowed_tools(author, *narrowed)
        now = context.now()
        called = context.durable_run.perform(_WHAT, list_called_handlers)
        brief = ScriptInput(
            source=source,
            input=payload,
            task={"id": task.id, "owner": task.owner, "title": task.title},
            tools=sorted({*tools, *called}),  # a former tool may have recorded results to replay
            seed=context.random.getrandbits(32),
            now=now,
        )
        notes: list[ProgressNote] = []
        answers: Sequence[ScriptResponse] = ()
        refusals: list[InvalidInput] = []
        left = self._max_requests
        with self._interpreter().run(brief) as running:
            while True:
                reached = running.resume(answers, now)
                lines = [truncate(line, MAX_TEXT) for line in reached.log[-MAX_PROGRESS_NOTES:]]
                notes = [*notes, *(ProgressNote(at=now, text=line) for line in lines)][-MAX_PROGRESS_NOTES:]
                context.replace_progress(notes)
                left -= len(reached.asks)
                if left < 0:
                    raise LimitExceeded(
                        f"The script asks for more than {self._max_requests} calls and sleeps, the most here."
                    )
                since = context.durable_run.perform(_WHAT, start_round)
                started_calls = {
                    ask.number: self._start_call(context, ask, tools, author) for ask in reached.asks if ask.is_call
                }
                refusals += [each for each in started_calls.values() if isinstance(each, InvalidInput)]
                if reached.failure is not None:
                    thrown = (each for each in reversed(refusals) if _refusal_text(each) == reached.failure.problem)
                    raise reached.failure from next(thrown, None)
                if reached.has_ended:
                    return reached.result  # calls that it did not await are made, like those of any handler
                answers = _await_round(context, reached, started_calls, now)
                last_end = context.durable_run.perform(_WHAT, end_round, since)
                now = now if last_end is None else max(now, last_end)

    def _list_allowed_tools(self, author: Requesters | None, *narrowed: Sequence[str] | None) -> tuple[str, ...]:
        """Return the tools in all of a script's lists, without those that are only for servers if a user wrote it."""
        registry = self._registry.for_users() if author is Requesters.USERS else self._registry
        tools = sorted(handler.name for handler in registry if handler.is_tool)
        return tuple(name for name in tools if all(names is None or name in names for names in narrowed))

    def _start_call(
        self, context: Context, request: ScriptRequest, tools: Sequence[str], author: Requesters | None
    ) -> int | InvalidInput:
        """Start a call and return its number in the journal, or the reason why it is refused.

        Both are recorded, so a replay gets the same answer even if the tool has been changed or removed since.
        """
        if request.script is not None:
            return self._start_script(context, request.script, request.payload, author)
        tool = escape_surrogates((request.tool or "")[:MAX_NAME])

        def check() -> None:
            if request.tool not in tools:
                raise InvalidInput(
                    "tool", f"there is no tool {tool!r} for this script", "It is no longer a tool, or never was one."
                )
            _require_object(tool, request.payload)

        try:
            fields = self._call_fields(context.task, tool, author)
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
        """Start a stored script of the same owner, with no more rights than the caller has, as `_start_call`."""
        task, name = context.task, escape_surrogates(requested[:MAX_NAME])
        tree = find_tree(task, context.execution_id)

        def check() -> None:
            if not is_script_name(name):
                raise InvalidInput("script", f"there is no stored script {name!r}", "No script can have this name.")
            _require_object(name, payload)
            self._stored.count_call(tree, task.owner)

        fields = {SCRIPT_CALL: {"name": name, "tree": tree, "definedBy": author}}
        try:
            return context.durable_run.perform(_WHAT, start_call, f"{CALL_PREFIX}{name}", payload, fields, check).number
        except InvalidInput as error:
            return error

    def _call_fields(self, task: Task, tool: str, author: Requesters | None) -> dict[str, Any]:
        """Return the priority of a call that a user's script makes: no more urgent than users may ask for."""
        if author is not Requesters.USERS or tool not in self._registry:
            return {}
        return {"priority": limit_priority(self._registry.get(tool), task.priority)}


def _require_object(name: str, payload: object) -> None:
    if not isinstance(payload, dict):
        raise InvalidInput("payload", f"what {name!r} is given has to be an object with its fields")
    require_storable("payload", payload, MAX_PAYLOAD)


def _await_round(
    context: Context, script_round: Round, started_calls: Mapping[int, int | InvalidInput], now: datetime
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


def _to_response(request: ScriptRequest, started_call: int | InvalidInput | None, outcome: Any) -> ScriptResponse:  # noqa: ANN401 - any result
    if isinstance(started_call, InvalidInput):
        return ScriptResponse(request.number, failure=_failure("InvalidInput", _refusal_text(started_call), "REFUSED"))
    if isinstance(outcome, CallFailed):
        return ScriptResponse(request.number, failure=_failure("CallFailed", str(outcome), outcome.status))
    try:
        require_exact("result", outcome)
    except InvalidInput as error:
        return ScriptResponse(request.number, failure=_failure("InvalidInput", str(error), "SUCCEEDED"))
    return ScriptResponse(request.number, outcome)


def _refusal_text(refusal: InvalidInput) -> str:
    return escape_surrogates(str(refusal))[:_MAX_REFUSAL_CHARS]


def _failure(name: str, message: str, status: str) -> dict[str, str]:
    return {"name": name, "message": message, "status": status}


CALL_PREFIX: Final = "scripts."
"""The prefix of the names of calls of scripts in the journal, as in the script itself."""
_COUNTED_FOR: Final = timedelta(days=400)


class CalledScripts:
    """Reads stored scripts for executions, and counts their calls of each other."""

    def __init__(self, records: Callable[[], RecordStore], clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def find(self, owner: str, name: str) -> StoredScript | None:
        """Return an owner's script as it is stored now. One document is read."""
        stored = self._records().load(StoredScript, script_key(owner, name))
        return None if stored is None or stored.record.owner != owner else stored.record

    def load(self, owner: str, name: str) -> dict[str, Any]:
        """Return what an execution records of a script, to run that to its end. Raises ScriptFailed."""
        script = self.find(owner, name)
        if script is None:
            raise ScriptFailed(f"There is no stored script {name!r}.")
        tools = None if script.tools is None else list(script.tools)
        return {"version": script.version, "source": script.source, "tools": tools, "definedBy": script.defined_by}

    def count_call(self, tree: str, owner: str) -> None:
        """Count one more call of a script below the top execution: a read and a write. Raises LimitExceeded."""

        def count(known: ScriptTree | None) -> ScriptTree:
            now = self._clock.now()
            calls = 1 if known is None else known.calls + 1
            if calls > MAX_TREE_CALLS:
                raise LimitExceeded(f"Scripts call each other more than {MAX_TREE_CALLS} times, the most for one run.")
            return ScriptTree(
                id=tree, owner=owner, created_at=now, updated_at=now, expire_at=now + _COUNTED_FOR, calls=calls
            )

        change_record(self._records(), ScriptTree, tree, count)


def find_tree(task: Task, execution_id: str) -> str:
    """Return the execution for which a task's calls of scripts are counted."""
    above = None if task.parent is None else task.parent.script_tree
    return above or f"{task.id}.{execution_id}"
