"""The API's responses: written once, for the API that sends them, its description in OpenAPI, and the client.

Newer and older clients read them, so an unknown field is kept and not refused. A response that has a task is
generic: the API sends the task as JSON, the client reads it as its view, and the description names the model
of a task.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cloudsched.domain.documents import execution
from cloudsched.domain.documents.delivery_channels import DeliveryStatus
from cloudsched.domain.documents.document import Instant, StoredEnum, WireModel
from cloudsched.domain.documents.execution import ExecutionStatus, Message, ProgressNote
from cloudsched.domain.documents.log_lines import LogLine
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.receipt import Receipt  # noqa: TC001 - pydantic reads it
from cloudsched.domain.documents.task import HistoryEntry, NeedCause, Owner, PublicTask, TaskStatus
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidInput


class Execution(execution.Execution):
    """The record of one occurrence's run."""

    allowed_verbs: tuple[str, ...] | None = None
    """The actions that the caller may take on it now, out of ``retry`` and ``sendEvent``. Lists across tasks
    leave it out for an execution that is over, has not succeeded, and whose task the caller might change:
    only the task would tell. Lists do not look for steps that are stored apart. If these are gone, ``retry``
    is named but refused."""


T = TypeVar("T")

Uri = Annotated[str, Field(json_schema_extra={"format": "uri"})]


class ApiResponse(BaseModel):
    """A response, or a part of one."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="allow",
        defer_build=True,  # most processes send or read few of them
    )

    @classmethod
    def model_parametrized_name(cls, params: Any) -> str:  # noqa: ANN401, ARG003 - pydantic's signature
        """Return the name of a generic response, which does not depend on the type of its tasks."""
        return cls.__name__

    def to_wire(self) -> dict[str, Any]:
        """Return the response as JSON types with camelCase keys, without the fields that are None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class PageResponse(ApiResponse):
    """A page of a list, whose items are in a field of their own."""

    next_page_token: str | None = None
    """Fetches the next page."""
    looked_through: int | None = None
    """The number of items that were read for it, if some were passed over because they do not match."""

    @classmethod
    def items_field(cls) -> str:
        """Return the name of that field, on the wire."""
        (name,) = cls.model_fields.keys() - PageResponse.model_fields.keys()
        return to_camel(name)


class TaskPage(PageResponse, Generic[T]):
    """A page of a list of tasks."""

    tasks: tuple[T, ...]


class ExecutionPage(PageResponse):
    """A page of a list of executions."""

    executions: tuple[Execution, ...]


class ExecutionLogs(ApiResponse):
    """The latest log lines of an execution, in their order."""

    lines: tuple[LogLine, ...]
    omitted_lines: int = Field(default=0, ge=0)
    """The number of earlier lines that are not kept."""
    is_unreadable: bool = False
    """True if they cannot be read any more, because they were encrypted with a secret that is gone."""


class TaskHistory(ApiResponse):
    """The actions on a task by hand, the latest first."""

    entries: tuple[HistoryEntry, ...]
    omitted_entries: int = Field(default=0, ge=0)
    """The number of entries that are not kept."""


class DeliveryReport(ApiResponse):
    """The progress of one delivery: of what, to whom, by which channel, when, and with what result."""

    id: str
    """The id of the task that delivers. Of a message in the inbox, its own."""
    channel: str
    status: DeliveryStatus
    owner: str
    """The person whom it is for."""
    title: str
    task_id: str
    """The task whose result it delivers."""
    execution_id: str
    is_failure: bool = False
    """True if it tells of a failure."""
    attempts: int = Field(ge=0)
    """The number of finished attempts."""
    created_at: AwareDatetime
    last_attempt_at: AwareDatetime | None = None
    """The time at which the last finished attempt began."""
    next_attempt_at: AwareDatetime | None = None
    """The time of the next attempt, if there is one."""
    sent_at: AwareDatetime | None = None
    """The time at which the other side took it."""
    message_id: str | None = None
    """The id under which the other side knows it."""
    reason: str | None = None
    """The reason why it was not sent, or not yet."""


