"""The HTTP API: plain REST under ``/v1``, JSON in camelCase, errors as RFC 9457 problems.

`operations.py` lists the operations. A request passes these steps: check its origin (CORS), match it to an operation,
authenticate the caller and check its right, and parse the parameters and the body. Then the operation runs on the app
as that caller sees it: other owners' tasks are hidden, and a task in another state than ``If-Match`` names is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, Map, Rule
from werkzeug.wrappers import Response

from cloudsched.domain.transitions.planning import upcoming_occurrences
from cloudsched.errors import CloudschedError, NotFound
from cloudsched.language.task_fields import has_schedule_text, read_schedule_field
from cloudsched.web.api import cors
from cloudsched.web.api import feed_routes as feeds
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api import worker_routes as working
from cloudsched.web.api.batch import create_batch
from cloudsched.web.api.call import ApiCall
from cloudsched.web.api.etags import parse_if_match, require_tags
from cloudsched.web.api.idempotency import create_or_edit, read_idempotency_key
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.api.parse import parse_parameters, validate
from cloudsched.web.api.problems import render_problem
from cloudsched.web.api.responses import (
    json_response,
    occurrence_to_json,
    page_response,
    task_response,
    task_to_json,
    tree_to_json,
)
from cloudsched.web.api.visibility import Visibility
from cloudsched.web.auth.authentication import authenticator_for, is_open_to
from cloudsched.web.auth.roles import ANONYMOUS_ADMIN, Caller, Right

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request

    from cloudsched.app import App
    from cloudsched.web.api.operation import Operation


class _IdConverter(BaseConverter):
    """One segment of a path. One that ends in ``.ics`` is the calendar of what it names, and has routes of its own."""

    regex = r"[^/]+(?<!\.ics)"
    part_isolating = True


_ROUTES = Map(
    [
        Rule(each.path.replace("{", "<").replace("}", ">"), methods=[each.method], endpoint=each, strict_slashes=False)
        for each in OPERATIONS
    ],
    merge_slashes=False,
    converters={"default": _IdConverter},
)


class Api:
    """Serves the API for one app."""

    def __init__(self, app: App) -> None:
        self._app = app

    def handle(self, request: Request) -> Response:
        """Return the response to a request; errors become problem documents."""
        origins: tuple[str, ...] = ()
        try:
            origins = self._app.settings.access.origins
            response = cors.respond_to_preflight(request, origins) or self._handle_checked(request, origins)
        except (CloudschedError, HTTPException) as error:
            response = render_problem(error)
        except Exception as error:  # noqa: BLE001 - the caller gets 500, the log the reason
            response = render_problem(error)
        cors.add_headers(request, response, origins)
        return response

    def _handle_checked(self, request: Request, origins: tuple[str, ...]) -> Response:
        cors.require_allowed_origin(request, origins)
        endpoint, path = _ROUTES.bind_to_environ(request.environ).match()
        operation = cast("Operation", endpoint)
        caller = self._authenticate(operation, request)
        query = parse_parameters(request, operation.query)
        precondition = parse_if_match(request) if operation.is_conditional else None
        visibility = Visibility(caller, precondition, is_change=operation.right is Right.WRITE)
        app = self._authorized_app(visibility, operation)
        call = ApiCall(app, caller, visibility, operation, request, dict(path), query)
        shown = {name: value for name, value in path.items() if name != "feedSecret"}
        with self._app.tracer.span(operation.name, **shown):
            try:
                return self._run_operation(call)
            except NotFound:
                visibility.equalize_time()
                raise

    @staticmethod
    def _run_operation(call: ApiCall) -> Response:
        request, operation = call.request, call.operation
        if 304 not in operation.success_statuses:  # noqa: PLR2004 - Not Modified
            return IMPLEMENTATIONS[operation.name](call)
        if (tags := request.headers.get("If-None-Match")) is not None:
            require_tags("If-None-Match", tags)
        return IMPLEMENTATIONS[operation.name](call).make_conditional(request)

    def _authenticate(self, operation: Operation, request: Request) -> Caller:
        if operation.right is None:
            return ANONYMOUS_ADMIN
        caller = authenticator_for(self._app.settings).authenticate(request)
        caller.require(operation.right)
        return caller

    def _authorized_app(self, visibility: Visibility, operation: Operation) -> App:
        if operation.right is Right.WORK or not visibility.is_restricted:
            return self._app  # `worker_routes` checks claims, which depend on queues, too
        return self._app.guarded(visibility.check_task)


def _create_task(call: ApiCall) -> Response:
    task, is_new = create_or_edit(call.app, call.caller, call.read_content(), read_idempotency_key(call.request))
    return task_response(task, 201 if is_new else 200, {"Location": f"{call.request.root_path}/v1/tasks/{task.id}"})


def _batch_create_tasks(call: ApiCall) -> Response:
    tasks = cast("bodies.BatchCreateRequest", call.read_body()).tasks
    return json_response({"results": create_batch(call.app, call.caller, tasks, read_idempotency_key(call.request))})


def _list_tasks(call: ApiCall) -> Response:
    query = cast("bodies.TaskListQuery", call.query)
    owner = query.owner if call.caller.visible_owner is None else str(call.caller.resolve_owner(query.owner))
    page = call.app.tasks(query.to_task_query(owner), **query.to_arguments())
    return page_response("tasks", page, (task_to_json(task) for task in page.items))


def _get_task(call: ApiCall) -> Response:
    return task_response(call.app.get(call.task_id))


def _update_task(call: ApiCall) -> Response:
    return task_response(call.app.patch(call.task_id, call.read_content(), authority=call.caller.authority))


def _delete_task(call: ApiCall) -> Response:
    call.app.delete(call.task_id)
    return Response(status=204)


def _change_status(call: ApiCall) -> Response:
    return task_response(getattr(call.app, call.operation.name)(call.task_id, authority=call.caller.authority))


def _cancel(call: ApiCall) -> Response:
    return task_response(call.app.cancel(call.task_id))


def _retry(call: ApiCall) -> Response:
    execution_id = cast("bodies.RetryRequest", call.read_body()).execution_id
    return task_response(call.app.retry(call.task_id, execution_id, authority=call.caller.authority))


def _backfill(call: ApiCall) -> Response:
    body = cast("bodies.BackfillRequest", call.read_body())
    return task_response(call.app.backfill(call.task_id, body.start, body.end, authority=call.caller.authority))


def _send_event(call: ApiCall) -> Response:
    body = cast("bodies.SendEventRequest", call.read_body())
    event = call.path["event"]
    sent = call.app.send_event(
        call.task_id, event, body.payload, execution_id=body.execution_id, sender=call.caller.sender
    )
    return task_response(sent)


def _get_tree(call: ApiCall) -> Response:
    query = cast("bodies.TreeFilter", call.query)
    return json_response(tree_to_json(call.app.tree(call.task_id, query.execution_id)))


def _list_upcoming(call: ApiCall) -> Response:
    task = call.app.get(call.task_id)
    times = upcoming_occurrences(task, cast("bodies.Count", call.query).count)
    return json_response({"occurrences": [occurrence_to_json(at, task.timezone) for at in times]})


def _list_executions(call: ApiCall) -> Response:
    page = call.app.executions(call.task_id, **cast("bodies.PageQuery", call.query).to_arguments())
    return page_response("executions", page, (execution.to_wire() for execution in page.items))


def _get_execution(call: ApiCall) -> Response:
    return json_response(call.app.execution(call.task_id, call.path["executionId"]).to_wire())


def _list_messages(call: ApiCall) -> Response:
    owner = call.path["owner"]
    call.caller.require_inbox(owner)
    page = call.app.inbox(owner, **cast("bodies.PageQuery", call.query).to_arguments())
    return page_response("messages", page, (message.to_wire() for message in page.items))


def _preview_schedule(call: ApiCall) -> Response:
    content = call.read_content()
    now = call.app.clock.now()
    read = None
    if has_schedule_text(content):
        read = read_schedule_field(content, now=now, default_time=call.app.settings.default_time)
        content = {**content, "schedule": read.schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True)}
        content.pop("timezone", None)
    body = validate(bodies.PreviewRequest, content)
    start = body.start or now
    schedule = body.schedule if body.schedule.is_anchored else body.schedule.anchored(start)
    times = schedule.upcoming(start, body.count)
    return json_response(
        {
            "description": schedule.describe(),
            "schedule": schedule.model_dump(mode="json", by_alias=True, exclude_none=True),
            "occurrences": [occurrence_to_json(at, schedule.timezone) for at in times],
            **({} if read is None else {"assumptions": read.assumptions}),
            **({} if read is None or read.title is None else {"title": read.title}),
        }
    )


def _healthz(call: ApiCall) -> Response:
    return json_response({"status": "ok", "circuits": call.app.circuits})


def _readyz(call: ApiCall) -> Response:
    authenticator_for(call.app.settings)
    call.app.store.check()
    return json_response({"status": "ready", "circuits": call.app.circuits})


def _openapi(call: ApiCall) -> Response:
    from cloudsched.web.api.openapi import build_document  # noqa: PLC0415 - only requests for it pay for the import

    return json_response(build_document(_public_handlers(call), call.request.root_path))


def _reference(call: ApiCall) -> Response:
    from cloudsched.web.api.docs_page import render_page  # noqa: PLC0415 - the same
    from cloudsched.web.api.openapi import build_document  # noqa: PLC0415 - the same

    return render_page(build_document(_public_handlers(call), call.request.root_path))


def _public_handlers(call: ApiCall) -> tuple[str, ...] | None:
    """Return the names of the app's handlers if the API is open to the caller, else None."""
    settings = call.app.settings
    if settings.access.is_configured or not is_open_to(settings, call.request):
        return None
    return tuple(sorted(handler.name for handler in call.app.registry))


IMPLEMENTATIONS: dict[str, Callable[[ApiCall], Response]] = {
    "create_task": _create_task,
    "batch_create_tasks": _batch_create_tasks,
    "list_tasks": _list_tasks,
    "get_task": _get_task,
    "update_task": _update_task,
    "delete_task": _delete_task,
    **dict.fromkeys(("pause", "resume", "trigger"), _change_status),
    "cancel": _cancel,
    "retry": _retry,
    "backfill": _backfill,
    "send_event": _send_event,
    "tree": _get_tree,
    "upcoming": _list_upcoming,
    "list_executions": _list_executions,
    "get_execution": _get_execution,
    "claim": working.claim,
    "heartbeat": working.heartbeat,
    "complete": working.complete,
    "fail": working.fail,
    "release": working.release,
    "list_messages": _list_messages,
    "create_feed": feeds.create_feed,
    "list_feeds": feeds.list_feeds,
    "delete_feed": feeds.delete_feed,
    "get_feed": feeds.get_feed,
    "get_task_calendar": feeds.get_task_calendar,
    "preview_schedule": _preview_schedule,
    "healthz": _healthz,
    "readyz": _readyz,
    "openapi": _openapi,
    "reference": _reference,
}
