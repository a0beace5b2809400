"""All operations of the API. The router, the checks and ``/openapi.json`` are made from them.

Here are those by which a caller changes one task, made from the table of verbs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic.alias_generators import to_snake
from werkzeug.wrappers import Response

from cloudsched.domain.documents.verbs import TriggerRequest, Verb
from cloudsched.domain.transitions.manual_verbs import find_triggered
from cloudsched.engine.tasks.manual_runs import make_mark
from cloudsched.features.table import FEATURES
from cloudsched.web.api import (
    dispatch_queue_operations,
    execution_operations,
    handler_operations,
    inbox_operations,
    overview_operations,
    service_operations,
    task_operations,
    usage_operations,
)
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.dry_run import validate_only
from cloudsched.web.api.idempotency_keys import mark_change
from cloudsched.web.api.operation import ApiCall, Operation, find_operations, operation
from cloudsched.web.api.parse import read_json_object, validate_model
from cloudsched.web.api.responses import CACHE_HEADERS, Json, task_response
from cloudsched.web.api.task_operations import CHANGE, REVIVAL

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.domain.documents.document import WireModel
    from cloudsched.domain.documents.task import Task


def _make_operation(verb: Verb) -> Operation:
    """Return the operation that calls a verb's method of the app, with the fields of its body and its path."""
    traits = verb.traits

    def act(call: ApiCall, body: WireModel | None = None) -> Response:
        arguments: dict[str, Any] = {to_snake(name): text for name, text in call.path.items()}
        sent: dict[str, Any] = {**call.path}
        if body is not None:
            arguments |= dict(body)
            sent |= body.to_wire()
        task = getattr(call.app.marked(mark_change(call, verb, sent)), verb.method)(**arguments)
        if not call.caller.can_see(task.owner):  # it has asked the caller, who sees nothing of it
            return Response(status=204, headers=CACHE_HEADERS)
        return task_response(call, task)

    act.__name__ = verb.method
    act.__doc__ = traits.about
    shared = REVIVAL if traits.revives else CHANGE
    options: dict[str, Any] = {**shared, "response_schema": "Task"}
    if verb is Verb.SEND_EVENT:
        options["success_statuses"] = (200, 204)
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

    The schedule does not change, and the run does not count towards `maxRuns`. With a `payload`, this run
    and its retries have it in place of the task's. Callers who may not edit the task's payload may not
    give one. With an `Idempotency-Key`, a repeated request starts nothing and names the same execution. A
    task remembers the latest 50 requests of each side. `triggered` in the answer names the execution that
    was started.
    """
    body = validate_model(TriggerRequest, read_json_object(call.request, is_optional=True))
    mark = mark_change(call, Verb.TRIGGER, body.payload) or make_mark()

    def act(app: App) -> Task:
        return app.marked(mark).trigger(call.task_id, body.payload)

    def show(task: Task) -> Json:
        return {"triggered": {"payload": task.payload if body.payload is None else body.payload}}

    if query.is_only_validation:
        return validate_only(call, act, show)
    task = act(call.app)
    shown = show(task)
    shown["triggered"]["executionId"] = find_triggered(task, mark)
    return task_response(call, task, more=shown)


VERB_OPERATIONS: Final = (trigger, *(_make_operation(verb) for verb in Verb if verb.traits.about))


_MODULES_OF_FEATURES: Final = [module for feature in FEATURES for module in feature.operations]
OPERATIONS: Final = (
    *find_operations(task_operations),
    *VERB_OPERATIONS,
    *find_operations(execution_operations),
    *find_operations(inbox_operations),
    *find_operations(overview_operations),
    *find_operations(dispatch_queue_operations),
    *find_operations(handler_operations),
    *find_operations(usage_operations),
    *(each for module in _MODULES_OF_FEATURES for each in find_operations(import_module(module))),
    *find_operations(service_operations),
)