class DeliveryList(ApiResponse):
    """The deliveries of an execution."""

    deliveries: tuple[DeliveryReport, ...]
    untold: str | None = None
    """The reason why nobody was told that it has failed, as the task is now."""


class DeliveryPage(PageResponse):
    """A page of a list of deliveries."""

    deliveries: tuple[DeliveryReport, ...]


class MessagePage(PageResponse):
    """A page of the messages in an inbox."""

    messages: tuple[Message, ...]


class Tree(ApiResponse, Generic[T]):
    """A task and the calls that it made, in order."""

    task: T
    children: tuple[Tree[T], ...] = ()
    omitted_children: int = Field(default=0, ge=0)
    """The number of its calls that are missing here. Newer calls, and those nearer to the root, are shown
    first."""


class ClaimLogs(ApiResponse):
    """The limits of the log that is kept for a claim."""

    level: str
    """The least level that is kept: ``DEBUG``, ``INFO``, ``WARNING``, ``ERROR`` or ``CRITICAL``."""
    max_lines: int
    """The number of lines of the execution that are kept: the latest."""
    max_bytes: int
    """The most bytes that they have together: their texts, levels and loggers, and 40 for each line."""
    bytes_left: int
    """The number of these bytes that are free. Further lines replace the earliest ones, of earlier attempts
    first."""


class Claim(ApiResponse, Generic[T]):
    """A run that a worker holds until its lease ends."""

    task: T
    """The task as it was when it was claimed."""
    execution_id: str
    """The same on every retry of the occurrence: use it as an idempotency key for other services."""
    scheduled_for: AwareDatetime
    """The occurrence's instant, in UTC."""
    attempt: int
    """Counted from 1."""
    losses: int = 0
    """The latest attempts in a row that were lost with their worker. If there are any, this run may be what
    ended it: do not run it beside another one of which that is true."""
    started_at: AwareDatetime
    """The time at which this attempt started."""
    progress: tuple[ProgressNote, ...] = ()
    """The progress notes of earlier attempts."""
    lease_token: str = Field(repr=False)
    """Proves that the run is yours. It is returned only here."""
    lease_until: AwareDatetime
    """Send a heartbeat before this instant, or the claim may end."""
    logs: ClaimLogs | None = None
    """The limits of the log lines that you send with heartbeats and the report. Missing if none are kept."""


class ClaimList(ApiResponse, Generic[T]):
    """The runs that a worker has claimed."""

    claims: tuple[Claim[T], ...]


class RenewedLease(ApiResponse):
    """The result of a heartbeat."""

    lease_until: AwareDatetime
    """The time at which the renewed lease ends."""
    renewed_at: AwareDatetime
    """The time at which it was renewed: now, by the API's clock."""
    is_cancelled: bool
    """True if the task was cancelled: stop."""


class Feed(ApiResponse):
    """A feed: an owner's tasks as a calendar to subscribe to."""

    id: str
    owner: str
    categories: tuple[str, ...] = ()
    """Only tasks of these categories, or of all categories if empty."""
    labels: tuple[str, ...] = ()
    """Only tasks that have all of these labels."""
    created_at: AwareDatetime


class NewFeedAddress(Feed):
    """A new feed and its address, whose secret is shown only here."""

    url: Uri


class FeedList(ApiResponse):
    """An owner's feeds."""

    feeds: tuple[Feed, ...]


class CalendarSummary(ApiResponse):
    """A calendar without its days."""

    id: str
    """Its full id."""
    owner: str
    """The owner of the calendar, or ``system`` if it is for everybody."""
    title: str = ""
    revision: int = 1
    """Incremented whenever its days change."""
    weekdays: tuple[str, ...] = ()
    url: str | None = None
    """The source of its days. It is shown to those who may change it."""
    holidays: dict[str, Any] | None = None
    """The country of its holidays, and the version of the package that knew them."""
    fetched_at: AwareDatetime | None = None
    problem: str | None = None
    """Why its days could not be read when they were last asked for. They are still those of
    ``fetched_at``."""
    created_at: AwareDatetime
    updated_at: AwareDatetime


