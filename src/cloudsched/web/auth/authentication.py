"""Authentication of callers by API key, as Firebase users or as service accounts.

A request carries ``X-Api-Key``, or ``Authorization: Bearer`` with a Firebase ID token or a Google OIDC token. If
it has both, the key is used: a client of a private Cloud Run service needs ``Authorization`` to reach it.
Callers that `Access` does not list are refused. A server that may act for users names one in
``X-On-Behalf-Of``. Where no credentials are configured, `Access.open` admits requests from the same machine,
and each request is checked.

What the queue delivers carries no caller: the executor checks its token (`engine.signed_dispatches`).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final
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
from cloudsched.web.auth.roles import (
    ANONYMOUS_ADMIN,
    ON_BEHALF_OF,
    OWNER_ROLES,
    Caller,
    Role,
    describe_subject,
    format_role,
    parse_role,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from werkzeug.wrappers import Request

    from cloudsched.config.access import Access
    from cloudsched.config.settings import Settings

KEY_HEADER = "X-Api-Key"
_ENCODED_USER = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+;=:@|-]|%[0-9A-Fa-f]{2})+")
"""The characters of a path segment (RFC 3986) and Auth0's ``|``, without the comma, which separates headers."""
ADMIN_CLAIM = "admin"
"""The claim that makes a Firebase user an admin if it is true. ``infra/firestore.rules`` uses it, too."""


