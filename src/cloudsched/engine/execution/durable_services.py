"""Connect the journal of an attempt to the engine: archive, child tasks, settings, call drafts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.script import SCRIPT_CALL, SCRIPT_HANDLER
from cloudsched.domain.documents.system_tasks import ASSISTANT_HANDLER
from cloudsched.domain.documents.usage import Amounts, RunUsage
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.task_draft import TaskDraft, to_draft_content
from cloudsched.domain.transitions.validation_errors import join_faults, say_in_python
from cloudsched.engine.child_tasks import ChildTasks
from cloudsched.engine.durable.results import load_call_outcome
from cloudsched.engine.durable.suspension import Surroundings, SuspendPolicy
from cloudsched.errors import InvalidInput, UnknownHandler

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Parent, Task
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.attempt import Attempt

TIME_FRACTION = 0.8
"""The share of the function's time limit after which a handler is suspended at its next durable point."""
_NOT_ALLOWED_IN_CALLS = {
    "id": "It is derived from the call's position in the journal. Use the handle that the call returns.",
    "schedule": "A call starts immediately. Use ctx.sleep before it, or create a separate task.",
}
"""The fields of a draft that a call may not set, each with a hint."""


class DurableServices:
    """Makes the surroundings of the journals of attempts."""

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._child_tasks = ChildTasks(engine)
        self._call_arguments: dict[tuple[str, str, datetime | None, int], str] = {}

    def surround(self, attempt: Attempt) -> Surroundings:
        """Return what the journal of an attempt works with."""
        task = attempt.begun_task
        run = attempt.run
        return Surroundings(
            attempt=attempt,
            clock=self._engine.clock,
            function=self._function,
            tells_errors=self._engine.registry.tells_errors,
            name_of=self._engine.registry.name_of,
            blobs=self._engine.blobs(),
            chance=self._engine.random,
            load=partial(self._engine.archive().load, task.id, run),
            make_call=partial(self._child_tasks.create, find_caller=attempt.find_caller),
            cancel_call=self._child_tasks.cancel_call,
            load_call_outcome=partial(load_call_outcome, self._engine.store),
            draft_call=partial(self._draft, task),
            suspend_policy=SuspendPolicy(
                self._suspend_deadline(run), self._engine.settings.replays_each_step, self._call_arguments
            ),
            find_excess=partial(self._find_excess, task, run),
        )

    def _find_excess(self, task: Task, run: Run, recorded: Amounts) -> str | None:
        counted = run.usage or RunUsage()
        running = Amounts(recorded.queries - counted.step_queries, recorded.tokens - counted.step_tokens)
        return self._engine.usage_limit().find_excess(task, running)

    def _function(self, handler: str) -> Callable[..., Any] | None:
        found = self._engine.registry.find(handler)
        return None if found is None else found.function

    def _suspend_deadline(self, run: Run) -> datetime:
        began_at = self._engine.clock.now() if run.lease is None else run.lease.started_at
        return began_at + self._engine.settings.time_limit * TIME_FRACTION

    def _draft(
        self,
        task: Task,
        handler: str,
        payload: Any,  # noqa: ANN401 - any payload that the handler accepts
        child: str,
        fields: dict[str, Any],
        parent: Parent,
    ) -> Task:
        """Return the task of a call.

        It has only one execution, and is kept no longer than that execution's record.
        """
        from cloudsched.domain.transitions.edits import new_task  # noqa: PLC0415 - few handlers make calls
        from cloudsched.engine.handlers.validation import validate_draft  # noqa: PLC0415 - the same

        now = self._engine.clock.now()
        called = handler
        fields = {**fields}
        tree = None
        owner = fields.pop("owner", task.owner)
        script = fields.pop(SCRIPT_CALL, None)  # only `run_script` gives it
        if script is not None:
            handler = SCRIPT_HANDLER
            fields = {**fields, "script": {"name": script["name"]}}
            tree = script["tree"]
        fixed = {
            "id": child,
            "owner": owner,
            "handler": handler,
            "payload": {} if payload is None else payload,
            "schedule": Schedule.once(now),
        }
        defaults = {"title": f"{called}, called by {task.title}"[:500], "priority": task.priority}
        registry = self._engine.registry
        retention = self._engine.settings.retention

        given = {**defaults, **_caller_fields(fields), **fixed}
        try:
            draft = TaskDraft.from_wire(to_draft_content(given))
            call = new_task(validate_draft(draft, registry, retention, Requesters.SERVERS), now)
        except InvalidInput as error:
            if not isinstance(error, UnknownHandler):  # whose message names the handler
                said = f", in the call of {called!r}"
                error = join_faults([type(e)(e.field, f"{e.problem}{said}", e.hint) for e in error.faults])
            say_in_python(error, given, TaskDraft)
            raise error from None
        retentions = [each for each in (call.retention, call.execution_retention) if each is not None]
        call = call.model_copy(
            update={
                "parent": parent.model_copy(
                    update={
                        "is_owners": task.is_written_by_owner,
                        # Another owner's quota is not for this one's tasks to use up.
                        "is_for_user": owner == task.owner and (task.is_for_user or task.handler == ASSISTANT_HANDLER),
                        "script_tree": tree,
                    }
                ),
                "is_made_by_run": task.is_made_by_run,
                "defined_by": None if script is None else script["definedBy"],
                "retention": min(retentions, default=None),
            }
        )
        return self._engine.usage_limit().prepare(call, now, task)


def _caller_fields(fields: dict[str, Any]) -> dict[str, Any]:
    for name, hint in _NOT_ALLOWED_IN_CALLS.items():
        if name in fields:
            raise InvalidInput(name, "cannot be set by a call", hint)
    return {name: value for name, value in fields.items() if name != "retry" or value is not None}