class CalendarDetails(CalendarSummary):
    """A calendar with its days."""

    days: tuple[dict[str, str], ...]
    """The days, each with its ``date``, its ``name``, and ``until`` if there are several in a row."""


class CalendarList(ApiResponse):
    """Calendars for everybody, and an owner's own."""

    calendars: tuple[CalendarSummary, ...]


class ScriptSummary(ApiResponse):
    """A stored script without its source."""

    name: str
    owner: str
    """The owner whose tasks and scripts can run it."""
    description: str = ""
    tools: tuple[str, ...] | None = None
    """The handlers that it may call. If missing, it may call all that are tools."""
    version: int
    """Incremented whenever its source or its tools change."""
    created_at: AwareDatetime
    updated_at: AwareDatetime


class ScriptDetails(ScriptSummary):
    """A stored script with its source."""

    source: str


class ScriptList(ApiResponse):
    """An owner's stored scripts."""

    scripts: tuple[ScriptSummary, ...]


class ExportPage(PageResponse):
    """A page of the data that is stored of a person."""

    text: str
    """Lines of JSON."""


class WebhookSecret(ApiResponse):
    """A new secret of a person's webhooks, which is shown only here."""

    webhook_secret: str


class Occurrence(ApiResponse):
    """An instant at which a schedule fires."""

    utc: AwareDatetime
    local: AwareDatetime
    """The same in the schedule's time zone."""


class OccurrenceList(ApiResponse):
    """The next occurrences of a task."""

    occurrences: tuple[Occurrence, ...]


class SchedulePreview(ApiResponse):
    """The meaning of a schedule."""

    description: str
    schedule: Schedule
    occurrences: tuple[Occurrence, ...]
    assumptions: tuple[str, ...] | None = None
    """The assumptions about the words, and calendars that have no dates as late as the last occurrence."""
    title: str | None = None
    """The purpose of the schedule, if the words name it."""


class ScheduleReading(ApiResponse):
    """One of the meanings of a schedule in words."""

    schedule: dict[str, Any]
    """Send it in place of the words."""
    description: str
    """The schedule in words that mean nothing else."""
    label: str
    """The difference from the other readings."""


class FieldError(ApiResponse):
    """One of the things that are wrong with a request, with one of three places."""

    pointer: str | None = None
    """Its place in the body: a JSON Pointer, such as ``#/schedule/rrule``, or ``#`` for the body itself."""
    parameter: str | None = None
    """The parameter of the query or of the path."""
    header: str | None = None
    detail: str
    hint: str | None = None
    """A way to mend it."""
    words: str | None = None
    """The words that were not understood, of a schedule in words."""


class AwaitedEvent(ApiResponse):
    """An event for which an execution of the task waits."""

    name: str
    execution_id: str
    until: Instant | None = None
    """The time at which it stops waiting, or None if it never does."""
    by: tuple[str, ...] = ()
    """The senders whose events count: roles, and users as `user:…`."""


class Problem(ApiResponse):
    """The reason why a request failed (RFC 9457)."""

    type: Uri
    title: str
    status: int
    detail: str
    field: str | None = None
    """The path of the invalid field, or of the first one if there are several."""
    hint: str | None = None
    """A way to mend it."""
    words: str | None = None
    """The words that were not understood, of a schedule in words."""
    errors: tuple[FieldError, ...] | None = None
    """All errors of the request, as far as they were found."""
    readings: tuple[dict[str, Any], ...] | None = None
    """The meanings of a schedule in words, to choose from: each a `ScheduleReading`."""
    awaited: tuple[AwaitedEvent, ...] | None = None
    """The events that the task's executions wait for, if an event was refused because none waits for it."""


class BatchResult(ApiResponse, Generic[T]):
    """The result for one task of a batch."""

    status: int
    task: T | None = None
    problem: Problem | None = None


class BatchResults(ApiResponse, Generic[T]):
    """The results for the tasks of a batch, in their order."""

    results: tuple[BatchResult[T], ...]


