"""How many messages a caller can cause: to one address, whoever asks, and for one owner, whatever the address."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.contact_secrets import MailLimit, secret_hash
from cloudsched.engine.people.record_changes import retry_conflicts
from cloudsched.errors import QuotaExceeded

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore

MAX_TO_ADDRESS: Final = 5
"""How many mails of this kind one address gets within a day."""
MAX_FOR_OWNER: Final = 10
"""How many one owner causes within a day."""
INTERVAL: Final = timedelta(minutes=1)
"""How long to wait between two."""
_DAY: Final = timedelta(days=1)


class MailLimits:
    """Counts mails before they are sent, so that a failure counts as well.

    Args:
        records: Where they are counted.
        clock: The current time.
        kind: What is counted, if it is no mail: each kind has limits of its own.
    """

    def __init__(self, records: RecordStore, clock: Clock, kind: str = "") -> None:
        self._records = records
        self._clock = clock
        self._kind = kind

    def count(self, owner: str, address: str) -> None:
        """Count one more mail for an owner to an address.

        Raises:
            QuotaExceeded: There were enough; it says when the next one may be sent.
        """
        self._count(secret_hash(f"{self._kind}owner", owner), owner, MAX_FOR_OWNER)
        self._count(secret_hash(f"{self._kind}address", address.casefold()), SYSTEM_OWNER, MAX_TO_ADDRESS)

    def _count(self, key: str, owner: str, limit: int) -> None:
        def write() -> None:
            now = self._clock.now()
            stored = self._records.load(MailLimit, key)
            known = () if stored is None else stored.record.sent_at
            recent = tuple(each for each in known if now - each < _DAY)
            _require_room(recent, limit, now)
            made = now if stored is None else stored.record.created_at
            counted = MailLimit(
                id=key, owner=owner, sent_at=(*recent, now), created_at=made, updated_at=now, expire_at=now + _DAY
            )
            self._records.write(counted, None if stored is None else stored.version)

        retry_conflicts("mail limit", write)


def _require_room(recent: tuple[datetime, ...], limit: int, now: datetime) -> None:
    frees_at = now
    if recent and now - recent[-1] < INTERVAL:
        frees_at = recent[-1] + INTERVAL
    if len(recent) >= limit:
        frees_at = max(frees_at, recent[-limit] + _DAY)
    if frees_at > now:
        seconds = -(-(frees_at - now) // timedelta(seconds=1))
        hint = f"Each is sent a minute after the last at the earliest. Try again in {seconds} seconds."
        raise QuotaExceeded("such mails a day", limit, hint, seconds)
