"""Mail is handed to a real SMTP server once, encrypted, and its answers mean what RFC 5321 says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cases import try_each
from tests.people.senders.mail_server import PASSWORD, USER, MailServer, make_tls, serve_mail
from tests.people.senders.messages import ADA, make_message

from cloudsched.engine.ports.sender import Recipient
from cloudsched.errors import DeliveryDelayed, DeliveryRefused, Misconfigured
from cloudsched.people.senders import smtp
from cloudsched.people.senders.smtp import SmtpSender, SmtpServer

FROM = "Plants <plants@example.org>"
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")  # it means STARTTLS only
LOGIN = "mailer%40example.com:p%40ss%2Fw%C3%B6rd%3A%C3%A91"


@pytest.fixture
def server() -> Iterator[MailServer]:
    with serve_mail() as running:
        yield running


def sender_to(server: MailServer) -> SmtpSender:
    return SmtpSender(SmtpServer.from_url(f"smtp://127.0.0.1:{server.port}"), FROM)


def test_a_mail_arrives_with_its_text_and_its_id(server: MailServer) -> None:
    """The server gets one mail for one recipient, and the caller the Message-ID that is in it."""
    message_id = sender_to(server).send(make_message(), ADA)
    (mail,) = server.mails
    assert mail["Message-ID"] == message_id == "<msg_4f9aT1@example.org>"
    assert server.recipients == [["ada@example.com"]]
    assert mail["From"] == FROM
    assert mail["To"] == "Ada <ada@example.com>"


def test_smtps_encrypts_from_the_beginning_and_signs_in(tmp_path: Path) -> None:
    """With smtps:// the whole connection is TLS, checked against what the client trusts, with user and password."""
    shown, trusted = make_tls(tmp_path)
    with serve_mail(implicit_tls=shown, requires_login=True) as server:
        target = SmtpServer.from_url(f"smtps://{LOGIN}@localhost:{server.port}")
        assert (target.user, target.password) == (USER, PASSWORD)
        SmtpSender(target, FROM, tls=trusted).send(make_message(), ADA)
        assert server.was_encrypted == [True]
        with pytest.raises(DeliveryDelayed, match="CERTIFICATE_VERIFY_FAILED"):
            SmtpSender(target, FROM).send(make_message(), ADA)
        assert len(server.received) == 1


def test_smtp_elsewhere_is_encrypted_before_the_password_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond this machine, smtp:// means STARTTLS, before login and mail."""
    monkeypatch.setattr("cloudsched.people.senders.smtp.is_loopback", lambda _: False)
    shown, trusted = make_tls(tmp_path)
    with serve_mail(starttls=shown, requires_login=True) as server:
        target = SmtpServer.from_url(f"smtp://{LOGIN}@localhost:{server.port}")
        SmtpSender(target, FROM, tls=trusted).send(make_message(), ADA)
        assert server.was_encrypted == [True]


def test_nothing_is_sent_in_the_clear_if_starttls_is_not_offered(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody on the way who removes the offer of STARTTLS gets neither password nor mail."""
    monkeypatch.setattr("cloudsched.people.senders.smtp.is_loopback", lambda _: False)
    with pytest.raises(DeliveryDelayed, match="does not offer"):
        sender_to(server).send(make_message(), ADA)
    assert server.received == []


def test_a_wrong_password_keeps_the_mail_waiting(tmp_path: Path) -> None:
    """The operator can mend it, so it is no failure of the message; the reason does not show the password."""
    shown, trusted = make_tls(tmp_path)
    with serve_mail(implicit_tls=shown, requires_login=True) as server:
        target = SmtpServer.from_url(f"smtps://ada:sesame-open@localhost:{server.port}")
        with pytest.raises(DeliveryDelayed, match="535") as caught:
            SmtpSender(target, FROM, tls=trusted).send(make_message(), ADA)
        assert "sesame" not in f"{caught.value} {target!r}"


@pytest.mark.parametrize("place", ["recipient", "data"])
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("450 4.2.1 busy", DeliveryDelayed),
        ("550 5.1.1 no such user", DeliveryRefused),
    ],
)
def test_what_a_refusal_means(server: MailServer, place: str, answer: str, kind: type[Exception]) -> None:
    """Of the recipient or the text: 4xx is tried later, 5xx ends with the reason."""
    if place == "data":
        server.data_answer = answer
    else:
        server.answers["ada@example.com"] = answer
    with pytest.raises(kind, match=answer[4:]) as caught:
        sender_to(server).send(make_message(), ADA)
    assert type(caught.value) is kind
    assert "cannot be reached" not in str(caught.value)


def test_a_server_that_greets_with_a_refusal_is_not_called_unreachable() -> None:
    """It was reached: its words are told, and the mail is sent later."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"421 4.3.2 too busy\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        target = SmtpServer.from_url(f"smtp://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(DeliveryDelayed, match=r"^Refused for now by 127\.0\.0\.1: 421 4\.3\.2 too busy$"):
            SmtpSender(target, FROM).send(make_message(), ADA)
        thread.join()


def test_a_server_that_does_not_answer_is_left(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A late answer ends the try, which is repeated later."""
    monkeypatch.setattr(smtp, "TIMEOUT_SECONDS", 0.2)
    server.data_answer = "wait"
    with pytest.raises(DeliveryDelayed, match="timed out"):
        sender_to(server).send(make_message(), ADA)


def test_an_address_outside_of_ascii_is_reached(server: MailServer) -> None:
    """A domain is sent as IDNA, and what stands before the @ as SMTPUTF8."""
    sender_to(server).send(make_message(title="Grüße"), Recipient(address="jürgen@müller.example", name="Jürgen 🪴"))
    assert server.recipients == [["jürgen@xn--mller-kva.example"]]
    assert server.mails[0]["Subject"] == "Grüße"


@try_each(
    "url",
    [
        "http://localhost",
        "smtp://user@localhost",
        "smtp://a:secret@host:99999",
        "smtp://h/x",
    ],
)
def test_a_wrong_server_address_says_how_it_is_written(url: str) -> None:
    """The error teaches the form, and keeps the password to itself."""
    with pytest.raises(Misconfigured, match="Write smtps://") as caught:
        SmtpServer.from_url(url)
    assert "secret" not in str(caught.value)


@try_each("sender", ["Plants", "a@b@c", "a@example.org\nBcc: x@example.com", "jürgen@example.org"])
def test_a_wrong_sender_is_refused_at_the_start(sender: str) -> None:
    """A sender that no server would take is a mistake in the settings, and found before a mail is due."""
    with pytest.raises(Misconfigured):
        SmtpSender(SmtpServer.from_url("smtp://localhost"), sender)
