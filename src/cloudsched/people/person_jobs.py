"""Jobs on all that is stored of a person: start its deletion or its export, and read an export.

The task that does it is the person's own, who sees it and its progress like any other. A repeated request
finds the task that is under way.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.policy import RetryPolicy, TellFailures
from cloudsched.domain.documents.system_tasks import ERASE_HANDLER, EXPORT_HANDLER
from cloudsched.domain.transitions.edits import NO_LEAD
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.authority import OWN_CODE, Authority
from cloudsched.engine.state.record_changes import change_record, find_record
from cloudsched.errors import NotFound
from cloudsched.people.documents import (
    ExportCursor,
    ExportPart,
    JobKind,
    PersonJob,
    job_id,
    part_id,
)

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler

_HANDLERS: Final[dict[JobKind, str]] = {"erase": ERASE_HANDLER, "export": EXPORT_HANDLER}
_TITLES: Final[dict[JobKind, str]] = {
    "erase": "Delete all personal data",
    "export": "Export all personal data",
}
EXPORT_LIFETIME: Final = timedelta(hours=1)
"""The time for which an export is returned as it is, before another one is made."""
_TASK_RETENTION: Final = timedelta(days=1)


class PersonJobs:
    """Starts jobs, and reads exports."""

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
        job = find_record(self._store.records, PersonJob, job_id("export", owner))
        finished_at = job and job.finished_at
        if job and finished_at and self._clock.now() - finished_at < EXPORT_LIFETIME:
            return job
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
