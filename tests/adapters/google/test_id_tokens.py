"""A token whose signature Cloud Run has checked and removed is still read as a stranger's word."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from tests.cases import try_each

from cloudsched.adapters.google.id_tokens import REMOVED_SIGNATURE, GoogleTokenVerifier
from cloudsched.errors import Unauthenticated

AUDIENCE = "https://api.example"
EMAIL = "robot@x.iam.gserviceaccount.com"


def stripped_token(**changes: Any) -> str:
    """Return a token of a service account as Cloud Run passes it on, with some claims changed."""
    now = int(time.time())
    claims = {
        "iss": "https://accounts.google.com",
        "aud": AUDIENCE,
        "email": EMAIL,
        "email_verified": True,
        "iat": now,
        "exp": now + 3600,
        **changes,
    }
    parts = (json.dumps(each).encode() for each in ({"alg": "RS256", "typ": "JWT", "kid": "k"}, claims))
    encoded = [base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, REMOVED_SIGNATURE])


def verify(token: str) -> dict[str, Any]:
    return GoogleTokenVerifier(audiences=[AUDIENCE], trust_cloud_run=True).verify_google(token)


def test_a_stripped_token_of_google_is_accepted() -> None:
    """The token that the other tests change is good, so that each of them is refused for its change alone."""
    assert verify(stripped_token())["email"] == EMAIL


CLAIMS = ("iss", "aud", "email", "email_verified", "exp", "iat")
VALUES: tuple[object, ...] = (
    None,
    True,
    [],
    ["https://accounts.google.com"],
    [AUDIENCE],
    {},
    "x",
    -1,
    1e400,
    -1e400,
    float("nan"),
    10**30,
)
ALLOWED = (("email", "x"), ("email_verified", True))


@try_each("claim, value", [(claim, value) for claim in CLAIMS for value in VALUES if (claim, value) not in ALLOWED])
def test_a_claim_of_the_wrong_kind_is_refused(claim: str, value: object) -> None:
    """A list, a NaN or an infinite time in any claim makes the token invalid; none is an error of the server."""
    with pytest.raises(Unauthenticated):
        verify(stripped_token(**{claim: value}))
