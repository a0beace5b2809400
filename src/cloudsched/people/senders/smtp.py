"""Send e-mail over SMTP (RFC 5321), encrypted unless the server is on this machine.

The meanings of the answers (RFC 5321 §4.2.1, RFC 3463):

* 4xx is tried later, and so is a connection that fails, or ends before the server has answered. The mail may
  have arrived then. The repeat has the same Message-ID.
* 5xx is never tried again.
* A refused password, or a server without encryption, is the operator's to mend, so the mail waits.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from cloudsched.domain.local_requests import is_loopback
from cloudsched.errors import DeliveryDelayed, DeliveryRefused, Misconfigured
from cloudsched.people.senders.mail import make_address, write_mail

if TYPE_CHECKING:
    from collections.abc import Callable
    from email.headerregistry import Address
    from email.message import EmailMessage

    from cloudsched.engine.ports.sender import OutgoingMessage, Recipient, Template


TIMEOUT_SECONDS = 30.0
"""The longest silence of a server, and the longest time of one reply."""
_SERVICE: Final = "The mail server"
_DEFAULT_PORTS: Final = {"smtps": 465, "smtp": 587}
_FORM: Final = "Write smtps://user:password@host:465, or smtp://user:password@host:587 for STARTTLS."


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """The server to which mail is handed over.

    Attributes:
        is_tls: True if the connection begins with TLS. Otherwise it is STARTTLS, and on this machine nothing.
    """

    host: str
    port: int
    is_tls: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def from_url(cls, url: str) -> SmtpServer:
        """Return the server that a URL names. User and password are percent-encoded.

        Errors do not show it, because it contains a password.
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

        user = password = None
        if parts.username is not None and parts.password is not None:
            user = unquote(parts.username)
            password = unquote(parts.password)
        return cls(
            host=parts.hostname,
            port=port or _DEFAULT_PORTS[parts.scheme],
            is_tls=parts.scheme == "smtps",
            user=user,
            password=password,
        )


