"""A call is resolved by the run that its parent requested, and by no other run of the same task."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, Create, register_work_handler, run_to_end

from cloudsched import App, Context, Task
from cloudsched.errors import CallFailed
from cloudsched.testing import Simulation


def call_id(app: App, parent: Task) -> str:
    (branch,) = app.tree(parent.id).children
    return branch.task.id


def register_parent(app: App, **fields: Any) -> None:
    """Let the handler make one call, and return the result that it got."""

    def call(ctx: Context) -> Any:  # noqa: ANN401 - whatever comes of it
        try:
            return ctx.call("c", {}, **fields).result()
        except CallFailed as failure:
            return [failure.status, failure.message]

    register_work_handler(app, call)


@pytest.mark.parametrize("days", [0, 3])
def test_a_manual_run_does_not_resolve_a_call(app: App, sim: Simulation, create: Create, days: int) -> None:
    """It fails, before the call's own run has succeeded or after that."""

    @app.handler("c", retry=False)
    def c(ctx: Context) -> str:
        if ctx.execution_id.endswith("manual"):
            ctx.sleep(days * DAY)
            raise ConnectionError("no line")
        ctx.sleep(DAY)
        return "call"

    register_parent(app)
    parent = create()
    sim.advance(MINUTE)
    app.trigger(call_id(app, parent))
    execution = run_to_end(sim, parent, 366 * DAY)
    assert execution.content == "call"


def test_a_manual_retry_resolves_a_failed_call(app: App, sim: Simulation, create: Create) -> None:
    """The retry of the call's own run continues under the same id; a manual run beside it changes nothing."""
    fails = [True, True]

    @app.handler("c", retry=False)
    def c(ctx: Context) -> str:
        ctx.sleep(DAY)
        if fails:
            fails.pop()
            raise ConnectionError("no line")
        return "manual" if ctx.execution_id.endswith("manual") else "retried"

    def call(ctx: Context) -> Any:  # noqa: ANN401 - whatever comes of it
        handle = ctx.call("c", {})
        ctx.wait_for("go")
        return handle.result()

    register_work_handler(app, call)
    parent = create()
    sim.advance(MINUTE)
    task_id = call_id(app, parent)
    app.trigger(task_id)
    sim.advance(2 * DAY)
    assert app.get(task_id).status == "FAILED"
    own = next(each.id for each in sim.executions(task_id) if not each.id.endswith("manual"))
    app.retry(task_id, own)
    app.trigger(task_id)
    sim.advance(2 * DAY)
    app.send_event(parent.id, "go")
    execution = run_to_end(sim, parent)
    assert execution.content == "retried"
