"""The invariants of schedules that follow their owner, who travels while tasks run.

W1  No local time of a task starts twice, wherever its owner is. (One of an elapsed rule is named by its instant:
    an edit to a rule of local times may bring the same digits again.)
W2  The local times that start, or get a record, are those of the schedule one after the other: none is left out.
W3  None is skipped or expired: a journey makes nothing late.
W4  What waits for the end of a pause is the same local times in the new zone.
W5  In the end no journey is left to follow, and each task is planned in its owner's zone.

Pausing, editing and ending a task leave out local times by right; W2 holds until then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.engine.harness import HOUR, SECOND
from tests.simulation.invariants_runs import fail

from cloudsched import Execution, Schedule, Task
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.recurrence.time_zones import load_tzinfo

if TYPE_CHECKING:
    from tests.simulation.world import World


_HALF_A_DAY = 12 * HOUR
_SECOND = SECOND
_UNRUN = frozenset({ExecutionStatus.SKIPPED, ExecutionStatus.EXPIRED})


class JourneyInvariants:
    """Watches the commits of a world and raises as soon as a rule does not hold."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._names = dict[tuple[str, datetime, bool], list[datetime]]()
        """The local times, or the instants, of each task that have started, or were recorded without."""
        self._interrupted = set[tuple[str, datetime]]()

    def on_commit(self, before: Task | None, after: Task, executions: Sequence[Execution]) -> None:
        if before is None or before.created_at != after.created_at or not before.schedule.follows_owner:
            return
        if (
            before.schedule.timezone != after.schedule.timezone
            and not self._world.fault_profile.has_two_releases
            and not after.schedule.has_elapsed_rules
            and _list_backlog(before) != _list_backlog(after)
        ):
            fail(f"W4: {after.id} had {_list_backlog(before)} to run, and has {_list_backlog(after)}")
        key = after.id, after.created_at
        if after.status is not TaskStatus.ACTIVE or after.deleted_at is not None or _is_edited(before, after):
            self._interrupted.add(key)
        known = {run.execution_id for run in before.runs}
        started = [
            (run.scheduled_for, run.execution_id)
            for run in after.runs
            if run.trigger is Trigger.SCHEDULE and run.execution_id not in known and not run.attempts
        ]
        unrun = [each for each in executions if each.status in _UNRUN and each.id not in known]
        if unrun and key not in self._interrupted:
            fail(f"W3: {after.id}'s {unrun[0].id} is {unrun[0].status}: {unrun[0].message}")
        for _, name in sorted([*started, *((each.scheduled_for, each.id) for each in unrun)]):
            self._note(before, key, _parse_name(name))

    def _note(self, task: Task, key: tuple[str, datetime], name: datetime) -> None:
        """Check that a local time is new, and the one that comes after the latest."""
        names = self._names.setdefault((*key, task.schedule.has_elapsed_rules), [])
        if name in names:
            fail(f"W1: {task.id}'s {name} starts twice")
        if names and key not in self._interrupted and not task.schedule.has_elapsed_rules:
            following = _without_zone(task.schedule).next_after(names[-1])
            if following != name:
                fail(f"W2: {task.id} starts {name} after {names[-1]}, and {following} is left out")
        names.append(name)

    def check_end_state(self) -> None:
        """Check that every task is where its owner is when everything has settled."""
        records = self._world.real_store.records
        for task in self._world.tasks():
            if not task.schedule.follows_owner or task.deleted_at is not None:
                continue
            person = records.load(Person, task.owner)
            if person is not None and task.schedule.timezone != person.record.timezone:
                fail(f"W5: {task.id} is in {task.schedule.timezone}, its owner in {person.record.timezone}")


def _list_backlog(task: Task) -> list[datetime]:
    waiting = (task.schedule.between(each.next_at, each.until + _SECOND) for each in task.backlog)
    return [_read_name(task.schedule, at) for each in waiting for at in each]


def _is_edited(before: Task, after: Task) -> bool:
    plan = [(each.schedule.rules, each.schedule.dtstart, each.until, each.max_runs) for each in (before, after)]
    return plan[0] != plan[1]


def _without_zone(schedule: Schedule) -> Schedule:
    """Return a schedule whose instants are its local times, as if they were UTC."""
    return schedule.model_copy(update={"timezone": "UTC", "follows_owner": False, "start_zone": None})


def _parse_name(execution_id: str) -> datetime:
    """Return the local time, or the instant, by which an execution is named."""
    return datetime.strptime(execution_id[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)


def _read_name(schedule: Schedule, at: datetime) -> datetime:
    """Return the local time that an instant is of; of one that a gap has shifted, the one before the shift."""
    if schedule.has_elapsed_rules:
        return at
    local = at.astimezone(load_tzinfo(schedule.timezone)).replace(tzinfo=UTC, fold=0)
    names = _without_zone(schedule).between(local - _HALF_A_DAY, local + _SECOND)
    return names[bisect_right(names, local) - 1] if names else local
