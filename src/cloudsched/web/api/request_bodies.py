"""The models of requests: one for each body and each set of query parameters.

They validate requests, and ``/openapi.json`` is generated from them.
"""

from __future__ import annotations

import datetime as dt
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from cloudsched.domain.documents.batch_change import BatchAction, RetryFilter, TaskFilter
from cloudsched.domain.documents.calendar import HolidaySource
from cloudsched.domain.documents.category import Category, Label, Labels
from cloudsched.domain.documents.document import Duration, Instant, Integer, WireModel
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.log_lines import MAX_LINES
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.pull import MAX_SKILLS, Skill
from cloudsched.domain.documents.task import MAX_COUNT, MAX_NAME, MAX_RETENTION, Owner, TaskStatus, Text, Trouble
from cloudsched.domain.recurrence.days import LAST_YEAR
from cloudsched.domain.recurrence.iso8601 import FIRST_YEAR
from cloudsched.domain.schedules.calendar_days import MAX_DAY_NAME, MAX_INTERVALS
from cloudsched.domain.schedules.ics_days import MAX_TEXT
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.drafts import TaskDraft
from cloudsched.drafts.tokens import MAX_LENGTH
from cloudsched.engine.handlers.context import MAX_NOTICES
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.pull.offers import MAX_CLAIMS
from cloudsched.engine.tasks.execution_search import ExecutionFilter
from cloudsched.engine.tasks.task_search import TaskSearch, read_words
from cloudsched.errors import InvalidInput

MAX_PAGE = 500
MAX_PREVIEW = 1000
MAX_BATCH = 50
"""How many tasks one request creates: each costs the processor about a millisecond."""
MAX_HANDLERS = 1000
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
"""Earlier than any occurrence."""


def _validate_digits(value: object) -> object:
    """Accept a number as text only if it is plain digits: not ``+5`` or ``5.0``."""
    if isinstance(value, bool | float):
        raise ValueError("is not a whole number")  # noqa: TRY004 - pydantic's way to report it
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) <= 9):  # noqa: PLR2004 - far above all limits
        raise ValueError("is not a whole number")
    return value


def _parse_rfc3339(value: object) -> object:
    """Accept an instant only as text, never as a number of seconds."""
    if not isinstance(value, str):
        raise ValueError("is not an instant; give RFC 3339 with an offset")  # noqa: TRY004 - pydantic's way to report it
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("is not an instant; give RFC 3339 with an offset") from None
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise ValueError(f"is not from the years {FIRST_YEAR} to {LAST_YEAR}")
    return at


def _cap_page(size: int) -> int:
    """Return a page's size, or the largest that there is."""
    return min(size, MAX_PAGE)


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
    """Which page of a list to return."""

    page_size: Annotated[int, Field(ge=1, le=999_999_999), Digits, AfterValidator(_cap_page)] = 50
    """The largest number of items to return; more than 500 count as 500."""
    page_token: str | None = None
    """The ``nextPageToken`` of the previous page; keep the same filters."""

    def to_arguments(self) -> dict[str, Any]:
        """Return the arguments for the app's list methods."""
        return {"limit": self.page_size, "page_token": self.page_token or None}


