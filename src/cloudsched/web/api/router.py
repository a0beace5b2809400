"""The HTTP API: plain REST under ``/v1``, JSON in camelCase, errors as RFC 9457 problems.

`operations.py` lists what there is. A request goes this way: may a page of that origin ask at all (CORS)?
which operation is it? who calls, and may they do that? are its parameters and its body what the operation takes? Then
the operation does its work on the app as that caller sees it: with the tasks of others left out, and with tasks in
another state than ``If-Match`` says refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Response

from cloudsched.domain.transitions.planning import upcoming
from cloudsched.errors import CloudschedError, NotFound
from cloudsched.web.api import cors
from cloudsched.web.api import request_bodies as said
from cloudsched.web.api import worker_routes as working
from cloudsched.web.api.batch import created_batch
from cloudsched.web.api.call import Call
from cloudsched.web.api.etags import condition, require_tags
from cloudsched.web.api.idempotency import key_of, put
from cloudsched.web.api.operations import OPERATIONS, Operation
from cloudsched.web.api.parse import parameters
from cloudsched.web.api.problems import problem
from cloudsched.web.api.quotas import require_room
from cloudsched.web.api.responses import json_answer, moment, page_answer, shown, task_answer, tree_shown
from cloudsched.web.auth.authentication import gate_of
from cloudsched.web.auth.roles import ANYBODY, Caller, Right

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request

    from cloudsched.app import App
    from cloudsched.domain.documents.task import Task

_ROUTES = Map(
    [
        Rule(each.path.replace("{", "<").replace("}", ">"), methods=[each.method], endpoint=each, strict_slashes=False)
        for each in OPERATIONS
    ],
    merge_slashes=False,
)


class Api:
    """Answers requests for one app's tasks."""

    def __init__(self, app: App) -> None:
        self._app = app

    def answer(self, request: Request) -> Response:
        """Answer a request; whatever goes wrong is answered as a problem document."""
        origins: tuple[str, ...] = ()
        try:
            origins = self._app.settings.access.origins
            response = cors.preflight(request, origins) or self._answered(request, origins)
        except (CloudschedError, HTTPException) as error:
            response = problem(error)
        except Exception as error:  # noqa: BLE001 - the caller is told that it is ours, the log why
            response = problem(error)
        cors.add_headers(request, response, origins)
        return response

    def _answered(self, request: Request, origins: tuple[str, ...]) -> Response:
        cors.require_allowed(request, origins)
        found, path = _ROUTES.bind_to_environ(request.environ).match()
        operation = cast("Operation", found)
        caller = self._caller(operation, request)
        query = parameters(request, operation.query)
        call = Call(self._as_seen_by(caller, operation, request), caller, operation, request, dict(path), query)
        with self._app.tracer.span(operation.name, **dict(path)):
            return self._done(call)

    @staticmethod
    def _done(call: Call) -> Response:
        request, operation = call.request, call.operation
        if 304 not in operation.success:  # noqa: PLR2004 - Not Modified
            return _ANSWERS[operation.name](call)
        if (known := request.headers.get("If-None-Match")) is not None:
            require_tags("If-None-Match", known)
        return _ANSWERS[operation.name](call).make_conditional(request)

    def _caller(self, operation: Operation, request: Request) -> Caller:
        if operation.right is None:
            return ANYBODY
        caller = gate_of(self._app.settings).caller(request)
        caller.require(operation.right)
        return caller

    def _as_seen_by(self, caller: Caller, operation: Operation, request: Request) -> App:
        if operation.right is Right.WORK:
            return self._app  # what workers may touch is looked at in `working`, by their queues too
        unchanged = condition(request) if operation.is_conditional else None
        if caller.only is None and unchanged is None:
            return self._app

        def check(task: Task) -> None:
            if not caller.sees(task.owner):
                raise NotFound("task", task.id)
            if unchanged is not None:
                unchanged(task)

        return self._app.guarded(check)


def _create_task(call: Call) -> Response:
    require_room(call.app, call.caller)
    task, is_new = put(call.app, call.caller, call.content(), key_of(call.request))
    return task_answer(task, 201 if is_new else 200, {"Location": f"/v1/tasks/{task.id}"})


def _batch_create_tasks(call: Call) -> Response:
    tasks = cast("said.Batch", call.body()).tasks
    return json_answer({"results": created_batch(call.app, call.caller, tasks, key_of(call.request))})


def _list_tasks(call: Call) -> Response:
    wanted = cast("said.TaskList", call.query)
    owner = wanted.owner if call.caller.only is None else str(call.caller.owner_of_new(wanted.owner))
    page = call.app.tasks(wanted.query(owner), **wanted.arguments())
    return page_answer("tasks", page, (shown(task) for task in page.items))


