"""The port of deliveries: senders, which carry a message to one recipient."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    Template = Callable[["OutgoingMessage"], str]
    """Returns the HTML of a message as a mail. It has to escape what it takes from the message."""

MAX_ATTACHMENTS_BYTES = 7 * 1024 * 1024
"""The most bytes that the attachments of one message have together. Base64 makes 9.6 MB of them, and most mail servers
take 10 MB and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that is sent along. Its content type is such as ``application/pdf``."""

    name: str
    content: bytes
    content_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMessage:
    """A message to one recipient. Its texts may come from users, so a sender escapes them as its format demands.

    Attributes:
        id: Names this message to everybody who sees it twice. The same for all tries, different for each recipient, and
            impossible to guess. At most 200 letters, digits, hyphens and underscores.
        thread: Names the conversation that it belongs to: messages of one task share it. Like `id`, not to be guessed.
        created_at: The instant of what it reports, the same for all tries.
        kind: The type of the message for programs that receive it, such as ``notification``.
        data: The JSON that a program gets besides title and body.
        answer_url: The address of the page on which the recipient answers by a tap, if it is a question.
        question_id: What a button below a question says to name it, at most 40 letters and digits.
        unsubscribe_url: The HTTPS address at which the recipient can end such messages without signing in.
    """

    id: str
    thread: str
    title: str
    body: str
    created_at: datetime
    kind: str = "notification"
    data: Mapping[str, Any] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()
    unsubscribe_url: str | None = None
    answer_url: str | None = None
    question_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """The recipient of a message.

    Attributes:
        address: An e-mail address, a device's token, or a URL, as the channel's sender needs it.
        name: The recipient's name, which may be empty.
        secrets: The secrets that sign a webhook's messages, the newest first. During a rotation there are two.
    """

    address: str
    name: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)


class Asker(Protocol):
    """Asks the program at an address, as a `Sender` would reach it."""

    def ask(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Send a message, and return the beginning of the answer. Raises what `Sender.send` raises."""
        ...


class Sender(Protocol):
    """Sends messages over one channel.

    * Once `send` returns, the other side has taken responsibility for the message.
    * One call tries once and sends to one recipient. The caller decides about further tries.
    * All tries carry the same `OutgoingMessage.id`, so that a receiver who looks at it shows the message once.
    """

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        """Send a message, and return the id under which the other side knows it.

        Raises:
            DeliveryDelayed: It was not handed over, or the answer was lost. Trying again may help.
            DeliveryRefused: It is never accepted.
            AddressGone: Nor is any other message to this address.
        """
        ...


@dataclass(frozen=True, slots=True)
class Suppress:
    """Nothing is sent, now or later."""

    reason: str
    is_unreached: bool = False
    """True if the person wants it, and no address of theirs can be used."""
