"""What is posted to people's webhooks, to the callbacks of tasks, and to an endpoint that is to prove itself.

`people.senders.webhook` writes these bodies, as Standard Webhooks has them. A receiver accepts further types, and
further fields of `data`: a newer version may send them.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from cloudsched.domain.documents.document import Instant
from cloudsched.domain.documents.execution import ExecutionStatus


class WebhookPart(BaseModel):
    """A body, or a part of one."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="allow", defer_build=True)


class WebhookError(WebhookPart):
    """The reason why an execution has no result."""

    type: str
    """The class of the exception, or a word for what happened: ``Expired``."""
    message: str


class WebhookText(WebhookPart):
    """What every message says to people."""

    title: str
    body: str


class ResultData(WebhookText):
    """A result, and what it belongs to."""

    task_id: str
    execution_id: str
    content: Any = None
    """What the handler returned, or null."""
    is_content_omitted: bool | None = None
    """True if the content is too large to be sent: the execution has it."""
    chat_id: str | None = None
    """The chat that the task came from (``source.chatId``), if it came from one."""
    message_id: str | None = None
    """The id of the result as a message of that chat."""
    late: int | None = None
    """The seconds by which the message is late, if it is late enough to say so."""


class EndData(ResultData):
    """An end of an execution."""

    status: ExecutionStatus
    error: WebhookError | None = None
    """The reason, unless it succeeded."""


class ChallengeData(WebhookText):
    """A question whether the endpoint wants messages."""

    challenge: str
    """What the endpoint answers with, and nothing else."""


class QuestionData(WebhookText):
    """What a person is asked by name, and what an answer needs."""

    task_id: str
    execution_id: str
    event: str
    until: Instant | None = None
    """The time until which an answer is accepted, or None if there is no limit."""
    answer_url: str | None = None
    """The page with the buttons Approve and Reject. Whoever opens it answers as that person."""
    late: int | None = None
    """The seconds by which the message is late, if it is late enough to say so."""


class MessageWebhook(WebhookPart):
    """A message of a task to its owner."""

    type: Literal["notification"]
    timestamp: Instant
    """The instant of what it reports, the same for all tries."""
    data: ResultData


class ExecutionWebhook(WebhookPart):
    """The end of an execution, to a task's callback. What tells its owner of a failure comes to their webhook, too."""

    type: Literal[
        "execution.succeeded",
        "execution.failed",
        "execution.timed_out",
        "execution.expired",
        "execution.skipped",
        "execution.cancelled",
    ]
    timestamp: Instant
    """The instant of what it reports, the same for all tries."""
    data: EndData


class QuestionWebhook(WebhookPart):
    """A question to a person, whom a handler asks by name (``ctx.wait_for`` with channels)."""

    type: Literal["question"]
    timestamp: Instant
    data: QuestionData


class VerificationWebhook(WebhookPart):
    """The question whether an endpoint wants a person's messages. It is asked before it gets any."""

    type: Literal["webhook.verification"]
    timestamp: Instant
    data: ChallengeData


WEBHOOKS: Final[dict[str, type[WebhookPart]]] = {
    "message": MessageWebhook,
    "question": QuestionWebhook,
    "executionEnded": ExecutionWebhook,
    "verification": VerificationWebhook,
}
"""What is posted, by its name in the API's description."""
