"""The wait list of a lock may be of any length, keeps its order, and never delays tasks that need no lock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.harness import DAY, MINUTE, SECOND, only_run
from tests.features.locks.test_lock_missing_waiters import app
from tests.features.locks.test_locks import waiter
from tests.features.pull.harness import (
    claim,
    claim_all,
    claim_lock_holder,
    finish,
    lock_wait_list,
    offer,
    require_claim,
    statuses,
)

from cloudsched import Schedule
from cloudsched.adapters.operation_counts import Counts
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.wakeups import TURN_TIMEOUT
from cloudsched.errors import InvalidInput, StoreUnavailable
from cloudsched.features.budgets import budgets
from cloudsched.features.locks.lock import (
    Lock,
    Waiter,
    WaitFilter,
    acquire,
    cancel_waits,
    free_places,
    is_held_by,
    release,
)
from cloudsched.features.pull.work_queue import MAX_CLAIM_SECONDS
from cloudsched.testing import START, Simulation

__all__ = ["app"]  # a fixture

# ── Length ───────────────────────────────────────────────────────────────────────────────────────────────────────

_MOVES = st.tuples(
    st.sampled_from(["ask", "leave", "edit", "delete", "requeue", "wait"]), st.integers(0, 9), st.integers(1, 3)
)


def split(full: Lock) -> tuple[Lock, list[Waiter]]:
    queued = [one for one in full.waiters if one.notified_at is None]
    notified = tuple(one for one in full.waiters if one.notified_at is not None)
    document = full.model_copy(update={"waiters": notified})
    return document.model_copy(update={"queued_limit": max((one.limit for one in queued), default=0)}), queued


@settings(max_examples=400, deadline=None)
@given(moves=st.lists(_MOVES, max_size=60))
def test_the_head_of_the_wait_list_decides_as_the_whole_list_would(moves: list[tuple[str, int, int]]) -> None:
    """For every request, release, expiry and limit, the waiters that are not read would not change the result."""
    full, now = Lock(key="k"), START
    for move, number, limit in moves:
        who = waiter(number, limit).model_copy(update={"worker_group": (group := "ab"[number % 2])})
        name, is_holder = f"t{number}", is_held_by(full, f"t{number}", "e", now)
        changes: dict[str, Callable[[Lock], tuple[Any, ...]]] = {
            "ask": lambda lock: acquire(lock, who, now + MINUTE, now),  # noqa: B023 - called in this round
            "leave": lambda lock: release(lock, name, "e", now),  # noqa: B023 - the same
            "edit": lambda lock: cancel_waits(lock, WaitFilter(name, "e", 1), now),  # noqa: B023 - the same
            "delete": lambda lock: cancel_waits(lock, WaitFilter(name), now),  # noqa: B023 - the same
            "requeue": lambda lock: cancel_waits(lock, WaitFilter(worker_group=group), now),  # noqa: B023 - the same
        }
        if move == "wait" or (move == "ask" and is_holder):
            now += TURN_TIMEOUT / 2
            continue
        document, queued = split(full)
        leaving = (name, "e") if move == "leave" else None
        places = free_places(document, limit if move == "ask" else 0, now, leaving)
        is_read = {one.order for one in queued if one.task_id == name}
        is_read |= {one.order for one in queued if move == "requeue" and one.worker_group == group}
        leaving_count = 0 if move == "ask" else len(is_read)
        is_read |= {one.order for one in queued[: places + leaving_count]} if places else set()
        known = sorted((*document.waiters, *(one for one in queued if one.order in is_read)), key=lambda one: one.order)
        expected, *rest = changes[move](full)
        found, *same_rest = changes[move](document.model_copy(update={"waiters": tuple(known)}))
        unread = [one for one in queued if one.order not in is_read]
        assert same_rest == rest
        assert found.holders == expected.holders
        assert sorted((*found.waiters, *unread), key=lambda one: one.order) == list(expected.waiters)
        full = expected


def test_a_wait_costs_the_same_however_many_others_wait(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock's document does not grow, and neither do the reads and writes of asking, waiting and taking over."""
    monkeypatch.setattr(budgets, "MAX_UNAWARE", DAY)  # one creation a minute reads more: not of the lock
    first = claim_lock_holder(sim)
    costs, size = list[Counts](), 0
    for number in range(40):
        before = sim.counts.copy()
        offer(sim, f"t{number:02}", lock_key="k", handler="inside", pull=None)
        sim.clock.advance(2 * SECOND)
        sim.queue.deliver_due()  # and no sweep
        costs.append(sim.counts.since(before))
        size = max(size, len(sim.app.container.store.locks.load("k").lock.to_stored_json()))
    assert size < 1000
    creation = Counts(commits=1, writes=1, dispatches=1)
    wait = Counts(reads=3, commits=1, writes=2)  # the task, the lock and the run's own wait; the lock is only checked
    assert all(cost.since(creation) == wait for cost in costs[1:])
    assert lock_wait_list(sim) == [f"t{number:02}" for number in range(40)]
    before = sim.counts.copy()
    finish(sim, first)
    sim.advance(MINUTE)
    cost = sim.counts.since(before)
    assert cost.reads <= 40 * 5 + 4  # the last one looks twice whether anybody else waits
    assert cost.writes <= 40 * 5 + 2
    assert cost.deletes <= 40 + 1
    starts = [sim.executions(f"t{number:02}")[0].started_at for number in range(40)]
    assert starts == sorted(starts, key=lambda at: at or START)
    assert sim.app.container.store.locks.load("k").version is None


