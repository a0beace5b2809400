"""The operations that create, read, change and delete tasks.

A task can be created again safely with an `id` of the caller's own or with an ``Idempotency-Key``
(draft-ietf-httpapi-idempotency-key-header). The key, the owner and whether a user sends it make the task's id,
so a user's key neither finds nor blocks a server's task. See `domain.transitions.idempotency`.

Users cannot see each other's tasks, so the ids that they choose must not collide. Each id is prefixed with a
hash of the owner unless it already has that prefix.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar

from werkzeug.wrappers import Response

from cloudsched.domain.documents.authority import SYSTEM_OWNER, Requesters
from cloudsched.domain.documents.batch_change import BatchChange, RetryFilter, TaskFilter
from cloudsched.domain.documents.task import Task, owner_id_prefix
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.responses.api_responses import DRAFT_TOKEN
from cloudsched.domain.schedules.assumptions import note_assumptions
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.domain.transitions.needs import NEVER, find_answer_time, find_needs
from cloudsched.domain.transitions.task_draft import has_schedule_text
from cloudsched.engine.queries import explanations as explain
from cloudsched.engine.queries.task_search import search_tasks
from cloudsched.engine.tasks.read_back import list_assumed, read_back
from cloudsched.errors import InvalidInput, QuotaExceeded, UnreadableDocument
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.dry_run import validate_only
from cloudsched.web.api.etags import compute_etag, includes_tag
from cloudsched.web.api.idempotency_keys import IDEMPOTENCY_HEADER, mark_change, read_idempotency_key
from cloudsched.web.api.operation import ApiCall, Preset, operation
from cloudsched.web.api.problems import render_problem
from cloudsched.web.api.responses import (
    Json,
    json_response,
    make_tree,
    page_response,
    show_receipt,
    task_response,
    task_to_json,
)
from cloudsched.web.api.visibility import AllowedVerbs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pydantic import BaseModel

    from cloudsched.app import App
    from cloudsched.domain.schedules.assumptions import Notes
    from cloudsched.web.auth.roles import Caller

MAX_THREADS = 8
"""The number of a batch's tasks that are created concurrently. Threads wait for store and queue, not the CPU."""


def create_batch(
    app: App,
    caller: Caller,
    contents: Sequence[dict[str, Any]],
    key: str | None,
) -> list[dict[str, Any]]:
    """Create tasks and return a result for each, in the same order: its status with a ``task`` or a ``problem``.

    With an idempotency key, each task is safe to repeat: its id identifies it, or else the key and its
    index in the batch. If the caller's quota does not suffice, the first tasks are created. Once one has
    been refused, no later one is created, so that their refusals cost no counting query.
    """
    refusal: QuotaExceeded | None = None

    def create(index: int) -> dict[str, Any]:
        nonlocal refusal
        try:
            with note_assumptions() as notes:
                task, is_new = create_or_edit(app, caller, contents[index], key, index, refusal)
        except Exception as error:  # noqa: BLE001 - each task has its own result, and server errors are logged
            if isinstance(error, QuotaExceeded):
                refusal = error
            response = render_problem(error, f"#/tasks/{index}")
            return {"status": response.status_code, "problem": json.loads(response.get_data())}
        told = _read_back(contents[index], task, notes)
        status = 201 if is_new else 200
        return {"status": status, "task": {**task_to_json(task), **told, **show_receipt(app, task)}}

    if len(contents) == 1:
        return [create(0)]

    room = len(contents)
    if caller.visible_owner is not None:
        room = app.container.quotas.count_room(caller.visible_owner, room)
    with ThreadPoolExecutor(min(MAX_THREADS, len(contents)), thread_name_prefix="batch") as threads:
        context = copy_context()

        def create_together(indexes: Iterable[int]) -> list[dict[str, Any]]:
            return list(threads.map(lambda index: context.copy().run(create, index), indexes))

        results = create_together(range(room))
        while len(results) < len(contents) and refusal is None:  # tasks that exist already have taken no room
            results.append(create(len(results)))
        return [*results, *create_together(range(len(results), len(contents)))]


def _read_back(content: dict[str, Any], task: Task, notes: Notes) -> Json:
    """Return the fields that an answer adds to explain the schedule of the request."""
    assumed = list_assumed(content, task, notes.assumed, notes.language)
    told = read_back(task, assumed, notes.language)
    return {} if told is None else {"readBack": told.to_wire()}


def _validate(call: ApiCall, content: dict[str, Any], act: Callable[[App], Task]) -> Response:
    with note_assumptions() as notes:
        return validate_only(call, act, lambda task: _read_back(content, task, notes))


