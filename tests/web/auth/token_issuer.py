"""Google's part in the tests: keys of the tests' own, tokens signed by them, and the addresses that publish them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from requests.adapters import HTTPAdapter
from tests.web.callers import DAY
from werkzeug.wrappers import Request, Response

from cloudsched.local.wsgi_server import WebServer

if TYPE_CHECKING:
    import requests
    from requests import PreparedRequest

PROJECT = "demo-users"
AUDIENCE = "https://api.example"
FIREBASE_CERTS = "https://www.googleapis.com/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com"
GOOGLE_CERTS = "https://www.googleapis.com/oauth2/v1/certs"
MAX_AGE = 20_000
"""For how many seconds Google lets its keys be kept. It publishes new ones long before it signs with them; this issuer
may exchange its only one at any time."""


@dataclass
class Issuer:
    """An issuer that signs tokens, and publishes the certificates of its keys."""

    kid: str = "key-1"
    key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65537, 2048))

    @property
    def certificate(self) -> str:
        """The key's self-signed certificate, as Google publishes them."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder(name, name, self.key.public_key(), 1)
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
        )
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()

    def make_user_token(self, uid: str = "ada", headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """Return a Firebase user's ID token; a claim that is None is left out."""
        return self._sign({**user_claims(uid), **claims}, headers)

    def make_account_token(self, email: str, /, **claims: Any) -> str:
        """Return a service account's OIDC token."""
        return self._sign({**account_claims(email), **claims}, None)

    def _sign(self, claims: dict[str, Any], headers: dict[str, Any] | None) -> str:
        said = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(said, self.key, "RS256", {"kid": self.kid, **(headers or {})})


def user_claims(uid: str) -> dict[str, Any]:
    """Return the claims of a Firebase ID token."""
    now = int(time.time())
    return {
        "iss": f"https://securetoken.google.com/{PROJECT}",
        "aud": PROJECT,
        "sub": uid,
        "user_id": uid,
        "iat": now - 60,
        "exp": now + 3600,
        "auth_time": now - 60,
        "firebase": {"sign_in_provider": "password"},
    }


def account_claims(email: str) -> dict[str, Any]:
    """Return the claims of a service account's OIDC token."""
    now = int(time.time())
    return {
        "iss": "https://accounts.google.com",
        "aud": AUDIENCE,
        "sub": "1234567890",
        "email": email,
        "email_verified": True,
        "iat": now - 60,
        "exp": now + 3600,
    }


@contextmanager
def publish_keys(issuer: Issuer) -> Iterator[list[str]]:
    """Let Google's libraries find the issuer's certificates where they look for Google's; yield what they ask for.

    Nothing of their verification is touched: their requests go over HTTP, to a server of the tests' own. Nothing but
    the certificates can be asked for.
    """
    asked: list[str] = []
    whole = HTTPAdapter.send

    @Request.application
    def answer(_request: Request) -> Response:
        content = json.dumps({issuer.kid: issuer.certificate})
        headers = {"Cache-Control": f"public, max-age={MAX_AGE}"}
        return Response(content, content_type="application/json", headers=headers)

    def send(adapter: HTTPAdapter, request: PreparedRequest, *more: Any, **named: Any) -> requests.Response:
        meant = request.url
        assert meant in {FIREBASE_CERTS, GOOGLE_CERTS}, meant
        asked.append(meant)
        request.url = f"http://{server.address}/"
        try:
            return whole(adapter, request, *more, **named)
        finally:
            request.url = meant

    with WebServer(answer) as server, pytest.MonkeyPatch.context() as patch:
        server.serve()
        patch.setattr(HTTPAdapter, "send", send)
        patch.delenv("FIREBASE_AUTH_EMULATOR_HOST", raising=False)
        yield asked
