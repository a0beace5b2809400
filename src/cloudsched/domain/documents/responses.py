"""The API's responses: written once, for the API that sends them, its description in OpenAPI, and the client.

They are read as they are by newer and older clients, so an unknown field is kept and not refused. What has a task is
generic: the API sends it as JSON, the client reads it as its view, and the description names the model of a task.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cloudsched.domain.documents import execution
from cloudsched.domain.documents.delivery import DeliveryStatus
from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.execution import ExecutionStatus, Message, ProgressNote
from cloudsched.domain.documents.log_lines import LogLine
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.task import HistoryEntry, Owner, PublicTask
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidInput


class Execution(execution.Execution):
    """The record of one occurrence's run."""

    allowed_verbs: tuple[str, ...] | None = None
    """What the caller may do with it now: of ``retry`` and ``sendEvent``. Lists across tasks leave it out where only
    the task would tell: of what is over, has not succeeded, and whose task the caller might change. No list looks for
    steps that are stored apart, so it names ``retry`` though these may be gone; a retry is refused then."""


T = TypeVar("T")

Uri = Annotated[str, Field(json_schema_extra={"format": "uri"})]


class ApiResponse(BaseModel):
    """A response, or a part of one."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="allow",
        defer_build=True,  # most processes send or read few of them
    )

    @classmethod
    def model_parametrized_name(cls, params: Any) -> str:  # noqa: ANN401, ARG003 - pydantic's signature
        """Return the name of a generic response: that of the response, whatever its tasks are."""
        return cls.__name__

    def to_wire(self) -> dict[str, Any]:
        """Return the response as JSON types with camelCase keys, without the fields that are None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Page(ApiResponse):
    """Some of a list, whose items are in a field of their own."""

    next_page_token: str | None = None
    """Fetches the next page."""
    looked_through: int | None = None
    """How many were read for it, where it passed over some that do not match."""

    @classmethod
    def items_field(cls) -> str:
        """Return the name of that field, on the wire."""
        (name,) = cls.model_fields.keys() - Page.model_fields.keys()
        return to_camel(name)


class TaskPage(Page, Generic[T]):
    """Some of a list of tasks."""

    tasks: tuple[T, ...]


class ExecutionPage(Page):
    """Some of a list of executions."""

    executions: tuple[Execution, ...]


class ExecutionLogs(ApiResponse):
    """What an execution has logged, the latest lines, in their order."""

    lines: tuple[LogLine, ...]
    left_out: int = Field(default=0, ge=0)
    """How many earlier lines are not kept."""
    is_unreadable: bool = False
    """Whether they cannot be read any more: they were encrypted with a secret that is gone."""


class TaskHistory(ApiResponse):
    """What was done with a task by hand, the latest first."""

    entries: tuple[HistoryEntry, ...]
    omitted_entries: int = Field(default=0, ge=0)
    """How many earlier entries are not kept."""


class DeliveryReport(ApiResponse):
    """How far the result of an execution has come by one channel."""

    channel: str
    status: DeliveryStatus
    attempts: int = Field(ge=0)
    """How often it has been tried to the end."""
    sent_at: AwareDatetime | None = None
    """When the other side took it."""
    message_id: str | None = None
    """The id under which the other side knows it."""
    reason: str | None = None
    """Why it was not sent, or not yet."""


class DeliveryList(ApiResponse):
    """The deliveries of an execution."""

    deliveries: tuple[DeliveryReport, ...]


class DeliveryEntry(DeliveryReport):
    """A delivery in a list across executions."""

    id: str
    """That of the task that delivers."""
    owner: str
    title: str
    task_id: str
    """The task whose result it delivers."""
    execution_id: str
    created_at: AwareDatetime
    next_attempt_at: AwareDatetime | None = None
    """When it is tried next, if it is."""


class DeliveryPage(Page):
    """Some of a list of deliveries."""

    deliveries: tuple[DeliveryEntry, ...]


class MessagePage(Page):
    """Some of the messages in an inbox."""

    messages: tuple[Message, ...]


class UnreadCount(ApiResponse):
    """How many messages in an inbox are unread."""

    unread: int = Field(ge=0, le=1000)


class Tree(ApiResponse, Generic[T]):
    """A task and the calls that it made, in order."""

    task: T
    children: tuple[Tree[T], ...] = ()
    omitted_children: int = Field(default=0, ge=0)
    """How many calls of this task were left out. Newer calls, and those nearer to the root, are shown first."""


class ClaimLogs(ApiResponse):
    """What is kept of what a claim's worker logs."""

    level: str
    """The least level that is kept: ``DEBUG``, ``INFO``, ``WARNING``, ``ERROR`` or ``CRITICAL``."""
    max_lines: int
    """How many lines of the execution are kept: the latest."""
    max_bytes: int
    """How many bytes they have together: their texts, levels and loggers, and 40 for each line."""
    bytes_left: int
    """How many of these are free: lines beyond them take the place of the earliest ones, of earlier attempts first."""


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
    started_at: AwareDatetime
    """When this attempt started."""
    progress: tuple[ProgressNote, ...] = ()
    """The progress notes of earlier attempts."""
    lease_token: str = Field(repr=False)
    """Proves that the run is yours. It is returned only here."""
    lease_until: AwareDatetime
    """Send a heartbeat before this instant, or the claim may end."""
    logs: ClaimLogs | None = None
    """What is kept of what you log, and send with heartbeats and the report; missing if nothing is kept."""


