"""Authentication of callers by API key, as Firebase users or as service accounts.

A request carries ``X-Api-Key``, or ``Authorization: Bearer`` with a Firebase ID token or a Google OIDC token. If it has
both, the key is used: a client of a private Cloud Run service needs ``Authorization`` to reach it. Callers that
`Access` does not list are refused. A server that may act for users names one in ``X-On-Behalf-Of``. Where no
credentials are configured, `Access.open` admits requests from the same machine; each request is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from cloudsched.adapters.google.id_tokens import (
    FIREBASE_ISSUERS,
    REMOVED_SIGNATURE,
    SKEW_SECONDS,
    GoogleTokenVerifier,
    decode_unverified,
)
from cloudsched.domain.documents.authority import is_subject
from cloudsched.domain.local_requests import find_detour, find_foreign_name, is_loopback
from cloudsched.errors import Forbidden, InvalidInput, Misconfigured, Unauthenticated
from cloudsched.web.auth.api_keys import ApiKeys
from cloudsched.web.auth.roles import ANONYMOUS_ADMIN, ON_BEHALF_OF, Caller, Role, describe_subject, parse_role

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from cloudsched.config.access import Access
    from cloudsched.config.settings import Settings

KEY_HEADER = "X-Api-Key"
_ENCODED_USER = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+;=:@|-]|%[0-9A-Fa-f]{2})+")
"""RFC 3986's characters of one segment of a path, without the comma, which separates headers; and Auth0's ``|``."""
ADMIN_CLAIM = "admin"
"""The custom claim that makes a Firebase user an admin if it is true; ``infra/firestore.rules`` uses it, too."""


def authenticator_for(settings: Settings) -> Authenticator:
    """Return the authenticator for the settings; equal settings share one.

    Raises:
        Misconfigured: The settings are invalid, they allow no caller, or they are open in the cloud.
    """
    if settings.is_deployed and settings.access.open:
        raise Misconfigured("CLOUDSCHED_OPEN is on in the cloud, where it would protect nothing. Remove it.")
    if not settings.access.is_configured and not settings.access.open:
        raise Misconfigured(
            "Nobody may use this API yet: set CLOUDSCHED_FIREBASE_PROJECT, CLOUDSCHED_SERVICE_ACCOUNTS or "
            "CLOUDSCHED_API_KEYS; or, on your own machine, CLOUDSCHED_OPEN=on (docs/reference/security.md)."
        )
    return _cached_authenticator(settings.access)


class Authenticator:
    """Identifies callers according to `Access`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._keys = ApiKeys(access.api_keys)
        self._accounts = dict(_parse_account(entry) for entry in access.service_accounts)
        if self._accounts and not access.audiences:
            raise Misconfigured("CLOUDSCHED_SERVICE_ACCOUNTS needs CLOUDSCHED_AUDIENCES: this API's address.")
        self._tokens = GoogleTokenVerifier(
            firebase_project=access.firebase_project,
            is_emulated=access.firebase_emulator is not None,
            audiences=access.audiences,
            trust_cloud_run=access.trust_cloud_run,
        )

    def authenticate(self, request: Request) -> Caller:
        """Return the caller: whose credential the request has, or the user for whom that server acts.

        Raises:
            Forbidden: The request is on behalf of somebody for whom its sender may not act; or the API is open, and the
                request was sent to a name that may belong to somebody else.
            InvalidInput: It is on behalf of somebody who cannot be.
            Unauthenticated: The request has no valid credential, or one that is not listed.
            Unavailable: Google's keys cannot be fetched.
        """
        sender = self._find_sender(request)
        user = request.headers.get(ON_BEHALF_OF)
        return sender if user is None else sender.acting_for(_decode_user(user))

    def _find_sender(self, request: Request) -> Caller:
        if not self._access.is_configured:
            require_open_to(self._access, request)
            return ANONYMOUS_ADMIN
        if (key := request.headers.get(KEY_HEADER)) is not None:
            return self._keys.authenticate(key)
        token = read_bearer_token(request)
        if str(decode_unverified(token).get("iss")).startswith(FIREBASE_ISSUERS):
            return self._authenticate_user(token)
        return self._authenticate_account(token)

    def _authenticate_user(self, token: str) -> Caller:
        if not self._access.firebase_project:
            raise Unauthenticated("This API does not accept this token.")
        claims = self._tokens.verify_firebase(token)
        own = claims["sub"]
        if not is_subject(own):
            raise Unauthenticated(describe_subject(own))
        role = Role.ADMIN if claims.get(ADMIN_CLAIM) is True else Role.USER
        return Caller(f"user:{own}", role, own, verified_email=_find_verified_email(claims), until=_find_end(claims))

    def _authenticate_account(self, token: str) -> Caller:
        if not self._accounts:
            raise Unauthenticated("This API does not accept this token.")
        if token.endswith(REMOVED_SIGNATURE) and not self._access.trust_cloud_run:
            raise Unauthenticated(
                "Cloud Run removed the token's signature. Send Cloud Run a token of its own in "
                "X-Serverless-Authorization, or set CLOUDSCHED_TRUST_CLOUD_RUN."
            )
        claims = self._tokens.verify_google(token)
        email = claims["email"]
        if email not in self._accounts:
            raise Unauthenticated("This API does not accept this token.")
        role, queues = self._accounts[email]
        owner = None if role in {Role.WORKER, Role.DELEGATE} else email
        return Caller(f"account:{email}", role, owner, queues, verified_email=email, until=_find_end(claims))


