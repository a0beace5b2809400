"""A durable handler goes the same way on every store."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from cloudsched import App, Context, Schedule, Settings
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from cloudsched.engine.ports.store import Store


def test_a_workflow_of_every_kind_of_step_ends_the_same_on_every_store(store: Store) -> None:
    """Steps, calls, a sleep of forty days and an event; then its journal is in its record, and nowhere else."""
    app = App(Settings())

    @app.handler("double")
    def double(payload: dict[str, int]) -> int:
        return 2 * payload["n"]

    @app.handler("work")
    def work(ctx: Context) -> dict[str, Any]:
        nested = ctx.step("nested", lambda: [[1, [2.5]], {"a": None}])
        doubled = ctx.gather(*[ctx.call("double", {"n": n}) for n in range(5)])
        ctx.sleep(timedelta(days=40))
        return {"nested": nested, "doubled": doubled, "by": ctx.wait_for("approved").by, "at": ctx.now().isoformat()}

    with Simulation(app, store=store) as sim:
        task = app.create(owner="ada", title="W", handler="work", schedule=Schedule.once(START))
        sim.advance(timedelta(days=41))
        (execution,) = sim.executions(task.id)
        assert execution.status == "SUSPENDED"
        assert len(app.execution(task.id, execution.id).steps) == 8
        app.send_event(task.id, "approved", {"by": "grace"})
        sim.advance(timedelta(minutes=1))
        (execution,) = sim.executions(task.id)
        assert execution.status == "SUCCEEDED", execution.error
        assert execution.content == {
            "nested": [[1, [2.5]], {"a": None}],
            "doubled": [0, 2, 4, 6, 8],
            "by": "grace",
            "at": (START + timedelta(days=41)).isoformat(),
        }
        assert len(execution.steps) == 9
        assert list(store.load_journal(task.id, execution.id)) == []
        assert [branch.task.status for branch in app.tree(task.id).children] == ["COMPLETED"] * 5
