"""All that is stored of a person: start to delete it or to write it down, and what the built-in handlers do for that.

The task that does it is the person's own, who sees it and its progress like any other. A request that is repeated finds
the task that is under way. Both do a piece at a time, look whether there is time for another one, and let themselves be
called again if not. Deletion needs no memory: what is left is what is to be done. Export keeps a cursor, and a piece
that was written before its process died is written again under the same id.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.owner_usage import UsageFront, UsageSheet
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.policy import RetryPolicy, TellFailures
from cloudsched.domain.documents.recent_count import RecentCount
from cloudsched.domain.documents.system_tasks import ERASE_HANDLER, EXPORT_HANDLER
from cloudsched.domain.documents.task import PublicTask, Task
from cloudsched.domain.documents.task_link import TaskLink, zone_key
from cloudsched.domain.transitions.edits import NO_LEAD
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.domain.transitions.outcome import Done, Outcome, go_on
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.authority import OWN_CODE, Authority
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.pull.presence import WorkerPresence
from cloudsched.engine.state.record_changes import change_record, delete_record
from cloudsched.engine.storage.pages import iterate_items
from cloudsched.engine.usage.ledger import UsageLedger, sum_sheets
from cloudsched.engine.usage.usage_report import UsageSummation
from cloudsched.errors import NotFound
from cloudsched.features.table import FEATURES, find_place
from cloudsched.people.documents import (
    MAX_PART_BYTES,
    ExportCursor,
    ExportPart,
    JobKind,
    PersonJob,
    job_id,
    part_id,
)

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.record import Record
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler

_HANDLERS: Final[dict[JobKind, str]] = {"erase": ERASE_HANDLER, "export": EXPORT_HANDLER}
_TITLES: Final[dict[JobKind, str]] = {"erase": "Delete all personal data", "export": "Export all personal data"}
EXPORT_LIFETIME: Final = timedelta(hours=1)
"""The time for which an export is returned as it is, before another one is made."""
_TASK_RETENTION: Final = timedelta(days=1)


class PersonJobs:
    """Starts such jobs, and reads exports."""

    def __init__(self, store: Store, clock: Clock, scheduler: Scheduler) -> None:
        self._store = store
        self._clock = clock
        self._scheduler = scheduler

    def erase(self, owner: str, *, by: Authority) -> Task:
        """Start to delete all that is stored of an owner. Return the task that does it."""
        by.require_owner(owner)
        return self._start("erase", owner)

    def export(self, owner: str, *, by: Authority) -> Task | PersonJob:
        """Return an owner's export if there is a recent one, else the task that makes it."""
        by.require_owner(owner)
        stored = self._store.records.load(PersonJob, job_id("export", owner))
        finished_at = None if stored is None else stored.record.finished_at
        if stored is not None and finished_at is not None and self._clock.now() - finished_at < EXPORT_LIFETIME:
            return stored.record
        return self._start("export", owner)

    def read_part(self, job: PersonJob, number: int) -> str:
        """Return a part of a finished export. Raises NotFound."""
        part = self._store.records.load(ExportPart, part_id(job.task_id, number))
        if part is None:
            raise NotFound("part of the export", str(number))
        return part.record.text

    def _start(self, kind: JobKind, owner: str) -> Task:
        """Return the task of a job that is under way, or of a new one.

        The record is written first, then the task: whoever finds a record without its task makes the task.
        """

        def claim(known: PersonJob | None) -> PersonJob:
            now = self._clock.now()
            if known is not None and known.finished_at is None and not self._has_ended(known):
                return known
            return PersonJob(
                id=job_id(kind, owner),
                owner=owner,
                kind=kind,
                task_id=f"{kind}-{secrets.token_hex(12)}",
                cursor=ExportCursor(),
                created_at=now,
                updated_at=now,
            )

        job = change_record(self._store.records, PersonJob, job_id(kind, owner), claim)
        draft = TaskDraft(
            id=job.task_id,
            owner=owner,
            title=_TITLES[kind],
            handler=_HANDLERS[kind],
            retry=RetryPolicy(max_retries=20),
            tell_failures=TellFailures.NEVER,
            retention=_TASK_RETENTION,
        )
        return self._scheduler.create(draft, mark=RequestMark.of_new_task(kind), by=OWN_CODE, lead=NO_LEAD)[0]

    def _has_ended(self, job: PersonJob) -> bool:
        stored = self._store.load(job.task_id)
        return stored is not None and (stored.task.has_ended or stored.task.deleted_at is not None)


