"""The record of one occurrence's run, and the open run that a task carries until that record is final.

A run that is not final lives inside its task's document, so that one read tells the executor everything it needs to
decide, and one commit claims it. Its record under ``executions`` is written when an attempt ends.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from cloudsched.domain.document import Document, Instant, Value
from cloudsched.domain.journal import StepRecord


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


class ExecutionError(Value):
    """What went wrong in an attempt."""

    type: str
    """The exception's class."""
    message: str
    traceback: str | None = None
    """The end of the traceback, shortened; its last lines are nearest to the cause."""


class ProgressStep(Value):
    """One thing that a handler said about how far it is."""

    at: Instant
    text: str


class Attempt(Value):
    """One call of the handler, counted from 1."""

    number: int
    started_at: Instant
    finished_at: Instant
    status: ExecutionStatus
    """How this attempt alone ended: SUCCEEDED, FAILED, TIMED_OUT or CANCELLED."""
    error: ExecutionError | None = None


class Lease(Value):
    """One executor's claim on one attempt. Only its holder may write the attempt's result."""

    token: str
    """Random; tells this claim from any other."""
    started_at: Instant
    until: Instant
    """When the claim lapses, if the holder has not finished or extended it."""


class Suspension(Value):
    """What a durable handler waits for while no function runs."""

    at: Instant
    reason: str
    calls: tuple[int, ...] = ()
    """The calls that must all have ended, by their numbers in the journal."""
    events: tuple[str, ...] = ()
    """The events of which one must have come."""


class Run(Value):
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
    started_at: Instant | None = None
    """When the first attempt began."""
    attempts: tuple[Attempt, ...] = ()
    """The attempts that have ended."""
    progress: tuple[ProgressStep, ...] = ()
    suspension: Suspension | None = None
    """What it waits for, if its handler has suspended it."""
    resumption: int = 0
    """How often it has been suspended. A dispatch from before the last time runs nothing."""
    forgiven: int = 0
    """How many attempts had been used up when it was last suspended: they count no more, since it got further."""
    steps: int = 0
    """How many entries its journal has."""
    calls_made: int = 0
    """Every call up to this number in the journal has its task."""
    is_nudged: bool = False
    """A call has ended while its handler was running: it is to look again when it is suspended."""
    lock_key: str | None = None
    """The lock that its lease holds, as the task named it when the attempt began."""

    @property
    def wakes_at(self) -> Instant:
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
    status: ExecutionStatus
    content: Any = None
    """The handler's result, as JSON."""
    error: ExecutionError | None = None
    """The last attempt's error."""
    message: str | None = None
    """Why it has this status, where that is not plain: what skipped, expired or cancelled it."""
    next_attempt_at: Instant | None = None
    """When a RETRYING execution is tried again."""
    progress: tuple[ProgressStep, ...] = ()
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
    """Where the results of the steps are kept, if they are too many for this document."""
    expire_at: Instant | None = None
    """When the store may remove it."""


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
