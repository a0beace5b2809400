"""Responses: a task, an occurrence or a page of a list, in JSON, and the ETags of tasks.

An ETag identifies a task's state so that an edit can depend on it (RFC 9110, section 13.1.1). A tag is a hash of the
stored task. States with equal content have equal tags, and all others have different ones. So an edit that names a tag
applies only to the state that its caller has seen, even while the executor changes the task.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from werkzeug.http import parse_etags, quote_etag
from werkzeug.wrappers import Request, Response

from cloudsched.domain.documents.task import PublicTask, Task, get_open_status
from cloudsched.domain.recurrence import time_zones as zones
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.responses import overview_responses
from cloudsched.domain.transitions.definitions import describe_bound_runs
from cloudsched.domain.transitions.offers import list_offered_runs
from cloudsched.domain.transitions.run_records import drop_latest_run, keep_recent
from cloudsched.errors import InvalidInput, PreconditionFailed
from cloudsched.web.api.visibility import AllowedVerbs

if TYPE_CHECKING:
    from werkzeug.datastructures import ETags

    from cloudsched.domain.documents.execution import ExecutionStatus
    from cloudsched.domain.documents.person import Person
    from cloudsched.engine.child_tasks import Tree
    from cloudsched.engine.storage.pages import Page
    from cloudsched.web.api.operation import ApiCall

Json = dict[str, Any]


def show_task(task: Task) -> responses.Task:
    """Return a stored task as callers see it. It was validated when it was read."""
    state = task.__dict__
    offered = list_offered_runs(task)
    return _blank().model_copy(  # a third of the time that `model_construct` takes
        update={
            **{name: state[name] for name in PublicTask.model_fields},
            "message": _message(task),
            "is_running": any(run.lease for run in task.runs),
            "offered_at": offered[0].due_at if offered else None,
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
    is_again = any(run.execution_id == task.last_execution_id for run in runs)
    return keep_recent(drop_latest_run(task.recent_outcomes) if is_again else task.recent_outcomes, *open_ones)


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


OMITTED_FOR_WORKERS = frozenset({"payload", "description", "purpose", "source", "children", "script", "events"})
"""The fields of a task that a worker gets with the claim, but not in later responses."""


def task_to_json(task: Task) -> dict[str, Any]:
    """Return a task as callers see it."""
    return show_task(task).to_wire()


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


def make_tree(tree: Tree, allowed: AllowedVerbs) -> responses.Tree[Json]:
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


def page_response(model: type[responses.Page], page: Page[Any], items: Iterable[Json]) -> Response:
    """Respond with a page of a list, whose items are JSON already."""
    content: Json = {model.items_field(): list(items)}
    if page.next_page_token:
        content["nextPageToken"] = page.next_page_token
    if page.passed_over:
        content["lookedThrough"] = page.read
    return json_response(content)


def json_response(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Respond with JSON that is not cached and not taken for another content type."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, {"Content-Type": "application/json", **CACHE_HEADERS, **(headers or {})})


CACHE_HEADERS = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
"""Tells browsers and caches to revalidate each response, and not to guess its content type."""

TAGS_PATTERN = r'^(\*|(W/)?"[\x21\x23-\x7e]*"( ?, ?(W/)?"[\x21\x23-\x7e]*")*)$'
"""One ``*``, or some entity tags (RFC 9110, section 8.8.3)."""
_TAGS = re.compile(TAGS_PATTERN)


def compute_etag(stored: Task | Person) -> str:
    """Return the tag of a task's or a person's state, without quotes."""
    if not isinstance(stored, Task):
        return stored.etag
    content = stored.model_dump_json(by_alias=True, exclude_none=True, exclude={"usage"})
    return f"{stored.revision}-{hashlib.sha256(content.encode()).hexdigest()[:20]}"


def parse_if_match(request: Request) -> Callable[[Task | Person | None], None] | None:
    """Return a function that checks a task or a person against the request's ``If-Match``. None if it has none.

    The function raises PreconditionFailed, also for what does not exist. Raises InvalidInput if it is no list of tags.
    """
    given = request.headers.get("If-Match")
    if given is None:
        return None
    require_tags("If-Match", given)
    tags = parse_etags(given)

    def check(stored: Task | Person | None) -> None:
        if stored is None or not includes_tag(tags, compute_etag(stored)):
            raise PreconditionFailed(f"task {stored.id}" if isinstance(stored, Task) else "The person")

    return check


def includes_tag(tags: ETags, own: str) -> bool:
    """Return whether a list of tags names a state, also by its tag as a proxy that compresses has written it.

    nginx makes it weak, Apache and Caddy append the encoding, as in ``"1-2ab-gzip"``. RFC 9110 compares such tags of
    ``If-Match`` only byte by byte (section 13.1.1), for a server whose tags name bytes. Ours name a state, whatever
    became of its bytes on the way.
    """
    given = filter(None, tags.as_set(include_weak=True))  # werkzeug reads an empty one as None
    return tags.star_tag or any(tag == own or tag.startswith(f"{own}-") for tag in given)


def require_tags(header: str, value: str) -> None:
    """Check that a header's value is a list of tags. Raises InvalidInput."""
    if not _TAGS.fullmatch(value):
        raise InvalidInput(
            header, "is not a list of ETags", 'Give the ETag header of a response unchanged, as in "1-2ab".'
        )