def _get_task(call: Call) -> Response:
    return task_answer(call.app.get(call.task_id))


def _update_task(call: Call) -> Response:
    return task_answer(call.app.patch(call.task_id, call.content()))


def _delete_task(call: Call) -> Response:
    call.app.delete(call.task_id)
    return Response(status=204)


def _change(call: Call) -> Response:
    return task_answer(getattr(call.app, call.operation.name)(call.task_id))


def _retry(call: Call) -> Response:
    return task_answer(call.app.retry(call.task_id, cast("said.Retry", call.body()).execution_id))


def _backfill(call: Call) -> Response:
    wanted = cast("said.Range", call.body())
    return task_answer(call.app.backfill(call.task_id, wanted.start, wanted.end))


def _send_event(call: Call) -> Response:
    told = cast("said.EventPayload", call.body())
    event = call.path["event"]
    return task_answer(call.app.send_event(call.task_id, event, told.payload, execution_id=told.execution_id))


def _tree(call: Call) -> Response:
    wanted = cast("said.Branches", call.query)
    return json_answer(tree_shown(call.app.tree(call.task_id, wanted.execution_id)))


def _upcoming(call: Call) -> Response:
    task = call.app.get(call.task_id)
    times = upcoming(task, cast("said.Count", call.query).count)
    return json_answer({"occurrences": [moment(at, task.timezone) for at in times]})


def _list_executions(call: Call) -> Response:
    page = call.app.executions(call.task_id, **cast("said.Paging", call.query).arguments())
    return page_answer("executions", page, (execution.to_wire() for execution in page.items))


def _get_execution(call: Call) -> Response:
    return json_answer(call.app.execution(call.task_id, call.path["executionId"]).to_wire())


def _list_messages(call: Call) -> Response:
    owner = call.path["owner"]
    call.caller.require_inbox(owner)
    page = call.app.inbox(owner, **cast("said.Paging", call.query).arguments())
    return page_answer("messages", page, (message.to_wire() for message in page.items))


def _preview_schedule(call: Call) -> Response:
    wanted = cast("said.Preview", call.body())
    start = wanted.start or call.app.clock.now()
    schedule = wanted.schedule if wanted.schedule.is_anchored else wanted.schedule.anchored(start)
    times = schedule.upcoming(start, wanted.count)
    return json_answer(
        {
            "description": schedule.describe(),
            "schedule": schedule.model_dump(mode="json", by_alias=True, exclude_none=True),
            "occurrences": [moment(at, schedule.timezone) for at in times],
        }
    )


def _healthz(call: Call) -> Response:
    return json_answer({"status": "ok", "circuits": call.app.circuits})


def _readyz(call: Call) -> Response:
    gate_of(call.app.settings)
    call.app.store.check()
    return json_answer({"status": "ready", "circuits": call.app.circuits})


def _openapi(call: Call) -> Response:
    from cloudsched.web.api.openapi import document  # noqa: PLC0415 - only its readers pay for it

    return json_answer(document(_handlers(call.app)))


def _reference(call: Call) -> Response:
    from cloudsched.web.api.docs_page import page  # noqa: PLC0415 - the same
    from cloudsched.web.api.openapi import document  # noqa: PLC0415 - the same

    return page(document(_handlers(call.app)))


def _handlers(app: App) -> tuple[str, ...] | None:
    """Return the handlers that there are, where everybody may know."""
    if app.settings.access.is_configured or app.settings.is_deployed:
        return None
    return tuple(sorted(handler.name for handler in app.registry))


_ANSWERS: dict[str, Callable[[Call], Response]] = {
    "create_task": _create_task,
    "batch_create_tasks": _batch_create_tasks,
    "list_tasks": _list_tasks,
    "get_task": _get_task,
    "update_task": _update_task,
    "delete_task": _delete_task,
    **dict.fromkeys(("pause", "resume", "cancel", "trigger"), _change),
    "retry": _retry,
    "backfill": _backfill,
    "send_event": _send_event,
    "tree": _tree,
    "upcoming": _upcoming,
    "list_executions": _list_executions,
    "get_execution": _get_execution,
    "claim": working.claim,
    "heartbeat": working.heartbeat,
    "complete": working.complete,
    "fail": working.fail,
    "release": working.release,
    "list_messages": _list_messages,
    "preview_schedule": _preview_schedule,
    "healthz": _healthz,
    "readyz": _readyz,
    "openapi": _openapi,
    "reference": _reference,
}
