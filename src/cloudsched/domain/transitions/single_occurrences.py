"""Move or skip one occurrence of a task. All others stay, and so do its counts, its runs and its backfill."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cloudsched.domain.call_arguments import require_instant
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.documents.verbs import NEXT
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.lifecycle import continue_or_complete, require_status
from cloudsched.domain.transitions.overlap_and_catch_up import Missed, due_ranges, pass_over
from cloudsched.domain.transitions.planning import (
    earliest,
    occurrence_after,
    plan_distance,
    planned_schedule,
    upcoming_occurrences,
)
from cloudsched.errors import InvalidInput, InvalidSchedule, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.schedules.schedule import Schedule

_TICK = timedelta(microseconds=1)
_NAMED = 3
"""The next occurrences that an error names."""


def skip(task: Task, now: datetime, *, occurrence: datetime | str = NEXT) -> Commit:
    """Leave one occurrence out.

    Raises NotAllowed if the task runs once, and InvalidInput if there is no such occurrence.
    """
    at = find_occurrence(task, occurrence, "skip")
    if task.is_one_time:
        raise NotAllowed("skip", "about to run once", "Cancel it, or move that to another time.")
    changed = _change_schedule(task, "occurrence", lambda schedule: schedule.leave_out(at - plan_distance(task)))
    return _plan_again(task, changed, now, at, "It was skipped by hand.")


def move(
    task: Task, now: datetime, *, to: datetime | Callable[[datetime], datetime], occurrence: datetime | str = NEXT
) -> Commit:
    """Run one occurrence at another time: at an instant, or at what a reader of words returns for it.

    Raises InvalidInput if there is no such occurrence, or the task cannot run at that time.
    """
    at = find_occurrence(task, occurrence, "move")
    new = (to(at) if callable(to) else require_instant("to", to)).astimezone(UTC).replace(microsecond=0)
    if new == at:
        return Commit(task)
    if new <= now:
        raise InvalidInput("to", "is in the past", "Give a later time, or run the task now.")
    if task.until is not None and new > task.until:
        raise InvalidInput("to", f"is after the task's end, {task.until.isoformat()}", "Give it a later end first.")
    changed = _change_schedule(task, "to", lambda schedule: schedule.move_occurrence(at - plan_distance(task), new))
    return _plan_again(task, changed, now, at, f"It was moved to {new.isoformat()}.")


def find_occurrence(task: Task, named: datetime | str, action: str) -> datetime:
    """Return a coming occurrence of an active task by its name: its instant, or "next"."""
    require_status(task, action, TaskStatus.ACTIVE)
    following = task.next_execution_time
    if following is None:
        raise NotAllowed(action, "without an occurrence to come", "Give it a new schedule.")
    if named == NEXT:
        return following
    at = _read(named)
    schedule = planned_schedule(task)
    if at < following or not schedule.occurs(at) or (task.until is not None and at > task.until):
        zone = load_tzinfo(task.timezone)
        shown = ", ".join(each.astimezone(zone).isoformat() for each in upcoming_occurrences(task, _NAMED))
        raise InvalidInput("occurrence", "is not one of its occurrences to come", f"The next ones are {shown}.")
    return at


def _read(named: datetime | str) -> datetime:
    try:
        at = datetime.fromisoformat(named) if isinstance(named, str) else named
    except ValueError:
        hint = f'Give "{NEXT}", or the instant of one: 2027-01-01T09:00:00Z.'
        raise InvalidInput("occurrence", f"is {str(named)[:60]!r}, which names none", hint) from None
    return require_instant("occurrence", at)


def _change_schedule(task: Task, field: str, change: Callable[[Schedule], Schedule]) -> Task:
    try:
        schedule = change(task.schedule)
    except InvalidSchedule as error:
        raise InvalidInput(field, error.problem, error.hint) from error
    changes: dict[str, Any] = {"schedule": schedule, "is_one_time": schedule.is_one_time}
    return task.model_copy(update={**changes, "revision": task.revision + 1})


def _plan_again(task: Task, changed: Task, now: datetime, gone: datetime, why: str) -> Commit:
    """Return the task with the plan of its changed schedule, and a record of an occurrence that had come due."""
    records: tuple[Execution, ...] = ()
    following = occurrence_after(changed, earliest(now, task.next_execution_time) - _TICK)
    planned = changed.model_copy(update={"next_execution_time": following})
    if gone <= now and not task.is_one_time:
        missed = Missed(gone, gone, ExecutionStatus.SKIPPED, why)
        planned, records = pass_over(planned, [missed], now, due_ranges(planned, now))
    return Commit(continue_or_complete(planned, now), executions=records)
