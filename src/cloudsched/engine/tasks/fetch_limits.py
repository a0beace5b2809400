"""How often users may have something fetched: so that nobody uses this service to send requests to somebody else."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.person import secret_hash
from cloudsched.domain.documents.subjects import SYSTEM_OWNER
from cloudsched.engine.state.recent_counts import count_recent
from cloudsched.errors import QuotaExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore

MAX_FOR_OWNER: Final = 30
"""How many calendars a user may have fetched in a day by writing them; those that are refreshed do not count."""
MAX_FROM_HOST: Final = 20
"""How many are fetched from one host in a minute, for all users together."""
_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)


class FetchLimits:
    """Counts fetches before they are made.

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
        def require_room(recent: Sequence[datetime], now: datetime) -> None:
            if len(recent) >= limit:
                seconds = -(-(recent[0] + span - now) // timedelta(seconds=1))
                raise QuotaExceeded(quota, limit, f"Try again in {seconds} seconds, or give the days as text.", seconds)

        count_recent(self._records, self._clock, key, span, require_room)
