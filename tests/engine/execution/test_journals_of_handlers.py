"""Which runs have a journal: those of handlers whose code can get the context, which alone records anything."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cloudsched import App, Context, Schedule
from cloudsched.testing import Simulation

AT = datetime(2027, 6, 1, 9, tzinfo=UTC)


def test_a_handler_that_loses_its_context_still_replays_what_was_recorded() -> None:
    """The journal tells that the code has changed while the run slept; without it the handler would just succeed."""
    before, after = App(), App()

    @before.handler("h")
    def sleeper(ctx: Context) -> str:
        ctx.sleep(timedelta(hours=1))
        return "slept"

    after.handler("h")(lambda: "did not sleep")
    with Simulation(before, start=AT) as sim:
        task = before.create(owner="ada", title="T", handler="h", schedule=Schedule.once(AT + timedelta(minutes=1)))
        sim.advance(timedelta(minutes=2))
        before.container.registry.replace_handlers(after.container.registry)
        sim.advance(timedelta(hours=2))
        execution = sim.executions(task.id)[0]
    assert execution.status == "FAILED"
    assert execution.error is not None
    assert execution.error.type == "JournalMismatch"
