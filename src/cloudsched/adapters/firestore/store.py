"""The `Store` over Firestore: one read per load, one commit per decision, no transactions.

::

    tasks/{taskId}                              Task
    tasks/{taskId}/executions/{executionId}     Execution
        …/steps/{number}                        JournalEntry
    offers/{taskId}                             OfferEntry
    inboxes/{owner}/messages/{messageId}        Message
    locks/{lockId}                              a lock (features/locks)
    locks/{lockId}/waiters/{entryId}            a run that waits for it
    {collection}/{id}                           Record

Each collection's ID may have a prefix: see `adapters.firestore.collection_prefix`.

A commit's precondition is the ``update_time`` of the task (and of the lock). A write that changes nothing
leaves it as it was (google.firestore.v1.WriteResult), so every write stores a fresh ``private.commitId``. An
offer also gets ``writtenAt``, set by Firestore's clock, which listeners order by.

A dispatch makes no query, so what builds and reads them is imported by the methods that need it.
"""

from __future__ import annotations

from copy import copy
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.list_fields import (
    TaskVersion,
    read_task,
    to_document,
)
from cloudsched.adapters.firestore.protos import (
    MAX_ID_BYTES,
    document_name,
    get_commit_id,
    require_request_fits,
)
from cloudsched.adapters.firestore.rising_ids import RisingIds
from cloudsched.adapters.firestore.rpc import FirestoreRpc
from cloudsched.adapters.firestore.shards import Placement, Shards, query_in_order
from cloudsched.adapters.firestore.writes import CommitWrites
from cloudsched.domain.documents.document import Document
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.journal import JournalEntry
from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import Commit, TaskWrite, VersionedTask
from cloudsched.engine.storage.known_tasks import KnownTasks
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, Page, collect_readable, skip_unreadable
from cloudsched.errors import VersionConflict
from cloudsched.features.fields import OfferEntry
from cloudsched.features.table import open_linked_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.adapters.firestore.placement import Walk
    from cloudsched.adapters.firestore.records import FirestoreInbox, FirestoreRecords
    from cloudsched.adapters.firestore.search import FirestoreSearch
    from cloudsched.adapters.firestore.sweep import FirestoreSweep
    from cloudsched.adapters.google import channel as google_calls
    from cloudsched.engine.ports.search import TaskQuery

D = TypeVar("D", bound=Document)

DEADLINE = timedelta(seconds=10)
"""The longest time of a call, retries included."""

_Write: google_calls.Message = messages.Write
_REQUEST_TIME = messages.DocumentTransform.FieldTransform.ServerValue.REQUEST_TIME

_MAX_STEPS = 10_000
"""An upper bound on the entries of a journal."""
_PARTS = {"records", "inbox", "search", "locks", "sweep"}
"""The ports of their own that a store has."""


