"""Resource locks: the runs that hold one, and those that wait for it.

A task may name a lock key: a document, an account, a machine. Runs with the same key hold the lock up to a
limit at once, in the order in which they came due. The lock is a document of its own, committed together
with the task whose run acquires or releases it, so the two cannot disagree.

* A holder's claim ends with its lease, so a holder that died blocks the others no longer than that.
* A run that must wait is stored in the wait list with its due instant, and loses no attempt. When a place is
  free, the runs at the head are notified: each is *granted* a turn. Nobody polls.
* Each waiter is a small document of its own until it is notified. Then it moves into the lock's document.
  So the lock's document stays small, and waiting costs the same however many others wait. The functions
  here get a lock with the waiters that matter to them: those that were notified, the head of the list as
  far as there are places (`free_places`), and those that are to be changed.
* A notified run has `TURN_TIMEOUT` to acquire the lock. After that the next one may have it. A late run
  waits again, at the position that its due instant gives it.
* If no worker claims a waiter in time, all waiters of its worker group go back to their queue, and ask for
  the lock again when a worker claims them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from cloudsched.domain.documents.document import Document, Instant, WireModel
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.wakeups import TURN_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Version

MAX_REQUEUED = 100
"""The most waiters of a worker group that leave the wait list in one commit. Each gets a dispatch."""


class Holder(WireModel):
    """A run that holds the lock."""

    task_id: str
    execution_id: str
    until: Instant
    """The end of the run's lease, and of its hold on the lock if the lease is not renewed."""


class Waiter(Document):
    """A run that waits for the lock, with everything needed to dispatch it.

    ``locks/{id}/waiters/{entryId}``.
    """

    always_stored: ClassVar[frozenset[str]] = Document.always_stored | {"worker_group"}

    task_id: str
    execution_id: str
    revision: int
    scheduled_for: Instant
    attempt: int
    due_at: Instant
    """The time at which it came due. The earliest waiter is granted the lock first."""
    turn: int = Field(default=0, alias="lockGrant")
    """The number of its last turn, or 0 if it had none."""
    suspension_count: int = 0
    limit: int
    """The most runs that may hold the lock at once, according to this run's task."""
    priority: Priority
    notified_at: Instant | None = None
    worker_group: str = ""
    """The workers that it waits for, as `worker_group` returns them. Empty if an executor runs it."""

    @property
    def order(self) -> tuple[datetime, str, str]:
        """The sort key of waiters."""
        return self.due_at, self.task_id, self.execution_id

    @property
    def entry_id(self) -> str:
        """The id of its document: text that sorts as `order` does."""
        return f"{self.due_at.astimezone(UTC).isoformat(timespec='microseconds')} {self.task_id} {self.execution_id}"

    def has_missed_grant(self, now: datetime) -> bool:
        """Return whether it was notified and did not acquire the lock in time."""
        return self.notified_at is not None and self.notified_at + TURN_TIMEOUT <= now  # guard: missed grant

    def with_next_grant(self, now: datetime) -> Waiter:
        """Return it with the number of its next turn, which no dispatch for its run has ever had."""
        return self.model_copy(update={"turn": max(self.turn + 1, int(now.timestamp()))})


@dataclass(frozen=True, slots=True)
class WaitFilter:
    """The waits to cancel: those that match all given fields."""

    task_id: str = ""
    execution_id: str = ""
    revision: int | None = None
    worker_group: str = ""
    """Of a worker group, only the first `MAX_REQUEUED` match."""

    def select(self, waiters: Iterable[Waiter]) -> tuple[Waiter, ...]:
        """Return the waiters that match."""
        found = tuple(one for one in waiters if self._matches(one))
        return found[:MAX_REQUEUED] if self.worker_group else found

    def _matches(self, waiter: Waiter) -> bool:
        return (
            self.task_id in ("", waiter.task_id)
            and self.execution_id in ("", waiter.execution_id)
            and self.revision in (None, waiter.revision)
            and self.worker_group in ("", waiter.worker_group)
        )


class Lock(Document):
    """One key's lock. ``locks/{id}``. A lock that nobody holds or waits for has no document."""

    key: str
    holders: tuple[Holder, ...] = ()
    waiters: tuple[Waiter, ...] = ()
    """The waiters in order. The lock's document has only those that were notified."""
    queued_limit: int = 0
    """At least the greatest `limit` of the waiters that are documents of their own, or 0 if there are none.

    Just after it has become 0 there may be some that were stored meanwhile. The process that made it 0
    looks for them.
    """

    @property
    def is_empty(self) -> bool:
        """Return whether nobody holds it and nobody waits."""
        return not self.holders and not self.waiters and not self.queued_limit


