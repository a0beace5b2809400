"""The HTTP API: plain REST under ``/v1``, JSON in camelCase, errors as RFC 9457 problems.

============================================  ======================================================================
``POST   /v1/tasks``                          create a task (201), or edit the one of the same ``id`` (200)
``GET    /v1/tasks``                          list: owner, status, handler, dueFrom, dueUntil, pageSize, pageToken
``GET    /v1/tasks/{id}``                     get one
``PATCH  /v1/tasks/{id}``                     edit by JSON merge patch (RFC 7396)
``DELETE /v1/tasks/{id}``                     remove it and its executions (204)
``POST   /v1/tasks/{id}/pause``               also ``resume``, ``cancel``, ``trigger``
``POST   /v1/tasks/{id}/retry``               one more attempt for ``executionId``, or for the last execution
``POST   /v1/tasks/{id}/backfill``            run the occurrences from ``start`` to ``end`` again
``POST   /v1/tasks/{id}/events/{name}``       tell its durable handler something: a JSON object, or nothing (202)
``GET    /v1/tasks/{id}/tree``                the task and the calls below it: ``{task, children}``
``GET    /v1/tasks/{id}/upcoming``            the next ``count`` occurrences
``GET    /v1/tasks/{id}/executions``          list, the latest first; ``…/executions/{executionId}`` gets one
``GET    /v1/inboxes/{owner}/messages``       list, the newest first
``POST   /v1/schedules/preview``              the next ``count`` occurrences of a schedule, without storing it
``GET    /healthz``, ``GET /readyz``           whether this process is alive, and whether it reaches its store
============================================  ======================================================================
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Response

from cloudsched.domain import zones
from cloudsched.domain.drafts import TaskDraft
from cloudsched.errors import CloudschedError, InvalidInput
from cloudsched.web.problems import problem
from cloudsched.web.reading import instant, json_object, paging, parameters, task_query, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from werkzeug.wrappers import Request

    from cloudsched.app import App
    from cloudsched.domain.task import Task
    from cloudsched.engine.ports import Page
    from cloudsched.engine.trees import Tree

MAX_PREVIEW = 1000
_LIST = ("pageSize", "pageToken")
_INTERNAL = {"events", "runs", "wakeAt", "deferred", "deletedAt", "backfill", "lastAsk"}
"""What a task's document keeps for the scheduler alone."""


def _rule(path: str, method: str, endpoint: str) -> Rule:
    return Rule(path, methods=[method], endpoint=endpoint, strict_slashes=False)


_ROUTES = Map(
    [
        _rule("/v1/tasks", "POST", "create"),
        _rule("/v1/tasks", "GET", "list"),
        _rule("/v1/tasks/<task_id>", "GET", "get"),
        _rule("/v1/tasks/<task_id>", "PATCH", "patch"),
        _rule("/v1/tasks/<task_id>", "DELETE", "delete"),
        *(
            Rule(f"/v1/tasks/<task_id>/{verb}", methods=["POST"], endpoint="change", defaults={"verb": verb})
            for verb in ("pause", "resume", "cancel", "trigger")
        ),
        _rule("/v1/tasks/<task_id>/retry", "POST", "retry"),
        _rule("/v1/tasks/<task_id>/backfill", "POST", "backfill"),
        _rule("/v1/tasks/<task_id>/events/<name>", "POST", "event"),
        _rule("/v1/tasks/<task_id>/tree", "GET", "tree"),
        _rule("/v1/tasks/<task_id>/upcoming", "GET", "upcoming"),
        _rule("/v1/tasks/<task_id>/executions", "GET", "executions"),
        _rule("/v1/tasks/<task_id>/executions/<execution_id>", "GET", "execution"),
        _rule("/v1/inboxes/<owner>/messages", "GET", "inbox"),
        _rule("/v1/schedules/preview", "POST", "preview"),
        _rule("/healthz", "GET", "healthz"),
        _rule("/readyz", "GET", "readyz"),
    ],
    merge_slashes=False,
)