class SmtpSender:
    """Sends each message as an e-mail of its own, over a connection of its own.

    Without `template`, the HTML is the escaped paragraphs.
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

    def send(self, message: OutgoingMessage, recipient: Recipient) -> str:
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
            raise self._delay(f"refuses the user or password: {_explain(error)}") from error
        except smtplib.SMTPNotSupportedError as error:
            raise self._delay(f"does not offer what its address says: {error}") from error
        except smtplib.SMTPResponseException as error:
            raise _refuse_for_now(error.smtp_code, error.smtp_error, self._server.host) from error
        except (smtplib.SMTPException, OSError) as error:
            raise DeliveryDelayed(_SERVICE, _explain(error)) from error

        try:
            _hand_over(connection, mail, self._from, self._server.host)
        finally:
            with suppress(smtplib.SMTPException, OSError):
                connection.quit()  # after the answer to DATA, a failure here changes nothing
            connection.close()
        return str(mail["Message-ID"])

    def _delay(self, why: str) -> DeliveryDelayed:
        """Return that the server was reached, and why it takes nothing now."""
        return DeliveryDelayed(_SERVICE, f"it {why}", answer=f"{self._server.host} {why}")

    def _connect(self) -> smtplib.SMTP:
        server = self._server
        context = self._tls or ssl.create_default_context()
        connection: smtplib.SMTP
        if server.is_tls:
            connection = _TlsSession(server.host, server.port, timeout=TIMEOUT_SECONDS, context=context)
        else:
            connection = _SmtpSession(server.host, server.port, timeout=TIMEOUT_SECONDS)

        try:
            connection.ehlo_or_helo_if_needed()
            if not server.is_tls and not is_loopback(server.host):  # nobody can listen within this machine
                connection.starttls(context=context)
            if server.user is not None and server.password is not None:
                _log_in(connection, _Utf8Text(server.user), _Utf8Text(server.password))
        except BaseException:
            connection.close()
            raise
        return connection


class _SmtpSession(smtplib.SMTP):
    """Waits for a whole reply no longer than for silence: a server may send one letter after the other."""

    def getreply(self) -> tuple[int, bytes]:
        is_over = threading.Event()
        opened = self.sock

        def end() -> None:
            is_over.set()
            if opened is not None:
                with suppress(OSError):
                    socket.socket.shutdown(opened, socket.SHUT_RDWR)  # also below TLS

        timer = threading.Timer(TIMEOUT_SECONDS, end)
        timer.daemon = True
        timer.start()
        try:
            return super().getreply()
        except smtplib.SMTPServerDisconnected:
            if is_over.is_set():
                raise TimeoutError("timed out") from None
            raise
        finally:
            timer.cancel()


class _TlsSession(_SmtpSession, smtplib.SMTP_SSL):
    """The same, with TLS from the beginning."""


class _Utf8Text(str):
    """A text that is sent in UTF-8, as RFC 4616 has it, although `smtplib` asks for ASCII."""

    __slots__ = ()

    def encode(self, _encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return super().encode("utf-8", errors)


def _log_in(connection: smtplib.SMTP, user: _Utf8Text, password: _Utf8Text) -> None:
    plain = _Utf8Text(f"\0{user}\0{password}")  # `smtplib` would make a plain text of the two
    setattr(connection, "auth_plain", lambda _challenge=None: plain)  # noqa: B010 - a method is assigned
    connection.login(user, password)


def _hand_over(connection: smtplib.SMTP, mail: EmailMessage, sender: Address, host: str) -> None:
    """Hand a mail to the server, and raise what its answers mean."""
    to = mail["To"].addresses[0].addr_spec
    options = [] if to.isascii() else ["SMTPUTF8", "BODY=8BITMIME"]

    try:
        connection.ehlo_or_helo_if_needed()
        if options and not connection.has_extn("smtputf8"):
            raise DeliveryRefused(f"The mail server cannot send to {to!r}: it takes only addresses in ASCII.")
        connection.sendmail(sender.addr_spec, [to], mail.as_bytes(), options)
    except smtplib.SMTPRecipientsRefused as error:
        code, text = error.recipients[to]
        raise _from_answer(code, text, host) from error
    except smtplib.SMTPResponseException as error:
        raise _from_answer(error.smtp_code, error.smtp_error, host) from error
    except (smtplib.SMTPException, OSError) as error:
        raise DeliveryDelayed(_SERVICE, _explain(error)) from error


def _from_answer(code: int, answer: bytes | str, host: str) -> DeliveryDelayed | DeliveryRefused:
    if 500 <= code <= 599:  # noqa: PLR2004 - permanent negative replies
        return DeliveryRefused(f"Refused by {host}: {code} {_decode(answer)}")
    return _refuse_for_now(code, answer, host)


def _refuse_for_now(code: int, answer: bytes | str, host: str) -> DeliveryDelayed:
    """Return that a server does not take a mail now. Without a code it has not answered, as when it went away."""
    text = f"{code} {_decode(answer)}"
    if code < 400:  # noqa: PLR2004 - negative replies begin there
        return DeliveryDelayed(_SERVICE, text)
    return DeliveryDelayed(_SERVICE, text, answer=f"Refused for now by {host}: {text}")


def _explain(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_decode(error.smtp_error)}"
    return str(error) or type(error).__name__


def _decode(answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return " ".join(text.split())[:500]


def parse_sender(text: str) -> Address:
    """Return the sender's address from its text. Raises Misconfigured."""
    name, bracket, rest = text.rpartition("<")
    address = rest.removesuffix(">") if bracket else text
    try:
        parsed = make_address(address.strip(), name.strip().strip('"'))
    except DeliveryRefused as error:
        raise Misconfigured(f"The sender of mail is not an address: {error}") from error
    if not parsed.username.isascii():
        raise Misconfigured("The sender of mail has letters beyond ASCII before the @. Many servers refuse that.")
    return parsed