class TaskListQuery(PageQuery):
    """Which tasks to list. All given filters must match."""

    owner: Owner | None = None
    status: TaskStatus | None = None
    handler: str | None = None
    label: Label | None = None
    """One of their labels, ``key=value``. It goes with no filter by time, and the newest come first."""
    due_from: InputInstant | None = None
    """The next occurrence is not before this instant."""
    due_until: InputInstant | None = None
    """The next occurrence is before this instant."""
    trouble: Trouble | None = None
    """Only tasks that need somebody for this reason, the latest to do so first. Goes with no filter but ``owner``."""
    trouble_until: InputInstant | None = None
    """Of those that wait for an event: only those that give up before this instant. Goes with ``trouble``."""
    search: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = None
    """Only tasks with each of these words in their title, id, handler, labels or payload. ``payload.about=sales`` is
    the text of a field of the payload, ``category:report`` the category."""
    calls: bool = True
    """Whether calls are listed, too: the tasks that other tasks have made to do a part of their work."""
    order_by: Literal["createdAt desc", "nextExecutionTime"] | None = None
    """The newest first, or the soonest first, omitting tasks without a next occurrence. The default is the soonest
    first with ``dueFrom`` or ``dueUntil``, else the newest first."""

    def to_task_search(self) -> TaskSearch:
        """Return what no index has, and is looked for."""
        return TaskSearch(read_words(self.search or ""), self.calls)

    def to_task_query(self, owner: str | None) -> TaskQuery:
        """Return the query, for an owner whom the caller may list.

        Raises:
            InvalidInput: The order contradicts the filters.
        """
        due_from = self.due_from
        if self.order_by == "nextExecutionTime" and due_from is None and self.due_until is None:
            due_from = _EARLIEST
        if self.order_by == "createdAt desc" and (due_from or self.due_until or self.trouble):
            hint = "Leave it out: what is chosen by its next occurrence or by a trouble has an order of its own."
            raise InvalidInput("orderBy", f"contradicts {'trouble' if self.trouble else 'dueFrom or dueUntil'}", hint)
        return TaskQuery(
            owner=owner,
            status=self.status,
            handler=self.handler,
            label=self.label,
            due_from=due_from,
            due_until=self.due_until,
            trouble=self.trouble,
            trouble_until=self.trouble_until,
        )


class ExecutionFilterQuery(WireModel):
    """Which executions. All given filters must match."""

    owner: str | None = None
    """Only executions of this owner's tasks."""
    status: ExecutionStatus | None = None
    """Only executions with this status."""
    handler: str | None = None
    """Only executions of this handler. Not together with ``label`` or ``category``."""
    label: Label | None = None
    """Only executions whose task had this label. Not together with ``handler`` or ``category``."""
    category: Category | None = None
    """Only executions whose task had this category. Not together with ``handler`` or ``label``."""
    since: InputInstant | None = Field(default=None, alias="from")
    """Only executions that are scheduled for this instant or later."""
    until: InputInstant | None = None
    """Only executions that are scheduled for an earlier instant than this."""
    calls: bool = True
    """Whether executions of calls are listed, too; a call that failed is also in the record of who made it."""
    error: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)] | None = None
    """Only executions whose error has this text in its type or message, in any case."""
    error_type: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)] | None = None
    """Only executions with an error of this type, whole."""
    min_duration: Duration | None = None
    """Only executions that took so long, from the first attempt's start to the end."""
    min_lateness: Duration | None = None
    """Only executions that their schedule started so much later than at their instant."""

    def to_execution_query(self, owner: str | None) -> ExecutionQuery:
        """Return the query, for an owner whom the caller may list. Raises InvalidInput if no index serves it."""
        return ExecutionQuery(owner, self.status, self.handler, self.label, self.since, self.until, self.category)

    def to_execution_filter(self) -> ExecutionFilter:
        """Return what no index has, and is looked for."""
        return ExecutionFilter(self.calls, self.error, self.error_type, self.min_duration, self.min_lateness)


class ExecutionListQuery(PageQuery, ExecutionFilterQuery):
    """Which executions to list, and which page of the list to return."""


class ExecutionCountQuery(WireModel):
    """Which executions to count, and the days of which zone."""

    since: InputInstant = Field(alias="from")
    """Only executions that are scheduled for this instant or later."""
    until: InputInstant
    """Only executions that are scheduled for an earlier instant than this, at most 62 days later."""
    timezone: Annotated[str, StringConstraints(max_length=64)] = "UTC"
    """The zone whose midnights divide the days."""
    owner: str | None = None
    """Only executions of this owner's tasks."""
    handler: str | None = None
    """Only executions of this handler. Not together with ``owner``, ``label`` or ``category``."""
    label: Label | None = None
    """Only executions whose task had this label. Not together with ``owner``, ``handler`` or ``category``."""
    category: Category | None = None
    """Only executions whose task had this category. Not together with ``owner``, ``handler`` or ``label``."""

    def to_execution_query(self, owner: str | None) -> ExecutionQuery:
        """Return the query, for an owner whom the caller may list. Raises InvalidInput if no index serves it."""
        return ExecutionQuery(owner, handler=self.handler, label=self.label, category=self.category)


