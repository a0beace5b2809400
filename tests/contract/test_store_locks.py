"""What every store promises about resource locks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from tests.conftest import MakeExecution, MakeTask
from tests.contract.conftest import load, make_waiter

from cloudsched.domain.documents.task import Task
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.store import Store
from cloudsched.errors import VersionConflict
from cloudsched.features.locks.lock import Holder, Lock, VersionedLock, Waiter

NOW = datetime(2027, 1, 1, 9, 0, 0, 123456, tzinfo=UTC)
KEY = "account/42: Grüße"


def make_held_lock(by: str, key: str = KEY) -> Lock:
    return Lock(key=key, holders=(Holder(task_id=by, execution_id="e", until=NOW),))


def commit(store: Store, lock: Lock, of: VersionedLock | None = None) -> VersionedLock:
    version = (of or store.locks.load(lock.key)).version
    store.locks.commit(VersionedLock(lock, version))
    stored: VersionedLock = store.locks.load(lock.key)
    return stored


def test_a_lock_is_read_as_it_was_written(store: Store) -> None:
    waiter = make_waiter("b", due_at=NOW, attempt=2, limit=3, notified_at=NOW)
    lock = make_held_lock("a").model_copy(update={"waiters": (waiter,)})
    stored = commit(store, lock)
    assert stored.lock == lock
    assert stored.version is not None
    assert store.locks.load("another") == VersionedLock(Lock(key="another"), None)


def wait(number: int, limit: int = 1, group: str = "") -> Waiter:
    due_at = NOW + timedelta(milliseconds=number)
    return make_waiter(f"t{number % 7}", execution_id=f"e{number}", due_at=due_at, limit=limit, worker_group=group)


def enqueue(store: Store, *waiters: Waiter) -> None:
    """Add waiters that were not notified, without a change of the lock's document if it can be."""
    found = store.locks.load(KEY)
    lock = found.lock.model_copy(update={"waiters": (*found.lock.waiters, *waiters)})
    store.locks.commit(VersionedLock(lock, found.version, document=found.lock))


def test_waiters_are_documents_of_their_own_until_they_are_notified(store: Store) -> None:
    """The lock's document has only the notified ones, and says that there are others."""
    commit(store, make_held_lock("a"))
    notified = wait(1).model_copy(update={"notified_at": NOW})
    enqueue(store, wait(0), notified, wait(2, limit=3))
    found = store.locks.load(KEY)
    assert found.lock.waiters == (notified,)
    assert found.lock.queued_limit == 3
    entries = store.locks.list_waiters(KEY, limit=9)
    assert entries == [wait(0), wait(2, limit=3)]
    moved = wait(0).model_copy(update={"notified_at": NOW})
    lock = found.lock.model_copy(update={"waiters": (moved, notified)})
    store.locks.commit(VersionedLock(lock, found.version, tuple(entries), found.lock))
    assert store.locks.load(KEY).lock.waiters == (moved, notified)
    assert store.locks.list_waiters(KEY, limit=9) == []
    assert store.locks.list_waiters("another", limit=9) == []


def test_waiters_are_listed_in_order_and_by_task_or_group(store: Store) -> None:
    """By due time, then by id, whatever the order in which they came; no other lock's waiters."""
    commit(store, make_held_lock("a"))
    waiters = [wait(number, group="g" if number % 3 else "") for number in range(50)]
    enqueue(store, *(waiters[number * 7 % 50] for number in range(50)))
    assert store.locks.list_waiters(KEY, limit=4) == waiters[:4]
    assert store.locks.list_waiters(KEY, limit=99) == waiters
    mine = store.locks.list_waiters(
        KEY, limit=99, task_ids=["t2", "none", *(f"x{number}" for number in range(40)), "t3"]
    )
    assert sorted(mine, key=lambda one: one.order) == [one for one in waiters if one.task_id in {"t2", "t3"}]
    assert store.locks.list_waiters(KEY, limit=99, task_ids=[]) == []
    group = [one for one in waiters if one.worker_group == "g"]
    assert store.locks.list_waiters(KEY, limit=5, worker_group="g") == group[:5]
    assert store.locks.list_waiters(KEY, limit=99, worker_group="none") == []


