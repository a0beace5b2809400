"""Count what anybody may cause before it is done, so that a failure counts as well, and refuse it once it is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.person import RecentCount
from cloudsched.engine.state.commits import compare_and_set

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord


def count_recent(
    records: RecordStore,
    clock: Clock,
    key: str,
    span: timedelta,
    require_room: Callable[[Sequence[datetime], datetime], None],
) -> None:
    """Count one more of what happened within a span of time.

    The counts are the system's: who has all that is theirs erased begins no new span.

    Args:
        records: Where it is counted.
        clock: The current time.
        key: What is counted.
        span: How long each counts.
        require_room: Called with what has happened within the span, the earliest first, and the current time. What it
            raises is raised, and nothing is counted.
    """

    def write(stored: VersionedRecord[RecentCount] | None) -> None:
        now = clock.now()
        known = () if stored is None else stored.record.sent_at
        recent = tuple(each for each in known if now - each < span)
        require_room(recent, now)
        made = now if stored is None else stored.record.created_at
        counted = RecentCount(
            id=key, owner=SYSTEM_OWNER, sent_at=(*recent, now), created_at=made, updated_at=now, expire_at=now + span
        )
        records.write(counted, None if stored is None else stored.version)

    compare_and_set("count of what was sent", lambda: records.load(RecentCount, key), write)
