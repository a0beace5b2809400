"""The port for locks, and for the runs that wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.features.locks.lock import Lock, VersionedLock, Waiter


class LockStore(Protocol):
    """Stores locks, each under its key, and their waiters.

    * A commit takes effect only if the lock still has the version that was read. Of any number of callers
      that expect the same version, exactly one succeeds. The commit of a task can write a lock as well,
      with the same guarantee.
    * A read that starts after a commit has returned sees it.
    * A waiter that cannot be read is skipped in lists. Loading a lock that cannot be read is an error.
    """

    def load(self, key: str) -> VersionedLock:
        """Return the lock of a key as it is now, with the waiters that were notified. One document is read.

        It is an empty lock if there is none.
        """
        ...

    def list_waiters(
        self, key: str, *, limit: int, task_ids: Sequence[str] | None = None, worker_group: str | None = None
    ) -> Sequence[Waiter]:
        """Return the first waiters of a lock, in their order, that are documents of their own.

        Read only those.

        With `task_ids` only the waiters of these tasks, in any order. With `worker_group` only those of
        the group.
        """
        ...

    def commit(self, lock: VersionedLock) -> None:
        """Write only a lock and its waiters, if it still has the version that was read.

        Raises VersionConflict.
        """
        ...

    def list_all(
        self,
        *,
        limit: int,
        begin: str = "",
        end: str | None = None,
        after: str = "",
    ) -> Sequence[Lock]:
        """Return the first locks by their keys, from `begin` to before `end`, those after `after`.

        Without the waiters that are documents of their own. Reads only those.
        """
        ...
