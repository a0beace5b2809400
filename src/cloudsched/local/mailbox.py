"""The mailbox of the local stack: it keeps the messages that deliveries would send.

`cloudsched.local.mailbox_page` shows it. With a mail server set (``CLOUDSCHED_SMTP_URL``), everything that is
set up is sent as well.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.delivery_channels import CALLBACKS, SENDER_NAMES, DeliveryChannel
from cloudsched.people.senders.fcm import write_push
from cloudsched.people.senders.mail import write_mail
from cloudsched.people.senders.smtp import parse_sender
from cloudsched.people.senders.webhook import write_body

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from email.message import EmailMessage

    from cloudsched.config.settings import Settings
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient, Sender

    Template = Callable[[OutgoingMessage], str]

MAX_KEPT: Final = 200
"""The number of messages that are kept: the latest."""
_FROM: Final = "cloudsched dev <cloudsched@localhost>"


class Mailbox:
    """The senders of all channels. Each keeps what it is given."""

    def __init__(self, settings: Settings, clock: Clock, template: Callable[[], Template | None]) -> None:
        self._settings = settings
        self._clock = clock
        self._template = template
        self._real: Mapping[str, Sender] = {}
        self._lock = threading.Lock()
        self._kept: deque[MailboxMessage] = deque(maxlen=MAX_KEPT)
        self._count = 0
        self.senders: Mapping[str, Sender] = {
            channel: _MailboxSender(partial(self._send, channel)) for channel in SENDER_NAMES
        }

    @property
    def messages(self) -> list[MailboxMessage]:
        """The kept messages, the latest first."""
        with self._lock:
            return list(reversed(self._kept))

    def pass_on(self, senders: Mapping[str, Sender]) -> None:
        """Also send by these senders from now on. A message that they refuse is not kept."""
        self._real = senders

    def _send(self, channel: str, message: OutgoingMessage, recipient: Recipient) -> str:
        mail = None
        content = None
        message_id = message.id
        if channel == DeliveryChannel.EMAIL:
            mail = self._write_mail(message, recipient)
            message_id = str(mail["Message-ID"])
        else:
            content = _write_content(channel, message, recipient)

        real = self._real.get(channel)
        if real is not None:
            message_id = real.send(message, recipient)
        with self._lock:
            self._count += 1
            self._kept.append(
                MailboxMessage(
                    number=self._count,
                    channel=channel,
                    to=recipient.address,
                    at=self._clock.now(),
                    message_id=message_id,
                    is_sent=real is not None,
                    mail=mail,
                    content=content,
                )
            )
        return message_id

    def _write_mail(self, message: OutgoingMessage, recipient: Recipient) -> EmailMessage:
        return write_mail(
            message,
            recipient,
            parse_sender(self._settings.mail_from or _FROM),
            template=self._template(),
            idempotency_header=self._settings.mail_idempotency_header,
        )


@dataclass(frozen=True, slots=True)
class MailboxMessage:
    """One message.

    Attributes:
        number: Counts from 1.
        is_sent: True if it was really sent. Otherwise it is only here.
        mail: The mail, None for other channels.
        content: The JSON that the other side gets or would get, None for mails.
    """

    number: int
    channel: str
    to: str
    at: datetime
    message_id: str
    is_sent: bool
    mail: EmailMessage | None
    content: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class _MailboxSender:
    take: Callable[[OutgoingMessage, Recipient], str]

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
        return self.take(message, recipient)


def _write_content(channel: str, message: OutgoingMessage, recipient: Recipient) -> dict[str, Any]:
    match DeliveryChannel.WEBHOOK if channel in CALLBACKS else DeliveryChannel(channel):
        case DeliveryChannel.MOBILE:
            return write_push(message, recipient.address)
        case (
            DeliveryChannel.OPERATOR
            | DeliveryChannel.EMAIL
            | DeliveryChannel.WEB
            | DeliveryChannel.TELEGRAM
            | DeliveryChannel.SLACK
        ):
            return {"title": message.title, "body": message.body}
        case DeliveryChannel.WEBHOOK:
            content: dict[str, Any] = json.loads(write_body(message))
            return content
