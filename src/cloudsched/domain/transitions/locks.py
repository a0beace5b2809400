"""Resource locks: who may work on one thing, and who is next.

A task may name a lock key: a document, an account, a machine. Runs of one key take turns, up to a limit at once, in
the order in which they came due. The lock is a document of its own, committed together with the task whose run takes
or frees it, so that the two cannot disagree.

* A holder's claim ends with its lease. One that died holds nobody up for longer than that.
* Who must wait is remembered with its due instant, and loses no attempt. When a place is free, those at the head are
  woken; nobody polls.
* Who was woken has `GRANT_TIMEOUT` to come. After that the next one passes it by; if it comes later it waits again, at
  the place that its due instant gives it.
* Where no worker has come for one in its turn, none would come for those behind it that wait for the same workers:
  they leave the line together with it, for their queue, and ask again when a worker takes them from there.
* The line is at most `MAX_WAITERS` long, since all of it lies in one document. Who finds it full comes again later, and
  costs nobody in it their place.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.document import Document, Instant, WireModel
from cloudsched.domain.documents.policy import Priority

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.task import Task

GRANT_TIMEOUT = timedelta(minutes=1)
"""How long a place is kept for somebody who was woken."""
MAX_WAITERS = 1_000
"""How many may stand in line at one lock. Each takes up to about 500 bytes of a document that may have 1 MiB."""
MAX_REQUEUED = 100
"""How many leave the line at once because no worker comes for them: each is sent a dispatch."""


class Holder(WireModel):
    """A run that has the lock."""

    task_id: str
    execution_id: str
    until: Instant
    """When the claim ends if it is not renewed: the end of the run's lease."""


class Waiter(WireModel):
    """A run that wants the lock, and all that is needed to wake it."""

    task_id: str
    execution_id: str
    revision: int
    scheduled_for: Instant
    attempt: int
    due_at: Instant
    """When it came due: the earlier, the sooner it has its turn."""
    hop: int
    suspension_count: int = 0
    limit: int
    """How many may hold the lock at once, by this run's task."""
    priority: Priority
    notified_at: Instant | None = None
    worker_group: str = ""
    """Whose workers it waits for, as `worker_group` says; empty if an executor is to run it."""

    @property
    def order(self) -> tuple[datetime, str, str]:
        """What waiters are sorted by."""
        return self.due_at, self.task_id, self.execution_id

    def has_missed_turn(self, now: datetime) -> bool:
        """Whether it was woken and did not come."""
        return self.notified_at is not None and self.notified_at + GRANT_TIMEOUT <= now