def lock_id(key: str) -> str:
    """Return the document id of a key's lock: keys may hold any character, ids may not."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def worker_group(task: Task) -> str:
    """Return a hash that tasks for the same workers share, or "" for a task that an executor runs."""
    if task.workers is None:
        return ""
    return hashlib.sha256(f"{task.workers.queue_key}\n{task.handler}\n{task.owner}".encode()).hexdigest()[:16]


def free_places(
    lock: Lock, limit: int, now: datetime, leaving: tuple[str, str] | None = None, *, has_late: bool = False
) -> int:
    """Return how many waiters with documents of their own must be known to change or acquire the lock.

    `limit` is that of a run that asks, or 0, and `leaving` a holder that releases the lock. With
    `has_late`, there are some although the document says that there are none.
    """
    if not lock.queued_limit and not has_late:
        return 0
    return max(0, max(limit, lock.queued_limit) - len(_live_holders(lock, now, leaving)))


def with_queued_limit(lock: Lock, *, is_whole: bool) -> Lock:
    """Return the lock with its `queued_limit` updated. `is_whole` says that it has all its waiters.

    It falls to 0 only, and never to a smaller limit: a waiter with a greater one may be entering the list.
    """
    limits = [one.limit for one in lock.waiters if one.notified_at is None] if lock.waiters else []
    queued_limit = 0 if is_whole and not limits else max([lock.queued_limit, *limits])
    return lock if queued_limit == lock.queued_limit else lock.model_copy(update={"queued_limit": queued_limit})


def acquire(
    lock: Lock, waiter: Waiter, until: datetime, now: datetime, *, holder_execution_id: str | None = None
) -> tuple[Lock, bool, tuple[Waiter, ...]]:
    """Acquire the lock for a run, or add the run to the wait list.

    A run that asks again keeps its position. If a place is free but another waiter is ahead, the last
    holder died before it could notify that one. `until` is the end of the lease that the run would get.
    `holder_execution_id` is the execution that would hold the lock, if another one waits: the latest of a
    backlog. Returned are the lock, whether the run holds it now, and the waiters to notify.
    """
    holders = _live_holders(lock, now)
    others = list[Waiter]()
    for one in lock.waiters:
        if (one.task_id, one.execution_id) == (waiter.task_id, waiter.execution_id):
            waiter = waiter.model_copy(update={"due_at": min(one.due_at, waiter.due_at)})
        elif not one.has_missed_grant(now):
            others.append(one)
    ahead = 0
    for one in others:
        ahead += one.order < waiter.order
    if len(holders) + ahead < waiter.limit:  # guard: lock limit
        holder = Holder.build(
            task_id=waiter.task_id, execution_id=holder_execution_id or waiter.execution_id, until=until
        )
        return lock.model_copy(update={"holders": (*holders, holder), "waiters": tuple(others)}), True, ()
    queue = sorted((*others, waiter), key=lambda one: one.order)
    waiting, granted = _mark_granted(queue[:ahead], len(holders), now)
    return lock.model_copy(update={"holders": holders, "waiters": (*waiting, *queue[ahead:])}), False, granted


def extend(lock: Lock, task_id: str, execution_id: str, until: datetime) -> Lock:
    """Return the lock with a holder's end moved to `until`."""
    holders = tuple(
        one.model_copy(update={"until": until}) if (one.task_id, one.execution_id) == (task_id, execution_id) else one
        for one in lock.holders
    )
    return lock.model_copy(update={"holders": holders})


def release(lock: Lock, task_id: str, execution_id: str, now: datetime) -> tuple[Lock, tuple[Waiter, ...]]:
    """Return the lock without a run that held it or waited for it, and the waiters to notify."""
    gone = (task_id, execution_id)
    holders = _live_holders(lock, now, gone)
    if not lock.waiters:
        return lock.model_copy(update={"holders": holders}), ()
    return _with_waiters(lock, holders, [one for one in lock.waiters if (one.task_id, one.execution_id) != gone], now)


def grant_places(lock: Lock, limit: int, now: datetime) -> tuple[Lock, tuple[Waiter, ...]]:
    """Return the lock with places granted to the waiters that have one, and these.

    No other has a higher `limit`.
    """
    raised = lock.model_copy(update={"queued_limit": max(lock.queued_limit, limit)})
    return _with_waiters(raised, _live_holders(lock, now), lock.waiters, now)


def cancel_waits(
    lock: Lock,
    which: WaitFilter,
    now: datetime,
) -> tuple[Lock, tuple[Waiter, ...], tuple[Waiter, ...]]:
    """Remove waits. Return the lock, the waiters to notify, and the removed ones that were granted none.

    An attempt that is running keeps the lock, even if its task's waits are removed.
    """
    cancelled = which.select(lock.waiters)
    gone = {one.order for one in cancelled}
    here = (one for one in lock.waiters if one.order not in gone)
    rest, granted = _with_waiters(lock, _live_holders(lock, now), here, now)
    return rest, granted, tuple(one for one in cancelled if one.notified_at is None)


