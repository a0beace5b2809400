"""Count billed operations: a store and a dispatcher that wrap another one and count its calls.

The counts are those that Google bills: documents read, written and deleted, tasks
created. Tests compare them with the
budget in ``docs/explanation/costs.md``; the demo and simulations display them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Message
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.pull import OfferEntry
    from cloudsched.domain.documents.record import Record
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.locks import Lock, Waiter
    from cloudsched.engine.ports.inbox import InboxStore
    from cloudsched.engine.ports.pages import Page
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage
    from cloudsched.engine.ports.records import R, RecordStore, VersionedRecord
    from cloudsched.engine.ports.search import ExecutionQuery, SearchStore
    from cloudsched.engine.ports.store import Commit, Store, VersionedLock, VersionedTask
    from cloudsched.engine.ports.task_query import TaskQuery
    from cloudsched.engine.ports.version import Version

T = TypeVar("T")


@dataclass(slots=True)
class Counts:
    """Operations so far."""

    reads: int = 0
    """Documents read, including lookups of missing documents, which are billed as well."""
    commits: int = 0
    """Commits that took effect."""
    writes: int = 0
    """Documents written by those commits."""
    deletes: int = 0
    """Offers, locks and waiters deleted by those commits."""
    dispatches: int = 0
    """Calls that create a task in the queue, including those whose name already exists."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, *, reads: int = 0, commits: int = 0, writes: int = 0, deletes: int = 0, dispatches: int = 0) -> None:
        """Add to the counts. Thread-safe."""
        with self._lock:
            self.reads += reads
            self.commits += commits
            self.writes += writes
            self.deletes += deletes
            self.dispatches += dispatches

    def since(self, earlier: Counts) -> Counts:
        """Return the operations counted since `earlier`, which `copy` made."""
        return Counts(
            self.reads - earlier.reads,
            self.commits - earlier.commits,
            self.writes - earlier.writes,
            self.deletes - earlier.deletes,
            self.dispatches - earlier.dispatches,
        )

    def copy(self) -> Counts:
        """Return a copy of the current counts."""
        return Counts(self.reads, self.commits, self.writes, self.deletes, self.dispatches)


