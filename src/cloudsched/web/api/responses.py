"""Responses: a task, an occurrence or a page of a list, in JSON."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from werkzeug.http import quote_etag
from werkzeug.wrappers import Response

from cloudsched.domain.documents.task import PublicTask, Task, get_open_status
from cloudsched.domain.recurrence import time_zones as zones
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.responses import overview_responses
from cloudsched.domain.responses.csv_pages import write_csv
from cloudsched.domain.transitions.definitions import describe_bound_runs
from cloudsched.domain.transitions.run_records import drop_outcome, keep_recent
from cloudsched.web.api.etags import compute_etag
from cloudsched.web.api.visibility import AllowedVerbs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from werkzeug.wrappers import Request

    from cloudsched.app import App
    from cloudsched.domain.documents.execution import ExecutionStatus
    from cloudsched.domain.documents.person import Person
    from cloudsched.engine.child_tasks import CallTree
    from cloudsched.engine.storage.pages import Page
    from cloudsched.web.api.operation import ApiCall

Json = dict[str, Any]


def show_task(task: Task) -> responses.Task:
    """Return a stored task as callers see it. It was validated when it was read."""
    state = task.__dict__
    offered = None if task.offer is None else task.offer.since
    return _blank().model_copy(  # a third of the time that `model_construct` takes
        update={
            **{name: state[name] for name in PublicTask.model_fields},
            "message": _message(task),
            "is_running": any(run.lease for run in task.runs),
            "offered_at": offered,
            "snoozed_until": next((run.due_at for run in task.runs if run.is_waiting_repeat), None),
            "recent_statuses": _find_recent(task),
            "dispatch_deferred": True if task.deferred else None,
        }
    )


def show_person(person: Person) -> responses.Person:
    """Return a stored person as callers see them. They were validated when they were read."""
    fields = responses.Person.model_fields
    return responses.Person.model_construct(**{name: getattr(person, name) for name in fields})


def person_response(person: Person, status: int = 200, more: Json | None = None) -> Response:
    """Respond with a person, the fields in `more`, and the ETag of their state."""
    tag = quote_etag(compute_etag(person))
    return json_response({**show_person(person).to_wire(), **(more or {})}, status, {"ETag": tag})


def _find_recent(task: Task) -> tuple[ExecutionStatus, ...]:
    """Return the statuses of the latest executions. A failed one that is being retried counts as open."""
    runs = sorted(task.runs, key=lambda run: run.scheduled_for)
    open_ones = [status for run in runs if (status := get_open_status(task, run))]
    outcomes = task.recent_outcomes
    for run in runs:
        outcomes = drop_outcome(task, outcomes, run)
    return keep_recent(outcomes, *open_ones)


@lru_cache(maxsize=1)
def _blank() -> responses.Task:
    values: dict[str, Any] = {"is_running": False}  # the others are those of the task
    return responses.Task.model_construct(**values)


def _message(task: Task) -> str:
    message = task.message
    refusals = (run.suspension.quota_refusal for run in task.runs if run.suspension is not None)
    if (refusal := next(filter(None, refusals), None)) is not None:
        message = f"{message} Calls wait for room: {refusal}".strip()
    if (bound := describe_bound_runs(task)) != "":
        message = f"{message} {bound}".strip()
    if task.deferred:
        message = f"{message} Saved; its dispatch is deferred until the queue can be reached.".strip()
    return message


OMITTED_FOR_WORKERS = frozenset(
    {"payload", "description", "purpose", "source", "children", "script", "events"},
)
"""The fields of a task that a worker gets with the claim, but not in later responses."""


def task_to_json(task: Task) -> dict[str, Any]:
    """Return a task as callers see it."""
    return show_task(task).to_wire()


def show_receipt(app: App, task: Task) -> Json:
    """Return the field in which the answer to a change says when the task runs next."""
    return {"receipt": app.container.conditions.make_receipt(task).to_wire()}


def task_response(
    call: ApiCall,
    task: Task,
    status: int = 200,
    headers: dict[str, str] | None = None,
    more: Json | None = None,
) -> Response:
    """Respond with a task, its allowed verbs, the fields in `more`, and the ETag of its state."""
    verbs = AllowedVerbs(call.app, call.caller).of_task(task)
    content = {**task_to_json(task), "allowedVerbs": verbs, **(more or {})}
    return json_response(content, status, {"ETag": quote_etag(compute_etag(task)), **(headers or {})})


def make_tree(tree: CallTree, allowed: AllowedVerbs) -> responses.Tree[Json]:
    """Return a task's tree as callers see it, with the caller's allowed verbs for each task."""
    return responses.Tree[Json].model_construct(
        task={**task_to_json(tree.task), "allowedVerbs": allowed.of_task(tree.task)},
        children=tuple(make_tree(child, allowed) for child in tree.children),
        omitted_children=tree.omitted_children,
    )


def make_occurrence(at: datetime, timezone: str) -> responses.Occurrence:
    """Return an instant in UTC and in the local time of a zone."""
    return responses.Occurrence(utc=at, local=at.astimezone(zones.load_shown(timezone)))


def make_task_occurrence(at: datetime, task: Task) -> overview_responses.TaskOccurrence:
    """Return an occurrence of a task, in UTC and in the task's zone."""
    return overview_responses.TaskOccurrence(
        utc=at,
        local=at.astimezone(zones.load_shown(task.timezone)),
        task_id=task.id,
        owner=task.owner,
        title=task.title,
        handler=task.handler,
        timezone=task.timezone,
    )


def page_response(model: type[responses.PageResponse], page: Page[Any], items: Iterable[Json]) -> Response:
    """Respond with a page of a list, whose items are JSON already."""
    content: Json = {model.items_field(): list(items)}
    if page.next_page_token:
        content["nextPageToken"] = page.next_page_token
    if page.passed_over:
        content["lookedThrough"] = page.read
    return json_response(content)


def choose_format(request: Request, response: Response) -> Response:
    """Return a page of a list in the format that a request asks for: JSON, or CSV and the next page as a link."""
    response.vary.add("Accept")
    if request.accept_mimetypes.best_match(("application/json", "text/csv")) != "text/csv":
        return response
    page = json.loads(response.get_data())
    is_first = not request.args.get("pageToken")
    text = write_csv(page, has_header=is_first)
    if text is not None:
        response.set_data(text.encode("utf-8", "replace"))
        response.content_type = f"text/csv; charset=utf-8; header={'present' if is_first else 'absent'}"
        if token := page.get("nextPageToken"):
            query = urlencode({**request.args.to_dict(), "pageToken": token})
            response.headers["Link"] = f'<{request.path}?{query}>; rel="next"'
    return response


def json_response(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Respond with JSON that is not cached and not taken for another content type."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, {"Content-Type": "application/json", **CACHE_HEADERS, **(headers or {})})


CACHE_HEADERS = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
"""Tells browsers and caches to revalidate each response, and not to guess its content type."""