_KERNEL_RECORDS: Final[tuple[type[Record], ...]] = (RecentCount, UsageSheet, UsageFront, WorkerPresence)


@cache
def list_owned_records() -> tuple[type[Record], ...]:
    """Return every kind of record that belongs to a person, except the jobs themselves. The person goes last."""
    return (*_list_of_features(is_kept=False), *_KERNEL_RECORDS, Person)


def _list_of_features(*, is_kept: bool) -> list[type[Record]]:
    kinds: list[type[Record]] = [find_place(place) for feature in FEATURES for place in feature.records]
    return [kind for kind in kinds if kind.is_kept == is_kept]


def list_exported_records() -> tuple[type[Record], ...]:
    """Return those that are the person's own data. The others are hashes, keys, and copies of what the inbox has."""
    kinds = [*reversed(list_owned_records()), *_list_of_features(is_kept=True)]
    return tuple(kind for kind in kinds if kind.is_exported)


_PAGE: Final = 50
_RECORDS_PAGE: Final = 100
_MIN_TIME_LEFT: Final = timedelta(seconds=60)


class PersonData:
    """Deletes and exports what is stored of an owner."""

    def __init__(
        self, store: Store, clock: Clock, scheduler: Callable[[], Scheduler], note_use: Callable[[str], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._scheduler = scheduler
        self._note_use = note_use

    def erase(self, ctx: Context) -> Outcome:
        """Delete everything, tasks first: they are what makes more. The task that does it goes with its retention."""
        owner = ctx.task.owner
        for name, remove in (
            ("tasks", self._remove_tasks),
            ("deliveries", self._remove_deliveries),
            ("messages", lambda owner, _own_id: self._store.inbox.remove_some(owner)),
        ):
            while count := remove(owner, ctx.task.id):
                ctx.progress(f"{count} {name} deleted")
                if _is_time_up(ctx):
                    return go_on("It goes on with what is left.")
        self._note_use(owner)
        followers: tuple[tuple[type[Record], str], ...] = ((TaskLink, zone_key(owner)),)
        for kind, key in (*followers, *((each, owner) for each in list_owned_records())):
            while found := self._store.records.list(kind, key, limit=_RECORDS_PAGE):
                for each in found:
                    delete_record(self._store.records, kind, each.id)
                ctx.progress(f"{len(found)} of {kind.collection} deleted")
                if _is_time_up(ctx):
                    return go_on("It goes on with what is left.")
        self._note_use(owner)
        delete_record(self._store.records, PersonJob, job_id("export", owner))
        delete_record(self._store.records, PersonJob, job_id("erase", owner))
        return Done({"isErased": True})

    def _remove_tasks(self, owner: str, own_id: str) -> int:
        page = self._store.list_tasks(TaskQuery(owner=owner), limit=_PAGE + 1)  # one may be its own
        others = [task for task in page.items if task.id != own_id]
        for task in sorted(others, key=lambda each: each.parent is not None):
            try:
                self._scheduler().delete(task.id, OWN_CODE)
            except NotFound:  # it went with the task that called it
                continue
        return len(others)

    def _remove_deliveries(self, owner: str, _own_id: str) -> int:
        page = self._store.list_tasks(TaskQuery(owner=owner, is_delivery=True), limit=_PAGE)
        for task in page.items:
            with suppress(NotFound):
                self._scheduler().delete(task.id, OWN_CODE)
        return len(page.items)

    def export(self, ctx: Context) -> Outcome:
        """Write everything down, as lines of JSON: ``{"kind": …, "data": …}``."""
        owner, key = ctx.task.owner, job_id("export", ctx.task.owner)
        while True:
            stored = self._store.records.load(PersonJob, key)
            if stored is None or stored.record.task_id != ctx.task.id:
                return Done({"isReplaced": True})  # by a later one
            job = stored.record
            if job.finished_at is not None:
                return Done({"parts": job.cursor.parts})
            section, number = job.cursor.section, job.cursor.parts
            parts = _Parts(self._store, job, self._clock, number)
            following = self._write_section(owner, job.cursor, parts)
            cursor = following.model_copy(update={"parts": parts.close()})
            is_over = section == "usage"
            now = self._clock.now()
            update = {"cursor": cursor, "updated_at": now, "finished_at": now if is_over else None}

            def save(known: PersonJob | None, update: dict[str, Any] = update) -> PersonJob | None:
                is_own = known is not None and known.task_id == ctx.task.id
                return known.model_copy(update=update) if known is not None and is_own else known

            change_record(self._store.records, PersonJob, key, save)
            ctx.progress(f"{section}: {cursor.parts} parts")
            if not is_over and _is_time_up(ctx):
                return go_on("It goes on where it was.")

    def _write_section(  # noqa: C901 - one case for each section
        self, owner: str, cursor: ExportCursor, parts: _Parts
    ) -> ExportCursor:
        token = cursor.page_token
        match cursor.section:
            case "contacts":
                self._remove_old_parts(owner)
                for kind in list_exported_records():
                    for record in self._store.records.list(kind, owner, limit=kind.max_per_owner):
                        parts.add(kind.__name__.lower(), record.to_wire())
                return cursor.model_copy(update={"section": "tasks"})
            case "tasks":
                page = self._store.list_tasks(TaskQuery(owner=owner), limit=_PAGE, page_token=token)
                for task in page.items:
                    shown = task.to_wire()
                    names = {field.alias or name for name, field in PublicTask.model_fields.items()}
                    parts.add("task", {name: shown[name] for name in shown if name in names})
                    for execution in self._iter_executions(task.id):
                        parts.add("execution", execution.to_wire())
                follow = "tasks" if page.next_page_token else "inbox"
                return ExportCursor(section=follow, page_token=page.next_page_token)
            case "inbox":
                messages = self._store.inbox.list(owner, limit=_PAGE, page_token=token)
                for message in messages.items:
                    parts.add("message", message.to_wire())
                follow = "inbox" if messages.next_page_token else "usage"
                return ExportCursor(section=follow, page_token=messages.next_page_token)
            case "usage":
                for shown in self._iter_months(owner):
                    parts.add("monthlyUsage", shown)
        return cursor

    def _iter_executions(self, task_id: str) -> Iterator[Execution]:
        return iterate_items(lambda token: self._store.search.list_executions(task_id, limit=_PAGE, page_token=token))

    def _iter_months(self, owner: str) -> Iterator[dict[str, Any]]:
        ledger = UsageLedger(self._store.records, self._clock)
        UsageSummation(self._store, self._clock, ledger).sum_up(owner)
        for month, sheets in groupby(ledger.iterate_owner(owner), key=lambda each: each.month):
            for handler, counts in sum_sheets(sheets).items():
                yield {"month": month, "handler": handler, **counts.to_wire()}

    def _remove_old_parts(self, owner: str) -> None:
        while True:
            found = self._store.records.list(ExportPart, owner, limit=_RECORDS_PAGE)
            for each in found:
                delete_record(self._store.records, ExportPart, each.id)
            if not found:
                return


class _Parts:
    """Writes lines into records of a limited size, which replace those of an earlier try."""

    def __init__(self, store: Store, job: PersonJob, clock: Clock, number: int) -> None:
        self._store = store
        self._job = job
        self._clock = clock
        self._number = number
        self._lines: list[str] = []
        self._size = 0

    def add(self, kind: str, data: dict[str, Any]) -> None:
        line = json.dumps({"kind": kind, "data": data}, ensure_ascii=True, separators=(",", ":")) + "\n"
        for start in range(0, len(line), MAX_PART_BYTES):
            piece = line[start : start + MAX_PART_BYTES]
            if self._size + len(piece) > MAX_PART_BYTES:
                self._write()
            self._lines.append(piece)
            self._size += len(piece)

    def close(self) -> int:
        if self._lines:
            self._write()
        return self._number

    def _write(self) -> None:
        now = self._clock.now()
        key = part_id(self._job.task_id, self._number)
        part = ExportPart(
            id=key,
            owner=self._job.owner,
            text="".join(self._lines),
            created_at=now,
            updated_at=now,
            expire_at=now + timedelta(days=1),
        )
        change_record(self._store.records, ExportPart, key, lambda _: part)
        self._number += 1
        self._lines, self._size = [], 0


def _is_time_up(ctx: Context) -> bool:
    return ctx.time_left() < _MIN_TIME_LEFT
