"""What an attempt had in its variables is freed when it ends, however it ends, and needs no search for garbage."""

from __future__ import annotations

import pytest
from tests import held_frames
from tests.engine.harness import SECOND
from tests.held_frames import DURABLE, HOUR, PLAIN

from cloudsched import App, Context, Schedule
from cloudsched.testing import Simulation


@pytest.mark.parametrize("name", [*PLAIN, *DURABLE])
def test_an_attempt_that_has_ended_holds_nothing(name: str) -> None:
    """Failed, suspended, cancelled or put off: nothing that it had is in memory any more."""
    app = App()
    held_frames.register(app, PLAIN | DURABLE)
    with Simulation(app) as sim, held_frames.watch():
        app.create(id="t", handler=name, schedule=Schedule.once(sim.now))
        sim.advance(SECOND)
        assert held_frames.count_made(), "it has run"
        assert held_frames.count_held() == 0


def test_an_attempt_that_took_too_long_or_was_cancelled_holds_nothing(app: App) -> None:
    """Its result is dropped, and what it raises then is, too."""

    def work(ctx: Context) -> None:
        held = held_frames.hold()
        if ctx.task.id == "late":
            sim.advance(2 * HOUR)
        else:
            app.cancel(ctx.task.id)
        ctx.step("one", lambda: str(held))

    app.handler("work", expected_duration=HOUR, retry=False)(work)
    with Simulation(app) as sim, held_frames.watch():
        for task_id in ("late", "cancelled"):
            app.create(id=task_id, handler="work", schedule=Schedule.once(sim.now))
        sim.advance(SECOND)
        assert held_frames.count_made() == 2
        assert held_frames.count_held() == 0
