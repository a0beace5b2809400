"""The task: what to run, when, for whom, and its state. ``tasks/{taskId}``.

The owner sets the fields of `TaskSpec`, callers see those of `PublicTask`, and the scheduler alone uses the
others that `Task` has. The document is the truth: a message in the queue is only a hint to read it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self
from weakref import ReferenceType, ref

from pydantic import AfterValidator, Field, StringConstraints

from cloudsched.domain.documents.authority import OWNER_PATTERN, EventSender, Requesters, reject_reserved_name
from cloudsched.domain.documents.category import Category, Labels
from cloudsched.domain.documents.children import CHILDREN_HANDLER, MAX_CHILDREN, Child, OnChildFailure
from cloudsched.domain.documents.delivery_channels import Delivery, DeliveryChannel
from cloudsched.domain.documents.document import Document, Duration, InputModel, Instant, Integer, StoredEnum, WireModel
from cloudsched.domain.documents.event import Event
from cloudsched.domain.documents.execution import (
    FAILURE_STATUSES,
    OPEN_STATUSES,
    Definition,
    Execution,
    ExecutionStatus,
    Outcomes,
    Run,
    Suspension,
)
from cloudsched.domain.documents.policy import CatchUp, Overlap, Priority, RetryPolicy, TellFailures
from cloudsched.domain.documents.script import SCRIPT_HANDLER, Script
from cloudsched.domain.documents.usage import Usage
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.features.fields import SpecFields, TaskFields

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from cloudsched.domain.documents.receipt import Receipt

MAX_MESSAGES = 101
"""A conversation of a hundred messages, and the request itself."""

Text = Annotated[str, StringConstraints(max_length=500)]
LongText = Annotated[str, StringConstraints(max_length=10_000)]


class SourceMessage(InputModel):
    """A message of the conversation that a task comes from."""

    role: Literal["user", "assistant", "system", "tool"]
    content: LongText


class SourceModel(InputModel):
    """The language model's settings in that conversation, for the built-in handler `assistant`."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    """The model's name, or the one of the app's settings if None."""
    max_turns: Integer | None = Field(default=None, ge=1, le=100)
    """The most times that it is asked in one execution. The app's limit holds if this is None or higher."""
    max_tokens: Integer | None = Field(default=None, ge=1, le=10**9)
    """The most tokens that one execution may use. The app's limit holds if this is None or higher."""


class Source(InputModel):
    """The origin of the request for a task."""

    chat_id: Text | None = None
    message_id: Text | None = None
    context: dict[str, Any] | None = None
    """A snapshot of the request's context, stored unchanged."""
    messages: Annotated[tuple[SourceMessage, ...], Field(max_length=MAX_MESSAGES)] | None = None
    """The conversation that led to the task, the earliest message first. It is data, and may have texts by
    others."""
    model: SourceModel | None = None
    """The settings of the language model in that conversation."""


class RequestKind(StoredEnum):
    """How a task knows a request when it comes again."""

    NAMED = "NAMED"
    """By a name that its sender has chosen, or by the state that it was for."""
    EVENT = "EVENT"
    """By what it says: an event."""
    UNNAMED = "UNNAMED"
    """By a name that the code has drawn, to know a commit whose answer was lost."""


class RecentRequest(WireModel):
    """A request that a task remembers, so that a repetition of it changes nothing."""

    key: str
    """A hash of the request's name and its sender, or what it creates or answers. See
    `transitions.idempotency`."""
    content: str = ""
    """A hash of the request's content."""
    at: Instant | None = None
    """The time of the request. It is unique among the task's requests, since the ids of the runs that they
    ask for are derived from it. None for the one that created the task, and for events."""
    side: str = ""
    """The side that it came from (`EventSender.side`). No other side makes the task forget it."""
    kind: RequestKind = RequestKind.NAMED

    @classmethod
    def of_event(cls, event: Event, execution_id: str) -> RecentRequest:
        """Return an event as a request that its task remembers, beside the execution that it was for."""
        return cls(key=event.mark(execution_id), side=event.sender.side, kind=RequestKind.EVENT)

    def may_displace(self, other: RecentRequest) -> bool:
        """Return whether the task may forget the other request to remember this one.

        A creation is never forgotten.
        """
        return other.key not in CREATION_KEYS and (self.side, self.kind) == (other.side, other.kind)