class CallerInfo(ApiResponse):
    """The caller, their rights, and the time by the API's clock."""

    role: str
    owner: str | None = None
    """The caller as an owner of tasks, or None for a server."""
    sees_all: bool
    """True if they see the tasks of all owners."""
    may_change: bool
    """True if they may change the tasks that they see."""
    now: AwareDatetime
    """The time of the clock by which the API runs tasks."""


class Health(ApiResponse):
    """The health of a process."""

    status: str
    circuits: dict[str, str]
    """The state of the circuit breaker to each other service."""
    faults: dict[str, str] = {}
    """The faults that keep threads of the process from their work at present, by the threads' names. That of
    ``cloudsched-watch`` is that no process starts what is due. That of ``clock``, with which a process is ready
    all the same, is that a clock was ahead and came back, so that tasks stand still until then."""
    hanging: str | None = None
    """How many handlers hang, and since when: their time is over, and they have not returned. None if none
    does. Who sees the tasks of all owners finds their names in the overview."""
    release: str | None = None
    """The release of cloudsched, such as ``0.1.0``, or ``0.1.0.dev12+g840f0935`` with the commit between
    releases."""
    time_zone_data: str | None = None
    """The release of the time zone data that this process plans with, such as ``2026a``."""


class TriggeredRun(WireModel):
    """The run that a trigger has started, or would start."""

    execution_id: str | None = None
    """Its execution, or None if nothing was to be stored."""
    payload: dict[str, Any]
    """The payload that its handler gets."""


class ReadBack(ApiResponse):
    """The schedule as it was understood. Show it to whoever gave the schedule."""

    description: str
    """The schedule in words."""
    is_summary: bool
    """True if the words leave something out, which they name at their end."""
    next: Annotated[tuple[AwareDatetime, ...], Field(max_length=5)]
    """The next instants at which it runs, at most five, in the schedule's time zone."""
    timezone: str
    assumed: tuple[str, ...]
    """The points that the request left open, and how they were decided, one sentence each."""


class Task(PublicTask):
    """One task: its spec and its state."""

    is_running: bool
    """True if a handler is running for it."""
    offered_at: Instant | None = None
    """The time since which it has been waiting for a worker, if it is."""
    snoozed_until: Instant | None = None
    """The time at which its last run is repeated, if it was snoozed."""
    recent_statuses: tuple[ExecutionStatus, ...] = ()
    """The statuses of its latest executions, the earliest first and those that are open last, at most 12. One
    that was retried counts once, if none ran in between."""
    dispatch_deferred: bool | None = None
    """True if a dispatch could not be created yet. The sweep will create it."""
    upcoming: tuple[Occurrence, ...] | None = None
    """Its next occurrences, only in the answer to ``validateOnly``."""
    triggered: TriggeredRun | None = None
    """The requested run, only in the answer to a trigger."""
    read_back: ReadBack | None = None
    """Its schedule as it was understood, only in answers that create it or change its schedule. A request
    that has searched all that it may leaves it out."""
    receipt: Receipt | None = None
    """Whether and when it runs next, only in answers to changes of it, and where `receipt=true` asks for it."""
    last_result: Any = None
    """The result of its last execution (`lastExecutionId`), only in the answer to a GET of one task."""
    last_error: execution.ExecutionError | None = None
    """The error of that execution's last attempt, likewise. Both are gone once its record has been
    removed."""
    needs: tuple[NeedCause, ...] | None = None
    """The causes for which it needs attention now, only in lists and in the answer to a GET of one task. Missing if
    there are none."""
    gives_up_at: AwareDatetime | None = None
    """When the first of its waits for an event times out, only in lists of tasks. Missing if none does."""
    allowed_verbs: tuple[str, ...] | None = None
    """What the caller may do with it now. Each execution says whether it may be retried."""


class Person(PersonSpec):
    """A person's contacts and preferences."""

    owner: Owner
    created_at: Instant
    updated_at: Instant


class Decision(StoredEnum):
    """The kind of request that a text makes."""

    CREATION = "CREATION"
    UPDATE = "UPDATE"
    OPERATION = "OPERATION"
    """It pauses, resumes, cancels, deletes or triggers a task, without another change of it."""
    LIST = "LIST"
    """It asks which tasks there are. There is nothing to confirm."""
    REFUSAL = "REFUSAL"


