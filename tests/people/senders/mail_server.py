"""A real SMTP server for tests, which answers as it is told and keeps what it was given."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

USER, PASSWORD = "mailer@example.com", "p@ss/wörd:é1"


@dataclass
class MailServer:
    """What a server does, and what it has seen.

    Attributes:
        answers: What RCPT is answered for an address, instead of 250.
        data_answer: What the end of DATA is answered; "die" closes the connection without an answer, "wait" answers
            nothing.
    """

    port: int = 0
    answers: dict[str, str] = field(default_factory=dict)
    data_answer: str = "250 OK"
    received: list[bytes] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    was_encrypted: list[bool] = field(default_factory=list)

    @property
    def mails(self) -> list[EmailMessage]:
        """What arrived, as a mail program reads it."""
        return [message_from_bytes(each, policy=default) for each in self.received]

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address in self.answers:
            return self.answers[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's
        """Keep a mail, and answer as told."""
        self.received.append(_as_bytes(envelope.content))
        assert server.transport is not None
        self.recipients.append(list(envelope.rcpt_tos))
        self.was_encrypted.append(session.ssl is not None or server.transport.get_extra_info("sslcontext") is not None)
        if self.data_answer == "die":
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        if self.data_answer == "wait":
            await asyncio.Event().wait()
        return self.data_answer


def _as_bytes(content: bytes | str | None) -> bytes:
    assert isinstance(content, bytes)
    return content


class _Controller(Controller):
    """Serves on the port that the system chose."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]  # aiosmtpd's


@contextmanager
def serve_mail(
    *, implicit_tls: ssl.SSLContext | None = None, starttls: ssl.SSLContext | None = None, requires_login: bool = False
) -> Iterator[MailServer]:
    """Serve on a free port of this machine."""
    state = MailServer()

    def authenticate(
        _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: object
    ) -> AuthResult:
        is_right = isinstance(data, LoginPassword) and (data.login, data.password) == (
            USER.encode(),
            PASSWORD.encode(),
        )
        return AuthResult(success=is_right, handled=False)

    controller = _Controller(
        state,
        hostname="127.0.0.1",
        port=0,
        ssl_context=implicit_tls,
        tls_context=starttls,
        require_starttls=starttls is not None,
        authenticator=authenticate,
        auth_required=requires_login,
        auth_require_tls=implicit_tls is None,
        auth_exclude_mechanism=["CRAM-MD5"],
        enable_SMTPUTF8=True,
        ident="test",
    )
    controller.start()
    try:
        state.port = controller.port
        yield state
    finally:
        controller.stop()


def make_tls(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return what a server on this machine shows, and what a client needs to trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(certificate.public_bytes(Encoding.PEM) + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=certificate.public_bytes(Encoding.PEM).decode())
