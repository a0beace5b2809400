"""If more tasks are overdue than one sweep examines, later sweeps reach every task."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.harness import HOUR, MINUTE, SECOND
from tests.features.pull.harness import claim_lock_holder

from cloudsched import App, Context, Schedule, Settings
from cloudsched.testing import Simulation

LIMIT = 20
"""How many tasks one sweep examines in these tests."""


@pytest.fixture
def run_ids() -> list[str]:
    return []


@pytest.fixture
def app(run_ids: list[str], monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setattr("cloudsched.engine.sweep.sweeper.MAX_EXAMINED", LIMIT)
    monkeypatch.setattr("cloudsched.engine.sweep.sweeper.PAGE_SIZE", 5)
    app = App(Settings())

    @app.handler("work")
    def work(ctx: Context) -> None:
        run_ids.append(ctx.task.id)

    return app


def make(sim: Simulation, task_id: str, **more: Any) -> None:
    sim.app.create(id=task_id, handler="work", schedule=Schedule.once(sim.now), **more)


@pytest.mark.parametrize("waiting", [19, 20, 25, 70])
def test_tasks_waiting_for_a_lock_do_not_hide_others_from_the_sweep(
    sim: Simulation, run_ids: list[str], waiting: int
) -> None:
    """`waiting` tasks wait for hours; a task behind them whose dispatch was lost runs within the sweeps needed."""
    claim_lock_holder(sim)
    for n in range(waiting):
        make(sim, f"waits-{n}", lock_key="k")
    sim.advance(SECOND)
    for _ in range(3):
        sim.advance(10 * MINUTE)
        make(sim, f"lost-{len(run_ids)}")
        sim.queue.purge()
        sim.advance((waiting // LIMIT + 2) * MINUTE)
    assert run_ids == ["lost-0", "lost-1", "lost-2"]


def test_the_sweep_starts_again_from_the_first_task(sim: Simulation, run_ids: list[str]) -> None:
    """All dispatches are lost, more than one sweep examines, and after its retries they are lost again."""
    for n in range(3 * LIMIT + 3):
        make(sim, f"{n}")
    for _ in range(2):
        sim.queue.purge()
        sim.clock.advance(MINUTE)
        sim.app.sweep()
    sim.queue.purge()
    sim.advance(HOUR)
    assert len(run_ids) == 3 * LIMIT + 3
