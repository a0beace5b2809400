"""Messages that are held for one person and one instant, to be sent in one piece. ``heldBatches/{id}``."""

from __future__ import annotations

import hashlib
import json
from typing import ClassVar

from cloudsched.domain.documents.channel import DeliveryChannel  # noqa: TC001 - pydantic reads it
from cloudsched.domain.documents.document import Instant, WireModel
from cloudsched.domain.documents.record import Record

MAX_ITEMS = 100
"""How many messages one batch may have."""
MAX_ITEM_BYTES = 4000
"""How much of a message's text a batch keeps; the inbox has it all. So the document stays below 1 MiB."""


class HeldItem(WireModel):
    """A message that is held."""

    delivery_id: str
    category: str = "OTHERS"
    title: str
    body: str
    created_at: Instant


class HeldBatch(Record):
    """What is held for one person and channel until one instant."""

    collection: ClassVar[str] = "heldBatches"

    channel: DeliveryChannel
    until: Instant
    message_id: str
    """Under which it is sent, however often; not to be guessed."""
    items: tuple[HeldItem, ...] = ()
    sender: str | None = None
    """The delivery that is sending it."""
    sending_until: Instant | None = None
    """When another one may take over."""
    sent_as: str | None = None
    """The id that its sender gave it; None if it was not sent yet. A batch of one goes out under its delivery's own."""

    def has(self, delivery_id: str) -> bool:
        """Return whether a delivery's message is part of it."""
        return any(each.delivery_id == delivery_id for each in self.items)


def batch_id(owner: str, channel: DeliveryChannel, until: Instant, number: int = 0) -> str:
    """Return the id of the batch for a person and an instant; the next number when one is full."""
    text = json.dumps([owner, channel, until.isoformat(), number])
    return hashlib.sha256(text.encode()).hexdigest()
