"""What the invariants ask of two schedules of a task."""

from __future__ import annotations

from datetime import datetime

from cloudsched import Execution, Schedule, Task
from cloudsched.domain.transitions.planning import occurrence_after


def list_due(task: Task, now: datetime) -> list[datetime]:
    """Return the unclaimed occurrences of an ACTIVE task that came due, found by a walk. Their jitter may go on."""
    due: list[datetime] = []
    occurrence = task.next_execution_time
    while occurrence is not None and occurrence <= now:
        due.append(occurrence)
        occurrence = occurrence_after(task, occurrence)
    return due


def covers(record: Execution, occurrence: datetime) -> bool:
    """Return whether an occurrence is among several that a record is of."""
    return record.covers is not None and record.scheduled_for <= occurrence <= record.covers.until


def without_calendars(schedule: Schedule) -> Schedule:
    return schedule.model_copy(update={"calendars": (), "business_day": None})


def is_same_plan(before: Schedule, after: Schedule) -> bool:
    """Whether two schedules differ at most in the days of their calendars, and in where their owner is."""

    def strip(schedule: Schedule) -> Schedule:
        zone = {"timezone": "UTC", "start_zone": None} if schedule.follows_owner else {}
        return schedule.copy_unchecked(calendars=tuple(each.with_content("") for each in schedule.calendars), **zone)

    return before == after or strip(before) == strip(after)
