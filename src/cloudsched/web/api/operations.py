"""The table of the API's operations: the router, the checks and ``/openapi.json`` are generated from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.api.calendar_operations import CALENDAR_OPERATIONS
from cloudsched.web.api.operation import Operation
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from cloudsched.domain.documents.document import WireModel


TAGS: Final = {
    "Tasks": "Create, read, change and delete tasks.",
    "Executions": "What has run, what will run, and running it again.",
    "Events": "Send events to durable handlers.",
    "Workers": "Claim work from a queue and report on it.",
    "Inboxes": "Read the messages that tasks have delivered.",
    "Calendars": "Show tasks in the calendars that people have.",
    "Schedules": "Try schedules out before using them.",
    "Service": "Health, and the description of this API.",
}
"""The groups of operations, in the order in which they are shown."""


def _task_operation(tag: str, verb: str, summary: str, description: str, **more: object) -> Operation:
    return Operation(
        name=verb,
        tag=tag,
        method="POST",
        path=f"/v1/tasks/{{taskId}}/{verb}",
        summary=summary,
        description=description,
        right=Right.WRITE,
        is_conditional=True,
        response_schema="Task",
        error_statuses=(404, 409, 412),
        **more,  # type: ignore[arg-type]  # `body` and `body_is_optional`, given below
    )


def _claim_operation(
    verb: str, summary: str, description: str, body: type[WireModel], response_schema: str = "ReportedTask"
) -> Operation:
    return Operation(
        name=verb,
        tag="Workers",
        method="POST",
        path=f"/v1/tasks/{{taskId}}/executions/{{executionId}}/{verb}",
        summary=summary,
        description=description,
        right=Right.WORK,
        body=body,
        response_schema=response_schema,
        error_statuses=(404, 409),
    )


OPERATIONS: Final = (
    Operation(
        name="create_task",
        tag="Tasks",
        method="POST",
        path="/v1/tasks",
        summary="Create a task (201), or edit the task with the same id (200).",
        description=(
            "Without a schedule, the task runs once, in five minutes. To make the request safe to repeat, "
            "give either an `id` of your own or an `Idempotency-Key`. A user's `id` is prefixed with a hash "
            "of the owner: use the `id` of the response from then on."
        ),
        right=Right.WRITE,
        body=bodies.NewTask,
        accepts_idempotency_key=True,
        success_statuses=(201, 200),
        response_schema="Task",
        error_statuses=(409, 422, 429),
    ),
    Operation(
        name="batch_create_tasks",
        tag="Tasks",
        method="POST",
        path="/v1/tasks:batchCreate",
        summary=f"Create up to {bodies.MAX_BATCH} tasks with one request.",
        description=(
            "Each task succeeds or fails on its own: the response has status 200 and one result for each "
            "task, in the order of the request. An `Idempotency-Key` makes each of them safe to repeat."
        ),
        right=Right.WRITE,
        body=bodies.BatchCreateRequest,
        accepts_idempotency_key=True,
        response_schema="BatchResults",
    ),
    Operation(
        name="list_tasks",
        tag="Tasks",
        method="GET",
        path="/v1/tasks",
        summary="List tasks, the newest or the soonest first.",
        description=(
            "All given filters must match. As long as the response has a `nextPageToken`, repeat the request "
            "with it and the same filters."
        ),
        query=bodies.TaskListQuery,
        response_schema="TaskPage",
    ),
    Operation(
        name="get_task",
        tag="Tasks",
        method="GET",
        path="/v1/tasks/{taskId}",
        summary="Get a task.",
        description=(
            "The `ETag` identifies the task's state. With `If-None-Match`, an unchanged task is answered with 304."
        ),
        success_statuses=(200, 304),
        response_schema="Task",
        error_statuses=(404,),
    ),
    Operation(
        name="update_task",
        tag="Tasks",
        method="PATCH",
        path="/v1/tasks/{taskId}",
        summary="Edit a task by JSON merge patch (RFC 7396).",
        description=(
            "The fields that you name change; `null` restores a field's default. A schedule or a payload is "
            "replaced as a whole."
        ),
        right=Right.WRITE,
        is_patch=True,
        is_conditional=True,
        response_schema="Task",
        error_statuses=(404, 409, 412),
    ),
    Operation(
        name="delete_task",
        tag="Tasks",
        method="DELETE",
        path="/v1/tasks/{taskId}",
        summary="Delete a task and its executions.",
        description="A handler that is running is not interrupted; its result is discarded.",
        right=Right.WRITE,
        is_conditional=True,
        success_statuses=(204,),
        error_statuses=(404, 409, 412),
    ),
    _task_operation("Tasks", "pause", "Pause a task.", "Nothing of it starts until it is resumed."),
    _task_operation("Tasks", "resume", "Resume a paused task.", "It continues with its first occurrence from now."),
    _task_operation("Tasks", "cancel", "Cancel a task.", "Nothing of it starts any more. Its record is kept."),
    _task_operation(
        "Executions",
        "trigger",
        "Run a task now.",
        "The schedule does not change, and the run does not count towards `maxRuns`.",
    ),
    _task_operation(
        "Executions",
        "retry",
        "Give an execution one more attempt.",
        "Without an `executionId`, the last execution is retried.",
        body=bodies.RetryRequest,
        body_is_optional=True,
    ),
    _task_operation(
        "Executions",
        "backfill",
        "Run the occurrences of a past range again.",
        "They run one after the other; both ends of the range are included.",
        body=bodies.BackfillRequest,
    ),
    Operation(
        name="send_event",
        tag="Events",
        method="POST",
        path="/v1/tasks/{taskId}/events/{event}",
        summary="Send an event to a task's durable handler.",
        description="An event that no handler waits for yet is kept until one asks for it.",
        right=Right.WRITE,
        body=bodies.SendEventRequest,
        body_is_optional=True,
        is_conditional=True,
        response_schema="Task",
        error_statuses=(404, 409, 412),
    ),
    Operation(
        name="tree",
        tag="Tasks",
        method="GET",
        path="/v1/tasks/{taskId}/tree",
        summary="Get a task with the calls below it.",
        description="A large tree is cut: `omittedChildren` says how many calls were left out at each task.",
        query=bodies.TreeFilter,
        response_schema="Tree",
        error_statuses=(404,),
    ),
    Operation(
        name="upcoming",
        tag="Executions",
        method="GET",
        path="/v1/tasks/{taskId}/upcoming",
        summary="List a task's next occurrences.",
        description="Those that have not been claimed yet, without jitter; none unless the task is `ACTIVE`.",
        query=bodies.Count,
        response_schema="Occurrences",
        error_statuses=(404,),
    ),
    Operation(
        name="list_executions",
        tag="Executions",
        method="GET",
        path="/v1/tasks/{taskId}/executions",
        summary="List a task's executions, the latest first.",
        description=(
            "Each occurrence that came due has one execution. As long as the response has a `nextPageToken`, "
            "repeat the request with it."
        ),
        query=bodies.PageQuery,
        response_schema="ExecutionPage",
        error_statuses=(404,),
    ),
    Operation(
        name="get_execution",
        tag="Executions",
        method="GET",
        path="/v1/tasks/{taskId}/executions/{executionId}",
        summary="Get an execution.",
        description="The record of one occurrence's run, with its attempts, its result or its error.",
        response_schema="Execution",
        error_statuses=(404,),
    ),
    Operation(
        name="claim",
        tag="Workers",
        method="POST",
        path="/v1/queues/{queue}/claim",
        summary="Claim work from a queue: the most urgent first, then what came due first.",
        description=(
            "A claim is a lease: send heartbeats before `leaseUntil`, and end it with `complete`, `fail` or "
            "`release`. Do not repeat a claim whose response was lost; what it may have claimed is offered "
            "again when its lease ends."
        ),
        right=Right.WORK,
        body=bodies.ClaimRequest,
        body_is_optional=True,
        response_schema="Claims",
    ),
    _claim_operation(
        "heartbeat",
        "Renew a claim's lease.",
        "Safe to repeat. If `isCancelled` is true, stop and `complete` the run as `CANCELLED`.",
        bodies.HeartbeatRequest,
        "HeartbeatResult",
    ),
    _claim_operation(
        "complete",
        "Report that a claimed run is done.",
        "Safe to repeat: the first report counts. 409 `lease-lost` means that the run is no longer yours.",
        bodies.CompleteRequest,
    ),
    _claim_operation(
        "fail",
        "Report that a claimed run's attempt has failed.",
        "Safe to repeat: the first report counts. The task's retry policy decides whether another attempt follows.",
        bodies.FailRequest,
        "FailedTask",
    ),
    _claim_operation(
        "release",
        "Give a claimed run back.",
        "Another worker can claim it at once, or after `after` seconds. It costs no attempt.",
        bodies.ReleaseRequest,
    ),
    Operation(
        name="list_messages",
        tag="Inboxes",
        method="GET",
        path="/v1/inboxes/{owner}/messages",
        summary="List the messages in an owner's inbox, the newest first.",
        description="As long as the response has a `nextPageToken`, repeat the request with it.",
        query=bodies.PageQuery,
        response_schema="MessagePage",
        error_statuses=(404,),
    ),
    *CALENDAR_OPERATIONS,
    Operation(
        name="preview_schedule",
        tag="Schedules",
        method="POST",
        path="/v1/schedules/preview",
        summary="Preview the next occurrences of a schedule.",
        description=(
            "Nothing is stored. The response explains the schedule in words and lists the instants at which "
            "it fires, in UTC and local time."
        ),
        body=bodies.PreviewRequest,
        response_schema="SchedulePreview",
    ),
    Operation(
        name="healthz",
        tag="Service",
        method="GET",
        path="/healthz",
        summary="Check that this process is alive.",
        description="Liveness. Also reports the state of the circuit breakers to other services.",
        right=None,
        response_schema="Health",
    ),
    Operation(
        name="readyz",
        tag="Service",
        method="GET",
        path="/readyz",
        summary="Check that the store can be reached.",
        description="Readiness. 503 if the store cannot be reached or the API is not configured.",
        right=None,
        response_schema="Health",
    ),
    Operation(
        name="openapi",
        tag="Service",
        method="GET",
        path="/openapi.json",
        summary="Get this document.",
        description="OpenAPI 3.1. Where the API requires authentication, it names no handlers.",
        right=None,
        response_schema="OpenApi",
    ),
    Operation(
        name="reference",
        tag="Service",
        method="GET",
        path="/docs",
        summary="Get this document as a page for people.",
        description="An HTML page that needs no scripts.",
        right=None,
        response_schema="text/html",
    ),
)
