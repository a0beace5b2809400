"""A queue in memory that holds only what is due soon; the store has the rest.

A year of reminders would fill the memory of a small server. Only dispatches that are due before `accept_until` are
queued, and `Sweeper.resend` sends the others from the store once that instant has been moved on.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage


class WindowedDispatcher:
    """A `Dispatcher` that passes on only dispatches that are due before an instant, and drops the others.

    Args:
        queue: The queue that delivers.
    """

    def __init__(self, queue: Dispatcher) -> None:
        self._queue = queue
        self._end = datetime.min.replace(tzinfo=UTC)

    def accept_until(self, end: datetime) -> None:
        """Accept dispatches that are due up to this instant; it never moves back.

        Call this before the tasks that are due by then are read from the store. A task that is committed before that
        read is found by it, and the dispatch of one that is committed later is accepted here: none is missed.
        """
        self._end = max(self._end, end)

    def create(self, message: QueueMessage) -> None:
        """Queue a dispatch that is due soon enough; drop another.

        Raises:
            QueueUnavailable: The queue was closed.
        """
        if message.at <= self._end:
            self._queue.create(message)

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()
