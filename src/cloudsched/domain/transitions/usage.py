"""Count what a task uses in its own document: one entry for each month and handler.

Only this month and the one before are kept, since the sweep sums up what has changed at least once a day.
"""

from __future__ import annotations

from datetime import UTC
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.usage import TaskUsage, UsageCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task

MAX_HANDLERS: Final = 20
"""For how many handlers a task counts in its two months; what further ones use is counted for `OTHER_HANDLERS`."""
OTHER_HANDLERS: Final = "(others)"


def add_usage(task: Task, now: datetime, used: Mapping[str, float]) -> tuple[TaskUsage, ...]:
    """Return what a task has used, with this counted for its handler and the month: those of `UsageCounts` by name."""
    utc = now.astimezone(UTC)
    month, before = _find_months(utc.year, utc.month)
    kept = {(each.month, each.handler): each for each in task.usage if each.month >= before}
    handler = task.handler
    if (month, handler) not in kept and len(kept) >= MAX_HANDLERS:
        handler = OTHER_HANDLERS
    known = kept.pop((month, handler), None)
    if known is None:
        entry = TaskUsage.build(month=month, handler=handler, counts=UsageCounts.build(**used))
    else:
        counts = known.counts.__dict__
        sums = {name: counts[name] + more for name, more in used.items() if more}
        entry = known.model_copy(update={"counts": known.counts.model_copy(update=sums)})
    return (*kept.values(), entry)


@lru_cache(maxsize=4)
def _find_months(year: int, month: int) -> tuple[str, str]:
    """Return a month and the one before."""
    return f"{year:04}-{month:02}", f"{year - (month == 1):04}-{month - 1 or 12:02}"


def count_ended(task: Task, executions: Sequence[Execution]) -> dict[str, float]:
    """Return what the executions of a commit count for: those that have ended, and that had started."""
    ended = sum([each.status.is_final and each.started_at is not None for each in executions])
    if not ended:
        return {}
    return {
        "executions": ended,
        "estimated_queries": ended * task.query_per_execution,
        "estimated_tokens": ended * task.tokens_per_execution,
    }