class Hold(WireModel):
    """The latest pause of a task because its owner could use no more."""

    at: Instant
    """The time from which the task's plan goes on afterwards: nothing that comes due meanwhile is lost."""
    is_alone: bool = True
    """True if nobody else has paused the task, too. Then it is resumed as soon as its owner may use more."""


class FieldChange(WireModel):
    """A field that an edit changed."""

    field: str
    before: str | None = None
    """Its value before, as JSON. None if it had none, or if it is not shown, being too long or possibly
    private."""
    after: str | None = None
    """Its value after, likewise."""


class HistoryEntry(WireModel):
    """One action on a task."""

    number: Integer = 1
    """Its number since the task was created. Numbers that are missing are of entries that have fallen off."""
    at: Instant
    action: Action
    by: EventSender | None = None
    """The caller who did it, or None for the scheduler itself. Without a subject, it was the app's own
    code."""
    fields: tuple[FieldChange, ...] = ()
    """The fields that an edit changed."""
    execution_id: str | None = None
    """The execution that it concerns."""
    reason: str | None = None
    """The scheduler's reason for it, or the note of who answered."""


MAX_RETENTION = timedelta(days=36_525)
"""The longest retention, expiration and the like: a hundred years."""
CREATION_KEYS = frozenset({"id", "key"})
"""The keys of the request that created a task, which it remembers as long as it exists. No other key is so
short."""
MAX_REQUESTS = 50
"""The number of the latest named requests that a task remembers of each side: about 5 KB."""
MAX_UNNAMED_REQUESTS = 20
"""The number of the latest events, and of the latest requests without a name, that a task remembers of each
side."""
MAX_OPEN_RUNS = 20
"""The most runs of one task that may be open at once: at their largest they fit Firestore's 1 MiB."""

MAX_NAME = 200
"""The longest name of a handler, in characters."""
MAX_DURATION = timedelta(hours=1)
"""The longest attempt: a function in the cloud is stopped after that time."""
MAX_COUNT = 10**9
"""The largest `max_runs` and `pause_after_failures`, since no store keeps integers without a bound."""


TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,128}$"), AfterValidator(reject_reserved_name)]
"""Letters, digits, hyphens and underscores: allowed in names by both Firestore and Cloud Tasks."""
Owner = Annotated[str, StringConstraints(pattern=f"^{OWNER_PATTERN}$"), AfterValidator(reject_reserved_name)]
"""The owner's id, as one segment of a Firestore path (no slash, no control character)."""


def owner_id_prefix(owner: str) -> str:
    """Return the prefix of all task ids that an owner chose, so that users cannot take each other's."""
    return f"u{hashlib.sha256(json.dumps(owner).encode()).hexdigest()[:16]}-"


class TaskStatus(StoredEnum):
    """The status of a task as a whole."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"


FINAL_STATUSES = frozenset(
    {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED, TaskStatus.EXPIRED},
)
"""The final statuses: nothing of the task starts any more."""


class Trouble(StoredEnum):
    """The reason why a task needs attention, the most urgent first. Stores call it the task's trouble."""

    HELD = "BUDGET"
    """Its owner may use no more for now, and it is paused until then."""
    LIMITED = "LIMIT"
    """Its own limit is used up, and it is paused until the next month."""
    PAUSED = "PAUSED"
    """It is paused, and its last run had failed."""
    FAILED = "FAILED"
    """Its last run has failed."""
    WAITING = "WAITING"
    """A run waits for an event. This counts beside the others, and stores look for it among what is open."""
    DELIVERY = "DELIVERY"
    """It delivers a result, and has failed to, once or for good."""
    UNREACHED = "UNREACHED"
    """It was to deliver a result, and nothing was sent: no address of its person could be used. This counts for the
    person, whom an overview names, and not for the task."""
    OVERDUE = "OVERDUE"
    """It is late. No document shows that: a list looks for it among what is due."""


