"""The port for stored state: tasks, offers, executions, journals, locks, messages, records and large results.

Every adapter guarantees what the bullets say, and passes the contract suite in ``tests/contract``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from cloudsched.engine.ports.pages import MAX_PAGE_BYTES, Page

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution, Message
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.pull import OfferEntry
    from cloudsched.domain.documents.record import Record
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Commit, Version, VersionedLock, VersionedTask
    from cloudsched.domain.transitions.locks import Waiter
    from cloudsched.engine.ports.search import SearchStore, TaskQuery


def choose_shard(task_id: str, count: int) -> int:
    """Return which shard of the store's indexes a task is in, of `count`."""
    if count == 1:
        return 0
    return int.from_bytes(hashlib.blake2b(task_id.encode(), digest_size=8).digest(), "big") % count


class InboxStore(Protocol):
    """Marks, counts and removes messages. They are written by the commits that deliver them.

    * A mark changes a message once: the first one stays.
    * Counting costs a small part of a read for each message that is counted.
    """

    def mark_read(self, owner: str, message_id: str, at: datetime) -> Message | None:
        """Record when a message was first read, and return it, or None. Costs one read, and at most one write."""
        ...

    def count_unread(self, owner: str, up_to: int) -> int:
        """Return how many of an owner's messages were not read, at most `up_to`."""
        ...

    def remove_some(self, owner: str) -> int:
        """Delete some of an owner's messages, and return how many. 0 means that none is left."""
        ...


