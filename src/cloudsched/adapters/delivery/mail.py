"""Write a message as an e-mail (RFC 5322), whose texts come from people who are not trusted.

* No text becomes a header: control characters and line breaks in names and subjects become spaces, and an address that
  has any is refused. Marks that turn the direction of writing are dropped: with them one address looks like another.
* Text that looks like an encoded word (``=?utf-8?q?a=0ABcc:…?=``, RFC 2047) is taken apart. Python's ``email`` decodes
  it as it sets a header, and writes the line break that was hidden in it.
* HTML is escaped. Who wants more than paragraphs sets a `Template`.
* The Message-ID is made from `Message.id`, so all tries have the same; mails of one task refer to one root, which mail
  programs show as a conversation.
"""

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
    from cloudsched.engine.ports.sender import Attachment, Message, Recipient, Template

_VERBATIM = frozenset({"list-unsubscribe", "references", "in-reply-to", "message-id"})
_MAX_SUBJECT = 200
_MAX_NAME = 100
_DIRECTION_MARKS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
_ADDRESS = re.compile(r"[^\s@<>()\[\],;:\\\"]{1,64}@[^\s@<>()\[\],;:\\\"]{1,253}")


class _Policy(EmailPolicy):
    """Does not break lines within ids and URLs: Python would encode a long one as if it were text (RFC 2047)."""

    def fold(self, name: str, value: str) -> str:
        """Return a header as text."""
        return f"{name}: {value}\r\n" if name.lower() in _VERBATIM else super().fold(name, value)

    def fold_binary(self, name: str, value: str) -> bytes:
        """Return a header as bytes."""
        return self.fold(name, value).encode("ascii") if name.lower() in _VERBATIM else super().fold_binary(name, value)


def make_address(text: str, name: str = "") -> Address:
    """Return an address whose domain is in ASCII, as mail servers expect it.

    Raises:
        DeliveryRefused: It is not the address of one mailbox.
    """
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

    Args:
        message: What is sent.
        recipient: Whom to.
        sender: Whom from.
        template: Makes the HTML; without one, the body's paragraphs.
        idempotency_header: Where the provider looks for a key by which it drops repeats, such as
            ``Resend-Idempotency-Key``.

    Raises:
        DeliveryRefused: It has no valid address, or its attachments are too large.
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
        raise DeliveryRefused(f"{url[:100]!r} cannot be linked to: an address to unsubscribe is https:// in ASCII.")
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
