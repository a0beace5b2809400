"""Waiters that never take their grant (deleted, finished, or of a queue without workers) do not delay the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.harness import HOUR, MINUTE, SECOND, Simulate, only_run
from tests.features.locks.test_locks import waiter
from tests.features.pull.harness import (
    DONE,
    advance_until_run,
    claim,
    claim_all,
    claim_keys,
    claim_lock_holder,
    finish,
    offer,
    require_claim,
    statuses,
    wait_long,
    work_app,
)

from cloudsched import App
from cloudsched.domain.transitions.wakeups import TURN_TIMEOUT
from cloudsched.errors import NotFound
from cloudsched.features.locks.lock import Lock, WaitFilter, cancel_waits
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.testing import START, Simulation

SWEPT = TURN_TIMEOUT + 80 * SECOND
"""By when the sweep has found an expired grant: the timeout, its grace period and its interval."""


@pytest.fixture
def app() -> App:
    """An app with work for the queue ``gpu``, and with ``inside``, which executors run."""
    app, _ = work_app()
    app.handler("inside")(lambda: None)
    return app


@pytest.mark.parametrize("pull", [None, "gpu"])
@pytest.mark.parametrize("verb", ["delete", "cancel", "pause", "edit"])
def test_any_number_of_missing_waiters_is_skipped_at_once(sim: Simulation, pull: str | None, verb: str) -> None:
    """Waiters that were deleted, cancelled, paused or moved to another lock cost the next one less than ten seconds."""
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
            sim.app.update(f"t{number}", lock_key="another")
        else:
            getattr(sim.app, verb)(f"t{number}")
    finish(sim, holder)
    assert advance_until_run(sim, "live") <= 10 * SECOND


def test_a_dispatch_of_a_deleted_task_passes_its_grant_on(sim: Simulation) -> None:
    """The dispatch names its lock, since a waiter may be enqueued just after its task was deleted."""
    holder = claim_lock_holder(sim)
    for name in ("a", "b"):
        offer(sim, name, lock_key="k", handler="inside", pull=None)
        sim.advance(2 * SECOND)
    lock = sim.app.container.store.locks.load("k").lock
    sim.app.delete("a")
    stored = sim.app.container.store.locks.load("k")
    sim.app.container.store.locks.commit(type(stored)(lock, stored.version))
    finish(sim, holder)
    assert advance_until_run(sim, "b") <= 10 * SECOND


@pytest.mark.parametrize("has_waited_long", [False, True])
def test_a_queue_without_workers_delays_others_by_one_grant_at_most(sim: Simulation, *, has_waited_long: bool) -> None:
    """However many of its runs wait: if no worker takes the first grant, the whole group is requeued."""
    holder = claim_lock_holder(sim)
    for number in range(20):
        offer(sim, f"dead{number}", lock_key="k", pull="cold")
        sim.advance(2 * SECOND)
    assert not claim_all(sim, queue="cold")  # its worker polls once and stops
    offer(sim, "live", lock_key="k")
    sim.add_worker("gpu")
    if has_waited_long:
        wait_long(sim, holder)
    else:
        sim.advance(5 * SECOND)
    finish(sim, holder)
    assert advance_until_run(sim, "live") <= SWEPT + 10 * SECOND
    sim.add_worker("cold")
    sim.advance(15 * MINUTE)
    for number in range(20):
        record = only_run(sim, f"dead{number}")
        assert (record.status.value, len(record.attempts)) == ("SUCCEEDED", 1)
    assert sim.app.container.store.locks.load("k").version is None


@given(groups=st.lists(st.sampled_from(["", "a", "b"]), max_size=12), limit=st.integers(1, 2))
def test_only_the_group_without_workers_leaves_the_wait_list(groups: list[str], limit: int) -> None:
    """The others keep their order and get grants; members that leave without a grant are returned, to be requeued."""
    waiters = tuple(
        waiter(number, limit).model_copy(update={"worker_group": group, "notified_at": START if number == 0 else None})
        for number, group in enumerate(groups)
    )
    before, which = Lock(key="k", waiters=waiters), WaitFilter(worker_group="a")
    lock, woken, sent_back = cancel_waits(before, which, START + TURN_TIMEOUT)
    rest = [number for number, group in enumerate(groups) if group != "a" and number > 0]
    assert [one.task_id for one in lock.waiters] == [f"t{number}" for number in rest]
    assert [one.task_id for one in woken] == [f"t{number}" for number in rest[:limit]]
    requeued = [number for number, group in enumerate(groups) if group == "a" and number > 0]
    assert [one.task_id for one in sent_back] == [f"t{number}" for number in requeued]


# ── Deleted at work ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_elsewhere", [False, True])
@pytest.mark.parametrize("is_released", [False, True])
def test_the_lock_of_a_deleted_task_is_released_when_its_worker_finishes(
    sim: Simulation, *, is_elsewhere: bool, is_released: bool
) -> None:
    """Not earlier, as its handler still runs; its result is dropped with the task."""
    offer(sim, "a", lock_key="k", expectedDuration=3600, deliveryChannels=["WEB"])
    offer(sim, "b", lock_key="k")
    sim.advance(2 * SECOND)
    found = require_claim(sim)
    assert claim(sim) is None
    pulls = PullWiring.of(sim.app.container).worker_claims
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
    assert sim.app.container.store.load("a") is None
    assert sim.inbox("ada") == []
    assert sim.app.container.store.locks.load("k").version is None


def test_the_lock_of_a_deleted_task_is_released_when_a_dead_worker_s_lease_ends(sim: Simulation) -> None:
    """The sweep that removes the task notifies the next waiter."""
    offer(sim, "a", lock_key="k", expectedDuration=600)
    offer(sim, "b", lock_key="k")
    sim.advance(2 * SECOND)
    require_claim(sim)
    assert claim(sim) is None
    sim.app.delete("a")
    sim.add_worker("gpu")
    assert advance_until_run(sim, "b") <= 12 * MINUTE
    assert sim.app.container.store.load("a") is None


def test_no_lock_outlives_its_tasks(app: App, simulate: Simulate) -> None:
    """A waiter of a cancelled task whose wake-up the queue lost is removed at the latest with its task."""
    sim = simulate(retention=HOUR)
    for name in ("a", "b"):
        offer(sim, name, lock_key="k")
    sim.advance(2 * SECOND)
    first = require_claim(sim)
    assert claim(sim) is None
    app.cancel("b")
    finish(sim, first)
    sim.queue.purge()
    sim.advance(3 * HOUR)
    assert app.container.store.load("b") is None
    assert app.container.store.locks.load("k").version is None


@pytest.mark.parametrize("verb", ["pause", "cancel", "delete", "edit"])
def test_a_grant_of_a_task_that_its_owner_stops_is_passed_on_at_once(sim: Simulation, verb: str) -> None:
    """The task is paused, cancelled, deleted or edited while its grant waits for a worker."""
    holder = claim_lock_holder(sim)
    for name in ("a", "b"):
        offer(sim, name, lock_key="k")
        sim.advance(2 * SECOND)
    assert claim(sim) is None
    finish(sim, holder)
    sim.queue.deliver_due()
    if verb == "edit":
        sim.app.update("a", lock_key="another")
    else:
        getattr(sim.app, verb)("a")
    sim.add_worker("gpu")
    assert advance_until_run(sim, "b") <= 10 * SECOND
