"""Verify ID tokens that Google signs: those of Firebase users, and the OIDC tokens of service accounts.

Both are JWTs, verified by Google's own libraries with Google's public keys, which are fetched when needed and
cached for as long as their Cache-Control allows. The libraries are imported when the first token arrives:
that takes a third of a second.

Sources: firebase.google.com/docs/auth/admin/verify-id-tokens,
cloud.google.com/docs/authentication/token-types#id.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from cloudsched.config.settings import is_firebase_emulated
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.errors import Misconfigured, Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FIREBASE_ISSUERS = "https://securetoken.google.com/"
GOOGLE_ISSUERS = frozenset({"https://accounts.google.com", "accounts.google.com"})
SKEW_SECONDS = 10
"""The largest difference allowed between the clocks of the token's issuer and of this process."""
MAX_TOKEN_LENGTH = 8_192
"""The most characters that a token may have. Google's have fewer than 2,000."""
REMOVED_SIGNATURE = "SIGNATURE_REMOVED_BY_GOOGLE"
"""The text that Cloud Run puts in place of the signature of a token that it has verified itself
(cloud.google.com/run/docs/troubleshooting, "signature removed")."""

_MAX_TIMESTAMP = 253_402_300_799
"""The last second of the year 9999."""

log: Final = own_logger(__name__)

Claims = dict[str, Any]


def decode_unverified(token: str) -> Claims:
    """Return the claims of a token without verifying them. Raises Unauthenticated if it is no JWT."""
    from google.auth import jwt  # noqa: PLC0415 - imported when the first token arrives

    if len(token) > MAX_TOKEN_LENGTH:
        raise Unauthenticated("The token is too long.")
    claims = _as_unauthenticated(lambda: jwt.decode(token, verify=False))  # type: ignore[no-untyped-call]  # no types
    if not isinstance(claims, dict):
        raise Unauthenticated("The token is not a JWT.")
    return claims


class GoogleTokenVerifier:
    """Verifies tokens for one project and one API.

    An emulator's tokens are unsigned: `is_emulated` accepts no others. Cloud Run removes signatures: see
    `trust_cloud_run`.
    """

    def __init__(
        self,
        *,
        firebase_project: str | None = None,
        is_emulated: bool = False,
        audiences: Sequence[str] = (),
        trust_cloud_run: bool = False,
    ) -> None:
        self._project = firebase_project
        self._is_emulated = is_emulated
        self._audiences = list(audiences)
        self._trust_cloud_run = trust_cloud_run
        self._client_lock = make_lock()

    def verify_firebase(self, token: str) -> Claims:
        """Return the claims of a Firebase user's ID token."""
        if self._is_emulated != is_firebase_emulated():
            raise Misconfigured(
                "Set FIREBASE_AUTH_EMULATOR_HOST in the environment, or nowhere: the library reads it.",
            )
        with self._client_lock:
            client = self._firebase_client
        claims: Claims = _as_unauthenticated(
            lambda: client.verify_id_token(token, clock_skew_seconds=SKEW_SECONDS),
        )
        if self._is_emulated:
            _check_times(claims)  # the library checks no times of an unsigned token
        return claims

    def verify_google(self, token: str) -> Claims:
        """Return the claims of a service account's OIDC token. Its e-mail address is verified."""
        from google.oauth2 import id_token  # noqa: PLC0415 - the same

        if not self._audiences:
            raise Misconfigured("Set CLOUDSCHED_AUDIENCES to this API's address: tokens are issued for it.")
        if self._trust_cloud_run and token.endswith("." + REMOVED_SIGNATURE):
            claims = decode_unverified(token)
            _check_times(claims)
            issuer = claims.get("iss")
            audience = claims.get("aud")
            if not isinstance(issuer, str) or issuer not in GOOGLE_ISSUERS or audience not in self._audiences:
                raise Unauthenticated("The token is not a Google token for this API.")
        else:
            claims = _as_unauthenticated(
                lambda: id_token.verify_oauth2_token(  # type: ignore[no-untyped-call]  # google-auth ships few types
                    token, self._request, audience=self._audiences, clock_skew_in_seconds=SKEW_SECONDS
                )
            )
        if claims.get("email_verified") is not True or not isinstance(claims.get("email"), str):
            raise Unauthenticated("The token has no e-mail address that Google has verified.")
        return claims

    @cached_property
    def _request(self) -> Any:  # noqa: ANN401 - google.auth ships no types for it
        import cachecontrol  # noqa: PLC0415 - the same
        import requests  # noqa: PLC0415 - the same
        from google.auth.transport.requests import Request  # noqa: PLC0415 - the same

        return Request(session=cachecontrol.CacheControl(requests.Session()))

    @cached_property
    def _firebase_client(self) -> Any:  # noqa: ANN401 - firebase-admin ships no types
        import firebase_admin  # type: ignore[import-untyped] # noqa: PLC0415 - the same; it ships no types
        from firebase_admin import auth  # noqa: PLC0415 - the same
        from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415 - the same

        class NoCredential(firebase_admin.credentials.Base):  # type: ignore[misc]  # firebase-admin ships no types
            """Verifying a token needs no credentials."""

            def get_credential(self) -> AnonymousCredentials:
                return AnonymousCredentials()  # type: ignore[no-untyped-call]  # google-auth ships few types

        app = firebase_admin.App(f"cloudsched-{id(self)}", NoCredential(), {"projectId": self._project})
        return auth.Client(app)


def _as_unauthenticated(verify: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    """Turn any error of a library into one error that does not repeat the token."""
    from google.auth.exceptions import TransportError  # noqa: PLC0415 - the same

    try:
        return verify()
    except TransportError as error:
        raise Unavailable("Google's keys", type(error).__name__) from error
    except Exception as error:
        if type(error).__name__ == "CertificateFetchError":  # by name: importing its module is slow
            raise Unavailable("Google's keys", type(error).__name__) from error
        # Its message may repeat the token, so only the type is logged.
        log.info("token refused: %s", type(error).__name__, extra={"action": "token_rejected"})
        expired = "expired" in str(error).lower()
        raise Unauthenticated(
            "The token has expired." if expired else "This API does not accept this token.",
        ) from None


def _check_times(claims: Claims) -> None:
    """Check the times of a token whose signature was not verified here."""
    now = time.time()
    expires_at = claims.get("exp")
    issued_at = claims.get("iat")
    if not _is_timestamp(expires_at) or not _is_timestamp(issued_at):
        raise Unauthenticated("The token does not state when it was issued and when it expires.")
    if expires_at + SKEW_SECONDS < now or issued_at - SKEW_SECONDS > now:
        raise Unauthenticated("The token has expired.")


def _is_timestamp(value: object) -> TypeGuard[float]:
    """Return whether a claim is a time: a number within datetime's years, so neither NaN nor infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MAX_TIMESTAMP
