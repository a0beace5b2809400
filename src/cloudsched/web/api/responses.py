"""What is answered: a task, an occurrence, a page of a list, in JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from werkzeug.wrappers import Response

from cloudsched.domain.recurrence import time_zones as zones
from cloudsched.domain.transitions.offers import offered_runs
from cloudsched.web.api.etags import quoted_etag

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.children.task_tree import Tree
    from cloudsched.engine.ports.store import Page

INTERNAL = frozenset(
    {
        "events",
        "hasCalled",
        "heard",
        "offer",
        "runs",
        "wakeAt",
        "deferred",
        "deletedAt",
        "backfill",
        "lastAsk",
        "requestMark",
        "overlapped",
        "outcomeOf",
        "plannedTo",
    }
)
"""What a task's document keeps for the scheduler alone."""


_ABOUT = frozenset({"payload", "description", "purpose", "source", "children", "script"})
"""What of a task is told to its worker with the claim, and not again."""


def shown(task: Task) -> dict[str, Any]:
    """Return a task as its callers see it."""
    content = {name: value for name, value in task.to_wire().items() if name not in INTERNAL}
    content["isRunning"] = any(run.lease for run in task.runs)
    if offered := offered_runs(task):
        content["offeredAt"] = instant(offered[0].due_at)
    if task.deferred:
        content["dispatchDeferred"] = True
        content["message"] = f"{task.message} Saved; its dispatch is deferred until the queue can be reached.".strip()
    return content


def ended_answer(task: Task, more: dict[str, Any], *, is_whole: bool) -> Response:
    """Answer who has ended its work on a task; who may not read tasks is told nothing of what it is about."""
    content = {**shown(task), **more}
    if is_whole:
        return json_answer(content, headers={"ETag": quoted_etag(task)})
    return json_answer({name: value for name, value in content.items() if name not in _ABOUT})


def task_answer(task: Task, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with a task, and the ETag of its state."""
    return json_answer(shown(task), status, {"ETag": quoted_etag(task), **(headers or {})})


def tree_shown(tree: Tree) -> dict[str, Any]:
    """Return a task's tree as its callers see it."""
    children = [tree_shown(each) for each in tree.children]
    return {"task": shown(tree.task), "children": children, "leftOut": tree.left_out}


def moment(at: datetime, timezone: str) -> dict[str, str]:
    """Return an instant in UTC and as the clocks of a zone show it."""
    local = at.astimezone(zones.tzinfo(timezone))
    return {"utc": instant(at), "local": local.isoformat()}


def instant(at: datetime) -> str:
    """Return an instant in UTC as all answers have it."""
    return at.isoformat().replace("+00:00", "Z")


def page_answer(name: str, page: Page[Any], items: Iterable[dict[str, Any]]) -> Response:
    """Answer with a page of a list."""
    content: dict[str, Any] = {name: list(items)}
    if page.next_page_token:
        content["nextPageToken"] = page.next_page_token
    return json_answer(content)


def json_answer(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Answer with JSON that nobody may keep or take for something else."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, {"Content-Type": "application/json", **SAFE, **(headers or {})})


SAFE = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
"""What every answer says to browsers and caches: ask again before you show it, and do not guess its kind."""
