"""The time zone of a task's owner, in which a schedule that follows them is planned."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.task_link import zone_key
from cloudsched.domain.transitions.replan import follow_owner
from cloudsched.engine.tasks.schedule_parts import OPEN_FOR, write_link
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.system_tasks import ChangeToFollow
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord

_FIELD: Final = "schedule.timezone"


def find_owner_zone(records: RecordStore, owner: str) -> str | None:
    """Return a person's time zone, None if there is no such person."""
    stored = records.load(Person, owner)
    return None if stored is None else stored.record.timezone


def find_owner_locale(records: RecordStore, owner: str) -> str | None:
    """Return a person's language, such as ``de-AT``, None if it is not known."""
    stored = records.load(Person, owner)
    return None if stored is None else stored.record.locale


class FollowedPerson:
    """A person whose time zone tasks follow. Each of these is linked to them, too."""

    def __init__(self, records: RecordStore, owner: str) -> None:
        self._records = records
        self._owner = owner
        self.key: str = zone_key(owner)

    def load(self) -> VersionedRecord[Person] | None:
        """Return the person, None if they were deleted, or are not written yet."""
        return self._records.load(Person, self._owner)

    def revision_of(self, record: Person) -> int:
        """Return the number of changes of their zone."""
        return record.zone_revision

    def depends(self, task: Task) -> bool:
        """Return whether the task follows its owner."""
        return task.schedule.follows_owner

    def replan(self, task: Task, record: Person, now: datetime) -> Commit:
        """Return the task planned in the person's zone."""
        return follow_owner(task, record.timezone, now)

    def is_missing_over(self, since: timedelta) -> bool:
        """Return whether nobody is about to write the person any more, so long after a writer began."""
        return since >= OPEN_FOR


class OwnerZone:
    """The time zone of schedules that follow their owner."""

    def concerns(self, schedule: Schedule) -> bool:
        """Return whether a schedule follows its owner."""
        return schedule.follows_owner

    def resolve(
        self,
        records: RecordStore,
        draft: TaskDraft,
        clock: Clock,
        known: Schedule | None,
    ) -> TaskDraft:
        """Return a draft with an id, and with its schedule in the owner's zone.

        A task that follows its owner already stays in the zone that it is planned in: only `follow_owner`
        moves it, because that knows what has run. So an edit after a change of zone runs nothing twice.
        Raises InvalidSchedule.
        """
        schedule = draft.schedule
        assert schedule is not None  # noqa: S101 - it follows its owner
        task_id = draft.id or str(uuid.uuid4())
        follows_already = known is not None and known.follows_owner
        if not follows_already:
            self.resolve_alone(records, schedule, draft.owner)  # what is refused leaves no link
        write_link(records, zone_key(draft.owner), task_id, clock.now())
        if known is None or not follows_already:
            placed = self.resolve_alone(records, schedule, draft.owner)
            return draft.model_copy(update={"id": task_id, "schedule": placed})

        resolved = schedule.with_owner_zone(known.timezone)
        counted = resolved.copy_unchecked(start_zone=known.start_zone)
        if counted in {known, known.copy_unchecked(dtstart=None)}:
            resolved = counted
        return draft.model_copy(update={"id": task_id, "schedule": resolved})

    def resolve_alone(self, records: RecordStore, schedule: Schedule, owner: str) -> Schedule:
        """Return a schedule that follows its owner in the owner's zone. Raises InvalidSchedule."""
        zone = find_owner_zone(records, owner)
        if zone is None:
            who = f"nobody has said where {owner!r} is"
            first = ""
            if owner == SYSTEM_OWNER:
                who = "the task has no owner"
                first = 'give one, owner="ada"; '
            hint = f"{first}PUT /v1/people/{{owner}} says it; or name a zone, such as Europe/Paris"
            raise InvalidSchedule(_FIELD, f"is the owner's, and {who}", hint)
        return schedule.with_owner_zone(zone)

    def plan_again(
        self,
        records: RecordStore,
        task: Task,
        clock: Clock,
    ) -> Callable[[Task, datetime], Commit]:
        """Return a decision that plans a task in its owner's present zone, with its link made new."""
        write_link(records, zone_key(task.owner), task.id, clock.now())
        zone = find_owner_zone(records, task.owner)
        return lambda stored, now: follow_owner(stored, zone or stored.schedule.timezone, now)

    def find_followed(self, records: RecordStore, change: ChangeToFollow) -> FollowedPerson | None:
        """Return the person whose zone has changed."""
        if change.owner is None:
            return None
        return FollowedPerson(records, change.owner)
