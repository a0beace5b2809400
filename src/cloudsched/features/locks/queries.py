"""What people are shown of locks: who holds each, who waits, and what a task of theirs waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.domain.documents.task import MAX_OPEN_RUNS, Task
from cloudsched.domain.explanation.findings import Turns
from cloudsched.domain.transitions.notices import name_instant
from cloudsched.features.locks.fields import is_quota_lock_key, owner_lock_keys

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.engine.ports.store import Store
    from cloudsched.features.locks.lock import Holder, Lock, Waiter


MAX_WAITERS = 10
"""The number of shown tasks that wait for one lock."""


@dataclass(frozen=True, slots=True)
class LockState:
    """A lock, its first waiters in order, and the tasks that hold it or wait."""

    lock: Lock
    waiters: Sequence[Waiter]
    has_more: bool
    """True if more wait than are shown."""
    tasks: dict[str, Task]


def list_locks(
    store: Store,
    owner: str | None,
    limit: int,
    after: str = "",
) -> tuple[list[LockState], str | None]:
    """Return some of the locks that are held or waited for, by key, and the key to continue after.

    Of an owner, those that are their own. One read for each lock, each waiter shown, and each task that
    holds or waits.
    """
    begin, end = ("", None) if owner is None else owner_lock_keys(owner)
    found = list(store.locks.list_all(limit=limit + 1, begin=begin, end=end, after=after))
    states = []
    for lock in found[:limit]:
        if is_quota_lock_key(lock.key):
            continue
        entries = store.locks.list_waiters(lock.key, limit=MAX_WAITERS + 1) if lock.queued_limit else ()
        waiters = sorted([*lock.waiters, *entries], key=lambda one: one.order)
        shown = waiters[:MAX_WAITERS]
        ids = {one.task_id for one in lock.holders} | {one.task_id for one in shown}
        tasks = {each.task.id: each.task for each in store.load_many(sorted(ids))}
        states.append(LockState(lock, shown, len(waiters) > MAX_WAITERS, tasks))
    return states, found[limit - 1].key if len(found) > limit else None


def explain_turns(store: Store, task: Task, now: datetime, *, shows_holders: bool) -> Turns | None:
    """Return what a task's runs take turns at: who holds the lock, as far as the reader may know, and which wait."""
    key = task.scoped_lock_key
    if key is None or task.wake_at is None:
        return None

    lock = store.locks.load(key).lock
    entries = store.locks.list_waiters(key, limit=MAX_OPEN_RUNS, task_ids=[task.id])
    waiting = {one.execution_id for one in (*lock.waiters, *entries) if one.task_id == task.id}
    holders = [one for one in lock.holders if one.until > now]
    return Turns(sentence=_describe(task, holders, shows_holders=shows_holders), waiting=frozenset(waiting))


def _describe(task: Task, holders: Sequence[Holder], *, shows_holders: bool) -> str:
    sentence = f"It waits for the lock {task.lock_key!r}, which at most {task.lock_limit} may hold at once"
    if not holders:
        return f"{sentence}. Nobody holds it now, so it is granted with the next dispatch or sweep."

    until = name_instant(task, max(one.until for one in holders))
    if shows_holders:
        who = ", ".join(f"task {one.task_id}" for one in holders)
        return f"{sentence}. Held by {who}, until {until} at the latest unless renewed."
    count = "one run holds" if len(holders) == 1 else f"{len(holders)} runs hold"
    return f"{sentence}. Now {count} it, until {until} at the latest unless renewed."
