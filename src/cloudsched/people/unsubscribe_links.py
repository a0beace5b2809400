"""Links in mails by which a person ends mails of one category, without signing in (RFC 8058).

The last part of a link names the owner and the category, with an HMAC as the proof that this deployment
made it. Its key is made once and kept in the store, where no client can read it. It is not the secret that
signs dispatches: that is rotated, and links in old mails have to work. The public function for links does not
have that secret either.
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
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.person import Person
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.engine.state.record_changes import change_person, change_record
from cloudsched.errors import NotFound
from cloudsched.people.documents import LinkKey
from cloudsched.people.reach import drop_channel

if TYPE_CHECKING:
    from cloudsched.domain.documents.person import Person
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore

_KEY_ID: Final = "current"


class UnsubscribeLinks:
    """Makes such links, and does what they say. A process reads the key once."""

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._key: bytes | None = None
        self._lock = make_lock()

    def make(self, root: str, owner: str, category: Category) -> str:
        """Return the address of a link. It ends in letters, digits, hyphens, underscores and a dot."""
        text = _encode(json.dumps([owner, category], ensure_ascii=False).encode())
        return f"{root}/v1/links/unsubscribe/{text}.{_encode(self._sign(text))}"

    def read(self, token: str) -> tuple[str, Category]:
        """Return the owner and the category of a link, by the last part of its path. Raises NotFound."""
        text, _, proof = token.partition(".")
        try:
            given = base64.urlsafe_b64decode(proof + "=" * (-len(proof) % 4))
            if not hmac.compare_digest(given, self._sign(text)):
                raise NotFound("link", "…")
            content: Any = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            owner, category = content
            return owner, Category(category)
        except (binascii.Error, ValueError):
            raise NotFound("link", "…") from None

    def follow(self, token: str) -> Category | None:
        """End mails of a link's category, and return it. Safe to repeat. Raises NotFound.

        None if its person has been erased, so that nothing can be stored for them.
        """
        owner, category = self.read(token)

        def drop(person: Person) -> Person:
            channels = drop_channel(person, category, DeliveryChannel.EMAIL)
            return person.model_copy(update={"channels": channels})

        known = change_person(self._records, self._clock, owner, drop)
        return None if known is None else category

    def _sign(self, text: str) -> bytes:
        signed = b"cloudsched unsubscribe v1\n" + text.encode("utf-8", "surrogatepass")
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
