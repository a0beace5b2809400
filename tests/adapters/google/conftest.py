"""A service behind TLS, for the tests of channels."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID
from tests.adapters.google.secure_service import RecordingService, make_key


@pytest.fixture(scope="module")
def certificate() -> tuple[str, str]:
    """The key and the certificate of the service, which is on this machine."""
    key, pem = make_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return pem, signed.public_bytes(serialization.Encoding.PEM).decode()


@pytest.fixture
def service(certificate: tuple[str, str]) -> Iterator[RecordingService]:
    recording = RecordingService()
    server = grpc.server(ThreadPoolExecutor(2), handlers=(recording,))
    key, chain = (part.encode() for part in certificate)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
    server.start()
    recording.address = f"127.0.0.1:{port}"
    yield recording
    server.stop(None).wait()
