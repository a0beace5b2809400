"""Tasks of workers combined with locks, durable handlers and the event log, and their operations."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, only_run
from tests.features.pull.harness import claim, claim_keys, claims_of, finish, offer, require_claim, statuses

from cloudsched import App, Context, Settings
from cloudsched.features.pull.fields import Pull
from cloudsched.testing import Simulation


def test_a_lost_notification_of_a_grant_is_sent_again(sim: Simulation) -> None:
    """If the queue loses the dispatch that notifies the next waiter, the sweep sends it again."""
    for name in ("a", "b"):
        offer(sim, name, lock_key="press")
    sim.advance(MINUTE)
    first = require_claim(sim)
    assert claim(sim) is None
    finish(sim, first)
    sim.queue.purge()
    assert claim(sim) is None
    sim.advance(5 * MINUTE)
    assert require_claim(sim).task.id == "b"


def test_a_run_is_not_offered_while_its_lock_is_taken(sim: Simulation) -> None:
    """The sweep looks whether its grant was lost, and leaves it in the lock's line; but it expires there in time."""
    for name, fields in (("a", {}), ("b", {}), ("c", {"expiration": HOUR})):
        offer(sim, name, lock_key="press", **fields)
    sim.advance(MINUTE)
    first = require_claim(sim)
    assert claim(sim) is None
    offers = set[tuple[str, bool]]()
    for _ in range(60):
        claims_of(sim).heartbeat(*claim_keys(first))
        sim.advance(4 * MINUTE)
        offers |= {(name, sim.app.get(name).offer is not None) for name in "bc"}
    assert offers == {("b", False), ("c", False)}
    assert statuses(sim, "c") == ["EXPIRED"]
    finish(sim, first)
    sim.advance(SECOND)
    assert require_claim(sim).task.id == "b"


@pytest.mark.parametrize("replay", [False, True])
def test_a_durable_handler_continues_on_another_worker(replay: bool) -> None:  # noqa: FBT001 - a parameter
    """It sleeps without a worker, calls handlers of workers and of the executor, and runs each step once."""
    app = App(Settings())
    done: list[str] = []

    def note(what: str) -> str:
        done.append(what)
        return what

    @app.handler("long", pull=Pull(queue="gpu", skill="cuda"))
    def long(ctx: Context) -> list[Any]:
        first = ctx.step("first", note, "first")
        ctx.sleep(45 * DAY)
        approved = ctx.wait_for("approved", timeout=7 * DAY)
        parts = ctx.gather(ctx.call("work"), ctx.call("plain"))
        return [first, approved, *parts]

    app.handler("work", pull="gpu")(lambda: note("work"))
    app.handler("plain")(lambda: note("plain"))
    with Simulation(app, replay=replay) as sim:
        sim.add_worker("gpu")
        sim.add_worker("gpu", "cuda")
        offer(sim, "a", handler="long")
        sim.advance(46 * DAY)
        app.send_event("a", "approved", {"by": "grace"})
        sim.advance(DAY)
        record = only_run(sim, "a")
        assert record.content == ["first", {"by": "grace"}, "work", "plain"]
        assert sorted(done) == ["first", "plain", "work"]
