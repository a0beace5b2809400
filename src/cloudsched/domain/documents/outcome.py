"""What a handler can do with its attempt: a closed set.

A handler that returns anything else has succeeded with that as its result; one that raises has failed, and is tried
again as its task's retry policy says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.authority import DEFAULT_SENDERS

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.authority import SenderRole


@dataclass(frozen=True, slots=True)
class Done:
    """The occurrence has succeeded, with `content` (anything that JSON can say, or a pydantic model) as its result."""

    content: Any = None


@dataclass(frozen=True, slots=True)
class Retry:
    """The attempt has failed and is worth repeating: `after` a time of the handler's choosing, or the policy's."""

    reason: str
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Snooze:
    """It is too early. Call again at `until` (an aware datetime) or in so much time; this costs no attempt.

    It lasts at least a second.
    """

    until: datetime | timedelta
    reason: str = "Snoozed by its handler."


@dataclass(frozen=True, slots=True)
class Fail:
    """The occurrence has failed for good; no attempt follows."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """There is nothing to do any more: the occurrence is recorded as CANCELLED."""

    reason: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """A durable handler waits, and its function ends; the context says this in the handler's place."""

    reason: str
    until: datetime
    """When to go on, or to look again, if nothing else comes first."""
    calls: tuple[int, ...] = ()
    """The calls that it waits for, all of them, by their numbers in the journal."""
    events: tuple[str, ...] = ()
    """The events that it waits for, any of them."""
    senders: tuple[SenderRole, ...] = DEFAULT_SENDERS
    """Whose events count."""


Outcome = Done | Retry | Snooze | Fail | Cancel | Suspend
