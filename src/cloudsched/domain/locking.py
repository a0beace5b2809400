"""Resource locks: who may work on one thing, and who is next.

A task may name a lock key: a document, an account, a machine. Runs of one key take turns, up to a limit at once, in
the order in which they came due. The lock is a document of its own, committed together with the task whose run takes
or frees it, so that the two cannot disagree.

* A holder's claim ends with its lease. One that died holds nobody up for longer than that.
* Who must wait is remembered with its due instant, and loses no attempt. When a place is free, those at the head are
  woken; nobody polls.
* Who was woken has `RESERVATION` to come. After that the next one passes it by; if it comes later it waits again, at
  the place that its due instant gives it.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from cloudsched.domain.document import Document, Instant, Value
from cloudsched.domain.policy import Priority

RESERVATION = timedelta(minutes=1)
"""How long a place is kept for somebody who was woken."""


class Holder(Value):
    """A run that has the lock."""

    task_id: str
    execution_id: str
    until: Instant
    """When the claim ends if it is not renewed: the end of the run's lease."""


class Waiter(Value):
    """A run that wants the lock, and all that is needed to wake it."""

    task_id: str
    execution_id: str
    revision: int
    scheduled_for: Instant
    attempt: int
    due_at: Instant
    """When it came due: the earlier, the sooner it has its turn."""
    hop: int
    resumption: int = 0
    limit: int
    """How many may hold the lock at once, by this run's task."""
    priority: Priority
    woken_at: Instant | None = None

    @property
    def order(self) -> tuple[datetime, str, str]:
        """What waiters are sorted by."""
        return self.due_at, self.task_id, self.execution_id

    def is_absent(self, now: datetime) -> bool:
        """Whether it was woken and did not come."""
        return self.woken_at is not None and self.woken_at + RESERVATION <= now


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


def entered(lock: Lock, waiter: Waiter, until: datetime, now: datetime) -> tuple[Lock, bool, tuple[Waiter, ...]]:
    """Return the lock after somebody asked for it, whether they have it now (else they wait), and whom to wake first.

    Who asks again keeps the place that was theirs. Where a place is free and somebody else is ahead, the last holder
    died before it could wake them.
    """
    holders = _live(lock, now)
    before = next((one.due_at for one in lock.waiters if _is_same(one, waiter)), waiter.due_at)
    waiter = waiter.model_copy(update={"due_at": min(before, waiter.due_at)})
    others = tuple(one for one in lock.waiters if not _is_same(one, waiter) and not one.is_absent(now))
    ahead = sum(one.order < waiter.order for one in others)
    if len(holders) + ahead < waiter.limit:
        holder = Holder(task_id=waiter.task_id, execution_id=waiter.execution_id, until=until)
        return lock.model_copy(update={"holders": (*holders, holder), "waiters": others}), True, ()
    queue = sorted((*others, waiter), key=lambda one: one.order)
    waiting, woken = _with_turns_given(queue[:ahead], len(holders), now)
    return lock.model_copy(update={"holders": holders, "waiters": (*waiting, *queue[ahead:])}), False, woken


def renewed(lock: Lock, task_id: str, execution_id: str, until: datetime) -> Lock:
    """Return the lock with a holder's claim prolonged."""
    holders = tuple(
        one.model_copy(update={"until": until}) if (one.task_id, one.execution_id) == (task_id, execution_id) else one
        for one in lock.holders
    )
    return lock.model_copy(update={"holders": holders})


def left(lock: Lock, task_id: str, execution_id: str, now: datetime) -> tuple[Lock, tuple[Waiter, ...]]:
    """Return the lock without a run that held it or waited for it, and those whose turn it is now."""
    gone = (task_id, execution_id)
    holders = tuple(one for one in _live(lock, now) if (one.task_id, one.execution_id) != gone)
    here = [one for one in lock.waiters if (one.task_id, one.execution_id) != gone and not one.is_absent(now)]
    queue, woken = _with_turns_given(here, len(holders), now)
    return lock.model_copy(update={"holders": holders, "waiters": queue}), woken


def _with_turns_given(queue: list[Waiter], held: int, now: datetime) -> tuple[tuple[Waiter, ...], tuple[Waiter, ...]]:
    """Return the queue with those at its head marked as woken for whom there is a place, and who they are."""
    given = tuple(
        one.model_copy(update={"woken_at": now}) if held + place < one.limit and one.woken_at is None else one
        for place, one in enumerate(queue)
    )
    return given, tuple(after for before, after in zip(queue, given, strict=True) if after is not before)


def is_held_by(lock: Lock, task_id: str, execution_id: str, now: datetime) -> bool:
    """Whether a run has the lock."""
    return any((one.task_id, one.execution_id) == (task_id, execution_id) for one in _live(lock, now))


def _live(lock: Lock, now: datetime) -> tuple[Holder, ...]:
    return tuple(one for one in lock.holders if one.until > now)


def _is_same(one: Waiter, other: Waiter) -> bool:
    return (one.task_id, one.execution_id) == (other.task_id, other.execution_id)
