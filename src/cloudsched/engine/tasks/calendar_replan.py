"""Plan the tasks of a changed calendar again.

A task of the system does it, a batch of tasks in each run, so any number of tasks may follow; if its process dies, the
sweep runs it again. It is created before the calendar is written, and ends only when one of two things is certain:
every task has the days that the calendar has now, or the writer can no longer write (`_fence`). So no change is left
behind, however long its writer stands still and wherever it dies. Planning a task again is one compare-and-set of the
task, and does nothing if the task has the new days already.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.calendar import CHANGES_OWNER, Calendar, CalendarChange, CalendarLink
from cloudsched.domain.transitions.replan_calendars import replan_calendars
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.engine.tasks.calendar_days import OPEN_FOR
from cloudsched.errors import CloudschedError, NotFound, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.calendar_tasks import ChangeToFollow
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.records import VersionedRecord
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler

log = logging.getLogger(__name__)

PAGE_SIZE: Final = 100
MAX_PAGES: Final = 10
"""How many pages of a calendar's tasks one run plans again; the next one continues."""


class CalendarReplan:
    """Plans the tasks of changed calendars again."""

    def __init__(self, store: Store, scheduler: Scheduler, clock: Clock) -> None:
        self._store = store
        self._scheduler = scheduler
        self._clock = clock

    def run(self, change: ChangeToFollow) -> bool:
        """Continue with a change; return whether nothing is left to do."""
        try:
            calendar = self._store.records.load(Calendar, change.calendar)
            if calendar is None:
                return True  # deleted: its tasks keep the days that they have
            if calendar.record.revision >= change.revision:
                return self._follow_all(change, calendar.record)
            if self._clock.now() - change.since < OPEN_FOR:
                return False  # its writer has not come that far yet
            self._fence(calendar)
        except VersionConflict:  # somebody else has written meanwhile; look again
            return False
        return True

    def _fence(self, calendar: VersionedRecord[Calendar]) -> None:
        """Give up on a writer that has died: should it live, its write conflicts, and begins with another task.

        Raises:
            VersionConflict: The writer, or another one, was quicker.
        """
        self._store.records.write(calendar.record, calendar.version)

    def _follow_all(self, change: ChangeToFollow, calendar: Calendar) -> bool:
        """Plan the next tasks again; return whether all have the days that the calendar has now."""
        records = self._store.records
        stored = records.load(CalendarChange, change.id)
        is_same = stored is not None and stored.record.revision == calendar.revision
        after, is_open = (stored.record.after, stored.record.has_open_links) if stored and is_same else ("", False)
        for _ in range(MAX_PAGES):
            links = records.list(CalendarLink, calendar.id, limit=PAGE_SIZE, after=after)
            for link in links:
                is_open = self._try_to_follow(link, calendar) or is_open
                after = link.id
            if len(links) < PAGE_SIZE:
                if not is_open and self._is_current(calendar):
                    if stored is not None:
                        records.delete(CalendarChange, change.id, stored.version)
                    return True
                after, is_open = "", False  # from the beginning again, until all links are old
                break
        now = self._clock.now()
        progress = CalendarChange(
            id=change.id,
            owner=CHANGES_OWNER,
            created_at=now if stored is None else stored.record.created_at,
            updated_at=now,
            revision=calendar.revision,
            after=after,
            has_open_links=is_open,
        )
        records.write(progress, None if stored is None else stored.version)
        return False

    def _is_current(self, calendar: Calendar) -> bool:
        """Return whether the days are still those that the tasks got here.

        The tasks of a newer change may have got older days from this run, after their own had come by.
        """
        stored = self._store.records.load(Calendar, calendar.id)
        return stored is None or stored.record.revision == calendar.revision

    def _try_to_follow(self, link: CalendarLink, calendar: Calendar) -> bool:
        """Plan one task again; return whether it has to be looked at once more."""
        try:
            return self._follow(link, calendar)
        except StoreUnavailable:
            raise
        except CloudschedError as error:  # the others must be planned all the same; this one is tried again
            log.warning("unplanned: %s", error, extra={"action": "unplanned", "taskId": link.task_id})
            return True

    def _follow(self, link: CalendarLink, calendar: Calendar) -> bool:
        """Plan one task again; return whether it has to be looked at once more."""

        def names_it(task: Task) -> bool:
            return any(rule.id == calendar.id for rule in task.schedule.calendars)

        try:
            task = self._scheduler.change(
                link.task_id, lambda task, now: replan_calendars(task, {calendar.id: calendar.content}, now), OWN_CODE
            )
        except NotFound:
            task = None
        if task is not None and names_it(task):
            return False
        now = self._clock.now()
        if now - link.updated_at < OPEN_FOR:
            return True
        stored = self._store.records.load(CalendarLink, link.id)
        if stored is not None and stored.record.updated_at == link.updated_at:
            with suppress(VersionConflict):
                self._store.records.delete(CalendarLink, link.id, stored.version)
                return self._restore(link, calendar)  # a late task may have been stored meanwhile
        return False

    def _restore(self, link: CalendarLink, calendar: Calendar) -> bool:
        """Write a deleted link again if its task names the calendar after all; return whether it does."""
        found = self._store.load(link.task_id)
        if found is None or all(rule.id != calendar.id for rule in found.task.schedule.calendars):
            return False
        with suppress(VersionConflict):
            self._store.records.write(link.model_copy(update={"updated_at": self._clock.now()}), None)
        return True
