"""The secrets with which messages to people's webhooks are signed, apart from what the owner's clients may read."""

from __future__ import annotations

import base64
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.person import ContactSecrets, WebhookSecret
from cloudsched.engine.people.record_changes import retry_conflicts

if TYPE_CHECKING:
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore

OVERLAP: Final = timedelta(days=1)
"""How long a previous secret signs beside the new one."""


class WebhookSecrets:
    """Makes, replaces and returns secrets; each belongs to one URL."""

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def current(self, owner: str) -> tuple[str, ...]:
        """Return what messages are signed with now, the newest first. One document is read."""
        stored = self._records.load(ContactSecrets, owner)
        kept = () if stored is None else stored.record.webhook_secrets
        now = self._clock.now()
        return tuple(each.value for each in kept if each.until is None or each.until > now)

    def replace(self, owner: str, url: str, *, keeps_previous: bool = False) -> str:
        """Return a new secret for a URL. The previous one of the same URL signs for a day beside it, if it is kept."""
        secret = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"

        def write() -> str:
            now = self._clock.now()
            stored = self._records.load(ContactSecrets, owner)
            empty = ContactSecrets(id=owner, owner=owner, created_at=now, updated_at=now)
            known = empty if stored is None else stored.record
            previous = known.webhook_secrets[:1] if keeps_previous and known.webhook_url == url else ()
            until = now + OVERLAP
            kept = (
                WebhookSecret(value=secret),
                *(WebhookSecret(value=each.value, until=until) for each in previous),
            )
            changed = known.model_copy(update={"webhook_url": url, "webhook_secrets": kept, "updated_at": now})
            self._records.write(changed, None if stored is None else stored.version)
            return secret

        return retry_conflicts(f"webhook of {owner}", write)
