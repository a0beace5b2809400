"""Deliveries that are held: what waits for the same instant is sent by one of them, in one piece."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cloudsched.domain.documents.channel import COMPLETION, DeliveryChannel
from cloudsched.domain.documents.held_batch import HeldItem
from cloudsched.domain.people.digest_text import compose_digest
from cloudsched.engine.people.held_batches import HeldBatches, ToSend
from cloudsched.engine.ports.sender import Suppress

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.people.held_batches import Busy, Sent
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.engine.ports.sender import Message, Recipients


class DeliveryBatches:
    """Collects held deliveries, and lets one send for all.

    Args:
        records: Where batches are stored.
        clock: The current time.
        recipients: Returns what knows how people want to be reached.
    """

    def __init__(self, records: RecordStore, clock: Clock, recipients: Callable[[], Recipients]) -> None:
        self._held = HeldBatches(records, clock)
        self._clock = clock
        self._recipients = recipients

    def add(self, task: Task, message: Message, until: datetime) -> None:
        """Add a delivery to what is held until an instant. Safe to repeat."""
        assert task.delivery is not None  # noqa: S101 - only deliveries are held
        item = HeldItem(
            delivery_id=task.id,
            category=task.delivery.category,
            title=message.title,
            body=message.body,
            created_at=message.created_at,
        )
        self._held.add(task.owner, DeliveryChannel(task.delivery.channel), until, item)

    def claim(self, task: Task) -> ToSend | Sent | Busy | None:
        """Return what a delivery that was held has to do; None if it is to be sent alone."""
        assert task.delivery is not None  # noqa: S101 - likewise
        if task.delivery.channel == COMPLETION:
            return None
        channel = DeliveryChannel(task.delivery.channel)
        return self._held.claim_waiting(task.owner, channel, task.id) if channel.traits.is_held else None

    def merge(self, message: Message, task: Task, claim: ToSend | None) -> Message:
        """Return the message for all of a batch that the person still wants; without a batch, the message itself."""
        if claim is None or len(claim.items) == 1:
            return message
        assert task.delivery is not None  # noqa: S101 - likewise
        channel, now = task.delivery.channel, self._clock.now()
        wanted = {task.delivery.category: True}
        for item in claim.items:
            if item.category not in wanted:
                found = self._recipients().find(task.owner, channel, item.category, now, now)
                wanted[item.category] = not isinstance(found, Suppress)
        text = compose_digest([item for item in claim.items if wanted[item.category]])
        return replace(message, id=claim.message_id, thread=claim.message_id, title=text.title, body=text.body, data={})

    def finish(self, claim: ToSend, message_id: str) -> None:
        """Record under which id a batch was sent: all its deliveries name it in their records."""
        self._held.finish(claim.key, message_id)
