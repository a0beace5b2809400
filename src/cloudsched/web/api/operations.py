"""All operations of the API. The router, the checks and ``/openapi.json`` are made from them.

Here are those by which a caller changes one task, made from the table of verbs, and those on the service itself: its
health, the caller, and the API's description.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic.alias_generators import to_snake
from werkzeug.wrappers import Response

from cloudsched.domain.documents.verbs import TriggerRequest, Verb
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.responses.api_responses import CallerInfo, Health
from cloudsched.domain.transitions.manual_verbs import find_triggered
from cloudsched.engine.concurrency.service_threads import find_faults, hide_names
from cloudsched.engine.tasks.manual_runs import make_mark
from cloudsched.errors import NotReady
from cloudsched.features.table import FEATURES
from cloudsched.web.api import (
    execution_operations,
    overview_operations,
    task_operations,
)
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, Operation, find_operations, operation
from cloudsched.web.api.parse import read_json_object, validate_model
from cloudsched.web.api.responses import CACHE_HEADERS, Json, json_response, task_response
from cloudsched.web.api.task_operations import CHANGE, REVIVAL, mark_change, validate_only
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
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
        task = change(**arguments, mark=mark_change(call, verb, {**call.path, **sent}))
        if not call.caller.can_see(task.owner):  # it has asked the caller, who sees nothing of it
            return Response(status=204, headers=CACHE_HEADERS)
        return task_response(call, task)

    act.__name__, act.__doc__ = verb.method, traits.about
    options: dict[str, Any] = {**(REVIVAL if traits.revives else CHANGE), "response_schema": "Task"}
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

    The schedule does not change, and the run does not count towards `maxRuns`. With a `payload`, this run and its
    retries have it in place of the task's. Callers who may not edit the task's payload may not give one. With an
    `Idempotency-Key`, a repeated request starts nothing and names the same execution. A task remembers the latest
    50 requests of each side. `triggered` in the answer names the execution that was started.
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


@operation("GET", "/health", "Service", right=None, response_schema="Health")
def health(call: ApiCall) -> Response:
    """Check that this process is alive (liveness).

    It also reports the state of the circuit breakers to other services, threads that cannot do their work, and handlers
    that hang.
    """
    container = call.app.container
    health = Health(
        status="ok",
        circuits=container.circuits.states,
        faults=find_faults(),
        hanging=hide_names(container.hanging) or None,
    )
    return json_response(health.to_wire())


@operation("GET", "/ready", "Service", right=None, response_schema="Health")
def ready(call: ApiCall) -> Response:
    """Check that the store can be reached, and that all threads do their work (readiness).

    The status is 503 if the store cannot be reached, a thread of this process cannot do its work, or the API is not
    configured. It is 503, too, if no due work has started for a minute, whichever process of a data folder should start
    it. It also reports the release that answers, and the time zone data with which this process plans.
    """
    authenticator_for(call.app.container.settings)
    call.app.container.store.check()
    if faults := find_faults():
        raise NotReady(faults)
    health = Health(
        status="ready",
        circuits=call.app.container.circuits.states,
        hanging=hide_names(call.app.container.hanging) or None,
        release=version("cloudsched"),
        time_zone_data=time_zones.in_use.release,
    )
    return json_response(health.to_wire())


@operation("GET", "/v1/caller", "Service", response_schema="CallerInfo")
def show_caller(call: ApiCall) -> Response:
    """Get the caller, its rights, and the API's time.

    A user interface can then offer only actions that the API allows, and count from the API's time.
    """
    caller = call.caller
    info = CallerInfo(
        role=caller.role,
        owner=caller.owner,
        sees_all=caller.visible_owner is None,
        may_change=caller.has_right(Right.WRITE),
        now=call.app.container.clock.now(),
    )
    return json_response(info.to_wire())


@operation("GET", "/openapi.json", "Service", right=None, success_statuses=(200, 304), response_schema="OpenApi")
def openapi(call: ApiCall) -> Response:
    """Get this document.

    It is OpenAPI 3.1.
    """
    text, tag = call.render_document(call.request.root_path)
    response = Response(text, headers={"Content-Type": "application/json", **CACHE_HEADERS})
    response.set_etag(tag)
    return response


OPERATIONS: Final = (
    *find_operations(task_operations),
    *VERB_OPERATIONS,
    *find_operations(execution_operations),
    *find_operations(overview_operations),
    *(each for feature in FEATURES for module in feature.operations for each in find_operations(import_module(module))),
    *(health, ready, show_caller, openapi),
)
