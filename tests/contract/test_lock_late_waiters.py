"""No store loses a run that begins to wait for a lock while another process writes that nobody waits for it.

Whoever waits only checks that the lock's document is as it was read, and so does not conflict with such a commit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from tests.conftest import NOW, MakeTask
from tests.contract.conftest import make_waiter
from tests.engine.harness import MINUTE

from cloudsched.domain.documents.execution import Lease, Run
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.transitions.wakeups import Dispatch
from cloudsched.engine.ports.store import Store
from cloudsched.engine.signed_dispatches import DispatchSender
from cloudsched.errors import StoreUnavailable, VersionConflict
from cloudsched.features.locks.lock import NO_GRANTS, Grants, Holder, Lock, VersionedLock, Waiter
from cloudsched.features.locks.locks import Locks

LATER = NOW + 5 * MINUTE
KEY = "door"


class RecordingSender:
    """A sender that only notes whom it notifies."""

    def __init__(self) -> None:
        self.notified: list[str] = []

    def send_dispatch(self, dispatch: Dispatch, _priority: Priority) -> None:
        self.notified.append(dispatch.task_id)


@pytest.fixture
def sender() -> RecordingSender:
    return RecordingSender()


@pytest.fixture
def locks(store: Store, sender: RecordingSender) -> Locks:
    return Locks(store, cast("DispatchSender", sender))


def holder(task_id: str) -> Holder:
    return Holder(task_id=task_id, execution_id="e", until=LATER)


def waiter(task_id: str, limit: int = 1, *, is_notified: bool = False) -> Waiter:
    return make_waiter(task_id, limit=limit, notified_at=NOW if is_notified else None)


def leased_run() -> Run:
    lease = Lease(token_hash="", started_at=NOW, until=LATER)
    return Run(execution_id="e", scheduled_for=NOW, due_at=NOW, lease=lease, lock_key=KEY)


def put(
    store: Store, *, holders: tuple[str, ...] = (), waiters: tuple[Waiter, ...] = (), queued_limit: int = 1
) -> None:
    """Store a lock that says that there are waiters."""
    held = tuple(holder(each) for each in holders)
    store.locks.commit(VersionedLock(Lock(key=KEY, holders=held, waiters=waiters, queued_limit=queued_limit), None))


def enter(store: Store, *waiters: Waiter) -> None:
    """Begin to wait, as a run does that finds the lock taken: the lock's document stays as it is."""
    found = store.locks.load(KEY)
    lock = found.lock.model_copy(update={"waiters": (*found.lock.waiters, *waiters)})
    entering = VersionedLock(lock, found.version, document=found.lock)
    assert not entering.is_document_changed
    store.locks.commit(entering)


def let_enter_before_commit(store: Store, monkeypatch: pytest.MonkeyPatch, *waiters: Waiter) -> None:
    """Let runs begin to wait between what the next commit of the lock has read and what it writes."""
    real = store.locks.commit

    def commit(lock: VersionedLock) -> None:
        monkeypatch.setattr(store.locks, "commit", real)
        enter(store, *waiters)
        real(lock)

    monkeypatch.setattr(store.locks, "commit", commit)


def release(store: Store, locks: Locks, task_id: str, *late: Waiter) -> Grants:
    """End a run, while others begin to wait between what its release has read and what it writes."""
    released, grants = locks.release(KEY, task_id, leased_run(), NOW)
    if late:
        enter(store, *late)
    store.locks.commit(released)
    return grants or NO_GRANTS


def test_a_run_that_waits_while_the_last_holder_ends_gets_the_lock_at_once(
    store: Store, locks: Locks, sender: RecordingSender
) -> None:
    """Also if the lock's document has been deleted, as nobody seemed to need it."""
    put(store, holders=("a",))
    locks.notify(release(store, locks, "a", waiter("late"), waiter("later")), NOW)
    assert sender.notified == ["late"]
    stored = store.locks.load(KEY).lock
    assert [one.task_id for one in stored.waiters] == ["late"]
    assert stored.queued_limit == 1
    assert [one.task_id for one in store.locks.list_waiters(KEY, limit=9)] == ["later"]


def test_a_run_that_waits_while_the_lock_is_passed_on_gets_its_turn_afterwards(
    store: Store, locks: Locks, sender: RecordingSender
) -> None:
    """It is not notified while there is no place; the lock's document says again that somebody waits."""
    put(store, holders=("a",), queued_limit=2)
    grants = release(store, locks, "a", waiter("late"))
    between = store.locks.load(KEY)
    store.locks.commit(replace(between, lock=between.lock.model_copy(update={"holders": (holder("b"),)})))
    locks.notify(grants, NOW)
    assert sender.notified == []
    assert store.locks.load(KEY).lock.queued_limit == 1
    locks.notify(release(store, locks, "b"), NOW)
    assert sender.notified == ["late"]