class Api:
    """Answers requests for one app's tasks."""

    def __init__(self, app: App) -> None:
        self._app = app

    def answer(self, request: Request) -> Response:
        """Answer a request; whatever goes wrong is answered as a problem document."""
        try:
            endpoint, arguments = _ROUTES.bind_to_environ(request.environ).match()
            answer: Response = getattr(self, f"_{endpoint}")(request, **arguments)
        except (CloudschedError, HTTPException) as error:
            return problem(error)
        except Exception as error:  # noqa: BLE001 - the caller is told that it is ours, the log why
            return problem(error)
        return answer

    def _create(self, request: Request) -> Response:
        parameters(request, ())
        task, is_new = self._app.put(TaskDraft.from_wire(json_object(request)))
        return _json(shown(task), 201 if is_new else 200, {"Location": f"/v1/tasks/{task.id}"})

    def _list(self, request: Request) -> Response:
        given = parameters(request, ("owner", "status", "handler", "dueFrom", "dueUntil", *_LIST))
        page = self._app.tasks(task_query(given), **paging(given))
        return _page("tasks", page, (shown(task) for task in page.items))

    def _get(self, request: Request, task_id: str) -> Response:
        parameters(request, ())
        return _json(shown(self._app.get(task_id)))

    def _patch(self, request: Request, task_id: str) -> Response:
        parameters(request, ())
        return _json(shown(self._app.patch(task_id, json_object(request))))

    def _delete(self, request: Request, task_id: str) -> Response:
        parameters(request, ())
        self._app.delete(task_id)
        return Response(status=204)

    def _change(self, request: Request, task_id: str, verb: str) -> Response:
        parameters(request, ())
        change = {
            "pause": self._app.pause,
            "resume": self._app.resume,
            "cancel": self._app.cancel,
            "trigger": self._app.trigger,
        }[verb]
        return _json(shown(change(task_id)))

    def _retry(self, request: Request, task_id: str) -> Response:
        parameters(request, ())
        identity = json_object(request, ("executionId",)).get("executionId") if request.content_length else None
        if not isinstance(identity, str | None):
            raise InvalidInput("executionId", "is not a string", "Give an execution's id, or none for the last one.")
        return _json(shown(self._app.retry(task_id, identity)))

    def _backfill(self, request: Request, task_id: str) -> Response:
        parameters(request, ())
        content = json_object(request, ("start", "end"))
        start, end = (instant(name, content.get(name)) for name in ("start", "end"))
        return _json(shown(self._app.backfill(task_id, start, end)))

    def _event(self, request: Request, task_id: str, name: str) -> Response:
        parameters(request, ())
        payload = json_object(request) if request.content_length else None
        return _json(shown(self._app.send_event(task_id, name, payload)), 202)

    def _tree(self, request: Request, task_id: str) -> Response:
        parameters(request, ())
        return _json(_branch(self._app.tree(task_id)))

    def _upcoming(self, request: Request, task_id: str) -> Response:
        given = parameters(request, ("count",))
        task = self._app.get(task_id)
        times = self._app.upcoming(task_id, whole_number("count", given.get("count", "10"), MAX_PREVIEW))
        return _json({"occurrences": [_moment(at, task.timezone) for at in times]})

    def _executions(self, request: Request, task_id: str) -> Response:
        page = self._app.executions(task_id, **paging(parameters(request, _LIST)))
        return _page("executions", page, (execution.to_wire() for execution in page.items))

    def _execution(self, request: Request, task_id: str, execution_id: str) -> Response:
        parameters(request, ())
        return _json(self._app.execution(task_id, execution_id).to_wire())

    def _inbox(self, request: Request, owner: str) -> Response:
        page = self._app.inbox(owner, **paging(parameters(request, _LIST)))
        return _page("messages", page, (message.to_wire() for message in page.items))

    def _healthz(self, request: Request) -> Response:
        parameters(request, ())
        return _json({"status": "ok", "circuits": self._app.circuits})

    def _readyz(self, request: Request) -> Response:
        parameters(request, ())
        self._app.store.check()
        return _json({"status": "ready", "circuits": self._app.circuits})

    def _preview(self, request: Request) -> Response:
        parameters(request, ())
        content = json_object(request, ("schedule", "count", "from"))
        draft = TaskDraft.from_wire({"title": "-", "handler": "-", "owner": "-", "schedule": content.get("schedule")})
        now = self._app.clock.now()
        start = instant("from", content["from"]) if "from" in content else now
        if draft.schedule is None:
            raise InvalidInput("schedule", "is missing", "Give the schedule to preview.")
        schedule = draft.schedule if draft.schedule.is_anchored else draft.schedule.anchored(start)
        times = schedule.upcoming(start, whole_number("count", content.get("count", 10), MAX_PREVIEW))
        return _json(
            {
                "description": schedule.describe(),
                "schedule": schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True),
                "occurrences": [_moment(at, schedule.timezone) for at in times],
            }
        )


def shown(task: Task) -> dict[str, Any]:
    """Return a task as its callers see it."""
    content = {name: value for name, value in task.to_wire().items() if name not in _INTERNAL}
    content["isRunning"] = any(run.lease for run in task.runs)
    if task.deferred:
        content["dispatchDeferred"] = True
        content["message"] = f"{task.message} Saved; its dispatch is deferred until the queue can be reached.".strip()
    return content


def _branch(tree: Tree) -> dict[str, Any]:
    return {"task": shown(tree.task), "children": [_branch(each) for each in tree.children]}


def _moment(at: datetime, timezone: str) -> dict[str, str]:
    local = at.astimezone(zones.tzinfo(timezone))
    return {"utc": at.isoformat().replace("+00:00", "Z"), "local": local.isoformat()}


def _page(name: str, page: Page[Any], items: Iterable[dict[str, Any]]) -> Response:
    content: dict[str, Any] = {name: list(items)}
    if page.next_page_token:
        content["nextPageToken"] = page.next_page_token
    return _json(content)


def _json(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, {"Content-Type": "application/json", **(headers or {})})
