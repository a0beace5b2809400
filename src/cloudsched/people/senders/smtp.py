"""Write e-mail, and send it over SMTP (RFC 5321), encrypted unless the server is on this machine.

The meanings of the answers (RFC 5321 §4.2.1, RFC 3463):

* 4xx is tried later, and so is a connection that fails, and one that ends before the server has answered. The mail may
  have arrived then. The repeat has the same Message-ID.
* 5xx is never tried again.
* A refused password, or a server without the encryption that it needs, is the operator's to mend, so the mail waits.
"""

from __future__ import annotations

import re
import smtplib
import ssl
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from cloudsched.domain.local_requests import is_loopback
from cloudsched.engine.ports.sender import MAX_ATTACHMENTS_BYTES
from cloudsched.errors import DeliveryDelayed, DeliveryRefused, Misconfigured

if TYPE_CHECKING:
    from cloudsched.engine.ports.sender import Attachment, Message, Recipient, Template

_VERBATIM = frozenset({"list-unsubscribe", "references", "in-reply-to", "message-id"})
_MAX_SUBJECT = 200
_MAX_NAME = 100
_DIRECTION_MARKS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
_ADDRESS = re.compile(r"[^\s@<>()\[\],;:\\\"]{1,64}@[^\s@<>()\[\],;:\\\"]{1,253}")


class _Policy(EmailPolicy):
    """Does not break lines within ids and URLs: Python would encode a long one as if it were text (RFC 2047)."""

    def fold(self, name: str, value: str) -> str:
        return f"{name}: {value}\r\n" if name.lower() in _VERBATIM else super().fold(name, value)

    def fold_binary(self, name: str, value: str) -> bytes:
        return self.fold(name, value).encode("ascii") if name.lower() in _VERBATIM else super().fold_binary(name, value)


def make_address(text: str, name: str = "") -> Address:
    """Return an address whose domain is in ASCII, as mail servers expect it. Raises DeliveryRefused if it is none."""
    if not _ADDRESS.fullmatch(text) or clean_line(text) != text:
        raise DeliveryRefused(f"{text[:100]!r} is not an e-mail address. Give one, such as ada@example.com.")
    local, _, domain = text.rpartition("@")
    try:
        return Address(clean_line(name)[:_MAX_NAME], local, domain.encode("idna").decode("ascii"))
    except (ValueError, IndexError) as error:
        raise DeliveryRefused(f"{text[:100]!r} is not an e-mail address: {error}.") from error


def clean_line(text: str) -> str:
    """Return text as one line, without characters that end a header or change what is seen of the others."""
    text = text.translate(_DIRECTION_MARKS)
    blanked = (" " if unicodedata.category(each) in {"Cc", "Cs", "Zl", "Zp"} else each for each in text)
    return " ".join("".join(blanked).split()).replace("=?", "= ?")


def write_mail(
    message: Message,
    recipient: Recipient,
    sender: Address,
    *,
    template: Template | None = None,
    idempotency_header: str | None = None,
) -> EmailMessage:
    """Return a message as an e-mail to one recipient, as text and as HTML.

    By the `idempotency_header`, such as ``Resend-Idempotency-Key``, the provider drops repeats.
    """
    to = make_address(recipient.address, recipient.name)
    mail = EmailMessage(_Policy(linesep="\r\n", cte_type="7bit", utf8=not to.username.isascii()))
    mail["From"] = sender
    mail["To"] = to
    mail["Subject"] = clean_line(message.title)[:_MAX_SUBJECT]
    mail["Date"] = format_datetime(message.created_at)
    mail["Message-ID"] = f"<{message.id}@{sender.domain}>"
    mail["In-Reply-To"] = mail["References"] = f"<{message.thread}@{sender.domain}>"
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: no out-of-office notes in return
    if idempotency_header is not None:
        mail[idempotency_header] = message.id
    if message.unsubscribe_url is not None:
        mail["List-Unsubscribe"] = f"<{_require_url(message.unsubscribe_url)}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    text = _replace_unencodable(message.body)
    if message.unsubscribe_url is not None:
        text += f"\n\n-- \nUnsubscribe: {message.unsubscribe_url}"
    mail.set_content(text)
    html = template(message) if template is not None else write_html(message)
    mail.add_alternative(_replace_unencodable(html), subtype="html")
    for each in _require_small(message.attachments):
        main, _, sub = each.content_type.partition("/")
        name = clean_line(each.name).replace("/", "_").replace("\\", "_") or "attachment"
        mail.add_attachment(each.content, maintype=main, subtype=sub, filename=name)
    return mail


