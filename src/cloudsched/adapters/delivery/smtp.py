"""Send e-mail over SMTP (RFC 5321), encrypted unless the server is on this machine.

What the answers mean (RFC 5321 §4.2.1, RFC 3463):

* 4xx is tried later; so is a connection that fails, and one that ends before the server has answered. The mail may have
  arrived then; the repeat has the same Message-ID.
* 5xx is never tried again. With an enhanced code of 5.1.x, the address is wrong for all mail.
* A refused password, or a server without the encryption that it needs, is the operator's to mend, so the mail waits.
"""

from __future__ import annotations

import smtplib
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from cloudsched.adapters.delivery.mail import make_address, write_mail
from cloudsched.domain.local_requests import is_loopback
from cloudsched.errors import AddressGone, DeliveryDelayed, DeliveryRefused, Misconfigured

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from email.headerregistry import Address
    from email.message import EmailMessage

    from cloudsched.engine.ports.sender import Message, Recipient, Template

TIMEOUT_SECONDS = 30.0
"""How long a server may be silent."""
MAX_SECONDS = 120.0
"""How long handing over one mail may take, also if the server says something now and then."""
_SERVICE: Final = "The mail server"
_DEFAULT_PORTS: Final = {"smtps": 465, "smtp": 587}
_FORM: Final = "Write smtps://user:password@host:465, or smtp://user:password@host:587 for STARTTLS."


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """Where mail is handed over.

    Attributes:
        is_tls: Whether the connection begins with TLS. Otherwise it is STARTTLS, and on this machine nothing.
    """

    host: str
    port: int
    is_tls: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def from_url(cls, url: str) -> SmtpServer:
        """Return the server that a URL names; user and password are percent-encoded.

        Raises:
            Misconfigured: It is not such a URL. The message does not show it, because it contains a password.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise Misconfigured(f"The address of the mail server is not a URL. {_FORM}") from None
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.path.strip("/") or parts.query:
            raise Misconfigured(f"The address of the mail server is not complete. {_FORM}")
        if (parts.username is None) != (parts.password is None):
            raise Misconfigured(f"The address of the mail server has a user or a password, not both. {_FORM}")
        return cls(
            host=parts.hostname,
            port=port or _DEFAULT_PORTS[parts.scheme],
            is_tls=parts.scheme == "smtps",
            user=unquote(parts.username) if parts.username is not None else None,
            password=unquote(parts.password) if parts.password is not None else None,
        )

    @property
    def is_local(self) -> bool:
        """Return whether it is on this machine, so that nobody can listen on the way."""
        return is_loopback(self.host)


class SmtpSender:
    """Sends each message as an e-mail of its own, over a connection of its own.

    Args:
        server: Where mail is handed over.
        sender: Whom mail is from: ``ada@example.com`` or ``Ada <ada@example.com>``.
        template: Returns what makes the HTML of a message; without one, it is its escaped paragraphs.
        idempotency_header: The header in which the provider expects an idempotency key, if it knows any.
        tls: Whom to trust; without it, what this machine trusts.
    """

    def __init__(
        self,
        server: SmtpServer,
        sender: str,
        *,
        template: Callable[[], Template | None] = lambda: None,
        idempotency_header: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._server = server
        self._from = parse_sender(sender)
        self._template = template
        self._idempotency_header = idempotency_header
        self._tls = tls

    def send(self, message: Message, recipient: Recipient) -> str:
        """Hand a message to the server, and return its Message-ID."""
        mail = write_mail(
            message,
            recipient,
            self._from,
            template=self._template(),
            idempotency_header=self._idempotency_header,
        )
        try:
            connection = self._connect()
        except smtplib.SMTPAuthenticationError as error:
            raise DeliveryDelayed(_SERVICE, f"it refuses the user or password: {_explain(error)}") from error
        except smtplib.SMTPNotSupportedError as error:
            raise DeliveryDelayed(_SERVICE, f"it does not offer what its address says: {error}") from error
        except (smtplib.SMTPException, OSError) as error:
            raise DeliveryDelayed(_SERVICE, _explain(error)) from error
        try:
            _hand_over(connection, mail, self._from)
        finally:
            with suppress(smtplib.SMTPException, OSError):
                connection.quit()  # after the answer to DATA, a failure here changes nothing
            connection.close()
        return str(mail["Message-ID"])

    def _connect(self) -> smtplib.SMTP:
        server = self._server
        context = self._tls or ssl.create_default_context()
        connection: smtplib.SMTP
        if server.is_tls:
            connection = _TlsConnection(server.host, server.port, timeout=TIMEOUT_SECONDS, context=context)
        else:
            connection = _Connection(server.host, server.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.ehlo_or_helo_if_needed()
            if not server.is_tls and not server.is_local:
                connection.starttls(context=context)
            if server.user is not None and server.password is not None:
                connection.login(server.user, server.password)
        except BaseException:
            connection.close()
            raise
        return connection


class _Connection(smtplib.SMTP):
    """A connection that is over after `MAX_SECONDS`: an answer may have any number of lines."""

    _whole: socket.socket | None = None
    """A descriptor of its own, because TLS takes over that of the socket."""
    _limit: threading.Timer | None = None

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        opened: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]  # typeshed lacks it
        self._whole = opened.dup()
        self._limit = threading.Timer(MAX_SECONDS, _shut_down, [self._whole])
        self._limit.daemon = True
        self._limit.start()
        return opened

    def close(self) -> None:
        super().close()
        if self._whole is not None and self._limit is not None:
            self._limit.cancel()
            self._whole.close()


def _shut_down(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(SHUT_RDWR)


class _TlsConnection(smtplib.SMTP_SSL, _Connection):
    """The same, with TLS from the beginning."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        try:
            opened: socket.socket = super()._get_socket(host, port, timeout)
        except BaseException:
            self.close()  # the handshake has failed
            raise
        return opened