class NeedCause(StrEnum):
    """The reason why something needs attention, the most urgent first.

    A task counts for the first of its troubles alone, and for WAITING and OVERDUE beside that. What explains many
    tasks at once comes before them.
    """

    QUEUE_PAUSED = "QUEUE_PAUSED"
    """A queue of Cloud Tasks is paused."""
    UNKNOWN_HANDLER = "UNKNOWN_HANDLER"
    """The code that runs has no such handler."""
    BUDGET_USED_UP = "BUDGET_USED_UP"
    """An owner's budget holds tasks."""
    NO_ANSWER = "NO_ANSWER"
    """A service does not answer."""
    NOT_REACHABLE = "NOT_REACHABLE"
    """Messages to a person were not sent."""
    FAILED = "FAILED"
    """Their last run has failed."""
    WAITING = "WAITING"
    """A run waits for an event, which may still come."""
    OVERDUE = "OVERDUE"
    """Their next occurrence is late, and no open run of theirs holds it back."""
    PAUSED = "PAUSED"
    """They are paused, and their last run had failed."""
    HELD = "BUDGET"
    """Their owner may use no more for now, and they are paused until then."""
    LIMITED = "LIMIT"
    """Their own limits are used up, and they are paused until the next month."""
    DELIVERY = "DELIVERY"
    """They deliver a result, and have failed to."""
    NO_WORKER = "NO_WORKER_LISTENS"
    """Work waits in a queue at which no worker listens."""


class KernelSpec(WireModel):
    """The fields that the owner of any task sets. Features add others."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    description: LongText = ""
    purpose: LongText = ""
    category: Category = Category.OTHERS
    labels: Labels = ()
    """Texts ``key=value`` to find it by, such as ``team=payments``."""
    handler: Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
    """The registered name of the function to run."""
    payload: dict[str, Any] = Field(default_factory=dict)
    """The handler's argument, validated against its model."""
    children: tuple[Child, ...] = Field(default=(), max_length=MAX_CHILDREN)
    """The child tasks that it runs in place of a handler of its own."""
    parallel: bool = Field(default=False, strict=True)
    """True if its children run in parallel, rather than in order."""
    on_child_failure: OnChildFailure = OnChildFailure.FAIL
    """The consequence of a failed child for the children after it, and for the task."""
    script: Script | None = None
    """The JavaScript that it runs in place of a handler of its own."""
    delivery_channels: tuple[DeliveryChannel, ...] = Field(default=(), max_length=len(DeliveryChannel))
    delivery_title: Text | None = None
    """The title of the message that is delivered, or the task's title if None."""
    tell_failures: TellFailures = TellFailures.FIRST
    """The failures that its owner is told of, by these channels and in the inbox: the first of a row, each,
    or none."""
    query_per_execution: float = Field(default=0, strict=True, ge=0, allow_inf_nan=False)
    """The estimated cost of one execution, in queries."""
    tokens_per_execution: float = Field(default=0, strict=True, ge=0, allow_inf_nan=False)
    """The estimated cost of one execution, in tokens of a language model."""
    source: Source | None = None
    priority: Priority = Priority.NORMAL
    retry: RetryPolicy = RetryPolicy.build()
    expected_duration: Duration = Field(default=timedelta(minutes=5), gt=timedelta(0), le=MAX_DURATION)
    """The longest duration of one attempt. It is the length of the lease: after it, another executor may take
    over."""
    until: Instant | None = None
    """No occurrence after this instant is run."""
    max_runs: Integer | None = Field(default=None, ge=1, le=MAX_COUNT)
    """The task is complete after this many scheduled runs. Skipped and expired occurrences do not count."""
    jitter: Duration = Field(default=timedelta(0), ge=timedelta(0), le=timedelta(days=1))
    """Each run starts up to this much later, by an amount that is fixed for the occurrence."""
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.build()
    expiration: Duration | None = Field(default=None, gt=timedelta(0), le=MAX_RETENTION)
    """An occurrence that did not start within this time is recorded as EXPIRED and not run."""
    pause_after_failures: Integer | None = Field(default=None, ge=1, le=MAX_COUNT)
    """The task pauses itself after this many failed occurrences in a row."""
    execution_retention: Duration | None = Field(default=None, gt=timedelta(0), le=MAX_RETENTION)
    """The retention of an execution's record and messages. None: the record as long as the task, messages for
    ever."""
    retention: Duration | None = Field(default=None, gt=timedelta(0), le=MAX_RETENTION)
    """The time for which the task is kept after its end, with its executions. None: for ever."""


class TaskSpec(SpecFields, KernelSpec):
    """The fields that the owner sets. Each can be edited later."""


