"""Plan the tasks of a changed calendar again.

A task of the system does it, a batch of tasks in each run, so any number of tasks may follow; if its process dies, the
sweep runs it again. How far it has come is a record of its own. Planning a task again is one compare-and-set of the
task, and does nothing if the task has the new days already.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.calendar import Calendar, CalendarChange, CalendarLink
from cloudsched.domain.transitions.replan_calendars import replan_calendars
from cloudsched.engine.tasks.calendar_days import OPEN_FOR
from cloudsched.errors import CloudschedError, NotFound, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
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

    def run(self, key: str, since: datetime) -> bool:
        """Continue the change of a calendar; return whether it is finished, or still not noted long after `since`."""
        stored = self._store.records.load(CalendarChange, key)
        if stored is None:
            return self._clock.now() - since >= OPEN_FOR
        try:
            return self._continue(stored)
        except VersionConflict:  # a newer change goes on with it
            return False

    def _continue(self, stored: VersionedRecord[CalendarChange]) -> bool:
        records, change = self._store.records, stored.record
        calendar = records.load(Calendar, change.id)
        is_written = calendar is not None and calendar.record.revision >= change.revision
        if not is_written and self._clock.now() - change.updated_at < OPEN_FOR:
            return False  # its writer has not come that far yet
        if calendar is None:
            records.delete(CalendarChange, change.id, stored.version)
            return True
        if not is_written:  # its writer has died, and not all tasks may have followed the change before its own
            records.write(calendar.record, calendar.version)  # if it lives all the same, its own write now conflicts
            change = change.model_copy(update={"revision": calendar.record.revision})
        after, is_open = change.after, change.has_open_links
        for _ in range(MAX_PAGES):
            links = records.list(CalendarLink, change.id, limit=PAGE_SIZE, after=after)
            for link in links:
                is_open = self._try_to_follow(link, calendar.record) or is_open
                after = link.id
            if len(links) < PAGE_SIZE:
                if not is_open:
                    records.delete(CalendarChange, change.id, stored.version)
                    return True
                after, is_open = "", False  # from the beginning again, until all links are old
                break
        records.write(change.model_copy(update={"after": after, "has_open_links": is_open}), stored.version)
        return False

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
                link.task_id, lambda task, now: replan_calendars(task, {calendar.id: calendar.content}, now)
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
