"""What was done with a task by hand: who changed what and when. The task's document keeps the latest entries."""

from __future__ import annotations

from cloudsched.domain.documents.authority import EventSender
from cloudsched.domain.documents.document import Instant, StoredEnum, WireModel


class Action(StoredEnum):
    """What was done."""

    CREATED = "CREATED"
    EDITED = "EDITED"
    PAUSED = "PAUSED"
    RESUMED = "RESUMED"
    CANCELLED = "CANCELLED"
    TRIGGERED = "TRIGGERED"
    RETRIED = "RETRIED"
    BACKFILLED = "BACKFILLED"
    ENDED = "ENDED"
    """An admin ended an attempt that another caller had claimed."""


class FieldChange(WireModel):
    """A field that an edit changed."""

    field: str
    before: str | None = None
    """Its value before, as JSON; None if it had none, or if it is not shown: too long, or what may be private."""
    after: str | None = None
    """Its value since, likewise."""


class HistoryEntry(WireModel):
    """One thing that was done with a task."""

    at: Instant
    action: Action
    by: EventSender | None = None
    """Who did it; None for the scheduler itself. Without a subject, it was the app's own code."""
    fields: tuple[FieldChange, ...] = ()
    """What an edit changed."""
    execution_id: str | None = None
    """The execution that it concerns."""
    reason: str | None = None
    """Why the scheduler did it."""
