"""The mailbox of the local stack: what deliveries would send is kept here, and shown below ``/dev/mailbox``.

With a mail server set (``CLOUDSCHED_SMTP_URL``), everything that is set up is sent as well.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Final, assert_never

from werkzeug.wrappers import Request, Response

from cloudsched.domain.documents.delivery_channels import CALLBACKS, SENDER_NAMES, DeliveryChannel
from cloudsched.domain.local_requests import find_detour, find_foreign_name
from cloudsched.errors import CloudschedError, Forbidden, Unauthenticated
from cloudsched.people.senders.fcm import write_push
from cloudsched.people.senders.smtp import parse_sender, write_mail
from cloudsched.people.senders.webhook import write_body
from cloudsched.web.api.router import require_allowed_origin
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.auth.roles import Role

if TYPE_CHECKING:
    from cloudsched.config.settings import Settings
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.sender import Message, Recipient, Sender

    Template = Callable[[Message], str]

PATH: Final = "/dev/mailbox"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PAGE_POLICY: Final = "default-src 'none'; frame-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_MAIL_POLICY: Final = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
_STYLE: Final = (
    "body{font:16px system-ui;margin:2rem auto;max-width:60rem;padding:0 1rem}iframe{width:100%;height:20rem;"
    "border:1px solid #999;background:#fff}pre{overflow:auto;border:1px solid #999;padding:.5rem;max-height:30rem}"
)


def is_mailbox_path(path: str) -> bool:
    """Return whether a path belongs to the mailbox."""
    return path in {PATH, f"{PATH}.json"} or path.startswith(f"{PATH}/")


def show_mailbox(request: Request, mailbox: Mailbox, settings: Settings) -> Response:
    """Answer a request for the page, for the same as JSON, or for the frame of a mail."""
    try:
        refused = find_foreign_name(request.host) or find_detour(request.headers.keys())
        if refused is not None:
            raise Forbidden(refused)
        require_allowed_origin(request, ())
        _require_admin(request, settings)
    except Unauthenticated as error:
        refusal = _text(f"{error}\n", 401)
        refusal.headers["WWW-Authenticate"] = 'Basic realm="cloudsched: an admin\'s key as the password"'
        return refusal
    except CloudschedError as error:
        return _text(f"{error}\n", 403)
    if request.path == PATH:
        return _html(_render(mailbox.messages), _PAGE_POLICY)
    if request.path == f"{PATH}.json":
        content = {"messages": [_to_json(each) for each in mailbox.messages]}
        return Response(json.dumps(content, ensure_ascii=False), mimetype="application/json", headers=_HEADERS)
    mails = {_frame_path(each): each.mail for each in mailbox.messages}
    mail = mails.get(request.path)
    if mail is None:
        return _text("There is no such mail, or not any more.\n", 404)
    return _html(_read_part(mail, "html"), _MAIL_POLICY)


def _frame_path(sent: SentMessage) -> str:
    return f"{PATH}/{sent.number}.html"


def _require_admin(request: Request, settings: Settings) -> None:
    """Check that an admin asks, if there are keys. Raises Unauthenticated or Forbidden."""
    if not settings.access.is_configured:
        return
    given = request.authorization
    if given is not None and given.type == "basic":
        request.environ["HTTP_X_API_KEY"] = given.password or ""
    if authenticator_for(settings).authenticate(request).role is not Role.ADMIN:
        raise Forbidden(
            "Only an admin may look at what is sent: it is everybody's, with the codes that prove addresses."
        )


def _text(text: str, status: int) -> Response:
    return Response(text, status, mimetype="text/plain", headers=_HEADERS)


def _html(page: str, policy: str) -> Response:
    return Response(page, mimetype="text/html", headers={**_HEADERS, "Content-Security-Policy": policy})


def _to_json(sent: SentMessage) -> dict[str, Any]:
    content: dict[str, Any] = {
        "id": sent.number,
        "channel": sent.channel,
        "to": sent.to,
        "at": sent.at.isoformat().replace("+00:00", "Z"),
        "messageId": sent.message_id,
        "isSent": sent.is_sent,
    }
    if sent.mail is None:
        return {**content, "content": sent.content}
    return {
        **content,
        "subject": str(sent.mail["Subject"]),
        "text": _read_part(sent.mail, "plain"),
        "html": _read_part(sent.mail, "html"),
        "source": sent.mail.as_bytes().decode("utf-8", "replace"),
    }


def _read_part(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    return "" if part is None else str(part.get_content())


def _render(messages: list[SentMessage]) -> str:
    body = "".join(map(_render_message, messages))
    body = body or "<p>Nothing was sent yet. A task with deliveryChannels sends to its owner.</p>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Mailbox</title>'
        f"<style>{_STYLE}</style><h1>Mailbox</h1>{body}</html>"
    )


def _render_message(sent: SentMessage) -> str:
    title = ""
    if sent.mail is None:
        shown = f"<pre>{escape(json.dumps(sent.content, ensure_ascii=False, indent=2))}</pre>"
    else:
        title = f": {sent.mail['Subject']}"
        source = sent.mail.as_bytes().decode("utf-8", "replace")
        shown = (
            f'<iframe sandbox="" loading="lazy" title="The mail" src="{_frame_path(sent)}"></iframe>'
            f"<h2>Text</h2><pre>{escape(_read_part(sent.mail, 'plain'))}</pre>"
            f"<h2>Source</h2><pre>{escape(source)}</pre>"
        )
    state = "sent" if sent.is_sent else "kept"
    line = f"{sent.channel} to {sent.to}{title} ({state}, {sent.at.isoformat(timespec='seconds')})"
    return f"<details><summary>{escape(line)}</summary>{shown}</details>"


MAX_KEPT: Final = 200
"""The number of messages that are kept: the latest."""
_FROM: Final = "cloudsched dev <cloudsched@localhost>"


@dataclass(frozen=True, slots=True)
class SentMessage:
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


class Mailbox:
    """The senders of all channels. Each keeps what it is given."""

    def __init__(self, settings: Settings, clock: Clock, template: Callable[[], Template | None]) -> None:
        self._settings = settings
        self._clock = clock
        self._template = template
        self._real: Mapping[str, Sender] = {}
        self._lock = threading.Lock()
        self._kept: deque[SentMessage] = deque(maxlen=MAX_KEPT)
        self._count = 0
        self.senders: Mapping[str, Sender] = {
            channel: _MailboxSender(partial(self._send, channel)) for channel in SENDER_NAMES
        }

    @property
    def messages(self) -> list[SentMessage]:
        """The kept messages, the latest first."""
        with self._lock:
            return list(reversed(self._kept))

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
class _MailboxSender:
    take: Callable[[Message, Recipient], str]

    def send(self, message: Message, recipient: Recipient) -> str:
        return self.take(message, recipient)


def _write_content(channel: str, message: Message, recipient: Recipient) -> dict[str, Any]:
    match DeliveryChannel.WEBHOOK if channel in CALLBACKS else DeliveryChannel(channel):
        case DeliveryChannel.MOBILE:
            return write_push(message, recipient.address)
        case DeliveryChannel.OPERATOR | DeliveryChannel.EMAIL | DeliveryChannel.WEB:
            return {"title": message.title, "body": message.body}
        case DeliveryChannel.WEBHOOK:
            content: dict[str, Any] = json.loads(write_body(message))
            return content
        case unknown:
            assert_never(unknown)
