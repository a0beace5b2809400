"""A channel to Google's services carries the credentials that Google's libraries find."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from tests.adapters.google.secure_service import (
    OURS,
    RecordingService,
    call,
    make_key,
    run,
    run_metadata_server,
)

from cloudsched.adapters.google.channel import GoogleService, open_channel
from cloudsched.errors import Misconfigured

CALL_UNTIL_DEADLINE = """
import grpc
from cloudsched.adapters.google.backoff import Backoff
from cloudsched.adapters.google.channel import OVERLOAD_CODES, retry
method = channel.unary_unary("/google.firestore.v1.Firestore/Commit", bytes, bytes)
try:
    retry(lambda timeout: method(b"asked", timeout=timeout), OVERLOAD_CODES, Backoff(1.0))
    print("answered")
except grpc.RpcError as error:
    print("overload" if error.code() in OVERLOAD_CODES else error.code().name)
"""


def test_a_key_of_a_service_account_signs_its_tokens(
    service: RecordingService, certificate: tuple[str, str], tmp_path: Path
) -> None:
    """The token is signed by the key itself, for the service's host; and the project that pays is named."""
    _, pem = make_key()
    key = {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "1",
        "private_key": pem,
        "client_email": "robot@p.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": "http://127.0.0.1:9/token",
    }
    file = tmp_path / "key.json"
    file.write_text(json.dumps(key))
    metadata = call(
        service,
        tmp_path,
        certificate[1],
        GOOGLE_APPLICATION_CREDENTIALS=str(file),
        GOOGLE_CLOUD_QUOTA_PROJECT="who-pays",
    )
    scheme, _, token = metadata["authorization"].partition(" ")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert scheme == "Bearer"
    assert claims["iss"] == "robot@p.iam.gserviceaccount.com"
    assert claims["aud"] == f"https://{service.address}/"
    assert metadata["x-goog-user-project"] == "who-pays"


def test_a_machine_of_google_has_a_token(
    service: RecordingService, certificate: tuple[str, str], tmp_path: Path
) -> None:
    """In Cloud Run the token is the metadata server's."""
    with run_metadata_server() as address:
        metadata = call(
            service, tmp_path, certificate[1], GCE_METADATA_HOST=address, GCE_METADATA_IP=address, NO_PROXY="127.0.0.1"
        )
    assert metadata["authorization"] == "Bearer of the machine"


def test_a_service_that_nobody_trusts_gets_no_token(service: RecordingService, tmp_path: Path) -> None:
    """TLS is checked: without the service's certificate among the roots, nothing is sent."""
    with run_metadata_server() as address, pytest.raises(AssertionError, match=r"UNAVAILABLE|DEADLINE_EXCEEDED"):
        call(service, tmp_path, "", GCE_METADATA_HOST=address, GCE_METADATA_IP=address, NO_PROXY="127.0.0.1")
    assert service.metadata == []


def test_missing_credentials_are_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without credentials the error says what to do."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(Misconfigured, match="gcloud auth application-default login"):
        open_channel(GoogleService("firestore.googleapis.com", ()), None)


@pytest.mark.parametrize(("lifetime", "delay"), [(0, 0.0), (3600, 3.0)], ids=["no token", "a slow token"])
def test_a_token_that_does_not_come_is_an_outage(
    lifetime: int, delay: float, service: RecordingService, certificate: tuple[str, str], tmp_path: Path
) -> None:
    """While the metadata server fails or hangs, a call fails at its deadline like one to a service that is down."""
    with run_metadata_server(lifetime, delay) as address:
        where = {"GCE_METADATA_HOST": address, "GCE_METADATA_IP": address, "NO_PROXY": "127.0.0.1"}
        answer = run(service, tmp_path, certificate[1], OURS + CALL_UNTIL_DEADLINE, **where)
    assert answer.split() == ["overload"]
    assert service.metadata == []
