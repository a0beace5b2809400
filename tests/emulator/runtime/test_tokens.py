"""OIDC and OAuth tokens: google-auth accepts valid ones and refuses invalid ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from google.auth import exceptions, jwt
from google.auth.transport import requests
from google.oauth2 import id_token
from tests.emulator.conftest import QUEUE, Client, Http, Target

from cloudsched.emulator import CloudTasksEmulator
from cloudsched.emulator.runtime.tokens import CLOUD_SCOPE, WRONG_AUDIENCE

EMAIL = "caller@demo.iam.gserviceaccount.com"
AUDIENCE = "https://worker.example.com"


@pytest.fixture
def verify(emulator: CloudTasksEmulator) -> Iterator[Callable[[str, str], dict[str, Any]]]:
    """Verify a token as a Cloud Run service does, with the emulator's certificates."""
    request = requests.Request()

    def check(token: str, audience: str) -> dict[str, Any]:
        claims = [
            id_token.verify_token(token, request, audience, f"http://{emulator.address}/oauth2/{path}/certs")
            for path in ("v1", "v3")
        ]
        assert claims[0] == claims[1]
        return dict(claims[0])

    yield check
    request.session.close()


@pytest.fixture
def receive(emulator: CloudTasksEmulator, grpc_client: Client, target: Target) -> Callable[..., str | None]:
    """Send one task with a token and return the Authorization header that arrived."""

    def send(**auth: dict[str, str]) -> str | None:
        task = {"http_request": {"url": f"{target.url}/x", **auth}, "schedule_time": emulator.clock.now()}
        grpc_client.create_task(parent=QUEUE, task=task)
        emulator.advance(timedelta(0))
        return target.hits[-1].headers.get("Authorization")

    return send


def bearer(header: str | None) -> str:
    assert header is not None
    scheme, _, token = header.partition(" ")
    assert scheme == "Bearer"
    return token


def test_an_oidc_token_has_the_claims_of_googles(
    receive: Callable[..., str | None], verify: Callable[[str, str], dict[str, Any]]
) -> None:
    begun = int(time.time())
    token = bearer(receive(oidc_token={"service_account_email": EMAIL, "audience": AUDIENCE}))
    received = time.time()
    claims = verify(token, AUDIENCE)
    assert claims["iss"] == "https://accounts.google.com"
    assert (claims["email"], claims["email_verified"]) == (EMAIL, True)
    assert claims["exp"] - claims["iat"] == 3600
    assert begun <= claims["iat"] <= received
    with pytest.raises(exceptions.GoogleAuthError, match="audience"):
        verify(token, "https://another.example.com")


def test_the_default_audience_is_the_url(
    receive: Callable[..., str | None], verify: Callable[[str, str], dict[str, Any]], target: Target
) -> None:
    verify(bearer(receive(oidc_token={"service_account_email": EMAIL})), f"{target.url}/x")


def test_an_access_token_has_the_scope_of_the_task(receive: Callable[..., str | None]) -> None:
    claims = jwt.decode(bearer(receive(oauth_token={"service_account_email": EMAIL})), verify=False)  # type: ignore[no-untyped-call]
    assert (claims["email"], claims["scope"]) == (EMAIL, CLOUD_SCOPE)


def test_wrong_expired_and_missing_tokens_can_be_sent(
    http: Http, receive: Callable[..., str | None], verify: Callable[[str, str], dict[str, Any]]
) -> None:
    http("POST", "/tokens", {"mode": "wrongAudience"})
    token = bearer(receive(oidc_token={"service_account_email": EMAIL, "audience": AUDIENCE}))
    with pytest.raises(exceptions.GoogleAuthError, match="audience"):
        verify(token, AUDIENCE)
    verify(token, WRONG_AUDIENCE)
    assert http("POST", "/tokens", {"mode": "expired"})[0] == 200
    token = bearer(receive(oidc_token={"service_account_email": EMAIL, "audience": AUDIENCE}))
    with pytest.raises(exceptions.GoogleAuthError, match="expired"):
        verify(token, AUDIENCE)
    http("POST", "/tokens", {"mode": "missing"})
    assert receive(oidc_token={"service_account_email": EMAIL, "audience": AUDIENCE}) is None
    assert http("POST", "/tokens", {"mode": "forged"})[0] == 400


def test_a_forged_signature_is_refused(
    receive: Callable[..., str | None], verify: Callable[[str, str], dict[str, Any]]
) -> None:
    token = bearer(receive(oidc_token={"service_account_email": EMAIL, "audience": AUDIENCE}))
    head, claims, signature = token.split(".")
    forged = f"{head}.{claims}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"
    with pytest.raises((exceptions.GoogleAuthError, ValueError)):
        verify(forged, AUDIENCE)
