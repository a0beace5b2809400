"""The queue that carries dispatches, and what it carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cloudsched.domain.documents.policy import Priority

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A dispatch as the queue takes it: opaque to the queue, verified by the executor."""

    name: str
    """Unique for what it may run: making the same one twice makes it once."""
    at: datetime
    """When to deliver it; the past means now. Never further ahead than the horizon."""
    body: bytes
    token: str
    """Proves that whoever knows the secret made this body."""
    priority: Priority = Priority.NORMAL
    """Which of the queues takes it."""


class Dispatcher(Protocol):
    """What carries a dispatch to the executor.

    * Delivery is at least once, not before `at`, in no promised order.
    * A dispatch that the executor did not accept is delivered again.
    * A name that exists, or existed lately, is not created again; that is no error.
    """

    def create(self, message: QueueMessage) -> None:
        """Hand over a dispatch; it will be delivered once this has returned.

        Raises:
            QueueUnavailable: The queue could not be reached, or refused.
        """
        ...

    def close(self) -> None:
        """Let go of connections and threads."""
        ...
