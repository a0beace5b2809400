"""Hold tasks whose owner's budget, or whose own limit, is used up, and release them when there is some again.

Nothing that comes due meanwhile is lost: the plan goes on from the pause, so the task's catch-up policy
decides which of these occurrences still run, and the others get their records. If anybody else pauses
such a task, too, it is their pause from then on, and stays when the budget lets the task go. A new
schedule begins with the edit that sets it.

A hold by a task's own limit ends by itself with the month, like a pause until an instant. Others who pause
such a task replace it: once they resume the task, its next start finds what its limit says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.task import Hold, Task, TaskStatus
from cloudsched.domain.documents.usage import Amounts, month_of, start_of_next_month, sum_usage
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.transitions import lifecycle
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.history import with_entry
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.domain.transitions.planning import find_sole_hold
from cloudsched.engine.usage.usage_limit import NOTHING
from cloudsched.features.budgets.fields import describe_excess

if TYPE_CHECKING:
    from datetime import datetime

HAS_BUDGET: Final = "Its owner has a budget again."
HAS_LIMIT: Final = "Its limit leaves something again."


def hold(task: Task, now: datetime, reason: str, until: datetime | None = None) -> Commit:
    """Pause an ACTIVE task, until an instant if there is one. Any other stays as it is."""
    if task.status is not TaskStatus.ACTIVE:
        return Commit(task)
    paused = lifecycle.pause(task, now, reason, paused_by=None)
    held = with_changes(paused.task, now, paused_until=until, hold=Hold(at=now))
    noted = with_entry(task, held, Action.PAUSED, None, now, reason=reason)
    return Commit(noted, executions=paused.executions)


def hold_by_limit(task: Task, now: datetime) -> Commit:
    """Pause an ACTIVE task until the next month if its own limit is used up. Any other stays as it is."""
    reason = find_excess(task, now)
    return Commit(task) if reason is None else hold(task, now, reason, start_of_next_month(now))


def find_excess(task: Task, now: datetime, running: Amounts = NOTHING) -> str | None:
    """Return why a task's own limit leaves nothing in this month, or None."""
    month = month_of(now)
    own = sum_usage(each for each in (*task.usage, *task.used_by_calls) if each.month == month)
    used = describe_excess(task, Amounts(own.queries + running.queries, own.tokens + running.tokens))
    if not used:
        return None
    return f"It has used up its limit ({used} of {month}); it resumes next month, or when the limit is raised."


def is_held_by_limit(task: Task) -> bool:
    """Return whether a task is paused because its own limit is used up. Its owner's budget sets no end."""
    return task.paused_until is not None and find_sole_hold(task) is not None


def release(task: Task, now: datetime, why: str = HAS_BUDGET) -> Commit:
    """Resume a task that only a hold has paused.

    If others have paused it, too, also together with many, end the budget's part.
    """
    held = task.present_hold
    if held is None:
        return Commit(task)
    if not held.is_alone:
        return Commit(with_changes(task, now, hold=None))
    if task.inner_pause_id is not None:
        return lifecycle.end_pause(task, now)
    resumed = lifecycle.resume(task, now)
    if resumed.task.status is not TaskStatus.ACTIVE:
        return resumed
    again = resumed.task.model_copy(update={"message": why})
    return Commit(
        with_entry(task, again, Action.RESUMED, None, now, reason=why),
        executions=resumed.executions,
    )
