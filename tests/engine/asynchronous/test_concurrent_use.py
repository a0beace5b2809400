"""The order of a handler's operations is the journal's key: an async handler that leaves it to chance gets an error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.engine.harness import DAY, create, run

from cloudsched import App, AsyncContext
from cloudsched.errors import WorkflowError
from cloudsched.testing import Simulation


async def nothing() -> None:
    pass


ASKS: dict[str, tuple[Callable[[AsyncContext], Any], str]] = {
    "step": (lambda ctx: ctx.step("second", nothing), "ctx.step('second')"),
    "sleep": (lambda ctx: ctx.sleep(DAY), "ctx.sleep"),
    "wait_for": (lambda ctx: ctx.wait_for("go"), "ctx.wait_for('go')"),
    "gather": (lambda ctx: ctx.gather(), "ctx.gather"),
    "call": (lambda ctx: ctx.call("child"), "ctx.call('child')"),
    "now": (lambda ctx: ctx.now(), "ctx.now()"),
    "uuid": (lambda ctx: ctx.uuid(), "ctx.uuid()"),
    "random": (lambda ctx: ctx.random, "ctx.random"),
    "version": (lambda ctx: ctx.version("v", 2), "ctx.version('v')"),
}


async def ask(ctx: AsyncContext, name: str) -> None:
    result = ASKS[name][0](ctx)
    if asyncio.iscoroutine(result):
        await result


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("swallowed", [False, True])
@pytest.mark.parametrize("name", ASKS)
def test_a_second_operation_at_the_same_time_is_refused(app: App, name: str, *, swallowed: bool, replay: bool) -> None:
    """By name, for good (no retry helps), and even if the handler swallows the refusal."""
    app.handler("child")(lambda: None)

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> str:
        if ctx.attempt > 1:
            return "was retried"
        await asyncio.gather(ctx.step("first", nothing), ask(ctx, name), return_exceptions=swallowed)
        return "went on"

    execution = run(app, replay=replay)
    assert execution.status == "FAILED"
    assert execution.error is not None
    assert execution.error.type == "WorkflowError"
    expected = f"{ASKS[name][1]} is requested while ctx.step('first') is in progress. The journal records the order"
    assert execution.error.message.startswith(expected)


def test_a_task_group_is_told_as_well(app: App) -> None:
    """The refusal, and not the group that asyncio wraps it in, ends the attempt."""

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.step("a", nothing))
            group.create_task(ctx.step("b", nothing))

    execution = run(app)
    assert execution.error is not None
    assert execution.error.type == "WorkflowError"
    assert "ctx.step('b') is requested while ctx.step('a')" in execution.error.message


@pytest.mark.parametrize("replay", [False, True])
def test_a_task_group_beside_one_operation_is_allowed(app: App, *, replay: bool) -> None:
    """A suspension passes through the group; what runs beside the operation is the handler's own matter."""
    beside = list[str]()

    async def work_beside() -> None:
        await asyncio.sleep(0)
        beside.append("x")

    @app.handler("work", retry=False)
    async def work(ctx: AsyncContext) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(work_beside())
            await ctx.sleep(DAY)
            return "slept"

    assert run(app, replay=replay).content == "slept"
    assert beside


def test_an_operation_left_behind_is_refused(app: App) -> None:
    """A handler that returns before its step has ended would lose that step."""
    has_returned = threading.Event()

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> str:
        tasks.append(asyncio.create_task(ctx.step("left", has_returned.wait, 30)))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, has_returned.set)
        return "done"

    tasks = list[asyncio.Task[bool]]()
    execution = run(app)
    assert execution.error is not None
    assert execution.error.message == "The handler returned while ctx.step('left') was in progress: await it."


def test_a_step_cancelled_from_outside_is_still_in_progress(app: App) -> None:
    """asyncio.wait_for cannot undo a step: what follows it is refused, and names the step."""

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> str:
        release = threading.Event()
        with suppress(TimeoutError):
            await asyncio.wait_for(ctx.step("slow", lambda: release.wait(60)), 0.01)
        try:
            await ctx.step("next", nothing)
        finally:
            release.set()
        return "done"

    execution = run(app)
    assert execution.error is not None
    assert "ctx.step('next') is requested while ctx.step('slow') is in progress" in execution.error.message


def test_calls_may_be_started_side_by_side_but_awaited_by_gather(app: App) -> None:
    """Starting calls takes no time, so their order is certain; asyncio.gather over their results is refused."""
    app.handler("child")(lambda: "x")

    @app.handler("work", retry=False)
    async def work(ctx: AsyncContext) -> object:
        calls = ctx.call("child"), ctx.call("child")
        return await (ctx.gather(*calls) if ctx.task.title == "Right" else asyncio.gather(*calls))

    with Simulation(app) as sim:
        right, wrong = create(app, title="Right"), create(app, title="Wrong")
        sim.run_until_idle(DAY)
        assert [each.content for each in sim.executions(right.id)] == [["x", "x"]]
        (execution,) = sim.executions(wrong.id)
        assert execution.error is not None
        assert "The journal records the order" in execution.error.message


def test_operations_inside_a_step_are_refused(app: App) -> None:
    """As in plain handlers, with the same message."""

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> str:
        async def inside() -> None:
            await ctx.sleep(DAY)

        try:
            await ctx.step("outer", inside)
        except Exception as error:  # noqa: BLE001 - looked at below
            return str(error)
        return "allowed"

    assert "A step cannot contain other operations" in str(run(app).content)


def test_a_context_is_of_no_use_after_its_attempt(app: App) -> None:
    """A task that outlives its handler is refused instead of waiting forever."""
    told = list[str]()

    @app.handler("work")
    async def work(ctx: AsyncContext) -> None:
        async def outlive() -> None:
            await asyncio.to_thread(has_ended.wait, 30)
            try:
                await ctx.progress("late")
            except WorkflowError as error:
                told.append(str(error))
            over.set()

        tasks.append(asyncio.create_task(outlive()))

    tasks, has_ended, over = list[object](), threading.Event(), threading.Event()
    with Simulation(app) as sim:
        create(app)
        sim.run_until_idle(DAY)
        has_ended.set()
        assert over.wait(60)
    assert told == ["The attempt has ended: its context can no longer be used. Await all that uses it in the handler."]
