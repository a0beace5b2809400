"""The parts of a schedule that records supply: its owner's time zone, and what features add to it.

A part completes a schedule when its task is stored. A link from the record to the task is written before
that: so whoever changes the record finds the task, and has it planned again (`follow_changes`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from cloudsched.domain.documents.task_link import TaskLink, link_id
from cloudsched.engine.state.commits import compare_and_set
from cloudsched.features.table import FEATURES, find_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.system_tasks import ChangeToFollow
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord

OPEN_FOR: Final = timedelta(minutes=5)
"""The time for which a task may be stored after its link was written. A later one reads its records again."""
_FRESH: Final = timedelta(minutes=1)


class FollowedRecord(Protocol):
    """A record on which tasks depend. Each of these is linked to it by a `TaskLink` under its key."""

    key: str

    def load(self) -> VersionedRecord[Any] | None:
        """Return the record, None if it was deleted, or is not written yet."""

    def revision_of(self, record: Any, /) -> int:  # noqa: ANN401 - of its own kind
        """Return the number of its changes that concern schedules."""

    def depends(self, task: Task) -> bool:
        """Return whether a task depends on it."""

    def replan(self, task: Task, record: Any, now: datetime, /) -> Commit:  # noqa: ANN401 - of its own kind
        """Return a task planned with the record as it is now, unchanged if it already is."""

    def is_missing_over(self, since: timedelta) -> bool:
        """Return whether a missing record was deleted, so long after a writer began: nobody is about to write it."""


class SchedulePart(Protocol):
    """A part of schedules that records supply."""

    def concerns(self, schedule: Schedule) -> bool:
        """Return whether a schedule has it."""

    def resolve(
        self,
        records: RecordStore,
        draft: TaskDraft,
        clock: Clock,
        known: Schedule | None,
    ) -> TaskDraft:
        """Return a draft with an id and with this part of its schedule, linked. Raises InvalidSchedule.

        `known` is the schedule that the task has already.
        """

    def resolve_alone(self, records: RecordStore, schedule: Schedule, owner: str) -> Schedule:
        """Return a schedule of no task with this part. Raises InvalidSchedule."""

    def plan_again(
        self,
        records: RecordStore,
        task: Task,
        clock: Clock,
    ) -> Callable[[Task, datetime], Commit]:
        """Return a decision that plans a task with this part as it is now, with its links made new."""

    def find_followed(self, records: RecordStore, change: ChangeToFollow) -> FollowedRecord | None:
        """Return the record that has changed, None if it is of another part."""


@cache
def list_parts() -> tuple[SchedulePart, ...]:
    """Return all parts. They are imported when the first schedule has one."""
    places = [feature.schedule_part for feature in FEATURES if feature.schedule_part]
    return tuple(find_place(place)() for place in (*places, "cloudsched.engine.tasks.owner_zone:OwnerZone"))


def resolve_schedule(records: RecordStore, schedule: Schedule, owner: str) -> Schedule:
    """Return a schedule of no task with what records say. Raises InvalidSchedule."""
    for part in list_parts():
        if part.concerns(schedule):
            schedule = part.resolve_alone(records, schedule, owner)
    return schedule


def write_link(records: RecordStore, key: str, task_id: str, now: datetime) -> None:
    """Write the link from a record to a task, or make an existing one new again."""
    link = TaskLink(id=link_id(key, task_id), owner=key, task_id=task_id, created_at=now, updated_at=now)

    def write(stored: VersionedRecord[TaskLink] | None) -> None:
        if stored is None or not timedelta(0) <= now - stored.record.updated_at < _FRESH:
            records.write(link, None if stored is None else stored.version)

    compare_and_set(f"link {key}", lambda: records.load(TaskLink, link.id), write, first=None)
