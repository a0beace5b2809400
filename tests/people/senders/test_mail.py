"""What people write stays text in an e-mail: it becomes neither header nor markup, whatever it contains."""

from __future__ import annotations

from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.policy import default
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each
from tests.people.senders.messages import ADA, make_message

from cloudsched.engine.ports.sender import MAX_ATTACHMENTS_BYTES, Attachment, OutgoingMessage, Recipient
from cloudsched.errors import DeliveryRefused
from cloudsched.people.senders.mail import clean_line, make_address, write_html, write_mail

FROM = make_address("plants@example.org")
HEADERS = {"From", "To", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted"}
ANY_TEXT = st.text(st.characters(), max_size=60) | st.sampled_from(
    [
        "a\r\nBcc: eve@example.com",
        "a\nBcc: e@example.com\n\n<b>",
        "=?utf-8?q?a=0ABcc:_e@x?=",
        "\u2028Bcc: x",
        "\x85B: c",
    ]
)


def arrive(message: OutgoingMessage, recipient: Recipient = ADA, **options: Any) -> EmailMessage:
    """Return a mail as the recipient's program reads it."""
    raw = write_mail(message, recipient, FROM, **options).as_bytes()
    assert all(len(line) <= 998 for line in raw.split(b"\r\n")), "RFC 5322 §2.1.1"
    return message_from_bytes(raw, policy=default)


@given(title=ANY_TEXT, name=ANY_TEXT, body=ANY_TEXT, file_name=ANY_TEXT)
def test_no_text_becomes_a_header(title: str, name: str, body: str, file_name: str) -> None:
    """Whatever subject, name, body and file name contain, a mail has its headers and one recipient."""
    attachment = Attachment(name=file_name, content=b"x")
    recipient = Recipient(address="ada@example.com", name=name)
    mail = arrive(make_message(title=title, body=body, attachments=(attachment,)), recipient)
    assert set(mail.keys()) <= HEADERS | {"MIME-Version", "Content-Type"}
    assert len(mail.keys()) == len(set(mail.keys()))
    assert [each.addr_spec for each in mail["To"].addresses] == ["ada@example.com"]
    assert len(list(mail.iter_attachments())) == 1


@try_each(
    "address",
    [
        "ada@example.com\r\nBcc: eve@example.com",
        "ada@example.com, eve@example.com",
        "Ada <ada@example.com>",
        "ada",
        "ada@",
        "ada@example.com>",
        "ada@\u202eexample.com",
        "ada\x00@example.com",
        "",
        "a" * 65 + "@example.com",
    ],
)
def test_what_is_not_one_address_is_refused(address: str) -> None:
    """A list, a header or a name in place of an address reaches nobody."""
    with pytest.raises(DeliveryRefused):
        write_mail(make_message(), Recipient(address=address), FROM)


@given(title=ANY_TEXT, body=st.text() | st.just("<script>alert(1)</script><img src=x onerror=alert(1)>&amp;"))
def test_no_text_becomes_markup(title: str, body: str) -> None:
    """The HTML has the same few elements, without attributes that a user wrote."""
    elements: list[str] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            elements.append(tag)
            assert not attrs or tag == "meta"

    Parser().feed(write_html(make_message(title=title, body=body)))
    assert set(elements) <= {"html", "head", "meta", "title", "body", "h2", "p", "br"}


def test_text_and_html_say_the_same() -> None:
    """A mail has both forms; paragraphs and letters of all languages survive."""
    mail = arrive(make_message(title="Grüße 🪴 " + "ä" * 100, body="Hallo Jürgen,\n\n.\n你好\nFrom here"))
    plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert mail["Subject"] == "Grüße 🪴 " + "ä" * 100
    assert plain is not None
    assert html is not None
    assert plain.get_content().splitlines() == ["Hallo Jürgen,", "", ".", "你好", "From here"]
    assert "<p>.<br>\n你好<br>\nFrom here</p>" in html.get_content().replace("\r\n", "\n")


@try_each("name", ["Jürgen Müller", "王小明", 'Ada, "die Große" <ada>', "ä" * 90])
def test_a_name_outside_of_ascii_arrives_as_it_is(name: str) -> None:
    """Encoded in 7 bits on the way (RFC 2047), with the address beside it, whatever is in the name."""
    raw = write_mail(make_message(), Recipient(address="ada@example.com", name=name), FROM).as_bytes()
    assert raw.partition(b"\r\n\r\n")[0].isascii()
    shown = str(make_header(decode_header(message_from_bytes(raw)["To"])))
    assert shown == f"{name} <ada@example.com>"


def test_one_click_unsubscribes_by_rfc_8058() -> None:
    """Both headers are there, with the whole URL on one line, however long it is."""
    url = "https://example.org/unsubscribe/" + "x" * 300 + "?a=1&b=2"
    raw = write_mail(make_message(unsubscribe_url=url), ADA, FROM).as_bytes()
    assert f"\r\nList-Unsubscribe: <{url}>\r\n".encode() in raw
    assert b"\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in raw
    assert "a=1&amp;b=2" in write_html(make_message(unsubscribe_url=url))


def test_a_question_links_to_its_page_in_both_forms() -> None:
    url = "https://example.org/v1/links/answer/abc?a=1&b=2"
    mail = arrive(make_message(answer_url=url))
    plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert f"Approve or reject: {url}" in plain.get_content()
    assert '<a href="https://example.org/v1/links/answer/abc?a=1&amp;b=2">' in html.get_content()


@try_each("url", ["http://example.org/u", "https://e.org/u>\r\nBcc: x@y", "javascript:alert(1)"])
def test_a_wrong_address_to_unsubscribe_is_refused(url: str) -> None:
    """Only HTTPS, and nothing that ends the header."""
    with pytest.raises(DeliveryRefused):
        write_mail(make_message(unsubscribe_url=url), ADA, FROM)


def test_mails_of_one_task_are_one_thread() -> None:
    """Two messages have ids of their own and the same root, which the provider's header does not change."""
    first = arrive(make_message(), idempotency_header="Resend-Idempotency-Key")
    second = arrive(make_message(id="msg_2"))
    assert first["References"] == second["References"] == first["In-Reply-To"] == "<task_77Zq@example.org>"
    assert first["Message-ID"] != second["Message-ID"]
    assert first["Resend-Idempotency-Key"] == "msg_4f9aT1"


def test_attachments_arrive_up_to_the_stated_size() -> None:
    """Bytes and names arrive; one byte more than allowed is refused with the limit."""
    whole = Attachment(name="../Plan für Ada.pdf", content=b"\x00\xff" * 10, content_type="application/pdf")
    (part,) = arrive(make_message(attachments=(whole,))).iter_attachments()
    assert part.get_content() == whole.content
    assert part.get_filename() == ".._Plan für Ada.pdf"
    large = Attachment(name="a", content=bytes(MAX_ATTACHMENTS_BYTES))
    with pytest.raises(DeliveryRefused, match=str(MAX_ATTACHMENTS_BYTES)):
        write_mail(make_message(attachments=(large, whole)), ADA, FROM)


@try_each("content_type", ["text/html\r\nX: y", "text", "message/rfc822", "multipart/mixed", ""])
def test_a_wrong_content_type_is_refused(content_type: str) -> None:
    """A content type that would add headers or parts of its own is no attachment."""
    attachment = Attachment(name="a", content=b"", content_type=content_type)
    with pytest.raises(DeliveryRefused):
        write_mail(make_message(attachments=(attachment,)), ADA, FROM)


def test_marks_that_turn_the_writing_around_are_dropped() -> None:
    """A name cannot show an address backwards."""
    assert clean_line("pay\u202emoc.elpmaxe@ada\u2066 now") == "paymoc.elpmaxe@ada now"
