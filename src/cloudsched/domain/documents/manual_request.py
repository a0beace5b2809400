"""What a task remembers of requests for runs by hand, so that a repeated one starts nothing."""

from __future__ import annotations

from cloudsched.domain.documents.document import Instant, WireModel


class ManualRequest(WireModel):
    """The latest trigger or backfill request."""

    at: Instant
    """Unique among the task's requests: the ids of their runs are derived from it."""
    token: str
    """Identifies the request, so that repeating it after a lost response changes nothing."""


class KeyedTrigger(WireModel):
    """A trigger that its caller may repeat, by an idempotency key."""

    key: str
    """A hash of the key and of who used it."""
    fingerprint: str
    """A hash of what was asked for: another request with this key is refused."""
    execution_id: str
    """The run that it asked for."""
