"""The worker's operations: claim work, renew leases, report how an attempt ended.

::

    with Client("https://api.example", key=key) as client:
        for claim in client.claim("gpu", worker="box-1", skills=["cuda"]):
            try:
                client.complete(claim, render(claim.task.payload))
            except RenderError as error:
                client.fail(claim, type(error).__name__, str(error))

A lease lasts as long as the task's `expectedDuration`. A worker that may take longer sends heartbeats.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

from cloudsched.client.flow import ApiRequest, Flow, JsonResponse, given, operation, parse_task
from cloudsched.client.views import ClaimView, HeartbeatResult, TaskView, reader
from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.domain.documents.json_limits import require_content
from cloudsched.domain.documents.log_lines import LogLine, RunLog
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.task_draft import to_wire_fields
from cloudsched.errors import CloudschedError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.transitions.notices import InboxMessage
    from cloudsched.domain.transitions.task_draft import TaskDraft

log: Final = own_logger(__name__)

UNREADABLE_RETRY_DELAY = timedelta(minutes=1)
"""The time for which workers do not get a claim that cannot be parsed, so that it does not block them each time."""

_LINE_FIELDS = ("at", "level", "logger", "text")
"""The fields of a log line that are sent. The API knows to which attempt the line belongs."""


class WorkerOperations:
    """The worker's methods of both clients. All but `claim` are safe to repeat, and are retried."""

    @operation
    def claim(  # noqa: PLR0913 - each is a field of the request
        self,
        queue: str,
        *,
        worker: str = "worker",
        skills: Iterable[str] = (),
        handlers: Iterable[str] | None = None,
        owner: str | None = None,
        limit: int = 1,
        wait: timedelta = timedelta(0),
        task_id: str | None = None,
    ) -> Flow[list[ClaimView]]:
        """Claim work from a queue, by priority and then by due time. Returns an empty list if there is none.

        The request is sent only once. If its response is lost (`Unavailable`), runs may have been claimed
        all the same. No worker knows of them until their lease expires, and then they are offered again
        as the next attempt. A claim that cannot be parsed is released, to be offered again after a
        minute, and omitted from the list.

        Args:
            queue: The queue's name.
            worker: The worker's name in the records.
            skills: The skills that this worker has beyond those of every worker of the queue.
            handlers: The names of the handlers that it has. None means any.
            owner: Claim only this owner's tasks. None means those of every owner that the caller may work for.
            limit: The maximum number of runs, up to 100.
            wait: How long the API waits for work if there is none, up to 20 seconds. Less if too many wait.
            task_id: Claim a run of this task only, such as one of `queued_tasks`. An error says why it cannot be had.

        Raises:
            Forbidden: The caller may not work on this queue.
            InvalidInput: An argument is invalid.
            NotAllowed: The chosen task is taken, over, or not for this worker.
            NotFound: There is no such task for the caller.
            Unavailable: There was no response.
        """
        only = given(handlers=None if handlers is None else list(handlers), owner=owner, task_id=task_id)
        content = to_wire_fields({"worker": worker, "skills": list(skills), "limit": limit, "wait": wait, **only})
        path = f"/v1/queues/{quote(queue, safe='')}/claim"
        response = yield ApiRequest("POST", path, content, wait=max(0.0, wait.total_seconds()))
        claims = []
        for item in response.read_list("claims", lambda claim: claim):
            try:
                claims.append(ClaimView.from_response(item))
            except Unavailable as error:
                yield from _release_unreadable(item, error)
        return claims

    @operation
    def heartbeat(
        self,
        claim: ClaimView,
        progress: Iterable[ProgressNote | str] | None = None,
        *,
        logs: RunLog | Iterable[LogLine | str] | None = None,
    ) -> Flow[HeartbeatResult]:
        """Renew a lease, counted from now, and report the progress and the log.

        Args:
            claim: A claim returned by `claim`.
            progress: All progress notes so far. They replace those reported before, which stay if it is None. A note
                that is only a text gets the time at which the API receives it.
            logs: All lines that this claim has logged so far, if `claim.logs` says that any are kept. A `RunLog` has
                only the latest lines, and the number of earlier ones. A line that is only a text has the level INFO,
                and the time at which the API receives it. The lines reported before stay if it is None.

        Raises:
            LeaseLost: The lease has ended, and another worker may have the run. Stop, and discard the work.
            NotFound: The task was deleted.
        """
        response = yield from _post_claim(claim, "heartbeat", progress, logs)
        return response.read("a heartbeat's answer", reader(HeartbeatResult))

    @operation
    def complete(  # noqa: PLR0913 - each is a field of the request
        self,
        claim: ClaimView,
        content: Any = None,  # noqa: ANN401 - any JSON
        *,
        status: Literal["SUCCEEDED", "CANCELLED"] = "SUCCEEDED",
        message: str | None = None,
        notices: Iterable[InboxMessage] = (),
        then: Iterable[TaskDraft] = (),
        silent: bool = False,
        progress: Iterable[ProgressNote | str] | None = None,
        queries: int = 0,
        tokens: int = 0,
        logs: RunLog | Iterable[LogLine | str] | None = None,
    ) -> Flow[TaskView]:
        """Report that the attempt has finished, and return the task as it is afterwards.

        Args:
            claim: A claim returned by `claim`.
            content: The result, as JSON or a pydantic model. At most 512 KiB, and 900 KiB as Firestore counts them.
            status: CANCELLED if there was nothing left to do. Then leave out `content` and `notices`.
            message: The reason why it is CANCELLED.
            notices: Messages for the owner's inbox.
            then: Follow-ups, which are created with the success or not at all. They are of the task's owner.
            silent: True if the result is recorded and not delivered. Notices are.
            progress: As for `heartbeat`.
            queries: The number of queries that the attempt used.
            tokens: The number of tokens that it used, of a language model for example.
            logs: As for `heartbeat`.

        Raises:
            LeaseLost: The lease has ended, and the result is discarded.
            InvalidInput: The result cannot be stored, or a follow-up is refused. Nothing was changed.
            NotFound: The task was deleted.
        """
        fields = to_wire_fields(
            {"content": content, "message": message, "queries": queries, "tokens": tokens},
        )
        require_content("content", fields["content"])
        messages = [{"title": notice.title, "body": notice.body} for notice in notices]
        more: dict[str, Any] = {
            "status": status,
            "notices": messages or None,
            "then": [each.model_dump(mode="json", by_alias=True, exclude_unset=True) for each in then] or None,
            "silent": silent or None,
        }
        return parse_task((yield from _post_claim(claim, "complete", progress, logs, **fields, **more)))

    @operation
    def fail(  # noqa: PLR0913 - each is a field of the request
        self,
        claim: ClaimView,
        error_type: str,
        message: str,
        *,
        traceback: str | None = None,
        is_final: bool = False,
        retry_after: timedelta | None = None,
        progress: Iterable[ProgressNote | str] | None = None,
        queries: int = 0,
        tokens: int = 0,
        logs: RunLog | Iterable[LogLine | str] | None = None,
    ) -> Flow[TaskView]:
        """Report that the attempt has failed, and return the task as it is afterwards.

        The task's retry policy decides whether and when another attempt follows.

        Args:
            claim: A claim returned by `claim`.
            error_type: The name of the exception's class, or of the kind of error.
            message: The error's message.
            traceback: The traceback. If it is too long, its end is kept.
            is_final: True to make no further attempt, whatever the policy says.
            retry_after: The delay before the next attempt, counted from now, in place of the policy's.
            progress: As for `heartbeat`.
            queries: As for `complete`.
            tokens: As for `complete`.
            logs: As for `heartbeat`.

        Raises:
            LeaseLost: The lease has ended.
            NotFound: The task was deleted.
        """
        fields = to_wire_fields(
            {"is_final": is_final, "retry_after": retry_after, "queries": queries, "tokens": tokens}
        )
        error = given(type=error_type, message=message, traceback=traceback)
        return parse_task((yield from _post_claim(claim, "fail", progress, logs, error=error, **fields)))

    @operation
    def release(
        self,
        claim: ClaimView,
        reason: str | None = None,
        after: timedelta | None = None,
        *,
        progress: Iterable[ProgressNote | str] | None = None,
        logs: RunLog | Iterable[LogLine | str] | None = None,
    ) -> Flow[TaskView]:
        """Release a run that this worker cannot finish. It costs no attempt.

        Args:
            claim: A claim returned by `claim`.
            reason: The reason, for the record.
            after: The delay before it is offered again, counted from now. None means at once, in its old position.
            progress: As for `heartbeat`.
            logs: As for `heartbeat`.

        Raises:
            LeaseLost: The run is no longer this worker's. There is nothing left to do.
            NotFound: The task was deleted.
        """
        fields = to_wire_fields({"reason": reason, "after": after})
        return parse_task((yield from _post_claim(claim, "release", progress, logs, **fields)))