class Backfill(WireModel):
    """A past range whose occurrences are being run again."""

    requested_at: Instant
    next_at: Instant
    """The next occurrence to run."""
    until: Instant
    """The last instant of the range."""


class DueRange(WireModel):
    """Occurrences that came due before their task was paused, and that run once it is resumed."""

    next_at: Instant
    """The first of them."""
    until: Instant
    """The last of them."""


class ZoneChange(WireModel):
    """A change of the owner's time zone.

    An occurrence that was due by then has not become later because of it.
    """

    at: Instant
    """The time at which the task was planned in the new zone."""
    shift: Duration
    """The time by which the same local time was later in the earlier zone. It is below zero if it was earlier
    there."""

    def due_since(self, occurrence: datetime) -> datetime:
        """Return since when an occurrence has been due, after a change of the zone that it follows.

        An occurrence that the clock has passed over is due since the change.
        """
        if occurrence > self.at:
            return occurrence
        return min(self.at, add_duration(occurrence, self.shift))


class Parent(WireModel):
    """The call that created a task."""

    task_id: str
    execution_id: str
    step: int
    """The number of the call's entry in that execution's journal."""
    depth: int
    """The nesting depth of the call: 1 if its caller has no parent."""
    is_owners: bool = False
    """True if the task's owner wrote the call, as one of a task's children or in a script. Then the owner may
    claim it as a worker, but not change it. A call that a handler's code made the owner may neither claim nor
    change."""
    is_for_user: bool = False
    """True if a user wrote or edited the task at the top. Then the owner's quotas hold for the calls below
    it."""
    script_tree: str | None = None
    """If a script called a script: the task and the execution at the top, for which such calls are
    counted."""

    def is_same_call(self, other: Parent | None) -> bool:
        """Return whether both are one entry of one execution's journal."""
        return other is not None and (self.task_id, self.execution_id, self.step) == (
            other.task_id,
            other.execution_id,
            other.step,
        )


class ZonePlan(WireModel):
    """The time zone data of a plan, for processes that have other data.

    An occurrence is named by the time that the clock shows. The plan's instants are those of the data that it
    was made with, so the plan keeps the reading of the clock at each of them.
    """

    release: str
    """The IANA release, such as ``2026a``. A later one is greater."""
    fingerprint: str = ""
    """The fingerprint of the zone's clock changes in that release, or empty if it does not know the zone."""
    clock: tuple[int, ...] = ()
    """Pairs of an instant of the plan, in seconds since 1970, and the clock's offset from UTC at that
    instant."""
    is_second: bool = False
    """True if the next occurrence is the second one of a time that the clock shows twice."""
    is_stale: bool = False
    """True if a process with older data has planned on, or knows that newer ones are in use. The sweep plans
    again."""

    def offset_at(self, seconds: int) -> int | None:
        """Return the clock's offset from UTC at an instant of the plan, or None if it is not one of them."""
        return next(
            (offset for at, offset in zip(self.clock[::2], self.clock[1::2], strict=True) if at == seconds),
            None,
        )


class PublicTask(Document, TaskSpec):
    """The fields of a task that callers of the API see: its spec and its state."""

    identified_by: ClassVar[tuple[str, ...]] = ("id", "title", "owner", "handler", "status", "next_execution_time")
    always_stored: ClassVar[frozenset[str]] = Document.always_stored | {"category", "status", "revision"}

    id: TaskId
    owner: Owner
    schedule: Schedule
    is_one_time: bool
    timezone: str
    status: TaskStatus = TaskStatus.ACTIVE
    revision: int = 1
    """Incremented by every edit. A dispatch of an older revision runs nothing."""
    message: str = ""
    """The reason why the task is in this status."""
    paused_until: Instant | None = None
    """The time at which its pause ends by itself. None if somebody has to resume it."""
    pause_id: str | None = None
    """The change of many tasks that paused it, or that resumed it, as long as nothing else has paused, resumed or ended
    it since: that can be taken back for all of them. None if it was paused or resumed alone."""
    next_execution_time: Instant | None = None
    """The next occurrence that has not been claimed. None if there is none, or while the task is not
    ACTIVE."""
    created_at: Instant
    updated_at: Instant
    status_changed_at: Instant
    outcome: ExecutionStatus | None = None
    """The final status of the last scheduled occurrence. Manual runs and backfills do not count."""
    run_count: int = 0
    """The number of scheduled occurrences that have run, or wait for a worker."""
    consecutive_failures: int = 0
    """The number of occurrences in a row that have failed, up to the one that was due last, without those of which a
    retry by hand has succeeded."""
    failing_since: Instant | None = None
    """The time at which the first of these failed, or was due once a retry by hand of one before it has succeeded.
    None if the last one has not failed."""
    last_execution_id: str | None = None
    """The execution that was due last, of those that have ended. A retry of an earlier one does not take its
    place."""
    parent: Parent | None = None
    """The call that created this task, or None if a caller created it directly."""
    events: tuple[Event, ...] = ()
    """The events that its durable handler has not taken yet, the earliest first."""


