"""A lease ends when its holder was told, not before; then it is not renewed, since somebody else may have begun."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from cloudsched import App, Context, RetryPolicy, Schedule, Settings
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


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


@pytest.mark.parametrize(
    "renewal", [lambda ctx: ctx.heartbeat(), lambda ctx: ctx.step("one", int)], ids=["own", "step"]
)
def test_a_renewal_takes_back_nothing_of_a_lease(renewal: Callable[[Context], object]) -> None:
    """A task that is edited to allow less has its effect at the next lease: this one lasts as long as was said."""
    app = App(Settings())
    seen: list[datetime] = []

    def until() -> datetime:
        (run,) = app.get("it").runs
        assert run.lease
        return run.lease.until

    @app.handler("slow", expected_duration=timedelta(hours=1))
    def slow(ctx: Context) -> None:
        seen.append(until())
        app.patch("it", {"expectedDuration": 1})
        sim.clock.advance(timedelta(minutes=1))
        renewal(ctx)
        seen.append(until())

    with Simulation(app) as sim:
        app.create(id="it", owner="ada", title="It", handler="slow", schedule=Schedule.once(sim.now))
        sim.advance(timedelta(0))
        assert seen[0] == seen[1]
        assert sim.executions("it")[0].status == "SUCCEEDED"
