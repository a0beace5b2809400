"""The final status of a one-time task."""

from __future__ import annotations

from datetime import timedelta

from cloudsched import App, Context, Schedule
from cloudsched.errors import StoreUnavailable
from cloudsched.testing import START, Simulation

IN_A_MINUTE = Schedule.once(START + timedelta(minutes=1))


def test_a_manual_run_does_not_decide_the_final_status(app: App, sim: Simulation) -> None:
    """If the scheduled run failed, the task is FAILED, even though a manual run succeeded later."""

    @app.handler("work", retry=False)
    def work(ctx: Context) -> None:
        if "manual" not in ctx.execution_id:
            app.trigger(ctx.task.id)
            raise ValueError("no")

    task = app.create(owner="ada", title="Work", handler="work", schedule=IN_A_MINUTE)
    sim.advance(timedelta(hours=1))
    assert [e.status for e in sim.executions(task.id)] == ["FAILED", "SUCCEEDED"]
    assert app.get(task.id).status == "FAILED"


def test_a_failure_while_the_task_was_paused_decides_its_status(app: App, sim: Simulation) -> None:
    """When the task is resumed with nothing left to run, it is FAILED and not COMPLETED."""

    @app.handler("work", retry=False)
    def work(ctx: Context) -> None:
        app.pause(ctx.task.id)
        raise ValueError("no")

    task = app.create(owner="ada", title="Work", handler="work", schedule=IN_A_MINUTE)
    sim.advance(timedelta(hours=1))
    assert app.resume(task.id).status == "FAILED"


def test_a_short_store_outage_while_a_handler_reports_progress_does_not_fail_it(app: App, sim: Simulation) -> None:
    """The lease is still valid, so the handler continues; its progress is stored with its result."""

    @app.handler("work")
    def work(ctx: Context) -> None:
        commit = app.container.store.commit
        app.container.store.commit = fail  # type: ignore[assignment, method-assign]
        ctx.progress("half way")
        app.container.store.commit = commit  # type: ignore[method-assign]

    def fail(*_arguments: object, **_named: object) -> None:
        raise StoreUnavailable("The store", "a short outage")

    task = app.create(owner="ada", title="Work", handler="work", schedule=IN_A_MINUTE)
    sim.advance(timedelta(hours=1))
    (execution,) = sim.executions(task.id)
    assert execution.status == "SUCCEEDED"
    assert [step.text for step in execution.progress] == ["half way"]
