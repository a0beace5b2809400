"""The operations on executions, upcoming occurrences and delivered messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.batch_change import BatchRetry, RetryFilter
from cloudsched.domain.documents.log_lines import RunLog
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.responses import overview_responses
from cloudsched.domain.transitions.planning import upcoming_occurrences
from cloudsched.engine.queries.execution_search import (
    FoundExecution,
    find_executions_with_tasks,
    load_execution,
    load_sealed_log,
)
from cloudsched.engine.queries.execution_search import list_executions as list_task_executions
from cloudsched.engine.queries.occurrences import OccurrenceQuery
from cloudsched.engine.queries.occurrences import list_occurrences as list_coming
from cloudsched.engine.queries.overview import count_days
from cloudsched.engine.queries.overview import summarize_failures as sum_up_failures
from cloudsched.errors import Forbidden, InvalidInput, NotFound
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import (
    json_response,
    make_occurrence,
    make_task_occurrence,
    page_response,
    task_response,
)
from cloudsched.web.api.task_operations import find_batch_owner, read_batch_filter, read_idempotency_key
from cloudsched.web.api.visibility import AllowedVerbs

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.engine.engine_context import EngineContext

MAX_UNREAD = 1000
"""The largest number of unread messages that are counted."""


@operation("GET", "/v1/tasks/{taskId}/upcoming", "Executions", query=bodies.Count, response_schema="OccurrenceList")
def upcoming(call: ApiCall, query: bodies.Count) -> Response:
    """List a task's next occurrences.

    They are those that have not been claimed yet, without jitter. There are none unless the task is `ACTIVE`.
    """
    task = call.app.get(call.task_id)
    times = upcoming_occurrences(task, query.count)
    shown = tuple(make_occurrence(at, task.timezone) for at in times)
    return json_response(responses.OccurrenceList(occurrences=shown).to_wire())


@operation(
    "GET", "/v1/tasks/{taskId}/executions", "Executions", query=bodies.PageQuery, response_schema="ExecutionPage"
)
def list_executions(call: ApiCall, query: bodies.PageQuery) -> Response:
    """List a task's executions, the latest first.

    Each occurrence that came due has one execution. As long as the response has a `nextPageToken`, repeat the request
    with it. Get a single execution to see the definition that it ran.
    """
    task, allowed = call.app.get(call.task_id), AllowedVerbs(call.app, call.caller)
    page = list_task_executions(call.app.container.engine, task, **query.to_arguments())
    shown = ({**_show_listed(each), "allowedVerbs": allowed.of_execution(task, each)} for each in page.items)
    return page_response(responses.ExecutionPage, page, shown)


@operation("GET", "/v1/occurrences", "Executions", query=bodies.OccurrenceListQuery, response_schema="OccurrencePage")
def list_occurrences(call: ApiCall, query: bodies.OccurrenceListQuery) -> Response:
    """List the upcoming occurrences of all tasks, the soonest first.

    They are those that have not been claimed yet, without jitter. Each request reads only tasks whose next occurrence
    is before `until`, at most 1000 tasks or 4 MB. If there are more, some occurrences after `completeUntil` are
    missing. As long as the response has a `nextPageToken`, repeat the request with it and the same filters.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    wanted = OccurrenceQuery(query.until, owner, query.since, query.handler, query.label, query.category)
    found = list_coming(call.app.container.store, wanted, query.page_size, query.page_token or None)
    shown = tuple(make_task_occurrence(at, task) for at, task in found.items)
    page = overview_responses.OccurrencePage(
        occurrences=shown, next_page_token=found.next_page_token, complete_until=found.complete_until
    )
    return json_response(page.to_wire())


