"""Identity and access tokens: real JWTs, signed with a key of this emulator.

OIDC tokens have the same claims as Google's, so that standard verification
(`google.oauth2.id_token.verify_token`) accepts them with the certificates that the emulator serves.
Access tokens are JWTs as well, where Google's are opaque. Tokens are stamped with real time, not with the
emulator's clock, because verifiers read the system's clock.
"""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime, timedelta
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from cloudsched.emulator.model.task import OAuthToken, OidcToken

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

for _package in ("cryptography", "jwt"):  # imported with the first token: most queues of tests send none
    if find_spec(_package) is None:
        raise ModuleNotFoundError(f"No module named {_package!r}", name=_package)

TokenMode = Literal["valid", "wrongAudience", "expired", "missing"]
TOKEN_MODES: Final[tuple[TokenMode, ...]] = get_args(TokenMode)

ISSUER: Final = "https://accounts.google.com"
CLOUD_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
WRONG_AUDIENCE: Final = "https://wrong-audience.invalid"
_ALGORITHM: Final = "RS256"
_LIFETIME: Final = 3600
_EXPIRED_AGE: Final = 7200
_KEY_BITS: Final = 2048
_DEFAULT_EMAIL: Final = "emulated-service-acct@email.com"


class TokenIssuer:
    """Issues tokens, and publishes the keys to verify them.

    Attributes:
        mode: The kind of tokens to issue: valid, or invalid in one way, to test that a target refuses them.
    """

    def __init__(self, mode: TokenMode = "valid") -> None:
        self.mode: TokenMode = mode

    def make_authorization(self, token: OidcToken | OAuthToken, url: str) -> str:
        """Return the Authorization header for a request to that URL, empty in the mode `missing`."""
        if self.mode == "missing":
            return ""
        import jwt  # noqa: PLC0415 - most dispatches carry no token

        email = token.service_account_email or _DEFAULT_EMAIL
        subject = str(int.from_bytes(hashlib.sha256(email.encode()).digest()[:8], "big"))
        issued = int(time.time())
        if self.mode == "expired":
            issued -= _EXPIRED_AGE
        claims: dict[str, Any] = {
            "azp": subject,
            "email": email,
            "email_verified": True,
            "exp": issued + _LIFETIME,
            "iat": issued,
            "iss": ISSUER,
            "sub": subject,
        }

        if isinstance(token, OidcToken):
            claims["aud"] = token.audience or url
        else:
            claims["aud"] = "https://www.googleapis.com/"
            claims["scope"] = token.scope or CLOUD_SCOPE
        if self.mode == "wrongAudience":
            claims["aud"] = WRONG_AUDIENCE
        return f"Bearer {jwt.encode(claims, self._key, _ALGORITHM, headers={'kid': self._key_id})}"

    @cached_property
    def jwks(self) -> dict[str, Any]:
        """The public key as a JSON Web Key Set (RFC 7517)."""
        from jwt.algorithms import RSAAlgorithm  # noqa: PLC0415 - only for those who verify tokens

        key = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return {"keys": [{**key, "alg": _ALGORITHM, "use": "sig", "kid": self._key_id}]}

    @cached_property
    def certificates(self) -> dict[str, str]:
        """The public key as an X.509 certificate in PEM, like https://www.googleapis.com/oauth2/v1/certs."""
        from cryptography import x509  # noqa: PLC0415 - only for those who verify tokens
        from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415 - likewise
        from cryptography.x509.oid import NameOID  # noqa: PLC0415 - likewise

        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cloudsched emulator")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=3650))
            .sign(self._key, hashes.SHA256())
        )
        return {self._key_id: certificate.public_bytes(serialization.Encoding.PEM).decode()}

    @cached_property
    def _key(self) -> RSAPrivateKey:
        from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415 - most dispatches carry no token

        return rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)

    @cached_property
    def _key_id(self) -> str:
        numbers = self._key.public_key().public_numbers()
        return hashlib.sha256(str(numbers.n).encode()).hexdigest()[:40]
