"""The form of an explanation, and the evidence that it is made from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.task import Task, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.execution import Execution


class Reason(StrEnum):
    """The reason why a task runs, waits or does not run."""

    ENDED = "ENDED"
    """It has a final status."""
    PAUSED = "PAUSED"
    RUNNING = "RUNNING"
    LEASE_ENDED = "LEASE_ENDED"
    """An attempt has not reported by its lease's end."""
    RETRYING = "RETRYING"
    """It waits for the next attempt."""
    PUT_OFF = "PUT_OFF"
    """Its handler has put it off, or its worker has given it back: the same attempt starts later."""
    WAITING_FOR_WORKER = "WAITING_FOR_WORKER"
    NO_WORKER_LISTENS = "NO_WORKER_LISTENS"
    """It waits for a worker, and none has asked for such work in the last minutes."""
    WAITING_FOR_LOCK = "WAITING_FOR_LOCK"
    WAITING_FOR_EVENT = "WAITING_FOR_EVENT"
    EVENT_ARRIVED = "EVENT_ARRIVED"
    """An event has been sent, and no handler has taken it yet."""
    WAITING_FOR_CALLS = "WAITING_FOR_CALLS"
    WAITING_FOR_QUOTA = "WAITING_FOR_QUOTA"
    SLEEPING = "SLEEPING"
    SUSPENDED = "SUSPENDED"
    """Its handler waits for something else: to try a step again, or for a service that is down."""
    DUE = "DUE"
    """It is due, and its dispatch has not arrived."""
    SCHEDULED = "SCHEDULED"
    """It runs later."""
    ADJUSTED = "CALENDAR"
    """The next occurrence has been moved, or one before it is skipped, as a calendar says."""
    FOLLOWS_OWNER = "FOLLOWS_OWNER"
    """Its times are those of the zone in which its owner is."""
    UNKNOWN_ZONE = "UNKNOWN_ZONE"
    """The time zone data no longer have its zone."""
    TOO_MANY_RUNS = "TOO_MANY_RUNS"
    """It has as many open runs as a task may have, so the next occurrence waits for the end of one."""
    OVERLAP = "OVERLAP"
    """An open run decides whether and when the next occurrence runs."""
    BACKLOG = "BACKLOG"
    """Occurrences from before a pause, or of a backfill, are still to run."""
    DEFERRED = "DEFERRED"
    """The queue could not be reached. The sweep sends the missing dispatches."""
    SWEEP_IS_LATE = "SWEEP_IS_LATE"
    NOT_DELIVERED = "NOT_DELIVERED"
    """What a run has to say has not arrived: its delivery is tried again, or has failed."""
    LAST_OUTCOME = "LAST_OUTCOME"
    OUTCOME = "OUTCOME"
    """The result of an occurrence on the day that was asked about."""
    NOT_CREATED = "NOT_CREATED"
    """On the day that was asked about, there was no such task yet."""
    NOT_DUE = "NOT_DUE"
    """Its schedule has nothing to run on that day."""
    CLOCK_CHANGE = "CLOCK_CHANGE"
    """The clocks of its zone change on that day."""
    EDITED = "EDITED"
    """It was edited on that day, or its schedule later."""
    MOVED = "MOVED"
    """New time zone data, or another zone of its owner, moved its occurrences on that day."""
    NOT_KEPT = "NOT_KEPT"
    """The evidence is not kept: a record, an earlier schedule, or the history of that time."""


class Finding(WireModel):
    """One reason, with its evidence."""

    reason: Reason
    sentence: str
    at: Instant | None = None
    """The instant that it is about: of the next attempt, of a lease's end, of a status."""
    execution_id: str | None = None
    """The execution that it is about, or None if it is about the task."""


class Explanation(WireModel):
    """The reasons why a task runs when it does, or does not run."""

    task_id: str
    status: TaskStatus
    summary: str
    """The sentence of the first finding."""
    findings: tuple[Finding, ...]
    """The reasons, the most important one first."""
    at: Instant | None = None
    """The instant that was asked about, or None for the present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """A delivery that has not arrived."""

    execution_id: str
    """The execution that it delivers."""
    scheduled_for: datetime
    """The instant of that execution."""
    channel: str
    status: str
    since: datetime
    """The time at which the execution ended."""
    reason: str | None
    next_attempt_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What the runs of a task take turns at, such as a lock."""

    sentence: str
    """Says of a run that waits for its turn what it waits for."""
    waiting: frozenset[str]
    """The executions that are known to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The workers for which a run of a task waits."""

    needed: str
    """The worker that it needs, to stand in a sentence: "worker with the skill 'cuda' on the queue 'gpu'"."""
    listeners: int
    """The number of such workers that have asked for work in the last minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The content of the store about a task."""

    task: Task
    now: datetime
    turns: Turns | None = None
    """What its runs take turns at, or None if they take none."""
    last: Execution | None = None
    """Its last record."""
    undelivered: Sequence[Undelivered] = ()
    """The deliveries of the records that are told which have not arrived."""
    swept_at: datetime | None = None
    """The end of the last sweep, if the task is late and a sweep was noted."""
    hanging: str = ""
    """How many handlers of the process that swept hang, as far as the reader may know. Empty if none does."""
    workers: Workers | None = None
    """The workers for which a run of it waits, or None if none does."""

    @property
    def sweep_is_late(self) -> bool:
        """Return whether no sweep was noted in the last minutes, of those that come once a minute."""
        return self.swept_at is None or self.swept_at + SWEEP_TOLERANCE < self.now


SWEEP_TOLERANCE: Final = timedelta(minutes=3)
"""The lateness from which the sweep is mentioned. It runs once a minute, and gives dispatches a minute to
arrive."""