def authenticator_for(settings: Settings) -> Authenticator:
    """Return the authenticator for the settings. Equal settings share one. Raises Misconfigured."""
    if settings.is_deployed and settings.access.open:
        raise Misconfigured("CLOUDSCHED_OPEN is on in the cloud, where it would protect nothing. Remove it.")
    if not settings.access.is_configured and not settings.access.open:
        raise Misconfigured(
            "Nobody may use this API yet: set CLOUDSCHED_FIREBASE_PROJECT, CLOUDSCHED_SERVICE_ACCOUNTS "
            "or CLOUDSCHED_API_KEYS; or, on your own machine, CLOUDSCHED_OPEN=on (docs/guides/access.md)."
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
        """Return the caller: the holder of the request's credential, or the user for whom that server acts.

        Raises Unauthenticated without a valid credential that is listed, Forbidden and InvalidInput as
        `acting_for` and `require_open_to`, and Unavailable if Google's keys cannot be fetched.
        """
        sender = self._find_sender(request)
        user = request.headers.get(ON_BEHALF_OF)
        if user is None:
            return sender
        return sender.acting_for(_decode_user(user))

    def verify_account(self, token: str) -> str:
        """Return the e-mail address of a service account from its token. Raises Unauthenticated."""
        return str(self._tokens.verify_google(token)["email"])

    def _find_sender(self, request: Request) -> Caller:
        if not self._access.is_configured:
            require_open_to(self._access, request)
            return ANONYMOUS_ADMIN
        if (key := request.headers.get(KEY_HEADER)) is not None:
            return self._keys.authenticate(key)
        token = read_bearer_token(request)
        if not (self._access.firebase_project or self._accounts):
            raise Unauthenticated(f"This API takes no tokens. Give a key as `{KEY_HEADER}`.")
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
        return Caller(
            f"user:{own}",
            role,
            own,
            verified_email=_find_verified_email(claims),
            until=_find_end(claims),
        )

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
    """Return whether a request needs no credential: it comes from the machine on which the API is open."""
    if settings.is_deployed:
        return False
    try:
        require_open_to(settings.access, request)
    except (Unauthenticated, Forbidden):
        return False
    return True


def require_open_to(access: Access, request: Request) -> None:
    """Check that a request may do without a credential: the API is open, and it comes from its machine.

    Its peer is a loopback address, no proxy has forwarded it, and it was sent to a name that means this
    machine. Raises Unauthenticated, or Forbidden if it was sent to another name, as by a browser whose
    page has rebound that name (DNS rebinding).
    """
    peer = request.remote_addr
    if not access.open or peer == "localhost" or not is_loopback(peer):  # no address, as behind a Unix socket
        raise Unauthenticated(
            "This API is open only to requests from its own machine. Call it there, as http://localhost with "
            "its port, or let it require keys: `cloudsched admin keys new`, and CLOUDSCHED_API_KEYS."
        )
    if (detour := find_detour(request.headers.keys())) is not None:
        raise Unauthenticated(detour)
    if (refusal := find_foreign_name(request.headers.get("Host", ""))) is not None:
        raise Forbidden(refusal)


def require_sweeper(settings: Settings, request: Request, *, is_private: bool = True) -> None:
    """Check that a request may sweep. Raises Unauthenticated, or what `require_open_to` raises.

    If the settings name a sweeper, the request must carry its token. If they name none, Cloud Run has
    checked the caller of a private service in the cloud. Elsewhere, only a machine on which the API is
    open may sweep.
    """
    if settings.access.sweeper is not None:
        require_account(settings, request, settings.access.sweeper)
        return
    if settings.is_deployed and is_private:
        return
    if settings.is_deployed or not settings.access.open:
        hint = "or, on your own machine, CLOUDSCHED_OPEN=on (docs/guides/access.md)"
        raise Unauthenticated(f"Set CLOUDSCHED_SWEEPER; {hint}.")
    require_open_to(settings.access, request)


def require_account(settings: Settings, request: Request, email: str) -> None:
    """Check that a request comes from one service account, such as Cloud Scheduler's. Raises Unauthenticated."""
    if _cached_authenticator(settings.access).verify_account(read_bearer_token(request)) != email:
        raise Unauthenticated("This endpoint does not accept this token.")


def read_bearer_token(request: Request) -> str:
    """Return a request's bearer token (RFC 6750, section 2.1). Raises Unauthenticated."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token or token.startswith(KEY_PREFIX):
        raise Unauthenticated(f"Give a token as `Authorization: Bearer …`, or a key as `{KEY_HEADER}`.")
    return token


def _decode_user(text: str) -> str:
    """Return the user that a header names in percent-encoded UTF-8. Raises InvalidInput."""
    try:
        if _ENCODED_USER.fullmatch(text):
            return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        pass
    hint = "Encode it as a part of a URL's path."
    raise InvalidInput(ON_BEHALF_OF, "is not one percent-encoded user id", hint)


def _find_end(claims: Mapping[str, object]) -> float | None:
    """Return the instant until which a verified token is valid, by a clock that is a little behind ours."""
    end = claims.get("exp")
    return end + SKEW_SECONDS if isinstance(end, int | float) else None


def _find_verified_email(claims: Mapping[str, object]) -> str | None:
    email = claims.get("email")
    if claims.get("email_verified") is True and isinstance(email, str):
        return email
    return None


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
    form = f"EMAIL=ROLE, one of {', '.join(Role)}"
    raise Misconfigured(f"CLOUDSCHED_SERVICE_ACCOUNTS has {entry!r}; it is {form}.")


KEY_PREFIX: Final = "csk_"
"""The beginning of every key. No token begins like this."""
_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"csk_([A-Za-z0-9-]{1,64})_([A-Za-z0-9_-]{43})")
_OWNER = re.compile(r"[^/\s\x00-\x1f\x7f]{1,128}")
"""An owner, without the characters that separate the entries of the list."""
_UNKNOWN_DIGEST = hashlib.sha256(b"nobody's key").hexdigest()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key's entry in the list: everything but the secret.

    A key, for servers that have no Google identity, is ``csk_NAME_SECRET``, where SECRET has 256 random bits.
    Its entry is ``NAME:ROLE:HASH``, followed by ``:OWNER`` for a key of one owner. A worker's ROLE may name its
    queues, as in ``worker@gpu+render``. The hash needs neither salt nor stretching, since 256 bits cannot be
    guessed (NIST SP 800-63B, section 5.1.2.2 on look-up secrets, requires more only below 112).

    The list lives in Secret Manager and reaches the API as one environment variable. It is not in the
    store, for three reasons. Checking a key costs no read, write access to documents does not allow
    creating one, and a new version of the secret revokes a key.
    """

    name: str
    role: Role
    digest: str = field(repr=False)
    owner: str | None = None
    queues: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Return the entry as text."""
        entry = f"{self.name}:{format_role(self.role, self.queues)}:{self.digest}"
        return f"{entry}:{self.owner}" if self.owner else entry

    @classmethod
    def parse(cls, text: str) -> ApiKey:
        """Parse an entry. Raises Misconfigured, with a message that does not repeat the entry."""
        name, _, rest = text.partition(":")
        role_text, _, rest = rest.partition(":")
        digest, colon, owner = rest.partition(":")
        if not _NAME.fullmatch(name) or not _HASH.fullmatch(digest):
            raise Misconfigured("CLOUDSCHED_API_KEYS has an entry that is not NAME:ROLE:HASH or NAME:ROLE:HASH:OWNER.")
        try:
            role, queues = parse_role(role_text)
        except ValueError as error:
            raise Misconfigured(f"API key {name}: {error}.") from None

        if role in OWNER_ROLES and not owner:
            raise Misconfigured(f"API key {name}: the roles user and reader need an owner.")
        if owner and not _OWNER.fullmatch(owner):
            form = "at most 128 characters, and no slash, space or control"
            raise Misconfigured(f"API key {name}: its owner must have {form}.")
        if role in OWNER_ROLES and not is_subject(owner):
            raise Misconfigured(f"API key {name}: {describe_subject(owner)}")
        if owner and role not in {*OWNER_ROLES, Role.WORKER}:
            raise Misconfigured(f"API key {name}: only the roles user, reader and worker take an owner.")
        if role is Role.WORKER and colon and not owner:
            raise Misconfigured(f"API key {name}: its owner is missing; without the colon it works for all owners.")
        return cls(name, role, digest, owner or None, queues)


def create_key(
    name: str,
    role: Role,
    owner: str | None = None,
    queues: Iterable[str] = (),
) -> tuple[str, ApiKey]:
    """Return a new key, which is never stored, and its entry for the list. Raises Misconfigured."""
    if not _NAME.fullmatch(name):
        raise Misconfigured("A key's name has letters, digits and hyphens, at most 64.")
    if owner == "":
        raise Misconfigured(f"API key {name}: its owner is empty.")
    key = f"csk_{name}_{secrets.token_urlsafe(32)}"
    entry = ApiKey(name, role, _digest(key), owner, frozenset(queues))
    if ApiKey.parse(str(entry)) != entry:
        raise Misconfigured("A queue's name has letters, digits, hyphens and underscores, at most 64.")
    return key, entry


class ApiKeys:
    """The list of keys that are accepted."""

    def __init__(self, entries: Iterable[str]) -> None:
        keys = [ApiKey.parse(entry) for entry in entries]
        self._keys = {key.name: key for key in keys}
        if len(self._keys) < len(keys):
            hint = "give each key a name of its own"
            raise Misconfigured(f"CLOUDSCHED_API_KEYS has two keys with the same name; {hint}.")

    def authenticate(self, key: str) -> Caller:
        """Return the caller with this key. Raises Unauthenticated.

        It takes the same time whatever is wrong with the key, so that timing does not help to guess one.
        """
        match = _KEY.fullmatch(key)
        known = self._keys.get(match[1]) if match else None
        expected = known.digest if known else _UNKNOWN_DIGEST
        if not hmac.compare_digest(expected, _digest(key)) or known is None:
            raise Unauthenticated("The API key is not known.")
        return Caller(f"key:{known.name}", known.role, known.owner, known.queues)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