@operation("GET", "/v1/executions", "Executions", query=bodies.ExecutionListQuery, response_schema="ExecutionPage")
def find_executions(call: ApiCall, query: bodies.ExecutionListQuery) -> Response:
    """List executions of all tasks: first those that failed, then those that run, then all others.

    All given filters must match. Give at most one of `handler`, `label` and `category`. Each part has the latest first.
    Results and steps are left out: get a single execution to see them. Executions of deliveries are not listed. As long
    as the response has a `nextPageToken`, repeat the request with it and the same filters. A page that looked through
    many executions may be shorter, even empty (docs/reference/http.md). A task with many open runs may make it longer
    than `pageSize`. Occurrences that never ran share a record, which is listed at its first one (`covers`): a day in
    its range may be empty. `GET /v1/tasks/{taskId}/explain` says what was on that day.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    search, allowed = call.app.container.store.search, AllowedVerbs(call.app, call.caller)
    only = query.to_execution_filter()
    page = find_executions_with_tasks(search, query.to_execution_query(owner), only=only, **query.to_arguments())
    return page_response(responses.ExecutionPage, page, (_show_found(each, allowed) for each in page.items))


@operation(
    "GET", "/v1/executions/counts", "Executions", query=bodies.ExecutionCountQuery, response_schema="ExecutionCounts"
)
def count_executions(call: ApiCall, query: bodies.ExecutionCountQuery) -> Response:
    """Count the executions that ended on each day: those that failed, and all others.

    Each count ends at 10,000, and costs one read for each 1,000. The first and the last day may be parts of days. Users
    see the counts of their own tasks. Occurrences that never ran share a record, which counts once, on the day of its
    first one.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    zone = load_tzinfo(query.timezone)
    search = call.app.container.store.search
    days = count_days(search, query.to_execution_query(owner), query.since, query.until, zone)
    return json_response(overview_responses.ExecutionCounts(days=days).to_wire())


