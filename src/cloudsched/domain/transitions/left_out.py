"""Record the occurrences that calendars have left out, so that a task's history shows them with the holiday's name.

They are recorded once they have passed, in the commit that claims the task's next run, pauses it, ends it or gives it
another plan.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import PendingRecords

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task

_TICK = timedelta(microseconds=1)


def note_left_out(task: Task, now: datetime) -> Task:
    """Return the task with its left out occurrences up to now among the records that are to be written.

    Nothing comes due of a task that is paused or has ended, so nothing of that time is left out either.
    """
    if task.left_out_from is None or not task.schedule.calendars:
        return task
    until = now if task.is_active else min(now, task.status_changed_at)
    first = task.schedule.skipped_after(task.left_out_from - _TICK, until)
    noted = task.model_copy(update={"left_out_from": max(now + _TICK, task.left_out_from)})
    if first is None:
        return noted
    pending = PendingRecords(next_at=first, until=until, status=ExecutionStatus.SKIPPED, message="", is_left_out=True)
    return noted.model_copy(update={"pending_records": (*task.pending_records, pending)})
