"""Responses: a task, an occurrence or a page of a list, in JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

from cloudsched.domain.recurrence import time_zones as zones
from cloudsched.web.api import response_models
from cloudsched.web.api.etags import compute_quoted_etag

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.children.task_tree import Tree
    from cloudsched.engine.ports.store import Page

OMITTED_FOR_WORKERS = frozenset({"payload", "description", "purpose", "source", "children", "script"})
"""The fields of a task that a worker gets with the claim, but not in later responses."""


def task_to_json(task: Task) -> dict[str, Any]:
    """Return a task as callers see it."""
    return response_models.Task.from_stored_task(task).to_wire()


def finished_response(task: Task, more: dict[str, Any], *, can_read_task: bool) -> Response:
    """Respond to a worker's report; a worker that may not read tasks does not see what the task is about."""
    content = {**task_to_json(task), **more}
    if can_read_task:
        return json_response(content, headers={"ETag": compute_quoted_etag(task)})
    return json_response({name: value for name, value in content.items() if name not in OMITTED_FOR_WORKERS})


def task_response(task: Task, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Respond with a task and the ETag of its state."""
    return json_response(task_to_json(task), status, {"ETag": compute_quoted_etag(task), **(headers or {})})


def tree_to_json(tree: Tree) -> dict[str, Any]:
    """Return a task's tree as callers see it."""
    children = [tree_to_json(each) for each in tree.children]
    return {"task": task_to_json(tree.task), "children": children, "omittedChildren": tree.omitted_children}


def occurrence_to_json(at: datetime, timezone: str) -> dict[str, str]:
    """Return an instant in UTC and in the local time of a zone."""
    local = at.astimezone(zones.load_tzinfo(timezone))
    return {"utc": format_instant(at), "local": local.isoformat()}


def format_instant(at: datetime) -> str:
    """Return an instant as responses have it: in UTC, with ``Z``."""
    return at.isoformat().replace("+00:00", "Z")


def page_response(name: str, page: Page[Any], items: Iterable[dict[str, Any]]) -> Response:
    """Respond with a page of a list."""
    content: dict[str, Any] = {name: list(items)}
    if page.next_page_token:
        content["nextPageToken"] = page.next_page_token
    return json_response(content)


def json_response(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Respond with JSON that is not cached and not taken for another content type."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, {"Content-Type": "application/json", **CACHE_HEADERS, **(headers or {})})


CACHE_HEADERS = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
"""Tells browsers and caches to revalidate each response, and not to guess its content type."""
