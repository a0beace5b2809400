"""Start what takes long with all that is stored of a person, as a task of the person's own: deletion, and export.

The person sees the task and its progress like any other. A request that is repeated finds the task that is under way.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.builtin_handlers import ERASE_HANDLER, EXPORT_HANDLER
from cloudsched.domain.documents.person import (
    ExportCursor,
    ExportPart,
    JobKind,
    PersonJob,
    job_id,
    part_id,
)
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.transitions.drafts import TaskDraft
from cloudsched.domain.transitions.edits import NO_LEAD
from cloudsched.engine.people.record_changes import retry_conflicts
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.authority import Authority
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler

_HANDLERS: Final[dict[JobKind, str]] = {"erase": ERASE_HANDLER, "export": EXPORT_HANDLER}
_TITLES: Final[dict[JobKind, str]] = {"erase": "Delete all personal data", "export": "Export all personal data"}
EXPORT_LIFETIME: Final = timedelta(hours=1)
"""How long an export is returned as it is, before another one is made."""
_TASK_RETENTION: Final = timedelta(days=1)


class PersonJobs:
    """Starts such jobs, and reads exports."""

    def __init__(self, store: Store, clock: Clock, scheduler: Scheduler) -> None:
        self._store = store
        self._clock = clock
        self._scheduler = scheduler

    def erase(self, owner: str, *, by: Authority) -> Task:
        """Start to delete all that is stored of an owner; return the task that does it."""
        by.require_owner(owner)
        return self._start("erase", owner)

    def export(self, owner: str, *, by: Authority) -> Task | PersonJob:
        """Return an owner's export if there is a recent one; else the task that makes it."""
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

        def claim() -> PersonJob:
            now = self._clock.now()
            stored = self._store.records.load(PersonJob, job_id(kind, owner))
            if stored is not None and stored.record.finished_at is None and not self._has_ended(stored.record):
                return stored.record
            job = PersonJob(
                id=job_id(kind, owner),
                owner=owner,
                kind=kind,
                task_id=f"{kind}-{secrets.token_hex(12)}",
                cursor=ExportCursor(),
                created_at=now,
                updated_at=now,
            )
            self._store.records.write(job, None if stored is None else stored.version)
            return job

        job = retry_conflicts(f"{kind} of {owner}", claim)
        draft = TaskDraft(
            id=job.task_id,
            owner=owner,
            title=_TITLES[kind],
            handler=_HANDLERS[kind],
            retry=RetryPolicy(max_retries=20),
            retention=_TASK_RETENTION,
        )
        return self._scheduler.create(draft, kind, by=OWN_CODE, lead=NO_LEAD)[0]

    def _has_ended(self, job: PersonJob) -> bool:
        stored = self._store.load(job.task_id)
        return stored is not None and (stored.task.has_ended or stored.task.deleted_at is not None)
