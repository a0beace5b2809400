"""The wait list of a lock is bounded, keeps its order, and never delays tasks that need no lock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.pull.harness import (
    DONE,
    HOUR,
    MINUTE,
    SECOND,
    advance_until_run,
    claim,
    claim_keys,
    claim_lock_holder,
    lock_wait_list,
    offer,
    require_claim,
    statuses,
    wait_long,
    work_app,
)
from tests.engine.state.test_locks import waiter

from cloudsched import App, Schedule
from cloudsched.domain.transitions import locks as locking
from cloudsched.domain.transitions.locks import Lock, acquire, is_waiting
from cloudsched.engine.pull.offers import MAX_CLAIM_SECONDS, WorkerFilter
from cloudsched.errors import InvalidInput, StoreUnavailable
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.store import Version


@pytest.fixture
def app() -> App:
    """An app with work for the queue ``gpu``, and with ``inside``, which executors run."""
    app, _ = work_app()
    app.handler("inside")(lambda: None)
    return app


# ── Length ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(numbers=st.lists(st.integers(0, 30), max_size=40), most=st.integers(1, 5))
def test_the_wait_list_is_bounded_and_keeps_positions(numbers: list[int], most: int) -> None:
    """However many runs ask, and ask again: at most MAX_WAITERS wait, in order, and none of them is dropped."""
    until = START + HOUR
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locking, "MAX_WAITERS", most)
        lock, has_it, _ = acquire(Lock(key="k"), waiter(99), until, START)
        assert has_it
        for number in numbers:
            before = {one.task_id for one in lock.waiters}
            lock, has_it, woken = acquire(lock, waiter(number), until, START)
            names = {one.task_id for one in lock.waiters}
            assert (has_it, woken) == (False, ())
            assert names == before | ({f"t{number}"} if len(before) < most else set())
            assert is_waiting(lock, f"t{number}", "e") == (f"t{number}" in names)
            assert list(lock.waiters) == sorted(lock.waiters, key=lambda one: one.order)


def test_a_full_wait_list_at_a_free_lock_is_notified() -> None:
    """A run that finds the list full and the last holder's lease expired notifies those ahead of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locking, "MAX_WAITERS", 1)
        lock, _, _ = acquire(Lock(key="k"), waiter(0), START + MINUTE, START)
        lock, _, _ = acquire(lock, waiter(1), START + MINUTE, START)
        lock, has_it, woken = acquire(lock, waiter(2), START + HOUR, START + 2 * MINUTE)
    assert not has_it
    assert [one.task_id for one in woken] == ["t1"]
    assert [one.task_id for one in lock.waiters] == ["t1"]


def test_a_full_wait_list_fits_its_document() -> None:
    """Even with the longest ids that are allowed."""
    long = {"task_id": "t" * 128, "execution_id": "20270101T000000.000000Z-backfill-20270101T000000.000000Z"}
    one = waiter(1).model_copy(update={**long, "notified_at": START, "worker_group": "0123456789abcdef", "hop": 10**10})
    size = len(json.dumps(one.to_wire()))
    assert locking.MAX_WAITERS * size < 700_000


@pytest.mark.parametrize("pull", [None, "gpu"])
def test_a_full_wait_list_is_retried_without_losing_an_attempt(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, pull: str | None
) -> None:
    """Executors retry about once a minute, workers' tasks at each sweep; in the end each runs, in one attempt."""
    monkeypatch.setattr(locking, "MAX_WAITERS", 2)
    holder = claim_lock_holder(sim)
    for number in range(6):
        offer(sim, f"t{number}", lock_key="k", handler="inside", pull=pull)
        sim.advance(2 * SECOND)
        assert claim(sim) is None
    assert lock_wait_list(sim) == ["t0", "t1"]
    before = len(sim.queue.deliveries)
    sim.advance(30 * MINUTE)
    last = [each for each in sim.queue.deliveries[before:] if b'"t5"' in each.body]
    assert len(last) <= (4 if pull else 36), (
        "each is delivered once a minute, however often the sweep dispatches it as well"
    )
    assert lock_wait_list(sim) == ["t0", "t1"]
    if pull:
        sim.add_worker("gpu")
    sim.app.worker_claims.finish_by_token(*claim_keys(holder), DONE)
    sim.advance(15 * MINUTE)
    for number in range(6):
        (record,) = sim.executions(f"t{number}")
        assert (record.status.value, len(record.attempts)) == ("SUCCEEDED", 1)
    assert sim.app.store.load_lock("k").version is None


def test_a_poll_asks_for_a_taken_lock_only_once(sim: Simulation) -> None:
    """The other offers of its key move to the wait list in order, one commit each; lock-free offers do not wait."""
    for number in range(40):
        offer(sim, f"t{number:02}", lock_key="k", schedule=Schedule.once(START + (number + 1) * SECOND))
    sim.advance(MINUTE)
    first = require_claim(sim)
    offer(sim, "free")
    sim.advance(2 * SECOND)
    before = sim.counts.copy()
    assert require_claim(sim).stored.task.id == "free"
    cost = sim.counts.since(before)
    assert cost.reads <= 2 * 40 + 2, "each offer and its task once, and the lock twice"
    assert cost.commits == 1 + 39 + 1, "the claim, one for each offer, and the wait list"
    names = [f"t{number:02}" for number in range(1, 40)]
    assert lock_wait_list(sim) == names
    before = sim.counts.copy()
    assert claim(sim) is None
    assert sim.counts.since(before).reads == 1, "they are off the queue"
    sim.app.worker_claims.finish_by_token(*claim_keys(first), DONE)
    sim.add_worker("gpu")
    sim.advance(MINUTE)
    starts = [sim.executions(name)[0].started_at for name in names]
    assert starts == sorted(starts, key=lambda at: at or START)


