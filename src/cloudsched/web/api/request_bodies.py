"""What requests say: one model for each body and each set of query parameters.

They validate what comes in, and ``/openapi.json`` is made from them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from cloudsched.domain.documents.document import Duration, Instant, WireModel
from cloudsched.domain.documents.pull import MAX_SKILLS, Skill
from cloudsched.domain.documents.task import MAX_COUNT, MAX_NAME, MAX_RETENTION, Owner, TaskStatus
from cloudsched.domain.recurrence.iso8601 import FIRST_YEAR, LAST_YEAR
from cloudsched.domain.recurrence.schedule import Schedule
from cloudsched.domain.transitions.drafts import TaskDraft
from cloudsched.engine.handlers.context import MAX_NOTICES
from cloudsched.engine.ports.store import TaskQuery
from cloudsched.engine.pull.offers import MAX_CLAIMS
from cloudsched.errors import InvalidInput

MAX_PAGE = 500
MAX_PREVIEW = 1000
MAX_BATCH = 500
MAX_HANDLERS = 1000
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
"""Earlier than anything that is due."""


def _validate_digits(value: object) -> object:
    """Take a number as text only if it is plain digits: not ``+5``, or ``5.0``."""
    if isinstance(value, bool | float):
        raise ValueError("is not a whole number")  # noqa: TRY004 - pydantic's way to complain
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) <= 9):  # noqa: PLR2004 - far above all limits
        raise ValueError("is not a whole number")
    return value


def _parse_rfc3339(value: object) -> object:
    """Take an instant only as text, never as a number of seconds."""
    if not isinstance(value, str):
        raise ValueError("is not an instant; give RFC 3339 with an offset")  # noqa: TRY004 - pydantic's way to complain
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("is not an instant; give RFC 3339 with an offset") from None
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise ValueError(f"is not from the years {FIRST_YEAR} to {LAST_YEAR}")
    return at


Digits = BeforeValidator(_validate_digits)
InputInstant = Annotated[
    Instant,
    BeforeValidator(_parse_rfc3339),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2027-01-01T09:00:00Z"]}),
]
"""RFC 3339 with an offset."""


class NoParameters(WireModel):
    """No parameters."""


class PageQuery(WireModel):
    """Which part of a list."""

    page_size: Annotated[int, Field(ge=1, le=MAX_PAGE), Digits] = 50
    """How many items at most."""
    page_token: str | None = None
    """``nextPageToken`` of the page before, unchanged and with the same filters."""

    def to_arguments(self) -> dict[str, Any]:
        """Return it as the app's lists take it."""
        return {"limit": self.page_size, "page_token": self.page_token or None}


class TaskListQuery(PageQuery):
    """Which tasks. Every filter that is given must hold."""

    owner: Owner | None = None
    status: TaskStatus | None = None
    handler: str | None = None
    due_from: InputInstant | None = None
    """The next occurrence is not before this instant."""
    due_until: InputInstant | None = None
    """The next occurrence is before this instant."""
    order_by: Literal["createdAt desc", "nextExecutionTime"] | None = None
    """The newest first, or the soonest first without those that have no next occurrence. The soonest if there is
    ``dueFrom`` or ``dueUntil``, else the newest."""

    def to_task_query(self, owner: str | None) -> TaskQuery:
        """Return the query, for an owner who has been checked.

        Raises:
            InvalidInput: The order is not that of the filters.
        """
        due_from = self.due_from
        if self.order_by == "nextExecutionTime" and due_from is None and self.due_until is None:
            due_from = _EARLIEST
        if self.order_by == "createdAt desc" and (due_from or self.due_until):
            hint = "Leave it out: what is chosen by its next occurrence is in that order."
            raise InvalidInput("orderBy", "contradicts dueFrom or dueUntil", hint)
        return TaskQuery(
            owner=owner, status=self.status, handler=self.handler, due_from=due_from, due_until=self.due_until
        )


class Count(WireModel):
    """How many occurrences."""

    count: Annotated[int, Field(ge=1, le=MAX_PREVIEW), Digits] = 10


class TreeFilter(WireModel):
    """Which part of a tree."""

    execution_id: str | None = None
    """Only the calls that this execution has made, and what is below them."""


