"""An execution that did not succeed can be retried on request, and keeps the record of its earlier attempts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, elsewhere, only_run

from cloudsched import App, Context, Schedule, Settings, Task
from cloudsched.errors import NotAllowed, NotFound
from cloudsched.testing import START, Simulation

IN_A_MINUTE = Schedule.once(START + MINUTE)
HOURLY = Schedule.every(HOUR, start=START + HOUR)


def add_flaky_handler(app: App, failures: int) -> None:
    """Register a handler that fails `failures` times, then succeeds."""
    left = [None] * failures

    @app.handler("flaky", retry=False)
    def flaky(ctx: Context) -> int:
        if left:
            left.pop()
            raise ConnectionError("no")
        return ctx.attempt


def create(app: App, schedule: Schedule) -> Task:
    return app.create(handler="flaky", schedule=schedule)


def test_a_failed_one_time_task_is_active_until_its_retry_has_finished(sim: Simulation, app: App) -> None:
    """The record has both attempts, and the last one decides the status of the task."""
    add_flaky_handler(app, 1)
    task = create(app, IN_A_MINUTE)
    sim.advance(HOUR)
    assert app.get(task.id).status == "FAILED"
    assert app.retry(task.id).status == "ACTIVE"
    assert app.execution(task.id, "20270101T000100Z").status == "RETRYING"
    sim.advance(MINUTE)
    execution = only_run(sim, task)
    assert (execution.status, execution.content) == ("SUCCEEDED", 2)
    assert [attempt.status for attempt in execution.attempts] == ["FAILED", "SUCCEEDED"]
    assert app.get(task.id).status == "COMPLETED"


def test_a_retry_does_not_move_the_plan_of_a_recurring_task(sim: Simulation, app: App) -> None:
    """Any of its failed executions can be retried; the next execution time stays the same."""
    add_flaky_handler(app, 2)
    task = create(app, HOURLY)
    sim.advance(timedelta(hours=4, minutes=30))
    following = app.get(task.id).next_execution_time
    app.retry(task.id, "20270101T010000Z")
    sim.advance(MINUTE)
    assert [e.status for e in sim.executions(task.id)] == ["SUCCEEDED", "FAILED", "SUCCEEDED", "SUCCEEDED"]
    assert app.get(task.id).next_execution_time == following


def test_a_retry_that_is_not_allowed_is_refused(sim: Simulation, app: App) -> None:
    """A success cannot be retried, nor can anything of a paused or cancelled task, nor an unknown execution."""
    add_flaky_handler(app, 1)
    task = create(app, HOURLY)
    sim.advance(2 * HOUR)
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


def add_napping_handler(app: App) -> None:
    """Register a handler that fails on its first day, and sleeps on all others."""

    @app.handler("nap", retry=False)
    def nap(ctx: Context) -> None:
        if ctx.scheduled_for == START + DAY:
            raise ConnectionError("no")
        ctx.sleep(9 * DAY)


@pytest.mark.parametrize("last", [1, 2, 3])
def test_a_retry_without_an_id_takes_the_execution_cancelled_last(sim: Simulation, app: App, last: int) -> None:
    """This holds whether an earlier run failed or no run had finished before the cancellation."""
    add_napping_handler(app)
    start = START + (DAY if last > 1 else 2 * DAY)
    task = app.create(handler="nap", schedule=Schedule.every(DAY, start=start))
    sim.advance(2 * DAY + HOUR)
    if last == 3:
        app.trigger(task.id)
        sim.advance(MINUTE)
    app.cancel(task.id)
    newest = sim.executions(task.id)[-1]
    assert newest.status == "CANCELLED"
    app.update(task.id, schedule=Schedule.once(START + 30 * DAY))
    app.retry(task.id)
    assert [run.execution_id for run in app.get(task.id).runs] == [newest.id]


def test_an_open_execution_cannot_be_retried(app: App, sim: Simulation) -> None:
    """The error says whether it is running or suspended, with and without the id of the execution."""
    refused = list[str]()

    def ask(task_id: str, execution_id: str | None) -> None:
        with pytest.raises(NotAllowed) as error:
            elsewhere(app.retry, task_id, execution_id)
        refused.append(str(error.value))

    @app.handler("nap")
    def nap(ctx: Context) -> None:
        ask(ctx.task.id, ctx.execution_id)
        ctx.sleep(9 * DAY)

    task = app.create(handler="nap", schedule=IN_A_MINUTE)
    sim.advance(HOUR)
    ask(task.id, "20270101T000100Z")
    ask(task.id, None)
    open_now = "Cannot retry an execution of a task that is still at work on it. 20270101T000100Z"
    assert [each.startswith(open_now) for each in refused] == [True] * 3
    assert "is running" in refused[0]
    assert "is suspended" in refused[1]
    assert refused[2] == refused[1]


@pytest.mark.usefixtures("sim")
def test_a_task_that_never_ran_has_nothing_to_retry(app: App) -> None:
    """The error says what to do instead: trigger the task or, if it is cancelled, give it a new schedule."""
    add_napping_handler(app)
    task = app.create(handler="nap", schedule=Schedule.once(START + DAY))
    with pytest.raises(NotAllowed, match=r"Nothing of it has run yet; trigger the task to run it now\."):
        app.retry(task.id)
    app.cancel(task.id)
    with pytest.raises(NotAllowed, match=r"is CANCELLED\. Give it a new schedule"):
        app.retry(task.id)


def test_a_run_of_the_old_schedule_does_not_count_for_the_new_one(app: App, sim: Simulation) -> None:
    """A run is open when the schedule changes; the new instant passes while the task is paused, so it never ran."""

    @app.handler("slow")
    def slow() -> None:
        app.update("t", schedule=Schedule.once(START + HOUR))
        app.pause("t")

    app.create(id="t", handler="slow", schedule=IN_A_MINUTE)
    sim.advance(2 * HOUR)
    assert [each.status for each in sim.executions("t")] == ["SUCCEEDED"]
    with pytest.raises(NotAllowed, match="past its only instant"):
        app.resume("t")


MOST = 12
STEPS = st.lists(
    st.tuples(st.sampled_from(["hour", "trigger", "retry", "backfill"]), st.integers(0, MOST), st.booleans()),
    min_size=1,
    max_size=MOST,
)


@settings(max_examples=60)
@given(steps=STEPS, pauses=st.booleans())
@example(steps=[("hour", 0, False), ("hour", 0, True), ("hour", 0, False), ("retry", 0, True)], pauses=False)
@example(steps=[("hour", 0, False), ("hour", 0, True), ("retry", 0, False), ("retry", 0, False)], pauses=True)
@example(steps=[("hour", 0, False), ("hour", 0, False), ("hour", 0, False), ("retry", 0, True)], pauses=False)
def test_the_run_that_was_due_last_says_how_a_task_is(steps: list[tuple[str, int, bool]], *, pauses: bool) -> None:
    """Whatever is retried, triggered and backfilled in whichever order; and no vain retry of an old run pauses it."""
    app, succeeds = App(Settings()), False

    @app.handler("work", retry=False)
    def work() -> str:
        if not succeeds:
            raise ConnectionError("no")
        return "done"

    with Simulation(app) as sim:
        start = START - 3 * HOUR - 17 * SECOND  # nothing is triggered at the very instant of an occurrence
        daily = Schedule.every(HOUR, start=start)
        task = app.create(handler="work", schedule=daily, pause_after_failures=3 if pauses else None)
        for kind, number, succeeds in steps:
            failed = [each for each in sim.executions(task.id) if each.status == "FAILED"]
            before = app.get(task.id)
            try:
                if kind == "trigger":
                    app.trigger(task.id)
                elif kind == "backfill":
                    app.backfill(task.id, start, START)
                elif kind == "retry" and failed:
                    app.retry(task.id, failed[number % len(failed)].id)
            except NotAllowed:
                continue  # it has paused itself, or was backfilled
            sim.advance(HOUR if kind == "hour" else 2 * MINUTE)
            ran = [each for each in sim.executions(task.id) if each.trigger != "BACKFILL"]
            after = app.get(task.id)
            latest = max(ran, key=lambda each: each.scheduled_for, default=None)
            is_failing = latest is not None and latest.status == "FAILED"
            assert (after.consecutive_failures > 0) is is_failing, (kind, number, succeeds)
            mended = {attempt.finished_at for each in ran if each.status == "SUCCEEDED" for attempt in each.attempts}
            assert after.failing_since not in mended, "it dates a failure that a retry has made good"
            assert latest is None or after.last_execution_id == latest.id
            due = [each for each in ran if each.trigger == "SCHEDULE"]
            assert after.outcome == (max(due, key=lambda each: each.scheduled_for).status if due else None)
            if kind in {"retry", "backfill"} and before.consecutive_failures == 0 and before.status == "ACTIVE":
                assert after.status == "ACTIVE"
