"""Deliveries that are held: collected while they wait for the same instant, and sent by one of them in one piece.

Each delivery wakes up at the end of the wait. The first one claims the batch and sends it; the others find that they
were sent, or that somebody is at it. A process that dies while sending loses its claim after `CLAIM`, and the next
delivery sends the batch again under the same id, by which receivers recognise the repeat.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.documents.channel import CALLBACKS, DeliveryChannel
from cloudsched.domain.documents.delivery import name_message
from cloudsched.domain.documents.json_limits import truncate
from cloudsched.domain.documents.person import MAX_ITEM_BYTES, MAX_ITEMS, HeldBatch, HeldItem, batch_id
from cloudsched.engine.people.record_changes import retry_conflicts
from cloudsched.engine.ports.sender import Suppress
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore
    from cloudsched.engine.ports.sender import Message, Recipients


_MAX_TITLES = 3


class DigestText(NamedTuple):
    """What one message that stands for several says."""

    title: str
    body: str


def compose_digest(items: Sequence[HeldItem]) -> DigestText:
    """Return one message for several, in the order in which they came; a single one stays as it is."""
    ordered = sorted(items, key=lambda item: (item.created_at, item.delivery_id))
    if len(ordered) == 1:
        return DigestText(ordered[0].title, ordered[0].body)
    shown = ", ".join(item.title for item in ordered[:_MAX_TITLES])
    rest = f" and {len(ordered) - _MAX_TITLES} more" if len(ordered) > _MAX_TITLES else ""
    body = "\n\n\n".join(f"{item.title}\n\n{item.body}".strip() for item in ordered)
    return DigestText(f"{len(ordered)} messages: {shown}{rest}", body)


CLAIM: Final = timedelta(minutes=2)
"""How long one delivery may take to send a batch."""
_KEPT_FOR: Final = timedelta(days=2)
_MAX_BATCHES: Final = 100


@dataclass(frozen=True, slots=True)
class ToSend:
    """The caller has to send these messages as one, under the batch's id."""

    key: str
    message_id: str
    items: tuple[HeldItem, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """Another delivery has sent the batch."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Busy:
    """Another delivery is sending the batch; look again then."""

    until: datetime


class HeldBatches:
    """Collects what is held, and hands each batch to one delivery."""

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def add(self, owner: str, channel: DeliveryChannel, until: datetime, item: HeldItem) -> str:
        """Add a message to what is held for a person until an instant; return the batch's id. Safe to repeat."""
        short = item.model_copy(
            update={
                "title": truncate(item.title, MAX_ITEM_BYTES // 4),
                "body": truncate(item.body, MAX_ITEM_BYTES),
            }
        )

        def write(key: str) -> bool:
            now = self._clock.now()
            stored = self._records.load(HeldBatch, key)
            if stored is not None and stored.record.has(item.delivery_id):
                return True
            if stored is not None and (len(stored.record.items) >= MAX_ITEMS or stored.record.sender is not None):
                return False
            batch = (
                stored.record
                if stored is not None
                else HeldBatch(
                    id=key,
                    owner=owner,
                    channel=channel,
                    until=until,
                    message_id=name_message(item.delivery_id, secrets.token_urlsafe(24)),
                    created_at=now,
                    updated_at=now,
                    expire_at=until + _KEPT_FOR,
                )
            )
            batch = batch.model_copy(update={"items": (*batch.items, short), "updated_at": now})
            self._records.write(batch, None if stored is None else stored.version)
            return True

        for number in range(_MAX_BATCHES):
            key = batch_id(owner, channel, until, number)
            if retry_conflicts(f"batch {key}", lambda key=key: write(key)):  # type: ignore[misc]  # bound at once
                return key
        raise NotFound("batch with room", owner)

    def claim_waiting(self, owner: str, channel: DeliveryChannel, delivery_id: str) -> ToSend | Sent | Busy | None:
        """Return what a delivery that was held has to do; None if it is part of no batch. Reads the person's batches.

        There are few: each is removed two days after its time.
        """
        found = self._records.list(HeldBatch, owner, limit=HeldBatch.max_per_owner)
        own = [batch for batch in found if batch.channel == channel and batch.has(delivery_id)]
        try:  # it is part of several if it was held again; all of those choose the last
            return self.claim(max(own, key=lambda batch: batch.until).id, delivery_id) if own else None
        except NotFound:
            return None

    def claim(self, key: str, delivery_id: str) -> ToSend | Sent | Busy:
        """Return what a delivery that has woken up has to do. Raises NotFound if the batch is gone."""

        def write() -> ToSend | Sent | Busy:
            now = self._clock.now()
            stored = self._records.load(HeldBatch, key)
            if stored is None or not stored.record.has(delivery_id):
                raise NotFound("batch", key)
            batch = stored.record
            if batch.sent_as is not None:
                return Sent(batch.sent_as)
            if batch.sending_until is not None and batch.sending_until > now and batch.sender != delivery_id:
                return Busy(batch.sending_until)
            claimed = {"sender": delivery_id, "sending_until": now + CLAIM, "updated_at": now}
            self._records.write(batch.model_copy(update=claimed), stored.version)
            return ToSend(key, batch.message_id, batch.items)

        return retry_conflicts(f"batch {key}", write)

    def finish(self, key: str, message_id: str) -> None:
        """Record under which id a batch was sent; the first one stays."""

        def write() -> None:
            stored = self._records.load(HeldBatch, key)
            if stored is not None and stored.record.sent_as is None:
                now = self._clock.now()
                done = stored.record.model_copy(update={"sent_as": message_id, "updated_at": now})
                self._records.write(done, stored.version)

        retry_conflicts(f"batch {key}", write)


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
        if task.delivery.channel in CALLBACKS:
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
        return replace(
            message,
            id=claim.message_id,
            thread=claim.message_id,
            title=text.title,
            body=text.body,
            data={},
            snooze_url=None,
        )

    def finish(self, claim: ToSend, message_id: str) -> None:
        """Record under which id a batch was sent: all its deliveries name it in their records."""
        self._held.finish(claim.key, message_id)
