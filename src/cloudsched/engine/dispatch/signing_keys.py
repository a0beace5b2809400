"""How the executor knows that a dispatch came from this scheduler.

Each dispatch carries an HMAC-SHA256 (RFC 2104) of its body, made with a secret that only the functions know. The body
says what may run, so a token is good for that and nothing else, and the secret itself is never in a queue. While a
secret is being rotated the previous one is still accepted, so that dispatches which wait for weeks are not lost.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

from cloudsched.errors import Misconfigured, Unauthenticated

MIN_SECRET_LENGTH = 16
_PURPOSE = b"cloudsched dispatch v1\n"


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The secret that signs, and the one before it that is still accepted. Neither is ever shown."""

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse a secret that can be guessed."""
        if any(len(secret) < MIN_SECRET_LENGTH for secret in (self.current, self.previous) if secret is not None):
            raise Misconfigured(
                f"A secret has at least {MIN_SECRET_LENGTH} characters. Make one with "
                "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` and set CLOUDSCHED_SECRET."
            )

    def sign(self, body: bytes) -> str:
        """Return the token for a dispatch's body."""
        return _signature(self.current, body)

    def verify(self, body: bytes, token: str) -> None:
        """Check a token in a time that does not depend on how much of it is right.

        Raises:
            Unauthenticated: It is missing, or was not made for this body with one of the secrets.
        """
        if not token:
            raise Unauthenticated("The dispatch carries no token.")
        given = token.encode("utf-8", "surrogatepass")
        secrets = [self.current, *([self.previous] if self.previous is not None else [])]
        matches = [hmac.compare_digest(_signature(secret, body).encode(), given) for secret in secrets]
        if not any(matches):
            raise Unauthenticated("The dispatch's token does not fit what it asks for.")


def _signature(secret: str, body: bytes) -> str:
    return "v1=" + hmac.new(secret.encode(), _PURPOSE + body, hashlib.sha256).hexdigest()
