"""Find the times in which something was due and nothing started in time, as in an outage.

Counts of runs say when, by the hour of UTC, so every page says the same. One run of such a time has to say so too: it
waited for long, or was skipped because it was too late. What an overlap policy skipped, or a lock held back for some
minutes, is no stop. A stop begins with the first occurrence that waited, within the hour before these hours, and ends
when the first of them starts or is skipped. What recurs within the hour leaves but one record, of all that was skipped
together: then hours without any follow one in which something started in time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.run_counts import CountedAs, RunCounts, classify_run, count_runs, has_started_late
from cloudsched.domain.responses.overview_responses import StopCounts
from cloudsched.domain.transitions.overlap_and_catch_up import was_too_late
from cloudsched.engine.ports.search import ExecutionQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.engine.ports.search import SearchStore

DAYS: Final = 7
"""The number of last days that are looked at."""
MAX_STOPS: Final = 3
"""The most stops that are returned, the latest of the longest."""
_LOOKS: Final = 12
"""The number of times, the longest, whose runs are looked at."""
_HOUR: Final = timedelta(hours=1)
_TICK: Final = timedelta(microseconds=1)
SHORTEST: Final = timedelta(minutes=30)
"""The least time that a run of a stop has waited."""
_SAMPLE: Final = 5
_FIRST: Final = (timedelta(minutes=1), timedelta(minutes=5))
"""The times from its beginning on in which the first of a stop is looked for."""
_READ_FIRST: Final = 10
"""The most runs that are read of each of these."""
_WALKS: Final = (10, 200)
"""The numbers of runs that are read of the hour before a stop, the second if all of the first belong to it."""


class _Part(NamedTuple):
    """A part of the time, and the numbers of its runs."""

    start: datetime
    end: datetime
    runs: RunCounts


class _Stop(NamedTuple):
    """A time in which nothing started in time, and the numbers of what was due in it."""

    start: datetime
    end: datetime
    runs: RunCounts
    before: datetime | None
    """The start of the last part before it in which something started in time, if that is known."""
    limit: datetime | None = None
    """The end of the first part after it in which something started in time. None if it is not over."""

    @property
    def is_over(self) -> bool:
        """Return whether something has started in time since."""
        return self.limit is not None

    def to_response(self) -> StopCounts:
        """Return it as callers see it."""
        total = {**vars(self.runs)}
        numbers = {name: total[name] for name in ("skipped", "late", "is_at_least")}
        return StopCounts(start=self.start, end=self.end, is_over=self.is_over, **numbers)


def find_latest_stops(search: SearchStore, owner: str | None, now: datetime) -> tuple[StopCounts, ...]:
    """Return the stops of the last days, the earliest first.

    If no run started late and none was skipped, that is three reads. On Firestore the counts are else one read an hour
    for each kind of run.
    """
    end = floor_hour(now)
    mine = ExecutionQuery(owner, since=end - timedelta(days=DAYS), until=now)
    late, skipped = replace(mine, is_late=True), replace(mine, status=ExecutionStatus.SKIPPED)
    if not _list_ended(search, late, 1) and not search.list_finished(skipped, is_failure=False, limit=1).items:
        return ()
    edges = [*(end - number * _HOUR for number in reversed(range(24 * DAYS + 1))), now + _TICK]
    return find_stops(search, ExecutionQuery(owner), edges, search.count_runs(mine, edges), now)


def find_stops(
    search: SearchStore, query: ExecutionQuery, edges: Sequence[datetime], counts: Sequence[RunCounts], now: datetime
) -> tuple[StopCounts, ...]:
    """Return the stops of which a part lies in a time whose runs have been counted, the earliest first.

    Parts that are no hours of UTC are counted anew, if one may belong to a stop: at most those with the most late and
    skipped runs. One that may go on before or after the time is followed for `DAYS`. The hour that has just begun
    says at most that a stop is over.
    """
    hours = _to_hours(search, query, _make_parts(edges, counts), now)
    hours = _look_around(search, query, hours, (edges[0], edges[-1]), now)
    joined = _join_still(hours, floor_hour(now))
    found = [each for each in joined if (each.limit or now) > edges[0] and each.start < edges[-1]]
    longest = sorted(found, key=lambda each: (each.limit or each.end) - each.start)[-_LOOKS:]
    stops = [each for each in longest if _has_long_wait(search, query, each)]
    latest = sorted(stops, key=lambda each: each.start)[-MAX_STOPS:]
    begun = [_find_beginning(search, query, each) for each in latest]
    ended = [_find_end(search, query, each) for each in begun]
    return tuple(each.to_response() for each in ended if each.end > edges[0])


def floor_hour(at: datetime) -> datetime:
    """Return the start of an instant's hour."""
    return at.replace(minute=0, second=0, microsecond=0)