def test_a_lock_freed_during_a_poll_is_acquired(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offers that were skipped with the first of their key are tried again if the wait list has changed meanwhile."""
    holder = claim_lock_holder(sim)
    for number in range(3):
        offer(sim, f"t{number}", lock_key="k")
    sim.advance(2 * SECOND)
    commit, once = sim.app.store.commit_lock, [True]

    def racing(*args: Any) -> None:
        if once:
            once.clear()
            sim.app.worker_claims.finish_by_token(*claim_keys(holder), DONE)
        commit(*args)

    monkeypatch.setattr(sim.app.store, "commit_lock", racing)
    assert claim(sim) is None
    assert lock_wait_list(sim) == ["t0", "t1", "t2"]
    sim.add_worker("gpu")
    sim.advance(MINUTE)
    assert [statuses(sim, f"t{number}") for number in range(3)] == [["SUCCEEDED"]] * 3


# ── A poll ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fail_commits_of(sim: Simulation, monkeypatch: pytest.MonkeyPatch, task_id: str, error: Exception) -> None:
    """Let each commit of a task fail."""
    commit = sim.app.store.commit

    def refusing(task: Task, *args: Any, **more: Any) -> Version:
        if task.id == task_id:
            raise error
        return commit(task, *args, **more)

    monkeypatch.setattr(sim.app.store, "commit", refusing)


def test_an_offer_that_cannot_be_claimed_is_skipped(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the other offers are claimed."""
    for number in range(3):
        offer(sim, f"t{number}", schedule=Schedule.once(START + (number + 1) * SECOND))
    sim.advance(MINUTE)
    fail_commits_of(sim, monkeypatch, "t1", InvalidInput("document", "is too large"))
    found = sim.app.worker_claims.claim(WorkerFilter("gpu"), 3)
    assert [each.stored.task.id for each in found] == ["t0", "t2"]
    assert [vars(line)["taskId"] for line in caplog.records if "cannot be claimed" in line.message] == ["t1"]
    assert claim(sim) is None


@pytest.mark.parametrize("error", [StoreUnavailable("The store", "down"), RuntimeError("a mistake")])
def test_claims_made_before_an_error_are_returned(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """An error after the first claim ends the poll; an error before it is raised."""
    for number in range(2):
        offer(sim, f"t{number}", schedule=Schedule.once(START + (number + 1) * SECOND))
    sim.advance(MINUTE)
    fail_commits_of(sim, monkeypatch, "t1", error)
    (found,) = sim.app.worker_claims.claim(WorkerFilter("gpu"), 2)
    assert found.stored.task.id == "t0"
    with pytest.raises(type(error)):
        claim(sim)


def test_a_poll_ends_before_its_caller_times_out(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a slow store a poll stops at `MAX_CLAIM_SECONDS`, and the next poll continues where it stopped."""
    spent = [0.0]
    for name in ("commit", "load", "load_many", "load_lock", "commit_lock", "list_offers"):
        real = getattr(sim.app.store, name)

        def slow(*args: Any, real: Any = real, **more: Any) -> Any:  # noqa: ANN401 - the store's
            spent[0] += 0.025
            return real(*args, **more)

        monkeypatch.setattr(sim.app.store, name, slow)
    app = sim.app
    with app.override(
        app.settings, store=app.store, dispatcher=app.dispatcher, clock=sim.clock, monotonic=lambda: spent[0]
    ):
        for number in range(300):
            offer(sim, f"t{number:03}", lock_key="k", schedule=Schedule.once(START + SECOND))
        sim.advance(MINUTE)
        require_claim(sim)
        offer(sim, "free")
        sim.advance(2 * SECOND)
        names: list[str] = []
        for _ in range(5):
            began = spent[0]
            names += [each.stored.task.id for each in sim.app.worker_claims.claim(WorkerFilter("gpu"))]
            assert spent[0] - began <= MAX_CLAIM_SECONDS + 0.1
        assert names == ["free"]
        assert len(sim.app.worker_claims.claim(WorkerFilter("gpu"), 100)) == 0


# ── Positions ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("every", [3, 10])
def test_a_backlog_has_one_position(sim: Simulation, every: int) -> None:
    """However many occurrences pass while it waits: the latest takes the position of the first."""
    holder = claim_lock_holder(sim)
    schedule = Schedule.every(every * MINUTE, start=START + 2 * MINUTE)
    offer(sim, "m", lock_key="k", handler="inside", pull=None, schedule=schedule)
    sim.advance(5 * MINUTE)
    offer(sim, "c", lock_key="k", handler="inside", pull=None)
    wait_long(sim, holder)
    assert lock_wait_list(sim) == ["m", "c"]
    sim.app.worker_claims.finish_by_token(*claim_keys(holder), DONE)
    assert advance_until_run(sim, "c") <= 10 * SECOND
    assert "SUCCEEDED" in statuses(sim, "m")
    assert lock_wait_list(sim) == []


def test_a_waiter_that_was_notified_before_is_notified_again(sim: Simulation) -> None:
    """Each notification has a dispatch name of its own, so that the queue does not drop it as a duplicate."""
    for name in ("first", "second"):
        offer(sim, name, lock_key="k", expectedDuration=3600)
    offer(sim, "b", lock_key="k", handler="inside", pull=None, schedule=Schedule.once(START + 2 * MINUTE))
    sim.advance(MINUTE)
    first = require_claim(sim)
    sim.advance(8 * MINUTE)
    sim.app.worker_claims.finish_by_token(*claim_keys(first), DONE)
    second = require_claim(sim)  # before the notification is delivered
    sim.advance(49 * MINUTE)
    sim.app.worker_claims.finish_by_token(*claim_keys(second), DONE)
    assert advance_until_run(sim, "b") <= 10 * SECOND
