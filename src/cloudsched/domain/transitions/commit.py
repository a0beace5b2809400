"""A commit: what a decision writes, atomically, and what follows from it.

Every decision of this package returns one, or a value that says why there is none. It becomes complete on its way: the
task as it was read, the lock, the tasks that are created with it. A store takes it whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from cloudsched.domain.transitions.offers import offer_entry

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution, Message, Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.pull import OfferEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.locks import Lock, Waiter
    from cloudsched.domain.transitions.task_draft import TaskDraft


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a document that was read. The value is private to the adapter. Compare it only for equality."""

    value: object


@dataclass(frozen=True, slots=True)
class VersionedTask:
    """A task as it was read, and its version."""

    task: Task
    version: Version
    read_at: datetime | None = field(default=None, compare=False)
    """The instant at which `Store.load` read it, by the store's own clock. None if the store has no clock."""


@dataclass(frozen=True, slots=True)
class VersionedLock:
    """A lock, and the version at which it was read, or None if there was no document. An empty lock is deleted."""

    lock: Lock
    version: Version | None
    entries: tuple[Waiter, ...] = ()
    """Those of its waiters that were read from documents of their own."""
    document: Lock | None = None
    """Its document as it was read. A commit without changes to it only checks its version. None: write it always."""
    is_whole: bool = True
    """True if it has all of its waiters."""

    @property
    def new_document(self) -> Lock:
        """The document to write: with the waiters that were notified, and the greatest limit of the others."""
        notified = tuple(one for one in self.lock.waiters if one.notified_at is not None)
        limits = [one.limit for one in self.lock.waiters if one.notified_at is None]
        queued_limit = max([self.lock.queued_limit, *limits])
        return self.lock.model_copy(update={"waiters": notified, "queued_limit": queued_limit})

    @property
    def is_document_changed(self) -> bool:
        """Return whether the document is to be written or deleted."""
        return self.document is None or self.document != self.new_document

    @property
    def has_drained(self) -> bool:
        """Return whether the new document is the first to say that nobody waits."""
        return self.document is not None and self.document.queued_limit > 0 and not self.new_document.queued_limit

    def count_writes(self) -> tuple[int, int]:
        """Return how many documents its commit writes and deletes. To check the lock's version alone is a write."""
        is_deleted = self.new_document.is_empty
        return len(self.entered) + (not is_deleted), len(self.left) + is_deleted

    @property
    def entered(self) -> Sequence[Waiter]:
        """The waiters to write as documents of their own."""
        return [one for one in self.lock.waiters if one.notified_at is None and one not in self.entries]

    @property
    def left(self) -> Sequence[Waiter]:
        """The waiters whose own documents are to be deleted: they were notified, or wait no longer."""
        staying = {one.entry_id for one in self.lock.waiters if one.notified_at is None}
        return [one for one in self.entries if one.entry_id not in staying]


@dataclass(frozen=True, slots=True)
class Grants:
    """The waiters that may acquire a lock now, and are to be notified once the changed lock has been committed."""

    key: str = ""
    waiters: tuple[Waiter, ...] = ()
    has_drained: bool = False
    """True if the changed lock says that nobody else waits. Look then for a run that has begun to wait meanwhile."""


NO_GRANTS = Grants()


@dataclass(frozen=True, slots=True)
class ArchivedJournal:
    """A journal that has become part of its execution's record, and is deleted."""

    execution_id: str
    size: int
    """The most entries it may have: no entry has a greater number."""


@dataclass(frozen=True)
class TaskWrite:
    """A task to write with its records, if it still is as it was read."""

    task: Task
    base: VersionedTask | None = None
    """The task as it was read, or None if it must not exist. Only the differences from it are written."""
    executions: Sequence[Execution] = ()
    """Its records that are created or overwritten with it."""
    kept_record: str | None = field(default=None, kw_only=True)
    """The id of its record that goes on without `expire_at`: nothing else of it is written. It must exist."""

    def find_offers(self) -> tuple[OfferEntry | None, OfferEntry | None]:
        """Return the offer that is stored, and the one that is to be: if they differ, it is written or deleted."""
        stored = None if self.base is None else self.base.task
        before = None if stored is None or stored.offer is None else offer_entry(stored)
        return before, None if self.task.offer is None else offer_entry(self.task)


