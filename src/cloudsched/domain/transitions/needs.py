"""Find the tasks that need attention, and why.

A task's *trouble* is the reason that its document alone shows: stores index it. `find_needs` adds what also
depends on the time. Overviews count these causes, and lists and pages show them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.run_counts import is_late
from cloudsched.domain.documents.task import NeedCause, Task, TaskStatus, Trouble, list_questions
from cloudsched.domain.transitions.planning import find_sole_hold, is_held_back, jittered_start

if TYPE_CHECKING:
    from collections.abc import Mapping

NEVER: Final = datetime.max.replace(tzinfo=UTC)
"""When a wait without a deadline gives up."""

CAUSES_BY_TROUBLE: Final[Mapping[Trouble, NeedCause]] = {
    each: NeedCause(each.value) for each in Trouble if each not in {Trouble.UNREACHED, Trouble.WAITING, Trouble.OVERDUE}
}
"""The causes that a task's trouble is. What has not reached a person needs one act, however much it is."""


def find_needs(task: Task, now: datetime) -> tuple[NeedCause, ...]:
    """Return why a task needs attention now: its trouble, and whether it asks or is overdue."""
    trouble = find_trouble(task)
    cause = CAUSES_BY_TROUBLE.get(trouble[0]) if trouble else None
    due_at = find_unstarted(task)
    found = {
        cause: cause,
        NeedCause.WAITING: find_answer_time(task, now),
        NeedCause.OVERDUE: due_at is not None and is_late(due_at, now),
    }
    return tuple(each for each, is_so in found.items() if each and is_so)


def find_answer_time(task: Task, now: datetime) -> datetime | None:
    """Return when the first of a task's runs gives up that can be answered now: perhaps `NEVER`. None if none can."""
    return min((until for wait in list_questions(task) if (until := wait.deadline or NEVER) > now), default=None)


def find_unstarted(task: Task) -> datetime | None:
    """Return when the next occurrence of a task is to start, unless that is only once an open run of it has ended."""
    due = task.next_execution_time
    is_listed = task.delivery is None and task.deleted_at is None
    return jittered_start(task, due) if due and is_listed and not is_held_back(task) else None


def is_paused_by_failures(task: Task) -> bool:
    """Return whether a task has paused itself, and not somebody who knows why."""
    limit = task.pause_after_failures
    return task.status is TaskStatus.PAUSED and limit is not None and task.consecutive_failures >= limit


def find_trouble(task: Task) -> tuple[Trouble, datetime] | None:
    """Return a task's trouble and since when it has it, or None.

    A call has none: the task that made it handles its failure.
    """
    if task.deleted_at is not None or (task.parent is not None and task.delivery is None):
        return None
    if task.delivery is not None:
        return _find_failed_delivery(task)
    hold = find_sole_hold(task)
    if hold is not None and task.inner_pause_id is None:  # else somebody has to restore it
        return Trouble.HELD if task.paused_until is None else Trouble.LIMITED, hold.at
    if task.consecutive_failures and task.status in {TaskStatus.ACTIVE, TaskStatus.FAILED, TaskStatus.PAUSED}:
        kind = Trouble.PAUSED if task.status is TaskStatus.PAUSED else Trouble.FAILED  # a pause ends no failure
        return kind, task.failing_since or task.status_changed_at
    return None


def _find_failed_delivery(task: Task) -> tuple[Trouble, datetime] | None:
    if task.status is TaskStatus.CANCELLED and task.delivery is not None and task.delivery.is_unreached:
        return Trouble.UNREACHED, task.status_changed_at
    if task.status in {TaskStatus.FAILED, TaskStatus.EXPIRED}:
        return Trouble.DELIVERY, task.failing_since or task.status_changed_at
    starts = [run.started_at for run in task.runs if run.attempts and run.started_at]
    return (Trouble.DELIVERY, min(starts)) if starts else None