CHANGE: Final[Preset] = {"accepts_idempotency_key": True, "is_conditional": True, "error_statuses": (409,)}
"""The options that all changes of a task share."""
REVIVAL: Final[Preset] = {**CHANGE, "error_statuses": (409, 429)}
"""The same for changes that may start an ended task again. Quotas limit these as they limit creations."""


@operation(
    "POST",
    "/v1/tasks",
    "Tasks",
    query=bodies.ValidateQuery,
    content=bodies.NewTask,
    accepts_idempotency_key=True,
    success_statuses=(201, 200),
    response_schema="Task",
    error_statuses=(409, 429),
)
def create_task(call: ApiCall, query: bodies.ValidateQuery) -> Response:
    """Create a task (201), or edit the task with the same id (200).

    Without a schedule, the task runs once, now. Three things make the request safe to repeat: an `id` of
    your own, an `Idempotency-Key`, or the `draftToken` of a draft that you confirm. The same request
    again then returns the task as it is now. A user's `id` is prefixed with a hash of the owner: use the
    `id` of the response from then on.
    """
    content = call.read_content()
    key = read_idempotency_key(call.request)
    if query.is_only_validation:
        return _validate(call, content, lambda app: create_or_edit(app, call.caller, content, key)[0])

    with note_assumptions() as notes:
        task, is_new = create_or_edit(call.app, call.caller, content, key)
    status = 201 if is_new else 200
    location = {"Location": f"{call.request.root_path}/v1/tasks/{task.id}"}
    told = _read_back(content, task, notes)
    return task_response(call, task, status, location, {**told, **show_receipt(call.app, task)})


@operation(
    "POST",
    "/v1/tasks/batchCreate",
    "Tasks",
    body=bodies.BatchCreateRequest,
    accepts_idempotency_key=True,
    response_schema="BatchResults",
)
def batch_create_tasks(call: ApiCall, body: bodies.BatchCreateRequest) -> Response:
    """Create up to 50 tasks with one request.

    Each task succeeds or fails on its own. The response has status 200 and one result for each task, in
    the order of the request. Tasks with an `id` are safe to repeat, and an `Idempotency-Key` makes the
    others so.
    """
    key = read_idempotency_key(call.request)
    return json_response({"results": create_batch(call.app, call.caller, body.tasks, key)})


@operation("GET", "/v1/tasks", "Tasks", query=bodies.TaskListQuery, response_schema="TaskPage")
def list_tasks(call: ApiCall, query: bodies.TaskListQuery) -> Response:
    """List tasks, the newest or the soonest first.

    All given filters must match. As long as the response has a `nextPageToken`, repeat the request with
    it and the same filters. With `handler` and the soonest first, with `search` and with `calls=false`, a
    page looks through at most 1,000 tasks: it may be shorter than `pageSize`, even empty, and have a
    `nextPageToken`. `lookedThrough` says how many it has read.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    store, now = call.app.container.store, call.app.container.clock.now()
    page = search_tasks(store, query.to_task_query(owner), query.to_task_search(now), **query.to_arguments())
    allowed = AllowedVerbs(call.app, call.caller)

    def show(task: Task) -> Json:
        shown = task_to_json(task)
        if needs := find_needs(task, now):
            shown["needs"] = needs
        if (until := find_answer_time(task, now)) not in {None, NEVER}:
            shown["givesUpAt"] = until.isoformat().replace("+00:00", "Z")
        shown["allowedVerbs"] = allowed.of_task(task)
        return shown

    return page_response(responses.TaskPage[Json], page, map(show, page.items))


@operation(
    "GET",
    "/v1/tasks/{taskId}",
    "Tasks",
    query=bodies.ReceiptQuery,
    success_statuses=(200, 304),
    response_schema="Task",
)
def get_task(call: ApiCall, query: bodies.ReceiptQuery) -> Response:
    """Get a task.

    `lastResult` and `lastError` are those of its last execution, which costs one read more. `needs` has the causes for
    which it needs attention now. The `ETag`
    identifies the task's state. With `If-None-Match`, an unchanged task is answered with 304. Leave that out where
    you ask for its receipt, which may have changed all the same.
    """
    task = call.app.get(call.task_id)
    if includes_tag(call.request.if_none_match, compute_etag(task)):
        return task_response(call, task)
    receipt = show_receipt(call.app, task) if query.receipt == "true" else {}
    needs = find_needs(task, call.app.container.clock.now())
    more = {**_show_last_execution(call.app, task), **receipt, **({"needs": needs} if needs else {})}
    return task_response(call, task, more=more)


def _show_last_execution(app: App, task: Task) -> Json:
    """Return the result and the error of a task's last execution, as its own answer has them."""
    if task.last_execution_id is None:
        return {}
    try:
        record = app.container.store.load_execution(task.id, task.last_execution_id)
    except UnreadableDocument:  # its own answer says why
        return {}
    if record is None:
        return {}
    shown = record.to_wire()
    names = {"lastResult": "content", "lastError": "error"}
    return {name: shown[field] for name, field in names.items() if field in shown}


