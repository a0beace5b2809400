"""Record the occurrences that calendars have left out, so that a task's history shows them with the holiday's name.

They are recorded once they have passed, in the commit that claims the task's next run or gives it another plan.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import PendingRecords
from cloudsched.domain.transitions.backlog import MAX_RECORDS_PER_COMMIT, take_records

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task

_TICK = timedelta(microseconds=1)
_MAX_IN_CLAIM = 20
"""How many are recorded in the commit of a claim; the sweep records the rest."""


def note_left_out(task: Task, now: datetime) -> Task:
    """Return the task with its left out occurrences up to now among the records that are to be written.

    Nothing comes due of a task that is paused or has ended, so nothing of that time is left out either.
    """
    if task.left_out_from is None or not task.schedule.calendars:
        return task
    until = now if task.is_active else min(now, task.status_changed_at)
    first = task.schedule.skipped_after(task.left_out_from - _TICK, until)
    noted = task.model_copy(update={"left_out_from": max(now, task.left_out_from)})
    if first is None:
        return noted
    pending = PendingRecords(next_at=first, until=until, status=ExecutionStatus.SKIPPED, message="", is_left_out=True)
    return noted.model_copy(update={"pending_records": (*task.pending_records, pending)})


def take_left_out(task: Task, now: datetime) -> tuple[Task, tuple[Execution, ...]]:
    """Return the task, and the first records of what its calendars have left out up to now."""
    noted = note_left_out(task, now)
    if len(noted.pending_records) == len(task.pending_records):
        return noted, ()
    return take_records(noted, now, MAX_RECORDS_PER_COMMIT - _MAX_IN_CLAIM)
