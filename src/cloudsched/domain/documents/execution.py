"""The record of one occurrence's run, and the open run that a task carries until that record is final.

A run that is not final lives inside its task's document, so that one read tells the executor everything it needs to
decide, and one commit claims it. Its record under ``executions`` is written when an attempt ends.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any

from pydantic import Field

from cloudsched.domain.documents.authority import DEFAULT_SENDERS, SenderRole
from cloudsched.domain.documents.document import Document, Instant, WireModel
from cloudsched.domain.documents.journal import FailureCause, StepRecord

MAX_EARLIER_MESSAGE = 300
"""How many characters of an attempt's error are kept once another attempt has followed it."""
FIRST_ATTEMPTS = 5
LAST_ATTEMPTS = 20
"""How many of an execution's attempts are kept: one that goes on for years may have any number of them."""


class ExecutionStatus(StrEnum):
    """Where the run of one occurrence stands."""

    RUNNING = "RUNNING"
    RETRYING = "RETRYING"
    SUSPENDED = "SUSPENDED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    SKIPPED = "SKIPPED"

    @property
    def is_final(self) -> bool:
        """Whether nothing follows."""
        return self not in _OPEN


_OPEN = frozenset({ExecutionStatus.RUNNING, ExecutionStatus.RETRYING, ExecutionStatus.SUSPENDED})


class Trigger(StrEnum):
    """Why an occurrence runs."""

    SCHEDULE = "SCHEDULE"
    MANUAL = "MANUAL"
    BACKFILL = "BACKFILL"


class ExecutionError(WireModel):
    """What went wrong in an attempt."""

    type: str
    """The exception's class."""
    message: str
    traceback: str | None = None
    """The end of the traceback, shortened; its last lines are nearest to the cause."""


class ProgressNote(WireModel):
    """One thing that a handler said about how far it is."""

    at: Instant
    text: str


class Attempt(WireModel):
    """One call of the handler, counted from 1."""

    number: int
    started_at: Instant
    finished_at: Instant
    status: ExecutionStatus
    """How this attempt alone ended: SUCCEEDED, FAILED, TIMED_OUT or CANCELLED."""
    error: ExecutionError | None = None
    worker: str | None = None
    """Which worker ran it; None if an executor did."""
    claim: str | None = None
    """The hash of that worker's lease token: it tells a result that is sent twice."""
    ended_by: str | None = None
    """The API caller that reported how it ended; None if an executor or a worker at the store did."""


def _without_traceback(attempt: Attempt) -> Attempt:
    """Return an earlier attempt without its traceback, so that many of them still fit one document."""
    if attempt.error is None or attempt.error.traceback is None:
        return attempt
    error = ExecutionError(type=attempt.error.type, message=attempt.error.message[:MAX_EARLIER_MESSAGE])
    return attempt.model_copy(update={"error": error})


class Lease(WireModel):
    """One executor's claim on one attempt. Only its holder may write the attempt's result.

    The task's owner can read this document, so it holds nothing that proves who the holder is.
    """

    token_hash: str
    """The hash of the claim's random token, which only its holder has."""
    started_at: Instant
    until: Instant
    """When the claim lapses, if the holder has not finished or extended it."""
    worker: str | None = None
    """What the worker calls itself that has it; None for an executor."""
    queue: str | None = None
    """Which queue it was claimed from; None for an executor."""
    claimed_by: str | None = None
    """The API caller that claimed it, and that alone may renew, release or end it; None if it was not claimed through
    the API."""


class WaitingFor(StrEnum):
    """What a run waits for that is due, and that no executor is to begin."""

    WORKER = "WORKER"
    """A worker that fetches it."""
    LOCK = "LOCK"
    """Its turn at the lock that a worker found taken; then it is offered again."""


