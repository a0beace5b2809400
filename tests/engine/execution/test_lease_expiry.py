"""A lease ends at the time its holder was given; after that it is not renewed, as the next holder may have started."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from cloudsched import App, Context, RetryPolicy, Schedule

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.testing import Simulation


def test_a_heartbeat_after_the_lease_ended_is_refused_once_the_lock_is_taken(app: App, sim: Simulation) -> None:
    """The late heartbeat returns False, even though nobody has taken over the run itself."""
    heard: list[bool] = []
    began: list[str] = []

    @app.handler("slow", retry=RetryPolicy(max_retries=0), expected_duration=timedelta(seconds=40))
    def slow(ctx: Context) -> None:
        began.append(ctx.task.id)
        if ctx.task.id == "first":
            sim.clock.advance(timedelta(seconds=50))
            sim.queue.deliver_due()
            heard.append(ctx.heartbeat())

    for number, name in enumerate(("first", "second")):
        at = Schedule.once(sim.now + timedelta(seconds=60 + 45 * number))
        app.create(id=name, owner="ada", title=name, handler="slow", schedule=at, lock_key="door")
    sim.advance(timedelta(minutes=10))
    assert began == ["first", "second"]
    assert heard == [False]


@pytest.mark.parametrize(
    "renewal", [lambda ctx: ctx.heartbeat(), lambda ctx: ctx.step("one", int)], ids=["own", "step"]
)
def test_a_renewal_never_shortens_a_lease(app: App, sim: Simulation, renewal: Callable[[Context], object]) -> None:
    """A shorter expected duration takes effect with the next lease; the current one keeps its end."""
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

    app.create(id="it", owner="ada", title="It", handler="slow", schedule=Schedule.once(sim.now))
    sim.advance(timedelta(0))
    assert seen[0] == seen[1]
    assert sim.executions("it")[0].status == "SUCCEEDED"
