"""Find the hours of the last days in which something was due and nothing started in time, as in an outage.

The store's counts by hour say when. One late run of such a time has to say so too: it waited for long. What an overlap
policy skipped, or a lock held back for some minutes, is no stop.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.run_counts import RunCounts
from cloudsched.domain.responses.overview_responses import StopCounts
from cloudsched.engine.ports.search import ExecutionQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from cloudsched.engine.ports.search import SearchStore

DAYS: Final = 7
"""The number of last days that are looked at."""
MAX_STOPS: Final = 3
"""The most stops that are returned, the latest."""
_HOUR: Final = timedelta(hours=1)
SHORTEST: Final = timedelta(minutes=30)
"""The least time that a run of a stop has waited."""
_SAMPLE: Final = 5


def find_stops(search: SearchStore, owner: str | None, now: datetime) -> tuple[StopCounts, ...]:
    """Return the stops of the last days, to the hour, the earliest first. The hour that has just begun is left out.

    If no run started late, that is two reads. On Firestore the counts are else one read an hour for each kind of run.
    """
    end = now.replace(minute=0, second=0, microsecond=0)
    start = end - timedelta(days=DAYS)
    if not _list_late(search, owner, start, end):
        return ()
    edges = [start + number * _HOUR for number in range(24 * DAYS + 1)]
    counts = search.count_runs(ExecutionQuery(owner), edges)
    found = [
        StopCounts(start=since, end=until, **_sum_up(counts[first : last + 1]))
        for first, last in _list_still(counts)
        if _has_long_wait(search, owner, since := edges[first], until := edges[last + 1])
    ]
    return tuple(found[-MAX_STOPS:])


def _list_still(counts: Sequence[RunCounts]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last hour of each time in which nothing started in time. Something was due in both."""
    busy = [number for number, each in enumerate(counts) if each.ran or each.failed or each.skipped]
    still = [number for number in busy if counts[number].is_still]
    places = {number: place for place, number in enumerate(busy)}
    if not still:
        return
    first = still[0]
    for one, other in pairwise(still):
        if places[other] - places[one] > 1:
            yield first, one
            first = other
    yield first, still[-1]


def _has_long_wait(search: SearchStore, owner: str | None, start: datetime, end: datetime) -> bool:
    """Return whether a run waited for long, of those that were due first if any of these ran."""
    early = _list_late(search, owner, start, start + SHORTEST)
    return any(wait >= SHORTEST for wait in early or _list_late(search, owner, start, end))


def _list_late(search: SearchStore, owner: str | None, start: datetime, end: datetime) -> list[timedelta]:
    """Return how long the latest runs waited that were due in a time and started late."""
    query = ExecutionQuery(owner, since=start, until=end, is_late=True)
    return [
        each.started_at - each.scheduled_for
        for is_failure in (True, False)
        for each in search.list_finished(query, is_failure=is_failure, limit=_SAMPLE).items
        if each.started_at is not None
    ]


def _sum_up(counts: Sequence[RunCounts]) -> dict[str, int | bool]:
    total = asdict(sum(counts, start=RunCounts()))
    return {name: total[name] for name in ("skipped", "late", "is_at_least")}
