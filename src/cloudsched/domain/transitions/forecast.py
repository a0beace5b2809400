"""Forecast what tasks are going to use: their occurrences, times what one costs (docs/explanation/costs.md)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.usage import UsageCounts
from cloudsched.domain.transitions.planning import HORIZON
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import PublicTask
    from cloudsched.domain.schedules.schedule import Schedule

MAX_COUNTED: Final = 5_000
"""If there are more occurrences of one task in its first weeks, those of the others are extrapolated."""
_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(days=7)

OCCURRENCE: Final = UsageCounts(executions=1, reads=1, writes=3, dispatches=1)
"""A successful occurrence."""
LOCK: Final = UsageCounts(reads=2, writes=1, deletes=1)
"""What a lock key adds, if it never has to wait."""
WORKER: Final = UsageCounts(reads=2, writes=2, deletes=1)
"""What a worker at the store adds."""
DELIVERY: Final = UsageCounts(reads=2, writes=5, dispatches=1)
"""What a delivery by one channel other than the web inbox adds."""
HOP: Final = UsageCounts(reads=1, dispatches=1)
"""What waiting for longer than the horizon costs, each time it is reached."""


@dataclass(frozen=True, slots=True)
class TaskForecast:
    """What a task is going to use."""

    occurrences: float
    is_extrapolated: bool
    """Whether there are too many occurrences to count them all."""
    counts: UsageCounts


def forecast_task(task: PublicTask, start: datetime, end: datetime) -> TaskForecast:
    """Return what a task is going to use from one instant to before another, if each attempt succeeds.

    Calls, children, steps, retries and what handlers create are not in it. A task that is not ACTIVE uses nothing.
    """
    first = task.next_execution_time
    if task.status is not TaskStatus.ACTIVE or first is None:
        return TaskForecast(0, is_extrapolated=False, counts=UsageCounts())
    last = end if task.until is None else min(end, task.until + timedelta(microseconds=1))
    count, is_extrapolated = _count(task.schedule, max(first, start), last)
    if task.max_runs is not None:
        count = min(count, max(0, task.max_runs - task.run_count))
    each = OCCURRENCE
    if task.lock_key is not None:
        each += LOCK
    if task.pull is not None:
        each += WORKER
    for channel in task.delivery_channels:
        if channel.traits.is_sent:
            each += DELIVERY
    hops = max(timedelta(0), min(first, end) - start) // HORIZON
    counts = _times(each, count) + _times(HOP, hops)
    estimated = {
        "estimated_queries": count * task.query_per_execution,
        "estimated_tokens": count * task.tokens_per_execution,
    }
    return TaskForecast(count, is_extrapolated, counts.model_copy(update=estimated))


def _count(schedule: Schedule, start: datetime, end: datetime) -> tuple[int, bool]:
    """Return how many occurrences there are from `start` to before `end`, and whether that is extrapolated."""
    count, at = 0, start
    while at < end:
        until = min(end, at + _WEEK)
        try:
            count += len(schedule.between(at, until))
        except InvalidSchedule:  # more than are listed: one day tells enough
            until = at + _DAY
            count += len(schedule.between(at, until))
        at = until
        if count > MAX_COUNTED and at < end:
            return round(count * ((end - start) / (at - start))), True
    return count, False


def _times(counts: UsageCounts, factor: int) -> UsageCounts:
    return UsageCounts(**{name: value * factor for name, value in counts.model_dump().items()})