@dataclass(frozen=True, slots=True)
class DeliveryMark:
    """The effect of a delivery's end on the record of the execution whose result it delivers: `is_delivered`."""

    task_id: str
    execution_id: str


@dataclass(frozen=True, slots=True)
class Effects:
    """What the options, the log, the queue and the accounts need of a commit. No store reads it."""

    run: Run | None = None
    """The run that it claims, if its handler is to be called next."""
    reason: str = ""
    """The reason for it, for the log of dispatches."""
    reads: int = 1
    """The number of documents that were read for it, its lock apart: the task, if it was not known."""
    dispatches: int = 0
    """The number of dispatches that it took."""
    grants: Grants = NO_GRANTS
    """The waiters at its lock to notify after it."""
    journals: Mapping[str, Sequence[JournalEntry]] = field(default_factory=dict)
    """The journals that have been loaded already, by execution id."""
    has_calls_in_progress: bool = False
    """True if it suspends the run for several calls, of which one has already ended and others are in progress."""
    is_repeat: bool = False
    """True if it ends an attempt, and was decided before: that commit met a conflict."""


NO_EFFECTS = Effects()
NO_READS = Effects(reads=0)


@dataclass(frozen=True)
class Commit(TaskWrite):
    """The changes of a decision, which a store writes together or not at all."""

    messages: Sequence[Message] = ()
    """Messages that are created or overwritten."""
    lock: VersionedLock | None = None
    """A lock that is written like the task: only if it still has the version that was read."""
    entries: Sequence[JournalEntry] = ()
    """Journal entries that are created or overwritten."""
    archived: Sequence[ArchivedJournal] = ()
    """Journals that are deleted."""
    others: Sequence[TaskWrite] = ()
    """Further tasks, each under the same condition as the first. No two of them have the same id."""
    delivered: DeliveryMark | None = None
    """A record of another task of which one field is set."""
    unchanged: Sequence[VersionedTask] = ()
    """Other tasks, which still have to be as they were read."""
    drafts: Sequence[TaskDraft] = ()
    """The follow-ups of a success. They become `others`."""
    effects: Effects = NO_EFFECTS
    """What follows from it, apart from what is written."""

    @property
    def ends_journals(self) -> bool:
        """Return whether it may end runs that have a journal."""
        runs = self.base.task.runs if self.executions and self.base is not None else ()
        return bool([run for run in runs if run.steps or self.entries or self.effects.journals])

    def having(self, **changes: Any) -> Self:
        """Return the commit with some fields changed, in an eighth of the time that `dataclasses.replace` takes."""
        changed = object.__new__(type(self))
        vars(changed).update(vars(self), **changes)
        return changed

    def because(self, reason: str, run: Run | None = None) -> Self:
        """Return the commit with the reason for it, and the run that it claims."""
        return self.having(effects=Effects(run, reason))

    def count_writes(self, *, new_tasks: bool = True) -> tuple[int, int]:
        """Return how many documents this writes and how many it deletes, as Google bills them.

        Deleted journal entries are not counted. Without `new_tasks`, neither are tasks that it creates.
        """
        writes, deletes = len(self.messages) + len(self.entries), 0
        for each in (self, *self.others):
            if each.base is None and not new_tasks:
                continue
            writes += 1 + len(each.executions) + (each.kept_record is not None)
            if each.task.offer is not None or (each.base is not None and each.base.task.offer is not None):
                before, after = each.find_offers()
                if before != after:
                    writes, deletes = writes + (after is not None), deletes + (after is None)
        writes += len(self.unchanged) + (self.delivered is not None)
        if self.lock is not None:
            lock_writes, lock_deletes = self.lock.count_writes()
            writes, deletes = writes + lock_writes, deletes + lock_deletes
        return writes, deletes


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that took effect, and the task with its new version."""

    stored: VersionedTask
    commit: Commit
