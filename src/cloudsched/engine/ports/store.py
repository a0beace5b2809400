"""What the engine needs from the outside, one protocol each. Adapters promise what the bullets say.

Every port has one contract suite in ``tests/contract`` that every adapter passes. There is one more port, behind which
users' scripts run, in `cloudsched.engine.ports.interpreter`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution, Message
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Task, TaskStatus
    from cloudsched.domain.transitions.locks import Lock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Version:
    """Which state of a document was read. Its content is the adapter's own; compare it only for equality."""

    value: object


@dataclass(frozen=True, slots=True)
class VersionedTask:
    """A task as it was read, and its version."""

    task: Task
    version: Version


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which tasks to list. Every filter that is given must hold.

    Without `due_from` and `due_until` the newest tasks come first (createdAt, then id, both descending). With either,
    the soonest come first (nextExecutionTime, then id, both ascending), and tasks without one are left out.
    """

    owner: str | None = None
    status: TaskStatus | None = None
    handler: str | None = None
    due_from: datetime | None = None
    """Not before this instant."""
    due_until: datetime | None = None
    """Before this instant (which is itself left out)."""
    parent: str | None = None
    """The id of the task whose calls they are."""

    @property
    def is_sorted_by_due_time(self) -> bool:
        """Whether the soonest come first, rather than the newest."""
        return self.due_from is not None or self.due_until is not None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One part of a list, and the token that continues it; no token means that this was the last."""

    items: Sequence[T]
    next_page_token: str | None = None
    unreadable: int = 0
    """How many documents of this part were skipped, being damaged or of a newer version."""


@dataclass(frozen=True, slots=True)
class VersionedLock:
    """A lock, and the version that it was read at; None if there was no document. An empty lock is removed."""

    lock: Lock
    version: Version | None


@dataclass(frozen=True, slots=True)
class ArchivedJournal:
    """A journal that has become part of its execution's record, and is removed."""

    execution_id: str
    size: int
    """How many entries it may have: no number is greater."""


class Store(Protocol):
    """Where tasks, executions and messages live.

    * A `commit` is atomic: all of it is there, and will survive the loss of any process, or none of it is.
    * A `commit` takes effect only if the task still has the version that was read. Of any number of callers that
      expect the same version, exactly one succeeds.
    * A read that begins after a commit has returned sees it.
    * Lists are paged by cursor: what is changed between two pages is seen once or not at all, nothing else is
      missed or repeated. They use an index: their cost grows with the page, not with the collection.
    * A document that cannot be read (damaged, or of a newer version) is skipped in every list: logged as
      ``unreadable`` and counted in the page. Loading it alone is an error.
    * A service that does not answer in time raises `StoreUnavailable`; a commit may then have taken effect or not.
    """

    def load(self, task_id: str) -> VersionedTask | None:
        """Return the task as it is now, or None. One document is read."""
        ...

    def commit(
        self,
        task: Task,
        expected_version: Version | None,
        executions: Sequence[Execution] = (),
        messages: Sequence[Message] = (),
        lock: VersionedLock | None = None,
        *,
        entries: Sequence[JournalEntry] = (),
        archived: Sequence[ArchivedJournal] = (),
    ) -> Version:
        """Write a task, with records that belong to it, in one piece; return its new version.

        `expected_version` is the version that was read; None means that the task must not exist. Executions and
        messages are created or overwritten. A lock is written like the task: only at the version it was read at.
        Journal entries are created or overwritten as well; the journals that are `archived` are removed.

        Raises:
            VersionConflict: The task or the lock has another version by now, is gone, or exists where it must not.
        """
        ...

    def load_lock(self, key: str) -> VersionedLock:
        """Return the lock of a key as it is now; an empty one if there is none. One document is read."""
        ...

    def commit_lock(self, lock: VersionedLock) -> None:
        """Write a lock alone, if it still has the version that it was read at.

        Raises:
            VersionConflict: It has another one by now.
        """
        ...

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        """Return the journal of an open execution, whole, in the order of its numbers."""
        ...

    def purge(self, task_id: str) -> None:
        """Remove the executions and journals of a task that is marked as deleted, then the task.

        Harmless to repeat, also after a crash. A task that is not marked stays: it was made again, under the same id.
        """
        ...

    def expire(self, now: datetime) -> int:
        """Remove executions and messages whose `expire_at` has come, some of them; return how many.

        A store that does this by itself (Firestore, by a TTL policy) does nothing and returns 0.
        """
        ...

    def list_tasks(self, query: TaskQuery, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Return a page of the tasks that fit. Tasks that are being deleted are left out.

        Raises:
            InvalidInput: The page token was made up, or belongs to another query.
        """
        ...

    def list_due_tasks(self, before: datetime, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Return a page of the tasks whose `wake_at` is not later than `before`, the earliest first.

        Reads only those (wakeAt, then id, both ascending), tasks that are being deleted included.
        """
        ...

    def list_claimable(
        self, queue_keys: Sequence[str], owner: str | None = None, *, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[VersionedTask]:
        """Return tasks with an offer in one of the lanes (and of that owner), by the offer's order, then by id.

        Reads only those. `after` is the order and the id of the task to go on behind.
        """
        ...

    def next_wakeup(self) -> datetime | None:
        """Return the earliest `wake_at` of all tasks, or None if nothing is waited for. Reads one."""
        ...

    def load_execution(self, task_id: str, execution_id: str) -> Execution | None:
        """Return one execution's record, or None."""
        ...

    def list_executions(self, task_id: str, *, limit: int, page_token: str | None = None) -> Page[Execution]:
        """Return a page of a task's executions, the latest first (scheduledFor, then id, both descending).

        Raises:
            InvalidInput: The page token was made up, or belongs to another task.
        """
        ...

    def list_messages(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's messages, the newest first (createdAt, then id, both descending)."""
        ...

    def check(self) -> datetime | None:
        """Make one small round trip; return what time it is there, if the store has a clock of its own.

        Raises:
            StoreUnavailable: It did not answer.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
