"""A task of a worker that changes between two reads of the same worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.engine.harness import HOUR, MINUTE
from tests.features.pull.harness import claim, claims_of, offer, require_claim, statuses

from cloudsched import App, Context
from cloudsched.domain.transitions.commit import VersionedTask
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.features.locks.lock import VersionedLock
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.testing import Simulation


@pytest.mark.parametrize(
    "change", [{"pull": "press"}, {"pull": {"queue": "gpu", "skill": "cuda"}}, {"handler": "other"}], ids=str
)
def test_a_task_that_moves_to_other_workers_during_a_poll_is_not_claimed(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """After a lost race the worker checks again whether it may run the task as it is now."""
    offer(sim, "a")
    sim.advance(MINUTE)
    ask = sim.app.container.store.load_many

    def ask_and_edit(*args: Any, **more: Any) -> Sequence[VersionedTask]:
        found = ask(*args, **more)
        sim.app.update("a", **change)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(sim.app.container.store, "load_many", ask_and_edit)
        assert claim(sim, handlers={"work"}) is None
    pull = sim.app.get("a").pull
    assert pull
    assert PullWiring.of(sim.app.container).work_queue.claim(
        WorkerFilter(pull.queue, (pull.skill,) if pull.skill else ()), THIS_PROCESS
    )


def test_a_heartbeat_that_races_a_step_does_not_undo_it(
    sim: Simulation, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that renews the lease reads the task before a step is recorded, and writes after that."""
    done: list[str] = []
    kept: list[int] = []

    def run_first_step(ctx: Context) -> None:
        ctx.step("first", lambda: done.append("first"))

    def run_first_step_beside_heartbeat(ctx: Context) -> None:
        ask = app.container.store.locks.load

        def load(key: str) -> VersionedLock:
            monkeypatch.setattr(app.container.store.locks, "load", ask)
            run_first_step(ctx)
            found: VersionedLock = ask(key)
            return found

        monkeypatch.setattr(app.container.store.locks, "load", load)
        assert attempts
        attempts.renew(())
        kept.append(app.get("a").runs[0].steps)

    @app.handler("long", pull="gpu")
    def long(ctx: Context) -> str:
        (run_first_step if done else run_first_step_beside_heartbeat)(ctx)
        ctx.sleep(MINUTE)
        return "done"

    offer(sim, "a", handler="long", lock_key="door")
    sim.advance(MINUTE)
    found = require_claim(sim)
    attempts = claims_of(sim).start(found)
    assert attempts
    claims_of(sim).finish(attempts, run_procedure(app.container.executor.call(attempts)))
    assert kept == [1]
    sim.add_worker("gpu")
    sim.advance(2 * MINUTE)
    assert statuses(sim, "a") == ["SUCCEEDED"]
    assert done == ["first"]


def test_a_worker_that_continues_after_its_release_changes_no_result(app: App, sim: Simulation) -> None:
    """It was stopped in a step that the next worker has since finished; both results are large."""
    seen: list[str] = []
    calls = iter(("first", "second"))

    def find() -> str:
        name = next(calls)
        if name == "first":
            assert claims_of(sim).release(attempts[0], "Its worker was stopped.")
            attempts.append(start_attempt())
            claims_of(sim).finish(attempts[1], run_procedure(app.container.executor.call(attempts[1])))
        return name + "x" * 20_000

    @app.handler("search", pull="gpu")
    def search(ctx: Context) -> None:
        seen.append(ctx.step("find", find)[:6])
        ctx.sleep(HOUR)
        seen.append(ctx.step("use", lambda: seen[-1]))

    def start_attempt() -> Attempt:
        started = claims_of(sim).start(require_claim(sim))
        assert started
        return started

    offer(sim, "a", handler="search")
    sim.advance(MINUTE)
    attempts = [start_attempt()]
    claims_of(sim).finish(attempts[0], run_procedure(app.container.executor.call(attempts[0])))
    assert seen == ["second"]
    sim.advance(HOUR)
    attempts.append(start_attempt())
    claims_of(sim).finish(attempts[2], run_procedure(app.container.executor.call(attempts[2])))
    assert statuses(sim, "a") == ["SUCCEEDED"]
    assert seen == ["second"] * 3
