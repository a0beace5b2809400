"""Write a message as an e-mail: its headers, its text and its HTML."""

from __future__ import annotations

import re
import unicodedata
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import format_datetime
from html import escape
from typing import TYPE_CHECKING

from cloudsched.engine.ports.sender import MAX_ATTACHMENTS_BYTES
from cloudsched.errors import DeliveryRefused

if TYPE_CHECKING:
    from cloudsched.engine.ports.sender import Attachment, OutgoingMessage, Recipient, Template


_VERBATIM = frozenset({"list-unsubscribe", "references", "in-reply-to", "message-id"})
ANSWER = "Approve or reject"
"""What leads to the page on which a question is answered."""
_MAX_SUBJECT = 200
_MAX_NAME = 100
_DIRECTION_MARKS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
_CONTENT_TYPE = re.compile(r"[a-zA-Z0-9][\w.+-]{0,80}/[a-zA-Z0-9][\w.+-]{0,80}", re.ASCII)
_ADDRESS = re.compile(r"[^\s@<>()\[\],;:\\\"]{1,64}@[^\s@<>()\[\],;:\\\"]{1,253}")


class _Policy(EmailPolicy):
    """Does not fold ids and URLs: Python would encode a long one as if it were text (RFC 2047)."""

    def fold(self, name: str, value: str) -> str:
        return f"{name}: {value}\r\n" if name.lower() in _VERBATIM else super().fold(name, value)

    def fold_binary(self, name: str, value: str) -> bytes:
        if name.lower() not in _VERBATIM:
            return super().fold_binary(name, value)
        return self.fold(name, value).encode("ascii")


def make_address(text: str, name: str = "") -> Address:
    """Return an address whose domain is in ASCII, as mail servers expect it. Raises DeliveryRefused."""
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
    message: OutgoingMessage,
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
    if message.answer_url is not None:
        text += f"\n\n{ANSWER}: {message.answer_url}"
    if message.unsubscribe_url is not None:
        text += f"\n\n-- \nUnsubscribe: {message.unsubscribe_url}"
    mail.set_content(text)
    html = (template or write_html)(message)
    mail.add_alternative(_replace_unencodable(html), subtype="html")

    for each in _require_small(message.attachments):
        main, _, sub = each.content_type.partition("/")
        name = clean_line(each.name).replace("/", "_").replace("\\", "_") or "attachment"
        mail.add_attachment(each.content, maintype=main, subtype=sub, filename=name)
    return mail


def write_html(message: OutgoingMessage) -> str:
    """Return a message as an HTML page: the title, and the body with its line breaks. Everything is escaped."""
    paragraphs = (each.strip("\n") for each in re.split(r"\n{2,}", message.body))
    body = "\n".join(f"<p>{escape(each)}</p>".replace("\n", "<br>\n") for each in paragraphs if each)
    footer = ""
    if message.answer_url is not None:
        footer = f'\n<p><a href="{escape(message.answer_url)}">{ANSWER}</a></p>'
    if message.unsubscribe_url is not None:
        footer += f'\n<p><small><a href="{escape(message.unsubscribe_url)}">Unsubscribe</a></small></p>'
    title = escape(clean_line(message.title))
    head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
    return f"<!doctype html>\n<html>{head}<body>\n<h2>{title}</h2>\n{body}{footer}\n</body></html>\n"


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
        if not _CONTENT_TYPE.fullmatch(each.content_type):
            raise DeliveryRefused(f"{each.content_type[:100]!r} is not a content type. Give one, such as text/plain.")
        if each.content_type.lower().startswith(("message/", "multipart/")):
            raise DeliveryRefused("A mail within a mail cannot be attached. Send it as application/octet-stream.")
    return attachments
