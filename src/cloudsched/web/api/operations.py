"""All that the API does, as one table: the router, the checks and ``/openapi.json`` are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.web.api import request_bodies as said
from cloudsched.web.auth.roles import Right

if TYPE_CHECKING:
    from cloudsched.domain.documents.document import Value


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
    query: type[Value] = said.Nothing
    body: type[Value] | None = None
    """What is sent, if that is a model's object."""
    body_is_optional: bool = False
    is_patch: bool = False
    """Whether a JSON merge patch is sent."""
    takes_key: bool = False
    """Whether ``Idempotency-Key`` makes it safe to repeat."""
    is_conditional: bool = False
    """Whether ``If-Match`` is looked at."""
    success: tuple[int, ...] = (200,)
    answer: str | None = None
    """The schema of what is answered."""
    refusals: tuple[int, ...] = ()
    """The statuses of problems besides those that all have."""


def _change(verb: str, summary: str, **more: object) -> Operation:
    return Operation(
        name=verb,
        method="POST",
        path=f"/v1/tasks/{{taskId}}/{verb}",
        summary=summary,
        right=Right.WRITE,
        is_conditional=True,
        answer="Task",
        refusals=(404, 409, 412),
        **more,  # type: ignore[arg-type]  # two of the fields, given below
    )


def _work(verb: str, summary: str, body: type[Value], answer: str = "Task") -> Operation:
    return Operation(
        name=verb,
        method="POST",
        path=f"/v1/tasks/{{taskId}}/executions/{{executionId}}/{verb}",
        summary=summary,
        right=Right.WORK,
        body=body,
        answer=answer,
        refusals=(404, 409),
    )


OPERATIONS: Final = (
    Operation(
        name="create_task",
        method="POST",
        path="/v1/tasks",
        summary="Create a task (201), or edit the one of the same id (200).",
        right=Right.WRITE,
        body=said.NewTask,
        takes_key=True,
        success=(201, 200),
        answer="Task",
        refusals=(409, 422, 429),
    ),
    Operation(
        name="batch_create_tasks",
        method="POST",
        path="/v1/tasks:batchCreate",
        summary=f"Create up to {said.MAX_BATCH} tasks, each with a result of its own, in the order given.",
        right=Right.WRITE,
        body=said.Batch,
        takes_key=True,
        answer="BatchResults",
    ),
    Operation(
        name="list_tasks",
        method="GET",
        path="/v1/tasks",
        summary="List tasks: the newest first, or the soonest.",
        query=said.TaskList,
        answer="TaskPage",
    ),
    Operation(
        name="get_task",
        method="GET",
        path="/v1/tasks/{taskId}",
        summary="Get a task. Its ETag tells its state.",
        success=(200, 304),
        answer="Task",
        refusals=(404,),
    ),
    Operation(
        name="update_task",
        method="PATCH",
        path="/v1/tasks/{taskId}",
        summary="Change some of a task's fields by JSON merge patch (RFC 7396).",
        right=Right.WRITE,
        is_patch=True,
        is_conditional=True,
        answer="Task",
        refusals=(404, 409, 412),
    ),
    Operation(
        name="delete_task",
        method="DELETE",
        path="/v1/tasks/{taskId}",
        summary="Remove a task and its executions.",
        right=Right.WRITE,
        is_conditional=True,
        success=(204,),
        refusals=(404, 409, 412),
    ),
    _change("pause", "Hold a task until it is resumed."),
    _change("resume", "Let a paused task go on from now."),
    _change("cancel", "End a task; its record stays."),
    _change("trigger", "Run a task now, without moving its plan."),
    _change("retry", "Give an execution one more attempt.", body=said.Retry, body_is_optional=True),
    _change("backfill", "Run the occurrences of a past range again, one after the other.", body=said.Range),
    Operation(
        name="send_event",
        method="POST",
        path="/v1/tasks/{taskId}/events/{event}",
        summary="Tell a task's durable handler something that it waits for, or will.",
        right=Right.WRITE,
        body=said.EventPayload,
        body_is_optional=True,
        is_conditional=True,
        answer="Task",
        refusals=(404, 409, 412),
    ),
    Operation(
        name="tree",
        method="GET",
        path="/v1/tasks/{taskId}/tree",
        summary="Get a task with the calls below it, cut where there are too many.",
        query=said.Branches,
        answer="Tree",
        refusals=(404,),
    ),
    Operation(
        name="upcoming",
        method="GET",
        path="/v1/tasks/{taskId}/upcoming",
        summary="Get a task's next occurrences.",
        query=said.Count,
        answer="Occurrences",
        refusals=(404,),
    ),
    Operation(
        name="list_executions",
        method="GET",
        path="/v1/tasks/{taskId}/executions",
        summary="List a task's executions, the latest first.",
        query=said.Paging,
        answer="ExecutionPage",
        refusals=(404,),
    ),
    Operation(
        name="get_execution",
        method="GET",
        path="/v1/tasks/{taskId}/executions/{executionId}",
        summary="Get an execution.",
        answer="Execution",
        refusals=(404,),
    ),
    Operation(
        name="claim",
        method="POST",
        path="/v1/queues/{queue}/claim",
        summary="Claim what a queue offers to workers: the most urgent first, then what came due first.",
        right=Right.WORK,
        body=said.WorkWanted,
        body_is_optional=True,
        answer="Claims",
    ),
    _work("heartbeat", "Renew a claim's lease; says if the task was cancelled.", said.Heartbeat, "Beat"),
    _work("complete", "Say that a claimed run is done. Safe to repeat.", said.Completion),
    _work("fail", "Say that a claimed run's attempt has failed. Safe to repeat.", said.Failure, "FailedTask"),
    _work("release", "Give a claimed run back, for another worker or for later.", said.Release),
    Operation(
        name="list_messages",
        method="GET",
        path="/v1/inboxes/{owner}/messages",
        summary="List the messages in an owner's inbox, the newest first.",
        query=said.Paging,
        answer="MessagePage",
        refusals=(404,),
    ),
    Operation(
        name="preview_schedule",
        method="POST",
        path="/v1/schedules/preview",
        summary="Look at the next occurrences of a schedule, without storing it.",
        body=said.Preview,
        answer="SchedulePreview",
    ),
    Operation(
        name="healthz",
        method="GET",
        path="/healthz",
        summary="Whether this process is alive.",
        right=None,
        answer="Health",
    ),
    Operation(
        name="readyz",
        method="GET",
        path="/readyz",
        summary="Whether it reaches its store.",
        right=None,
        answer="Health",
    ),
    Operation(
        name="openapi",
        method="GET",
        path="/openapi.json",
        summary="This document.",
        right=None,
        answer="OpenApi",
    ),
    Operation(
        name="reference",
        method="GET",
        path="/docs",
        summary="This document, to be read by people.",
        right=None,
        answer="text/html",
    ),
)
