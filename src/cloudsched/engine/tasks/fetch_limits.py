"""How often users may have something fetched: so that nobody uses this service to send requests to somebody else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.person import MailLimit, secret_hash
from cloudsched.domain.documents.subjects import SYSTEM_OWNER
from cloudsched.engine.state.compare_and_set import compare_and_set
from cloudsched.errors import QuotaExceeded

if TYPE_CHECKING:
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord

MAX_FOR_OWNER: Final = 30
"""How many calendars a user may have fetched in a day by writing them; those that are refreshed do not count."""
MAX_FROM_HOST: Final = 20
"""How many are fetched from one host in a minute, for all users together."""
_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)


class FetchLimits:
    """Counts fetches before they are made, so that a failure counts as well.

    Args:
        records: Where they are counted.
        clock: The current time.
    """

    def __init__(self, records: RecordStore, clock: Clock) -> None:
        self._records = records
        self._clock = clock

    def count(self, owner: str, host: str) -> None:
        """Count one more fetch for an owner from a host.

        Raises:
            QuotaExceeded: There were enough; it says when the next one may be made.
        """
        if owner != SYSTEM_OWNER:
            self._count(secret_hash("calendar owner", owner), MAX_FOR_OWNER, _DAY, "calendars fetched in a day")
        quota = "calendars fetched from one host in a minute"
        self._count(secret_hash("calendar host", host.casefold()), MAX_FROM_HOST, _MINUTE, quota)

    def _count(self, key: str, limit: int, span: timedelta, quota: str) -> None:
        def write(stored: VersionedRecord[MailLimit] | None) -> None:
            now = self._clock.now()
            known = () if stored is None else stored.record.sent_at
            recent = tuple(each for each in known if now - each < span)
            if len(recent) >= limit:
                seconds = -(-(recent[0] + span - now) // timedelta(seconds=1))
                raise QuotaExceeded(quota, limit, f"Try again in {seconds} seconds, or give the days as text.", seconds)
            made = now if stored is None else stored.record.created_at
            counted = MailLimit(
                id=key,
                owner=SYSTEM_OWNER,
                sent_at=(*recent, now),
                created_at=made,
                updated_at=now,
                expire_at=now + span,
            )
            self._records.write(counted, None if stored is None else stored.version)

        compare_and_set("fetch limit", lambda: self._records.load(MailLimit, key), write)