class OccurrenceListQuery(PageQuery):
    """Which occurrences to list, and which page of the list to return."""

    until: InputInstant
    """Only occurrences before this instant."""
    since: InputInstant | None = Field(default=None, alias="from")
    """Only occurrences at this instant or later; all that are to come if omitted."""
    owner: str | None = None
    """Only occurrences of this owner's tasks."""
    handler: str | None = None
    """Only occurrences of this handler's tasks."""
    label: Label | None = None
    """Only occurrences of tasks with this label."""
    category: Category | None = None
    """Only occurrences of tasks with this category."""


class AnyOwnerQuery(WireModel):
    """Whose things to list."""

    owner: str | None = None
    """Only what is this owner's."""


class OwnerPageQuery(PageQuery):
    """Whose things to list, and which page of the list to return."""

    owner: str | None = None
    """Only what is this owner's."""


class ValidateQuery(WireModel):
    """Whether to store anything."""

    validate_only: Literal["true", "false"] = "false"
    """``true`` runs all checks, stores nothing, and answers 200 with the task as it would be and its next ``upcoming``
    occurrences."""

    @property
    def is_only_validation(self) -> bool:
        """Return whether nothing is to be stored."""
        return self.validate_only == "true"


class Count(WireModel):
    """How many occurrences to return."""

    count: Annotated[int, Field(ge=1, le=MAX_PREVIEW), Digits] = 10


class TreeFilter(WireModel):
    """Which part of a tree to return."""

    execution_id: str | None = None
    """Only the calls that this execution made, and the calls below them."""


class ExplainQuery(WireModel):
    """What to explain."""

    at: InputInstant | None = None
    """Why the task ran, or did not run, on the day of this instant, by the clocks of its zone. Now, if omitted."""


class OwnerQuery(WireModel):
    """Whose things to list."""

    owner: Owner | None = None
    """The caller, if it is omitted."""


class NewFeed(WireModel):
    """A feed to create."""

    owner: Owner | None = None
    """Whose tasks it shows; the caller's, if it is omitted."""
    categories: tuple[Category, ...] = Field(default=(), max_length=len(Category))
    """Only tasks of these categories; all if there are none."""
    labels: Labels = ()
    """Only tasks that have all of these labels."""


class NewPerson(PersonSpec):
    """A person's contacts and preferences."""


class DeletePersonQuery(WireModel):
    """What to delete of a person."""

    everything: Literal["true", "false"] = "false"
    """``true`` deletes all that is stored of the person, not only contacts and preferences."""


class ExportQuery(WireModel):
    """Which page of an export to return."""

    page_token: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,6}$")] | None = None
    """The ``nextPageToken`` of the previous page."""


class TriggerRequest(WireModel):
    """What to run a task with."""

    payload: dict[str, Any] | None = None
    """What this run gets in place of the task's payload, which stays as it is. The run keeps it in its retries."""


class SnoozeRequest(WireModel):
    """For how long to snooze."""

    duration: Annotated[str, StringConstraints(min_length=1, max_length=200)] = "PT10M"
    """How long: an ISO 8601 duration, or words such as ``10 minutes`` or ``tomorrow at 9:00`` in the task's time zone;
    up to 30 days."""


class RetryRequest(WireModel):
    """Which execution to retry."""

    execution_id: str | None = None
    """The execution to retry; the last one if omitted."""
    from_step: Integer | None = Field(default=None, ge=1)
    """The number of a durable handler's step: this one and all after it are forgotten, and done again."""


class SendEventRequest(WireModel):
    """An event for a durable handler."""

    payload: Any = None
    """Any JSON; the fields of an object become attributes of what the handler receives."""
    execution_id: str | None = None
    """The execution that it is for. Needed only if several wait for it."""
    early: bool = False
    """Keeps it if no execution waits for it yet: for the open execution, or for the next one if none is open."""


class BackfillRequest(WireModel):
    """Which past occurrences to run again; both ends are included."""

    start: InputInstant
    end: InputInstant


class PreviewRequest(Count):
    """A schedule to preview."""

    schedule: Schedule
    """The schedule, as in a task."""
    start: InputInstant | None = Field(default=None, alias="from")
    """Where to start; now if omitted."""
    owner: Owner | None = None
    """Whose calendars are meant, and whose zone if the schedule follows its owner; the caller's if omitted."""


class BatchCreateRequest(WireModel):
    """Tasks to create."""

    tasks: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_BATCH)]
    """Each is a ``NewTask``. One that is invalid gets a problem in its result; the others are created."""