class ClaimList(ApiResponse, Generic[T]):
    """What a worker has claimed."""

    claims: tuple[Claim[T], ...]


class RenewedLease(ApiResponse):
    """The result of a heartbeat."""

    lease_until: AwareDatetime
    """When the renewed lease ends."""
    renewed_at: AwareDatetime
    """When it was renewed: now, by the API's clock."""
    is_cancelled: bool
    """Whether the task was cancelled: stop."""


class Feed(ApiResponse):
    """A feed: an owner's tasks as a calendar to subscribe to."""

    id: str
    owner: str
    categories: tuple[str, ...] = ()
    """Only tasks of these categories; all if there are none."""
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
    """Whose it is; ``system`` for one that is for everybody."""
    title: str = ""
    revision: int = 1
    """Incremented whenever its days change."""
    weekdays: tuple[str, ...] = ()
    url: str | None = None
    """Where its days are from; for those who may change it."""
    holidays: dict[str, Any] | None = None
    """Whose holidays they are, and the version that knew them."""
    fetched_at: AwareDatetime | None = None
    created_at: AwareDatetime
    updated_at: AwareDatetime


class CalendarDetails(CalendarSummary):
    """A calendar with its days."""

    days: tuple[dict[str, str], ...]
    """Each with its date, until if there are several in a row, and name."""


class CalendarList(ApiResponse):
    """Calendars for everybody, and an owner's own."""

    calendars: tuple[CalendarSummary, ...]


class ScriptSummary(ApiResponse):
    """A stored script without its source."""

    name: str
    owner: str
    """Whose tasks and scripts can run it."""
    description: str = ""
    tools: tuple[str, ...] | None = None
    """The handlers that it may call; if missing, all that are tools."""
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


class ExportPage(Page):
    """Some of what is stored of a person."""

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
    """What a schedule means."""

    description: str
    schedule: Schedule
    occurrences: tuple[Occurrence, ...]
    assumptions: tuple[str, ...] | None = None
    """What words left open, and how it was taken; and calendars that have no dates as late as the last occurrence."""
    title: str | None = None
    """What the words say that the schedule is for."""


class ScheduleReading(ApiResponse):
    """One of the meanings of a schedule in words."""

    schedule: dict[str, Any]
    """Send it in place of the words."""
    description: str
    """The schedule in words that mean nothing else."""
    label: str
    """What distinguishes it from the other readings."""


class FieldError(ApiResponse):
    """One of the things that are wrong with a request's body."""

    pointer: str
    """Its place: a JSON Pointer in the body, such as ``#/schedule/rrule``; ``#`` for the body itself."""
    detail: str
    hint: str | None = None
    """What to do about it."""
    words: str | None = None
    """The words that were not understood, of a schedule in words."""


class AwaitedEvent(ApiResponse):
    """An event for which an execution of the task waits."""

    name: str
    execution_id: str
    until: Instant | None = None
    """When it stops waiting; None if it never does."""


class Problem(ApiResponse):
    """Why a request failed (RFC 9457)."""

    type: Uri
    title: str
    status: int
    detail: str
    field: str | None = None
    """The path of the invalid field; of the first, if there are several."""
    hint: str | None = None
    """What to do about it."""
    words: str | None = None
    """The words that were not understood, of a schedule in words."""
    errors: tuple[FieldError, ...] | None = None
    """All that is wrong with the body, as far as it was found."""
    readings: tuple[dict[str, Any], ...] | None = None
    """The meanings of a schedule in words, to choose from: each a `ScheduleReading`."""
    awaited: tuple[AwaitedEvent, ...] | None = None
    """The events that the task's executions wait for, if an event was refused because none waits for it."""


class BatchResult(ApiResponse, Generic[T]):
    """What became of one task of a batch."""

    status: int
    task: T | None = None
    problem: Problem | None = None


class BatchResults(ApiResponse, Generic[T]):
    """What became of the tasks of a batch, in their order."""

    results: tuple[BatchResult[T], ...]


class CallerInfo(ApiResponse):
    """Who is calling, what they may do, and what time it is for the API."""

    role: str
    owner: str | None = None
    """The caller as an owner of tasks; None for a server."""
    sees_all: bool
    """Whether they see the tasks of all owners."""
    may_change: bool
    """Whether they may change the tasks that they see."""
    now: AwareDatetime
    """The time of the clock by which the API runs tasks."""


class Health(ApiResponse):
    """Whether a process can serve."""

    status: str
    circuits: dict[str, str]
    """The state of the circuit breaker to each other service."""
    faults: dict[str, str] = {}
    """What keeps threads of the process from their work at present, by their names."""
    time_zone_data: str | None = None
    """The release of the time zone data that this process plans with, such as ``2026a``."""


