"""What a worker says to the API: give me work, I am still at it, this is how it ended.

::

    with Client("https://api.example", key=key) as client:
        for claim in client.claim("gpu", worker="box-1", skills=["cuda"]):
            try:
                client.complete(claim, render(claim.task.payload))
            except RenderError as error:
                client.fail(claim, type(error).__name__, str(error))

A lease lasts as long as the task's `expectedDuration`; whoever may take longer sends heartbeats.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from cloudsched.client.views import ClaimView, HeartbeatResult, TaskView
from cloudsched.domain.documents.execution import ProgressNote
from cloudsched.domain.documents.json_limits import require_content
from cloudsched.domain.transitions.drafts import to_wire_fields
from cloudsched.errors import CloudschedError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.client.connection import Connection
    from cloudsched.client.responses import ApiResponse
    from cloudsched.domain.transitions.finish import InboxMessage

log = logging.getLogger(__name__)

UNREADABLE_RETRY_DELAY = timedelta(minutes=1)
"""When what could not be read is offered again: a worker that always got it first would get to nothing else."""


class WorkerApi:
    """The calls of a worker; `Client` has them. All but `claim` are safe to repeat, and are repeated."""

    _connection: Connection

    def claim(
        self,
        queue: str,
        *,
        worker: str = "worker",
        skills: Iterable[str] = (),
        handlers: Iterable[str] | None = None,
        owner: str | None = None,
        limit: int = 1,
    ) -> list[ClaimView]:
        """Take work from a queue: the most urgent first, and of that what came due first. None there, an empty list.

        It is sent once. If its answer is lost (`Unavailable`), something may have been claimed all the same: that is
        leased to nobody who knows of it until the lease ends, and is then offered again as the next attempt. A claim
        that cannot be read is given back for a minute, and is not in the list.

        Args:
            queue: Which queue.
            worker: What the records call this worker.
            skills: What it can do besides what any worker of the queue can.
            handlers: The handlers that it has; any if None.
            owner: Whose tasks alone; those of all that the caller may work for, if None.
            limit: How many runs at most, up to 100.

        Raises:
            Forbidden: The caller may not work on this queue.
            InvalidInput: Something of what was given is wrong.
            Unavailable: There was no answer.
        """
        content = {"worker": worker, "skills": list(skills), "limit": limit}
        if handlers is not None:
            content["handlers"] = list(handlers)
        if owner is not None:
            content["owner"] = owner
        answer = self._connection.send("POST", f"/v1/queues/{quote(queue, safe='')}/claim", content)
        claims = []
        for each in answer.read_list("claims", _identity):
            try:
                claims.append(ClaimView.from_response(each))
            except Unavailable as error:
                self._release_unreadable(each, error)
        return claims

    def heartbeat(self, claim: ClaimView, progress: Iterable[ProgressNote | str] | None = None) -> HeartbeatResult:
        """Renew a lease, from now; and say how far the work is.

        Args:
            claim: What `claim` returned.
            progress: All the steps so far, in the place of those said before, which stay if it is None. A step that
                is only a text has the time at which the API hears of it.

        Raises:
            LeaseLost: The lease has ended; somebody else may be at it. Stop, and drop what was done.
            NotFound: The task was deleted.
        """
        return self._post_claim(claim, "heartbeat", progress=_encode_progress(progress)).read(
            "a heartbeat's answer", HeartbeatResult.from_response
        )

    def complete(  # noqa: PLR0913 - each says something of its own
        self,
        claim: ClaimView,
        content: Any = None,  # noqa: ANN401 - any JSON
        *,
        status: Literal["SUCCEEDED", "CANCELLED"] = "SUCCEEDED",
        message: str | None = None,
        notices: Iterable[InboxMessage] = (),
        progress: Iterable[ProgressNote | str] | None = None,
        queries: int = 0,
        tokens: int = 0,
    ) -> TaskView:
        """Say that the work is done; return the task as it is then.

        Args:
            claim: What `claim` returned.
            content: The result, as JSON or a pydantic model; at most 512 KiB, and 900 KiB as Firestore counts them.
            status: CANCELLED if there was nothing to do any more. Then there is neither `content` nor `notices`.
            message: Why it is CANCELLED.
            notices: What is put into the owner's inbox.
            progress: As for `heartbeat`.
            queries: How many queries it has cost.
            tokens: How many tokens of a language model, say.

        Raises:
            LeaseLost: The lease has ended, and the result is dropped.
            InvalidInput: The result cannot be kept; nothing was changed.
            NotFound: The task was deleted.
        """
        fields = to_wire_fields({"content": content, "message": message, "queries": queries, "tokens": tokens})
        require_content("content", fields["content"])
        told = [{"title": notice.title, "body": notice.body} for notice in notices]
        more = {"status": status, "notices": told or None, "progress": _encode_progress(progress)}
        return parse_task(self._post_claim(claim, "complete", **fields, **more))

    def fail(  # noqa: PLR0913 - each says something of its own
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
    ) -> TaskView:
        """Say that the attempt has failed; return the task as it is then.

        It is tried again as the task's retry policy says.

        Args:
            claim: What `claim` returned.
            error_type: The exception's class, or what takes its place.
            message: What went wrong.
            traceback: Where; its end is kept.
            is_final: Whether no attempt is to follow, whatever the policy says.
            retry_after: When the next attempt is to begin, from now, instead of when the policy says.
            progress: As for `heartbeat`.
            queries: As for `complete`.
            tokens: As for `complete`.

        Raises:
            LeaseLost: The lease has ended.
            NotFound: The task was deleted.
        """
        error = {"type": error_type, "message": message, "traceback": traceback}
        fields = to_wire_fields(
            {"is_final": is_final, "retry_after": retry_after, "queries": queries, "tokens": tokens}
        )
        error = {name: value for name, value in error.items() if value is not None}
        return parse_task(self._post_claim(claim, "fail", error=error, progress=_encode_progress(progress), **fields))

    def release(
        self,
        claim: ClaimView,
        reason: str | None = None,
        after: timedelta | None = None,
        *,
        progress: Iterable[ProgressNote | str] | None = None,
    ) -> TaskView:
        """Give back what this worker cannot finish. It costs no attempt.

        Args:
            claim: What `claim` returned.
            reason: Why, for the record.
            after: When it is offered again, from now; if None, at once, and at its old place.
            progress: As for `heartbeat`.

        Raises:
            LeaseLost: It is no longer this worker's. There is nothing left to do.
            NotFound: The task was deleted.
        """
        return parse_task(
            self._post_claim(
                claim,
                "release",
                progress=_encode_progress(progress),
                **to_wire_fields({"reason": reason, "after": after}),
            )
        )

    def _release_unreadable(self, content: object, error: Unavailable) -> None:
        """Give back a claim that cannot be read, if it says at least which it is."""
        match content:
            case {"task": {"id": str(task_id)}, "executionId": str(execution_id), "leaseToken": str(token)}:
                about = {"action": "misfit", "taskId": task_id}
            case _:
                log.warning("a claim says not even which it is; its lease will lapse: %s", error)
                return
        log.warning("given back: it cannot be read, is the API newer than this client? %s", error, extra=about)
        fields = to_wire_fields({"reason": "The client cannot read the task.", "after": UNREADABLE_RETRY_DELAY})
        try:
            self._post_execution(task_id, execution_id, token, "release", fields)
        except CloudschedError as refused:
            log.warning("it could not be given back either, its lease will lapse: %s", refused, extra=about)

    def _post_claim(self, claim: ClaimView, verb: str, **content: Any) -> ApiResponse:
        given = {name: value for name, value in content.items() if value is not None}
        return self._post_execution(claim.task.id, claim.execution_id, claim.lease_token, verb, given)

    def _post_execution(
        self, task_id: str, execution_id: str, token: str, verb: str, content: dict[str, Any]
    ) -> ApiResponse:
        path = f"/v1/tasks/{quote(task_id, safe='')}/executions/{quote(execution_id, safe='')}/{verb}"
        return self._connection.send("POST", path, {"leaseToken": token, **content}, is_idempotent=True)


def _identity(content: object) -> object:
    return content


def _encode_progress(progress: Iterable[ProgressNote | str] | None) -> list[dict[str, Any]] | None:
    if progress is None:
        return None
    return [step.to_wire() if isinstance(step, ProgressNote) else {"text": step} for step in progress]


def parse_task(answer: ApiResponse) -> TaskView:
    """Return the task that an answer shows, with its ETag."""
    return answer.read("a task", lambda content: TaskView.from_response(content, answer.etag))