class NewTask(TaskDraft):
    """A task to create, or to replace the one with the same id."""

    draft_token: Annotated[str, StringConstraints(max_length=MAX_LENGTH)] | None = None
    """The token of the draft that the other fields are of, unchanged."""


class BatchChangeFilter(TaskFilter):
    """Which tasks to change: all given filters must match, and there must be one."""

    due_from: InputInstant | None = None
    """The next occurrence is not before this instant."""
    due_until: InputInstant | None = None
    """The next occurrence is before this instant."""

    @model_validator(mode="before")
    @classmethod
    def _name_the_filters(cls, given: Any) -> Any:  # noqa: ANN401 - any JSON
        known = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = sorted(set(given) - known) if isinstance(given, dict) else []
        if unknown:
            raise ValueError(f"has {unknown[0]!r}, which no index has; there are {', '.join(sorted(known))}")
        return given


class BatchChangeRequest(WireModel):
    """A change of all tasks that match a filter."""

    action: BatchAction
    """``retryFailed`` gives the execution that finished last one more attempt, if it failed or timed out."""
    filter: BatchChangeFilter
    dry_run: Annotated[bool, Field(strict=True)] = False
    """Only count the tasks."""


class ExecutionRetryFilter(RetryFilter):
    """Which failed executions to retry: all given filters must match, and there must be one."""

    since: InputInstant | None = Field(default=None, alias="from")
    """Scheduled for this instant or later."""
    until: InputInstant | None = None
    """Scheduled for an earlier instant than this."""


class BatchRetryRequest(WireModel):
    """A retry of all failed executions that match a filter."""

    filter: ExecutionRetryFilter
    dry_run: Annotated[bool, Field(strict=True)] = False
    """Only count them, and name the first ten."""


def _parse_day(value: object) -> object:
    """Read a day as RFC 3339 writes it; pydantic alone would take a number for seconds since 1970."""
    try:
        if not isinstance(value, str) or len(value) != len("2027-01-01"):
            raise ValueError  # noqa: TRY301 - the same message as for what is no date
        return dt.date.fromisoformat(value)
    except ValueError:
        raise ValueError("is not a day such as 2027-01-01") from None


Day = Annotated[dt.date, BeforeValidator(_parse_day)]
DayName = Annotated[str, StringConstraints(max_length=MAX_DAY_NAME)]


class CalendarDay(WireModel):
    """A day of a calendar, or several in a row."""

    date: Day
    """The day, or the first one."""
    until: Day | None = None
    """The last day, if there are several."""
    name: DayName = ""
    """What it is, such as a holiday's name: it is in the records of what it has moved."""


class PutCalendar(WireModel):
    """A calendar to create or replace. At most one of ``days``, ``ics``, ``url`` and ``holidays`` is given."""

    owner: Owner | None = None
    """Whose calendar it is. If an admin omits it, it is for everybody; a user's are the user's own."""
    title: Text = ""
    weekdays: Annotated[tuple[Literal["MO", "TU", "WE", "TH", "FR", "SA", "SU"], ...], Field(max_length=7)] = ()
    """Days of the week that are always on it."""
    days: Annotated[tuple[CalendarDay, ...], Field(max_length=MAX_INTERVALS)] = ()
    """Its days, by hand."""
    ics: Annotated[str, StringConstraints(max_length=MAX_TEXT)] | None = None
    """An iCalendar file, whose events are its days."""
    url: Annotated[str, StringConstraints(max_length=2000)] | None = None
    """The address of an iCalendar file; it is fetched now, and again every day."""
    holidays: HolidaySource | None = None
    """A country whose holidays it has, as the installed version of the package ``holidays`` knows them."""


Amount = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]
MAX_SENT_LINES: Final = 5 * MAX_LINES
"""How many log lines one request may have; of more than `MAX_LINES` the latest are kept."""
Delay = Annotated[Duration, Field(ge=timedelta(0), le=MAX_RETENTION)]


