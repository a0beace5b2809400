"""What a durable handler may rely on when its code changes, at its limits, and with other policies."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, Create, only_run, register_work_handler, run, run_to_end

from cloudsched import App, Context, Schedule
from cloudsched.errors import CallFailed
from cloudsched.testing import START, Simulation


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (lambda ctx: ctx.step("other", lambda: 1), "Step 1 was step 'first' when it was recorded, and is step 'other'"),
        (lambda ctx: ctx.sleep(DAY), "Step 1 was step 'first' when it was recorded, and is sleep now"),
        (lambda _: None, "Step 1 was step 'first' when it was recorded, and is the handler's end"),
    ],
)
def test_a_replay_that_diverges_stops_and_says_where(
    app: App, after: Callable[[Context], object], expected: str
) -> None:
    replays = list[object]()

    def call(ctx: Context) -> None:
        replays.append(None)
        if len(replays) > 1:
            after(ctx)
            return
        ctx.step("first", lambda: 1)
        ctx.sleep(DAY)

    execution = run(app, call)
    assert execution.status == "FAILED"
    assert execution.error
    assert execution.error.type == "JournalMismatch"
    assert execution.error.message.startswith(expected)


def test_a_version_lets_code_change_while_executions_are_open(app: App, sim: Simulation, create: Create) -> None:
    """Those that had passed keep to the old code, those that come follow the new one, each in all its replays."""
    code = {"is_new": False}

    def call(ctx: Context) -> list[str]:
        results = []
        if code["is_new"] and ctx.version("better", 2) >= 2:
            results.append(ctx.step("new", lambda: "new"))
        else:
            results.append(ctx.step("old", lambda: "old"))
        ctx.sleep(DAY)
        if code["is_new"]:
            results.append(str(ctx.version("better", 2)))
        return results

    register_work_handler(app, call)
    before = create()
    sim.advance(MINUTE)
    code["is_new"] = True
    after = create(schedule=Schedule.once(sim.now))
    sim.run_until_idle(366 * DAY)
    contents = [only_run(sim, task).content for task in (before, after)]
    assert contents == [["old", "1"], ["new", "2"]]


def test_an_execution_waits_for_the_version_that_it_began_with(app: App, sim: Simulation, create: Create) -> None:
    """Code of an earlier version, of another process or after a rollback, does not go on with it; it says why."""
    code = {"newest": 3}

    def call(ctx: Context) -> list[int]:
        seen = [ctx.version("better", code["newest"])]
        ctx.sleep(DAY)
        return [*seen, ctx.version("better", code["newest"])]

    register_work_handler(app, call)
    task = create()
    sim.advance(MINUTE)
    code["newest"] = 2
    sim.advance(2 * DAY)
    execution = only_run(sim, task)
    assert execution.status == "SUSPENDED"
    assert "It waits for code with version 3 of 'better', with which it began: this process has 2" in (
        execution.message or ""
    )
    code["newest"] = 4
    sim.advance(2 * MINUTE)
    assert only_run(sim, task).content == [3, 3]


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda ctx, n: ctx.call("fine", {"n": n}).result(), "call 'fine' with {'payload': {'n': 2}} now"),
        (lambda ctx, n: ctx.call("fine", {}, title=str(n)), "call 'fine' with {'payload': {}, 'title': '2'} now"),
        (lambda ctx, n: ctx.sleep(n * DAY), "sleep with 2027-01-03 00:00:00+00:00 now"),
        (lambda ctx, n: ctx.wait_for("go", timeout=n * DAY), "event 'go' with 2027-01-03 00:00:00+00:00 now"),
    ],
)
def test_replaying_at_each_step_finds_arguments_that_are_not_deterministic(
    app: App, ask: Callable[[Context, int], object], expected: str
) -> None:
    """They are not compared otherwise: code may change them."""
    numbers = iter(range(1, 100))

    @app.handler("fine")
    def fine(_: dict[str, Any]) -> None: ...

    def call(ctx: Context) -> None:
        ask(ctx, next(numbers))
        ctx.sleep(DAY)

    execution = run(app, call, replay=True)
    assert execution.error
    assert execution.error.type == "JournalMismatch"
    assert execution.error.message.startswith("Step 1 was ")
    assert expected in execution.error.message


def test_a_handler_that_catches_its_suspension_gets_an_error(app: App) -> None:
    def call(ctx: Context) -> str:
        try:
            ctx.sleep(DAY)
        except BaseException:  # noqa: BLE001 - just that
            return "caught"
        return "slept"

    execution = run(app, call)
    assert execution.error
    assert "catch Exception instead" in execution.error.message


def test_depth_is_bounded(app: App) -> None:
    def work(ctx: Context) -> str:
        try:
            return str(ctx.call("work").result())
        except CallFailed as failure:
            return failure.message

    assert "nested 11 deep" in run(app, work).content


def test_fan_out_is_bounded(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudsched.engine.durable.calls.MAX_CALLS", 3)

    app.handler("fine")(lambda: None)
    execution = run(app, lambda ctx: [ctx.call("fine") for _ in range(4)])
    assert execution.error
    assert "3 calls are in progress" in execution.error.message


def test_large_results_are_stored_by_reference_and_read_whole(app: App) -> None:
    """A megabyte from a step and from a call; neither is in a document."""
    large = "x" * 400_000

    app.handler("large")(lambda: large)

    def call(ctx: Context) -> list[int]:
        one, two = ctx.step("large", lambda: [large] * 3), ctx.call("large").result()
        ctx.sleep(DAY)
        return [len(json.dumps(one)), len(two)]

    execution = run(app, call)
    assert execution.content == [3 * 400_002 + 6, 400_000]
    assert [step.reference is not None for step in execution.steps] == [True, True, False]
    assert len(execution.model_dump_json()) < 10_000


def test_a_handler_near_the_function_time_limit_continues_in_another_invocation(
    app: App, sim: Simulation, create: Create
) -> None:
    """Steps of three minutes each, in a function that may run for nine."""
    calls, steps = list[object](), list[int]()

    def spend_three_minutes(n: int) -> None:
        steps.append(n)
        sim.clock.move_to(sim.now + 3 * MINUTE)

    def call(ctx: Context) -> str:
        calls.append(None)
        for n in range(10):
            ctx.step("slow", spend_three_minutes, n)
        return "done"

    register_work_handler(app, call)
    task = create()
    execution = run_to_end(sim, task, 366 * DAY)
    assert execution.content == "done"
    assert steps == list(range(10))
    assert len(calls) == 4
    assert len(execution.attempts) == 1


def test_a_paused_task_suspends_at_its_next_durable_operation_until_resumed(
    app: App, sim: Simulation, create: Create
) -> None:
    done = list[str]()

    def first(ctx: Context) -> None:
        done.append("first")
        app.pause(ctx.task.id)

    def call(ctx: Context) -> str:
        ctx.step("first", first, ctx)
        ctx.step("second", lambda: done.append("second"))
        return "done"

    register_work_handler(app, call)
    task = create()
    sim.advance(DAY)
    assert (done, app.get(task.id).status) == (["first"], "PAUSED")
    app.resume(task.id)
    sim.advance(MINUTE)
    assert only_run(sim, task).content == "done"
    assert done == ["first", "second"]


def test_a_lock_is_free_while_its_holder_is_suspended(app: App, sim: Simulation, create: Create) -> None:
    order = list[str]()

    @app.handler("work")
    def work(ctx: Context) -> None:
        ctx.step("first", lambda: order.append(f"{ctx.task.id} begins"))
        ctx.sleep(HOUR if ctx.task.id == "a" else MINUTE)
        ctx.step("second", lambda: order.append(f"{ctx.task.id} ends"))

    for name in ("a", "b"):
        create(id=name, lock_key="one")
    sim.run_until_idle(366 * DAY)
    assert {app.get(name).status.value for name in "ab"} == {"COMPLETED"}
    assert app.container.store.locks.load("one").lock.is_empty
    assert order == ["a begins", "b begins", "b ends", "a ends"]


def test_of_many_attempts_the_first_and_the_last_are_kept(app: App, sim: Simulation, create: Create) -> None:
    """Each suspension resets the count, so there may be any number of them; the last attempt has its number."""
    failed = set[int]()

    def call(ctx: Context) -> None:
        for day in range(60):
            ctx.sleep(DAY)
            if day not in failed:
                failed.add(day)
                raise ConnectionError("x" * 1000)
        raise KeyError("the end")

    register_work_handler(app, call)
    task = create(retry={"maxRetries": 1})
    sim.run_until_idle(366 * DAY)
    for last in (61, 62):
        execution = only_run(sim, task)
        assert [attempt.number for attempt in execution.attempts] == [1, 2, 3, 4, 5, *range(last - 19, last + 1)]
        assert execution.omitted_attempts == last - 25
        app.retry(task.id)
        sim.run_until_idle(366 * DAY)


def test_a_handler_that_loses_its_context_still_replays_what_was_recorded() -> None:
    """The journal tells that the code has changed while the run slept; without it the handler would just succeed."""
    before, after = App(), App()

    @before.handler("h")
    def sleeper(ctx: Context) -> str:
        ctx.sleep(DAY)
        return "slept"

    @after.handler("h")
    def hasty() -> str:
        return "did not sleep"

    with Simulation(before) as sim:
        task = before.create(handler="h", schedule=Schedule.once(START + MINUTE))
        sim.advance(2 * MINUTE)
        before.container.registry.replace_handlers(after.container.registry)
        sim.advance(2 * DAY)
        execution = only_run(sim, task)
    assert execution.status == "FAILED"
    assert execution.error is not None
    assert execution.error.type == "JournalMismatch"


@pytest.mark.parametrize("retention", [None, 2 * DAY])
def test_the_record_of_a_call_is_retained_as_long_as_its_task(
    app: App, sim: Simulation, create: Create, retention: timedelta | None
) -> None:
    """Its executions are kept for a day; its parent reads them after three, and then they are removed with it."""

    @app.handler("fine")
    def fine() -> str:
        return "fine"

    def call(ctx: Context) -> str:
        handle = ctx.call("fine", execution_retention=DAY, retention=retention)
        ctx.sleep(3 * DAY)
        result: str = handle.result()
        return result

    register_work_handler(app, call)
    task = create()
    sim.advance(3 * DAY + MINUTE)
    assert only_run(sim, task).content == "fine"
    sim.run_until_idle(366 * DAY)
    assert not app.tree(task.id).children
