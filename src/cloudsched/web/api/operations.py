"""All that the API does, as one table: the router, the checks and ``/openapi.json`` are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.web.api import request_bodies as bodies
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from cloudsched.domain.documents.document import WireModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that can be asked for."""

    name: str
    """The operation's id, and the name of the function that answers it."""
    method: str
    path: str
    summary: str
    right: Right | None = Right.READ
    """What the caller needs; None lets everybody in."""
    query: type[WireModel] = bodies.NoParameters
    body: type[WireModel] | None = None
    """What is sent, if that is a model's object."""
    body_is_optional: bool = False
    is_patch: bool = False
    """Whether a JSON merge patch is sent."""
    accepts_idempotency_key: bool = False
    """Whether ``Idempotency-Key`` makes it safe to repeat."""
    is_conditional: bool = False
    """Whether ``If-Match`` is looked at."""
    success_statuses: tuple[int, ...] = (200,)
    response_schema: str | None = None
    """The schema of what is answered."""
    error_statuses: tuple[int, ...] = ()
    """The statuses of problems besides those that all have."""


def _task_operation(verb: str, summary: str, **more: object) -> Operation:
    return Operation(
        name=verb,
        method="POST",
        path=f"/v1/tasks/{{taskId}}/{verb}",
        summary=summary,
        right=Right.WRITE,
        is_conditional=True,
        response_schema="Task",
        error_statuses=(404, 409, 412),
        **more,  # type: ignore[arg-type]  # two of the fields, given below
    )


def _claim_operation(verb: str, summary: str, body: type[WireModel], answer: str = "Task") -> Operation:
    return Operation(
        name=verb,
        method="POST",
        path=f"/v1/tasks/{{taskId}}/executions/{{executionId}}/{verb}",
        summary=summary,
        right=Right.WORK,
        body=body,
        response_schema=answer,
        error_statuses=(404, 409),
    )


OPERATIONS: Final = (
    Operation(
        name="create_task",
        method="POST",
        path="/v1/tasks",
        summary="Create a task (201), or edit the one of the same id (200).",
        right=Right.WRITE,
        body=bodies.NewTask,
        accepts_idempotency_key=True,
        success_statuses=(201, 200),
        response_schema="Task",
        error_statuses=(409, 422, 429),
    ),
    Operation(
        name="batch_create_tasks",
        method="POST",
        path="/v1/tasks:batchCreate",
        summary=f"Create up to {bodies.MAX_BATCH} tasks, each with a result of its own, in the order given.",
        right=Right.WRITE,
        body=bodies.BatchCreateRequest,
        accepts_idempotency_key=True,
        response_schema="BatchResults",
    ),
    Operation(
        name="list_tasks",
        method="GET",
        path="/v1/tasks",
        summary="List tasks: the newest first, or the soonest.",
        query=bodies.TaskListQuery,
        response_schema="TaskPage",
    ),
    Operation(
        name="get_task",
        method="GET",
        path="/v1/tasks/{taskId}",
        summary="Get a task. Its ETag tells its state.",
        success_statuses=(200, 304),
        response_schema="Task",
        error_statuses=(404,),
    ),
    Operation(
        name="update_task",
        method="PATCH",
        path="/v1/tasks/{taskId}",
        summary="Change some of a task's fields by JSON merge patch (RFC 7396).",
        right=Right.WRITE,
        is_patch=True,
        is_conditional=True,
        response_schema="Task",
        error_statuses=(404, 409, 412),
    ),
    Operation(
        name="delete_task",
        method="DELETE",
        path="/v1/tasks/{taskId}",
        summary="Remove a task and its executions.",
        right=Right.WRITE,
        is_conditional=True,
        success_statuses=(204,),
        error_statuses=(404, 409, 412),
    ),
    _task_operation("pause", "Hold a task until it is resumed."),
    _task_operation("resume", "Let a paused task go on from now."),
    _task_operation("cancel", "End a task; its record stays."),
    _task_operation("trigger", "Run a task now, without moving its plan."),
    _task_operation("retry", "Give an execution one more attempt.", body=bodies.RetryRequest, body_is_optional=True),
    _task_operation(
        "backfill", "Run the occurrences of a past range again, one after the other.", body=bodies.BackfillRequest
    ),
    Operation(
        name="send_event",
        method="POST",
        path="/v1/tasks/{taskId}/events/{event}",
        summary="Tell a task's durable handler something that it waits for, or will.",
        right=Right.WRITE,
        body=bodies.SendEventRequest,
        body_is_optional=True,
        is_conditional=True,
        response_schema="Task",
        error_statuses=(404, 409, 412),
    ),
    Operation(
        name="tree",
        method="GET",
        path="/v1/tasks/{taskId}/tree",
        summary="Get a task with the calls below it, cut where there are too many.",
        query=bodies.TreeFilter,
        response_schema="Tree",
        error_statuses=(404,),
    ),
    Operation(
        name="upcoming",
        method="GET",
        path="/v1/tasks/{taskId}/upcoming",
        summary="Get a task's next occurrences.",
        query=bodies.Count,
        response_schema="Occurrences",
        error_statuses=(404,),
    ),
    Operation(
        name="list_executions",
        method="GET",
        path="/v1/tasks/{taskId}/executions",
        summary="List a task's executions, the latest first.",
        query=bodies.PageQuery,
        response_schema="ExecutionPage",
        error_statuses=(404,),
    ),
    Operation(
        name="get_execution",
        method="GET",
        path="/v1/tasks/{taskId}/executions/{executionId}",
        summary="Get an execution.",
        response_schema="Execution",
        error_statuses=(404,),
    ),
    Operation(
        name="claim",
        method="POST",
        path="/v1/queues/{queue}/claim",
        summary="Claim what a queue offers to workers: the most urgent first, then what came due first.",
        right=Right.WORK,
        body=bodies.ClaimRequest,
        body_is_optional=True,
        response_schema="Claims",
    ),
    _claim_operation(
        "heartbeat",
        "Renew a claim's lease; says if the task was cancelled.",
        bodies.HeartbeatRequest,
        "HeartbeatResult",
    ),
    _claim_operation("complete", "Say that a claimed run is done. Safe to repeat.", bodies.CompleteRequest),
    _claim_operation(
        "fail", "Say that a claimed run's attempt has failed. Safe to repeat.", bodies.FailRequest, "FailedTask"
    ),
    _claim_operation("release", "Give a claimed run back, for another worker or for later.", bodies.ReleaseRequest),
    Operation(
        name="list_messages",
        method="GET",
        path="/v1/inboxes/{owner}/messages",
        summary="List the messages in an owner's inbox, the newest first.",
        query=bodies.PageQuery,
        response_schema="MessagePage",
        error_statuses=(404,),
    ),
    Operation(
        name="preview_schedule",
        method="POST",
        path="/v1/schedules/preview",
        summary="Look at the next occurrences of a schedule, without storing it.",
        body=bodies.PreviewRequest,
        response_schema="SchedulePreview",
    ),
    Operation(
        name="healthz",
        method="GET",
        path="/healthz",
        summary="Whether this process is alive.",
        right=None,
        response_schema="Health",
    ),
    Operation(
        name="readyz",
        method="GET",
        path="/readyz",
        summary="Whether it reaches its store.",
        right=None,
        response_schema="Health",
    ),
    Operation(
        name="openapi",
        method="GET",
        path="/openapi.json",
        summary="This document.",
        right=None,
        response_schema="OpenApi",
    ),
    Operation(
        name="reference",
        method="GET",
        path="/docs",
        summary="This document, to be read by people.",
        right=None,
        response_schema="text/html",
    ),
)
