"""The operations on queues, workers, locks, counts, handlers and usage."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cloudsched.domain.documents.run_counts import is_late
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.responses import overview_responses as responses
from cloudsched.engine.queries.audit_trail import list_audit_entries as list_all_entries
from cloudsched.engine.queries.execution_search import load_execution
from cloudsched.engine.queries.name_search import find_named
from cloudsched.engine.queries.needs import join_needs
from cloudsched.engine.storage.pages import bad_token
from cloudsched.errors import InvalidInput, NotFound
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.handler_operations import list_visible_handlers
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import json_response
from cloudsched.web.api.visibility import AllowedVerbs
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.queries.needs import FoundNeed
    from cloudsched.engine.sweep.shard_sweeps import SweepNote


@operation("GET", "/v1/overview", "Tasks", query=bodies.AnyOwnerQuery, response_schema="OverviewCounts")
def get_overview(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """Count tasks by status, open work, the executions that ended in each recent hour, and list what needs attention.

    The counts are kept for ten seconds. Each ends at 10,000. Users see those of their own tasks.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    found = call.app.container.many_tasks.overview.count(owner)
    needs = join_needs(call.app.container.causes.find(owner), found.needs)
    allowed = AllowedVerbs(call.app, call.caller)
    shown = tuple(
        each.need if _may_act(call, allowed, each) else each.need.model_copy(update={"act": None}) for each in needs
    )
    more = {"sweep": _make_sweep_state(call, found.sweep), "needs": shown}
    return json_response(found.counts.model_copy(update=more).to_wire())


def _may_act(call: ApiCall, allowed: AllowedVerbs, found: FoundNeed) -> bool:
    """Return whether the caller may do what resolves a need."""
    task = found.task
    match found.need.cause:
        case NeedCause.FAILED:
            may_retry = task and found.record and allowed.of_loaded_execution(task, found.record)
            return Verb.RETRY in (may_retry or ())
        case NeedCause.PAUSED:
            return task is not None and Verb.RESUME in allowed.of_task(task)
        case NeedCause.WAITING:
            return task is not None and Verb.SEND_EVENT in allowed.of_task(task)
        case NeedCause.QUEUE_PAUSED | NeedCause.BUDGET_USED_UP:
            return call.caller.has_right(Right.WRITE) and call.caller.visible_owner is None
        case _:
            return call.caller.has_right(Right.WRITE)


@operation("GET", "/v1/changes", "Tasks", query=bodies.AnyOwnerQuery, response_schema="ChangeCursor")
def get_change_cursor(call: ApiCall, query: bodies.AnyOwnerQuery) -> Response:
    """Get a text that is different after any task has changed: a cheap check that a list is still up to date.

    It costs one read. The text also changes each minute, since tasks that were deleted leave no trace.
    Users see whether one of their own tasks has changed.
    """
    container = call.app.container
    last = container.store.search.find_last_change(call.caller.resolve_listed_owner(query.owner))
    minute = int(container.clock.now().timestamp()) // 60
    cursor = hashlib.sha256(f"{minute} {last}".encode()).hexdigest()[:16]
    return json_response(responses.ChangeCursor(cursor=cursor).to_wire())


@operation("GET", "/v1/search", "Tasks", query=bodies.SearchQuery, response_schema="SearchResults")
def search_names(call: ApiCall, query: bodies.SearchQuery) -> Response:
    """Find what has all words of a text in its name: tasks, owners, handlers and labels.

    The nearest name comes first. A word is any part of a title, an id, a handler, an owner or a label, in any case. A
    text that is the whole id of a task, or `TASK/EXECUTION`, also finds that one. Users find only what is theirs.
    Callers who see all tasks find people by the name and the address in their profiles, of which up to 1,000 are
    read. `matchedBy` says how tasks are found: in SQLite by fragments among all, in Firestore with
    `CLOUDSCHED_NAME_INDEX` by the beginnings of words among all. Without it the newest 1,000 are looked at, with a
    read for each: `isComplete` is then false if there are more.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    store = call.app.container.store
    known = [each.name for each in list_visible_handlers(call)]
    found = find_named(store, query.text, owner, known, query.page_size)
    task_id, _, execution_id = query.text.strip().partition("/")
    task, execution = _find_exact(call, task_id, execution_id)
    answer = responses.SearchResults(
        tasks=tuple(map(_show_found, found.tasks)),
        owners=tuple(found.owners),
        handlers=tuple(found.handlers),
        labels=tuple(found.labels),
        task=task and _show_found(task),
        execution=execution,
        is_complete=found.is_complete,
        matched_by=found.match,
    )
    return json_response(answer.to_wire())


def _find_exact(call: ApiCall, task_id: str, execution_id: str) -> tuple[Task | None, responses.FoundRun | None]:
    """Return the task with an id, or its execution with another one, if the caller may see it."""
    try:
        task = call.app.get(task_id)
        if not execution_id:
            return task, None
        load_execution(call.app.container.engine, task, execution_id)
    except (NotFound, InvalidInput):
        return None, None
    return None, responses.FoundRun(task_id=task.id, execution_id=execution_id, title=task.title)


def _show_found(task: Task) -> responses.FoundTask:
    return responses.FoundTask(
        id=task.id, title=task.title, owner=task.owner, handler=task.handler, status=task.status, labels=task.labels
    )


@operation("GET", "/v1/audit", "Tasks", query=bodies.AuditListQuery, response_schema="AuditPage")
def list_audit_entries(call: ApiCall, query: bodies.AuditListQuery) -> Response:
    """List who did what, the latest first: `GET /v1/tasks/{taskId}/history` of all tasks, and more.

    Deletions of tasks, and what was done to budgets and to queues in Cloud Tasks, are kept for 400 days. A page reads
    the tasks that were acted on last, up to 1,000, with a read for each. `isComplete` is false if that did not suffice:
    older actions are then missing. The other actions on a task go when the task is removed. Users see those on their
    own tasks and budgets.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    found = list_all_entries(call.app.container.store, query.to_audit_query(owner), **query.to_arguments())
    shown = tuple(
        responses.AuditEntry(
            **dict(each.entry), task_id=each.task_id, title=each.title, owner=each.owner, queue=each.queue
        )
        for each in found.items
    )
    page = responses.AuditPage(entries=shown, next_page_token=found.next_page_token, is_complete=found.is_complete)
    return json_response(page.to_wire())


def _make_sweep_state(call: ApiCall, note: SweepNote | None) -> responses.SweepState | None:
    if note is None or call.caller.visible_owner is not None:
        return None
    now = call.app.container.clock.now()
    lag = max(0.0, (now - note.updated_at).total_seconds())
    counts = {name: getattr(note, name) for name in ("examined", "dispatched", "unsent", "failed")}
    hanging = call.app.container.hanging or None
    seen = tuple(responses.SeenDeployment(version=each.version, at=each.at) for each in note.deployments)
    return responses.SweepState(
        finished_at=note.updated_at,
        lag=lag,
        is_late=is_late(note.updated_at, now),
        hanging=hanging,
        deployments=seen,
        **counts,
    )


def _decode_key(token: str | None) -> str:
    try:
        return bytes.fromhex(token or "").decode()
    except ValueError as error:
        raise bad_token() from error