class ClaimRequest(WireModel):
    """What a worker can run, and how much of it to claim."""

    worker: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,128}$")] = "worker"
    """The worker's name, for the records."""
    skills: Annotated[tuple[Skill, ...], Field(max_length=MAX_SKILLS)] = ()
    """The worker's skills: it may claim tasks that require one of them, and tasks that require none."""
    handlers: (
        Annotated[
            tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)], ...],
            Field(max_length=MAX_HANDLERS),
        ]
        | None
    ) = None
    """The handlers that the worker has; any if omitted."""
    owner: Owner | None = None
    """Claim only this owner's tasks; all that the worker may work on if omitted."""
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_CLAIMS)] = 1
    """The largest number of runs to claim."""


class ProgressItem(WireModel):
    """One progress note of a worker."""

    text: str
    """Truncated to 200 bytes of UTF-8."""
    at: InputInstant | None = None
    """When it was written; now if omitted."""


class LogItem(WireModel):
    """One line that a worker has logged."""

    text: str
    """The message, with its traceback if it has one; truncated to 1,000 bytes of UTF-8."""
    at: InputInstant | None = None
    """When it was logged; now if omitted. An instant outside the claim's time becomes the nearest one in it."""
    level: str = "INFO"
    """``DEBUG``, ``INFO``, ``WARNING``, ``ERROR``, ``CRITICAL``, or what else your program calls it. Lines below the
    claim's ``logs.level`` are not kept; unknown levels are. Truncated to 80 bytes of UTF-8."""
    logger: str = ""
    """The logger's name; truncated to 80 bytes of UTF-8."""


class LogReport(WireModel):
    """What a worker's handler has logged."""

    lines: Annotated[tuple[LogItem, ...], Field(max_length=MAX_SENT_LINES)] = ()
    """All lines that this claim has logged so far, or the last ones: the latest 200 with 16 KiB of text are kept."""
    left_out: Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)] = 0
    """How many earlier lines of this claim are not sent."""


class HeartbeatRequest(WireModel):
    """A worker is still running what it claimed."""

    lease_token: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    """The token from the claim, which proves that the run is the caller's."""
    progress: tuple[ProgressItem, ...] = ()
    """All progress notes so far. They replace the previous ones, and the last 50 are kept. If there are none, the
    previous ones stay."""
    logs: LogReport | None = None
    """What the handler has logged. It replaces what this claim reported before, unless that was more: then this request
    is an older one. Ignored if the claim has no ``logs``."""


class AttemptUsage(HeartbeatRequest):
    """The progress and the cost of an attempt."""

    queries: Amount = 0
    """How many queries the attempt used."""
    tokens: Amount = 0
    """How many tokens the attempt used, for example of a language model."""


class NoticeItem(WireModel):
    """A message for the owner's inbox."""

    title: str
    """Truncated to 200 bytes of UTF-8."""
    body: str


class CompleteRequest(AttemptUsage):
    """The work is done."""

    status: Literal["SUCCEEDED", "CANCELLED"] = "SUCCEEDED"
    """``CANCELLED`` if there was nothing left to do."""
    content: Any = None
    """The result of a run that ``SUCCEEDED``: any JSON of at most 512 KiB, and 900 KiB as Firestore counts it."""
    notices: Annotated[tuple[NoticeItem, ...], Field(max_length=MAX_NOTICES)] = ()
    """Messages for the owner's inbox, if the run ``SUCCEEDED``."""
    message: str | None = None
    """Why the run is ``CANCELLED``; truncated to 2,000 bytes of UTF-8."""


class AttemptError(WireModel):
    """What went wrong."""

    type: Annotated[str, StringConstraints(min_length=1)]
    """The exception's class, or an equivalent; truncated to 200 bytes of UTF-8."""
    message: str
    """Truncated to 2,000 bytes of UTF-8."""
    traceback: str | None = None
    """The last 4,000 bytes of UTF-8 are kept."""


class FailRequest(AttemptUsage):
    """The attempt has failed."""

    error: AttemptError
    is_final: Annotated[bool, Field(strict=True)] = False
    """Whether this was the last attempt; otherwise the task's retry policy decides."""
    retry_after: Delay | None = None
    """When the next attempt starts, if there is one, instead of the policy's delay."""


class ReleaseRequest(HeartbeatRequest):
    """The run is given back."""

    reason: str | None = None
    """Why; truncated to 2,000 bytes of UTF-8."""
    after: Delay | None = None
    """When the run is offered again; if omitted, at once and in its old position."""