def test_those_that_only_wait_do_not_conflict_with_one_another(store: Store) -> None:
    """Each checks that the lock is as it was read; only a change of the lock's document is one for them."""
    commit(store, make_held_lock("a"))
    enqueue(store, wait(0))
    found = store.locks.load(KEY)
    for number in range(1, 4):
        lock = found.lock.model_copy(update={"waiters": (wait(number),)})
        store.locks.commit(VersionedLock(lock, found.version, document=found.lock))
    assert store.locks.load(KEY) == found
    commit(store, found.lock.model_copy(update={"holders": ()}))
    late = found.lock.model_copy(update={"waiters": (wait(9),)})
    with pytest.raises(VersionConflict):
        store.locks.commit(VersionedLock(late, found.version, document=found.lock))
    assert store.locks.list_waiters(KEY, limit=99) == [wait(number) for number in range(4)]


def test_a_waiter_is_written_with_the_task_or_not_at_all(store: Store, make_task: MakeTask) -> None:
    commit(store, make_held_lock("a"))
    enqueue(store, wait(0))
    found, task = store.locks.load(KEY), make_task()
    old = store.commit(Commit(task))
    written = store.commit(Commit(task, old))
    lock = VersionedLock(found.lock.model_copy(update={"waiters": (wait(1),)}), found.version, (wait(0),), found.lock)
    with pytest.raises(VersionConflict):
        store.commit(Commit(task, old, linked=lock))
    assert store.locks.list_waiters(KEY, limit=9) == [wait(0)]
    store.commit(Commit(task, written, linked=lock))
    assert store.locks.list_waiters(KEY, limit=9) == [wait(1)]


def test_an_empty_lock_is_removed_and_can_be_created_again(store: Store) -> None:
    first = commit(store, make_held_lock("a"))
    assert commit(store, Lock(key=KEY)) == VersionedLock(Lock(key=KEY), None)
    commit(store, Lock(key=KEY))
    again = commit(store, make_held_lock("a"))
    assert again.version != first.version
    with pytest.raises(VersionConflict):
        commit(store, make_held_lock("b"), first)
    with pytest.raises(VersionConflict):
        commit(store, Lock(key=KEY), first)
    assert store.locks.load(KEY) == again


def test_a_lock_that_was_changed_is_not_written(store: Store) -> None:
    missing = store.locks.load(KEY)
    first = commit(store, make_held_lock("a"), missing)
    with pytest.raises(VersionConflict):
        commit(store, make_held_lock("b"), missing)
    second = commit(store, make_held_lock("a"), first)
    assert second.version != first.version
    with pytest.raises(VersionConflict):
        commit(store, make_held_lock("b"), first)
    assert store.locks.load(KEY) == second


@pytest.mark.parametrize("stale", ["task", "lock", "removal of the lock"])
def test_task_and_lock_are_written_together_or_not_at_all(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, stale: str
) -> None:
    task = make_task()
    old = store.commit(Commit(task))
    written = store.commit(Commit(task, old))
    old_lock = commit(store, make_held_lock("a"))
    lock = commit(store, make_held_lock("a"), old_lock)
    expected = old if stale == "task" else written
    content = Lock(key=KEY) if stale == "removal of the lock" else make_held_lock("b")
    taken = VersionedLock(content, (lock if stale == "task" else old_lock).version)
    with pytest.raises(VersionConflict):
        store.commit(Commit(task, expected, [make_execution(task)], linked=taken))
    stored = load(store, task.id)
    assert stored == written
    assert store.locks.load(KEY) == lock
    assert store.load_execution(task.id, "20270101T090000Z") is None
    store.commit(Commit(task, written, [make_execution(task)], linked=VersionedLock(content, lock.version)))
    assert store.locks.load(KEY).lock == content
    assert store.load_execution(task.id, "20270101T090000Z") is not None


def test_exactly_one_of_many_concurrent_callers_acquires_a_lock(store: Store, make_task: MakeTask) -> None:
    for key in ("one", "two", "three"):
        found = store.locks.load(key)
        tasks = [make_task() for _ in range(6)]

        def take(task: Task, found: VersionedLock = found, key: str = key) -> bool:
            try:
                store.commit(Commit(task, linked=VersionedLock(make_held_lock(task.id, key), found.version)))
            except VersionConflict:
                return False
            return True

        with ThreadPoolExecutor(len(tasks)) as pool:
            outcomes = list(pool.map(take, tasks))
        winners = [task.id for task, won in zip(tasks, outcomes, strict=True) if won]
        assert len(winners) == 1
        assert [holder.task_id for holder in store.locks.load(key).lock.holders] == winners
        assert [task.id for task in tasks if store.load(task.id) is not None] == winners