def _hand_over(connection: smtplib.SMTP, mail: EmailMessage, sender: Address) -> None:
    """Say from whom, to whom and what; raise what the answers mean."""
    to = mail["To"].addresses[0].addr_spec
    options = [] if to.isascii() else ["SMTPUTF8", "BODY=8BITMIME"]
    try:
        connection.ehlo_or_helo_if_needed()
        if options and not connection.has_extn("smtputf8"):
            raise DeliveryRefused(f"The mail server cannot send to {to!r}: it takes only addresses in ASCII.")
        connection.sendmail(sender.addr_spec, [to], mail.as_bytes(), options)
    except smtplib.SMTPRecipientsRefused as error:
        code, text = error.recipients[to]
        raise _from_answer(code, text) from error
    except smtplib.SMTPResponseException as error:
        raise _from_answer(error.smtp_code, error.smtp_error) from error
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryDelayed(_SERVICE, _explain(error)) from error


def _from_answer(code: int, answer: bytes | str) -> DeliveryDelayed | DeliveryRefused:
    text = _decode(answer)
    if not 500 <= code <= 599:  # noqa: PLR2004 - permanent negative replies; 421 and -1 among the others
        return DeliveryDelayed(_SERVICE, f"{code} {text}")
    kind = AddressGone if text.startswith("5.1.") else DeliveryRefused
    return kind(f"The mail server refuses the message: {code} {text}")


def _explain(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_decode(error.smtp_error)}"
    return str(error) or type(error).__name__


def _decode(answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return " ".join(text.split())[:500]


def parse_sender(text: str) -> Address:
    """Return whom mail is from. Raises Misconfigured."""
    name, bracket, rest = text.rpartition("<")
    address = rest.removesuffix(">") if bracket else text
    try:
        parsed = make_address(address.strip(), name.strip().strip('"'))
    except DeliveryRefused as error:
        raise Misconfigured(f"The sender of mail is not an address: {error}") from error
    if not parsed.username.isascii():
        raise Misconfigured("The sender of mail has letters outside of ASCII before the @; many servers refuse that.")
    return parsed
