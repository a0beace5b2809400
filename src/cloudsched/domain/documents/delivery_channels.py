"""Deliveries: the channels by which a result is delivered, and the state of each delivery.

One table has the traits of each channel, and is used wherever channels differ.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import StringConstraints

from cloudsched.domain.documents.document import (
    Duration,
    Instant,
    StoredEnum,
    WireModel,
    complete_table,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPLETION: Final = "COMPLETION"
"""The channel of a task's own completion callback, beside those of `DeliveryChannel`."""
PING: Final = "PING"
"""The channel of the pings of a task's dead-man's switch, likewise."""
CALLBACKS: Final = frozenset({COMPLETION, PING})
"""The channels whose address the task itself names."""


class DeliveryChannel(StoredEnum):
    """A way to deliver a result."""

    EMAIL = "EMAIL"
    WEB = "WEB"
    """The owner's inbox."""
    MOBILE = "MOBILE"
    WEBHOOK = "WEBHOOK"
    """The owner's own endpoint."""
    OPERATOR = "OPERATOR"
    """The operator's channels, such as a room for alerts. Users may not name it."""
    TELEGRAM = "TELEGRAM"
    SLACK = "SLACK"

    @property
    def traits(self) -> ChannelTraits:
        """Its row in the table of channels."""
        return _TRAITS[self]


@dataclass(frozen=True, slots=True)
class ChannelTraits:
    """The traits of a channel."""

    is_sent: bool
    """True if a task of its own carries each result there. Messages for the inbox are written with the
    result."""
    may_users_name: bool
    """True if users may ask for it and prefer it. The lexicons of `language` then have its names."""
    has_unsubscribe: bool
    """True if its messages have a link that unsubscribes from their category."""
    is_signed: bool
    """True if its messages are signed with the person's secrets."""
    has_queue: bool = True
    """True if a sent message waits in a queue of the channel's own, rather than in that of webhooks."""


_CHAT: Final = ChannelTraits(is_sent=True, may_users_name=True, has_unsubscribe=False, is_signed=False, has_queue=False)
_TRAITS: Final[Mapping[str, ChannelTraits]] = complete_table(
    DeliveryChannel,
    {
        DeliveryChannel.EMAIL: ChannelTraits(is_sent=True, may_users_name=True, has_unsubscribe=True, is_signed=False),
        DeliveryChannel.WEB: ChannelTraits(
            is_sent=False,
            may_users_name=True,
            has_unsubscribe=False,
            is_signed=False,
        ),
        DeliveryChannel.MOBILE: ChannelTraits(
            is_sent=True,
            may_users_name=True,
            has_unsubscribe=False,
            is_signed=False,
        ),
        DeliveryChannel.WEBHOOK: ChannelTraits(
            is_sent=True,
            may_users_name=True,
            has_unsubscribe=False,
            is_signed=True,
        ),
        DeliveryChannel.OPERATOR: ChannelTraits(
            is_sent=True,
            may_users_name=False,
            has_unsubscribe=False,
            is_signed=False,
        ),
        DeliveryChannel.TELEGRAM: _CHAT,
        DeliveryChannel.SLACK: _CHAT,
    },
)
SENT_CHANNELS: Final = tuple(each for each in DeliveryChannel if each.traits.is_sent)
"""The channels that have a sender."""
QUEUE_CHANNELS: Final = tuple(each for each in SENT_CHANNELS if each.traits.has_queue)
"""Those that have a queue."""
SENDER_NAMES: Final = (*(str(each) for each in SENT_CHANNELS), COMPLETION, PING)
"""The names by which senders are found."""
USERS_CHANNELS: Final = tuple(each for each in DeliveryChannel if each.traits.may_users_name)

DELIVERY_HANDLER = "cloudsched.delivery"
"""The built-in handler of deliveries."""


class DeliveryStatus(StoredEnum):
    """The progress of a delivery."""

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


class Delivery(WireModel):
    """An execution's result that a task delivers, and the way that it takes."""

    channel: str
    """A `DeliveryChannel`, `COMPLETION` or `PING`."""
    task_id: str
    """The task of the execution."""
    execution_id: str
    category: str
    """The category of that task. People choose channels by it."""
    created_at: Instant
    """The time at which the execution succeeded. It is the same for all attempts."""
    message_id: str
    """The id of the message for its receivers. It cannot be guessed, and is the same for all attempts."""
    thread: str
    """The id of the conversation of all messages of that task. It cannot be guessed."""
    late: Duration | None = None
    """How much later than due the execution began, if that is to be said."""
    is_failure: bool = False
    """True if it tells of a failure, and carries no result."""
    asks: str | None = None
    """The id of the question in the inbox of its owner, if it asks for an answer, and carries no result."""
    asked_at: Instant | None = None
    """The time at which that question was first asked."""
    siblings: tuple[str, ...] = ()
    """The ids of the execution's other deliveries."""
    url: str | None = None
    """The URL that a completion callback or a ping is sent to."""
    is_users_url: bool = False
    """True if a user may have chosen that URL: users may name only endpoints of their own."""
    is_unreached: bool = False
    """True if nothing was sent although its person wants it: no address of theirs could be used."""


def derive_delivery_id(
    task_id: str,
    created_at: Instant,
    execution_id: str,
    channel: str,
    recipient: str,
) -> str:
    """Return the id of the delivery of an execution over a channel to a recipient.

    It is the same however often the success is decided. A task that is created again under its id has others.
    """
    origin = json.dumps([task_id, created_at.isoformat(), execution_id, channel, recipient])
    return f"d{hashlib.sha256(origin.encode()).hexdigest()[:31]}"


NOT_DELIVERED: Final = "Not delivered by "
"""The first words of an execution's message if what it says has not reached anybody by a channel."""


def explain_undelivered(channel: str, why: str) -> str:
    """Return the sentence in the record of an execution about a delivery that has not been sent."""
    return f"{NOT_DELIVERED}{channel}: {why.rstrip('.')}."
