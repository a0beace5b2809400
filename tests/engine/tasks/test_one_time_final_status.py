"""What a one-time task ends as, whatever else happened to it."""

from __future__ import annotations

from datetime import timedelta

from cloudsched import App, Context, Schedule, Settings
from cloudsched.errors import StoreUnavailable
from cloudsched.testing import START, Simulation

IN_A_MINUTE = Schedule.once(START + timedelta(minutes=1))


def test_a_manual_run_does_not_decide_the_final_status() -> None:
    """The scheduled run failed, so the task has FAILED, although a run by hand that ended later succeeded."""
    app = App(Settings())
    with Simulation(app) as sim:

        @app.handler("work", retry=False)
        def work(ctx: Context) -> None:
            if "manual" not in ctx.execution_id:
                app.trigger(ctx.task.id)
                raise ValueError("no")

        task = app.create(owner="ada", title="Work", handler="work", schedule=IN_A_MINUTE)
        sim.advance(timedelta(hours=1))
        assert [e.status for e in sim.executions(task.id)] == ["FAILED", "SUCCEEDED"]
        assert app.get(task.id).status == "FAILED"


def test_a_run_that_failed_while_its_task_was_paused_is_remembered() -> None:
    """Resumed, with nothing left to do, the task has FAILED, and is not called COMPLETED."""
    app = App(Settings())
    with Simulation(app) as sim:

        @app.handler("work", retry=False)
        def work(ctx: Context) -> None:
            app.pause(ctx.task.id)
            raise ValueError("no")

        task = app.create(owner="ada", title="Work", handler="work", schedule=IN_A_MINUTE)
        sim.advance(timedelta(hours=1))
        assert app.resume(task.id).status == "FAILED"


def test_a_late_duplicate_creation_does_not_rerun_a_finished_task() -> None:
    """Without a schedule of its own, it changes nothing; with a new one, the task begins again."""
    app = App(Settings())
    app.handler("work")(lambda: None)
    with Simulation(app) as sim:
        for _ in range(2):
            app.create(id="mine", owner="ada", title="Work", handler="work")
            sim.advance(timedelta(hours=1))
        assert len(sim.executions("mine")) == 1
        app.create(id="mine", owner="ada", title="Work", handler="work", schedule=sim.now + timedelta(hours=1))
        sim.advance(timedelta(hours=2))
        assert len(sim.executions("mine")) == 2


def test_a_store_that_blinks_while_a_handler_reports_does_not_fail_it() -> None:
    """The lease still stands, so the handler goes on; what it said is kept with its end."""
    app = App(Settings())
    with Simulation(app) as sim:

        @app.handler("work")
        def work(ctx: Context) -> None:
            commit = app.store.commit
            app.store.commit = blink  # type: ignore[assignment, method-assign]
            ctx.progress("half way")
            app.store.commit = commit  # type: ignore[method-assign]

        def blink(*_arguments: object, **_named: object) -> None:
            raise StoreUnavailable("The store", "it blinked")

        task = app.create(owner="ada", title="Work", handler="work", schedule=IN_A_MINUTE)
        sim.advance(timedelta(hours=1))
        (execution,) = sim.executions(task.id)
        assert execution.status == "SUCCEEDED"
        assert [step.text for step in execution.progress] == ["half way"]
