"""Pause tasks whose owner's budget is used up, and resume them when there is one again.

Nothing that comes due meanwhile is lost: the plan goes on from the pause, so the task's catch-up policy decides which
of these occurrences still run, and the others get their records. If anybody else pauses such a task, too, it is their
pause from then on, and stays when the budget lets the task go. A new schedule begins with the edit that sets it.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.task import BudgetPause, Task, TaskStatus
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.transitions import lifecycle
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.history import with_entry
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.domain.transitions.planning import find_budget_pause

if TYPE_CHECKING:
    from cloudsched.domain.documents.authority import Requesters

_HAS_BUDGET: Final = "Its owner has a budget again."


def pause_for_budget(task: Task, now: datetime, reason: str) -> Commit:
    """Pause an ACTIVE task. Any other stays as it is."""
    if task.status is not TaskStatus.ACTIVE:
        return Commit(task)
    paused = lifecycle.pause(task, now, reason, paused_by=None)
    noted = with_entry(task, paused.task, Action.PAUSED, None, now, reason=reason)
    return _mark(Commit(noted, executions=paused.executions), BudgetPause(at=now))


def resume_from_budget(task: Task, now: datetime) -> Commit:
    """Resume a task that only its owner's budget has paused. If others have paused it, too, end the budget's part."""
    held = find_budget_pause(task)
    if held is None:
        return Commit(task)
    if not held.is_alone:
        return Commit(with_changes(task, now, budget_pause=None))
    resumed = lifecycle.resume(task, now)
    if resumed.task.status is not TaskStatus.ACTIVE:
        return resumed
    again = resumed.task.model_copy(update={"message": _HAS_BUDGET})
    return Commit(with_entry(task, again, Action.RESUMED, None, now, reason=_HAS_BUDGET), executions=resumed.executions)


def pause(task: Task, now: datetime, *, paused_by: Requesters | None, is_gone: bool = False) -> Commit:
    """Pause a task as its owner or a server asks. If it is paused by a budget alone, that becomes their pause.

    The occurrences that have come due since the budget was used up are decided now, as by any pause.
    """
    held = find_budget_pause(task)
    if held is None or not held.is_alone:
        return lifecycle.pause(task, now, paused_by=paused_by, is_gone=is_gone)
    resumed = lifecycle.resume(task, now)
    if resumed.task.status is not TaskStatus.ACTIVE:
        return resumed
    paused = lifecycle.pause(resumed.task, now, paused_by=paused_by, is_gone=is_gone)
    return _mark(paused, BudgetPause(at=now, is_alone=False))


def cancel(task: Task, now: datetime) -> Commit:
    """Cancel a task. Occurrences that came due while a budget paused it are recorded as CANCELLED, too."""
    held = find_budget_pause(task)
    if held is None or not held.is_alone:
        return lifecycle.cancel(task, now)
    resumed = lifecycle.resume(task, now)
    return lifecycle.cancel(resumed.task, now) if resumed.task.status is TaskStatus.ACTIVE else resumed


def _mark(transition: Commit, pause: BudgetPause) -> Commit:
    return Commit(transition.task.model_copy(update={"budget_pause": pause}), executions=transition.executions)
