"""Time limits, context variables, hooks and cancellation around async handlers: as around the others."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel
from tests.engine.harness import DAY, MINUTE, create, run

from cloudsched import App, AsyncContext, Context, Execution, StepFailed, Task
from cloudsched.engine.state.log_context import current_log_fields
from cloudsched.testing import START, Simulation

SETTING: contextvars.ContextVar[str] = contextvars.ContextVar("setting", default="none")
FAST = timedelta(milliseconds=20)
LONG = 3600.0


class Row(BaseModel):
    """A payload, and a result."""

    n: int


async def pause() -> None:
    """Give the loop to the others, as awaiting a response would."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_step_is_cancelled_at_its_time_limit(app: App, monkeypatch: pytest.MonkeyPatch, *, stubborn: bool) -> None:
    """Its clean-up runs; one that refuses to end is abandoned, and can no longer use its context."""
    monkeypatch.setattr("cloudsched.engine.durable.event_loop.CLEANUP_SECONDS", 0.05 if stubborn else 60.0)
    heard, over = list[str](), threading.Event()

    @app.handler("work")
    async def work(ctx: AsyncContext) -> str:
        async def slow() -> None:
            try:
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                heard.append("cancelled")
                if stubborn:
                    await asyncio.to_thread(over.wait)
                    try:
                        await ctx.progress("still here")
                    except Exception as error:  # noqa: BLE001 - looked at below
                        heard.append(str(error))
                    ended.set()
                raise

        ended = asyncio.Event()
        try:
            await ctx.step("slow", slow, retry=False, timeout=FAST)
        except StepFailed as failure:
            heard.append(failure.type)
        over.set()
        if stubborn:
            await ended.wait()
        return "done"

    assert run(app).content == "done"
    assert heard[:2] == ["cancelled", "TimeoutError"]
    assert all("can no longer use its context" in each for each in heard[2:])
    assert len(heard) == (3 if stubborn else 2)


def test_context_variables_pass_in_both_directions(app: App) -> None:
    """A handler sees the variables of its attempt, and its steps see those that it set."""
    seen = list[object]()

    async def asynchronous() -> None:
        seen.append(SETTING.get())

    @app.handler("work")
    async def work(ctx: AsyncContext) -> None:
        seen.append(current_log_fields()["taskId"] == ctx.task.id)
        seen.append(SETTING.get())
        SETTING.set("inside")
        await pause()
        await ctx.step("plain", lambda: seen.append(SETTING.get()))
        await ctx.step("asynchronous", asynchronous)

    token = SETTING.set("outside")
    try:
        assert run(app).status == "SUCCEEDED"
    finally:
        SETTING.reset(token)
    assert seen == [True, "outside", "inside", "inside"]
    assert SETTING.get() == "none"


def test_a_step_may_report_and_gather_within_itself(app: App) -> None:
    """While it runs, the attempt's thread serves it: progress, heartbeats and usage; and what it does itself."""

    @app.handler("work")
    async def work(ctx: AsyncContext) -> list[int]:
        async def one(n: int) -> int:
            await ctx.progress(f"row {n}")
            ctx.used(queries=1)
            return n

        async def many() -> list[int]:
            return await asyncio.gather(*(one(n) for n in range(4)))

        return await ctx.step("many", many)

    execution = run(app)
    assert execution.content == [0, 1, 2, 3]
    assert [note.text for note in execution.progress] == [f"row {n}" for n in range(4)]
    assert execution.queries == 4


def test_blocking_steps_do_not_hold_up_the_loop(app: App) -> None:
    """A plain step runs in the attempt's own thread while coroutines go on."""
    released = threading.Event()

    @app.handler("work")
    async def work(ctx: AsyncContext) -> bool:
        async def release() -> None:
            released.set()

        other = asyncio.create_task(release())
        waited = await ctx.step("wait", lambda: released.wait(60))
        await other
        return waited

    assert run(app).content is True


@pytest.mark.parametrize("own", [False, True])
def test_async_hooks_are_run(app: App, *, own: bool) -> None:
    """The handler's own, and the app's; what they await is awaited before the failure is stored."""
    seen = list[str]()

    async def hook(task: Task, execution: Execution) -> None:
        await pause()
        seen.append(f"{task.handler} {execution.status}")

    @app.handler("work", retry=False, on_failure=hook if own else None)
    async def work() -> None:
        raise ValueError("no")

    if not own:
        app.on_failure(hook)
    assert run(app).status == "FAILED"
    assert seen == ["work FAILED"]


def test_a_context_annotation_is_enough(app: App) -> None:
    """An async handler gets an AsyncContext under either name, and its wrapped function counts as asynchronous."""

    def decorate(function: Any) -> Any:  # noqa: ANN401 - as decorators are
        @functools.wraps(function)
        def wrapper(*args: object) -> object:
            return function(*args)

        return wrapper

    @app.handler("work")
    @decorate
    async def work(ctx: Context, row: Row | None = None) -> str:
        assert row == Row(n=3)
        await pause()
        return type(ctx).__name__

    with Simulation(app) as sim:
        task = create(app, payload={"n": 3})
        sim.advance(MINUTE)
        assert [each.content for each in sim.executions(task.id)] == ["AsyncContext"]


def test_blocking_code_on_the_loop_is_refused_by_name(app: App) -> None:
    """Running a coroutine from the loop's own thread would wait for itself forever."""

    @app.handler("work", retry=False)
    async def work() -> None:
        with Simulation(app, start=START) as inner:
            create(app, id="inner", handler="child")
            inner.run_until_idle(DAY)
            (execution,) = inner.executions("inner")
            assert execution.error is not None
            raise ValueError(execution.error.message)

    @app.handler("child", retry=False)
    async def child() -> None: ...

    error = run(app).error
    assert error is not None
    assert "asyncio.to_thread" in error.message or "simulation" in error.message.lower()
