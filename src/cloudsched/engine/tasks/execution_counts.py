"""How many executions there are by status, and the failures by what they have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from cloudsched.domain.documents.execution import FAILURE_STATUSES, Execution
from cloudsched.engine.tasks.execution_search import ExecutionFilter, find_executions_with_tasks
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
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


MAX_FAILURES: Final = 500
"""How many failures are looked at, the latest: a read for each, and for each that is passed over."""
MAX_GROUPS: Final = 50
_PAGE: Final = 100
_FOLDERS: Final = re.compile(r"^.*[\\/]")
_FRAME: Final = re.compile(r'^\s*File "([^"\n]+)", line (\d+), in (\S+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """What failed with the same type of error at the same place."""

    type: str
    place: str
    """The innermost line of the traceback, as ``file.py:12 in name``; empty if there is none."""
    latest: Execution
    earliest: Execution
    count: int
    tasks: int
    """How many tasks they are of."""


@dataclass(frozen=True, slots=True)
class FailureSummary:
    """What of the matching executions failed."""

    count: int
    is_at_least: bool
    """Whether there may be more: looking stopped at a bound."""
    groups: Sequence[FailureGroup]
    """Those with the most first."""


def list_failures(
    search: SearchStore, query: ExecutionQuery, only: ExecutionFilter, most: int
) -> tuple[list[Execution], bool]:
    """Return the latest of the matching executions that failed or timed out, and whether there may be more."""
    if query.status is not None and query.status not in FAILURE_STATUSES:
        return [], False
    found: list[Execution] = []
    token: str | None = None
    for _ in range(most // _PAGE + 1):  # each reads at most some 1,000, however few of them match
        page = find_executions_with_tasks(search, query, min(_PAGE, most - len(found)), token, only)
        failures = [each.execution for each in page.items if each.execution.status in FAILURE_STATUSES]
        found += failures
        token = page.next_page_token
        if token is None or len(failures) < len(page.items) or not token.startswith("0."):
            return found, False  # failures come first: what follows is not among them
        if len(found) >= most:
            break
    return found, True


def summarize_failures(search: SearchStore, query: ExecutionQuery, only: ExecutionFilter) -> FailureSummary:
    """Return what failed of the executions that match, in groups; only the latest of them if there are many."""
    failures, is_cut = list_failures(search, query, only, MAX_FAILURES)
    return FailureSummary(len(failures), is_cut, list(_group(failures))[:MAX_GROUPS])


def find_place(execution: Execution) -> str:
    """Return where an execution failed, as ``file.py:12 in name``; empty if nothing says."""
    error = execution.error
    frames = [] if error is None or error.traceback is None else _FRAME.findall(error.traceback)
    if not frames:
        return ""
    file, line, name = frames[-1]
    return f"{_FOLDERS.sub('', file)}:{line} in {name}"


def _group(failures: Sequence[Execution]) -> Iterator[FailureGroup]:
    groups: dict[tuple[str, str], list[Execution]] = {}
    for each in failures:
        kind = each.status.value if each.error is None else each.error.type
        groups.setdefault((kind, find_place(each)), []).append(each)
    for (kind, place), members in sorted(groups.items(), key=lambda each: -len(each[1])):
        ordered = sorted(members, key=lambda each: each.scheduled_for)
        yield FailureGroup(kind, place, ordered[-1], ordered[0], len(members), len({each.task_id for each in members}))
