"""The port for the queue, and the messages that it carries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from cloudsched.domain.documents.policy import Priority

HEAD_START = timedelta(milliseconds=2)
"""The time by which a dispatch may be delivered early. Its run is claimed at once, and its handler called in time: the
claim is stored by then. It is as if the clock were ahead by so much, but for the handler."""


@dataclass(frozen=True, slots=True)
class QueueMessage:
    """A dispatch as it is put into the queue: opaque to the queue, verified by the executor."""

    name: str
    """Derived from what the dispatch may run, so that creating the same one twice creates it once."""
    at: datetime
    """The time of delivery, never further ahead than the horizon. An instant in the past means now."""
    body: bytes
    token: str
    """Proves that the body was made by a holder of the secret."""
    priority: Priority = Priority.NORMAL
    """Selects the queue."""
    channel: str | None = None
    """The channel of a delivery, which has a queue of its own: its rate is what the channel's provider allows."""
    is_hop: bool = False
    """True for a hop: it arrives early, runs nothing, and sends the next dispatch. Hops must not delay what is due."""


class Dispatcher(Protocol):
    """Delivers dispatches to the executor.

    * Delivery is at least once, at most `HEAD_START` before `at`, in no guaranteed order.
    * A dispatch that the executor does not accept is delivered again.
    * If a dispatch of the same name exists, or existed recently, none is created, which is no error.
    """

    def create(self, message: QueueMessage) -> None:
        """Create a dispatch. Once this has returned, it will be delivered. Raises QueueUnavailable."""
        ...

    def close(self) -> None:
        """Release connections and threads."""
        ...
