"""How many documents a commit writes and deletes, as Google bills them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.transitions.offers import offer_entry

if TYPE_CHECKING:
    from cloudsched.engine.ports.store import Commit, VersionedLock


def count_billed_writes(commit: Commit, *, new_tasks: bool = True) -> tuple[int, int]:
    """Return how many documents a commit writes, and how many it deletes; deleted journal entries are not counted.

    Args:
        commit: The commit.
        new_tasks: Whether to count tasks that it creates.
    """
    writes, deletes = len(commit.messages) + len(commit.entries), 0
    for each in (commit, *commit.others):
        if each.base is None and not new_tasks:
            continue
        writes += 1 + len(each.executions)
        before, after = None if each.base is None else each.base.version.offer, offer_entry(each.task)
        if before != after:
            writes, deletes = writes + (after is not None), deletes + (after is None)
    if commit.delivered is not None:
        writes += len(commit.delivered.unfinished) or 1
    if commit.lock is not None:
        lock_writes, lock_deletes = count_lock_writes(commit.lock)
        writes, deletes = writes + lock_writes, deletes + lock_deletes
    return writes, deletes


def count_lock_writes(lock: VersionedLock) -> tuple[int, int]:
    """Return how many documents a lock's commit writes and deletes. To check the lock's version alone is a write."""
    is_deleted = lock.new_document.is_empty
    return len(lock.entered) + (not is_deleted), len(lock.left) + is_deleted
