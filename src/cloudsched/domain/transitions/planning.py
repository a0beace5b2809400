"""The plan of a task: its next occurrences, their starts and their names, whatever the time zone data say.

Governments change clocks, and each process has the data of some release. So an occurrence is known by its
wall-clock time, its zone and, of a time that comes twice, which of the two it is. Every retry, duplicate
and repair refers to it by that (`occurrence_id`). Its instant follows from the data. `wakeups` derives from
it when the executor is woken.

A plan is *own* if this process's data have the same clock changes for the task's zone as those it was
planned with. All else is a plan of other data, with these rules:

* Its plan stays: the next occurrence keeps its instant and its name.
* Later occurrences are planned at the same distance from this process's own data at which the next one
  already is. So a process with older data neither moves a task back nor runs it early, and one whose data
  do not know the zone keeps to the offset that was known last. It marks the plan as stale.
* A process with newer data plans again (`replan_zone`), as soon as it has anything to do with the task.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.policy import CatchUpMode, Overlap
from cloudsched.domain.documents.task import MAX_OPEN_RUNS, Hold, Task, ZonePlan
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.iso8601 import EPOCH, UTC_EPOCH, add_duration, utc_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.execution import Trigger
    from cloudsched.domain.schedules.schedule import Schedule

_NONE: Final = timedelta(0)
_TICK: Final = timedelta(microseconds=1)


def latest(instant: datetime, other: datetime | None) -> datetime:
    """Return the later of two instants. The other may be None."""
    return max(instant, other or instant)


def earliest(instant: datetime, other: datetime | None) -> datetime:
    """Return the earlier of two instants. The other may be None."""
    return min(instant, other or instant)


def due_since(task: Task, occurrence: datetime) -> datetime:
    """Return when the occurrence comes due.

    One that was due when its owner changed the time zone is due since the same instant as before.
    """
    return occurrence if task.zone_change is None else task.zone_change.due_since(occurrence)


def jittered_start(task: Task, occurrence: datetime) -> datetime:
    """Return when the occurrence starts: when it is due, plus its own fixed part of the task's jitter."""
    begin = due_since(task, occurrence)
    if not task.jitter:
        return begin
    digest = hashlib.sha256(f"{task.id} {occurrence_id(task, occurrence)}".encode()).digest()
    return add_duration(begin, task.jitter * (int.from_bytes(digest[:8]) / 2**64))


def find_tolerance(task: Task) -> timedelta:
    """Return the greatest lateness at which an occurrence still runs."""
    least = timedelta(minutes=1) if task.catch_up.mode is CatchUpMode.NONE else timedelta.max
    return min(task.catch_up.window or least, task.expiration or timedelta.max)


def occurrence_after(task: Task, instant: datetime) -> datetime | None:
    """Return the task's first occurrence later than `instant`.

    None if its schedule, `until` or `max_runs` ends before.

    Occurrences up to `planned_to` are left out, so that an edit at that very instant cannot run one of
    them again. Occurrences from before a pause come first (`backlog`), and none in between (`plan_from`).
    """
    if task.max_runs is not None and task.run_count >= task.max_runs:
        return None
    earlier = instant if task.planned_to is None else max(instant, task.planned_to)
    schedule = task.schedule if task.zone_plan is None else planned_schedule(task)
    for due in task.backlog:
        if earlier < due.until:
            occurrence = schedule.next_after(max(earlier, due.next_at - _TICK))
            if occurrence is not None and occurrence <= due.until:
                break
    else:
        if task.plan_from is not None:
            earlier = max(earlier, task.plan_from - _TICK)
        occurrence = schedule.next_after(earlier)
    if occurrence is None or (task.until is not None and occurrence > task.until):
        return None
    return occurrence


def begin_plan(task: Task, since: datetime, first: datetime | None = None) -> dict[str, Any]:
    """Return the changes with which a plan begins at an instant, or at its first occurrence if that is earlier.

    Only adjusted schedules need them: what was left out before was not of the plan, and gets no record.
    """
    if not task.schedule.calendars:
        return {}
    return {"plan_from": latest(earliest(since, first), task.plan_from)}


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
    """Return whether the next occurrence has to wait for an open run to end, as ``overlap`` says."""
    if task.overlap is not Overlap.ALLOW:
        for run in task.runs:
            if not run.is_waiting_repeat:
                return True
    return False