def _make_parts(edges: Sequence[datetime], counts: Sequence[RunCounts]) -> list[_Part]:
    return [_Part(start, end, each) for (start, end), each in zip(pairwise(edges), counts, strict=True)]


def _look_around(
    search: SearchStore, query: ExecutionQuery, hours: list[_Part], span: tuple[datetime, datetime], now: datetime
) -> list[_Part]:
    """Return the counted hours of a time with those before and after them, as far as a stop may go on there."""
    begin, end = span
    start = hours[0].start if hours else floor_hour(end)
    first = next((each for each in hours if each.runs.is_due), None)
    is_known = first is not None and first.start <= begin
    if (first and first.runs.is_still) or (not is_known and _is_reached(search, query, begin)):
        hours = [*_count_hours(search, query, min(begin, start) - timedelta(days=DAYS), start), *hours]
    end = hours[-1].end if hours else end
    last = next((each for each in reversed(hours) if each.runs.is_due), None)
    if last and (last.runs.is_still or (last.runs.skipped and last.end < end)):
        hours = [*hours, *_count_hours(search, query, end, min(now, end + timedelta(days=DAYS)))]
    return hours


def _is_reached(search: SearchStore, query: ExecutionQuery, start: datetime) -> bool:
    """Return whether one of the last records before an instant is of occurrences that were skipped until after it."""
    near = replace(query, status=None, outcome=None, since=start - timedelta(days=DAYS), until=start)
    ranges = (each.covers for each in _list_ended(search, near, _READ_FIRST))
    return any(each is not None and each.until >= start for each in ranges)


def _count_hours(search: SearchStore, query: ExecutionQuery, start: datetime, end: datetime) -> list[_Part]:
    edges = [*_list_hours(start, end), end]
    return _make_parts(edges, search.count_runs(query, edges)) if start < end else []


def _to_hours(search: SearchStore, query: ExecutionQuery, parts: Sequence[_Part], now: datetime) -> list[_Part]:
    """Return the hours of UTC of these parts: their sums, or those of the loudest ones if parts go beyond an hour.

    Those of which the parts have only a half, as in a zone that is half an hour off, are counted anew.
    """
    if all(each.end <= floor_hour(each.start) + _HOUR for each in parts):
        sums: dict[datetime, RunCounts] = {}
        for each in parts:
            hour = floor_hour(each.start)
            sums[hour] = sums.get(hour, RunCounts()) + each.runs
        for hour in sums:
            is_cut = hour < parts[0].start or parts[-1].end < min(hour + _HOUR, now)
            if is_cut:
                (sums[hour],) = search.count_runs(query, [hour, hour + _HOUR])
        return [_Part(hour, hour + _HOUR, runs) for hour, runs in sums.items()]
    loudest = sorted(filter(_is_loud, parts), key=lambda each: each.runs.late + each.runs.skipped, reverse=True)
    hours: set[datetime] = set()
    for each in loudest:
        if len(hours) < 24 * DAYS:
            hours |= {*_list_hours(each.start, each.end)}
    edges = sorted(hours | {each + _HOUR for each in hours})
    return _make_parts(edges, search.count_runs(query, edges))


def _is_loud(part: _Part) -> bool:
    """Return whether a part may belong to a stop."""
    return bool(part.runs.late or part.runs.skipped)


def _list_hours(start: datetime, end: datetime) -> Iterator[datetime]:
    hour = floor_hour(start)
    while hour < end:
        yield hour
        hour += _HOUR


def _join_still(parts: Iterable[_Part], until: datetime) -> Iterator[_Stop]:
    """Yield each time in which nothing started in time, from the first part in which something was due to the last.

    Parts that end later than an instant belong to none. A time without anything due, after a part in which something
    was skipped, may be one as well.
    """
    found: _Stop | None = None
    before: _Part | None = None
    for each in parts:
        if each.runs.is_still and each.end <= until:
            found = found or _Stop(each.start, each.end, RunCounts(), before and before.start)
            found = found._replace(end=each.end, runs=found.runs + each.runs)
        elif each.runs.is_due and not each.runs.is_still:
            if found is None and before is not None and before.runs.skipped and before.end < each.start:
                found = _Stop(before.end, before.end, RunCounts(), before.start)
            if found is not None:
                yield found._replace(limit=each.end)
                found = None
            before = each
    if found is not None:
        yield found


