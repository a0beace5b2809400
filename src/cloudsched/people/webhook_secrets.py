"""The secrets that sign messages to people's webhooks, apart from what the owner's clients may read."""

from __future__ import annotations

import base64
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.engine.state.record_changes import change_record, find_record
from cloudsched.people.documents import ContactSecrets, SigningSecret

if TYPE_CHECKING:
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore


OVERLAP: Final = timedelta(days=1)
"""The time for which a previous secret signs beside the new one."""
MAX_EARLIER: Final = 4
"""The most secrets of other URLs that are kept: a change of the URL may be refused after it has made one."""


class WebhookSecrets:
    """Makes, replaces and returns secrets. Each belongs to one URL."""

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def current(self, owner: str, url: str | None = None) -> tuple[str, ...]:
        """Return the secrets that sign messages to a URL now, the newest first. One document is read.

        Without a URL, they are those of the URL that was set last.
        """
        known = find_record(self._records, ContactSecrets, owner)
        if known is None or not known.webhook_secrets:
            return ()
        now = self._clock.now()
        wanted = url or known.webhook_secrets[0].url
        return tuple(
            each.value
            for each in known.webhook_secrets
            if each.url == wanted and (each.until is None or each.until > now)
        )

    def replace(self, owner: str, url: str, *, keeps_previous: bool = False) -> str:
        """Store and return a new secret for a URL. The previous one may go on to sign for a day beside it."""
        secret = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"

        def change(stored: ContactSecrets | None) -> ContactSecrets:
            now = self._clock.now()
            known = stored or ContactSecrets(id=owner, owner=owner, created_at=now, updated_at=now)
            kept = [SigningSecret(url=url, value=secret)]
            if keeps_previous:
                previous = [each for each in known.webhook_secrets if each.url == url][:1]
                kept += [each.model_copy(update={"until": now + OVERLAP}) for each in previous]
            kept += [each for each in known.webhook_secrets if each.url != url][:MAX_EARLIER]
            return known.model_copy(update={"webhook_secrets": tuple(kept), "updated_at": now})

        change_record(self._records, ContactSecrets, owner, change)
        return secret
