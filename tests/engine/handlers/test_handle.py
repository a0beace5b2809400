"""The handle of a handler: `create` and `run_now` of the decorated function, and calls by the function."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import BaseModel
from tests.engine.harness import DAY, HOUR, only_run

from cloudsched import App, AsyncContext, Context, Schedule
from cloudsched.domain.documents.task import MAX_OPEN_RUNS
from cloudsched.errors import InvalidInput, NotAllowed
from cloudsched.testing import Simulation


class Reminder(BaseModel):
    text: str


def test_create_makes_the_task_that_the_app_makes() -> None:
    """The handle's `create` is `app.create` with the handler filled in."""
    app = App()

    @app.handler("remind")
    def remind(reminder: Reminder) -> str:
        return reminder.text

    with Simulation(app) as sim:
        task = remind.create(payload=Reminder(text="tea"), owner="ada", schedule=Schedule.every(HOUR), title="Tea")
        assert (task.handler, task.owner, task.title, task.payload) == ("remind", "ada", "Tea", {"text": "tea"})
        sim.advance(timedelta(hours=2, minutes=10))
        assert [each.content for each in sim.executions(task.id)][:2] == ["tea", "tea"]
        with pytest.raises(InvalidInput, match="payload"):
            remind.create(payload={"txt": "tea"})  # type: ignore[arg-type]


def test_run_now_edits_no_task_that_it_may_not_run() -> None:
    """One that is paused, has ended, or has all the open runs that it may have, is as it was."""
    app = App()

    @app.handler("wait")
    def wait(ctx: Context) -> None:
        ctx.sleep(DAY)

    with Simulation(app) as sim:
        for task_id in ("paused", "busy", "over"):
            app.create(id=task_id, handler="wait", schedule=Schedule.every(3 * DAY))
        app.pause("paused")
        app.cancel("over")
        for _ in range(MAX_OPEN_RUNS):
            app.trigger("busy")
        sim.run_until_idle(HOUR)
        for task_id in ("paused", "busy", "over"):
            before = app.get(task_id)
            with pytest.raises(NotAllowed):
                app.run_now("wait", id=task_id, title="Other")
            assert app.get(task_id) == before
        app.resume("paused")
        assert app.run_now("wait", id="paused", title="Other").title == "Other"


def test_run_now_runs_at_once_whatever_the_lead() -> None:
    """A task made by `run_now` is due at this very instant, although the settings ask for an hour of lead."""
    app = App()

    @app.handler("remind")
    def remind(reminder: Reminder) -> str:
        return reminder.text

    with Simulation(app, minimum_lead=HOUR) as sim:
        task = remind.run_now(Reminder(text="now"), owner="ada")
        sim.advance(timedelta(0))
        execution = only_run(sim, task)
        assert (execution.content, execution.started_at) == ("now", sim.now)


def test_calls_by_the_function_have_the_annotated_result() -> None:
    """`ctx.call` with a function returns an instance of what it is annotated with, as its type promises."""
    app = App()

    @app.handler("shout")
    def shout(reminder: Reminder) -> Reminder:
        return Reminder(text=reminder.text.upper())

    @app.handler("whisper")
    async def whisper(_ctx: AsyncContext, reminder: Reminder) -> Reminder:
        return Reminder(text=reminder.text.lower())

    @app.handler("plain")
    def plain(ctx: Context) -> str:
        return ctx.call(shout, Reminder(text="a")).result().text + ctx.call(whisper, Reminder(text="B")).result().text

    @app.handler("modern")
    async def modern(ctx: AsyncContext) -> str:
        results = await ctx.gather(ctx.call(shout, Reminder(text="a")), ctx.call(whisper, Reminder(text="B")))
        return "".join(each.text for each in results) + (await ctx.call(shout, Reminder(text="c"))).text

    with Simulation(app, replay=True) as sim:
        tasks = [plain.run_now(), modern.run_now()]
        sim.run_until_idle()
        assert [only_run(sim, task).content for task in tasks] == ["Ab", "AbC"]
