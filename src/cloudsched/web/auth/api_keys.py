"""API keys, for servers that have no Google identity.

A key is ``csk_NAME_SECRET``, where SECRET has 256 random bits. Its entry in the list of keys is ``NAME:ROLE:HASH``,
followed by ``:OWNER`` for a key of one owner; a worker's ROLE may name its queues, as in ``worker@gpu+render``. The
hash needs neither salt nor stretching, since 256 bits cannot be guessed (NIST SP 800-63B, section 5.1.2.2 on look-up
secrets, requires more only below 112).

The list lives in Secret Manager and reaches the API as one environment variable, not in the store: checking a key costs
no read, write access to documents does not allow creating one, and a key is revoked by a new version of the secret.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from cloudsched.domain.documents.authority import is_subject
from cloudsched.errors import Misconfigured, Unauthenticated
from cloudsched.web.auth.roles import OWNER_ROLES, Caller, Role, describe_subject, format_role, parse_role

KEY_PREFIX: Final = "csk_"
"""How every key begins, and no token."""
_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"csk_([A-Za-z0-9-]{1,64})_([A-Za-z0-9_-]{43})")
_OWNER = re.compile(r"[^/\s\x00-\x1f\x7f]{1,128}")
"""An owner, without the characters that separate the entries of the list."""
_UNKNOWN_DIGEST = hashlib.sha256(b"nobody's key").hexdigest()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key's entry in the list: everything but the secret."""

    name: str
    role: Role
    digest: str = field(repr=False)
    owner: str | None = None
    queues: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Return the entry as text."""
        role = format_role(self.role, self.queues)
        return ":".join([self.name, role, self.digest, *([self.owner] if self.owner else [])])

    @classmethod
    def parse(cls, text: str) -> ApiKey:
        """Parse an entry. Raises Misconfigured if it is invalid; the message does not repeat the entry."""
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
            raise Misconfigured(
                f"API key {name}: its owner must have at most 128 characters, and no slash, space or control."
            )
        if role in OWNER_ROLES and not is_subject(owner):
            raise Misconfigured(f"API key {name}: {describe_subject(owner)}")
        if owner and role not in {*OWNER_ROLES, Role.WORKER}:
            raise Misconfigured(f"API key {name}: only the roles user, reader and worker take an owner.")
        if role is Role.WORKER and colon and not owner:
            raise Misconfigured(f"API key {name}: its owner is missing; without the colon it works for all owners.")
        return cls(name, role, digest, owner or None, queues)


def create_key(name: str, role: Role, owner: str | None = None, queues: Iterable[str] = ()) -> tuple[str, ApiKey]:
    """Return a new key, which is shown once and not stored, and its entry for the list of keys.

    Raises:
        Misconfigured: The name, the owner or a queue is invalid.
    """
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
            raise Misconfigured("CLOUDSCHED_API_KEYS has two keys with the same name; give each key a name of its own.")

    def authenticate(self, key: str) -> Caller:
        """Return the caller with this key. The time does not depend on how much of the key is correct.

        Raises:
            Unauthenticated: The key is not in the list.
        """
        match = _KEY.fullmatch(key)
        known = self._keys.get(match[1]) if match else None
        same = hmac.compare_digest(known.digest if known else _UNKNOWN_DIGEST, _digest(key))
        if known is None or not same:
            raise Unauthenticated("The API key is not known.")
        return Caller(f"key:{known.name}", known.role, known.owner, known.queues)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
