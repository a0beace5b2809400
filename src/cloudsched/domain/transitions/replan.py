"""Plan a task again, with newer time zone data, another schedule, or another zone of its owner.

With newer time zone data (`replan_zone`), each instant of the plan is read on the clock that the task was
planned with, and found again on the clock of the data in use. So an occurrence that ran at 09:00 still has
run at 09:00, whatever instant that is now, and the next ones are at 09:00:

* The next occurrence is the one that was planned, at its new instant, or one that is new before it, such as
  a time that a gap no longer skips. A new one must lie ahead by at least the minimum lead.
* If the instant has passed, it is late, and `catch_up` and `expiration` decide as they do for any other. If
  a gap skips the time now, the schedule's ``gap`` decides.
* Two times that meet at one instant now are one occurrence: if one of them has run, so has the other.
* Elapsed hours, and dates that were given as instants, stay where they are, unless the hours count from a
  DTSTART whose own instant has moved. Local times of the same schedule may move past them, and each still
  runs once.

The revision stays: nobody has changed the task. Its dispatches are sent again, since they are named for
their instant.

When what the schedule reads from records has changed (`replan`), the runs that have started, and those that
wait for another attempt or for a worker, stay. So do due occurrences, if the changed schedule has them as
well. Otherwise they are recorded as SKIPPED. A run is not undone: an occurrence that ran on Friday because
Monday was a holiday runs on Monday too, if Monday no longer is one.

When the owner's time zone has changed (`follow_owner`), an occurrence is named by its local time, and keeps
that name: a local time that has run is not run again, and one that has not is due when it comes in the new
zone. If the clock has passed it, it is due at once. So the marks of the plan move with their local times.
Rules of elapsed time have no local times to move: their plan is made anew, as after a change of the
schedule. Open runs stay.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import DueRange, Task, TaskStatus, ZoneChange, ZonePlan
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.iso8601 import EPOCH, UTC_EPOCH, utc_seconds
from cloudsched.domain.recurrence.time_zones import load_zone
from cloudsched.domain.recurrence.wall_clock import wall_clock
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.history import with_entry
from cloudsched.domain.transitions.lifecycle import continue_or_complete, with_changes
from cloudsched.domain.transitions.overlap_and_catch_up import end_plan
from cloudsched.domain.transitions.planning import (
    begin_plan,
    can_replan,
    find_past_start,
    latest,
    occurrence_after,
    occurrence_from,
    plan_distance,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.schedules.schedule import Schedule

_TICK: Final = timedelta(microseconds=1)
_MAX_SHIFT: Final = timedelta(hours=26)
"""No clock has ever been moved further."""
_MAX_LISTED: Final = 1000
"""The most occurrences that are looked at where local times have moved past instants."""


def replan_zone(task: Task, now: datetime, lead: timedelta = timedelta(0)) -> Commit:
    """Return the task planned with the data in use.

    It is unchanged if it was planned with these or newer ones.

    An occurrence that comes before the planned one is ahead by at least `lead`.
    """
    plan = task.zone_plan
    if plan is None or task.deleted_at is not None or not can_replan(task):
        return Commit(task)
    moved = _move(task, plan)
    planned = task.next_execution_time
    if task.status is not TaskStatus.ACTIVE or planned is None:
        return Commit(with_changes(moved, now))
    if task.schedule.is_mixed and not task.backlog:
        moved = _merge_kinds(task, moved, plan, planned)
        following = moved.next_execution_time
    else:
        following = _find_next(moved, _mover(task, plan)(planned), now, lead)
        moved = moved.model_copy(update={"next_execution_time": following})
    if following != planned:
        moved = with_entry(
            task,
            moved,
            Action.MOVED,
            None,
            now,
            reason=_explain(task, plan, planned, following),
        )
    return Commit(continue_or_complete(with_changes(moved, now), now))


def _find_next(task: Task, planned: datetime, now: datetime, lead: timedelta) -> datetime | None:
    """Return the first occurrence that is not before the planned one, or one that is new before that."""
    following = occurrence_from(task, planned)
    new = occurrence_after(task, now + lead)
    if new is not None and (following is None or new < following):
        return new
    return following


def _merge_kinds(task: Task, moved: Task, plan: ZonePlan, planned: datetime) -> Task:
    """Plan a mixed task again: its local times have moved past instants that stay, or the reverse.

    Between the next local time and the next instant, those of one kind have been processed, and those of
    the other have not. These become its backlog, and the plan goes on behind both.
    """
    schedule = moved.schedule
    following = next((at for at in plan.clock[::2] if at >= utc_seconds(planned)), None)
    local = planned + _MAX_SHIFT
    if following is not None:
        local = _mover(task, plan)(UTC_EPOCH + timedelta(seconds=following))
    start, end = min(local, planned), max(local, planned)
    done = set(_list_kind(schedule, start, end, is_local=local > planned))
    waiting = set(_list_kind(schedule, start, end, is_local=local < planned)) - done
    groups = [(is_done, [*group]) for is_done, group in groupby(sorted(done | waiting), key=done.__contains__)]
    ranges = tuple(DueRange(next_at=group[0], until=group[-1]) for is_done, group in groups if not is_done)
    following_at = ranges[0].next_at if ranges else schedule.next_after(end - _TICK)
    fields: dict[str, Any] = {"next_execution_time": following_at}
    if moved.planned_to is not None and following_at is not None:
        fields["planned_to"] = _find_last_before(schedule, following_at, moved.planned_to)
    if ranges and done and max(done) > ranges[0].next_at:
        last = max(done)
        plan_from = last + _TICK
        fields["backlog"] = tuple(each for each in ranges if each.next_at < last)
        fields["plan_from"] = latest(plan_from, moved.plan_from)
    return moved.model_copy(update=fields)


def _list_kind(schedule: Schedule, start: datetime, end: datetime, *, is_local: bool) -> list[datetime]:
    found = list[datetime]()
    at = schedule.find_next_of_kind(start - _TICK, is_local=is_local)
    while at is not None and at < end and len(found) < _MAX_LISTED:
        found.append(at)
        at = schedule.find_next_of_kind(at, is_local=is_local)
    return found


def _find_last_before(schedule: Schedule, following: datetime, planned_to: datetime) -> datetime:
    """Return the last occurrence before the next one: whichever kind it is, it has been processed."""
    last = planned_to if planned_to < following else following - _MAX_SHIFT
    for _ in range(_MAX_LISTED):
        at = schedule.next_after(last)
        if at is None or at >= following:
            return last
        last = at
    return following - _TICK


def _mover(task: Task, plan: ZonePlan) -> Callable[[datetime], datetime]:
    """Return a function that finds an instant of the plan again on the clock of the data in use."""

    def move(at: datetime) -> datetime:
        offset = plan.offset_at(utc_seconds(at))
        if offset is None:
            return at
        return task.schedule.find_clock(utc_seconds(at) + offset, offset, at)

    return move


def _move(task: Task, plan: ZonePlan) -> Task:
    """Return the task with all but its next occurrence at their instants in the data in use."""
    move = _mover(task, plan)

    def move_range(each: DueRange) -> DueRange:
        return each.model_copy(update={"next_at": move(each.next_at), "until": move(each.until)})

    backfill = task.backfill
    plan_from = task.plan_from
    return task.model_copy(
        update={
            "schedule": task.schedule.relocate(),
            "planned_to": task.planned_to and move(task.planned_to),
            "earlier_planned_to": task.earlier_planned_to and move(task.earlier_planned_to),
            "backlog": tuple(map(move_range, task.backlog)),
            "backfill": backfill and backfill.model_copy(update={"next_at": move(backfill.next_at)}),
            "plan_from": plan_from and move(plan_from - _TICK) + _TICK,
            "zone_plan": None,
        }
    )


def _explain(task: Task, plan: ZonePlan, planned: datetime, following: datetime | None) -> str:
    """Return why the next occurrence moved: ``moved by tzdata 2026c: 09:00 is 15:00 UTC, not 14:00 UTC``."""
    release = f"tzdata {time_zones.in_use.release}"
    offset = plan.offset_at(utc_seconds(planned))
    if following is None:
        return f"ended by {release}: its clock never shows the rest of its times"
    read = task.schedule.relocate().read_clock(following)
    if offset is None or read is None:
        return f"planned again with {release}: next at {following:%Y-%m-%d %H:%M} UTC, not {planned:%Y-%m-%d %H:%M} UTC"
    shown = EPOCH + timedelta(seconds=read[0])
    if read[0] != utc_seconds(planned) + offset:
        return f"planned again with {release}: {shown:%Y-%m-%d %H:%M} comes first, at {following:%H:%M} UTC"
    return f"moved by {release}: {shown:%H:%M} is {following:%H:%M} UTC, not {planned:%H:%M} UTC, from {shown:%Y-%m-%d}"


def replan(task: Task, schedule: Schedule, now: datetime, why: str) -> Commit:
    """Return the task planned with a changed schedule.

    What came due and is not part of it is SKIPPED, with `why`.

    A task that has ended only gets the schedule: an edit may open it again. Past runs must not be left
    out then.
    """
    new_schedule = {"schedule": schedule, "timezone": schedule.timezone}
    if task.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED}:
        return Commit(with_changes(task.model_copy(update=new_schedule), now))
    ended, records = end_plan(
        task,
        now,
        ExecutionStatus.SKIPPED,
        why,
        successor=task.model_copy(update=new_schedule),
    )
    changed = ended.model_copy(update={**new_schedule, "revision": task.revision + 1})
    if task.status is TaskStatus.PAUSED:
        return Commit(with_changes(changed, now), executions=records)
    first = occurrence_from(changed, changed.backlog[0].next_at if changed.backlog else now)
    planned = changed.model_copy(
        update={"next_execution_time": first, **begin_plan(changed, now + _TICK, first)},
    )
    return Commit(continue_or_complete(planned, now), executions=records)


_SECOND = timedelta(seconds=1)
_ZONE_CHANGED = "Its owner's time zone changed before it started."


def follow_owner(task: Task, zone: str, now: datetime) -> Commit:
    """Return the task planned in its owner's zone.

    It is unchanged if it is already, or if it follows nobody.
    """
    schedule = task.schedule
    if not schedule.follows_owner or schedule.timezone == zone or task.deleted_at is not None:
        return Commit(task)
    moved = schedule.move_to(zone)
    if schedule.has_elapsed_rules:
        replanned = replan(task, moved, now, _ZONE_CHANGED)
        return replace(replanned, task=_with_move(task, replanned.task, now))
    has_ended = task.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED}
    changed = task.model_copy(update=_move_marks(task, moved, now))
    if has_ended:
        return Commit(with_changes(changed, now))
    changed = _with_move(task, changed.model_copy(update={"revision": task.revision + 1}), now)
    if task.status is TaskStatus.PAUSED:
        return Commit(with_changes(changed, now))
    return Commit(continue_or_complete(changed, now))


def _with_move(before: Task, moved: Task, now: datetime) -> Task:
    reason = f"followed its owner from {before.timezone} to {moved.timezone}"
    return with_entry(before, moved, Action.MOVED, None, now, reason=reason)


def _move_marks(task: Task, moved: Schedule, now: datetime) -> dict[str, Any]:

    def move(at: datetime | None) -> datetime | None:
        return at and _same_local_time(task, moved, at, max)

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
        "backlog": move_all(task.backlog),
        "backfill": task.backfill and move_all((task.backfill,))[0],
        "first_at": task.first_at and find_past_start(moved, now),
    }
    following = task.next_execution_time
    if following is not None:
        first = _same_local_time(task, moved, following, min)
        if (mark := fields["planned_to"]) is not None and mark >= first:
            fields |= _pass_mark(fields, moved, first, mark)
        fields["next_execution_time"] = occurrence_from(task.model_copy(update=fields), first)
    return {**fields, "zone_change": _find_zone_change(task, fields, now)}


def _pass_mark(fields: dict[str, Any], moved: Schedule, first: datetime, mark: datetime) -> dict[str, Any]:
    """Return the fields of a plan whose next local time comes before one that has run.

    That happens if a gap shifts the one that has run. The times before it are still to run, and it is not.
    """
    before = {"planned_to": first - _TICK}
    if fields["backlog"]:
        return before
    last = max((*moved.between(first, mark), first))
    plan_from = max(mark + _TICK, fields["plan_from"] or mark)
    return {**before, "backlog": (DueRange(next_at=first, until=last),), "plan_from": plan_from}


def _find_zone_change(task: Task, fields: dict[str, Any], now: datetime) -> ZoneChange | None:
    """Return since when the due occurrences have been due in the new zone, or None if none is due."""
    first = fields["backlog"][0].next_at if fields["backlog"] else fields.get("next_execution_time")
    if first is None or first > now:
        return None
    shift = _offset_at(fields["timezone"], now) - _offset_at(task.timezone, now)
    waited = task.backlog[0].next_at if task.backlog else task.next_execution_time
    if task.zone_change is not None and waited is not None and waited <= task.zone_change.at:
        return ZoneChange(at=now, shift=shift + task.zone_change.shift)
    return ZoneChange(at=now, shift=shift)


def _same_local_time(
    task: Task,
    after: Schedule,
    at: datetime,
    pick: Callable[[tuple[int, ...]], int],
) -> datetime:
    """Return the instant that has the same local time in another zone. Of several, `pick` chooses one.

    The local time is that by which the task was planned, which this process's data may not have.
    """
    seconds = utc_seconds(at)
    offset = None if task.zone_plan is None else task.zone_plan.offset_at(seconds)
    if offset is None:
        distance = plan_distance(task)
        offset = load_zone(task.timezone).offset_at(utc_seconds(at - distance)) - distance // _SECOND
    wall = seconds + offset
    there = pick(wall_clock(after.timezone, "SHIFT", after.fold).instants(wall))
    return UTC_EPOCH + timedelta(seconds=there) + (at - UTC_EPOCH - timedelta(seconds=seconds))


def _offset_at(zone: str, at: datetime) -> timedelta:
    return timedelta(seconds=load_zone(zone).offset_at(utc_seconds(at)))
