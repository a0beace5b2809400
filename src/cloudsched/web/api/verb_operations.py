"""The operations by which a caller changes one task, made from the table of verbs. A trigger can also be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from pydantic.alias_generators import to_snake

from cloudsched.domain.documents.verbs import TriggerRequest, Verb
from cloudsched.domain.transitions.manual_verbs import find_triggered
from cloudsched.engine.tasks.manual_runs import make_mark
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, Operation, operation
from cloudsched.web.api.parse import read_json_object, validate_model
from cloudsched.web.api.responses import Json, task_response
from cloudsched.web.api.task_operations import CHANGE, REVIVAL, mark_change, validate_only

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.app import App
    from cloudsched.domain.documents.document import WireModel
    from cloudsched.domain.documents.task import Task


def _make_operation(verb: Verb) -> Operation:
    """Return the operation that calls a verb's method of the app, with the fields of its body and its path."""
    traits = verb.traits

    def act(call: ApiCall, body: WireModel | None = None) -> Response:
        sent = {} if body is None else body.to_wire()
        arguments = {to_snake(name): text for name, text in call.path.items()} | ({} if body is None else dict(body))
        change = getattr(call.app, verb.method)
        return task_response(call, change(**arguments, mark=mark_change(call, verb, {**call.path, **sent})))

    act.__name__, act.__doc__ = verb.method, traits.about
    options: dict[str, Any] = {**(REVIVAL if traits.revives else CHANGE), "response_schema": "Task"}
    if traits.body is not None:
        options |= {"body": traits.body, "body_is_optional": not traits.needs_body}
    make: Any = operation("POST", f"/v1/tasks/{{taskId}}{verb.path}", traits.group, **options)
    return cast("Operation", make(act))


@operation(
    "POST",
    "/v1/tasks/{taskId}/trigger",
    "Executions",
    query=bodies.ValidateQuery,
    content=TriggerRequest,
    body_is_optional=True,
    response_schema="Task",
    **CHANGE,
)
def trigger(call: ApiCall, query: bodies.ValidateQuery) -> Response:
    """Run a task now.

    The schedule does not change, and the run does not count towards `maxRuns`. With a `payload`, this run and its
    retries have it in place of the task's. Callers who may not edit the task's payload may not give one. With an
    `Idempotency-Key`, a repeated request starts nothing and names the same execution. A task remembers its latest 50
    requests. `triggered` in the answer names the execution that was started.
    """
    body = validate_model(TriggerRequest, read_json_object(call.request, is_optional=True))
    mark = mark_change(call, Verb.TRIGGER, body.payload) or make_mark()

    def act(app: App) -> Task:
        return app.trigger(call.task_id, body.payload, mark=mark)

    def show(task: Task) -> Json:
        return {"triggered": {"payload": task.payload if body.payload is None else body.payload}}

    if query.is_only_validation:
        return validate_only(call, act, show)
    task = act(call.app)
    shown = show(task)
    shown["triggered"]["executionId"] = find_triggered(task, mark)
    return task_response(call, task, more=shown)


VERB_OPERATIONS: Final = (trigger, *(_make_operation(verb) for verb in Verb if verb.traits.about))