@dataclass(eq=False)
class _Answer:
    """What the answer to a call can look up. A copy of it, or one in another process, looks up nothing."""

    of: ReferenceType[Task]
    find_assumed: Callable[[], Sequence[str]]
    make_receipt: Callable[[], Receipt]

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


class Task(TaskFields, PublicTask):
    """One task as it is stored: the public fields, and the state that only the scheduler uses."""

    _answer: ClassVar[_Answer | None] = None
    runs: tuple[Run, ...] = ()
    """The open runs: occurrences that have started, were requested manually, or wait for a worker."""
    earlier_definitions: tuple[Definition, ...] | None = None
    """The definitions with which open runs began before the task was edited, each once, as long as a run
    needs it."""
    recent_outcomes: Outcomes = ()
    """The final statuses of its latest executions, the earliest first. `transitions.records` bounds it."""
    outcome_execution_id: str | None = None
    """The id of that execution: its result goes to a call's parent."""
    latest_run_at: Instant | None = None
    """The due time of the run that says whether it is failing: the latest of those that have run to their
    end."""
    planned_to: Instant | None = None
    """The latest occurrence that was processed: no edit makes it run again."""
    earlier_planned_to: Instant | None = None
    """The latest occurrence that was processed before the latest new schedule, whether this one has it or not."""
    schedule_text: str | None = None
    """The text that gave it its schedule, if one did and it means a whole one. The same text again changes
    nothing."""
    first_at: Instant | None = None
    """The first occurrence of a recurring schedule, if that was past when the task got it or was resumed. It
    tells lists whether there is a past to backfill, without a search of the schedule."""
    backfill: Backfill | None = None
    backlog: tuple[DueRange, ...] = ()
    """Occurrences that came due before a pause and are still to run, the earliest first. Of an ACTIVE task
    only those from `next_execution_time` on count."""
    plan_from: Instant | None = None
    """The time from which the plan goes on after its backlog, or began if the schedule has calendars. Earlier
    occurrences were not due, or have a record."""
    zone_change: ZoneChange | None = None
    """The latest change of its owner's zone, if its schedule follows that and something was due by then."""
    recent_requests: tuple[RecentRequest, ...] = ()
    """The latest requests of each side that must be known when they come again, the earliest first. Events
    are among them, each with the execution that it was for. `requests_with` bounds them."""
    defined_by: Requesters | None = None
    """USERS if a user wrote or edited it, which limits what its script may call. None if only servers did."""
    paused_by: Requesters | None = None
    """USERS if a user paused it last. None if a server or the scheduler itself did."""
    hold: Hold | None = Field(default=None, alias="budgetPause")
    """Its latest pause because its owner could use no more. `present_hold` says whether that still holds."""
    is_paused_as_gone: bool = False
    """True if ``cloudsched apply`` paused it because its declaration was gone from the code. If anybody else
    pauses it, too, it is their pause."""
    inner_pause_id: str | None = None
    """The `pause_id` that it had when many were paused without an end while it was paused already, or "" if it had
    none. Until that is taken back, its own pause does not end by itself. None if there is no such pause."""
    has_children: bool = False
    """True if any of its executions has made calls. Only then can it have child tasks."""
    failure_told_at: Instant | None = None
    """The time at which its owner was told of a failure. None once they are told that it works again, or
    before."""
    history: tuple[HistoryEntry, ...] = ()
    """The actions on it by hand, the earliest first. `transitions.history` bounds it."""
    deferred: bool = False
    """True if follow-up work of the last commit (a dispatch, say) could not be done. The sweep does it."""
    deleted_at: Instant | None = None
    """Set while the task is being deleted. Callers no longer see it."""
    is_made_by_run: bool = False
    """True if a run has created it, or the task that calls it."""
    delivery: Delivery | None = None
    """The result that it delivers, if the system made it to deliver one."""
    usage: Usage = ()
    """Its usage in this month and the one before."""
    used_by_calls: Usage = ()
    """What the calls of its runs have used, likewise. They count it themselves: here it is for its limit."""
    zone_plan: ZonePlan | None = None
    """The time zone data that it is planned with, or None if they cannot move it."""
    wake_at: Instant | None = None
    """The time at which the sweep must process this task if nothing else has. None: never."""
    expire_at: Instant | None = None
    """The time from which the store may remove it by itself, after its end. See `transitions.expiry`."""

    @cached_property
    def assumed(self) -> tuple[str, ...]:
        """The points that a call left open in its schedule, and how they were decided, one sentence each.

        Empty if it was loaded: nothing of it is stored.
        """
        answer = self.answer
        return () if answer is None else tuple(answer.find_assumed())

    @cached_property
    def receipt(self) -> Receipt | None:
        """Whether and when it runs next, and what stands in the way of that, looked up when you first ask for it.

        None if it is not the answer to a call of `App`. On an event loop, ask in a thread: it may read the store.
        """
        answer = self.answer
        return None if answer is None else answer.make_receipt()

    @property
    def answer(self) -> _Answer | None:
        """What it can look up, if it is the answer to a call itself, and no copy of one."""
        return self._answer if self._answer is not None and self._answer.of() is self else None

    def answering(self, find_assumed: Callable[[], Sequence[str]], make_receipt: Callable[[], Receipt]) -> Self:
        """Return the task as the answer to a call: with the points that this has left open, and a receipt, if asked."""
        answer = self.model_copy()
        vars(answer)["_answer"] = _Answer(ref(answer), find_assumed, make_receipt)
        for name in ("assumed", "receipt"):  # of an earlier answer
            vars(answer).pop(name, None)
        return answer

    @property
    def present_hold(self) -> Hold | None:
        """The pause of a task because its owner may use no more, if it still holds."""
        hold = self.hold
        is_held = hold is not None and self.status is TaskStatus.PAUSED and hold.at >= self.status_changed_at
        return hold if is_held else None

    @property
    def goes_on_by_itself(self) -> bool:
        """Whether it is paused, and nobody has to resume it: a budget holds it, or its pause has an end."""
        hold = self.present_hold
        is_held = hold is not None and hold.is_alone
        ends = is_held or self.paused_until is not None
        return ends and self.status is TaskStatus.PAUSED and self.inner_pause_id is None

    @property
    def omitted_history(self) -> int:
        """Return the number of entries of its history that have fallen off."""
        if not self.history:
            return 0
        return self.history[-1].number - len(self.history)

    @property
    def whole_history(self) -> tuple[HistoryEntry, ...]:
        """Return the latest entries of its history among which none is missing."""
        last = len(self.history) - 1
        gaps = [at for at in range(last) if self.history[at].number + 1 < self.history[at + 1].number]
        return self.history[gaps[-1] + 1 :] if gaps else self.history

    @property
    def waits_for_removal(self) -> bool:
        """Return whether nothing is left to do for it but to remove it once its retention has passed."""
        return self.has_ended and self.deleted_at is None and not self.deferred

    @property
    def has_ended(self) -> bool:
        """Return whether it has a final status and no open run."""
        return self.status in FINAL_STATUSES and not self.runs

    @property
    def is_made_by_code(self) -> bool:
        """Return whether a handler's code called it, so that its owner cannot decide what it is or how it ends."""
        return self.parent is not None and not self.parent.is_owners

    @property
    def is_written_by_owner(self) -> bool:
        """Return whether its owner wrote the children or the script that it runs, and no code called it."""
        return self.handler in {CHILDREN_HANDLER, SCRIPT_HANDLER} and not self.is_made_by_code

    @property
    def is_for_user(self) -> bool:
        """Return whether a user wrote or edited it, or the top of its tree, so that its calls count in quotas."""
        return self.defined_by is Requesters.USERS or (self.parent is not None and self.parent.is_for_user)

    @property
    def is_active(self) -> bool:
        """Return whether its dispatches may run anything."""
        return self.status is TaskStatus.ACTIVE and self.deleted_at is None

    def as_begun(self, run: Run) -> Task:
        """Return the task with the definition that one of its open runs began with, whatever was edited."""
        if run.definition is None:
            return self
        earlier = self.earlier_definitions or ()
        return self.as_defined(next(each for each in earlier if each.number == run.definition))

    def find_author(self, run: Run) -> Requesters | None:
        """Return USERS if a user wrote any part of one of its open runs, or None if only servers did."""
        return run.defined_by or self.as_begun(run).defined_by

    def as_defined(self, definition: Definition) -> Task:
        """Return the task with an earlier definition."""
        return self.model_copy(update=definition.to_fields())

    def has_event(self, execution_id: str, names: Iterable[str], senders: Container[str]) -> bool:
        """Return whether an event has come for an execution that has not taken it yet."""
        return any(event.is_for(name, execution_id, senders) for event in self.events for name in names)

    def find_run(self, execution_id: str) -> Run | None:
        """Return the open run of that execution, if there is one."""
        for run in self.runs:
            if run.execution_id == execution_id:
                return run
        return None

    def runs_with(self, run: Run) -> tuple[Run, ...]:
        """Return the open runs with this one added or replaced."""
        others = tuple(other for other in self.runs if other.execution_id != run.execution_id)
        return (*others, run)

    def requests_with(self, *requests: RecentRequest) -> tuple[RecentRequest, ...]:
        """Return the requests that it remembers, with these as the latest.

        Each makes it forget the earliest one of its own side and kind at most, and no creation.
        """
        keys = {each.key for each in requests}
        known = [*(each for each in self.recent_requests if each.key not in keys), *requests]
        for added in requests:
            ring = [each for each in known if added.may_displace(each)]
            if len(ring) > (MAX_REQUESTS if added.kind is RequestKind.NAMED else MAX_UNNAMED_REQUESTS):
                known.remove(ring[0])
        return tuple(known)


