"""Work that is fetched, with the other things that a task can say: locks, durable handlers, and what it costs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.pull.harness import (
    DONE,
    HOUR,
    MINUTE,
    SECOND,
    claim,
    claim_keys,
    offer,
    require_claim,
    statuses,
    work_app,
)

from cloudsched import App, Context, Schedule, Settings
from cloudsched.domain.documents.pull import Pull
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """A simulation of an app with work for the queue ``gpu``, without a worker yet."""
    app, _ = work_app()
    with Simulation(app) as opened:
        yield opened


def test_work_of_one_lock_key_is_offered_in_turns(sim: Simulation) -> None:
    """Who finds it taken leaves the queue until its turn has come, so that no worker asks in vain twice."""
    for number in range(3):
        offer(sim, f"t{number}", lock_key="press", schedule=Schedule.once(sim.now + (number + 1) * SECOND))
    sim.advance(MINUTE)
    first = require_claim(sim)
    assert claim(sim) is None
    before = sim.counts.copy()
    assert claim(sim) is None
    assert sim.counts.since(before).reads == 1, "the two that wait are off the queue"
    order = [first.stored.task.id]
    sim.app.worker_claims.finish_by_token(*claim_keys(first), DONE)
    for _ in range(2):
        sim.advance(SECOND)
        found = require_claim(sim)
        assert claim(sim) is None
        order.append(found.stored.task.id)
        sim.app.worker_claims.finish_by_token(*claim_keys(found), DONE)
    assert order == ["t0", "t1", "t2"]
    assert {status for name in order for status in statuses(sim, name)} == {"SUCCEEDED"}


def test_work_waits_for_a_lock_that_an_executor_holds() -> None:
    """It is one lock for both, and no two of its key run at a time."""
    app = App(Settings())
    ran: list[str] = []
    world: list[Simulation] = []

    @app.handler("inside")
    def inside(ctx: Context) -> None:
        ran.append("executor")
        assert claim(world[0]) is None
        world[0].clock.advance(MINUTE)
        ctx.heartbeat()

    app.handler("work", pull="gpu")(lambda: ran.append("worker"))
    with Simulation(app) as sim:
        world.append(sim)
        offer(sim, "a", lock_key="door")
        offer(sim, "b", lock_key="door", handler="inside")
        sim.advance(2 * SECOND)
        sim.add_worker("gpu")
        sim.advance(MINUTE)
        assert ran == ["executor", "worker"]


def test_a_turn_that_is_lost_on_the_way_is_given_again(sim: Simulation) -> None:
    """The dispatch that wakes who waits may be forgotten by the queue: the sweep sends it again."""
    for name in ("a", "b"):
        offer(sim, name, lock_key="press")
    sim.advance(MINUTE)
    first = require_claim(sim)
    assert claim(sim) is None
    sim.app.worker_claims.finish_by_token(*claim_keys(first), DONE)
    sim.queue.purge()
    assert claim(sim) is None
    sim.advance(5 * MINUTE)
    assert require_claim(sim).stored.task.id == "b"


def test_who_waits_for_a_lock_has_not_begun(sim: Simulation) -> None:
    """It may still be too late for it, as for one that waits for a worker."""
    for name in ("a", "b"):
        offer(sim, name, lock_key="press", expiration=HOUR)
    sim.advance(MINUTE)
    first = require_claim(sim)
    assert claim(sim) is None
    for _ in range(20):
        sim.app.worker_claims.heartbeat(*claim_keys(first))
        sim.advance(4 * MINUTE)
    sim.app.worker_claims.finish_by_token(*claim_keys(first), DONE)
    sim.advance(5 * MINUTE)
    assert claim(sim) is None
    assert [statuses(sim, name) for name in ("a", "b")] == [["SUCCEEDED"], ["EXPIRED"]]


@pytest.mark.parametrize("replay", [False, True])
def test_a_durable_handler_goes_on_with_another_worker(replay: bool) -> None:  # noqa: FBT001 - a parameter
    """It sleeps without one, calls others of its kind and of the executor's, and each step is done once."""
    app = App(Settings())
    done: list[str] = []

    def noted(what: str) -> str:
        done.append(what)
        return what

    @app.handler("long", pull=Pull(queue="gpu", skill="cuda"))
    def long(ctx: Context) -> list[Any]:
        first = ctx.step("first", noted, "first")
        ctx.sleep(timedelta(days=45))
        approved = ctx.wait_for("approved", timeout=timedelta(days=7))
        parts = ctx.gather(ctx.call("work"), ctx.call("plain"))
        return [first, approved, *parts]

    app.handler("work", pull="gpu")(lambda: noted("work"))
    app.handler("plain")(lambda: noted("plain"))
    with Simulation(app, replay=replay) as sim:
        sim.add_worker("gpu")
        sim.add_worker("gpu", "cuda")
        offer(sim, "a", handler="long")
        sim.advance(timedelta(days=46))
        app.send_event("a", "approved", {"by": "grace"})
        sim.advance(timedelta(days=1))
        (record,) = sim.executions("a")
        assert record.content == ["first", {"by": "grace"}, "work", "plain"]
        assert sorted(done) == ["first", "plain", "work"]


def test_what_work_costs(sim: Simulation) -> None:
    """To be offered, and to be fetched: a read and a commit of one. To be ended elsewhere: a read and one of two."""
    offer(sim, "a")
    before = sim.counts.copy()
    sim.advance(MINUTE)
    offered = sim.counts.since(before)
    assert (offered.reads, offered.commits, offered.writes, offered.dispatches) == (1, 1, 1, 0)
    before = sim.counts.copy()
    found = require_claim(sim)
    fetched = sim.counts.since(before)
    assert (fetched.reads, fetched.commits, fetched.writes, fetched.dispatches) == (1, 1, 1, 0)
    before = sim.counts.copy()
    sim.app.worker_claims.finish_by_token(*claim_keys(found), DONE)
    ended = sim.counts.since(before)
    assert (ended.reads, ended.commits, ended.writes, ended.dispatches) == (1, 1, 2, 0)


def test_the_log_has_each_offer_and_each_claim(sim: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    """One line with the queue key for each offer, and one with the worker's name for each claim."""
    caplog.set_level("INFO", "cloudsched.events")
    offer(sim, "a")
    sim.advance(MINUTE)
    sim.app.worker_claims.release_by_token(*claim_keys(require_claim(sim)), "no")
    sim.app.update("a", title="b")
    sim.app.worker_claims.finish_by_token(*claim_keys(require_claim(sim)), DONE)
    lines = [line for line in caplog.records if line.name == "cloudsched.events"]
    logged = [(getattr(line, "action", ""), getattr(line, "queueKey", None)) for line in lines]
    expected = [
        "created",
        "queued_for_worker",
        "started",
        "queued_for_worker",
        "retrying",
        "edited",
        "started",
        "completed",
        "succeeded",
    ]
    assert [action for action, _ in logged] == expected
    assert [key for _, key in logged if key] == ["gpu", "gpu"]
    assert [line.worker for line in lines if hasattr(line, "worker")] == ["worker", "worker"]
