"""Runs that a caller asks for: one now, or those of a past range again. Each request has ids of its own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import Run, Trigger
from cloudsched.domain.documents.task import Backfill, Task, TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.growth import require_payload_room
from cloudsched.domain.transitions.lifecycle import start_next_backfill, with_changes
from cloudsched.domain.transitions.planning import requested_id
from cloudsched.domain.transitions.request_marks import RequestMark, choose_instant
from cloudsched.domain.transitions.requirements import require_backfillable, require_snoozable, require_triggerable
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from cloudsched.domain.documents.authority import Requesters


MAX_SNOOZE: Final = timedelta(days=30)
SAME_SNOOZE: Final = timedelta(minutes=1)
"""The longest time between two snoozes that are one: a second click."""


def find_triggered(task: Task, mark: RequestMark) -> str | None:
    """Return the execution that a trigger has asked for, if the task remembers it."""
    found = mark.find(task)
    return None if found is None or found.at is None else requested_id(found.at, Trigger.MANUAL, found.at)


def trigger(task: Task, now: datetime, payload: dict[str, Any] | None = None, *, author: Requesters | None) -> Commit:
    """Run the task now, once, without changing its plan: with a payload of this run's own, if `author` gives one.

    Raises NotAllowed if the task is not active, or has too many open runs.
    """
    require_triggerable(task)
    at = choose_instant(task, now)
    run = Run(
        execution_id=requested_id(at, Trigger.MANUAL, at),
        scheduled_for=at,
        trigger=Trigger.MANUAL,
        due_at=now,
        payload=payload,
        defined_by=None if payload is None else author,
    )
    triggered = with_changes(task, now, runs=task.runs_with(run))
    require_payload_room(triggered)
    return Commit(triggered)


def snooze(task: Task, now: datetime, until: datetime) -> Commit:
    """Repeat the last run at `until`, without changing the plan: its occurrences until then run, too.

    A task has one snooze at most that waits: another one moves it, and one for the same minute changes nothing, so a
    second click does not run it twice. A task that has ended is active again until that run is over. Raises NotAllowed
    if nothing of it has run, it is paused or cancelled, or it has too many open runs.
    """
    require_snoozable(task)
    if not now < until <= now + MAX_SNOOZE:
        problem = "is not later than now" if until <= now else f"is longer than {MAX_SNOOZE.days} days"
        raise InvalidInput("duration", problem, "Give up to 30 days, such as PT10M or 10 minutes.")
    waiting = next((run for run in task.runs if run.is_waiting_snooze), None)
    if waiting is not None and abs(waiting.due_at - until) < SAME_SNOOZE:
        return Commit(task)
    begun = [run for run in task.runs if run.started_at is not None]
    latest = max(begun, key=lambda run: run.scheduled_for).execution_id if begun else task.last_execution_id
    fresh = Run(
        execution_id=requested_id(until, Trigger.SNOOZE, choose_instant(task, now)),
        scheduled_for=until,
        trigger=Trigger.SNOOZE,
        due_at=until,
        note=f"{latest} again, since it was snoozed.",
    )
    moved = {"scheduled_for": until, "due_at": until, "note": fresh.note, "waiting_for": None, "lock_grant_until": None}
    run = fresh if waiting is None else waiting.model_copy(update=moved)
    message = task.message if task.is_active else "Snoozed."
    changes = {"status": TaskStatus.ACTIVE, "message": message}
    return Commit(with_changes(task, now, runs=task.runs_with(run), **changes))


def backfill(task: Task, start: datetime, end: datetime, now: datetime) -> Commit:
    """Run the past occurrences from `start` to `end` (both included), one after the other."""
    require_backfillable(task)
    if end > now:
        raise InvalidInput("end", "lies in the future", "A backfill runs occurrences of the past.")
    if end < start:
        raise InvalidInput("end", "is before start", "Give the earlier instant as start.")
    first = task.schedule.next_after(start - timedelta(microseconds=1))
    if first is None or first > end:
        raise InvalidInput("start", "has no occurrence up to end", "Widen the range.")
    asked = Backfill(requested_at=choose_instant(task, now), next_at=first, until=end)
    return Commit(start_next_backfill(with_changes(task, now, backfill=asked), now))
