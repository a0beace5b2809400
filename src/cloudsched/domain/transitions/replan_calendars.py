"""Plan a task again after the days of its calendars have changed.

The runs that have started, and those that wait for another attempt or for a worker, stay. So does what came due, if the
new days have it as well; otherwise it is recorded as SKIPPED. What has run is not undone: an occurrence that ran on
Friday because Monday was a holiday runs on Monday too, if Monday no longer is one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.backlog import (
    due_ranges,
    end_plan,
    keep_schedule,
    note_left_out,
    require_room,
    take_records,
)
from cloudsched.domain.transitions.lifecycle import Transition, complete_if_idle, start_next_backfill, with_changes
from cloudsched.domain.transitions.planning import occurrence_from

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from cloudsched.domain.documents.task import DueRange, Task
    from cloudsched.domain.schedules.schedule import Schedule

_TICK = timedelta(microseconds=1)
_MAX_COMPARED = 100
"""How many due occurrences are compared before they are taken to differ."""
_WHY = "The days of its calendar changed before it started."


def with_days(schedule: Schedule, contents: Mapping[str, str]) -> Schedule:
    """Return a schedule with the days of its calendars, by their ids; a calendar that is not given keeps its days."""
    rules = tuple(rule.with_content(contents[rule.id]) if rule.id in contents else rule for rule in schedule.calendars)
    return schedule if rules == schedule.calendars else schedule.copy_unchecked(calendars=rules)


def replan_calendars(task: Task, contents: Mapping[str, str], now: datetime) -> Transition:
    """Return the task planned with the days of calendars as they are now; unchanged if it has them."""
    schedule = with_days(task.schedule, contents)
    if schedule is task.schedule or task.deleted_at is not None:
        return Transition(task)
    return replan(task, schedule, now, _WHY)


def replan(task: Task, schedule: Schedule, now: datetime, why: str) -> Transition:
    """Return the task planned with a changed schedule. What was due and is not part of it is SKIPPED, as `why` says.

    One that has ended is only given the schedule: an edit may open it again. What has run must not be left out then.
    """
    new_schedule = {"schedule": schedule, "timezone": schedule.timezone}
    if task.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED}:
        ended = keep_schedule(note_left_out(task, now), task.schedule).model_copy(update=new_schedule)
        ended, records = take_records(ended, now)
        return Transition(with_changes(ended, now), records)
    require_room(task, "plan again")
    due = due_ranges(task, now)
    is_kept = all(_is_same(task.schedule, schedule, each) for each in due)
    noted = note_left_out(task, now)
    left = noted if is_kept else end_plan(noted, now, ExecutionStatus.SKIPPED, why)
    changed = keep_schedule(left, task.schedule).model_copy(update={**new_schedule, "revision": task.revision + 1})
    changed, records = take_records(changed, now)
    if task.status is TaskStatus.PAUSED:
        return Transition(with_changes(changed, now), records)
    first_due = due[0].next_at if due and is_kept else now
    planned = changed.model_copy(update={"next_execution_time": occurrence_from(changed, first_due)})
    return Transition(complete_if_idle(start_next_backfill(planned, now), now), records)


def _is_same(before: Schedule, after: Schedule, due: DueRange) -> bool:
    """Return whether two schedules have the same occurrences in a range."""
    at = due.next_at - _TICK
    for _ in range(_MAX_COMPARED):
        old, new = before.next_after(at), after.next_after(at)
        if old is None or old > due.until:
            return new is None or new > due.until
        if old != new:
            return False
        at = old
    return False
