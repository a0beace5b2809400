"""The ports of deliveries: what carries a message to one recipient, and who knows a channel's recipients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    Template = Callable[["Message"], str]
    """Returns the HTML of a message as a mail. It has to escape what it takes from the message."""

MAX_ATTACHMENTS_BYTES = 7 * 1024 * 1024
"""How large the attachments of one message may be together. Base64 makes 9.6 MB of them, and most mail servers take
10 MB and more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that is sent along.

    Attributes:
        content_type: Such as ``application/pdf``.
    """

    name: str
    content: bytes
    content_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is sent to one recipient. Its texts may come from users: a sender escapes them as its format demands.

    Attributes:
        id: Names this message to everybody who sees it twice. The same for all tries, different for each recipient, and
            impossible to guess. Letters, digits, hyphens and underscores; at most 200.
        thread: Names the conversation that it belongs to: messages of one task share it. Like `id`, not to be guessed.
        created_at: When what it reports happened; the same for all tries.
        kind: What a program that receives it dispatches on, such as ``notification``.
        data: What a program that receives it gets besides title and body; JSON.
        unsubscribe_url: Where the recipient can end such messages without signing in; HTTPS.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """Whom a message is for.

    Attributes:
        address: An e-mail address, a device's token, or a URL: what the channel's sender reaches people by.
        name: How the recipient is called; may be empty.
        secrets: What a webhook's messages are signed with, the newest first. During a rotation there are two.
    """

    address: str
    name: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)


class Asker(Protocol):
    """Asks the program at an address, as a `Sender` would reach it."""

    def ask(self, message: Message, recipient: Recipient) -> str:
        """Send a message, and return the beginning of the answer. Raises what `Sender.send` raises."""
        ...


class Sender(Protocol):
    """Sends messages over one channel.

    * When `send` returns, the other side has taken responsibility for the message.
    * One call tries once and sends to one recipient. When to try again is the caller's decision.
    * All tries carry the same `Message.id`, so that a receiver who looks at it shows the message once.
    """

    def send(self, message: Message, recipient: Recipient) -> str:
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


class Recipients(Protocol):
    """Knows how people want to be reached.

    * It is asked when something is sent, so that a change that comes late counts.
    """

    def find(self, owner: str, channel: str, category: str) -> tuple[Recipient, ...] | Suppress:
        """Return whom to send to: one recipient for most channels, one for each device for MOBILE."""
        ...

    def callback(self, owner: str, url: str, *, is_users: bool) -> tuple[Recipient, ...] | Suppress:
        """Return the recipient of a task's own completion callback, signed like its owner's webhook.

        If a user may have named the URL (`is_users`), it has to be at the host of the owner's webhook.
        """
        ...

    def switch(self, owner: str, url: str, *, is_users: bool) -> tuple[Recipient, ...] | Suppress:
        """Return the recipient of a task's ping.

        If a user may have named the URL (`is_users`), it has to be at the host of the owner's webhook, or at one that
        the operator allows.
        """
        ...

    def unsubscribe_url(self, owner: str, category: str) -> str | None:
        """Return where an owner can end mails of a category without signing in; None if no address is known."""
        ...

    def remove(self, owner: str, channel: str, address: str) -> None:
        """Forget an address that takes no more messages. Safe to repeat."""
        ...
