"""The receipt of a write: when a task runs next, and the reasons to doubt that, which explanations give as well."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, Field

from cloudsched.domain.documents.document import WireModel


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
    OVERDUE = "OVERDUE"
    """Other work was due minutes ago, and had not started when the sweep last looked."""
    QUEUE_PAUSED = "QUEUE_PAUSED"
    """The queue that carries its dispatches is paused."""
    UNKNOWN_HANDLER = "UNKNOWN_HANDLER"
    """The code that runs here has no handler of that name."""
    BUDGET_USED_UP = "BUDGET_USED_UP"
    """Its owner may use no more at present."""
    CHANNEL_NOT_SET_UP = "CHANNEL_NOT_SET_UP"
    """A channel by which it delivers has no provider here."""
    NOT_REACHABLE = "NOT_REACHABLE"
    """A channel does not reach its owner: a contact is missing or unverified, or the owner does not want it."""
    NO_ANSWER = "NO_ANSWER"
    """A service that it needs, such as the mail server, has not answered lately."""
    NOT_CHECKED = "NOT_CHECKED"
    """Something of this could not be looked at."""
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
    """Somebody, new time zone data or another zone of its owner moved its occurrences on that day."""
    SKIPPED = "SKIPPED"
    """Somebody left out one of its occurrences on that day."""
    NOT_KEPT = "NOT_KEPT"
    """The evidence is not kept: a record, an earlier schedule, or the history of that time."""


class Doubt(WireModel):
    """A reason why the next run of a task may not begin in time, or what it says may reach nobody."""

    reason: Reason
    """The same for programs as in the answer to explain."""
    sentence: str


class Receipt(WireModel):
    """What was promised by a write: when the task runs, and what stands in the way of that now."""

    scheduled: bool
    """True if the next run is planned, and nothing was found that keeps it from beginning in time. False if there
    are `doubts`."""
    next: Annotated[tuple[AwareDatetime, ...], Field(max_length=3)] = ()
    """The next instants at which it runs, at most three, in the time zone of its owner, or in its own if none is
    stored of them. All are in the future: a run that is due already is not among them."""
    due_by: AwareDatetime | None = None
    """The instant by which its next run should have begun. None if none is to begin."""
    doubts: tuple[Doubt, ...] = ()
