"""A lock as it was read, with those of its waiters that matter, and what is made of it to commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cloudsched.domain.documents.task import MAX_OPEN_RUNS
from cloudsched.domain.transitions.locks import MAX_REQUEUED, Waiter, free_places, is_waiting, with_queued_limit
from cloudsched.engine.ports.store import VersionedLock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.transitions.locks import Lock
    from cloudsched.engine.ports.store import Store

MAX_WAITS = 2 * MAX_OPEN_RUNS
"""The most waits of one task that are read at once: one for each open run, and some of an older revision."""


class LockReader:
    """Reads locks."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load(
        self,
        key: str,
        now: datetime,
        *,
        asking: Sequence[Waiter] = (),
        leaving: tuple[str, str] | None = None,
        task_ids: Sequence[str] = (),
        worker_group: str = "",
        late_limit: int = 0,
    ) -> VersionedLock:
        """Read a lock with those of its waiters that matter: one document if nobody waits.

        Args:
            key: The lock's key.
            now: The current time.
            asking: The runs that ask for it; their own waits are read as well.
            leaving: The (task id, execution id) of the holder that releases it.
            task_ids: The tasks whose waits are to be removed.
            worker_group: The group whose waits are to be removed, up to `MAX_REQUEUED` of them.
            late_limit: The greatest limit of those that wait although the document says that nobody does.
        """
        stored = self._store.load_lock(key)
        document = stored.lock
        if not (document.queued_limit or late_limit):
            return replace(stored, document=document)
        found, is_whole = list[Waiter](), False
        if task_ids:
            found += self._store.list_waiters(key, limit=MAX_WAITS * len(task_ids), task_ids=task_ids)
        if worker_group:
            found += self._store.list_waiters(key, limit=MAX_REQUEUED, worker_group=worker_group)
        limit = max((one.limit for one in asking), default=late_limit)
        if places := free_places(document, limit, now, leaving, has_late=late_limit > 0):
            wanted = places + len(found)  # those that are found may be the first ones, and are about to leave
            head = self._store.list_waiters(key, limit=wanted)
            found, is_whole = [*found, *head], len(head) < wanted
        unknown = [one.task_id for one in asking if not is_waiting(document, one.task_id, one.execution_id)]
        if unknown and not is_whole:
            found += self._store.list_waiters(key, limit=MAX_WAITS * len(unknown), task_ids=unknown)
        entries = {one.entry_id: one for one in found}
        waiters = sorted((*document.waiters, *entries.values()), key=lambda one: one.order)
        view = document.model_copy(update={"waiters": tuple(waiters)})
        return VersionedLock(view, stored.version, tuple(entries.values()), document, is_whole)


def with_lock(stored: VersionedLock, lock: Lock, *, may_drain: bool = True) -> VersionedLock:
    """Return a lock that was read with its new content, to commit."""
    return replace(stored, lock=with_queued_limit(lock, is_whole=stored.is_whole and may_drain))