def _release_unreadable(content: object, error: Unavailable) -> Flow[None]:
    """Release a claim that cannot be parsed, if its ids and its lease token can be read."""
    match content:
        case {"task": {"id": str(task_id)}, "executionId": str(execution_id), "leaseToken": str(token)}:
            about = {"action": "claim_unreadable", "taskId": task_id}
        case _:
            log.warning(
                "a claim without ids or lease token cannot be released; its lease will expire: %s",
                error,
            )
            return
    log.warning("released: it cannot be parsed; is the API newer than this client? %s", error, extra=about)
    fields = to_wire_fields({"reason": "The client cannot parse the task.", "after": UNREADABLE_RETRY_DELAY})
    try:
        yield from _post_execution(task_id, execution_id, token, "release", fields)
    except CloudschedError as refused:
        log.warning("could not be released either; its lease will expire: %s", refused, extra=about)


def _post_claim(
    claim: ClaimView,
    verb: str,
    progress: Iterable[ProgressNote | str] | None,
    logs: RunLog | Iterable[LogLine | str] | None,
    **more: Any,
) -> Flow[JsonResponse]:
    content = given(progress=_encode_progress(progress), logs=_encode_log(logs), **more)
    return (yield from _post_execution(claim.task.id, claim.execution_id, claim.lease_token, verb, content))


def _post_execution(
    task_id: str, execution_id: str, token: str, verb: str, content: dict[str, Any]
) -> Flow[JsonResponse]:
    path = f"/v1/tasks/{quote(task_id, safe='')}/executions/{quote(execution_id, safe='')}/{verb}"
    return (yield ApiRequest("POST", path, {"leaseToken": token, **content}, is_idempotent=True))


def _encode_progress(progress: Iterable[ProgressNote | str] | None) -> list[dict[str, Any]] | None:
    if progress is None:
        return None
    return [note.to_wire() if isinstance(note, ProgressNote) else {"text": note} for note in progress]


def _encode_log(logs: RunLog | Iterable[LogLine | str] | None) -> dict[str, Any] | None:
    if logs is None:
        return None
    lines, omitted_lines = (logs.lines, logs.omitted_lines) if isinstance(logs, RunLog) else (logs, 0)
    return {"lines": [_encode_line(line) for line in lines], "omittedLines": omitted_lines}


def _encode_line(line: LogLine | str) -> dict[str, Any]:
    return {"text": line} if isinstance(line, str) else {name: line.to_wire()[name] for name in _LINE_FIELDS}