def is_held_back(task: Task) -> bool:
    """Return whether the next occurrence, even if it is due, has to wait for an open run to end."""
    return waits_for_open_run(task) or len(task.runs) >= MAX_OPEN_RUNS


def find_sole_hold(task: Task) -> Hold | None:
    """Return that pause if nobody else has paused the task, too."""
    hold = task.present_hold
    return hold if hold is not None and hold.is_alone else None


def occurrence_id(task: Task, occurrence: datetime) -> str:
    """Return the id of the execution of a scheduled occurrence: the same with any time zone data.

    It is the wall-clock time and the zone, such as ``20270324T090000-America.Mexico_City``. ``owner`` is
    the zone of its owner, and ``-2`` behind the time says that it is the second of two. If no zone moves
    the schedule, the id is the instant, such as ``20270324T150000Z``.
    """
    if task.timezone == "UTC" and not task.schedule.follows_owner:
        return stamp(occurrence)
    plan = task.zone_plan
    if plan is None or is_own(task):
        return name_occurrence(task.schedule, occurrence)
    if occurrence == task.next_execution_time:
        offset = plan.offset_at(utc_seconds(occurrence))
        if offset is not None:
            return _to_name(utc_seconds(occurrence) + offset, task.schedule, is_second=plan.is_second)
    return name_occurrence(task.schedule, occurrence, plan_distance(task))


def name_occurrence(schedule: Schedule, occurrence: datetime, distance: timedelta = _NONE) -> str:
    """Return the id of an occurrence's execution, in a plan that far from this process's data."""
    if not schedule.follows_zone and not schedule.follows_owner:
        return stamp(occurrence)
    read = schedule.read_clock(occurrence - distance)
    return stamp(occurrence) if read is None else _to_name(read[0], schedule, is_second=read[1])


@lru_cache(maxsize=1000)  # an occurrence has its id three times
def stamp(instant: datetime) -> str:
    """Return an instant as ids have it."""
    return instant.astimezone(UTC).isoformat()[:-6].translate(_BASIC_FORMAT) + "Z"


_BASIC_FORMAT: Final = str.maketrans("", "", "-:")


def _to_name(wall: int, schedule: Schedule, *, is_second: bool) -> str:
    return _write_name(wall, "owner" if schedule.follows_owner else schedule.timezone, is_second)


@lru_cache(maxsize=1000)
def _write_name(wall: int, zone: str, is_second: bool) -> str:  # noqa: FBT001 -- the key of a cache
    zone = zone.replace("/", ".")
    shown = (EPOCH + timedelta(seconds=wall)).isoformat().translate(_BASIC_FORMAT)
    return f"{shown[:15]}{'-2' if is_second else ''}-{zone}"


def requested_id(scheduled_for: datetime, trigger: Trigger, requested_at: datetime | None) -> str:
    """Return the id of a manual or backfill execution. `occurrence_id` is that of a scheduled one.

    It has the instant of the request, too, since an occurrence may be requested again.
    """
    if requested_at is None:
        raise ValueError(f"the id of a {trigger} execution needs the instant of the request")
    again = "" if requested_at == scheduled_for else f"-{stamp(requested_at)}"
    return f"{stamp(scheduled_for)}-{trigger.lower()}{again}"


def is_own(task: Task) -> bool:
    """Return whether a task's plan is as this process's data have it."""
    plan = task.zone_plan
    if plan is None:
        return True
    if plan.is_stale or not plan.fingerprint:
        return False
    data = time_zones.in_use
    if plan.release == data.release or plan.fingerprint == data.fingerprint(task.timezone):
        return True
    if plan.release > data.release:
        data.note_newer(plan.release)
    return False


def can_replan(task: Task) -> bool:
    """Return whether a task's plan is of other data, and this process's are not older and know the zone.

    They may be older if a newer release was rolled back.
    """
    plan = task.zone_plan
    data = time_zones.in_use
    if plan is None or (plan.release == data.release and not plan.is_stale):
        return False
    is_newest = plan.release <= max(data.release, data.rolled_back)
    return is_newest and not data.is_outdated(task.timezone) and data.knows(task.timezone) and not is_own(task)


def plan_distance(task: Task) -> timedelta:
    """Return the time by which a task is planned later than this process's data say."""
    plan = task.zone_plan
    if plan is None or not plan.clock or is_own(task):
        return _NONE
    seconds, offset = plan.clock[-2:]  # its last instant
    at = UTC_EPOCH + timedelta(seconds=seconds)
    return at - task.schedule.find_clock(seconds + offset, offset, at)


