"""An event: an answer, or news, from outside for a durable handler. It is kept until a run has taken it.

It is part of its task while the run that it is for is open. If that run ends without success, it is part of
the run's record instead, and a retry by hand puts it back.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, StringConstraints

from cloudsched.domain.documents.authority import EventSender, reject_reserved_name
from cloudsched.domain.documents.document import Instant, WireModel

if TYPE_CHECKING:
    from collections.abc import Container

EventName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,128}$"), AfterValidator(reject_reserved_name)]
"""Letters, digits, dots, hyphens and underscores: a segment of a URL."""


class Event(WireModel):
    """An event sent to a durable handler, and not yet taken by it."""

    name: EventName
    payload: Any = None
    at: Instant
    token: str = ""
    """A value that tells it from another one that is equal."""
    execution_id: str | None = None
    """The only execution that may take it, with which it is removed, or None if the first that waits for it
    may."""
    sender: EventSender
    """The sender. The handler that waits for it decides whether it counts, when it is taken."""

    def is_for(self, name: str, execution_id: str, senders: Container[str]) -> bool:
        """Return whether an execution that waits for this name and these senders may take this event."""
        return self.name == name and self.execution_id in {None, execution_id} and self.sender.counts_for(senders)

    def mark(self, execution_id: str) -> str:
        """Return the mark that tells a repetition: the execution, and a hash of the event and its sender."""
        said = [self.name, self.payload, self.sender.role, self.sender.subject]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
        return f"{execution_id} {digest}"
