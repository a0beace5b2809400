"""Count what ended, day by day, as the clocks of a zone have days: counts cost far less than lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from zoneinfo import ZoneInfo

    from cloudsched.engine.ports.search import ExecutionQuery, SearchStore

MAX_COUNT: Final = 10_000
"""Up to how many of a day are counted, of what failed and of all others: ten billed reads each."""
MAX_DAYS: Final = 62
"""How many days are counted at most."""


@dataclass(frozen=True, slots=True)
class DayCounts:
    """What was scheduled for a day, or for a part of it, and has ended."""

    start: datetime
    failed: int
    others: int


def count_days(
    search: SearchStore, query: ExecutionQuery, since: datetime, until: datetime, zone: ZoneInfo
) -> Sequence[DayCounts]:
    """Return the counts of each day from `since` to `until`, the earliest first. Both may lie within a day.

    A count is a billed read for each 1,000 counted, or part of it; there are two a day.

    Raises:
        InvalidInput: There are too many days, or no index has all of the filters.
    """
    parts = list(_split(since, until, zone))
    if len(parts) > MAX_DAYS:
        raise InvalidInput("until", f"is more than {MAX_DAYS} days after from", "Ask for some of them.")
    return [_count(search, replace(query, since=start, until=end)) for start, end in parts]


def _split(since: datetime, until: datetime, zone: ZoneInfo) -> Iterator[tuple[datetime, datetime]]:
    start = since
    for _ in range(MAX_DAYS + 1):
        if start >= until:
            return
        following = start.astimezone(zone).date() + timedelta(days=1)
        midnight = datetime.combine(following, time(), zone).astimezone(UTC)
        if midnight <= start:  # a day that the zone skips as a whole
            midnight = datetime.combine(following + timedelta(days=1), time(), zone).astimezone(UTC)
        end = min(midnight, until)
        yield start, end
        start = end


def _count(search: SearchStore, query: ExecutionQuery) -> DayCounts:
    failed, others = (
        search.count_finished(query, is_failure=is_failure, up_to=MAX_COUNT) for is_failure in (True, False)
    )
    assert query.since is not None  # noqa: S101 - each part has a beginning
    return DayCounts(query.since, failed, others)
