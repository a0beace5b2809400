"""The last parts of links that people open without signing in: what a link is about, and the proof of it.

The proof is an HMAC with a key of its own. The key is made once and kept in the store, where no client can
read it. It is not the secret that signs dispatches: that is rotated, and links in old mails have to work.
The public function for links does not have that secret either.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.engine.state.record_changes import change_record
from cloudsched.errors import NotFound
from cloudsched.people.documents import LinkKey

if TYPE_CHECKING:
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore

_KEY_ID: Final = "current"


class SignedLinks:
    """Signs and reads them. A process reads the key once."""

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._key: bytes | None = None
        self._lock = make_lock()

    def sign(self, purpose: str, content: list[str]) -> str:
        """Return the last part of a link: letters, digits, hyphens, underscores and a dot.

        A link for one purpose is not valid for another.
        """
        text = _encode(json.dumps(content, ensure_ascii=False).encode())
        return f"{text}.{_encode(self._prove(purpose, text))}"

    def read(self, purpose: str, token: str) -> Any:  # noqa: ANN401 - the list that was signed
        """Return what was signed. Raises NotFound."""
        text, _, proof = token.partition(".")
        try:
            given = base64.urlsafe_b64decode(proof + "=" * (-len(proof) % 4))
            if not hmac.compare_digest(given, self._prove(purpose, text)):
                raise NotFound("link", "…")
            return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (binascii.Error, ValueError):
            raise NotFound("link", "…") from None

    def _prove(self, purpose: str, text: str) -> bytes:
        signed = f"cloudsched {purpose} v1\n{text}".encode("utf-8", "surrogatepass")
        return hmac.new(self._load_key(), signed, hashlib.sha256).digest()

    def _load_key(self) -> bytes:
        def make(known: LinkKey | None) -> LinkKey:
            if known is not None:
                return known
            now = self._clock.now()
            return LinkKey(
                id=_KEY_ID,
                owner=SYSTEM_OWNER,
                value=base64.b64encode(secrets.token_bytes(32)).decode(),
                created_at=now,
                updated_at=now,
            )

        with self._lock:
            if self._key is None:
                self._key = base64.b64decode(change_record(self._records, LinkKey, _KEY_ID, make).value)
            return self._key


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
