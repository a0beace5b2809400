"""Delivery without the queue, for the sweep while Cloud Tasks cannot be reached.

A dispatch that is due is handed to the executor at once, in the sweep's process. One that is due later cannot be stored
here, so it remains an error: its task's document has its time, and a later sweep finds it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage

log = logging.getLogger(__name__)


class FallbackDispatcher:
    """A `Dispatcher` that delivers due dispatches itself when the wrapped one cannot be reached."""

    def __init__(self, dispatcher: Dispatcher, deliver: Callable[[bytes, str], object], clock: Clock) -> None:
        self._dispatcher = dispatcher
        self._deliver = deliver
        self._clock = clock

    def create(self, message: QueueMessage) -> None:
        """Create the dispatch, or deliver it here if it is due and the queue is out of reach."""
        try:
            self._dispatcher.create(message)
        except QueueUnavailable:
            if message.at > self._clock.now():
                raise
            log.warning("delivered by the sweep", extra={"action": "delivered_by_sweep"})
            try:
                self._deliver(message.body, message.token)
            except QueueUnavailable:
                return  # it ran, but its follow-up could not be sent: the sweep finds that when it is due

    def close(self) -> None:
        """Do nothing: the wrapped dispatcher belongs to its owner."""
