"""The record of an occurrence's execution, and the open run that the task stores until that record is final.

An open run is part of its task's document, so the executor needs one read to decide and one commit to claim
it. Its record under ``executions`` is written when an attempt ends.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, Field

from cloudsched.domain.documents.authority import DEFAULT_SENDERS, Requesters, list_people
from cloudsched.domain.documents.category import Category, Labels
from cloudsched.domain.documents.children import Child, OnChildFailure
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.document import (
    Document,
    Duration,
    Instant,
    Integer,
    Packed,
    StoredEnum,
    WireModel,
    complete_table,
)
from cloudsched.domain.documents.event import Event
from cloudsched.domain.documents.journal import FailureCause, StepRecord
from cloudsched.domain.documents.script import Script
from cloudsched.domain.documents.usage import RunUsage
from cloudsched.features.fields import RunFields


class Definition(WireModel):
    """The definition that an execution began with. Its task may have been edited since."""

    number: int = 0
    """The number by which open runs refer to it in their task."""
    handler: str
    payload: dict[str, Any] = Field(default_factory=dict)
    """Its task's payload. It is empty in the record of an execution that has a payload of its own."""
    children: tuple[Child, ...] = ()
    parallel: bool = False
    on_child_failure: OnChildFailure = OnChildFailure.FAIL
    script: Script | None = None
    defined_by: Requesters | None = None
    """USERS if a user wrote or edited it, or None if only servers did."""

    def to_fields(self) -> dict[str, Any]:
        """Return the fields of a task that runs this."""
        return {name: getattr(self, name) for name in DEFINED}

    def is_same(self, other: Definition) -> bool:
        """Return whether both run the same.

        JSON has different values for some that Python calls equal: 1 and true.
        """
        ours, theirs = (json.dumps(each.to_fields(), default=_dump, sort_keys=True) for each in (self, other))
        return ours == theirs