class FirestoreStore:
    """A `Store` in a Firestore database."""

    def __init__(
        self,
        *,
        project: str,
        database: str = "(default)",
        emulator: str | None = None,
        deadline: timedelta = DEADLINE,
        shards: int = 1,
        prefix: str = "",
        name_index: bool = False,
    ) -> None:
        """Open a channel to the database. Nothing is sent before the first call."""
        path = f"projects/{project}/databases/{database}"
        self._documents = f"{path}/documents"
        self._rpc = FirestoreRpc(path, emulator, deadline, prefix)
        self._shards = Shards(self._rpc, self._documents, shards)
        self._known = KnownTasks()
        self._rising_ids = RisingIds()
        self._name_index = name_index
        self._writes = CommitWrites(self._documents, self._shards, name_index=name_index)

    @cached_property
    def records(self) -> FirestoreRecords:
        """Stores records."""
        from cloudsched.adapters.firestore.records import FirestoreRecords  # noqa: PLC0415 - see the module's docstring

        return FirestoreRecords(self._rpc, self._documents)

    @cached_property
    def inbox(self) -> FirestoreInbox:
        """Marks messages."""
        from cloudsched.adapters.firestore.records import FirestoreInbox  # noqa: PLC0415 - the same

        return FirestoreInbox(self._rpc, self._documents)

    @cached_property
    def search(self) -> FirestoreSearch:
        """Lists and counts across tasks."""
        from cloudsched.adapters.firestore.search import FirestoreSearch  # noqa: PLC0415 - the same

        return FirestoreSearch(self._rpc, self._documents, self._shards, name_index=self._name_index)

    @cached_property
    def locks(self) -> Any:  # noqa: ANN401 - of a feature
        """Stores the documents of a feature that commits link to tasks."""
        return open_linked_store("firestore", self._rpc, self._documents)

    @cached_property
    def sweep(self) -> FirestoreSweep:
        """Lists due tasks, and removes what nobody keeps."""
        from cloudsched.adapters.firestore.sweep import FirestoreSweep  # noqa: PLC0415 - the same

        return FirestoreSweep(self._rpc, self._documents, self._shards, self._known)

    def over(self, wrap: Callable[[FirestoreRpc], FirestoreRpc]) -> Self:
        """Return this store over other calls, which wrap its own."""
        other = copy(self)
        for part in _PARTS & vars(other).keys():  # they have the calls of this one
            del vars(other)[part]
        vars(other).update(_rpc=wrap(self._rpc), _known=KnownTasks())
        return other

    def make_id(self, at: datetime) -> None:
        """Return None: random ids spread the load, and ids that follow each other would not.

        See cloud.google.com/firestore/native/docs/best-practices.
        """

    def load(self, task_id: str) -> VersionedTask | None:
        """Return the task as it is now, or None. One document is read."""
        name = self._document_name("tasks", task_id)
        found, read_at = (None, None) if name is None else self._rpc.get(name)
        if found is None:
            return None
        return read_task(self._known, found, read_at)

    def recall(self, task_id: str) -> VersionedTask | None:
        """Return the task as this process read or wrote it last, or None."""
        return self._known.recall(task_id)

    def commit(self, commit: Commit) -> VersionedTask:
        """Write tasks, their records and a lock in one commit, if their versions are the expected ones.

        If a commit's response is lost, the retry conflicts with the commit itself: the caller reads the
        documents and decides again, as after any other conflict.
        """
        task = commit.task
        writes, places = self._writes.build(commit)
        if commit.linked is not None:
            writes += self.locks.build_writes(commit.linked)
        require_request_fits(writes)
        response = self._rpc.commit(writes)
        if response is None:
            raise VersionConflict(f"task {task.id}")
        for each in (commit, *commit.others):
            if each.base is None:
                self._rising_ids.note(each.task.id)
        results = response.write_results
        committed, *_ = [self._keep(each, writes[place], results[place].update_time) for place, each in places]
        return committed

    def _keep(
        self, task_write: TaskWrite, write: google_calls.Message, update_time: google_calls.Message
    ) -> VersionedTask:
        task = task_write.task
        base = task_write.base
        if base is None:
            earlier = 0
        else:
            earlier = cast("TaskVersion", base.version).size
        size = earlier + write.ByteSize()
        shard = self._shards.choose(task.id)
        stored_at = update_time.ToNanoseconds()
        version = TaskVersion(stored_at, shard, size, self._writes.has_words(task))
        self._known.keep(task, version, (version.value, get_commit_id(write.update)), size)
        return VersionedTask(task, version)

    def load_journal(self, task_id: str, execution_id: str) -> Sequence[JournalEntry]:
        """Return the whole journal of an open execution."""
        from cloudsched.adapters.firestore.queries import STEPS  # noqa: PLC0415 - see above

        name = self._document_name("tasks", task_id, "executions", execution_id)
        if name is None:
            found = []
        else:
            found = self._rpc.query(name, STEPS.to_query(_MAX_STEPS, name))
        return [to_document(JournalEntry, each) for each in found]

    def list_tasks(
        self, query: TaskQuery, *, limit: int, page_token: str | None = None, max_bytes: int = MAX_PAGE_BYTES
    ) -> Page[Task]:
        """Return a page of the tasks that match a query."""
        from cloudsched.adapters.firestore import queries, search  # noqa: PLC0415 - see above

        listing = queries.build_task_listing(query, self._shards.find_for(query))
        longest = max((len(str(value).encode()) for value in (listing.equals or {}).values()), default=0)
        if listing.is_empty or longest > MAX_ID_BYTES:
            parent = None
        else:
            parent = self._documents
        return search.fetch_page(self._rpc, Task, parent, listing, query, limit, page_token, max_bytes)

    def load_placement(self) -> Placement:
        """Return what is known of the shards of all tasks. Reads one document."""
        return self._shards.load_placement()

    def grow(self, shards: int, report: Callable[[Walk], object] = lambda _: None) -> Walk:
        """Give every task its place in this number of shards. See `adapters.firestore.placement`."""
        from cloudsched.adapters.firestore.placement import place_all  # noqa: PLC0415 - for one command only

        return place_all(self._rpc, self._documents, self._shards, shards, report)

    def list_offers(
        self,
        queue_keys: Sequence[str],
        owner: str | None,
        *,
        limit: int,
        after: tuple[str, str] | None = None,
    ) -> Sequence[OfferEntry]:
        """Return the offers in some queues, in their order."""
        from cloudsched.adapters.firestore import queries, search  # noqa: PLC0415 - see above

        listing = queries.build_offer_listing(queue_keys, owner, self._shards.find_for_offers(owner))

        def read(last: google_calls.Message | None, count: int) -> list[google_calls.Message]:
            if last is None:
                start = after
            else:
                start = search.to_sort_key(last, listing)
            return query_in_order(self._rpc, self._documents, listing, count, start)

        return collect_readable(read, lambda each: (each.name, partial(to_document, OfferEntry, each)), limit)

    def load_many(self, task_ids: Sequence[str]) -> Sequence[VersionedTask]:
        """Return those of some tasks that exist and can be read."""
        names = [name for task_id in task_ids if (name := self._document_name("tasks", task_id)) is not None]
        found = self._rpc.get_many(names) if names else []
        return skip_unreadable((each.name, partial(read_task, self._known, each)) for each in found)

    def load_execution(self, task_id: str, execution_id: str) -> Execution | None:
        """Return one execution's record, or None."""
        found = self._get("tasks", task_id, "executions", execution_id)
        if found is None:
            return None
        return to_document(Execution, found)

    def check(self) -> datetime:
        """Run a query without results. Return Firestore's current time."""
        return self._rpc.fetch_time(self._documents)

    def close(self) -> None:
        """Close the channel."""
        self._rpc.close()

    def _document_name(self, *path: str) -> str | None:
        return document_name(self._documents, *path)

    def _get(self, *path: str) -> google_calls.Message | None:
        name = self._document_name(*path)
        return None if name is None else self._rpc.get(name)[0]