class DistantSchedule:
    """A schedule whose local times are that much later than this process's data say."""

    def __init__(self, schedule: Schedule, distance: timedelta) -> None:
        self._schedule = schedule
        self._distance = distance

    @property
    def interval(self) -> timedelta | None:
        """The time between any two successive occurrences, or None if it varies."""
        return self._schedule.interval

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first occurrence strictly later than an instant."""
        if not self._schedule.is_mixed:
            found = self._schedule.next_after(instant - self._distance)
            return None if found is None else found + self._distance
        local = self.next_local(instant)
        other = self._schedule.find_next_of_kind(instant, is_local=False)
        return min((at for at in (local, other) if at is not None), default=None)

    def next_local(self, instant: datetime) -> datetime | None:
        """Return the first local time of a mixed schedule strictly later than an instant."""
        found = self._schedule.find_next_of_kind(instant - self._distance, is_local=True)
        return None if found is None else found + self._distance

    def occurs(self, instant: datetime) -> bool:
        """Return whether an instant is an occurrence."""
        return self.next_after(instant - _TICK) == instant


def planned_schedule(task: Task) -> Schedule | DistantSchedule:
    """Return the schedule with which a task's plan goes on."""
    if task.zone_plan is None or task.schedule.at is not None:
        return task.schedule
    distance = plan_distance(task)
    return DistantSchedule(task.schedule, distance) if distance else task.schedule


def note_zone(task: Task) -> ZonePlan | None:
    """Return the time zone data that a task is planned with, and the clock readings of its plan."""
    schedule = task.schedule
    plan = task.zone_plan
    if not schedule.follows_zone:
        return None
    data = time_zones.in_use
    if plan is None or is_own(task):
        named = _plan_instants(task) if schedule.has_clock else set()
        if plan is not None and {utc_seconds(at) for at in named} == {*plan.clock[::2]}:
            return plan
        pairs, is_second = _read_all(task, named, _NONE)
        release = data.release if plan is None else max(plan.release, data.release)
        fingerprint = data.fingerprint(task.timezone)
        return ZonePlan.build(
            release=release,
            fingerprint=fingerprint,
            clock=_to_clock(pairs),
            is_second=is_second,
            is_stale=data.is_outdated(task.timezone),
        )

    named = _plan_instants(task)
    known = {at for at in named if plan.offset_at(utc_seconds(at)) is not None}
    new = [at for at in named if at not in known]
    if not new and len(known) * 2 == len(plan.clock):
        return plan
    pairs, is_second = _read_all(task, new, plan_distance(task))
    pairs |= {utc_seconds(at): plan.offset_at(utc_seconds(at)) or 0 for at in known}
    if task.next_execution_time in known:
        is_second = plan.is_second
    is_stale = plan.is_stale or (bool(new) and bool(plan.fingerprint))
    return plan.model_copy(update={"clock": _to_clock(pairs), "is_second": is_second, "is_stale": is_stale})


def _to_clock(pairs: dict[int, int]) -> tuple[int, ...]:
    return tuple(part for pair in sorted(pairs.items()) for part in pair)


def _read_all(task: Task, instants: Iterable[datetime], distance: timedelta) -> tuple[dict[int, int], bool]:
    """Return the clock's offsets at instants of a plan that is that far from this process's data."""
    pairs = dict[int, int]()
    is_second = False
    for at in instants:
        read = task.schedule.read_clock(at - distance)
        if read is None:
            continue
        seconds = utc_seconds(at)
        pairs[seconds] = read[0] - seconds
        if at == task.next_execution_time:
            is_second = read[1]
    return pairs, is_second


def _plan_instants(task: Task) -> set[datetime]:
    """Return the occurrences that a task's plan names, and the next one that has a local time."""
    named = {task.next_execution_time, task.planned_to, task.earlier_planned_to}
    for due in task.backlog:
        named |= {due.next_at, due.until}
    if task.backfill is not None:
        named |= {task.backfill.next_at}
    if task.plan_from is not None and task.plan_from.microsecond == 1:  # right behind an occurrence
        named.add(task.plan_from - _TICK)
    if task.next_execution_time is not None and task.schedule.is_mixed:
        planned = DistantSchedule(task.schedule, plan_distance(task))
        named.add(planned.next_local(task.next_execution_time - _TICK))
    return {at for at in named if at is not None}
