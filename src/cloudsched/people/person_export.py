"""The built-in handler that writes down all that is stored of a person, as lines of JSON.

It writes a section or a page at a time, and is called again if its time is nearly up. A cursor says where it
is. A piece that was written before its process died is written again, under the same id.
"""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.task import PublicTask, Task
from cloudsched.domain.transitions.outcome import Done, Outcome, Snooze
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.state.record_changes import change_record, delete_record, find_record
from cloudsched.engine.storage.pages import iterate_items
from cloudsched.engine.usage.ledger import UsageLedger, sum_sheets
from cloudsched.engine.usage.usage_report import UsageSummation
from cloudsched.people.documents import (
    LAST_SECTION,
    MAX_PART_BYTES,
    ExportCursor,
    ExportPart,
    ExportSection,
    PersonJob,
    job_id,
    part_id,
)
from cloudsched.people.person_data import is_time_up, list_exported_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store


_PAGE: Final = 50
_RECORDS_PAGE: Final = 100
_KEPT_FOR: Final = timedelta(days=1)


class PersonExport:
    """Writes down what is stored of an owner."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def run(self, ctx: Context) -> Outcome:
        """Write everything down, as lines of JSON: ``{"kind": …, "data": …}``."""
        while True:
            job = find_record(self._store.records, PersonJob, job_id("export", ctx.task.owner))
            if job is None or job.task_id != ctx.task.id:
                return Done({"isReplaced": True})  # by a later one
            if job.finished_at is not None:
                return Done({"parts": job.cursor.parts})

            cursor = self._write_next(job)
            ctx.progress(f"{job.cursor.section}: {cursor.parts} parts")
            if job.cursor.section != LAST_SECTION and is_time_up(ctx):
                return Snooze(timedelta(seconds=1), "It goes on where it was.")

    def _write_next(self, job: PersonJob) -> ExportCursor:
        """Write what the job's cursor points at, and move the cursor."""
        parts = _Parts(self._store, job, self._clock)
        following = self._write_section(job.owner, job.cursor, parts)
        cursor = following.model_copy(update={"parts": parts.close()})
        now = self._clock.now()
        update: dict[str, Any] = {"cursor": cursor, "updated_at": now}
        if job.cursor.section == LAST_SECTION:
            update["finished_at"] = now

        def save(known: PersonJob | None) -> PersonJob | None:
            if known is None or known.task_id != job.task_id:
                return known
            return known.model_copy(update=update)

        change_record(self._store.records, PersonJob, job.id, save)
        return cursor

    def _write_section(self, owner: str, cursor: ExportCursor, parts: _Parts) -> ExportCursor:
        """Write a section, or a page of it. Return the cursor of what follows."""
        match cursor.section:
            case "contacts":
                # An earlier export's parts go first.
                self._remove_old_parts(owner)
                self._write_records(owner, parts)
                return cursor.model_copy(update={"section": "tasks"})
            case "tasks":
                tasks = self._store.list_tasks(TaskQuery(owner=owner), limit=_PAGE, page_token=cursor.page_token)
                for task in tasks.items:
                    self._write_task(task, parts)
                return _follow(cursor, tasks.next_page_token, "inbox")
            case "inbox":
                messages = self._store.inbox.list(owner, limit=_PAGE, page_token=cursor.page_token)
                for message in messages.items:
                    parts.add("message", message.to_wire())
                return _follow(cursor, messages.next_page_token, "usage")
            case "usage":
                for month in self._iter_months(owner):
                    parts.add("monthlyUsage", month)
                return cursor

    def _write_records(self, owner: str, parts: _Parts) -> None:
        for kind in list_exported_records():
            for record in self._store.records.list(kind, owner, limit=kind.max_per_owner):
                parts.add(kind.__name__.lower(), record.to_wire())

    def _write_task(self, task: Task, parts: _Parts) -> None:
        public = {field.alias or name for name, field in PublicTask.model_fields.items()}
        parts.add("task", {name: value for name, value in task.to_wire().items() if name in public})
        executions = iterate_items(
            lambda token: self._store.search.list_executions(task.id, limit=_PAGE, page_token=token),
        )
        for execution in executions:
            parts.add("execution", execution.to_wire())

    def _iter_months(self, owner: str) -> Iterator[dict[str, Any]]:
        ledger = UsageLedger(self._store.records, self._clock)
        UsageSummation(self._store, self._clock, ledger).sum_up(owner)
        for month, sheets in groupby(ledger.iterate_owner(owner), key=lambda each: each.month):
            for handler, counts in sum_sheets(sheets).items():
                yield {"month": month, "handler": handler, **counts.to_wire()}

    def _remove_old_parts(self, owner: str) -> None:
        while found := self._store.records.list(ExportPart, owner, limit=_RECORDS_PAGE):
            for each in found:
                delete_record(self._store.records, ExportPart, each.id)


def _follow(cursor: ExportCursor, page_token: str | None, section: ExportSection) -> ExportCursor:
    """Return the cursor of the next page of a section, or of the section after the last page."""
    if page_token is not None:
        section = cursor.section
    return ExportCursor(section=section, page_token=page_token)


class _Parts:
    """Writes lines into records of a limited size, which replace those of an earlier try."""

    def __init__(self, store: Store, job: PersonJob, clock: Clock) -> None:
        self._store = store
        self._job = job
        self._clock = clock
        self._number = job.cursor.parts
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
            expire_at=now + _KEPT_FOR,
        )
        change_record(self._store.records, ExportPart, key, lambda _: part)
        self._number += 1
        self._lines = []
        self._size = 0
