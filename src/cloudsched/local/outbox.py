"""The outbox of the local stack: what deliveries would send is kept here, as it would go out.

With a mail server set (``CLOUDSCHED_SMTP_URL``), everything that is set up is sent as well.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, assert_never

from cloudsched.adapters.delivery.fcm import write_push
from cloudsched.adapters.delivery.mail import write_mail
from cloudsched.adapters.delivery.smtp import parse_sender
from cloudsched.adapters.delivery.webhook import write_body
from cloudsched.domain.documents.channel import COMPLETION, SENDER_NAMES, DeliveryChannel

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from email.message import EmailMessage

    from cloudsched.config.settings import Settings
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.sender import Message, Recipient, Sender

    Template = Callable[[Message], str]

MAX_KEPT: Final = 200
"""How many messages are kept: the latest."""
_FROM: Final = "cloudsched dev <cloudsched@localhost>"


@dataclass(frozen=True, slots=True)
class SentMessage:
    """One message.

    Attributes:
        number: Counts from 1.
        is_sent: Whether it was really sent; else it is only here.
        mail: The mail that it is; None for other channels.
        content: What the other side gets or would get, as JSON; None for mails.
    """

    number: int
    channel: str
    to: str
    at: datetime
    message_id: str
    is_sent: bool
    mail: EmailMessage | None
    content: dict[str, Any] | None


class Outbox(Mapping[str, "Sender"]):
    """The senders of all channels; each keeps what it is given.

    Args:
        settings: Whom mail is from.
        clock: The stack's clock.
        template: Returns what makes the HTML of mails, if the app has its own.
    """

    def __init__(self, settings: Settings, clock: Clock, template: Callable[[], Template | None]) -> None:
        self._settings = settings
        self._clock = clock
        self._template = template
        self._real: Mapping[str, Sender] = {}
        self._lock = threading.Lock()
        self._kept: deque[SentMessage] = deque(maxlen=MAX_KEPT)
        self._count = 0

    def __getitem__(self, channel: str) -> Sender:
        """Return a channel's sender."""
        if channel not in SENDER_NAMES:
            raise KeyError(channel)
        return _OutboxSender(partial(self._send, channel))

    def __iter__(self) -> Iterator[str]:
        """Return all channels."""
        return iter(SENDER_NAMES)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(SENDER_NAMES)

    @property
    def messages(self) -> list[SentMessage]:
        """The kept messages, the latest first."""
        with self._lock:
            return list(reversed(self._kept))

    def find(self, number: int) -> SentMessage | None:
        """Return a message by its number; None if it is not there any more."""
        return next((each for each in self.messages if each.number == number), None)

    def pass_on(self, senders: Mapping[str, Sender]) -> None:
        """Send by these too from now on: what is refused or fails there is not kept."""
        self._real = senders

    def _send(self, channel: str, message: Message, recipient: Recipient) -> str:
        mail, content = None, None
        if channel == DeliveryChannel.EMAIL:
            mail = write_mail(
                message,
                recipient,
                parse_sender(self._settings.mail_from or _FROM),
                template=self._template(),
                idempotency_header=self._settings.mail_idempotency_header,
            )
        else:
            content = _write_content(channel, message, recipient)
        real = self._real.get(channel)
        found = message.id if mail is None else str(mail["Message-ID"])
        message_id = found if real is None else real.send(message, recipient)
        with self._lock:
            self._count += 1
            at, is_sent = self._clock.now(), real is not None
            kept = SentMessage(self._count, channel, recipient.address, at, message_id, is_sent, mail, content)
            self._kept.append(kept)
        return message_id


@dataclass(frozen=True, slots=True)
class _OutboxSender:
    take: Callable[[Message, Recipient], str]

    def send(self, message: Message, recipient: Recipient) -> str:
        """Keep a message."""
        return self.take(message, recipient)


def _write_content(channel: str, message: Message, recipient: Recipient) -> dict[str, Any]:
    match DeliveryChannel.WEBHOOK if channel == COMPLETION else DeliveryChannel(channel):
        case DeliveryChannel.MOBILE:
            return write_push(message, recipient.address)
        case DeliveryChannel.OPERATOR | DeliveryChannel.EMAIL | DeliveryChannel.WEB:
            return {"title": message.title, "body": message.body}
        case DeliveryChannel.WEBHOOK:
            content: dict[str, Any] = json.loads(write_body(message))
            return content
        case unknown:
            assert_never(unknown)
