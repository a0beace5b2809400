"""What the tasks of a calendar depend on: its days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.calendar import Calendar
from cloudsched.domain.transitions.replan_calendars import replan_calendars

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.lifecycle import Transition
    from cloudsched.engine.ports.records import RecordStore, VersionedRecord


class FollowedCalendar:
    """A calendar that tasks name; see `Followed`."""

    def __init__(self, records: RecordStore, key: str) -> None:
        self._records = records
        self.key = key

    def load(self) -> VersionedRecord[Calendar] | None:
        """Return the calendar; None if it was deleted."""
        return self._records.load(Calendar, self.key)

    def revision_of(self, record: Calendar) -> int:
        """Return how often its days have changed."""
        return record.revision

    def depends(self, task: Task) -> bool:
        """Return whether the task names the calendar."""
        return any(rule.id == self.key for rule in task.schedule.calendars)

    def replan(self, task: Task, record: Calendar, now: datetime) -> Transition:
        """Return the task planned with the days as they are now."""
        return replan_calendars(task, {self.key: record.content}, now)

    def is_missing_over(self, since: timedelta) -> bool:  # noqa: ARG002 - a part of the protocol
        """Return True: only calendars that were there have a follower, so one that is not was deleted."""
        return True
