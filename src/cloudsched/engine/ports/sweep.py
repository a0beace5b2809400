"""The port for what the sweep asks of a store: what is due, and what is to be removed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import VersionedTask
    from cloudsched.engine.storage.pages import Page


def choose_shard(task_id: str, count: int) -> int:
    """Return which shard of the store's indexes a task is in, of `count`."""
    if count == 1:
        return 0
    return int.from_bytes(hashlib.blake2b(task_id.encode(), digest_size=8).digest(), "big") % count


class SweepStore(Protocol):
    """Lists due tasks, and removes what nobody keeps.

    * Every task with a `wake_at` is found, also one that is being deleted. One that cannot be read is skipped.
    * A removal is safe to repeat, also after a crash, and removes nothing of a task that was created again meanwhile.
    """

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

    def next_wakeup(self) -> datetime | None:
        """Return the earliest `wake_at` of all tasks, or None if no task has one. Reads two documents.

        A store that removes tasks only as it is told to (`expire`) returns the earliest `expire_at` if that is before.
        """
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
