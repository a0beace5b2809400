"""The webhooks that are posted to people's endpoints, as the OpenAPI document describes them.

`adapters.delivery.webhook` writes and signs them; a test holds what it writes to these models.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import AwareDatetime

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.responses import ApiResponse


class ResultData(ApiResponse):
    """A result."""

    title: str
    body: str
    """The result as text."""
    task_id: str | None = None
    """The task; missing if one message has the results of several."""
    execution_id: str | None = None
    chat_id: str | None = None
    """The chat that the task comes from, if it comes from one."""
    message_id: str | None = None
    """The id that the result has in that chat, the same in every attempt."""
    content: Any = None
    """The result as JSON."""
    is_content_omitted: bool | None = None
    """Whether it was too large to be sent."""


class CompletionError(ApiResponse):
    """Why an execution has not succeeded."""

    type: str
    message: str


class CompletionData(ResultData):
    """How an execution has ended."""

    status: ExecutionStatus
    error: CompletionError | None = None


class VerificationData(ApiResponse):
    """What has to be answered."""

    title: str
    body: str
    challenge: str
    """Answer 2xx with it and nothing else, as text or as ``{"challenge": "…"}``."""


class ResultWebhook(ApiResponse):
    """A result, for a person's webhook."""

    type: Literal["notification"]
    timestamp: AwareDatetime
    data: ResultData


class CompletionWebhook(ApiResponse):
    """An execution has ended, for the task's ``onCompletion``."""

    type: Literal[
        "execution.succeeded",
        "execution.failed",
        "execution.timed_out",
        "execution.expired",
        "execution.skipped",
        "execution.cancelled",
    ]
    timestamp: AwareDatetime
    data: CompletionData


class VerificationWebhook(ApiResponse):
    """An endpoint is asked whether it wants a person's messages."""

    type: Literal["webhook.verification"]
    timestamp: AwareDatetime
    data: VerificationData


WEBHOOKS: Final[dict[str, tuple[type[ApiResponse], str]]] = {
    "result": (ResultWebhook, "A task has a result for the person, and names the channel `WEBHOOK`."),
    "completion": (CompletionWebhook, "An execution of a task with `onCompletion` has ended, however."),
    "verification": (VerificationWebhook, "Somebody has asked to verify the person's webhook."),
}
"""The model and the occasion of each, by its name in the document."""
