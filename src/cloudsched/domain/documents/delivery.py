"""A delivery: a task that the system makes to carry an execution's result to a person, over one channel.

`Task.delivery` says of which execution. How far it has come follows from the task; see `DeliveryStatus`.
"""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum
from typing import Annotated

from pydantic import StringConstraints

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
    """It was not sent: the recipient does not want it, or has no address that may be used."""


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


def derive_delivery_id(task_id: str, created_at: Instant, execution_id: str, channel: str, recipient: str) -> str:
    """Return the id of the delivery of an execution over a channel to a recipient.

    It is the same however often the success is decided. A task that is created again under its id has others.
    """
    origin = json.dumps([task_id, created_at.isoformat(), execution_id, channel, recipient])
    return f"d{hashlib.sha256(origin.encode()).hexdigest()[:31]}"
