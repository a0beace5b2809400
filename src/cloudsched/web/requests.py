"""What requests say: one model for each body and each set of query parameters.

They validate what comes in, and ``/openapi.json`` is made from them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from cloudsched.domain.document import Instant, Value
from cloudsched.domain.drafts import TaskDraft
from cloudsched.domain.isotime import FIRST_YEAR, LAST_YEAR
from cloudsched.domain.schedule import Schedule
from cloudsched.domain.task import Owner, TaskStatus
from cloudsched.engine.ports import TaskQuery
from cloudsched.errors import InvalidInput

MAX_PAGE = 500
MAX_PREVIEW = 1000
MAX_BATCH = 500
_LATER = datetime(1, 1, 2, tzinfo=UTC)
"""Earlier than anything that is due."""


def _digits(value: object) -> object:
    """Take a number as text only if it is plain digits: not ``+5``, or ``5.0``."""
    if isinstance(value, bool | float):
        raise ValueError("is not a whole number")  # noqa: TRY004 - pydantic's way to complain
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) <= 9):  # noqa: PLR2004 - far above all limits
        raise ValueError("is not a whole number")
    return value


def _rfc3339(value: object) -> object:
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


Digits = BeforeValidator(_digits)
Moment = Annotated[
    Instant,
    BeforeValidator(_rfc3339),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2027-01-01T09:00:00Z"]}),
]
"""RFC 3339 with an offset."""


class Nothing(Value):
    """No parameters."""


class Paging(Value):
    """Which part of a list."""

    page_size: Annotated[int, Digits, Field(ge=1, le=MAX_PAGE)] = 50
    """How many items at most."""
    page_token: str | None = None
    """``nextPageToken`` of the page before, unchanged and with the same filters."""

    def arguments(self) -> dict[str, Any]:
        """Return it as the app's lists take it."""
        return {"limit": self.page_size, "page_token": self.page_token or None}


class TaskList(Paging):
    """Which tasks. Every filter that is given must hold."""

    owner: Owner | None = None
    status: TaskStatus | None = None
    handler: str | None = None
    due_from: Moment | None = None
    """The next occurrence is not before this instant."""
    due_until: Moment | None = None
    """The next occurrence is before this instant."""
    order_by: Literal["createdAt desc", "nextExecutionTime"] | None = None
    """The newest first, or the soonest first without those that have no next occurrence. The soonest if there is
    ``dueFrom`` or ``dueUntil``, else the newest."""

    def query(self, owner: str | None) -> TaskQuery:
        """Return the query, for an owner who has been checked.

        Raises:
            InvalidInput: The order is not that of the filters.
        """
        due_from = self.due_from
        if self.order_by == "nextExecutionTime" and due_from is None and self.due_until is None:
            due_from = _LATER
        if self.order_by == "createdAt desc" and (due_from or self.due_until):
            hint = "Leave it out: what is chosen by its next occurrence is in that order."
            raise InvalidInput("orderBy", "contradicts dueFrom or dueUntil", hint)
        return TaskQuery(
            owner=owner, status=self.status, handler=self.handler, due_from=due_from, due_until=self.due_until
        )


class Count(Value):
    """How many occurrences."""

    count: Annotated[int, Digits, Field(ge=1, le=MAX_PREVIEW)] = 10


class Retry(Value):
    """Which execution to try again."""

    execution_id: str | None = None
    """The last one if it is left out."""


class EventPayload(Value):
    """What a durable handler is told."""

    payload: Any = None
    """Any JSON; an object's fields are attributes of what the handler is given."""


class Range(Value):
    """Which past occurrences to run again; both ends are included."""

    start: Moment
    end: Moment


class Preview(Count):
    """A schedule to look at, without storing it."""

    schedule: Schedule
    """As in a task."""
    start: Moment | None = Field(default=None, alias="from")
    """The instant to look from; now if it is left out."""


class Batch(Value):
    """Tasks to create."""

    tasks: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_BATCH)]
    """Each as if it were created alone: a ``NewTask``, or a problem of its own among the results."""


class NewTask(TaskDraft):
    """A task to be created, or to be put in place of an older one of the same id."""
