"""An execution that did not succeed can be tried again by hand, and keeps its history."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cloudsched import App, Context, Schedule, Settings, Task
from cloudsched.errors import NotAllowed, NotFound
from cloudsched.testing import START, Simulation

IN_A_MINUTE = Schedule.once(START + timedelta(minutes=1))
HOURLY = Schedule.every(timedelta(hours=1), start=START + timedelta(hours=1))


def flaky_app(failures: int) -> App:
    """Return an app whose handler fails so many times, then succeeds."""
    app = App(Settings())
    left = [None] * failures

    @app.handler("flaky", retry=False)
    def flaky(ctx: Context) -> int:
        if left:
            left.pop()
            raise ConnectionError("no")
        return ctx.attempt

    return app


def create(app: App, schedule: Schedule) -> Task:
    return app.create(owner="ada", title="Flaky", handler="flaky", schedule=schedule)


def test_a_failed_one_time_task_lives_until_its_retry_is_over() -> None:
    """The record keeps both attempts, and the task ends as its last one did."""
    app = flaky_app(1)
    with Simulation(app) as sim:
        task = create(app, IN_A_MINUTE)
        sim.advance(timedelta(hours=1))
        assert app.get(task.id).status == "FAILED"
        assert app.retry(task.id).status == "ACTIVE"
        assert app.execution(task.id, "20270101T000100Z").status == "RETRYING"
        sim.advance(timedelta(minutes=1))
        (execution,) = sim.executions(task.id)
        assert (execution.status, execution.content) == ("SUCCEEDED", 2)
        assert [attempt.status for attempt in execution.attempts] == ["FAILED", "SUCCEEDED"]
        assert app.get(task.id).status == "COMPLETED"


def test_the_plan_of_a_recurring_task_is_not_moved() -> None:
    """Any of its failed executions can be retried; what is next stays next."""
    app = flaky_app(2)
    with Simulation(app) as sim:
        task = create(app, HOURLY)
        sim.advance(timedelta(hours=4, minutes=30))
        following = app.get(task.id).next_execution_time
        app.retry(task.id, "20270101T010000Z")
        sim.advance(timedelta(minutes=1))
        assert [e.status for e in sim.executions(task.id)] == ["SUCCEEDED", "FAILED", "SUCCEEDED", "SUCCEEDED"]
        assert app.get(task.id).next_execution_time == following


def test_two_retries_at_once_are_one() -> None:
    """Asking again while the retry waits changes nothing."""
    app = flaky_app(1)
    with Simulation(app) as sim:
        task = create(app, IN_A_MINUTE)
        sim.advance(timedelta(hours=1))
        app.retry(task.id)
        app.retry(task.id)
        sim.advance(timedelta(minutes=1))
        assert len(sim.executions(task.id)[0].attempts) == 2


def test_what_must_not_be_retried_is_refused() -> None:
    """A success is never run again; a cancelled or paused task runs nothing; an unknown execution is not found."""
    app = flaky_app(1)
    with Simulation(app) as sim:
        task = create(app, HOURLY)
        sim.advance(timedelta(hours=2))
        with pytest.raises(NotAllowed, match="succeeded"):
            app.retry(task.id)
        with pytest.raises(NotFound):
            app.retry(task.id, "20300101T000000Z")
        app.pause(task.id)
        with pytest.raises(NotAllowed, match="PAUSED"):
            app.retry(task.id, "20270101T010000Z")
        app.cancel(task.id)
        with pytest.raises(NotAllowed, match="CANCELLED"):
            app.retry(task.id, "20270101T010000Z")
