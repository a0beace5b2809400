"""Sign what the queue carries, so that the executor can verify that it came from this scheduler.

Each dispatch carries an HMAC-SHA256 (RFC 2104) of its body, made with a secret that only the functions know. The body
says what may run, so a token authorizes only that, and the secret itself is never in a queue. While a secret is being
rotated, the previous one is still accepted, so that dispatches that wait for weeks are not lost.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from cloudsched.errors import Misconfigured, Unauthenticated

MIN_SECRET_LENGTH = 16


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The secret that signs, and the previous one, which is still accepted. Neither appears in the repr.

    A signature for one purpose is not valid for another.
    """

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)
    purpose: str = "dispatch"

    def __post_init__(self) -> None:
        if any(len(secret) < MIN_SECRET_LENGTH for secret in (self.current, self.previous) if secret is not None):
            raise Misconfigured(
                f"A secret has at least {MIN_SECRET_LENGTH} characters. Make one with "
                "`python -c 'import secrets; print(secrets.token_urlsafe(32))'` and set CLOUDSCHED_SECRET."
            )

    def sign(self, body: bytes) -> str:
        """Return the token for the body of a dispatch, or of whatever else the purpose names."""
        return self._signature(self.current, body)

    def verify(self, body: bytes, token: str) -> None:
        """Check a token in constant time, however much of it is correct. Raises Unauthenticated."""
        if not token:
            raise Unauthenticated(f"The {self.purpose} carries no token.")
        encoded_token = token.encode("utf-8", "surrogatepass")
        secrets = [self.current, *([self.previous] if self.previous is not None else [])]
        matches = [hmac.compare_digest(self._signature(secret, body).encode(), encoded_token) for secret in secrets]
        if not any(matches):
            raise Unauthenticated(f"The {self.purpose}'s token does not match its body.")

    def _signature(self, secret: str, body: bytes) -> str:
        purpose = f"cloudsched {self.purpose} v1\n".encode()
        # `hmac.digest` would let another thread run, and wait for Python's lock longer than it computes.
        return "v1=" + hmac.new(secret.encode(), purpose + body, "sha256").hexdigest()
