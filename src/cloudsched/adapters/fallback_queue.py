"""Delivering without the queue: what the sweep may do while Cloud Tasks cannot be reached.

A dispatch that is due is handed to the executor at once, in the sweep's own process. One that is due later cannot be
kept here, so that remains an error: the document knows of it, and a later sweep finds it.
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
    """A `Dispatcher` that delivers what is due by itself when the other one cannot be reached."""

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
            log.warning("delivered by the sweep", extra={"action": "delivered by the sweep"})
            try:
                self._deliver(message.body, message.token)
            except QueueUnavailable:
                return  # it has run, and what follows it could not be sent: the sweep finds that when it is due

    def close(self) -> None:
        """Leave the other one to its owner."""