@operation(
    "GET", "/v1/executions/failures", "Executions", query=bodies.ExecutionFilterQuery, response_schema="FailureSummary"
)
def summarize_failures(call: ApiCall, query: bodies.ExecutionFilterQuery) -> Response:
    """Summarize the failures among matching executions: their number, and groups of them.

    A group has the same type of error at the same place. The filters are those of the list. The latest 500 failures are
    read, with one read for each.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    search = call.app.container.store.search
    found = sum_up_failures(search, query.to_execution_query(owner), query.to_execution_filter())
    return json_response(found.to_wire())


@operation(
    "POST",
    "/v1/executions/batchRetry",
    "Executions",
    body=bodies.BatchRetryRequest,
    accepts_idempotency_key=True,
    success_statuses=(200, 202),
    response_schema="RetryCount",
    error_statuses=(429,),
)
def batch_retry_executions(call: ApiCall, body: bodies.BatchRetryRequest) -> Response:
    """Retry all failed executions that match a filter, each with one more attempt.

    With `dryRun`, the answer is their present number and the first ten (200). Otherwise a task is created that retries
    them (202). Its execution has the progress and, in the end, the counts. Cancel that task to stop the retries.
    Executions that are newer than the request, or that are no longer failed, stay as they are. So do calls: retry the
    executions that made them. An `Idempotency-Key` makes the request safe to repeat. Users may have five open requests.
    """
    chosen = read_batch_filter(call, RetryFilter, body.filter)
    if chosen is None:
        raise InvalidInput("filter", "is empty, and would match every failure", "Give one filter or more.")
    changes, key = call.app.container.many_tasks.batch_changes, read_idempotency_key(call.request)
    if body.dry_run:
        return json_response(changes.count_retries(chosen).to_wire())
    batch = BatchRetry(executions=chosen)
    started = changes.start_retry(batch, find_batch_owner(call), key, call.authority.actor)
    return task_response(call, started, 202)


def _show_found(found: FoundExecution, allowed: AllowedVerbs) -> dict[str, Any]:
    """Return an execution in a list across tasks as JSON, with its allowed verbs if they are known."""
    verbs = allowed.of_found_execution(found)
    shown = _show_listed(found.execution)
    return shown if verbs is None else {**shown, "allowedVerbs": verbs}


def _show_listed(execution: Execution) -> dict[str, Any]:
    """Return an execution in a list as JSON, without the definition that it ran, which may be as large as its task."""
    return {name: value for name, value in execution.to_wire().items() if name != "beganWith"}


@operation("GET", "/v1/tasks/{taskId}/executions/{executionId}", "Executions", response_schema="Execution")
def get_execution(call: ApiCall) -> Response:
    """Get an execution.

    The record of one occurrence's run, with its attempts, its result or its error.
    """
    task = call.app.get(call.task_id)
    execution = load_execution(call.app.container.engine, task, call.path["executionId"])
    verbs = AllowedVerbs(call.app, call.caller).of_loaded_execution(task, execution)
    return json_response({**execution.to_wire(), "allowedVerbs": verbs})


@operation("GET", "/v1/tasks/{taskId}/executions/{executionId}/logs", "Executions", response_schema="ExecutionLogs")
def get_execution_logs(call: ApiCall) -> Response:
    """Get the lines that an execution has logged.

    The answer has the latest lines of all attempts, also while one is running: up to 200, with 16 KiB of text. Callers
    who see the tasks of all owners may always read them. A task's owner may if the handler says so (`logs="owner"`).
    """
    task, execution_id, engine = call.app.get(call.task_id), call.path["executionId"], call.app.container.engine
    is_restricted = call.caller.visible_owner is not None
    if is_restricted:
        _require_shows_logs(engine, task.handler)
    handler, sealed = load_sealed_log(engine, task, execution_id)
    if is_restricted:
        _require_shows_logs(engine, handler)  # the task may have been edited since it logged
    found = engine.logs.read(task.id, execution_id, sealed)
    shown = found or RunLog()
    logs = responses.ExecutionLogs(lines=shown.lines, omitted_lines=shown.omitted_lines, is_unreadable=found is None)
    return json_response(logs.to_wire())


def _require_shows_logs(engine: EngineContext, handler: str | None) -> None:
    logged_by = engine.registry.find(handler)
    if logged_by is None or not logged_by.owners_see_logs:
        raise Forbidden("What this handler logs is for those who see the tasks of all owners.")


@operation("GET", "/v1/inboxes/{owner}/messages", "Inboxes", query=bodies.PageQuery, response_schema="MessagePage")
def list_messages(call: ApiCall, query: bodies.PageQuery) -> Response:
    """List the messages in an owner's inbox, the newest first.

    As long as the response has a `nextPageToken`, repeat the request with it.
    """
    owner = call.path["owner"]
    call.caller.require_inbox(owner)
    page = call.app.inbox(owner, **query.to_arguments())
    return page_response(responses.MessagePage, page, (message.to_wire() for message in page.items))


@operation("POST", "/v1/inboxes/{owner}/messages/{messageId}/read", "Inboxes", response_schema="Message")
def mark_message_read(call: ApiCall) -> Response:
    """Mark a message as read.

    `readAt` is the instant at which it was first marked. A repetition changes nothing.
    """
    owner, key = call.path["owner"], call.path["messageId"]
    call.caller.require_inbox(owner)
    call.authority.require_owner(owner)
    message = call.app.container.store.inbox.mark_read(owner, key, call.app.container.clock.now())
    if message is None:
        raise NotFound("message", key)
    return json_response(message.to_wire())


@operation("GET", "/v1/inboxes/{owner}/unread", "Inboxes", response_schema="UnreadCount")
def count_unread_messages(call: ApiCall) -> Response:
    """Count an owner's unread messages.

    At most 1000 are counted.
    """
    owner = call.path["owner"]
    call.caller.require_inbox(owner)
    unread = call.app.container.store.inbox.count_unread(owner, MAX_UNREAD)
    return json_response(responses.UnreadCount(unread=unread).to_wire())
