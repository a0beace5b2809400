"""Locks in Firestore, ``locks/{lockId}``, and their waiters, ``…/waiters/{entryId}``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.values import Value, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.adapters.google.channel import Message


from functools import partial
from typing import TYPE_CHECKING

from cloudsched.adapters.firestore.list_fields import build_write, to_document
from cloudsched.adapters.firestore.protos import build_precondition_write, with_precondition
from cloudsched.adapters.firestore.queries import (
    EQUAL,
    MAX_DISJUNCTIONS,
    NAME,
    Filter,
    _Operator,
    build_query,
)
from cloudsched.domain.transitions.commit import Version
from cloudsched.engine.storage.pages import collect_readable
from cloudsched.errors import VersionConflict
from cloudsched.features.locks.lock import Lock, VersionedLock, Waiter, lock_id

if TYPE_CHECKING:
    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.google.channel import Message as Proto

_Write: Proto = messages.Write


class FirestoreLocks:
    """A `LockStore` in the database of a `FirestoreStore`."""

    def __init__(self, rpc: FirestoreRpc, documents: str) -> None:
        self._rpc = rpc
        self._documents = documents

    def load(self, key: str) -> VersionedLock:
        """Return the lock of a key as it is now, an empty one if there is none. One document is read."""
        found = self._rpc.get(self._name(key))[0]
        lock = Lock(key=key) if found is None else to_document(Lock, found)
        return VersionedLock(lock, None if found is None else Version(found.update_time.ToNanoseconds()))

    def commit(self, lock: VersionedLock) -> None:
        """Write a lock alone, if its version is still the one that was read."""
        writes = self.build_writes(lock)
        if writes and self._rpc.commit(writes) is None:
            raise VersionConflict(f"lock {lock.lock.key}")

    def build_writes(self, lock: VersionedLock) -> list[Proto]:
        """Return the writes of a lock and its waiters, for a commit."""
        path = ("locks", lock_id(lock.lock.key))
        document = lock.new_document
        version = lock.version
        name = self._name(lock.lock.key)
        writes = [_Write(delete=f"{name}/waiters/{each.entry_id}") for each in lock.left]
        writes += (build_write(self._documents, (*path, "waiters", each.entry_id), each) for each in lock.entered)
        if not lock.is_document_changed and version is not None:
            writes.append(build_precondition_write(name, version))  # those that only wait do not conflict
        elif not document.is_empty:
            writes.append(with_precondition(build_write(self._documents, path, document), version))
        elif version is not None:  # an empty lock is never stored
            writes.append(with_precondition(_Write(delete=name), version))
        return writes

    def list_waiters(
        self, key: str, *, limit: int, task_ids: Sequence[str] | None = None, worker_group: str | None = None
    ) -> list[Waiter]:
        """Return the first waiters of a lock, in their order.

        With `task_ids` those of some tasks, in parts.
        """
        if task_ids is None:
            return self._list_part(key, limit, None, worker_group)
        found = list[Waiter]()
        for start in range(0, len(task_ids), MAX_DISJUNCTIONS):
            some = task_ids[start : start + MAX_DISJUNCTIONS]
            found += self._list_part(key, limit - len(found), some, worker_group)
        return found

    def _list_part(
        self, key: str, limit: int, task_ids: Sequence[str] | None, worker_group: str | None
    ) -> list[Waiter]:

        lock = self._name(key)

        def read(last: Proto | None, count: int) -> list[Proto]:
            after = None if last is None else last.name
            return self._rpc.query(lock, build_waiter_query(count, after, task_ids, worker_group))

        return collect_readable(read, lambda each: (each.name, partial(to_document, Waiter, each)), limit)

    def list_all(self, *, limit: int, begin: str = "", end: str | None = None, after: str = "") -> list[Lock]:
        """Return the first locks by their keys."""

        def read(last: Proto | None, count: int) -> list[Proto]:
            start = after if last is None else last.fields["key"].string_value
            return self._rpc.query(self._documents, build_lock_query(count, begin, end, start))

        return collect_readable(read, lambda each: (each.name, partial(to_document, Lock, each)), limit)

    def _name(self, key: str) -> str:
        return f"{self._documents}/locks/{lock_id(key)}"


def build_lock_query(limit: int, begin: str, end: str | None, after: str) -> Message:
    """Return the query for the first locks by key, from `begin` to before `end`, those after `after`."""
    filters: list[Filter] = [("key", _Operator.GREATER_THAN_OR_EQUAL, begin)]
    if end is not None:
        filters.append(("key", _Operator.LESS_THAN, end))
    return build_query("locks", limit, *filters, order=("key", NAME), after=encode(after) if after else None)


def build_waiter_query(
    limit: int, after: str | None, task_ids: Sequence[str] | None, worker_group: str | None
) -> Message:
    """Return the query for the waiters of a lock, in the order of their ids, those after a full name."""
    filters: list[Filter] = []
    if task_ids is not None:
        filters.append(("taskId", _Operator.IN, list(task_ids)))
    elif worker_group is not None:
        filters.append(("workerGroup", EQUAL, worker_group))
    return build_query(
        "waiters",
        limit,
        *filters,
        after=None if after is None else Value(reference_value=after),
    )