class TriggeredRun(WireModel):
    """What a trigger has started, or would start."""

    execution_id: str | None = None
    """Its execution; None if nothing was to be stored."""
    payload: dict[str, Any]
    """The payload that its handler gets."""


class ReadBack(ApiResponse):
    """What a schedule was understood to be. Show it to whoever gave the schedule."""

    description: str
    """The schedule in words."""
    is_summary: bool
    """The words leave something out, which they name at their end."""
    next: Annotated[tuple[AwareDatetime, ...], Field(max_length=5)]
    """The next instants at which it runs, at most five, in the schedule's time zone."""
    timezone: str
    assumed: tuple[str, ...]
    """What the request left open, and how it was decided, one sentence each."""


class Task(PublicTask):
    """One task: its spec and its state."""

    is_running: bool
    """Whether a handler is running for it."""
    offered_at: Instant | None = None
    """Since when it has been waiting for a worker, if it is."""
    snoozed_until: Instant | None = None
    """When what has run last runs again, if it was snoozed."""
    recent_statuses: tuple[ExecutionStatus, ...] = ()
    """The statuses of its latest executions, the earliest first and those that are open last; 12 at most. One that was
    retried counts once, if none ran in between."""
    dispatch_deferred: bool | None = None
    """A dispatch could not be created yet; the sweep will create it."""
    upcoming: tuple[Occurrence, ...] | None = None
    """Its next occurrences; only in the answer to ``validateOnly``."""
    triggered: TriggeredRun | None = None
    """The run that was asked for; only in the answer to a trigger."""
    read_back: ReadBack | None = None
    """What its schedule was understood to be; only in answers that create it or change its schedule. A request that has
    searched all that it may leaves it out."""
    allowed_verbs: tuple[str, ...] | None = None
    """What the caller may do with it now, so that it changes: of ``edit``, ``pause``, ``resume``, ``cancel``,
    ``delete``, ``trigger``, ``snooze``, ``backfill`` and ``sendEvent``. Its executions say whether they may be
    retried."""


class Person(PersonSpec):
    """A person's contacts and preferences."""

    owner: Owner
    created_at: Instant
    updated_at: Instant


class Decision(StrEnum):
    """What a text asks for."""

    CREATION = "creation"
    UPDATE = "update"
    REFUSAL = "refusal"


class DraftAnswer(ApiResponse):
    """One answer to a question: the fields of the next request for a draft that differ from this one's."""

    label: str
    """What distinguishes it from the other answers."""
    description: str = ""
    """The schedule, the task or the handler in words."""
    text: str | None = None
    """Send this text instead."""
    context: dict[str, Any] | None = None
    """Add these fields to the context."""


class DraftQuestion(ApiResponse):
    """What has to be answered before there is anything to confirm."""

    field: str
    """The field of the task that is open, or ``taskId`` if several tasks may be meant."""
    question: str
    answers: tuple[DraftAnswer, ...] = ()
    """What may be meant; empty if the answer is free."""


class MissingField(ApiResponse):
    """A field that the text does not give, or not as it may be."""

    field: str
    code: str
    """The reason for programs, such as ``too-soon``, ``too-often``, ``past`` or ``not-understood``."""
    reason: str
    """The reason for people, with what to do."""
    words: str | None = None
    """The words at fault, if it is some of the text's."""


class DraftStep(ApiResponse):
    """What was done to understand the text, for a user interface."""

    at: AwareDatetime
    text: str


class DraftResult(ApiResponse):
    """What a text asks for. Nothing of it is stored."""

    decision: Decision
    task: dict[str, Any] | None = None
    """The task that ``POST /v1/tasks`` creates from it, as far as it is known; None for an update."""
    task_id: str | None = None
    """The task that an update changes."""
    changes: dict[str, Any] | None = None
    """The body for ``PATCH /v1/tasks/{taskId}``."""
    schedule: Schedule | None = None
    description: str = ""
    """The schedule in words."""
    next: Annotated[tuple[Occurrence, ...], Field(max_length=5)] = ()
    """The next occurrences, at most five."""
    read_back: ReadBack | None = None
    """The same of the schedule, as the answers to creations and edits have it."""
    assumptions: tuple[str, ...] = ()
    """What the text leaves open, and how it was decided, one sentence each."""
    questions: tuple[DraftQuestion, ...] = ()
    missing: tuple[MissingField, ...] = ()
    steps: tuple[DraftStep, ...] = ()
    draft_token: str | None = Field(default=None, repr=False)
    """Send it with `task` or `changes`, unchanged, within 15 minutes: then what is stored is what was shown. None while
    something is missing or asked."""

    def require_complete(self) -> dict[str, Any]:
        """Return the body that confirms this draft.

        Raises:
            InvalidInput: It has no token, because something is asked or missing.
        """
        if self.draft_token is None:
            fields = [*(each.field for each in self.questions), *(each.field for each in self.missing)]
            problem = f"is not complete: {', '.join(fields)}" if fields else f"is a {self.decision}"
            raise InvalidInput("draft", problem, "Answer its questions, and draft again.")
        fields_shown = self.task if self.task_id is None else self.changes
        return {**(fields_shown or {}), "draftToken": self.draft_token}
