"""Budgets under moved time: what the sweep enforces in production, `advance` enforces in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from tests.engine.harness import HOUR, MINUTE
from tests.engine.usage.harness import put_budget

from cloudsched import App, Context, Settings
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.testing import Simulation


@pytest.fixture
def sim() -> Iterator[Simulation]:
    app = App(Settings())

    @app.handler("spend")
    def spend(ctx: Context) -> None:
        ctx.used(queries=10)

    with Simulation(app) as simulation:
        yield simulation


def create(sim: Simulation, rule: str = "FREQ=HOURLY", owner: str = "ada") -> str:
    schedule = {"rrule": rule, "dtstart": "2027-01-01T00:00:00", "timezone": "UTC"}
    return sim.app.create(owner=owner, handler="spend", schedule=schedule).id


def limit(sim: Simulation, queries: int, owner: str = "ada") -> None:
    put_budget(sim, queries, owner=owner)


def advance_in_small_steps(sim: Simulation) -> None:
    for _ in range(200):
        sim.advance(7 * MINUTE)


MOVES: tuple[Callable[[Simulation], object], ...] = (
    lambda sim: sim.advance(24 * HOUR),
    lambda sim: sim.advance_to(datetime(2027, 1, 2, tzinfo=UTC)),
    lambda sim: sim.run_until_idle(24 * HOUR),
    advance_in_small_steps,
)


@pytest.mark.parametrize("move", MOVES, ids=["advance", "advance_to", "run_until_idle", "small-steps"])
def test_a_task_pauses_at_its_owners_budget(sim: Simulation, move: Callable[[Simulation], None]) -> None:
    """However the clock is moved, the fifth execution is the last, and the task says why; others go on."""
    mine, other = create(sim), create(sim, owner="bob")
    limit(sim, 50)
    move(sim)
    task = sim.app.get(mine)
    assert task.status is TaskStatus.PAUSED
    assert "used up its budget (50 of 50 queries of 2027-01)" in task.message
    assert len(sim.executions(mine)) == 5
    assert sim.app.get(other).status is TaskStatus.ACTIVE
    assert len(sim.executions(other)) > 20


def test_the_next_month_resumes_it(sim: Simulation) -> None:
    """One move over the end of a month: paused in it, resumed at its end, and paused again."""
    task_id = create(sim, "FREQ=DAILY;BYHOUR=6")
    limit(sim, 50)
    sim.advance_to(datetime(2027, 1, 31, 23, 59, tzinfo=UTC))
    assert sim.app.get(task_id).status is TaskStatus.PAUSED
    sim.advance_to(datetime(2027, 2, 3, 12, tzinfo=UTC))
    assert sim.app.get(task_id).status is TaskStatus.ACTIVE
    sim.advance_to(datetime(2027, 2, 20, tzinfo=UTC))
    assert sim.app.get(task_id).status is TaskStatus.PAUSED
    ran = [each.scheduled_for for each in sim.executions(task_id) if each.status == "SUCCEEDED"]
    assert sum(at.month == 1 for at in ran) == 6, "the latest that was missed in January runs late, in February"
    assert sum(at.month == 2 for at in ran) == 4
