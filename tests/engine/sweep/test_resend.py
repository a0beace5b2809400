"""A queue that has lost its content is filled again from the store, and no task is edited for it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE

from cloudsched import App, Context, Schedule, Settings
from cloudsched.testing import Simulation


@pytest.fixture
def run_ids() -> list[str]:
    return []


@pytest.fixture
def app(run_ids: list[str], monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setattr("cloudsched.engine.sweep.sweeper.PAGE_SIZE", 3)
    app = App(Settings())

    @app.handler("work")
    def work(ctx: Context) -> None:
        run_ids.append(ctx.task.id)

    return app


def create(sim: Simulation, task_id: str, due_in: timedelta) -> None:
    at = Schedule.once(sim.now + due_in)
    sim.app.create(id=task_id, handler="work", schedule=at)


def test_dispatches_due_by_the_given_time_are_sent_again_without_an_edit(sim: Simulation, run_ids: list[str]) -> None:
    """It reads several pages; later, paused and cancelled tasks are not sent, and revisions do not change."""
    for n in range(8):
        create(sim, f"soon-{n}", timedelta(minutes=n + 1))
    create(sim, "later", DAY)
    create(sim, "paused", MINUTE)
    create(sim, "cancelled", MINUTE)
    sim.app.pause("paused")
    sim.app.cancel("cancelled")
    before = {task.id: task for task in sim.app.tasks().items}
    sim.queue.purge()
    assert sim.app.container.sweeper.resend(sim.now + HOUR) == 8
    assert {task.id: task for task in sim.app.tasks().items} == before
    sim.advance(10 * MINUTE)
    assert run_ids == [f"soon-{n}" for n in range(8)]


def test_sending_again_duplicates_nothing(sim: Simulation, run_ids: list[str]) -> None:
    """The queue has those dispatches already, so each task runs once however often they are sent."""
    create(sim, "soon", MINUTE)
    for _ in range(3):
        sim.app.container.sweeper.resend(sim.now + DAY)
    sim.advance(2 * MINUTE)
    sim.app.container.sweeper.resend(sim.now + DAY)
    sim.advance(2 * MINUTE)
    assert run_ids == ["soon"]