def _with_waiters(
    lock: Lock, holders: tuple[Holder, ...], waiters: Iterable[Waiter], now: datetime
) -> tuple[Lock, tuple[Waiter, ...]]:
    """Return the lock with these holders and all waiters that have not missed their turn, and those to notify."""
    here = [one for one in waiters if not one.has_missed_grant(now)]
    queue, granted = _mark_granted(here, len(holders), now)
    return lock.model_copy(update={"holders": holders, "waiters": queue}), granted


def _mark_granted(
    queue: list[Waiter], holder_count: int, now: datetime
) -> tuple[tuple[Waiter, ...], tuple[Waiter, ...]]:
    """Mark the waiters at the head that have a place as notified. Return the queue, and those marked now."""
    marked = tuple(
        one.with_next_grant(now).model_copy(update={"notified_at": now})
        if holder_count + place < one.limit and one.notified_at is None
        else one
        for place, one in enumerate(queue)
    )
    return marked, tuple(after for before, after in zip(queue, marked, strict=True) if after is not before)


def is_held_by(lock: Lock, task_id: str, execution_id: str, now: datetime) -> bool:
    """Return whether a run holds the lock."""
    return bool(lock.holders) and any(
        (one.task_id, one.execution_id) == (task_id, execution_id) for one in _live_holders(lock, now)
    )


def is_waiting(lock: Lock, task_id: str, execution_id: str) -> bool:
    """Return whether a run waits for the lock."""
    return any((one.task_id, one.execution_id) == (task_id, execution_id) for one in lock.waiters)


def _live_holders(lock: Lock, now: datetime, leaving: tuple[str, str] | None = None) -> tuple[Holder, ...]:
    """Return those whose lease has not ended, without the run that releases the lock."""
    holders = list[Holder]()
    for one in lock.holders:
        if one.until > now and (one.task_id, one.execution_id) != leaving:  # guard: dead holder
            holders.append(one)
    return tuple(holders)


@dataclass(frozen=True)
class VersionedLock:
    """A lock, and the version at which it was read, or None if there was no document.

    An empty lock is deleted.
    """

    lock: Lock
    version: Version | None
    entries: tuple[Waiter, ...] = ()
    """Those of its waiters that were read from documents of their own."""
    document: Lock | None = None
    """Its document as it was read.

    A commit without changes to it only checks its version. None: write it always.
    """
    is_whole: bool = True
    """True if it has all of its waiters."""

    @cached_property
    def new_document(self) -> Lock:
        """The document to write: with the notified waiters, and the greatest limit of the others."""
        if not self.lock.waiters:
            return self.lock
        notified = tuple(one for one in self.lock.waiters if one.notified_at is not None)
        limits = [one.limit for one in self.lock.waiters if one.notified_at is None]
        queued_limit = max([self.lock.queued_limit, *limits])
        return self.lock.model_copy(update={"waiters": notified, "queued_limit": queued_limit})

    @property
    def is_document_changed(self) -> bool:
        """Return whether the document is to be written or deleted."""
        return self.document is None or self.document != self.new_document

    @property
    def has_drained(self) -> bool:
        """Return whether the new document is the first to say that nobody waits."""
        return self.document is not None and self.document.queued_limit > 0 and not self.new_document.queued_limit

    def held_by(self, task_id: str, execution_id: str, until: datetime) -> VersionedLock:
        """Return it with one holder, in place of all others, to be written as it was read."""
        holder = Holder(task_id=task_id, execution_id=execution_id, until=until)
        return VersionedLock(self.lock.model_copy(update={"holders": (holder,)}), self.version)

    def count_writes(self) -> tuple[int, int]:
        """Return how many documents its commit writes and deletes.

        To check the lock's version alone is a write.
        """
        is_deleted = self.new_document.is_empty
        return len(self.entered) + (not is_deleted), len(self.left) + is_deleted

    @cached_property
    def entered(self) -> Sequence[Waiter]:
        """The waiters to write as documents of their own."""
        if not self.lock.waiters:
            return ()
        return [one for one in self.lock.waiters if one.notified_at is None and one not in self.entries]

    @cached_property
    def left(self) -> Sequence[Waiter]:
        """The waiters whose own documents are to be deleted: they were notified, or wait no longer."""
        if not self.entries:
            return ()
        staying = {one.entry_id for one in self.lock.waiters if one.notified_at is None}
        return [one for one in self.entries if one.entry_id not in staying]


@dataclass(frozen=True, slots=True)
class Grants:
    """The waiters that may acquire a lock now. They are notified once the changed lock is committed."""

    key: str = ""
    waiters: tuple[Waiter, ...] = ()
    has_drained: bool = False
    """True if the changed lock says that nobody else waits.

    Look then for a run that has begun to wait meanwhile.
    """


NO_GRANTS = Grants()
