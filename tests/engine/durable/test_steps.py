"""What a durable handler may rely on: steps, events, sleeps, failures."""

from __future__ import annotations

import threading
from datetime import timedelta

from tests.engine.harness import DAY, MINUTE, Create, only_run, run

from cloudsched import App, Context, RetryPolicy
from cloudsched.errors import (
    StepFailed,
)
from cloudsched.testing import START, Simulation


def test_a_non_json_result_is_the_same_at_first_and_in_a_replay(app: App) -> None:
    """A tuple without an annotation is a list at once, not only after a replay."""
    seen = list[object]()

    def work(ctx: Context) -> None:
        seen.append(ctx.step("pair", lambda: (1, "two")))
        ctx.sleep(DAY)

    run(app, work)
    assert seen == [[1, "two"], [1, "two"]]


def test_a_recorded_step_is_not_called_again(app: App) -> None:
    """Whoever replays the handler, after a day's sleep or a crash, gets its result."""
    calls = list[object]()

    def work(ctx: Context) -> None:
        ctx.step("pay", lambda: calls.append(None))
        ctx.sleep(DAY)

    assert run(app, work).status == "SUCCEEDED"
    assert len(calls) == 1


def test_a_sleeping_handler_costs_no_calls(app: App, sim: Simulation, create: Create) -> None:
    """Forty-five days are two hops of the queue, and not one call of the function."""
    calls = list[object]()

    @app.handler("work")
    def work(ctx: Context) -> None:
        calls.append(None)
        ctx.sleep(45 * DAY)

    task = create()
    sim.advance(MINUTE)
    execution = only_run(sim, task)
    assert (execution.status, len(calls)) == ("SUSPENDED", 1)
    before = sim.counts.copy()
    sim.advance(44 * DAY)
    spent = sim.counts.since(before)
    assert (spent.commits, spent.dispatches, len(calls)) == (0, 1, 1)
    sim.advance(DAY)
    execution = only_run(sim, task)
    assert (execution.status, len(calls)) == ("SUCCEEDED", 2)
    assert execution.finished_at == START + 45 * DAY


def test_now_uuid_and_random_are_the_same_in_every_replay(app: App) -> None:
    seen = list[tuple[object, ...]]()

    def work(ctx: Context) -> None:
        seen.append((ctx.now(), ctx.uuid(), ctx.uuid(), ctx.random.random(), ctx.random.choice(range(1000))))
        ctx.sleep(DAY)

    run(app, work)
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert seen[0][0] == START
    assert seen[0][1] != seen[0][2]


def test_a_step_is_retried_by_its_policy_while_nothing_runs(app: App) -> None:
    tries = list[object]()

    def work(ctx: Context) -> str:
        def lose_connection() -> str:
            tries.append(ctx.now())
            if len(tries) < 4:
                raise ConnectionError("no")
            return "done"

        policy = RetryPolicy(max_retries=3, first_delay=MINUTE, base=2 * MINUTE, factor=2, jitter=0)
        return ctx.step("flaky", lose_connection, retry=policy)

    execution = run(app, work)
    (step,) = execution.steps
    assert (execution.content, len(execution.attempts), step.attempts) == ("done", 1, 4)
    assert tries == [START, START + MINUTE, START + 3 * MINUTE, START + 7 * MINUTE]
    assert step.finished_at == START + 7 * MINUTE


def test_a_step_that_fails_for_good_is_an_exception_that_the_handler_may_catch(app: App) -> None:
    """It is the same exception in a replay, and the step is not tried again."""
    tries, caught = list[object](), list[str]()

    def raise_key_error() -> None:
        tries.append(None)
        raise KeyError("k")

    def work(ctx: Context) -> str:
        try:
            ctx.step("broken", raise_key_error, retry=1)
        except StepFailed as failure:
            caught.append(f"{failure.step} {failure.type} {failure}")
        ctx.sleep(DAY)
        return "went on"

    assert run(app, work).content == "went on"
    assert (len(tries), len(caught), len(set(caught))) == (2, 2, 1)


def test_an_uncaught_step_failure_fails_the_execution_at_once(app: App) -> None:
    """A replay would only meet the same failure, so the task's own retries are not spent on it."""

    @app.handler("work", retry=3)
    def work(ctx: Context) -> None:
        ctx.step("broken", lambda: 1 / 0, retry=False)

    execution = run(app)
    assert (execution.status, len(execution.attempts)) == ("FAILED", 1)
    assert execution.failure_cause
    assert execution.failure_cause.steps == (1,)
    assert execution.error
    assert (execution.error.type, execution.steps[0].error and execution.steps[0].error.type) == (
        "StepFailed",
        "ZeroDivisionError",
    )


def test_a_step_that_exceeds_its_timeout_is_abandoned(app: App) -> None:
    never = threading.Event()

    def work(ctx: Context) -> None:
        ctx.step("slow", never.wait, timeout=timedelta(milliseconds=100), retry=1)

    execution = run(app, work)
    never.set()
    assert "longer than 0.1 s" in str(execution.steps[0].error)
    assert execution.steps[0].status == "TIMED_OUT"
    assert execution.steps[0].attempts == 2
