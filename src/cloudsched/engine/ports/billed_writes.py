"""How many documents a commit writes and deletes, as Google bills them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.transitions.offers import offer_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import DeliveryMark, TaskWrite, VersionedLock
    from cloudsched.engine.ports.version import Version


def count_billed_writes(
    task: Task,
    expected_version: Version | None,
    parts: int,
    *,
    lock: VersionedLock | None = None,
    others: Sequence[TaskWrite] = (),
    delivered: DeliveryMark | None = None,
) -> tuple[int, int]:
    """Return how many documents a commit writes, and how many it deletes; deleted journal entries are not counted.

    Args:
        task: The task.
        expected_version: The version that was read; None for a new task.
        parts: How many executions, messages and journal entries are written with it.
        lock: The lock that is written with it.
        others: Other tasks that are written with it.
        delivered: What the end of a delivery says about others.
    """
    writes, deletes = 1 + parts, 0
    committed = [(task, expected_version)]
    for other in others:
        writes += 1 + len(other.executions)
        committed.append((other.task, other.expected_version))
    for written, expected in committed:
        before, after = None if expected is None else expected.offer, offer_entry(written)
        if before != after:
            writes, deletes = writes + (after is not None), deletes + (after is None)
    if delivered is not None:
        writes += len(delivered.unfinished) or 1
    if lock is not None:
        lock_writes, lock_deletes = count_lock_writes(lock)
        writes, deletes = writes + lock_writes, deletes + lock_deletes
    return writes, deletes


def count_lock_writes(lock: VersionedLock) -> tuple[int, int]:
    """Return how many documents a lock's commit writes and deletes. To check the lock's version alone is a write."""
    is_deleted = lock.new_document.is_empty
    return len(lock.entered) + (not is_deleted), len(lock.left) + is_deleted
