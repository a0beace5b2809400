"""A delivery: a task that the system makes to carry an execution's result to a person, over one channel.

`Task.delivery` says of which execution. How far it has come follows from the task; see `DeliveryStatus`.
"""

from __future__ import annotations

import hashlib
import json
import re
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import Instant, StoredEnum, WireModel

DELIVERY_HANDLER = "cloudsched.delivery"
"""The built-in handler of deliveries."""


class DeliveryStatus(StoredEnum):
    """How far a delivery has come."""

    PENDING = "PENDING"
    """It waits for its first attempt."""
    SENDING = "SENDING"
    RETRYING = "RETRYING"
    """An attempt has failed, and another one follows."""
    SENT = "SENT"
    """The other side has taken responsibility for it."""
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    SUPPRESSED = "SUPPRESSED"
    """It was not sent: the recipient does not want it, has no address, or the address is known to take nothing."""
    DELIVERED = "DELIVERED"
    """By the provider's word, like the two that follow."""
    BOUNCED = "BOUNCED"
    COMPLAINED = "COMPLAINED"


CallbackUrl = Annotated[str, StringConstraints(pattern=r"^https?://[!-~]{1,2000}$")]


class OnCompletion(WireModel):
    """Who is told that an execution of a task has ended."""

    webhook: CallbackUrl
    """Where a webhook is posted to, signed with the owner's webhook secret. Users may name only addresses at the host
    of their own webhook."""


class PingEvent(StrEnum):
    """What a dead-man's switch is told of an execution."""

    START = "start"
    SUCCESS = "success"
    FAILURE = "fail"
    """It failed, timed out or expired."""


class Ping(WireModel):
    """Which dead-man's switch is told that a task's executions begin and end, such as a check of healthchecks.io.

    Users may name only addresses at the host of their own webhook, and at hosts that the operator allows.
    """

    url: CallbackUrl
    """Posted to when an execution has succeeded. If it has no query, ``/start`` and ``/fail`` are added to it when one
    begins, and when one has failed, timed out or expired, unless `startUrl` and `failureUrl` say otherwise."""
    start_url: CallbackUrl | None = None
    """Posted to when an execution begins."""
    failure_url: CallbackUrl | None = None
    """Posted to when an execution has failed, timed out or expired."""

    def address(self, event: PingEvent) -> str | None:
        """Return where an event is posted to; None for nowhere."""
        own = {PingEvent.START: self.start_url, PingEvent.SUCCESS: self.url, PingEvent.FAILURE: self.failure_url}[event]
        if own is not None:
            return own
        return None if "?" in self.url else f"{self.url.rstrip('/')}/{event}"


class Delivery(WireModel):
    """Which execution's result a task carries, and how."""

    channel: str
    """A `DeliveryChannel`, `COMPLETION` or `PING`."""
    task_id: str
    """The task of the execution."""
    execution_id: str
    category: str
    """The category of that task: people choose channels by it."""
    created_at: Instant
    """When the execution succeeded: the same for all attempts."""
    message_id: str
    """Names the message to its receivers; not to be guessed, and the same for all attempts."""
    thread: str
    """Names the conversation of all messages of that task; not to be guessed."""
    siblings: tuple[str, ...] = ()
    """The ids of the execution's other deliveries."""
    url: str | None = None
    """Where a completion callback or a ping goes."""
    is_users_url: bool = False
    """Whether a user may have named that URL, who may name only endpoints of their own."""
    provider_status: DeliveryStatus | None = None
    """What the provider has reported since it was sent."""
    provider_reason: str | None = None
    """Why, in the words of the recipient's mail server."""


def derive_delivery_id(task_id: str, created_at: Instant, execution_id: str, channel: str, recipient: str) -> str:
    """Return the id of the delivery of an execution over a channel to a recipient.

    It is the same however often the success is decided. A task that is created again under its id has others.
    """
    origin = json.dumps([task_id, created_at.isoformat(), execution_id, channel, recipient])
    return f"d{hashlib.sha256(origin.encode()).hexdigest()[:31]}"


def name_message(delivery_id: str, proof: str) -> str:
    """Return the id of a delivery's message: the delivery's, and what nobody can guess."""
    return f"{delivery_id}_{proof}"


def read_delivery_id(message_id: str) -> str | None:
    """Return the id of the delivery that a message's id begins with, if it looks like one."""
    found = re.fullmatch(r"(d[0-9a-f]{31})_[A-Za-z0-9_-]+", message_id)
    return None if found is None else found[1]


MAX_EVENTS = 1_000
"""How many events one request may have: providers send some hundreds at most."""
MAX_REASON = 500


class MailEventType(StrEnum):
    """What has happened to a mail."""

    DELIVERED = "DELIVERED"
    """It is in the recipient's mailbox."""
    BOUNCED = "BOUNCED"
    """It will not arrive."""
    COMPLAINED = "COMPLAINED"
    """The recipient has called it spam."""


class MailEvent(WireModel):
    """One report of a mail provider."""

    type: MailEventType
    message_id: Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
    """The mail's `Message-ID`, with or without angle brackets."""
    address: Annotated[str, StringConstraints(max_length=1_000)] | None = None
    """The recipient's address. Only if it is given, a complaint or a permanent bounce ends mail to that address."""
    is_permanent: Annotated[bool, Field(strict=True)] = True
    """For a bounce: whether the address takes no mail at all, rather than not this one or not now."""
    reason: Annotated[str, StringConstraints(max_length=10_000)] | None = None
    """What the recipient's mail server has said."""


class MailEvents(WireModel):
    """What a provider reports in one request."""

    events: tuple[MailEvent, ...] = Field(max_length=MAX_EVENTS)
