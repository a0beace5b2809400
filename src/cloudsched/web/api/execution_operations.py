"""The operations on executions and upcoming occurrences."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.batch_change import BatchRetry, RetryFilter
from cloudsched.domain.documents.log_lines import RunLog
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.responses import api_responses as responses
from cloudsched.domain.responses import overview_responses
from cloudsched.domain.transitions.lifecycle import list_to_come
from cloudsched.engine.ports.search import OccurrenceQuery
from cloudsched.engine.queries.due_counts import count_due
from cloudsched.engine.queries.execution_search import (
    FoundExecution,
    find_executions_with_tasks,
    load_execution,
    load_sealed_log,
)
from cloudsched.engine.queries.execution_search import list_executions as list_task_executions
from cloudsched.engine.queries.occurrences import list_occurrences as list_coming
from cloudsched.engine.queries.overview import count_by_time
from cloudsched.engine.queries.time_parts import split_time
from cloudsched.errors import Forbidden, InvalidInput
from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.idempotency_keys import read_idempotency_key
from cloudsched.web.api.operation import ApiCall, operation
from cloudsched.web.api.responses import (
    json_response,
    make_occurrence,
    make_task_occurrence,
    page_response,
    task_response,
)
from cloudsched.web.api.task_operations import find_batch_owner, read_batch_filter
from cloudsched.web.api.visibility import AllowedVerbs

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.engine.engine_context import EngineContext


@operation(
    "GET",
    "/v1/tasks/{taskId}/upcoming",
    "Executions",
    query=bodies.UpcomingCount,
    response_schema="OccurrenceList",
)
def upcoming(call: ApiCall, query: bodies.UpcomingCount) -> Response:
    """List a task's next occurrences.

    They are those that have not been claimed yet, without jitter, and without those that `overlap` or `catchUp`
    leaves out by now. Those of a task that is paused until an instant are from then on. There are none of others that
    are not `ACTIVE`.
    """
    task = call.app.get(call.task_id)
    times = list_to_come(task, call.app.container.clock.now(), query.count)
    shown = tuple(make_occurrence(at, task.timezone) for at in times)
    return json_response(responses.OccurrenceList(occurrences=shown).to_wire())


@operation(
    "GET",
    "/v1/tasks/{taskId}/executions",
    "Executions",
    query=bodies.TaskExecutionsQuery,
    response_schema="ExecutionPage",
)
def list_executions(call: ApiCall, query: bodies.TaskExecutionsQuery) -> Response:
    """List a task's executions, the latest first.

    Each occurrence that came due has one execution. With `status`, a page looks through at most 1,000 of them: it
    may be shorter, even empty. As long as the response has a `nextPageToken`, repeat
    the request with it. Get a single execution to see the definition that it ran.
    """
    task = call.app.get(call.task_id)
    allowed = AllowedVerbs(call.app, call.caller)
    page = list_task_executions(call.app.container.engine, task, **query.to_arguments())
    shown = ({**_show_listed(each), "allowedVerbs": allowed.of_execution(task, each)} for each in page.items)
    return page_response(responses.ExecutionPage, page, shown)


@operation(
    "GET",
    "/v1/occurrences",
    "Executions",
    query=bodies.OccurrenceListQuery,
    response_schema="OccurrencePage",
)
def list_occurrences(call: ApiCall, query: bodies.OccurrenceListQuery) -> Response:
    """List the upcoming occurrences of all tasks that are `ACTIVE`, the soonest first.

    They are those that have not been claimed yet, without jitter. On Firestore, each request reads at most 1000 tasks
    that are due next from its start on and before `until`, 1000 that are due before its start, and 4 MB.
    If there are more, or a task's rule takes too long to search, some occurrences after `completeUntil` are missing.
    As long as the response has a `nextPageToken`, repeat the request with it and the same filters.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    wanted = OccurrenceQuery(query.until, owner, query.since, query.handler, query.label, query.category)
    parts = call.app.container
    is_bounded = not parts.many_tasks.has_free_counts
    found = list_coming(parts.store, wanted, query.page_size, query.page_token or None, is_bounded=is_bounded)
    shown = tuple(make_task_occurrence(at, task) for at, task in found.items)
    page = overview_responses.OccurrencePage(
        occurrences=shown, next_page_token=found.next_page_token, complete_until=found.complete_until
    )
    return json_response(page.to_wire())