def _find_beginning(search: SearchStore, query: ExecutionQuery, stop: _Stop) -> _Stop:
    """Return a stop from its first occurrence on, which may have been due before its first whole hour, and its numbers.

    What is skipped together is counted where the first of it was due: mostly there.
    """
    since = stop.before or stop.start - _HOUR
    near = replace(query, status=None, outcome=None, since=since, until=stop.start)
    waited: list[Execution] = []
    for limit in _WALKS:
        pages = [search.list_finished(near, is_failure=is_failure, limit=limit) for is_failure in (False, True)]
        known_from = max((page.items[-1].scheduled_for for page in pages if page.next_page_token), default=since)
        found = [each for page in pages for each in page.items if each.scheduled_for >= known_from]
        found = sorted(found, key=lambda each: each.scheduled_for, reverse=True)
        waited = [*takewhile(lambda each: not _started_in_time(each), found)]
        if len(waited) < len(found):
            break
    start = min((each.scheduled_for for each in waited if _find_wait(each) >= SHORTEST), default=None)
    if start is None:
        return stop._replace(start=_find_first(search, query, stop))
    runs = count_runs(each for each in waited if each.scheduled_for >= start)
    return stop._replace(start=start, runs=stop.runs + runs)


def _find_first(search: SearchStore, query: ExecutionQuery, stop: _Stop) -> datetime:
    """Return when the first run of a stop's first hour was due, or the hour if it has many."""
    near = replace(query, status=None, outcome=None, since=stop.start, until=stop.start + _HOUR)
    found = [each.scheduled_for for each in _list_ended(search, near, _READ_FIRST)]
    return min(found, default=stop.start) if len(found) < _READ_FIRST else stop.start


def _find_end(search: SearchStore, query: ExecutionQuery, stop: _Stop) -> _Stop:
    """Return a stop until the minute in which the first that waited in it started or was skipped, and its numbers."""
    if stop.limit is None:
        return stop
    for until in (*(stop.start + length for length in _FIRST), max(stop.end, stop.start + SHORTEST)):
        near = replace(query, status=None, outcome=None, since=stop.start, until=until)
        waits = [(each.scheduled_for, _find_wait(each)) for each in _list_ended(search, near, _READ_FIRST)]
        if ends := [at + wait for at, wait in waits if wait and at + wait >= stop.end]:
            break
    end = min([*ends, stop.limit]).replace(second=0, microsecond=0)
    if not ends or end == stop.end:
        return stop
    (runs,) = search.count_runs(replace(query, status=None, outcome=None), [stop.end, end])
    return stop._replace(end=end, runs=stop.runs + runs)


def _started_in_time(execution: Execution) -> bool:
    is_run = classify_run(execution) in {CountedAs.RAN, CountedAs.FAILED}
    return is_run and not has_started_late(execution)


def _has_long_wait(search: SearchStore, query: ExecutionQuery, stop: _Stop) -> bool:
    """Return whether a run waited for long, of those that were due first or of all."""
    begin = stop.start if stop.end > stop.start or stop.before is None else stop.before
    for end in (begin + SHORTEST, begin + _HOUR, stop.end):
        near = replace(query, status=None, outcome=None, since=begin, until=end)
        looks = [near]
        if near == ExecutionQuery(query.owner, since=begin, until=end):
            looks.append(replace(near, is_late=True))
        if any(_find_wait(each) >= SHORTEST for look in looks for each in _list_ended(search, look, _SAMPLE)):
            return True
    return False


def _list_ended(search: SearchStore, query: ExecutionQuery, limit: int) -> list[Execution]:
    """Return the latest runs that ended in each of both ways."""
    pages = (search.list_finished(query, is_failure=is_failure, limit=limit) for is_failure in (False, True))
    return [each for page in pages for each in page.items]


def _find_wait(execution: Execution) -> timedelta:
    """Return how long an occurrence waited until it started late, or was skipped because it was too late."""
    until = None
    if has_started_late(execution):
        until = execution.started_at
    elif was_too_late(execution):
        until = execution.finished_at
    return timedelta(0) if until is None else until - execution.scheduled_for