@operation(
    "PATCH",
    "/v1/tasks/{taskId}",
    "Tasks",
    query=bodies.ValidateQuery,
    is_patch=True,
    response_schema="Task",
    **REVIVAL,
)
def update_task(call: ApiCall, query: bodies.ValidateQuery) -> Response:
    """Edit a task by JSON merge patch (RFC 7396).

    The fields that you name change. `null` restores a field's default. A schedule or a payload is
    replaced as a whole: a schedule without a `timezone` stays in the task's, and a payload that leaves
    out a field that is set is refused. With `If-Match` or an `Idempotency-Key`, the same request again
    returns the task as it is now. With a `draftToken`, the fields have to be those that the draft showed. Only there,
    `operation` pauses, resumes, cancels, deletes or triggers the task. A deleted task is returned as it was.
    """
    content = call.read_content()
    mark = mark_change(call, "edit", content, has_words=has_schedule_text(content))

    def act(app: App) -> Task:
        if DRAFT_TOKEN not in content:
            return app.patch(call.task_id, content, mark=mark)
        owner = app.get(call.task_id).owner
        words = app.container.feature("words")
        confirmed: Task
        confirmed, _is_new = words.confirm(app, content, call.caller.subject, owner, call.task_id)
        return confirmed

    if query.is_only_validation:
        return _validate(call, content, act) if _names_schedule(content) else validate_only(call, act)
    with note_assumptions() as notes:
        task = act(call.app)
    told = _read_back(content, task, notes) if _names_schedule(content) else {}
    return task_response(call, task, more={**told, **show_receipt(call.app, task)})


def _names_schedule(content: dict[str, Any]) -> bool:
    return content.get("schedule") is not None or "timezone" in content


@operation("DELETE", "/v1/tasks/{taskId}", "Tasks", success_statuses=(204,), **CHANGE)
def delete_task(call: ApiCall) -> Response:
    """Delete a task and its executions.

    A running handler is not interrupted, and its result is discarded.
    """
    call.app.marked(mark_change(call, "delete")).delete(call.task_id)
    return Response(status=204)


@operation("GET", "/v1/tasks/{taskId}/tree", "Tasks", query=bodies.TreeFilter, response_schema="Tree")
def tree(call: ApiCall, query: bodies.TreeFilter) -> Response:
    """Get a task with the calls below it.

    A large tree is cut: `omittedChildren` says how many calls were omitted at each task.
    """
    tree = call.app.tree(call.task_id, query.execution_id)
    return json_response(make_tree(tree, AllowedVerbs(call.app, call.caller)).to_wire())


@operation("GET", "/v1/tasks/{taskId}/history", "Tasks", response_schema="TaskHistory")
def get_history(call: ApiCall) -> Response:
    """List the manual changes of a task, with their authors and times, the latest first.

    50 entries are kept, or fewer if they are large, so that no one can push out the changes of others. Values of fields
    are shown as JSON of up to 200 characters, or 600 for schedules. Those of payloads, code, free texts
    and callbacks are not shown.
    """
    task = call.app.get(call.task_id)
    shown = responses.TaskHistory(entries=task.history[::-1], omitted_entries=task.omitted_history)
    return json_response(shown.to_wire())


@operation(
    "GET",
    "/v1/tasks/{taskId}/explain",
    "Tasks",
    query=bodies.ExplainQuery,
    response_schema="Explanation",
)
def explain_task(call: ApiCall, query: bodies.ExplainQuery) -> Response:
    """Explain why a task runs when it does, or does not run. With `at`, explain the day of that instant.

    The answer begins with one sentence. The evidence follows: open runs, locks, workers, retries, pauses,
    overlaps, calendars, and the pending work of the sweep. For another day it is the records, pauses,
    edits, clock changes, and the schedule of that time. Only callers who see the tasks of all owners
    learn which tasks hold a lock.
    """
    container = call.app.container
    found = explain.explain_task(
        container.store,
        container.clock,
        call.app.get(call.task_id),
        shows_holders=call.caller.visible_owner is None,
        at=query.at,
        conditions=container.conditions,
    )
    return json_response(found.to_wire())


