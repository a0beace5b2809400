"""Plan a task again whose schedule follows its owner, after the owner's time zone has changed.

An occurrence is named by its local time, and keeps that name: what has run of the local times is not run again, and
what has not is due when its local time comes in the new zone. If the clock has passed it, it is due at once. So the
marks of the plan move with their local times. Rules of elapsed time have no local times to move: their plan is made
anew, as after a change of a calendar.

The runs that have started, and those that wait for another attempt or for a worker, stay.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.task import Action, DueRange, Journey, TaskStatus
from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH, utc_seconds
from cloudsched.domain.recurrence.time_zones import load_zone
from cloudsched.domain.recurrence.wall_clock import wall_clock
from cloudsched.domain.transitions.backlog import note_left_out
from cloudsched.domain.transitions.history import with_entry
from cloudsched.domain.transitions.lifecycle import Transition, complete_if_idle, start_next_backfill, with_changes
from cloudsched.domain.transitions.planning import find_past_start, occurrence_from
from cloudsched.domain.transitions.replan import replan
from cloudsched.domain.transitions.zone_plans import plan_distance

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule

_SECOND = timedelta(seconds=1)
_TICK = timedelta(microseconds=1)
_WHY = "Its owner's time zone changed before it started."


def follow_owner(task: Task, zone: str, now: datetime) -> Transition:
    """Return the task planned in its owner's zone; unchanged if it is, or follows nobody."""
    schedule = task.schedule
    if not schedule.follows_owner or schedule.timezone == zone or task.deleted_at is not None:
        return Transition(task)
    moved = schedule.moved_to(zone)
    if schedule.has_elapsed_rules:
        replanned = replan(task, moved, now, _WHY)
        return replace(replanned, task=_with_move(task, replanned.task, now))
    has_ended = task.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED}
    noted, records = note_left_out(task, now)
    changed = noted.model_copy(update=_move_marks(noted, moved, now))
    if has_ended:
        return Transition(with_changes(changed, now), records)
    changed = _with_move(task, changed.model_copy(update={"revision": task.revision + 1}), now)
    if task.status is TaskStatus.PAUSED:
        return Transition(with_changes(changed, now), records)
    return Transition(complete_if_idle(start_next_backfill(changed, now), now), records)


def _with_move(before: Task, moved: Task, now: datetime) -> Task:
    """Return a task that has moved with a note of it in its history."""
    reason = f"followed its owner from {before.timezone} to {moved.timezone}"
    return with_entry(before, moved, Action.MOVED, None, now, reason=reason)


def _move_marks(task: Task, moved: Schedule, now: datetime) -> dict[str, Any]:
    """Return the task's fields with the instants of its plan moved with their local times."""

    def move(at: datetime | None) -> datetime | None:
        return None if at is None else _same_local_time(task, moved, at, max)

    def move_all(ranges: tuple[Any, ...]) -> tuple[Any, ...]:
        bounds = ((each, move(each.next_at), move(each.until)) for each in ranges)
        return tuple(each.model_copy(update={"next_at": first, "until": last}) for each, first, last in bounds)

    fields: dict[str, Any] = {
        "schedule": moved,
        "timezone": moved.timezone,
        "zone_plan": None,
        "planned_to": move(task.planned_to),
        "earlier_planned_to": move(task.earlier_planned_to),
        "plan_from": move(task.plan_from),
        "left_out_from": move(task.left_out_from),
        "backlog": move_all(task.backlog),
        "backfill": None if task.backfill is None else move_all((task.backfill,))[0],
        "first_at": task.first_at and find_past_start(moved, now),
    }
    following = task.next_execution_time
    if following is not None:
        first = _same_local_time(task, moved, following, min)
        if (mark := fields["planned_to"]) is not None and mark >= first:
            fields |= _pass_mark(fields, moved, first, mark)
        fields["next_execution_time"] = occurrence_from(task.model_copy(update=fields), first)
    return {**fields, "journey": _find_journey(task, fields, now)}


def _pass_mark(fields: dict[str, Any], moved: Schedule, first: datetime, mark: datetime) -> dict[str, Any]:
    """Return the fields of a plan whose next local time comes before one that has run.

    It does where a gap shifts the one that has run: what comes before that is still to run, and that is not.
    """
    before = {"planned_to": first - _TICK}
    if fields["backlog"]:
        return before
    last = max((*moved.between(first, mark), first))
    plan_from = max(mark + _TICK, fields["plan_from"] or mark)
    return {**before, "backlog": (DueRange(next_at=first, until=last),), "plan_from": plan_from}


def _find_journey(task: Task, fields: dict[str, Any], now: datetime) -> Journey | None:
    """Return what says since when the occurrences are due that are due now; None if none is."""
    first = fields["backlog"][0].next_at if fields["backlog"] else fields.get("next_execution_time")
    if first is None or first > now:
        return None
    shift = _offset_at(fields["timezone"], now) - _offset_at(task.timezone, now)
    waited = task.next_execution_time if not task.backlog else task.backlog[0].next_at
    if task.journey is not None and waited is not None and waited <= task.journey.at:
        return Journey(at=now, shift=shift + task.journey.shift)
    return Journey(at=now, shift=shift)


def _same_local_time(task: Task, after: Schedule, at: datetime, pick: Callable[[tuple[int, ...]], int]) -> datetime:
    """Return the instant that has the same local time in another zone; of several, the one that is picked.

    The local time is that by which the task was planned, which this process's data may not have.
    """
    seconds = utc_seconds(at)
    offset = None if task.zone_plan is None else task.zone_plan.offset_at(seconds)
    if offset is None:
        offset = (
            load_zone(task.timezone).offset_at(utc_seconds(at - plan_distance(task))) - plan_distance(task) // _SECOND
        )
    wall = seconds + offset
    there = pick(wall_clock(after.timezone, "shift", after.fold).instants(wall))
    return UTC_EPOCH + timedelta(seconds=there) + (at - UTC_EPOCH - timedelta(seconds=seconds))


def _offset_at(zone: str, at: datetime) -> timedelta:
    return timedelta(seconds=load_zone(zone).offset_at(utc_seconds(at)))