class DraftAnswer(ApiResponse):
    """One answer to a question: the fields of the next request for a draft that differ from this one's."""

    label: str
    """The difference from the other answers."""
    description: str = ""
    """The schedule, the task or the handler in words."""
    text: str | None = None
    """Send this text instead. The same again if there is none."""
    context: dict[str, Any] | None = None
    """Add these fields to the context."""


class DraftQuestion(ApiResponse):
    """A question that must be answered before there is anything to confirm."""

    field: str
    """The field of the task that is open, or ``taskId`` if several tasks may be meant."""
    question: str
    answers: tuple[DraftAnswer, ...] = ()
    """The possible meanings. Empty if the answer is free."""


class MissingField(ApiResponse):
    """A field that the text does not give, or gives a value that is not allowed."""

    field: str
    code: str
    """The reason for programs, such as ``too-soon``, ``too-often``, ``past`` or ``not-understood``."""
    reason: str
    """The reason for people, with a way to mend it."""
    words: str | None = None
    """The words at fault, if it is some of the text's."""


class DraftStep(ApiResponse):
    """A step of understanding the text, for a user interface."""

    at: AwareDatetime
    text: str


class NamedTask(ApiResponse):
    """A task that a text names or asks for."""

    id: str
    title: str
    status: TaskStatus
    description: str
    """Its schedule in words."""
    next: Occurrence | None = None
    """Its next occurrence, or the first one on the day that was asked for."""


DraftOperation = Literal["pause", "resume", "cancel", "delete", "trigger"]
"""What a draft does with a task without an edit: the names of verbs."""
DRAFT_TOKEN: Final = "draftToken"  # noqa: S105 - its name
"""The field by which a request confirms a draft."""
MAX_DRAFT_TOKEN: Final = 8_192
"""The longest token, in characters."""


class DraftResult(ApiResponse):
    """The task or change that a text asks for. Nothing of it is stored."""

    decision: Decision
    task: dict[str, Any] | None = None
    """The task that ``POST /v1/tasks`` creates from it, as far as it is known, or None for an update."""
    task_id: str | None = None
    """The task that an update or an operation changes."""
    changes: dict[str, Any] | None = None
    """The body for ``PATCH /v1/tasks/{taskId}``. That of an operation is ``operation`` alone, which is ``pause``,
    ``resume``, ``cancel``, ``delete`` or ``trigger``."""
    tasks: Annotated[tuple[NamedTask, ...], Field(max_length=20)] = ()
    """The task that is changed, or those that a list names, the soonest first."""
    schedule: Schedule | None = None
    description: str = ""
    """The schedule in words."""
    next: Annotated[tuple[Occurrence, ...], Field(max_length=5)] = ()
    """The next occurrences, at most five."""
    read_back: ReadBack | None = None
    """The schedule as it was understood, as in the answers to creations and edits."""
    assumptions: tuple[str, ...] = ()
    """The points that the text leaves open, and how they were decided, one sentence each."""
    questions: tuple[DraftQuestion, ...] = ()
    missing: tuple[MissingField, ...] = ()
    steps: tuple[DraftStep, ...] = ()
    draft_token: str | None = Field(default=None, repr=False)
    """Send it with `task` or `changes`, unchanged, within 15 minutes, so that exactly what was shown is
    stored. None while something is missing or asked."""

    def require_complete(self) -> dict[str, Any]:
        """Return the body that confirms this draft."""
        if self.draft_token is None:
            fields = [*(each.field for each in self.questions), *(each.field for each in self.missing)]
            if fields:
                problem = f"is not complete: {', '.join(fields)}"
            else:
                problem = f"is a {self.decision}"
            raise InvalidInput("draft", problem, "Answer its questions, and draft again.")
        if self.task_id is None:
            fields_shown = self.task
        else:
            fields_shown = self.changes
        return {**(fields_shown or {}), "draftToken": self.draft_token}