def _dump(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump()
    return str(value)


DEFINED: Final = tuple(name for name in Definition.model_fields if name != "number")
"""The fields of a task that define what it runs, and on whose authority."""


class ExecutionStatus(StoredEnum):
    """The status of one occurrence's execution."""

    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    SUSPENDED = "SUSPENDED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    SKIPPED = "SKIPPED"

    is_final: bool  # true if the execution is over


OPEN_STATUSES = (ExecutionStatus.RUNNING, ExecutionStatus.RETRYING, ExecutionStatus.SUSPENDED)
"""The statuses of open executions, the most active first."""
for _status in ExecutionStatus:
    _status.is_final = _status not in OPEN_STATUSES
FAILURE_STATUSES = frozenset({ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT})
"""The statuses of executions that ended because the handler failed: lists have them first."""
MISSED_STATUSES = frozenset({*FAILURE_STATUSES, ExecutionStatus.EXPIRED, ExecutionStatus.SKIPPED})
"""The statuses of executions that ended without a result, though nobody called them off."""
NOT_RUN_STATUSES = frozenset({ExecutionStatus.SKIPPED, ExecutionStatus.CANCELLED, ExecutionStatus.EXPIRED})
"""The statuses of executions that ended without a result, by a decision and not by a failure."""

OUTCOME_LETTERS: Final = complete_table(
    ExecutionStatus,
    {
        ExecutionStatus.RUNNING: "r",
        ExecutionStatus.RETRYING: "t",
        ExecutionStatus.SUSPENDED: "s",
        ExecutionStatus.SUCCEEDED: "S",
        ExecutionStatus.FAILED: "F",
        ExecutionStatus.TIMED_OUT: "T",
        ExecutionStatus.CANCELLED: "C",
        ExecutionStatus.EXPIRED: "E",
        ExecutionStatus.SKIPPED: "K",
    },
)
"""A letter for each status. They are part of the stored format."""
_STATUSES: Final = {OUTCOME_LETTERS[status]: status for status in ExecutionStatus}


@lru_cache(maxsize=100)  # most tasks have succeeded all the time
def _pack_outcomes(outcomes: tuple[ExecutionStatus, ...]) -> str:
    return "".join(map(OUTCOME_LETTERS.__getitem__, outcomes))


def _unpack_outcomes(stored: object) -> object:
    if isinstance(stored, str):
        return [_STATUSES.get(each, each) for each in stored]
    return stored


Outcomes = Annotated[tuple[ExecutionStatus, ...], Packed(_pack_outcomes, _unpack_outcomes)]
"""The final statuses of executions, the earliest first. They are stored as a text with a letter for each."""


class Trigger(StoredEnum):
    """The reason why an occurrence runs."""

    SCHEDULE = "SCHEDULE"
    MANUAL = "MANUAL"
    BACKFILL = "BACKFILL"
    SNOOZE = "SNOOZE"


_BRIEF: Final = 200
"""The most letters of an error in a sentence."""


class ExecutionError(WireModel):
    """The error of an attempt."""

    type: str
    """The exception's class."""
    message: str
    traceback: str | None = None
    """The end of the traceback, shortened. Its last lines are nearest to the cause."""

    @property
    def brief(self) -> str:
        """Its type and the first line of its message, as a part of a sentence. What is cut ends with ``…``."""
        whole = f"{self.type}: {self.message}"
        brief = whole.partition("\n")[0][:_BRIEF]
        return brief if brief == whole else f"{brief}…"


class ProgressNote(WireModel):
    """One progress report of a handler."""

    at: Instant
    text: str


class Attempt(WireModel):
    """One call of the handler, counted from 1."""

    number: int
    started_at: Instant
    finished_at: Instant
    status: ExecutionStatus
    """The result of this attempt: SUCCEEDED, FAILED, TIMED_OUT or CANCELLED."""
    error: ExecutionError | None = None
    worker: str | None = None
    """The worker that ran it, or None if an executor did."""
    claim: str | None = None
    """The hash of that worker's lease token, to recognise a result that is reported twice."""
    ended_by: str | None = None
    """The API caller that reported its end, or None if an executor or a worker at the store did."""
    lock_waited_since: Instant | None = None
    """The time since which it waited for its lock, or None if it did not have to wait."""


class Lease(WireModel):
    """One executor's claim on one attempt. Only its holder may write the attempt's result.

    The task's owner can read this document, so it holds nothing that proves who the holder is.
    """

    token_hash: str
    """The hash of the claim's random token, which only its holder has."""
    started_at: Instant
    until: Instant
    """The time at which the claim lapses, if the holder has not finished or extended it."""
    worker: str | None = None
    """The name of the worker that holds it, or None for an executor."""
    queue: str | None = None
    """The queue that it was claimed from, or None for an executor."""
    claimed_by: str | None = None
    """The API caller that claimed it, and that alone may renew, release or end it. None if it was not claimed
    through the API."""
    holder: str | None = None
    """The process that holds it, if no other may execute the store's tasks while it lives. None for a worker,
    and in the cloud."""
    lock_waited_since: Instant | None = None
    """The time since which the run had waited for its lock before this claim, or None if it did not have to
    wait."""


def is_orphaned(lease: Lease, holder: str) -> bool:
    """Return whether the process that holds a lease must have ended, since `holder` has taken its place."""
    return lease.holder is not None and lease.holder != holder


class WaitingFor(StoredEnum):
    """The reason why the executor must not start a due run: it waits for this."""

    WORKER = "WORKER"
    """A worker that claims it."""
    LOCK = "LOCK"
    """The lock, which was held when a worker claimed the run. Once granted, the run is offered again."""


def lease_fingerprint(lease_token: str) -> str:
    """Return the hash of a lease token. Only the hash is stored, during the attempt and after."""
    return hashlib.sha256(lease_token.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Suspension(WireModel):
    """The suspension of a durable handler, with the calls and events that it waits for."""

    at: Instant
    reason: str
    calls: tuple[int, ...] = ()
    """The calls that must all have finished, or one of them if `any_call`, by their numbers in the
    journal."""
    any_call: bool | None = None
    """True if it is enough that one of the calls ends."""
    events: tuple[str, ...] = ()
    """The events that it waits for. One of them is enough."""
    senders: tuple[str, ...] = DEFAULT_SENDERS
    """The roles whose events count, and the users, as ``user:…``."""
    question: str | None = None
    """The question that the event answers, for the users whom it names."""
    asked_at: Instant | None = None
    """The start of the wait for an event, which tells it from any other wait of the execution."""
    channels: tuple[DeliveryChannel, ...] = ()
    """The channels by which the question goes to these users, besides their inboxes."""
    quota_refusal: str | None = None
    """The reason why its owner's quota has no room for calls that it is to make. While some wait, the end of
    any call resumes it."""
    deadline: Instant | None = None
    """The time at which it stops waiting for an event, or None. It is resumed in between, to look for one."""

    @property
    def is_timed(self) -> bool:
        """Return whether it ends at an instant, by itself: a sleep, the retry of a step, or an interruption."""
        return not (self.calls or self.events or self.quota_refusal)

    @property
    def people(self) -> list[str]:
        """The users who are asked by name."""
        return list_people(self.senders)


class Run(RunFields):
    """An occurrence that has no final record yet: claimed, or waiting for its (next) attempt."""

    execution_id: str
    scheduled_for: Instant
    """The occurrence's instant, before jitter."""
    trigger: Trigger = Trigger.SCHEDULE
    attempt: int = 1
    """The attempt that runs or is waited for, counted from 1."""
    due_at: Instant
    """The time at which that attempt is to start."""
    lease: Lease | None = None
    """The claim of the process that runs it, or None while it waits."""
    waiting_for: WaitingFor | None = None
    """The worker or the lock that it waits for, if it is due and its task is run by workers."""
    started_at: Instant | None = None
    """The start of the first attempt, or None if none has started."""
    retried_at: Instant | None = None
    """The latest retry by hand, or None. It was not open for some time before that."""
    is_counted: bool = False
    """True if its task's `run_count` includes it. Scheduled runs are counted, but manual runs and backfills
    are not."""
    attempts: tuple[Attempt, ...] = ()
    """The finished attempts: the first and the last ones."""
    first_lease_at: Instant | None = None
    """The start of its attempt's first lease, if that has been suspended since."""
    omitted_attempts: int = 0
    """The number of attempts between these, which are omitted."""
    progress: tuple[ProgressNote, ...] = ()
    suspension: Suspension | None = None
    """The calls or events that it waits for, if its handler has suspended it."""
    resumed_from: Suspension | None = None
    """The suspension that it was resumed from, if that waited for an event and the run has not taken it
    yet."""
    suspension_count: int = 0
    """The number of times that it has been suspended. A dispatch from before the latest suspension runs
    nothing."""
    turn: int = Field(default=0, alias="lockGrant")
    """The number of its last turn, if it waits for one and a worker is to claim it. Turns are numbered
    upwards."""
    turn_until: Instant | None = Field(default=None, alias="lockGrantUntil")
    """The end of that turn, before which a worker must claim it."""
    uncounted_attempts: int = Field(default=0, alias="attemptsBeforeSuspension")
    """The attempts that its retries do not count: those before it was last suspended, since it made progress
    then, and those that were lost with their process."""
    losses: int = 0
    """The latest attempts in a row that were lost with their process: this one may have ended it."""
    steps: int = 0
    """The number of entries in its journal."""
    restored_reference: str | None = None
    """The place of a manual retry's entries, if they are too many for one commit. Newer entries override
    them."""
    calls_made: int = 0
    """The tasks of all calls up to this number in the journal have been created."""
    released_claim: str | None = None
    """The hash of the lease token of the worker that released it last, to be run again."""
    released_by: str | None = None
    """The API caller that released it then, or None if it was not released through the API."""
    call_finished_while_running: bool = False
    """A call finished while its handler was running: the run polls its calls when it is suspended."""
    usage: RunUsage | None = None
    """The usage that its attempts have reported, or None if they reported none."""
    note: str | None = None
    """The message of its record if there is no other one: the instant from which a calendar has moved it."""
    payload: dict[str, Any] | None = None
    """The payload that it was triggered with, or None if it runs with its task's payload."""
    defined_by: Requesters | None = None
    """USERS if a user gave a part of the run beside its task: that payload, or a stored script that the task
    names."""
    definition: int | None = None
    """The number of the earlier definition of its task that it runs to its end, or None if the definition has
    not changed since it began."""
    log: str | None = None
    """The log of its attempts, encrypted since its owner can read this document. See
    `engine.state.attempt_log`."""

    @property
    def attempt_started_at(self) -> Instant | None:
        """The start of the attempt that is running or suspended, or None if there is none."""
        return self.first_lease_at or (self.lease.started_at if self.lease else None)

    @property
    def wait_for_event(self) -> Suspension | None:
        """The event that it still waits for: it is suspended there, or is being replayed up to there."""
        return next(
            (each for each in (self.suspension, self.resumed_from) if each is not None and each.events),
            None,
        )

    @property
    def wake_at(self) -> Instant:
        """The instant at which to process this run: its lease's end, or the start of its next attempt."""
        return self.lease.until if self.lease else self.due_at

    @property
    def is_waiting_repeat(self) -> bool:
        """Return whether it repeats the last run, later, and has not started: the schedule goes on meanwhile."""
        return self.trigger is Trigger.SNOOZE and self.lease is None and self.started_at is None

    @property
    def open_since(self) -> Instant | None:
        """The time since which it is open for `overlap`, whatever started it. None while it waits for its first start.

        What comes due before that waits for its end as well, and `catchUp` decides about it.
        """
        return self.retried_at or self.started_at

    @property
    def has_begun(self) -> bool:
        """Return whether edits of its task no longer affect it: it has started, or has its own payload."""
        return self.started_at is not None or self.payload is not None


class OccurrenceRange(WireModel):
    """Several occurrences in a row that never ran and share one record."""

    until: Instant
    """The last of them, or the latest that it can be if they were not all counted. The first is the record's
    own."""
    count: Integer = Field(ge=2)
    """The number of occurrences."""
    is_at_least: bool = False
    """True if there may be more, because they were not counted to the end."""


class CalledBy(WireModel):
    """The execution that made a call."""

    task_id: str
    execution_id: str


class Execution(Document):
    """The record of one occurrence's run. ``tasks/{taskId}/executions/{id}``."""

    identified_by: ClassVar[tuple[str, ...]] = ("task_id", "id", "handler", "status", "started_at", "finished_at")

    id: str
    """Derived from the occurrence's instant, so that it is the same on every retry."""
    task_id: str
    owner: str
    title: str | None = None
    """Its task's title, as it was then."""
    handler: str | None = None
    """Its task's handler, as it was then."""
    category: Category | None = None
    """Its task's category, as it was then."""
    labels: Labels = ()
    """Its task's labels, as they were then."""
    called_by: CalledBy | None = None
    """The execution that called its task, or None if none did."""
    scheduled_for: Instant
    covers: OccurrenceRange | None = None
    """The further occurrences that it records: those from its own on that never ran, for one reason."""
    started_at: Instant | None = None
    """The start of the first attempt, or None if nothing was run."""
    finished_at: Instant | None = None
    attempts: tuple[Attempt, ...] = ()
    """The first and the last attempts, by their numbers."""
    omitted_attempts: int = 0
    """The number of attempts between these, which are omitted."""
    attempt_started_at: Instant | None = None
    """The start of the attempt that is running or suspended, or was when it ended. None if there is none."""
    status: ExecutionStatus
    content: Any = None
    """The handler's result, as JSON."""
    error: ExecutionError | None = None
    """The last attempt's error."""
    message: str | None = None
    """The reason for its status, such as why it was skipped, expired or cancelled."""
    next_attempt_at: Instant | None = None
    """The due time of the next attempt of a RETRYING execution. Of a SUSPENDED one, the time at which it goes
    on by itself, or would have if its task were not paused."""
    lease_until: Instant | None = None
    """The time at which the attempt that is running loses its lease, unless it is renewed."""
    worker: str | None = None
    """The worker that is running it, or None if an executor is."""
    progress: tuple[ProgressNote, ...] = ()
    queries: int = Field(default=0, ge=0)
    """Queries that the handler reported, in all attempts."""
    tokens: int = Field(default=0, ge=0)
    """Tokens (of a language model, say) that the handler reported, in all attempts."""
    estimated_queries: float | None = Field(default=None, ge=0)
    """The queries that its task estimated for one execution, or None if it did not."""
    estimated_tokens: float | None = Field(default=None, ge=0)
    """The tokens that its task estimated for one execution, or None if it did not."""
    chat_id: str | None = None
    """The chat that its task comes from, and to which the result belongs."""
    message_id: str | None = None
    """The id of the result's message in that chat, the same however often the execution is tried. It is also
    the id of the first message in the owner's inbox."""
    is_delivered: bool = False
    """True if the result was delivered to all of the task's channels."""
    trigger: Trigger = Trigger.SCHEDULE
    payload: dict[str, Any] | None = None
    """The payload that it ran with, if it differs from its task's: it was triggered with another one, or its
    task was edited meanwhile. Not in lists across tasks."""
    defined_by: Requesters | None = None
    """USERS if a user wrote any part of the run: its task, the payload that it was triggered with, or a
    stored script. None if only servers did: then its result is theirs."""
    has_unrecorded_payload: bool | None = None
    """True if that payload is missing, because it did not fit beside the result."""
    log: str | None = None
    """The log lines of its attempts, encrypted. The API shows it separately, to those who may see it."""
    steps: tuple[StepRecord, ...] = ()
    """The steps of a durable handler, with the results of its steps and calls."""
    steps_reference: str | None = None
    """The place of the steps if they are too large for this document. Reading this single record loads
    them."""
    failure_cause: FailureCause | None = None
    """The steps that made it fail, if any: a manual retry repeats them."""
    calls_made: int = 0
    """The tasks of all calls up to this number in the steps have been created."""
    began_with: Definition | None = None
    """The definition that it ran, if it ended without success. A retry by hand runs it."""
    events: tuple[Event, ...] = ()
    """The events that were accepted for it, and that it ended without taking. A retry by hand gives them to
    it."""
    expire_at: Instant | None = None
    """The time from which the store may remove it."""

    def to_wire(self) -> dict[str, Any]:
        """Return the record as JSON, without its log, which has readers of its own."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"log"})

    @property
    def duration(self) -> timedelta | None:
        """The time that its attempts took, or None if nothing was run, or it is open."""
        return None if self.finished_at is None else self.took(self.finished_at)

    def took(self, now: datetime) -> timedelta | None:
        """Return the time of its attempts, up to now if it is open. None if nothing was run.

        What a handler sleeps or waits for is a part of its attempt, and so is a pause meanwhile. What passes between
        attempts is not: the wait for a retry, a paused task or queue, or a retry by hand.
        """
        if self.started_at is None:
            return None
        spans = [(each.started_at, each.finished_at) for each in self.attempts]
        if self.attempt_started_at is not None:
            spans.append((self.attempt_started_at, self.finished_at or now))
        return sum((max(end - start, timedelta(0)) for start, end in spans), timedelta(0))

    @property
    def lateness(self) -> timedelta | None:
        """The time from its instant to its start, or None if its schedule did not start it."""
        is_planned = self.trigger is Trigger.SCHEDULE and self.started_at is not None
        if is_planned and self.started_at:
            return max(timedelta(0), self.started_at - self.scheduled_for)
        return None

    @property
    def attempt_count(self) -> int:
        """The number of finished attempts."""
        return len(self.attempts) + self.omitted_attempts

    @property
    def is_left_out(self) -> bool:
        """Return whether a calendar leaves this occurrence out, so that nothing was to run."""
        return self.status is ExecutionStatus.SKIPPED and (self.message or "").startswith("Left out: ")


class Message(Document):
    """One item in an owner's web inbox. ``inboxes/{owner}/messages/{id}``."""

    always_stored: ClassVar[frozenset[str]] = Document.always_stored | {"is_read"}

    id: str
    """Derived from the task's and the execution's id, so that no message is stored twice."""
    owner: str
    task_id: str
    execution_id: str
    title: str
    body: str
    created_at: Instant
    event: str | None = None
    """The event that is asked for, if it is a question: send it to the task, for that execution, to
    answer."""
    until: Instant | None = None
    """The time until which an answer is accepted, or None if there is no limit."""
    late: Duration | None = None
    """How much later than due its execution began, if that is more than a few minutes."""
    is_read: bool = False
    read_at: Instant | None = None
    """The time at which its owner first read it."""
    expire_at: Instant | None = None
    """The time from which the store may remove it."""
    answer_url: str | None = None
    """The page on which its owner answers the question by a tap. It is never stored: only its owner, and the
    app's own code, see it. None if the deployment has no public address."""
