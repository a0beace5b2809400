"""API keys, for servers that have no Google identity.

A key is ``csk_NAME_SECRET``, where SECRET has 256 random bits. What is kept is ``NAME:ROLE:HASH``, with ``:OWNER`` at
its end for a key that is one owner's. A hash needs neither salt nor stretching, since nobody guesses 256 bits (NIST SP
800-63B, section 5.1.2.2 on look-up secrets, asks for more only below 112).

The list lives in Secret Manager and reaches the API as one environment variable, not in the store: checking a key then
costs no read, nobody who can write documents can make one, and taking one away is a new version of the secret.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cloudsched.errors import Misconfigured, Unauthenticated
from cloudsched.web.roles import Caller, Role

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
_HASH = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"csk_([A-Za-z0-9-]{1,64})_([A-Za-z0-9_-]{43})")
_NOBODY = hashlib.sha256(b"nobody's key").hexdigest()


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is known of a key."""

    name: str
    role: Role
    digest: str = field(repr=False)
    owner: str | None = None

    def __str__(self) -> str:
        """Return it as the list of keys has it."""
        return ":".join([self.name, self.role, self.digest, *([self.owner] if self.owner else [])])

    @classmethod
    def of(cls, text: str) -> ApiKey:
        """Read it from the list of keys. Raises Misconfigured if it is not one; the message does not repeat it."""
        name, _, rest = text.partition(":")
        role, _, rest = rest.partition(":")
        digest, _, owner = rest.partition(":")
        if not _NAME.fullmatch(name) or role not in set(Role) or not _HASH.fullmatch(digest):
            raise Misconfigured("CLOUDSCHED_API_KEYS has an entry that is not NAME:ROLE:HASH or NAME:ROLE:HASH:OWNER.")
        if (role in {Role.USER, Role.READER}) != bool(owner):
            raise Misconfigured(f"API key {name}: the roles user and reader need an owner, and no others take one.")
        return cls(name, Role(role), digest, owner or None)


def new_key(name: str, role: Role, owner: str | None = None) -> tuple[str, ApiKey]:
    """Return a new key, to be given away and forgotten, and what to keep of it."""
    if not _NAME.fullmatch(name):
        raise Misconfigured("A key's name has letters, digits and hyphens, at most 64.")
    key = f"csk_{name}_{secrets.token_urlsafe(32)}"
    return key, ApiKey.of(str(ApiKey(name, role, _digest(key), owner)))


class ApiKeys:
    """The keys that let somebody in."""

    def __init__(self, entries: Iterable[str]) -> None:
        keys = [ApiKey.of(entry) for entry in entries]
        self._keys = {key.name: key for key in keys}
        if len(self._keys) < len(keys):
            raise Misconfigured("CLOUDSCHED_API_KEYS has two keys of one name; a second key needs a name of its own.")

    def caller(self, key: str) -> Caller:
        """Return who has this key, in a time that does not depend on how much of it is right.

        Raises:
            Unauthenticated: Nobody.
        """
        match = _KEY.fullmatch(key)
        known = self._keys.get(match[1]) if match else None
        same = hmac.compare_digest(known.digest if known else _NOBODY, _digest(key))
        if known is None or not same:
            raise Unauthenticated("The API key is not known.")
        return Caller(f"key:{known.name}", known.role, known.owner)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
