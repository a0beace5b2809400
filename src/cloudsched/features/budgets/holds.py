"""Hold tasks whose owner's budget is used up, and release them when there is one again.

Nothing that comes due meanwhile is lost: the plan goes on from the pause, so the task's catch-up policy
decides which of these occurrences still run, and the others get their records. If anybody else pauses
such a task, too, it is their pause from then on, and stays when the budget lets the task go. A new
schedule begins with the edit that sets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.task import Hold, Task, TaskStatus
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.transitions import lifecycle
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.history import with_entry
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.domain.transitions.planning import find_hold

if TYPE_CHECKING:
    from datetime import datetime

_RELEASED: Final = "Its owner has a budget again."


def hold(task: Task, now: datetime, reason: str) -> Commit:
    """Pause an ACTIVE task. Any other stays as it is."""
    if task.status is not TaskStatus.ACTIVE:
        return Commit(task)
    paused = lifecycle.pause(task, now, reason, paused_by=None)
    noted = with_entry(task, paused.task, Action.PAUSED, None, now, reason=reason)
    return Commit(noted.model_copy(update={"hold": Hold(at=now)}), executions=paused.executions)


def release(task: Task, now: datetime) -> Commit:
    """Resume a task that only its owner's budget has paused.

    If others have paused it, too, end the budget's part.
    """
    held = find_hold(task)
    if held is None:
        return Commit(task)
    if not held.is_alone:
        return Commit(with_changes(task, now, hold=None))
    resumed = lifecycle.resume(task, now)
    if resumed.task.status is not TaskStatus.ACTIVE:
        return resumed
    again = resumed.task.model_copy(update={"message": _RELEASED})
    return Commit(
        with_entry(task, again, Action.RESUMED, None, now, reason=_RELEASED),
        executions=resumed.executions,
    )
