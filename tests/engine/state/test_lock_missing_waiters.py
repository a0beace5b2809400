"""Those at a lock who will not come: deleted, ended, or of a queue without workers. Nobody waits for them for long."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

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

from cloudsched.domain.transitions.locks import GRANT_TIMEOUT, Lock, acquire, release, requeue_group
from cloudsched.engine.pull.offers import WorkerFilter
from cloudsched.errors import NotFound
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

SWEPT = GRANT_TIMEOUT + timedelta(seconds=80)
"""When the sweep has found at the latest that a turn has ended: its grace, and its minute."""


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """A simulation of an app with work for the queue ``gpu``, and with ``inside``, which executors run."""
    app, _ = work_app()
    app.handler("inside")(lambda: None)
    with Simulation(app) as opened:
        yield opened


@pytest.mark.parametrize("pull", [None, "gpu"])
@pytest.mark.parametrize("verb", ["delete", "cancel", "pause", "edit"])
def test_any_number_of_missing_waiters_is_skipped_at_once(sim: Simulation, pull: str | None, verb: str) -> None:
    """Deleted, ended, held, or moved to another lock, while they waited."""
    holder = claim_lock_holder(sim)
    if pull:
        sim.add_worker("gpu")
    for number in range(8):
        offer(sim, f"t{number}", lock_key="k", handler="inside", pull=pull)
        sim.advance(2 * SECOND)
    offer(sim, "live", lock_key="k", handler="inside", pull=pull)
    wait_long(sim, holder)
    for number in range(8):
        if verb == "edit":
            sim.app.update(f"t{number}", lockKey="another")
        else:
            getattr(sim.app, verb)(f"t{number}")
    sim.app.worker_claims.finish_by_token(*claim_keys(holder), DONE)
    assert advance_until_run(sim, "live") <= 10 * SECOND


def test_a_deleted_task_leaves_the_wait_list_at_once(sim: Simulation) -> None:
    """Whether its run waits in its document, or is only due."""
    holder = claim_lock_holder(sim)
    offer(sim, "a", lock_key="k")
    offer(sim, "b", lock_key="k", handler="inside", pull=None)
    sim.advance(2 * SECOND)
    assert claim(sim) is None
    assert sorted(lock_wait_list(sim)) == ["a", "b"]
    for name in ("a", "b"):
        sim.app.delete(name)
    assert lock_wait_list(sim) == []
    sim.app.worker_claims.finish_by_token(*claim_keys(holder), DONE)
    assert sim.app.store.load_lock("k").version is None


def test_a_dispatch_of_a_task_that_is_gone_passes_its_turn_on(sim: Simulation) -> None:
    """It says at which lock it was its turn: a waiter may be put there just after its task was removed."""
    holder = claim_lock_holder(sim)
    for name in ("a", "b"):
        offer(sim, name, lock_key="k", handler="inside", pull=None)
        sim.advance(2 * SECOND)
    lock = sim.app.store.load_lock("k").lock
    sim.app.delete("a")
    stored = sim.app.store.load_lock("k")
    sim.app.store.commit_lock(type(stored)(lock, stored.version))
    sim.app.worker_claims.finish_by_token(*claim_keys(holder), DONE)
    assert advance_until_run(sim, "b") <= 10 * SECOND


@pytest.mark.parametrize("has_waited_long", [False, True])
def test_a_queue_without_workers_delays_others_by_one_grant_at_most(sim: Simulation, *, has_waited_long: bool) -> None:
    """However many of it wait at the lock: where no worker comes for the first, the others are not waited for."""
    holder = claim_lock_holder(sim)
    for number in range(20):
        offer(sim, f"dead{number}", lock_key="k", pull="cold")
        sim.advance(2 * SECOND)
    assert not sim.app.worker_claims.claim(WorkerFilter("cold"))  # its worker looks once, and goes home
    offer(sim, "live", lock_key="k")
    sim.add_worker("gpu")
    if has_waited_long:
        wait_long(sim, holder)
    else:
        sim.advance(5 * SECOND)
    sim.app.worker_claims.finish_by_token(*claim_keys(holder), DONE)
    assert advance_until_run(sim, "live") <= SWEPT + 10 * SECOND
    sim.add_worker("cold")
    sim.advance(15 * MINUTE)
    for number in range(20):
        (record,) = sim.executions(f"dead{number}")
        assert (record.status.value, len(record.attempts)) == ("SUCCEEDED", 1)
    assert sim.app.store.load_lock("k").version is None


@given(crews=st.lists(st.sampled_from(["", "a", "b"]), max_size=12), limit=st.integers(1, 2))
def test_only_those_leave_the_line_for_whom_nobody_comes(crews: list[str], limit: int) -> None:
    """The others keep their order, and have their turn; who leaves and was not woken is told."""
    waiters = tuple(
        waiter(number, limit).model_copy(update={"worker_group": crew, "notified_at": START if number == 0 else None})
        for number, crew in enumerate(crews)
    )
    lock, woken, sent_back = requeue_group(Lock(key="k", waiters=waiters), "a", START + GRANT_TIMEOUT)
    rest = [number for number, crew in enumerate(crews) if crew != "a" and number > 0]
    assert [one.task_id for one in lock.waiters] == [f"t{number}" for number in rest]
    assert [one.task_id for one in woken] == [f"t{number}" for number in rest[:limit]]
    away = [number for number, crew in enumerate(crews) if crew == "a" and number > 0]
    assert [one.task_id for one in sent_back] == [f"t{number}" for number in away]


def test_a_turn_that_a_worker_takes_costs_nothing_more(sim: Simulation) -> None:
    """One dispatch wakes it; that it might not be taken is left to the sweep, which then has nothing to do."""
    for name in ("a", "b"):
        offer(sim, name, lock_key="k")
    sim.advance(2 * SECOND)
    first = require_claim(sim)
    assert claim(sim) is None
    before = sim.counts.copy()
    sim.app.worker_claims.finish_by_token(*claim_keys(first), DONE)
    sim.queue.deliver_due()
    second = require_claim(sim)
    sim.app.worker_claims.finish_by_token(*claim_keys(second), DONE)
    cost = sim.counts.since(before)
    assert (cost.reads, cost.commits, cost.dispatches) == (7, 4, 1)
    deliveries = len(sim.queue.deliveries)
    sim.advance(HOUR)
    assert len(sim.queue.deliveries) == deliveries


# ── Deleted at work ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_elsewhere", [False, True])
@pytest.mark.parametrize("is_released", [False, True])
def test_the_lock_of_a_deleted_task_is_free_when_its_worker_has_ended(
    sim: Simulation, *, is_elsewhere: bool, is_released: bool
) -> None:
    """Not before that, since its handler is at work; what it brings is dropped, as the task is."""
    offer(sim, "a", lock_key="k", expectedDuration=3600, deliveryChannels=["WEB"])
    offer(sim, "b", lock_key="k")
    sim.advance(2 * SECOND)
    found = require_claim(sim)
    assert claim(sim) is None
    pulls = sim.app.worker_claims
    begun = pulls.start(found)
    assert begun
    sim.app.delete("a")
    sim.add_worker("gpu")
    sim.advance(10 * MINUTE)
    assert statuses(sim, "b") == []
    if is_elsewhere:
        verb = pulls.release_by_token if is_released else pulls.finish_by_token
        assert pulls.heartbeat(*claim_keys(found)).is_cancelled
        with pytest.raises(NotFound):
            verb(*claim_keys(found), "no" if is_released else DONE)  # type: ignore[arg-type]
    else:
        assert (pulls.release(begun, "no") if is_released else pulls.finish(begun, DONE)) is None
    assert advance_until_run(sim, "b") <= 10 * SECOND
    sim.advance(2 * MINUTE)
    assert sim.app.store.load("a") is None
    assert sim.inbox("ada") == []
    assert sim.app.store.load_lock("k").version is None


def test_the_lock_of_a_deleted_task_whose_worker_died_is_free_when_its_lease_has_ended(sim: Simulation) -> None:
    """The sweep that removes the task sees to those who wait."""
    offer(sim, "a", lock_key="k", expectedDuration=600)
    offer(sim, "b", lock_key="k")
    sim.advance(2 * SECOND)
    require_claim(sim)
    assert claim(sim) is None
    sim.app.delete("a")
    sim.add_worker("gpu")
    assert advance_until_run(sim, "b") <= 12 * MINUTE
    assert sim.app.store.load("a") is None


def test_no_lock_is_left_of_tasks_that_are_gone() -> None:
    """A waiter of a task that was cancelled, and that the queue forgot to wake, goes with the task at the latest."""
    app, _ = work_app()
    with Simulation(app, retention=HOUR) as sim:
        for name in ("a", "b"):
            offer(sim, name, lock_key="k")
        sim.advance(2 * SECOND)
        first = require_claim(sim)
        assert claim(sim) is None
        app.cancel("b")
        app.worker_claims.finish_by_token(*claim_keys(first), DONE)
        sim.queue.purge()
        sim.advance(3 * HOUR)
        assert app.store.load("b") is None
        assert app.store.load_lock("k").version is None


@pytest.mark.parametrize("verb", ["pause", "cancel", "delete", "edit"])
def test_a_turn_that_its_owner_ends_is_passed_on_at_once(sim: Simulation, verb: str) -> None:
    """While it waits for a worker in its turn, nobody else would come for it as it was."""
    holder = claim_lock_holder(sim)
    for name in ("a", "b"):
        offer(sim, name, lock_key="k")
        sim.advance(2 * SECOND)
    assert claim(sim) is None
    sim.app.worker_claims.finish_by_token(*claim_keys(holder), DONE)
    sim.queue.deliver_due()
    if verb == "edit":
        sim.app.update("a", lockKey="another")
    else:
        getattr(sim.app, verb)("a")
    sim.add_worker("gpu")
    assert advance_until_run(sim, "b") <= 10 * SECOND


def test_a_release_grants_the_next_waiter_despite_stale_entries() -> None:
    """A holder whose lease has ended is no holder."""
    lock, _, _ = acquire(Lock(key="k"), waiter(0), START + MINUTE, START)
    lock, woken = release(lock, "t5", "e", START + HOUR)
    assert lock.is_empty
    assert woken == ()