class CountingStore:
    """A `Store` that counts the documents that the wrapped store reads and writes."""

    def __init__(self, store: Store, counts: Counts) -> None:
        self._store = store
        self._counts = counts

    @property
    def records(self) -> RecordStore:
        """The records, whose operations are counted as well."""
        return CountingRecords(self._store.records, self._counts)

    @property
    def inbox(self) -> InboxStore:
        """The inboxes; what people read is not counted."""
        return self._store.inbox

    @property
    def search(self) -> SearchStore:
        """The lists across tasks, whose reads are counted as well."""
        return CountingSearch(self._store.search, self._counts)

    def load(self, task_id: str) -> VersionedTask | None:
        """Pass on; one read."""
        self._counts.add(reads=1)
        return self._store.load(task_id)

    def commit(self, commit: Commit) -> VersionedTask:
        """Pass on; if it succeeds, one commit, its writes and deletes; deleted journal entries are not counted."""
        committed = self._store.commit(commit)
        writes, deletes = commit.count_writes()
        self._counts.add(commits=1, writes=writes, deletes=deletes)
        return committed

    def load_lock(self, key: str) -> VersionedLock:
        """Pass on; one read."""
        self._counts.add(reads=1)
        return self._store.load_lock(key)

    def commit_lock(self, lock: VersionedLock) -> None:
        """Pass on; if it succeeds, one commit, its writes and deletes."""
        self._store.commit_lock(lock)
        writes, deletes = lock.count_writes()
        self._counts.add(commits=1, writes=writes, deletes=deletes)

    def list_waiters(
        self, key: str, *, limit: int, task_ids: Sequence[str] | None = None, worker_group: str | None = None
    ) -> Sequence[Waiter]:
        """Pass on; a read for each waiter, and one if there is none."""
        waiters = self._store.list_waiters(key, limit=limit, task_ids=task_ids, worker_group=worker_group)
        self._counts.add(reads=max(1, len(waiters)))
        return waiters

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        """Pass on; a read for each entry, and one for an empty journal."""
        entries = self._store.load_journal(task_id, execution_id)
        self._counts.add(reads=max(1, len(entries)))
        return entries

    def purge(self, task_id: str) -> None:
        """Pass on; deletions are not counted."""
        self._store.purge(task_id)

    def expire(self, now: datetime) -> int:
        """Pass on; deletions are not counted."""
        return self._store.expire(now)

    def list_tasks(self, query: TaskQuery, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Pass on; a read for each document that was looked at, at least one."""
        return self._count_items(self._store.list_tasks(query, limit=limit, page_token=page_token))

    def list_due_tasks(
        self,
        before: datetime,
        *,
        since: datetime | None = None,
        shard: int | None = None,
        limit: int,
        page_token: str | None = None,
    ) -> Page[Task]:
        """Pass on; a read for each document that was looked at, at least one."""
        return self._count_items(
            self._store.list_due_tasks(before, since=since, shard=shard, limit=limit, page_token=page_token)
        )

    def count_shards(self) -> int:
        """Pass on."""
        return self._store.count_shards()

    def list_offers(
        self, queue_keys: Sequence[str], owner: str | None = None, *, limit: int, after: tuple[str, str] | None = None
    ) -> Sequence[OfferEntry]:
        """Pass on; a read for each offer, and one if there is none."""
        offers = self._store.list_offers(queue_keys, owner, limit=limit, after=after)
        self._counts.add(reads=max(1, len(offers)))
        return offers

    def load_many(self, task_ids: Sequence[str]) -> Sequence[VersionedTask]:
        """Pass on; a read for each task, also for those that do not exist."""
        self._counts.add(reads=len(task_ids))
        return self._store.load_many(task_ids)

    def next_wakeup(self) -> datetime | None:
        """Pass on; not counted, since only the local clock uses it."""
        return self._store.next_wakeup()

    def load_execution(self, task_id: str, execution_id: str) -> Execution | None:
        """Pass on; one read."""
        self._counts.add(reads=1)
        return self._store.load_execution(task_id, execution_id)

    def list_executions(self, task_id: str, *, limit: int, page_token: str | None = None) -> Page[Execution]:
        """Pass on; a read for each document that was looked at, at least one."""
        return self._count_items(self._store.list_executions(task_id, limit=limit, page_token=page_token))

    def list_messages(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        """Pass on; a read for each document that was looked at, at least one."""
        return self._count_items(self._store.list_messages(owner, limit=limit, page_token=page_token))

    def check(self) -> datetime | None:
        """Pass on."""
        return self._store.check()

    def close(self) -> None:
        """Pass on."""
        self._store.close()

    def _count_items(self, page: Page[T]) -> Page[T]:
        self._counts.add(reads=page.read)
        return page


class CountingRecords:
    """A `RecordStore` that counts the documents that the wrapped one reads and writes."""

    def __init__(self, records: RecordStore, counts: Counts) -> None:
        self._records = records
        self._counts = counts

    def load(self, kind: type[R], record_id: str) -> VersionedRecord[R] | None:
        """Pass on; one read."""
        self._counts.add(reads=1)
        return self._records.load(kind, record_id)

    def write(self, record: Record, expected_version: Version | None) -> Version:
        """Pass on; if it succeeds, one commit with one write."""
        version = self._records.write(record, expected_version)
        self._counts.add(commits=1, writes=1)
        return version

    def delete(self, kind: type[Record], record_id: str, expected_version: Version) -> None:
        """Pass on; if it succeeds, one commit with one deletion."""
        self._records.delete(kind, record_id, expected_version)
        self._counts.add(commits=1, deletes=1)

    def list_all(self, kind: type[R], *, limit: int, after: str = "") -> Sequence[R]:
        """Pass on; a read for each record, and one if there is none."""
        found = self._records.list_all(kind, limit=limit, after=after)
        self._counts.add(reads=max(1, len(found)))
        return found

    def list(self, kind: type[R], owner: str, *, limit: int, after: str = "") -> Sequence[R]:
        """Pass on; a read for each record, and one if there is none."""
        found = self._records.list(kind, owner, limit=limit, after=after)
        self._counts.add(reads=max(1, len(found)))
        return found


class CountingSearch:
    """A `SearchStore` that counts the documents that the wrapped one reads."""

    def __init__(self, search: SearchStore, counts: Counts) -> None:
        self._search = search
        self._counts = counts

    def list_finished(
        self, query: ExecutionQuery, *, is_failure: bool, limit: int, page_token: str | None = None
    ) -> Page[Execution]:
        """Pass on; a read for each document that was looked at, at least one."""
        page = self._search.list_finished(query, is_failure=is_failure, limit=limit, page_token=page_token)
        self._counts.add(reads=page.read)
        return page

    def list_open(
        self, query: ExecutionQuery, status: ExecutionStatus, *, limit: int, page_token: str | None = None
    ) -> Page[Task]:
        """Pass on; a read for each document that was looked at, at least one."""
        page = self._search.list_open(query, status, limit=limit, page_token=page_token)
        self._counts.add(reads=page.read)
        return page

    def count_tasks(self, query: TaskQuery, up_to: int) -> int:
        """Pass on; a read for each 1,000 that were counted."""
        return self._count_counted(self._search.count_tasks(query, up_to))

    def count_finished(self, query: ExecutionQuery, *, is_failure: bool, up_to: int) -> int:
        """Pass on; a read for each 1,000 that were counted."""
        return self._count_counted(self._search.count_finished(query, is_failure=is_failure, up_to=up_to))

    def count_open(self, query: ExecutionQuery, status: ExecutionStatus, up_to: int) -> int:
        """Pass on; a read for each 1,000 that were counted."""
        return self._count_counted(self._search.count_open(query, status, up_to))

    def _count_counted(self, count: int) -> int:
        self._counts.add(reads=max(1, -(-count // 1000)))
        return count

    def find_last_change(self, owner: str | None = None) -> str:
        """Pass on; one read."""
        self._counts.add(reads=1)
        return self._search.find_last_change(owner)

    def list_changed(self, owner: str | None, since: str, *, limit: int, page_token: str | None = None) -> Page[Task]:
        """Pass on; a read for each document that was looked at, at least one."""
        page = self._search.list_changed(owner, since, limit=limit, page_token=page_token)
        self._counts.add(reads=page.read)
        return page

    def list_queue_keys(
        self, owner: str | None = None, *, limit: int, prefix: str = "", after: str = ""
    ) -> Sequence[str]:
        """Pass on; a read for each key, and one for finding no further one."""
        keys = self._search.list_queue_keys(owner, limit=limit, prefix=prefix, after=after)
        self._counts.add(reads=len(keys) + (len(keys) < limit))
        return keys

    def count_offers(self, queue_key: str, owner: str | None, up_to: int) -> int:
        """Pass on; a read for each 1,000 that were counted."""
        return self._count_counted(self._search.count_offers(queue_key, owner, up_to))

    def list_locks(self, *, limit: int, begin: str = "", end: str | None = None, after: str = "") -> Sequence[Lock]:
        """Pass on; a read for each lock, and one if there is none."""
        locks = self._search.list_locks(limit=limit, begin=begin, end=end, after=after)
        self._counts.add(reads=max(1, len(locks)))
        return locks


class CountingDispatcher:
    """A `Dispatcher` that counts the dispatches that the wrapped one is asked to create."""

    def __init__(self, dispatcher: Dispatcher, counts: Counts) -> None:
        self._dispatcher = dispatcher
        self._counts = counts

    def create(self, message: QueueMessage) -> None:
        """Pass on; one dispatch."""
        self._counts.add(dispatches=1)
        self._dispatcher.create(message)

    def close(self) -> None:
        """Pass on."""
        self._dispatcher.close()