class Lock(Document):
    """One key's lock. ``locks/{id}``; a lock that nobody holds or waits for has no document."""

    key: str
    holders: tuple[Holder, ...] = ()
    waiters: tuple[Waiter, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nobody holds it and nobody waits."""
        return not self.holders and not self.waiters


def lock_id(key: str) -> str:
    """Return the document id of a key's lock: keys may hold any character, ids may not."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def worker_group(task: Task) -> str:
    """Return what the tasks have in common that the same workers may run, as a hash; "" if none are to."""
    if task.pull is None:
        return ""
    return hashlib.sha256(f"{task.pull.queue_key}\n{task.handler}\n{task.owner}".encode()).hexdigest()[:16]


def acquire(
    lock: Lock, waiter: Waiter, until: datetime, now: datetime, *, holder_execution_id: str | None = None
) -> tuple[Lock, bool, tuple[Waiter, ...]]:
    """Return the lock after somebody asked for it, whether they have it now (else they wait), and whom to wake first.

    `holder_execution_id` is the execution that is to hold it, if that is another one than waits: the latest of a backlog.

    Who asks again keeps the place that was theirs. Where a place is free and somebody else is ahead, the last holder
    died before it could wake them. Where the line is full, who is new to it `is_waiting` neither before nor after.
    """
    holders = _live_holders(lock, now)
    before = next((one.due_at for one in lock.waiters if _is_same(one, waiter)), waiter.due_at)
    waiter = waiter.model_copy(update={"due_at": min(before, waiter.due_at)})
    others = tuple(one for one in lock.waiters if not _is_same(one, waiter) and not one.has_missed_turn(now))
    ahead = sum(one.order < waiter.order for one in others)
    if len(holders) + ahead < waiter.limit:
        holder = Holder(task_id=waiter.task_id, execution_id=holder_execution_id or waiter.execution_id, until=until)
        return lock.model_copy(update={"holders": (*holders, holder), "waiters": others}), True, ()
    is_new = not is_waiting(lock, waiter.task_id, waiter.execution_id)
    came = () if is_new and len(others) >= MAX_WAITERS else (waiter,)
    queue = sorted((*others, *came), key=lambda one: one.order)
    waiting, woken = _grant_turns(queue[:ahead], len(holders), now)
    return lock.model_copy(update={"holders": holders, "waiters": (*waiting, *queue[ahead:])}), False, woken


def extend(lock: Lock, task_id: str, execution_id: str, until: datetime) -> Lock:
    """Return the lock with a holder's claim prolonged."""
    holders = tuple(
        one.model_copy(update={"until": until}) if (one.task_id, one.execution_id) == (task_id, execution_id) else one
        for one in lock.holders
    )
    return lock.model_copy(update={"holders": holders})


def release(lock: Lock, task_id: str, execution_id: str, now: datetime) -> tuple[Lock, tuple[Waiter, ...]]:
    """Return the lock without a run that held it or waited for it, and those whose turn it is now."""
    gone = (task_id, execution_id)
    holders = tuple(one for one in _live_holders(lock, now) if (one.task_id, one.execution_id) != gone)
    return _with_waiters(lock, holders, (one for one in lock.waiters if (one.task_id, one.execution_id) != gone), now)


def cancel_stale_wait(
    lock: Lock, task_id: str, execution_id: str, revision: int, now: datetime
) -> tuple[Lock, tuple[Waiter, ...]]:
    """Return the lock without a run that waited for it by an older revision of its task, and whose turn it is now."""
    gone = (task_id, execution_id, revision)
    here = (one for one in lock.waiters if (one.task_id, one.execution_id, one.revision) != gone)
    return _with_waiters(lock, _live_holders(lock, now), here, now)


def remove_task(lock: Lock, task_id: str, now: datetime) -> tuple[Lock, tuple[Waiter, ...]]:
    """Return the lock without what a task's runs wait for, and those whose turn it is now.

    A run of it that is under way holds the lock for as long as its lease lasts: its handler is at work.
    """
    return _with_waiters(lock, _live_holders(lock, now), (one for one in lock.waiters if one.task_id != task_id), now)


def requeue_group(lock: Lock, group: str, now: datetime) -> tuple[Lock, tuple[Waiter, ...], tuple[Waiter, ...]]:
    """Return the lock without those for whom no worker comes, those whose turn it is now, and who has left the line."""
    away = [one for one in lock.waiters if one.worker_group == group][:MAX_REQUEUED]
    gone = {one.order for one in away}
    here = (one for one in lock.waiters if one.order not in gone)
    rest, woken = _with_waiters(lock, _live_holders(lock, now), here, now)
    return rest, woken, tuple(one for one in away if one.notified_at is None)


def _with_waiters(
    lock: Lock, holders: tuple[Holder, ...], waiters: Iterable[Waiter], now: datetime
) -> tuple[Lock, tuple[Waiter, ...]]:
    """Return the lock with these, without who has missed their turn, and those whose turn it is now."""
    here = [one for one in waiters if not one.has_missed_turn(now)]
    queue, woken = _grant_turns(here, len(holders), now)
    return lock.model_copy(update={"holders": holders, "waiters": queue}), woken


def _grant_turns(
    queue: list[Waiter], holder_count: int, now: datetime
) -> tuple[tuple[Waiter, ...], tuple[Waiter, ...]]:
    """Return the queue with those at its head marked as woken for whom there is a place, and who they are."""
    given = tuple(
        one.model_copy(update={"notified_at": now})
        if holder_count + place < one.limit and one.notified_at is None
        else one
        for place, one in enumerate(queue)
    )
    return given, tuple(after for before, after in zip(queue, given, strict=True) if after is not before)


def is_held_by(lock: Lock, task_id: str, execution_id: str, now: datetime) -> bool:
    """Whether a run has the lock."""
    return any((one.task_id, one.execution_id) == (task_id, execution_id) for one in _live_holders(lock, now))


def is_waiting(lock: Lock, task_id: str, execution_id: str) -> bool:
    """Whether a run waits for the lock."""
    return any((one.task_id, one.execution_id) == (task_id, execution_id) for one in lock.waiters)


def holds_lock(task: Task, now: datetime) -> bool:
    """Whether a handler of a task is at work that holds a lock."""
    return any(run.lease is not None and run.lease.until > now and run.lock_key is not None for run in task.runs)


def _live_holders(lock: Lock, now: datetime) -> tuple[Holder, ...]:
    return tuple(one for one in lock.holders if one.until > now)


def _is_same(one: Waiter, other: Waiter) -> bool:
    return (one.task_id, one.execution_id) == (other.task_id, other.execution_id)
