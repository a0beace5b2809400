"""Who calls: an API key, a Firebase user or a service account.

A request proves itself by ``X-Api-Key``, or by ``Authorization: Bearer`` with a Firebase ID token or a Google OIDC
token. If it has both, the key counts: a client of a private Cloud Run service needs ``Authorization`` to get in.
Everybody is refused whom `Access` does not let in; where it lets nobody in, the API is open on a developer's machine
and closed in the cloud.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from cloudsched.adapters.google.id_tokens import FIREBASE_ISSUERS, REMOVED, GoogleTokens, claims_unverified
from cloudsched.errors import Misconfigured, Unauthenticated
from cloudsched.web.auth.api_keys import ApiKeys
from cloudsched.web.auth.roles import ANYBODY, Caller, Role, role_of

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from cloudsched.config.access import Access
    from cloudsched.config.settings import Settings

KEY_HEADER = "X-Api-Key"
ADMIN_CLAIM = "admin"
"""The custom claim that, if it is true, makes a Firebase user an admin; ``infra/firestore.rules`` looks at the same."""


def gate_of(settings: Settings) -> Gate:
    """Return the gate that the settings describe, the same one for the same settings.

    Raises:
        Misconfigured: They contradict themselves; or this is the cloud, and they let nobody in.
    """
    if settings.is_deployed and not settings.access.is_configured:
        raise Misconfigured(
            "Nobody may use this API yet: set CLOUDSCHED_FIREBASE_PROJECT, CLOUDSCHED_SERVICE_ACCOUNTS or "
            "CLOUDSCHED_API_KEYS (docs/security.md)."
        )
    return _gate(settings.access)


class Gate:
    """Tells who calls, by what `Access` says."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._keys = ApiKeys(access.api_keys)
        self._accounts = dict(_account(entry) for entry in access.service_accounts)
        if self._accounts and not access.audiences:
            raise Misconfigured("CLOUDSCHED_SERVICE_ACCOUNTS needs CLOUDSCHED_AUDIENCES: this API's address.")
        self._tokens = GoogleTokens(
            firebase_project=access.firebase_project,
            is_emulated=access.firebase_emulator is not None,
            audiences=access.audiences,
            trust_cloud_run=access.trust_cloud_run,
        )

    def caller(self, request: Request) -> Caller:
        """Return who calls.

        Raises:
            Unauthenticated: Nobody that is let in.
            Unavailable: Google's keys cannot be fetched.
        """
        if not self._access.is_configured:
            return ANYBODY
        if (key := request.headers.get(KEY_HEADER)) is not None:
            return self._keys.caller(key)
        token = bearer(request)
        if str(claims_unverified(token).get("iss")).startswith(FIREBASE_ISSUERS):
            return self._user(token)
        return self._account(token)

    def _user(self, token: str) -> Caller:
        if not self._access.firebase_project:
            raise Unauthenticated("The token is not one that this API takes.")
        claims = self._tokens.firebase(token)
        own = str(claims["sub"])
        return Caller(f"user:{own}", Role.ADMIN if claims.get(ADMIN_CLAIM) is True else Role.USER, own)

    def _account(self, token: str) -> Caller:
        if not self._accounts:
            raise Unauthenticated("The token is not one that this API takes.")
        if token.endswith(REMOVED) and not self._access.trust_cloud_run:
            raise Unauthenticated(
                "Cloud Run took the signature off the token. Give it one of its own in X-Serverless-Authorization, "
                "or set CLOUDSCHED_TRUST_CLOUD_RUN."
            )
        email = self._tokens.google(token)["email"]
        if email not in self._accounts:
            raise Unauthenticated("The token is not one that this API takes.")
        role, queues = self._accounts[email]
        return Caller(f"account:{email}", role, None if role is Role.WORKER else email, queues)


def require_account(settings: Settings, request: Request, email: str) -> None:
    """Check that a request comes from one service account, as Cloud Scheduler's do.

    Raises:
        Unauthenticated: It does not.
    """
    gate = _gate(settings.access)
    if gate._tokens.google(bearer(request))["email"] != email:  # noqa: SLF001 - its own module
        raise Unauthenticated("The token is not one that this endpoint takes.")


def bearer(request: Request) -> str:
    """Return the token that a request carries (RFC 6750, section 2.1).

    Raises:
        Unauthenticated: It carries none.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated(f"Give a token as `Authorization: Bearer …`, or a key as `{KEY_HEADER}`.")
    return token.strip()


@lru_cache(maxsize=8)
def _gate(access: Access) -> Gate:
    return Gate(access)


def _account(entry: str) -> tuple[str, tuple[Role, frozenset[str]]]:
    email, _, role = entry.partition("=")
    try:
        if "@" in email:
            return email, role_of(role)
    except ValueError:
        pass
    raise Misconfigured(f"CLOUDSCHED_SERVICE_ACCOUNTS has {entry!r}; it is EMAIL=ROLE, one of {', '.join(Role)}.")