def _find_position(task: Task, run: Run) -> tuple[ExecutionStatus, datetime] | None:
    """Return a run's status as an open execution, and since when, or None if its handler was never started.

    While its task is paused, a run that was to be tried again waits for that to end: it is not being retried.
    """
    if run.suspension is not None:
        return ExecutionStatus.SUSPENDED, run.suspension.at
    if run.lease is not None:
        return ExecutionStatus.RUNNING, run.lease.started_at
    if run.started_at is None:
        return None
    if task.status is TaskStatus.PAUSED:
        return ExecutionStatus.SUSPENDED, task.status_changed_at
    return ExecutionStatus.RETRYING, run.due_at


def get_open_status(task: Task, run: Run) -> ExecutionStatus | None:
    """Return the status of a task's run as an open execution, or None if its handler was never started."""
    position = _find_position(task, run)
    return None if position is None else position[0]


def find_open_position(task: Task) -> tuple[ExecutionStatus, datetime, bool] | None:
    """Return the task's place in lists of open executions: its most active run's status, since when, and if any asks.

    None if nothing of it is open, or if no list has it.
    """
    if not task.runs or task.delivery is not None or task.deleted_at is not None:
        return None
    positions = list[tuple[ExecutionStatus, datetime]]()
    for run in task.runs:
        if position := _find_position(task, run):
            positions.append(position)
    if len(positions) > 1:
        positions.sort(key=lambda one: (OPEN_STATUSES.index(one[0]), one[1]))
    if not positions:
        return None
    return *positions[0], positions[-1][0] is ExecutionStatus.SUSPENDED and bool(list_questions(task))


def list_questions(task: Task) -> list[Suspension]:
    """Return the waits of a task's runs for events that have not come."""
    return [
        wait
        for run in task.runs
        if (wait := run.suspension) and wait.events and not task.has_event(run.execution_id, wait.events, wait.senders)
    ]


def find_list(execution: Execution) -> bool | None:
    """Return whether lists across tasks have a record among the failures, which come first.

    None if no list has it.

    Open executions are listed by their tasks.
    """
    if execution.handler is None or not execution.status.is_final:
        return None
    return execution.status in FAILURE_STATUSES
