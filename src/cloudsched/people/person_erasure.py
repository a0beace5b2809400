"""The built-in handler that deletes all that is stored of a person.

It deletes a page at a time, and is called again if its time is nearly up. It needs no memory: what is left is
what is to be done.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.task_link import TaskLink, zone_key
from cloudsched.domain.transitions.outcome import Done, Outcome, Snooze
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.state.record_changes import delete_record
from cloudsched.errors import NotFound
from cloudsched.people.documents import (
    PersonJob,
    job_id,
)
from cloudsched.people.person_data import is_time_up, list_owned_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.record import Record
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler


_TASKS_PAGE: Final = 50
_RECORDS_PAGE: Final = 100
_UNFINISHED: Final = Snooze(timedelta(seconds=1), "It goes on with what is left.")


class PersonErasure:
    """Deletes what is stored of an owner."""

    def __init__(
        self,
        store: Store,
        scheduler: Callable[[], Scheduler],
        note_use: Callable[[str], None],
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._note_use = note_use

    def run(self, ctx: Context) -> Outcome:
        """Delete everything, tasks first: they are what makes more. Its own task goes with its retention."""
        owner = ctx.task.owner
        pages: dict[str, Callable[[], int]] = {
            "tasks": lambda: self._delete_tasks(owner, ctx.task.id),
            "deliveries": lambda: self._delete_deliveries(owner),
            "messages": lambda: self._store.inbox.remove_some(owner),
        }
        for name, delete_some in pages.items():
            if not self._delete_all(ctx, name, delete_some):
                return _UNFINISHED
        self._note_use(owner)

        kinds: list[tuple[type[Record], str]] = [(TaskLink, zone_key(owner))]
        kinds += [(kind, owner) for kind in list_owned_records()]
        for kind, key in kinds:
            if not self._delete_all(ctx, f"of {kind.collection}", partial(self._delete_records, kind, key)):
                return _UNFINISHED
        self._note_use(owner)

        delete_record(self._store.records, PersonJob, job_id("export", owner))
        delete_record(self._store.records, PersonJob, job_id("erase", owner))
        return Done({"isErased": True})

    def _delete_all(self, ctx: Context, name: str, delete_some: Callable[[], int]) -> bool:
        """Delete a page after the other. Return False if the time is nearly up before all are gone."""
        while count := delete_some():
            ctx.progress(f"{count} {name} deleted")
            if is_time_up(ctx):
                return False
        return True

    def _delete_tasks(self, owner: str, own_id: str) -> int:
        page = self._store.list_tasks(TaskQuery(owner=owner), limit=_TASKS_PAGE + 1)  # one may be its own
        others = [task for task in page.items if task.id != own_id]
        for task in sorted(others, key=lambda each: each.parent is not None):
            self._delete_task(task.id)
        return len(others)

    def _delete_deliveries(self, owner: str) -> int:
        page = self._store.list_tasks(TaskQuery(owner=owner, is_delivery=True), limit=_TASKS_PAGE)
        for task in page.items:
            self._delete_task(task.id)
        return len(page.items)

    def _delete_task(self, task_id: str) -> None:
        with suppress(NotFound):  # it went with the task that called it
            self._scheduler().delete(task_id, OWN_CODE)

    def _delete_records(self, kind: type[Record], key: str) -> int:
        found = self._store.records.list(kind, key, limit=_RECORDS_PAGE)
        for each in found:
            delete_record(self._store.records, kind, each.id)
        return len(found)
