"""A cancel that comes while a handler makes calls."""

from __future__ import annotations

from tests.engine.harness import elsewhere

from cloudsched import App, Context, Schedule
from cloudsched.testing import Simulation


def test_a_cancel_is_complete_at_once_although_its_handler_runs(app: App, sim: Simulation) -> None:
    """It cancels the calls that were made. No other is made, although the lease has not ended."""
    app.handler("child")(lambda: None)
    made = list[str]()

    @app.handler("parent")
    def parent(ctx: Context) -> None:
        ctx.call("child")
        ctx.step("cancel", elsewhere, app.cancel, "t")
        made.append("a step after the cancel")
        ctx.call("child")
        ctx.step("more", made.append, "more")

    app.create(id="t", handler="parent", schedule=Schedule.once(sim.now))
    sim.queue.deliver_due()
    stored = app.container.store.load("t")
    assert stored is not None
    assert (stored.task.status, stored.task.deferred) == ("CANCELLED", False)
    assert not made
    assert [each.task.status for each in app.tree("t").children] == ["CANCELLED"]