class RetryRequest(WireModel):
    """Which execution to try again."""

    execution_id: str | None = None
    """The last one if it is left out."""


class SendEventRequest(WireModel):
    """What a durable handler is told."""

    payload: Any = None
    """Any JSON; an object's fields are attributes of what the handler is given."""
    execution_id: str | None = None
    """Tells this execution alone, and goes when that ends; else the first that asks takes it."""


class BackfillRequest(WireModel):
    """Which past occurrences to run again; both ends are included."""

    start: InputInstant
    end: InputInstant


class PreviewRequest(Count):
    """A schedule to look at, without storing it."""

    schedule: Schedule
    """As in a task."""
    start: InputInstant | None = Field(default=None, alias="from")
    """The instant to look from; now if it is left out."""


class BatchCreateRequest(WireModel):
    """Tasks to create."""

    tasks: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_BATCH)]
    """Each as if it were created alone: a ``NewTask``, or a problem of its own among the results."""


class NewTask(TaskDraft):
    """A task to be created, or to be put in place of an older one of the same id."""


# ── What workers say ─────────────────────────────────────────────────────────────────────────────────────────────────

Amount = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]
Delay = Annotated[Duration, Field(ge=timedelta(0), le=MAX_RETENTION)]


class ClaimRequest(WireModel):
    """What a worker can run."""

    worker: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,128}$")] = "worker"
    """What it calls itself, for the records."""
    skills: Annotated[tuple[Skill, ...], Field(max_length=MAX_SKILLS)] = ()
    """What it can do besides what any worker of the queue can."""
    handlers: (
        Annotated[
            tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)], ...],
            Field(max_length=MAX_HANDLERS),
        ]
        | None
    ) = None
    """The handlers that it has; any, if they are left out."""
    owner: Owner | None = None
    """Whose tasks alone it wants; all that it may work on, if it is left out."""
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_CLAIMS)] = 1
    """How many runs to claim at most."""


class ProgressItem(WireModel):
    """One thing that a worker says about how far it is."""

    text: str
    """Cut to 200 characters."""
    at: InputInstant | None = None
    """When that was; now, if it is left out."""


class HeartbeatRequest(WireModel):
    """A worker is still at it."""

    lease_token: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    """What proves that the run is the caller's, as the claim has it."""
    progress: tuple[ProgressItem, ...] = ()
    """All the steps so far, of which the last 50 are kept, in the place of those that were said before. Those stay if
    there is none."""


class AttemptUsage(HeartbeatRequest):
    """What an attempt has said and cost."""

    queries: Amount = 0
    """How many queries it has cost."""
    tokens: Amount = 0
    """How many tokens: of a language model, say."""


class NoticeItem(WireModel):
    """A message for the owner's inbox."""

    title: str
    """Cut to 200 characters."""
    body: str


class CompleteRequest(AttemptUsage):
    """The work is done."""

    status: Literal["SUCCEEDED", "CANCELLED"] = "SUCCEEDED"
    """CANCELLED, if there was nothing to do any more."""
    content: Any = None
    """The result, if it has SUCCEEDED: any JSON of at most 512 KiB, and of 900 KiB as Firestore counts it."""
    notices: Annotated[tuple[NoticeItem, ...], Field(max_length=MAX_NOTICES)] = ()
    """What is put into the owner's inbox, if it has SUCCEEDED."""
    message: str | None = None
    """Why it is CANCELLED; cut to 2,000 characters."""


class AttemptError(WireModel):
    """What went wrong."""

    type: Annotated[str, StringConstraints(min_length=1)]
    """The exception's class, or what takes its place; cut to 200 characters."""
    message: str
    """Cut to 2,000 characters."""
    traceback: str | None = None
    """Its last 4,000 characters are kept."""


class FailRequest(AttemptUsage):
    """The attempt has failed."""

    error: AttemptError
    is_final: Annotated[bool, Field(strict=True)] = False
    """Whether no attempt is to follow; else the task's retry policy says so."""
    retry_after: Delay | None = None
    """When the next attempt is to begin, if there is one, instead of when the policy says."""


class ReleaseRequest(HeartbeatRequest):
    """The work is given back."""

    reason: str | None = None
    """Why; cut to 2,000 characters."""
    after: Delay | None = None
    """When it is to be offered again; at once, and at its old place, if it is left out."""
