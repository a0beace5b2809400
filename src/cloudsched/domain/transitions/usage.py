"""Count what a task uses in its own document: one entry for each month and handler.

Only this month and the one before are kept, since the sweep sums up what has changed at least once a day.
"""

from __future__ import annotations

from datetime import UTC, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypedDict

from cloudsched.domain.documents.usage import TaskUsage, UsageCounts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task

MAX_HANDLERS: Final = 20
"""For how many handlers a task counts in its two months; what further ones use is counted for `OTHER_HANDLERS`."""
OTHER_HANDLERS: Final = "(others)"


def with_usage(task: Task, now: datetime, used: UsageCounts) -> Task:
    """Return the task with this counted for its handler and the month."""
    month, before = _find_months(now.astimezone(UTC).date().replace(day=1))
    kept = [each for each in task.usage if each.month >= before]
    handler = task.handler
    is_known = any(each.month == month and each.handler == handler for each in kept)
    if not is_known and len(kept) >= MAX_HANDLERS:
        handler = OTHER_HANDLERS
    rest = []
    for each in kept:
        if each.month == month and each.handler == handler:
            used = each.counts + used
        else:
            rest.append(each)
    entry = TaskUsage.build(month=month, handler=handler, counts=used)
    return task.model_copy(update={"usage": (*rest, entry)})


@lru_cache(maxsize=4)
def _find_months(first_day: date) -> tuple[str, str]:
    """Return the month of a day and the one before."""
    day_before = first_day - timedelta(days=1)
    return f"{first_day.year:04}-{first_day.month:02}", f"{day_before.year:04}-{day_before.month:02}"


class EndedCounts(TypedDict, total=False):
    """Those of `UsageCounts` that ended executions count for."""

    executions: int
    estimated_queries: float
    estimated_tokens: float


def count_ended(task: Task, executions: Sequence[Execution]) -> EndedCounts:
    """Return what the executions of a commit count for: those that have ended, and that had started."""
    ended = sum([each.status.is_final and each.started_at is not None for each in executions])
    if not ended:
        return {}
    return {
        "executions": ended,
        "estimated_queries": ended * task.query_per_execution,
        "estimated_tokens": ended * task.tokens_per_execution,
    }
