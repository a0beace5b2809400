"""What is due in Firestore, and the removal of what nobody keeps."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.list_fields import REMOVE_AT, read_task
from cloudsched.adapters.firestore.protos import build_precondition_write, document_name, with_precondition
from cloudsched.adapters.firestore.queries import BY_WAKE_TIME, NAME, build_due_listing, build_query
from cloudsched.adapters.firestore.search import fetch_page, to_sort_key
from cloudsched.adapters.firestore.shards import Shards, query_in_order
from cloudsched.adapters.firestore.values import Value, decode_instant
from cloudsched.domain.documents.journal import entry_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.google.channel import Message as Proto
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import VersionedTask
    from cloudsched.engine.storage.known_tasks import KnownTasks
    from cloudsched.engine.storage.pages import Page

_Write: Proto = messages.Write

PURGE_BATCH_SIZE = 300
"""The number of documents that one commit removes."""


class FirestoreSweep:
    """A `SweepStore` in the database of a `FirestoreStore`."""

    def __init__(self, rpc: FirestoreRpc, documents: str, shards: Shards, known: KnownTasks) -> None:
        self._rpc = rpc
        self._documents = documents
        self._shards = shards
        self._known = known

    def list_due(
        self,
        before: datetime,
        *,
        since: datetime | None = None,
        shard: int | None = None,
        is_removal: bool = False,
        limit: int,
        page_token: str | None = None,
    ) -> Page[Task]:
        """Return a page of the tasks whose `wake_at` is not later than `before`, the earliest first."""
        if shard is None:
            shards = self._shards.find_ranges()
        else:
            shards = (shard,)
        listing = build_due_listing(before, since, shards, is_removal=is_removal)
        query = "removal" if is_removal else "due"
        read = lambda each: read_task(self._known, each).task  # noqa: E731 - known from then on, with its version
        return fetch_page(self._rpc, read, self._documents, listing, query, limit, page_token)

    def count_shards(self) -> int:
        """Return how many shards `list_due` takes."""
        return len(self._shards.find_ranges() or (0,))

    def next_wakeup(self) -> datetime | None:
        """Return the earliest `wake_at` of all tasks, or None if there is none. Reads two documents."""
        first = list[datetime]()
        for order in ("wakeAt", REMOVE_AT):
            listing = replace(BY_WAKE_TIME, order=order, shards=self._shards.find_ranges())
            found = query_in_order(self._rpc, self._documents, listing, 1)
            first += [decode_instant(to_sort_key(each, listing)[0]) for each in found]
        return min(first, default=None)

    def purge(self, task_id: str) -> None:
        """Remove a deleted task's executions and journals in batches, then the task.

        Each commit expects the task as it was read. If another caller changes or recreates it, the next
        commit removes nothing and the purge stops. A later call continues it.
        """
        name = document_name(self._documents, "tasks", task_id)
        if name is None:
            return
        found, read_at = self._rpc.get(name)
        if found is None:
            stored = None
        else:
            stored = read_task(self._known, found, read_at)
        if stored is not None and stored.task.deleted_at is None:
            return
        version = None if stored is None else stored.version
        for names in self._iter_child_names(name, stored):
            writes = [build_precondition_write(name, version), *(_Write(delete=each) for each in names)]
            if self._rpc.commit(writes) is None:
                return
        if stored is not None:
            writes = [with_precondition(_Write(delete=name), version)]
            if stored.task.offer is not None:
                writes.append(_Write(delete=f"{self._documents}/offers/{task_id}"))
            self._rpc.commit(writes)

    def _iter_child_names(self, name: str, stored: VersionedTask | None) -> Iterator[list[str]]:
        """Yield in batches the names of a task's open journals' entries, then of its executions.

        Each query continues after the last name instead of walking over what was just deleted. Nothing
        appears behind it: executions are only written together with their task, whose version the deletions
        require.
        """
        for run in stored.task.runs if stored else ():
            steps = f"{name}/executions/{run.execution_id}/steps"
            numbers = range(1, run.steps + 1)
            for begin in range(0, run.steps, PURGE_BATCH_SIZE):
                yield [f"{steps}/{entry_id(number)}" for number in numbers[begin : begin + PURGE_BATCH_SIZE]]
        last: Proto | None = None
        while found := self._rpc.query(
            name,
            build_query("executions", PURGE_BATCH_SIZE, fields=(NAME,), after=last),
        ):
            yield [each.name for each in found]
            if len(found) < PURGE_BATCH_SIZE:
                break
            last = Value(reference_value=found[-1].name)

    def remove(self, ended: VersionedTask) -> bool:
        """Remove an ended task with its executions, if it has not changed."""
        name = f"{self._documents}/tasks/{ended.task.id}"
        found = self._rpc.query(name, build_query("executions", PURGE_BATCH_SIZE + 1, fields=(NAME,)))
        if len(found) > PURGE_BATCH_SIZE:
            return False
        task = with_precondition(_Write(delete=name), ended.version)
        return self._rpc.commit([task, *(_Write(delete=each.name) for each in found)]) is not None

    def expire(self, now: datetime) -> int:  # noqa: ARG002 - required by the port
        """Return 0: Firestore's TTL policies (``infra/firestore.ttl.json``) delete expired documents."""
        return 0
