"""The next occurrences of a task, and when each starts.

An occurrence has an id derived from its local time (`occurrence_id`), so every retry, duplicate and repair refers to
the same one, whatever the time zone data say. `wakeups` derives from them when the executor is woken.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.policy import Overlap
from cloudsched.domain.documents.task import MAX_OPEN_RUNS, BudgetPause, Task, TaskStatus
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.zone_plans import occurrence_id, planned_schedule, stamp

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Trigger
    from cloudsched.domain.schedules.schedule import Schedule

_TICK = timedelta(microseconds=1)


def requested_id(scheduled_for: datetime, trigger: Trigger, requested_at: datetime | None) -> str:
    """Return the id of a manual or backfill execution. `occurrence_id` is that of a scheduled one.

    It has the instant of the request, too, since an occurrence may be requested again.
    """
    if requested_at is None:
        raise ValueError(f"the id of a {trigger} execution needs the instant of the request")
    again = "" if requested_at == scheduled_for else f"-{stamp(requested_at)}"
    return f"{stamp(scheduled_for)}-{trigger.lower()}{again}"


def start_time(task: Task, occurrence: datetime) -> datetime:
    """Return when the occurrence starts: its instant, plus a part of the task's jitter that is fixed for it.

    An occurrence that was due when its owner changed the time zone is due since the same instant as before.
    """
    begin = occurrence if task.zone_change is None else task.zone_change.due_since(occurrence)
    if not task.jitter:
        return begin
    digest = hashlib.sha256(f"{task.id} {occurrence_id(task, occurrence)}".encode()).digest()
    return add_duration(begin, task.jitter * (int.from_bytes(digest[:8]) / 2**64))


def occurrence_after(task: Task, instant: datetime) -> datetime | None:
    """Return the task's first occurrence later than `instant`. None if its schedule, `until` or `max_runs` ends before.

    Occurrences up to `planned_to` are left out, so that an edit at that very instant cannot run one of them again.
    Occurrences from before a pause come first (`backlog`), and none in between (`plan_from`).
    """
    if task.max_runs is not None and task.run_count >= task.max_runs:
        return None
    earlier = instant if task.planned_to is None else max(instant, task.planned_to)
    schedule = task.schedule if task.zone_plan is None else planned_schedule(task)
    for due in task.backlog:
        occurrence = schedule.next_after(max(earlier, due.next_at - _TICK)) if earlier < due.until else None
        if occurrence is not None and occurrence <= due.until:
            break
    else:
        occurrence = schedule.next_after(earlier if task.plan_from is None else max(earlier, task.plan_from - _TICK))
    if occurrence is None or (task.until is not None and occurrence > task.until):
        return None
    return occurrence


def find_past_start(schedule: Schedule, now: datetime) -> datetime | None:
    """Return the first occurrence of a recurring schedule if it is past. See `Task.first_at`."""
    first = schedule.first()
    return first if first is not None and first <= now and not schedule.is_one_time else None


def occurrence_from(task: Task, instant: datetime) -> datetime | None:
    """Return the task's first occurrence at or after `instant`."""
    return occurrence_after(task, instant - _TICK)


def upcoming_occurrences(task: Task, count: int) -> list[datetime]:
    """Return the task's next unclaimed occurrences, at most `count`."""
    upcoming: list[datetime] = []
    occurrence = task.next_execution_time
    while occurrence is not None and len(upcoming) < count:
        upcoming.append(occurrence)
        occurrence = occurrence_after(task, occurrence)
    return upcoming if task.max_runs is None else upcoming[: max(0, task.max_runs - task.run_count)]


def waits_for_open_run(task: Task) -> bool:
    """Return whether ``overlap`` lets the next occurrence start only once an open run of its task has ended."""
    return bool(task.runs) and task.overlap is not Overlap.ALLOW and task.holds_back_schedule


def is_held_back(task: Task) -> bool:
    """Return whether the next occurrence, even if it is due, starts only once an open run of its task has ended."""
    return waits_for_open_run(task) or len(task.runs) >= MAX_OPEN_RUNS


def find_budget_pause(task: Task) -> BudgetPause | None:
    """Return the pause of a task because its owner's budget is used up, if it still holds."""
    held = task.budget_pause
    is_held = held is not None and task.status is TaskStatus.PAUSED and held.at >= task.status_changed_at
    return held if is_held else None
