"""Links by which a recipient ends mails of one category without signing in (RFC 8058).

A link carries the owner, the category and a proof: an HMAC with a key that is made once and kept in the store, where no
client can read it. It is not the secret that signs dispatches: that is rotated, and a link in an old mail has to work.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import threading
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.channel import DeliveryChannel
from cloudsched.domain.documents.person import LinkKey
from cloudsched.domain.documents.subjects import SYSTEM_OWNER
from cloudsched.domain.people.send_decision import without_channel
from cloudsched.engine.state.compare_and_set import compare_and_set
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from cloudsched.domain.documents.person import Person
    from cloudsched.engine.people.people import People
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord

_KEY_ID: Final = "current"
_PURPOSE: Final = b"cloudsched unsubscribe v1\n"


class UnsubscribeLinks:
    """Makes such links, and does what they say."""

    def __init__(self, records: RecordStore, clock: Clock, people: People) -> None:
        self._records = records
        self._clock = clock
        self._people = people
        self._key: bytes | None = None
        self._lock = threading.Lock()

    def make(self, root: str, owner: str, category: Category) -> str:
        """Return the address of a link. A process reads the key once."""
        content = _encode(json.dumps([owner, category], ensure_ascii=False).encode())
        return f"{root}/v1/links/unsubscribe/{content}.{_encode(self._sign(content))}"

    def read(self, token: str) -> tuple[str, Category]:
        """Return whom a link is for, by the last part of its path, and which category. Raises NotFound."""
        content, _, proof = token.partition(".")
        try:
            given = base64.urlsafe_b64decode(proof + "=" * (-len(proof) % 4))
            if not hmac.compare_digest(given, self._sign(content)):
                raise NotFound("link", "…")
            owner, category = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
            return owner, Category(category)
        except (binascii.Error, ValueError):
            raise NotFound("link", "…") from None

    def follow(self, token: str) -> Category:
        """End mails of a link's category; return it. Safe to repeat. Raises NotFound."""
        owner, category = self.read(token)

        def drop(person: Person) -> Person:
            channels = without_channel(person, category, DeliveryChannel.EMAIL)
            return person.model_copy(update={"channels": channels})

        self._people.change(owner, drop)
        return category

    def _sign(self, content: str) -> bytes:
        return hmac.new(self._load_key(), _PURPOSE + content.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()

    def _load_key(self) -> bytes:
        with self._lock:
            if self._key is None:
                self._key = base64.b64decode(self._read_or_make())
            return self._key

    def _read_or_make(self) -> str:
        def make(stored: VersionedRecord[LinkKey] | None) -> str:
            if stored is not None:
                return stored.record.value
            now, value = self._clock.now(), base64.b64encode(secrets.token_bytes(32)).decode()
            key = LinkKey(id=_KEY_ID, owner=SYSTEM_OWNER, value=value, created_at=now, updated_at=now)
            self._records.write(key, None)
            return value

        return compare_and_set("key of links", lambda: self._records.load(LinkKey, _KEY_ID), make)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
