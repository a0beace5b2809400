"""Give a schedule that follows its owner the owner's time zone, and plan it again when the owner's zone changes.

A link from the person to the task is written before the task, so that whoever changes the zone from then on finds it.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.calendar import zone_key
from cloudsched.domain.documents.person import Person
from cloudsched.domain.transitions.replan import follow_owner
from cloudsched.engine.tasks.calendar_days import OPEN_FOR, resolve_schedule, write_link
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.domain.transitions.lifecycle import Transition
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord

_FIELD: Final = "schedule.timezone"


def find_owner_zone(records: RecordStore, owner: str) -> str | None:
    """Return a person's time zone; None if there is no such person."""
    stored = records.load(Person, owner)
    return None if stored is None else stored.record.timezone


def find_owner_locale(records: RecordStore, owner: str) -> str | None:
    """Return a person's language, such as ``de-AT``; None if it is not known."""
    stored = records.load(Person, owner)
    return None if stored is None else stored.record.locale


def with_owner_zone(
    records: RecordStore, draft: TaskDraft, schedule: Schedule, clock: Clock, known: Schedule | None
) -> TaskDraft:
    """Return a draft with an id, and with its schedule in the owner's zone.

    A task that follows its owner already stays in the zone that it is planned in: only `follow_owner` moves it, because
    that knows what has run. So an edit on a journey runs nothing twice.

    Raises:
        InvalidSchedule: The owner has no time zone.
    """
    task_id = draft.id or str(uuid.uuid4())
    follows_already = known is not None and known.follows_owner
    if not follows_already:
        place_at_owner(records, schedule, draft.owner)  # what is refused leaves no link
    write_link(records, zone_key(draft.owner), task_id, clock.now())
    if known is not None and known.follows_owner:
        resolved = schedule.with_owner_zone(known.timezone)
        counted = resolved.copy_unchecked(start_zone=known.start_zone)
        if counted in {known, known.copy_unchecked(dtstart=None)}:
            resolved = counted
        return draft.model_copy(update={"id": task_id, "schedule": resolved})
    return draft.model_copy(update={"id": task_id, "schedule": place_at_owner(records, schedule, draft.owner)})


def resolve_for_owner(records: RecordStore, schedule: Schedule, owner: str) -> Schedule:
    """Return a schedule of no task with the days of its calendars, and in the zone of an owner whom it follows.

    Raises:
        InvalidSchedule: There is no such calendar, or the owner has no zone.
    """
    placed = place_at_owner(records, schedule, owner) if schedule.follows_owner else schedule
    return resolve_schedule(records, placed, owner)


def place_at_owner(records: RecordStore, schedule: Schedule, owner: str) -> Schedule:
    """Return a schedule that follows its owner in the owner's zone.

    Raises:
        InvalidSchedule: The owner has no time zone.
    """
    zone = find_owner_zone(records, owner)
    if zone is None:
        who = "the task has no owner" if owner == SYSTEM_OWNER else f"nobody has said where {owner!r} is"
        hint = "PUT /v1/people/{owner} says it; or name a zone, such as Europe/Paris"
        raise InvalidSchedule(_FIELD, f"is the owner's, and {who}", hint)
    return schedule.with_owner_zone(zone)


def plan_at_owner(records: RecordStore, task: Task, clock: Clock) -> Callable[[Task, datetime], Transition]:
    """Return what plans a task in its owner's zone as it is now, with its link made new."""
    write_link(records, zone_key(task.owner), task.id, clock.now())
    zone = find_owner_zone(records, task.owner)
    return lambda stored, now: follow_owner(stored, zone or stored.schedule.timezone, now)


class FollowedPerson:
    """A person whose time zone tasks follow; see `Followed`."""

    def __init__(self, records: RecordStore, owner: str) -> None:
        self._records = records
        self._owner = owner
        self.key = zone_key(owner)

    def load(self) -> VersionedRecord[Person] | None:
        """Return the person; None if they were deleted, or are not written yet."""
        return self._records.load(Person, self._owner)

    def revision_of(self, record: Person) -> int:
        """Return how often their zone has changed."""
        return record.zone_revision

    def depends(self, task: Task) -> bool:
        """Return whether the task follows its owner."""
        return task.schedule.follows_owner

    def replan(self, task: Task, record: Person, now: datetime) -> Transition:
        """Return the task planned in the person's zone."""
        return follow_owner(task, record.timezone, now)

    def is_missing_over(self, since: timedelta) -> bool:
        """Return whether nobody is about to write the person again."""
        return since >= OPEN_FOR
