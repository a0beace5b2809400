"""Work that is fetched, when somebody else changes it between two looks of the same worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.pull.harness import HOUR, MINUTE, claim, offer, require_claim, statuses, work_app

from cloudsched import App, Context, Settings
from cloudsched.engine.pull.offers import WorkerFilter
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.engine.execution.attempts import StartedAttempt
    from cloudsched.engine.ports.store import VersionedLock, VersionedTask


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """A simulation of an app with work for the queue ``gpu``, without a worker yet."""
    app, _ = work_app()
    with Simulation(app) as opened:
        yield opened


@pytest.mark.parametrize(
    "change", [{"pull": "press"}, {"pull": {"queue": "gpu", "skill": "cuda"}}, {"handler": "other"}], ids=str
)
def test_what_becomes_anothers_while_a_worker_looks_is_not_claimed(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """A worker that has lost a race looks again whether it may run what is there now."""
    offer(sim, "a")
    sim.advance(MINUTE)
    ask = sim.app.store.list_claimable

    def late(*args: Any, **more: Any) -> Sequence[VersionedTask]:
        found = ask(*args, **more)
        sim.app.update("a", **change)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(sim.app.store, "list_claimable", late)
        assert claim(sim, handlers={"work"}) is None
    pull = sim.app.get("a").pull
    assert pull
    assert sim.app.worker_claims.claim(WorkerFilter(pull.queue, (pull.skill,) if pull.skill else ()))


def test_a_heartbeat_beside_a_step_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's thread that renews a lease has read the task before a step was recorded, and writes after it."""
    app = App(Settings())
    done: list[str] = []
    kept: list[int] = []

    def first_step(ctx: Context) -> None:
        ctx.step("first", lambda: done.append("first"))

    def first_step_beside_a_heartbeat(ctx: Context) -> None:
        ask = app.store.load_lock

        def load_lock(key: str) -> VersionedLock:
            monkeypatch.setattr(app.store, "load_lock", ask)
            first_step(ctx)
            return ask(key)

        monkeypatch.setattr(app.store, "load_lock", load_lock)
        assert begun
        begun.claimed_run.renew(())
        kept.append(app.get("a").runs[0].steps)

    @app.handler("long", pull="gpu")
    def long(ctx: Context) -> str:
        (first_step if done else first_step_beside_a_heartbeat)(ctx)
        ctx.sleep(MINUTE)
        return "done"

    with Simulation(app) as sim:
        offer(sim, "a", handler="long", lock_key="door")
        sim.advance(MINUTE)
        found = require_claim(sim)
        begun = app.worker_claims.start(found)
        assert begun
        app.worker_claims.finish(begun, app.worker_claims.invoke_handler(begun))
        assert kept == [1]
        sim.add_worker("gpu")
        sim.advance(2 * MINUTE)
        assert statuses(sim, "a") == ["SUCCEEDED"]
        assert done == ["first"]


def test_a_worker_that_goes_on_after_it_gave_back_changes_no_result() -> None:
    """It was stopped within a step, and the next worker has done that step meanwhile: a large result of each."""
    app = App(Settings())
    seen: list[str] = []
    calls = iter(("first", "second"))

    def find() -> str:
        name = next(calls)
        if name == "first":
            assert app.worker_claims.release(begun[0], "Its worker was stopped.")
            begun.append(began())
            app.worker_claims.finish(begun[1], app.worker_claims.invoke_handler(begun[1]))
        return name + "x" * 20_000

    @app.handler("work", pull="gpu")
    def work(ctx: Context) -> None:
        seen.append(ctx.step("find", find)[:6])
        ctx.sleep(HOUR)
        seen.append(ctx.step("use", lambda: seen[-1]))

    def began() -> StartedAttempt:
        started = app.worker_claims.start(require_claim(sim))
        assert started
        return started

    with Simulation(app) as sim:
        offer(sim, "a")
        sim.advance(MINUTE)
        begun = [began()]
        app.worker_claims.finish(begun[0], app.worker_claims.invoke_handler(begun[0]))
        assert seen == ["second"]
        sim.advance(HOUR)
        begun.append(began())
        app.worker_claims.finish(begun[2], app.worker_claims.invoke_handler(begun[2]))
        assert statuses(sim, "a") == ["SUCCEEDED"]
    assert seen == ["second"] * 3