@pytest.mark.parametrize("lost", ["its document", "its task"])
def test_a_lost_waiter_blocks_nobody(sim: Simulation, lost: str) -> None:
    """If the head is removed for any reason, the next waiters run, and so does one that only lost its place."""
    first = claim_lock_holder(sim)
    for number in range(3):
        offer(sim, f"t{number}", lock_key="k", handler="inside", pull=None)
        sim.advance(2 * SECOND)
    found = sim.app.container.store.locks.load("k")
    entries = sim.app.container.store.locks.list_waiters("k", limit=1)
    if lost == "its document":
        sim.app.container.store.locks.commit(replace(found, entries=tuple(entries)))
        assert lock_wait_list(sim) == ["t1", "t2"]
    else:
        stored = sim.app.container.store.load("t0")
        assert stored
        sim.app.container.store.commit(
            Commit(stored.task.model_copy(update={"deleted_at": sim.now, "wake_at": None}), stored)
        )
        sim.app.container.store.sweep.purge("t0")
    finish(sim, first)
    sim.advance(10 * MINUTE)
    names = ["t1", "t2"] + (["t0"] if lost == "its document" else [])
    assert [statuses(sim, name) for name in names] == [["SUCCEEDED"]] * len(names)


def test_a_poll_asks_for_a_taken_lock_only_once(sim: Simulation) -> None:
    """The other offers of its key move to the wait list in order, one commit each; lock-free offers do not wait."""
    for number in range(40):
        offer(sim, f"t{number:02}", lock_key="k", schedule=Schedule.once(START + (number + 1) * SECOND))
    sim.advance(MINUTE)
    first = require_claim(sim)
    offer(sim, "free")
    sim.advance(2 * SECOND)
    before = sim.counts.copy()
    assert require_claim(sim).task.id == "free"
    cost = sim.counts.since(before)
    assert cost.reads <= 2 * 40 + 3, "each offer and its task once, the lock twice, and whether others wait"
    assert cost.commits == 1 + 39 + 1, "the claim, one for each offer, and the wait list"
    names = [f"t{number:02}" for number in range(1, 40)]
    assert lock_wait_list(sim) == names
    before = sim.counts.copy()
    assert claim(sim) is None
    assert sim.counts.since(before).reads == 1, "they are off the queue"
    finish(sim, first)
    sim.add_worker("gpu")
    sim.advance(MINUTE)
    starts = [only_run(sim, name).started_at for name in names]
    assert starts == sorted(starts, key=lambda at: at or START)


def test_a_lock_freed_during_a_poll_is_acquired(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offers skipped because the first one of their key was skipped are tried again if the wait list has changed."""
    holder = claim_lock_holder(sim)
    for number in range(3):
        offer(sim, f"t{number}", lock_key="k")
    sim.advance(2 * SECOND)
    commit, once = sim.app.container.store.locks.commit, [True]

    def race_once(*args: Any) -> None:
        if once:
            once.clear()
            finish(sim, holder)
        commit(*args)

    monkeypatch.setattr(sim.app.container.store.locks, "commit", race_once)
    assert claim(sim) is None
    assert lock_wait_list(sim) == ["t0", "t1", "t2"]
    sim.add_worker("gpu")
    sim.advance(MINUTE)
    assert [statuses(sim, f"t{number}") for number in range(3)] == [["SUCCEEDED"]] * 3


# ── A poll ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fail_commits_of(sim: Simulation, monkeypatch: pytest.MonkeyPatch, task_id: str, error: Exception) -> None:
    commit = sim.app.container.store.commit

    def refuse_commit(change: Commit) -> VersionedTask:
        if change.task.id == task_id:
            raise error
        return commit(change)

    monkeypatch.setattr(sim.app.container.store, "commit", refuse_commit)


def test_an_offer_that_cannot_be_claimed_is_skipped(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and the other offers are claimed."""
    for number in range(3):
        offer(sim, f"t{number}", schedule=Schedule.once(START + (number + 1) * SECOND))
    sim.advance(MINUTE)
    fail_commits_of(sim, monkeypatch, "t1", InvalidInput("document", "is too large"))
    found = claim_all(sim, 3)
    assert [each.task.id for each in found] == ["t0", "t2"]
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
    (found,) = claim_all(sim, 2)
    assert found.task.id == "t0"
    with pytest.raises(type(error)):
        claim(sim)


def test_a_poll_ends_before_its_caller_times_out(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a slow store a poll stops at `MAX_CLAIM_SECONDS`, and the next poll continues where it stopped."""
    spent = [0.0]
    store = sim.app.container.store
    calls = [(store, name) for name in ("commit", "load", "load_many", "list_offers")]
    for port, name in [*calls, (store.locks, "load"), (store.locks, "commit")]:
        real = getattr(port, name)

        def answer_slowly(*args: Any, real: Any = real, **more: Any) -> Any:  # noqa: ANN401 - the store's
            spent[0] += 0.025
            return real(*args, **more)

        monkeypatch.setattr(port, name, answer_slowly)
    app = sim.app
    with app.override(
        app.container.settings,
        store=app.container.store,
        dispatcher=app.container.dispatcher,
        clock=sim.clock,
        monotonic=lambda: spent[0],
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
            names += [each.task.id for each in claim_all(sim)]
            assert spent[0] - began <= MAX_CLAIM_SECONDS + 0.1
        assert names == ["free"]
        assert len(claim_all(sim, 100)) == 0


# ── Positions ───────────────────────────────────────────────────────────────────────────────────────────────────────