def lease_fingerprint(lease_token: str) -> str:
    """Return the hash of a lease token: what is stored of it, during the attempt and after."""
    return hashlib.sha256(lease_token.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Suspension(WireModel):
    """What a durable handler waits for while no function runs."""

    at: Instant
    reason: str
    calls: tuple[int, ...] = ()
    """The calls that must all have ended, by their numbers in the journal."""
    events: tuple[str, ...] = ()
    """The events of which one must have come."""
    senders: tuple[SenderRole, ...] = DEFAULT_SENDERS
    """Whose events count."""


class Run(WireModel):
    """An occurrence that has no final record yet: claimed, or waiting for its (next) attempt."""

    execution_id: str
    scheduled_for: Instant
    """The occurrence's instant, before jitter."""
    trigger: Trigger = Trigger.SCHEDULE
    attempt: int = 1
    """The attempt that runs or is waited for, counted from 1."""
    due_at: Instant
    """When that attempt is to begin."""
    lease: Lease | None = None
    """Who runs it; None while it waits."""
    waiting_for: WaitingFor | None = None
    """What it waits for, if it is due and its task is for workers."""
    started_at: Instant | None = None
    """When the first attempt began; None if nobody has begun it."""
    is_counted: bool = False
    """Whether its task's `run_count` has it: that came by the plan, and was not asked for by hand."""
    attempts: tuple[Attempt, ...] = ()
    """The attempts that have ended: the first and the last ones."""
    attempts_left_out: int = 0
    """How many there were between these."""
    progress: tuple[ProgressNote, ...] = ()
    suspension: Suspension | None = None
    """What it waits for, if its handler has suspended it."""
    suspension_count: int = 0
    """How often it has been suspended. A dispatch from before the last time runs nothing."""
    lock_waits: int = 0
    """How often a worker has found its lock taken: it is woken anew each time."""
    lock_turn_until: Instant | None = None
    """Until when its turn at its lock lasts, if a worker is to come for it in that time."""
    attempts_before_suspension: int = 0
    """How many attempts had been used up when it was last suspended: they count no more, since it got further."""
    steps: int = 0
    """How many entries its journal has."""
    restored_reference: str | None = None
    """Where those are kept that it was retried with, if they were too many for one commit; later ones replace them."""
    calls_made: int = 0
    """Every call up to this number in the journal has its task."""
    released_claim: str | None = None
    """The hash of the lease token of the worker that released it last, to be run again."""
    released_by: str | None = None
    """The API caller that released it then; None if it was not released through the API."""
    call_finished_while_running: bool = False
    """A call has ended while its handler was running: it is to look again when it is suspended."""
    lock_key: str | None = None
    """The lock that its lease holds, as the task named it when the attempt began."""

    def with_attempt(self, attempt: Attempt) -> Run:
        """Return the run with one more attempt that has ended, and so few of the earlier ones that they fit."""
        attempts = (*map(_without_traceback, self.attempts), attempt)
        too_many = max(0, len(attempts) - FIRST_ATTEMPTS - LAST_ATTEMPTS)
        kept = attempts[:FIRST_ATTEMPTS] + attempts[FIRST_ATTEMPTS + too_many :]
        return self.model_copy(update={"attempts": kept, "attempts_left_out": self.attempts_left_out + too_many})

    @property
    def wake_at(self) -> Instant:
        """When somebody must look at this run: its lease's end, or the beginning of its next attempt."""
        return self.lease.until if self.lease else self.due_at


class Execution(Document):
    """The record of one occurrence's run. ``tasks/{taskId}/executions/{id}``."""

    id: str
    """Derived from the occurrence's instant, so that it is the same on every retry."""
    task_id: str
    owner: str
    scheduled_for: Instant
    started_at: Instant | None = None
    """When the first attempt began; None if nothing was run."""
    finished_at: Instant | None = None
    attempts: tuple[Attempt, ...] = ()
    """The first and the last ones, by their numbers."""
    attempts_left_out: int = 0
    """How many attempts there were between these."""
    status: ExecutionStatus
    content: Any = None
    """The handler's result, as JSON."""
    error: ExecutionError | None = None
    """The last attempt's error."""
    message: str | None = None
    """Why it has this status, where that is not plain: what skipped, expired or cancelled it."""
    next_attempt_at: Instant | None = None
    """When a RETRYING execution is tried again."""
    progress: tuple[ProgressNote, ...] = ()
    queries: int = Field(default=0, ge=0)
    """Queries that the handler reported."""
    tokens: int = Field(default=0, ge=0)
    """Tokens (of a language model, say) that the handler reported."""
    is_delivered: bool = False
    """Whether the result reached every channel that the task asks for."""
    trigger: Trigger = Trigger.SCHEDULE
    steps: tuple[StepRecord, ...] = ()
    """What a durable handler did, with the results of its steps and calls."""
    steps_reference: str | None = None
    """Where the steps are kept, if they are too many for this document; who asks for this record alone sees them."""
    failure_cause: FailureCause | None = None
    """Which of the steps made it fail, if any did: these are done again if it is retried by hand."""
    calls_made: int = 0
    """Every call up to this number in the steps has its task."""
    expire_at: Instant | None = None
    """When the store may remove it."""

    @property
    def attempt_count(self) -> int:
        """How many attempts have ended."""
        return len(self.attempts) + self.attempts_left_out


class Message(Document):
    """One item in an owner's web inbox. ``inboxes/{owner}/messages/{id}``."""

    id: str
    """The execution's id behind the task's, so that a message is never there twice."""
    owner: str
    task_id: str
    execution_id: str
    title: str
    body: str
    created_at: Instant
    expire_at: Instant | None = None
    """When the store may remove it."""