def write_html(message: Message) -> str:
    """Return a message as an HTML page: the title, and the body with its line breaks. Everything is escaped."""
    paragraphs = (escape(each.strip("\n")).replace("\n", "<br>\n") for each in re.split(r"\n{2,}", message.body))
    body = "\n".join(f"<p>{each}</p>" for each in paragraphs if each)
    footer = ""
    if message.unsubscribe_url is not None:
        footer = f'\n<p><small><a href="{escape(message.unsubscribe_url)}">Unsubscribe</a></small></p>'
    title = escape(clean_line(message.title))
    head = f'<meta charset="utf-8"><title>{title}</title>'
    return f"<!doctype html>\n<html><head>{head}</head><body>\n<h2>{title}</h2>\n{body}{footer}\n</body></html>\n"


def _replace_unencodable(text: str) -> str:
    """Return text that UTF-8 can hold: half a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _require_url(url: str) -> str:
    if not re.fullmatch(r"https://[!-;=?-~]+", url):
        raise DeliveryRefused(f"{url[:100]!r} cannot be linked to: a link is https:// in ASCII.")
    return url


def _require_small(attachments: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
    size = sum(len(each.content) for each in attachments)
    if size > MAX_ATTACHMENTS_BYTES:
        raise DeliveryRefused(f"The attachments have {size} bytes; {MAX_ATTACHMENTS_BYTES} are allowed. Link to them.")
    for each in attachments:
        if not re.fullmatch(r"[a-zA-Z0-9][\w.+-]{0,80}/[a-zA-Z0-9][\w.+-]{0,80}", each.content_type, re.ASCII):
            raise DeliveryRefused(f"{each.content_type[:100]!r} is not a content type. Give one, such as text/plain.")
        if each.content_type.lower().startswith(("message/", "multipart/")):
            raise DeliveryRefused("A mail within a mail cannot be attached. Send it as application/octet-stream.")
    return attachments


TIMEOUT_SECONDS = 30.0
"""The longest silence of a server."""
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
        return cls(
            host=parts.hostname,
            port=port or _DEFAULT_PORTS[parts.scheme],
            is_tls=parts.scheme == "smtps",
            user=unquote(parts.username) if parts.username is not None else None,
            password=unquote(parts.password) if parts.password is not None else None,
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

    def send(self, message: Message, recipient: Recipient) -> str:
        """Hand a message to the server, and return its Message-ID."""
        template, header = self._template(), self._idempotency_header
        mail = write_mail(message, recipient, self._from, template=template, idempotency_header=header)
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
            connection = smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_SECONDS, context=context)
        else:
            connection = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_SECONDS)
        try:
            connection.ehlo_or_helo_if_needed()
            if not server.is_tls and not is_loopback(server.host):  # nobody listens on the way to this machine
                connection.starttls(context=context)
            if server.user is not None and server.password is not None:
                _log_in(connection, _Utf8Text(server.user), _Utf8Text(server.password))
        except BaseException:
            connection.close()
            raise
        return connection


class _Utf8Text(str):
    """A text that is sent in UTF-8, as RFC 4616 has it, although `smtplib` asks for ASCII."""

    __slots__ = ()

    def encode(self, _encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return super().encode("utf-8", errors)


def _log_in(connection: smtplib.SMTP, user: _Utf8Text, password: _Utf8Text) -> None:
    plain = _Utf8Text(f"\0{user}\0{password}")  # `smtplib` would make a plain text of the two
    setattr(connection, "auth_plain", lambda _challenge=None: plain)  # noqa: B010 - a method is assigned
    connection.login(user, password)


def _hand_over(connection: smtplib.SMTP, mail: EmailMessage, sender: Address) -> None:
    """Say from whom, to whom and what, and raise the errors that the answers mean."""
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
    return DeliveryRefused(f"The mail server refuses the message: {code} {text}")


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
        raise Misconfigured("The sender of mail has letters outside of ASCII before the @; many servers refuse that.")
    return parsed
