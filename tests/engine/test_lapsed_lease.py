"""A lease that has ended is not renewed: somebody else may have begun by then."""

from __future__ import annotations

from datetime import timedelta

from cloudsched import App, Context, RetryPolicy, Schedule, Settings
from cloudsched.testing import Simulation


def test_a_run_whose_lease_has_ended_cannot_go_on_beside_the_next_holder_of_its_lock() -> None:
    """A heartbeat that comes too late says so, even where nobody has taken over the run itself."""
    app = App(Settings())
    heard: list[bool] = []
    began: list[str] = []

    @app.handler("slow", retry=RetryPolicy(max_retries=0), expected_duration=timedelta(seconds=40))
    def slow(ctx: Context) -> None:
        began.append(ctx.task.id)
        if ctx.task.id == "first":
            sim.clock.advance(timedelta(seconds=50))
            sim.queue.deliver_due()
            heard.append(ctx.heartbeat())

    with Simulation(app) as sim:
        for number, name in enumerate(("first", "second")):
            at = Schedule.once(sim.now + timedelta(seconds=60 + 45 * number))
            app.create(id=name, owner="ada", title=name, handler="slow", schedule=at, lock_key="door")
        sim.advance(timedelta(minutes=10))
    assert began == ["first", "second"]
    assert heard == [False]