@operation(
    "GET",
    "/v1/occurrences/counts",
    "Executions",
    query=bodies.OccurrenceCountQuery,
    response_schema="OccurrenceCounts",
)
def count_occurrences(call: ApiCall, query: bodies.OccurrenceCountQuery) -> Response:
    """Count the upcoming occurrences in each day, hour or quarter of an hour.

    They are those that the list of occurrences has. Beyond 1000 tasks a count is the least that there are. Users see
    the counts of their own tasks.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    edges = split_time(query.since, query.until, load_tzinfo(query.timezone), query.per)
    wanted = OccurrenceQuery(query.until, owner, query.since, query.handler, query.label, query.category)
    found = count_due(call.app.container.store, wanted, edges)
    parts = tuple(
        overview_responses.OccurrencePart(start=start, end=end, due=due)
        for (start, end), due in zip(pairwise(edges), found, strict=True)
    )
    return json_response(overview_responses.OccurrenceCounts(parts=parts).to_wire())


@operation(
    "GET",
    "/v1/executions",
    "Executions",
    query=bodies.ExecutionListQuery,
    response_schema="ExecutionPage",
)
def find_executions(call: ApiCall, query: bodies.ExecutionListQuery) -> Response:
    """List executions of all tasks: first those that failed, then those that run, then all others.

    All given filters must match. Give at most one of `handler`, `label` and `category`. Each part has the
    latest first. Results and steps are omitted: get a single execution to see them. Executions of
    deliveries are not listed. As long as the response has a `nextPageToken`, repeat the request with it
    and the same filters. A page that looked through many executions may be shorter, even empty
    (docs/reference/http.md). A task with many open runs may make it longer than `pageSize`. Occurrences
    that never ran share a record, which is listed at its first one (`covers`): a day in its range may be
    empty. `GET /v1/tasks/{taskId}/explain` says what was on that day.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    page = find_executions_with_tasks(
        call.app.container.store.search,
        query.to_execution_query(owner),
        only=query.to_execution_filter(),
        **query.to_arguments(),
    )
    allowed = AllowedVerbs(call.app, call.caller)
    return page_response(responses.ExecutionPage, page, (_show_found(each, allowed) for each in page.items))


@operation(
    "GET",
    "/v1/executions/counts",
    "Executions",
    query=bodies.ExecutionCountQuery,
    response_schema="ExecutionCounts",
)
def count_executions(call: ApiCall, query: bodies.ExecutionCountQuery) -> Response:
    """Count the executions that ended in each day, hour or quarter: ran, failed, skipped, and calls.

    The first and the last part may be shorter. Users see the counts of their own tasks. Occurrences that
    never ran share a record, which counts as many as it covers, in the part of its first one. A count costs
    one read for each 1,000.
    """
    owner = call.caller.resolve_listed_owner(query.owner)
    zone = load_tzinfo(query.timezone)
    search = call.app.container.store.search
    wanted = query.to_execution_query(owner)
    found = count_by_time(search, wanted, query.since, query.until, zone, query.per)
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

    With `dryRun`, the answer is their present number and the first ten (200). Otherwise a task is created
    that retries them (202). Its payload has the outcome: the counts so far and, in the end, the state. Cancel it
    to stop the retries. Executions that are newer than the request, or that are no longer failed, stay as
    they are. So do those of paused and cancelled tasks, and calls: retry the executions that made them. An
    `Idempotency-Key` makes the request safe to repeat. Users may have five open requests.
    """
    chosen = read_batch_filter(call, RetryFilter, body.filter)
    if chosen is None:
        raise InvalidInput("filter", "is empty, and would match every failure", "Give one filter or more.")
    changes = call.app.container.many_tasks.batch_changes
    key = read_idempotency_key(call.request)
    if body.dry_run:
        return json_response(changes.preview_retries(chosen).to_wire())
    batch = BatchRetry(executions=chosen)
    started = changes.start_retry(batch, find_batch_owner(call), key, call.authority.actor)
    return task_response(call, started, 202)


def _show_found(found: FoundExecution, allowed: AllowedVerbs) -> dict[str, Any]:
    """Return an execution in a list across tasks as JSON, with its allowed verbs if they are known."""
    shown = _show_listed(found.execution)
    verbs = allowed.of_found_execution(found)
    if verbs is not None:
        shown["allowedVerbs"] = verbs
    return shown


def _show_listed(execution: Execution) -> dict[str, Any]:
    """Return an execution in a list as JSON, without the definition that it ran: that may be as large as its task."""
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


@operation(
    "GET",
    "/v1/tasks/{taskId}/executions/{executionId}/logs",
    "Executions",
    response_schema="ExecutionLogs",
)
def get_execution_logs(call: ApiCall) -> Response:
    """Get the lines that an execution has logged.

    The answer has the latest lines of all attempts, also while one is running: up to 200, with 16 KiB of
    text. Callers who see the tasks of all owners may always read them. A task's owner may if the handler
    says so (`logs="owner"`).
    """
    task = call.app.get(call.task_id)
    execution_id = call.path["executionId"]
    engine = call.app.container.engine
    is_restricted = call.caller.visible_owner is not None
    if is_restricted:
        _require_shows_logs(engine, task.handler)
    handler, sealed = load_sealed_log(engine, task, execution_id)
    if is_restricted:
        _require_shows_logs(engine, handler)  # the task may have been edited since it logged

    found = engine.logs.read(task.id, execution_id, sealed)
    shown = found or RunLog()
    logs = responses.ExecutionLogs(
        lines=shown.lines,
        omitted_lines=shown.omitted_lines,
        is_unreadable=found is None,
    )
    return json_response(logs.to_wire())


def _require_shows_logs(engine: EngineContext, handler: str | None) -> None:
    logged_by = engine.registry.find(handler)
    if logged_by is None or not logged_by.owners_see_logs:
        raise Forbidden("What this handler logs is for those who see the tasks of all owners.")