class Store(Protocol):
    """Stores tasks, offers, executions, journals, locks and messages.

    * A `commit` is atomic: either all of it is stored, and survives the loss of any process, or nothing is.
    * A `commit` takes effect only if the task still has the version that was read. Of any number of callers that
      expect the same version, exactly one succeeds.
    * A task's offer changes only together with the task: it is stored as long as `Task.offer` is set. A commit that
      does not change it does not write it.
    * A read that starts after a commit has returned sees it.
    * Lists are paged by cursor: an item that changes between two pages is returned once or not at all. No other item is
      missed or repeated. A page token that was made up, or belongs to another list, raises InvalidInput.
    * Lists use an index: their cost grows with the page, not with the collection. For a filter that no index has
      (`TaskQuery.looked_for`), a page reads at most `MAX_LOOKED_THROUGH` documents that the other filters find.
    * A document that cannot be read (damaged, or of a newer version) is skipped in every list: logged as
      ``unreadable`` and counted in the page. Loading it by its id is an error.
    * A service that does not answer in time raises `StoreUnavailable`. A commit may then have taken effect or not.
    """

    @property
    def records(self) -> RecordStore:
        """The documents that callers write as a whole."""
        ...

    @property
    def inbox(self) -> InboxStore:
        """The inbox that holds messages after they were delivered."""
        ...

    @property
    def search(self) -> SearchStore:
        """Lists of finished and running executions across tasks."""
        ...

    def make_id(self, at: datetime) -> str | None:
        """Return an id for a task that is created at an instant, or None if any random one will do."""
        ...

    def load(self, task_id: str) -> VersionedTask | None:
        """Return the task as it is now, or None. One document is read."""
        ...

    def recall(self, task_id: str) -> VersionedTask | None:
        """Return the task as this process read or wrote it last, or None if it does not know it. Nothing is read.

        It may have changed since, or be gone: then a commit with its version conflicts.
        """
        ...

    def commit(self, commit: Commit) -> VersionedTask:
        """Write a commit atomically, and return its task with the version that it has now.

        Raises:
            VersionConflict: A task or the lock has another version by now, no longer exists, or exists although it must
                not, or the record that was delivered no longer exists.
        """
        ...

    def load_lock(self, key: str) -> VersionedLock:
        """Return the lock of a key as it is now, with the waiters that were notified. One document is read.

        It is an empty lock if there is none.
        """
        ...

    def list_waiters(
        self, key: str, *, limit: int, task_ids: Sequence[str] | None = None, worker_group: str | None = None
    ) -> Sequence[Waiter]:
        """Return the first waiters of a lock, in their order, that are documents of their own. Read only those.

        With `task_ids` only the waiters of these tasks, in any order. With `worker_group` only those of the group.
        """
        ...

    def commit_lock(self, lock: VersionedLock) -> None:
        """Write only a lock and its waiters, if it still has the version that was read. Raises VersionConflict."""
        ...

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        """Return the whole journal of an open execution, ordered by entry number."""
        ...

    def purge(self, task_id: str) -> None:
        """Delete the executions and journals of a task that is marked as deleted, then the task.

        Safe to repeat, also after a crash. A task that is not marked stays: it was created again with the same id.
        """
        ...

    def remove(self, ended: VersionedTask) -> bool:
        """Remove an ended task with its executions, in one commit. Return whether it is gone.

        It stays if it has changed since it was read, or has more executions than one commit takes.
        """
        ...

    def expire(self, now: datetime) -> int:
        """Delete the tasks, executions and messages whose `expire_at` has passed, or many of them, and return how many.

        A store that does this itself (Firestore, by a TTL policy) does nothing and returns 0.
        """
        ...

    def list_tasks(
        self, query: TaskQuery, *, limit: int, page_token: str | None = None, max_bytes: int = MAX_PAGE_BYTES
    ) -> Page[Task]:
        """Return a page of the matching tasks, without those that are being deleted.

        It ends, with a token, at the task with which its size reaches `max_bytes`. All other lists end at
        `MAX_PAGE_BYTES`.
        """
        ...

    def list_due_tasks(
        self,
        before: datetime,
        *,
        since: datetime | None = None,
        shard: int | None = None,
        is_removal: bool = False,
        limit: int,
        page_token: str | None = None,
    ) -> Page[Task]:
        """Return a page of the tasks whose `wake_at` is not later than `before`, the earliest first.

        Reads only those (wakeAt, then id, both ascending), including tasks that are being deleted. Those that only wait
        to be removed (`Task.waits_for_removal`) are in a list of their own, with `is_removal`. `since` leaves out
        those with an earlier `wake_at`, so that a store need not walk over what it has deleted there. `shard` leaves
        out those that are not in that one of `count_shards`. Each task is in one of them.
        """
        ...

    def count_shards(self) -> int:
        """Return over how many ranges of its indexes the store spreads tasks, so that several can be swept at a time.

        With one it reads nothing.
        """
        ...

    def list_offers(
        self, queue_keys: Sequence[str], owner: str | None, *, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[OfferEntry]:
        """Return the offers under one of the queue keys (and of that owner), by their order, then by task id.

        Reads only those. `after` is the order and the task id of the offer after which to continue.
        """
        ...

    def load_many(self, task_ids: Sequence[str]) -> Sequence[VersionedTask]:
        """Return those of some tasks that exist and can be read, in one round trip. One document is read for each."""
        ...

    def next_wakeup(self) -> datetime | None:
        """Return the earliest `wake_at` of all tasks, or None if no task has one. Reads two documents.

        A store that removes tasks only as it is told to (`expire`) returns the earliest `expire_at` if that is before.
        """
        ...

    def load_execution(self, task_id: str, execution_id: str) -> Execution | None:
        """Return one execution's record, or None."""
        ...

    def list_executions(
        self, task_id: str, *, limit: int, page_token: str | None = None, before: datetime | None = None
    ) -> Page[Execution]:
        """Return a page of a task's executions, the latest first (scheduledFor, then id, both descending).

        Without a token only those that are scheduled `before` an instant, if there is one.
        """
        ...

    def list_messages(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's messages, the newest first (createdAt, then id, both descending)."""
        ...

    def check(self) -> datetime | None:
        """Make one small round trip, and return the store's current time, if the store has its own clock."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


R = TypeVar("R", bound="Record")


@dataclass(frozen=True, slots=True)
class VersionedRecord(Generic[R]):
    """A record as it was read, and its version."""

    record: R
    version: Version


class RecordStore(Protocol):
    """Stores records, each under its kind and its id.

    * A write or a deletion takes effect only if the record still has the version that was read. Of any number of
      callers that expect the same version, exactly one succeeds.
    * A read that starts after a write has returned sees it.
    * A record that cannot be read (damaged, or of a newer version) is skipped in lists. Loading it is an error.
    """

    def load(self, kind: type[R], record_id: str) -> VersionedRecord[R] | None:
        """Return a record as it is now, or None. One document is read."""
        ...

    def write(self, record: Record, expected_version: Version | None) -> Version:
        """Write a record, and return its new version. Raises VersionConflict.

        `expected_version` is the version that was read. None means that the record must not exist.
        """
        ...

    def delete(self, kind: type[Record], record_id: str, expected_version: Version) -> None:
        """Delete a record. Raises VersionConflict if it has another version by now, or no longer exists."""
        ...

    def list_all(self, kind: type[R], *, limit: int, after: str = "") -> Sequence[R]:
        """Return the records of a kind, of all owners, by id, those after an id. Reads only those."""
        ...

    def list(self, kind: type[R], owner: str, *, limit: int, after: str = "") -> Sequence[R]:
        """Return an owner's records of a kind, by id, those after an id. Reads only those.

        Raises ValueError if no index has the owners of this kind (`Record.is_listed_by_owner`).
        """
        ...


def require_listed_by_owner(kind: type[Record]) -> None:
    """Check that an index has the owners of a kind of records. Raises ValueError."""
    if not kind.is_listed_by_owner:
        raise ValueError(f"No index has the owner of {kind.collection}: load them by their ids")


class Listener(Protocol):
    """Notifies a worker that there may be new work for it. This is a hint: the worker polls as well.

    * After every change by which an offer appears under one of the queue keys, `notify` is called soon. It may be
      called without a reason too, but not continuously while nothing happens.
    * `notify` is called from another thread, also while the context is being entered. It returns quickly and does not
      raise.
    * A lost connection is opened again, with increasing delays. Then `notify` is called: changes may have been missed.
    * A permanent error (no permission, no index) is logged once. Then `notify` is called every few seconds.
    * Leaving the context ends all threads and calls, quickly. None of the threads keeps a process alive.
    """

    def listen(
        self, queue_keys: Sequence[str], owner: str | None, notify: Callable[[], None]
    ) -> AbstractContextManager[None]:
        """Call `notify`, within the context, about offers under these queue keys, and of this owner if one is given."""
        ...


class Blobs(Protocol):
    """Stores results that are too large for a document.

    * Once `put` has returned, the complete content can be read under its key. It is only ever overwritten with the same
      content.
    """

    def put(self, key: str, content: bytes) -> None:
        """Store content under a key: segments of letters, digits, dots, hyphens and underscores, between slashes.

        Raises BlobsUnavailable.
        """
        ...

    def get(self, key: str) -> bytes:
        """Return the content of a key. Raises NotFound or BlobsUnavailable."""
        ...

    def delete(self, key: str) -> None:
        """Delete the content of a key and of all keys below it, which is no longer needed. Safe to repeat.

        An adapter whose storage expires old content itself (a bucket, by its lifecycle rule) does nothing. Raises
        StoreUnavailable if not everything could be deleted.
        """
        ...