def test_a_run_that_waits_while_the_one_before_it_starts_gets_its_turn_when_that_ends(
    store: Store, locks: Locks, sender: RecordingSender, make_task: MakeTask
) -> None:
    """A run that acquires the lock does not write that nobody waits: it would have to look again before it starts."""
    put(store, waiters=(waiter("a", is_notified=True),))
    task = make_task(id="a", lock_key=KEY)
    acquired = locks.acquire_for_worker(KEY, task, leased_run(), NOW)
    assert acquired.is_acquired
    assert acquired.lock
    enter(store, waiter("late"))
    store.locks.commit(acquired.lock)
    locks.notify(release(store, locks, "a"), NOW)
    assert sender.notified == ["late"]


def test_a_run_that_waits_while_another_wait_is_withdrawn_gets_the_lock_at_once(
    store: Store, locks: Locks, sender: RecordingSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled wait is a commit of the lock alone."""
    put(store, waiters=(waiter("gone", is_notified=True),))
    let_enter_before_commit(store, monkeypatch, waiter("late"))
    locks.cancel(KEY, "gone", "e", NOW)
    assert sender.notified == ["late"]


def test_a_run_that_waits_while_the_answer_to_a_release_is_lost_gets_the_lock_from_the_repetition(
    store: Store, locks: Locks, sender: RecordingSender
) -> None:
    """Whoever ended the last holder does not know that it did; its dispatch comes again, and finds the run ended."""
    put(store, holders=("a",))
    release(store, locks, "a", waiter("late"))
    locks.cancel(KEY, "a", "e", NOW)
    assert sender.notified == ["late"]


def test_a_run_that_waits_while_the_answer_to_a_withdrawal_is_lost_gets_the_lock_at_once(
    store: Store, locks: Locks, sender: RecordingSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store's client repeats the commit, which conflicts with itself, and then finds nothing to change."""
    put(store, waiters=(waiter("gone", is_notified=True),))
    real = store.locks.commit

    def commit(lock: VersionedLock) -> None:
        monkeypatch.setattr(store.locks, "commit", real)
        enter(store, waiter("late"))
        real(lock)
        raise VersionConflict("the lock")

    monkeypatch.setattr(store.locks, "commit", commit)
    locks.cancel(KEY, "gone", "e", NOW)
    assert sender.notified == ["late"]


def test_a_grant_is_sent_again_if_the_answer_to_the_release_was_lost(
    store: Store, locks: Locks, sender: RecordingSender
) -> None:
    """As long as its turn lasts; after that, and for those behind it, its place is free."""
    put(store, holders=("a",))
    enter(store, waiter("next"))
    release(store, locks, "a")
    locks.cancel(KEY, "a", "e", NOW)
    assert sender.notified == ["next"]


def test_a_run_with_a_greater_limit_is_not_forgotten_for_those_that_stay(
    store: Store, locks: Locks, sender: RecordingSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may run beside a holder that the others must wait for; the greatest limit is kept until all have left."""
    put(store, holders=("a",), queued_limit=3)
    enter(store, waiter("small"), waiter("gone", 3))
    let_enter_before_commit(store, monkeypatch, waiter("wide", 3))
    locks.cancel(KEY, "gone", "e", NOW)
    assert store.locks.load(KEY).lock.queued_limit == 3
    locks.cancel(KEY, "small", "e", NOW)
    assert sender.notified == ["wide"]


def test_a_lock_that_nobody_waited_for_is_released_without_another_look(
    store: Store, locks: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a commit that writes for the first time that nobody waits can have missed somebody."""

    def list_waiters(*_: object, **__: object) -> list[Waiter]:
        raise AssertionError("the wait list is read")

    put(store, holders=("a",), queued_limit=0)
    monkeypatch.setattr(store.locks, "list_waiters", list_waiters)
    locks.notify(release(store, locks, "a"), NOW)
    assert store.locks.load(KEY).version is None


def test_a_store_that_fails_after_the_release_does_not_fail_the_release(
    store: Store, locks: Locks, sender: RecordingSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has ended, and those that were notified know it; the sweep looks for the others."""
    put(store, holders=("a",))
    grants = release(store, locks, "a")

    def list_waiters(*_: object, **__: object) -> list[Waiter]:
        raise StoreUnavailable("The store", "it is being restarted")

    monkeypatch.setattr(store.locks, "list_waiters", list_waiters)
    locks.notify(grants, NOW)
    assert sender.notified == []
