"""Stored documents as the API shows them: models that the API, its description in OpenAPI and the client share."""

from __future__ import annotations

from typing import Any

from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.execution import ExecutionStatus  # noqa: TC001 - pydantic reads it
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.responses import Occurrence  # noqa: TC001 - pydantic reads it
from cloudsched.domain.documents.task import Owner, PublicTask


class TriggeredRun(WireModel):
    """What a trigger has started, or would start."""

    execution_id: str | None = None
    """Its execution; None if nothing was to be stored."""
    payload: dict[str, Any]
    """The payload that its handler gets."""


class Task(PublicTask):
    """One task: its spec and its state."""

    is_running: bool
    """Whether a handler is running for it."""
    offered_at: Instant | None = None
    """Since when it has been waiting for a worker, if it is."""
    recent_statuses: tuple[ExecutionStatus, ...] = ()
    """The statuses of its latest executions, the earliest first and those that are open last; 12 at most. One that was
    retried counts once, if none ran in between."""
    dispatch_deferred: bool | None = None
    """A dispatch could not be created yet; the sweep will create it."""
    upcoming: tuple[Occurrence, ...] | None = None
    """Its next occurrences; only in the answer to ``validateOnly``."""
    triggered: TriggeredRun | None = None
    """The run that was asked for; only in the answer to a trigger."""
    allowed_verbs: tuple[str, ...] | None = None
    """What the caller may do with it now, so that it changes: of ``edit``, ``pause``, ``resume``, ``cancel``,
    ``delete``, ``trigger``, ``backfill`` and ``sendEvent``. Its executions say whether they may be retried."""


class Person(PersonSpec):
    """A person's contacts and preferences."""

    owner: Owner
    created_at: Instant
    updated_at: Instant