def is_open_to(settings: Settings, request: Request) -> bool:
    """Return whether a request needs no credential because it comes from the machine on which the API is open."""
    if settings.is_deployed:
        return False
    try:
        require_open_to(settings.access, request)
    except (Unauthenticated, Forbidden):
        return False
    return True


def require_open_to(access: Access, request: Request) -> None:
    """Check that a request may do without a credential: the API is open, and the request comes from its own machine.

    Its peer is a loopback address, no proxy has forwarded it, and it was sent to a name that means this machine.

    Raises:
        Unauthenticated: The API is not open, or the request comes from elsewhere, or may do so.
        Forbidden: It was sent to another name, as by a browser whose page has rebound that name (DNS rebinding).
    """
    peer = request.remote_addr
    if not access.open or peer == "localhost" or not is_loopback(peer):  # no address, as behind a Unix socket
        raise Unauthenticated(
            "This API is open only to requests from its own machine. Call it there, as http://localhost with its port, "
            "or let it require keys: `cloudsched keys new`, and CLOUDSCHED_API_KEYS."
        )
    if (detour := find_detour(request.headers.keys())) is not None:
        raise Unauthenticated(detour)
    if (refusal := find_foreign_name(request.headers.get("Host", ""))) is not None:
        raise Forbidden(refusal)


def require_sweeper(settings: Settings, request: Request, *, is_private: bool = True) -> None:
    """Check that a request may sweep.

    If the settings name a sweeper, the request must carry its token. If they name none, Cloud Run has checked the
    caller of a private service in the cloud; elsewhere only a machine on which the API is open may sweep.

    Raises:
        Unauthenticated: It may not.
        Forbidden: The API is open, and the request was sent to a name that may belong to somebody else.
    """
    if settings.access.sweeper is not None:
        require_account(settings, request, settings.access.sweeper)
    elif settings.is_deployed and is_private:
        return
    elif settings.is_deployed or not settings.access.open:
        raise Unauthenticated(
            "Set CLOUDSCHED_SWEEPER; or, on your own machine, CLOUDSCHED_OPEN=on (docs/reference/security.md)."
        )
    else:
        require_open_to(settings.access, request)


def require_account(settings: Settings, request: Request, email: str) -> None:
    """Check that a request comes from one service account, such as Cloud Scheduler's.

    Raises:
        Unauthenticated: It comes from another caller.
    """
    authenticator = _cached_authenticator(settings.access)
    if authenticator._tokens.verify_google(read_bearer_token(request))["email"] != email:  # noqa: SLF001 - its own module
        raise Unauthenticated("This endpoint does not accept this token.")


def read_bearer_token(request: Request) -> str:
    """Return a request's bearer token (RFC 6750, section 2.1).

    Raises:
        Unauthenticated: It has none.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated(f"Give a token as `Authorization: Bearer …`, or a key as `{KEY_HEADER}`.")
    return token.strip()


def _decode_user(text: str) -> str:
    """Return the user that a header names in percent-encoded UTF-8. Raises InvalidInput."""
    try:
        if _ENCODED_USER.fullmatch(text):
            return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        pass
    raise InvalidInput(ON_BEHALF_OF, "is not one percent-encoded user id", "Encode it as a part of a URL's path.")


def _find_end(claims: Mapping[str, object]) -> float | None:
    """Return until when a verified token holds, by a clock that may be a little behind ours."""
    end = claims.get("exp")
    return end + SKEW_SECONDS if isinstance(end, int | float) else None


def _find_verified_email(claims: Mapping[str, object]) -> str | None:
    email = claims.get("email")
    return email if claims.get("email_verified") is True and isinstance(email, str) else None


@lru_cache(maxsize=8)
def _cached_authenticator(access: Access) -> Authenticator:
    return Authenticator(access)


def _parse_account(entry: str) -> tuple[str, tuple[Role, frozenset[str]]]:
    email, _, role = entry.partition("=")
    try:
        if "@" in email:
            return email, parse_role(role)
    except ValueError:
        pass
    raise Misconfigured(f"CLOUDSCHED_SERVICE_ACCOUNTS has {entry!r}; it is EMAIL=ROLE, one of {', '.join(Role)}.")