_NAMES: Final = ", ".join(sorted(field.alias or name for name, field in TaskFilter.model_fields.items()))


@operation(
    "POST",
    "/v1/tasks/batchChange",
    "Tasks",
    body=bodies.BatchChangeRequest,
    accepts_idempotency_key=True,
    success_statuses=(200, 202),
    response_schema="TaskCount",
    error_statuses=(429,),
)
def batch_change_tasks(call: ApiCall, body: bodies.BatchChangeRequest) -> Response:
    """Pause, resume, cancel, retry or delete all tasks that match a filter.

    With `dryRun`, the answer is their present number, as far as 500 tasks have it (200). Otherwise a task is
    created that changes them (202). Its payload has the outcome: the counts so far and, in the end, the state.
    Each task is changed with the rights that you have at that time. Tasks that are newer than the request, or
    match no longer, stay as they are. A pause with `until` ends by itself, as that of one task does, and
    concerns what is active. Results that were made before a pause are still delivered, and retried: to hold
    these as well, pause the dispatch queues. An `Idempotency-Key` makes the request safe to repeat. Users may
    have five open requests.
    """
    chosen = read_batch_filter(call, TaskFilter, body.filter)
    if chosen is None:
        raise InvalidInput("filter", "is empty, and would match every task", f"Give one or more of {_NAMES}.")
    change = BatchChange(action=body.action, filter=chosen, until=body.until)
    changes = call.app.container.many_tasks.batch_changes
    key = read_idempotency_key(call.request)
    owner = find_batch_owner(call)
    if body.dry_run:
        return json_response(changes.preview(change, owner).to_wire())
    started = changes.start(change, owner, key, call.authority.actor)
    return task_response(call, started, 202)


F = TypeVar("F", TaskFilter, RetryFilter)


def read_batch_filter(call: ApiCall, kind: type[F], given: BaseModel) -> F | None:
    """Return the filter of a batch, of the caller's own tasks if they see no others. None if it is empty."""
    chosen = kind(**{name: getattr(given, name) for name in given.model_fields_set})
    if not chosen.to_wire():
        return None
    if call.caller.visible_owner is not None:
        return chosen.model_copy(update={"owner": call.caller.resolve_owner(chosen.owner)})
    return chosen


def find_batch_owner(call: ApiCall) -> str:
    """Return the owner of the task that makes the caller's batch."""
    return SYSTEM_OWNER if call.caller.requesters is Requesters.SERVERS else str(call.caller.owner)


def create_or_edit(
    app: App,
    caller: Caller,
    content: dict[str, Any],
    key: str | None,
    batch_index: int | None = None,
    refusal: QuotaExceeded | None = None,
) -> tuple[Task, bool]:
    """Create a task, or edit the one with the same id. Return it, and whether it is new.

    Each index of a batch makes another key of the request's `key`, for tasks without an id. None equals
    the key of a single request. A `refusal` is the reason why no new task may be created, if it is known
    already.
    """
    owner = caller.resolve_owner(content.get("owner"))
    if DRAFT_TOKEN in content and batch_index is None:  # the token makes it safe to repeat
        words = app.container.feature("words")
        created: tuple[Task, bool] = words.confirm(app, content, caller.subject, str(owner or SYSTEM_OWNER))
        return created

    content = {**content}
    if owner is not None:
        content["owner"] = owner
    requested_id = content.get("id")
    if refusal is not None and key is None and requested_id is None and not _derives_id(app, content):
        raise refusal  # it is certainly new, so it is not even read
    if key is not None and requested_id is not None and batch_index is None:
        hint = "A request with an id is already safe to repeat; omit one of the two."
        raise InvalidInput(IDEMPOTENCY_HEADER, "cannot be combined with an id", hint)

    if key is not None and requested_id is None:
        scope: list[object] = [owner, key] if batch_index is None else [owner, key, batch_index]
        if caller.visible_owner is not None:  # users take no keys of servers that make tasks for them
            scope = ["user", *scope]
        return app.put_by_key(content, scope, refusal)

    if caller.visible_owner is not None and isinstance(requested_id, str):
        prefix = owner_id_prefix(caller.visible_owner)
        content["id"] = prefix + requested_id.removeprefix(prefix)
    if requested_id is None:
        return app.put_content(content, refusal=refusal)
    mark = RequestMark.of_content([caller.requesters, content], depends_on_time=has_schedule_text(content))
    return app.put_content(content, mark=mark, refusal=refusal)


def _derives_id(app: App, content: dict[str, Any]) -> bool:
    return app.container.registry.derives_id(content.get("handler"))
