"""Handlers, steps and hooks with ``async def`` behave like plain ones, on one event loop of the process."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import sys
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, Row, create, run, run_to_end

from cloudsched import App, AsyncApp, AsyncContext, CallFailed, Context, Execution, Retry, StepFailed, Task
from cloudsched.engine.tracing import current_log_fields
from cloudsched.testing import START, Simulation


async def pause() -> None:
    """Give the loop to the others, as awaiting a response would."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_all_handlers_share_one_loop_that_stays(app: App) -> None:
    """A client that belongs to the loop can be kept from one attempt to the next."""
    loops = list[Any]()

    @app.handler("work", retry=2)
    async def work(ctx: AsyncContext) -> Retry | str:
        loops.append((asyncio.get_running_loop(), threading.get_ident()))
        await pause()
        return Retry("again") if ctx.attempt < 3 else "done"

    assert run(app).content == "done"
    assert len(loops) == 3
    assert len(set(loops)) == 1
    assert loops[0][1] != threading.get_ident()


@pytest.mark.parametrize("replay", [False, True])
def test_a_durable_handler_awaits_what_others_call(app: App, *, replay: bool) -> None:
    """Each operation has the same result as in a plain handler, is done once, and is the same in a replay."""
    done = list[str]()

    async def fetch(n: int) -> Row:
        await pause()
        done.append("fetch")
        return Row(n=n)

    def double(row: Row) -> int:
        done.append("double")
        return 2 * row.n

    @app.handler("child")
    async def child(row: Row) -> Row:
        await pause()
        return Row(n=row.n + 1)

    @app.handler("work")
    async def work(ctx: AsyncContext) -> dict[str, object]:
        first = ctx.now(), ctx.uuid(), ctx.random.random(), ctx.version("better", 2)
        row = await ctx.step("fetch", fetch, 20)
        assert isinstance(row, Row)
        twice = await ctx.step("double", double, row)
        await ctx.progress("asked")
        calls = [ctx.call("child", Row(n=n)) for n in range(3)]
        alone = await ctx.call("child", {"n": 7})
        rows = await ctx.gather(*calls)
        await ctx.sleep(DAY)
        said, sender = await ctx.wait_for("go", by=("admin",), with_sender=True)
        ctx.notify("Done", "all of it")
        assert await ctx.heartbeat()
        later = ctx.now() - first[0]
        return {"twice": twice, "alone": alone, "rows": rows, "said": said.by, "later": later, "sender": sender.role}

    with Simulation(app, replay=replay) as sim:
        task = create(app)
        sim.advance(30 * HOUR)
        app.send_event(task.id, "go", {"by": "ada"})
        record = run_to_end(sim, task, 10 * DAY)
        execution = app.execution(task.id, record.id)
        assert execution.status == "SUCCEEDED", execution.error
        content = dict(execution.content)
        assert content.pop("later").startswith("P1DT")
        rows = [{"n": 1}, {"n": 2}, {"n": 3}]
        assert content == {"twice": 40, "alone": {"n": 8}, "rows": rows, "said": "ada", "sender": "admin"}
        assert done == ["fetch", "double"]
        kinds = ["NOW", "VERSION", "STEP", "STEP", "CALL", "CALL", "CALL", "CALL", "SLEEP", "EVENT", "NOW"]
        assert [step.kind for step in execution.steps] == kinds
        assert [message.title for message in sim.inbox("ada")] == ["Done"]


def test_a_plain_handler_may_have_async_steps(app: App) -> None:
    """They run on the loop, even if only the object that the function returns is asynchronous."""

    async def fetch() -> str:
        await pause()
        return threading.current_thread().name

    async def one(_: str) -> str:
        return await fetch()

    async def count() -> AsyncIterator[int]:
        for n in range(3):
            await pause()
            yield n

    def work(ctx: Context) -> list[object]:
        return [ctx.step("a", fetch), ctx.step("b", lambda: one("x")), ctx.step("c", functools.partial(count))]

    assert run(app, work).content == ["cloudsched-event-loop", "cloudsched-event-loop", [0, 1, 2]]


@pytest.mark.parametrize("replay", [False, True])
def test_failures_of_steps_and_calls_can_be_caught(app: App, *, replay: bool) -> None:
    """With the same exceptions as in plain handlers, after the same retries."""
    tries = list[int]()

    async def fail() -> None:
        tries.append(1)
        await pause()
        raise ValueError("no luck")

    @app.handler("child", retry=False)
    async def child() -> None:
        await pause()
        raise KeyError("x")

    @app.handler("work")
    async def work(ctx: AsyncContext) -> list[str]:
        told = list[str]()
        try:
            await ctx.step("try", fail, retry=2)
        except StepFailed as failure:
            told.append(failure.type)
        try:
            await ctx.call("child")
        except CallFailed as failure:
            told.append(failure.type)
        return told

    assert run(app, replay=replay).content == ["ValueError", "KeyError"]
    assert len(tries) == 3


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyError("k"), StopAsyncIteration()])
def test_nothing_that_a_handler_raises_ends_the_loop(app: App, error: BaseException) -> None:
    """It fails the attempt, as in a plain handler, and the next one runs on the same loop."""

    @app.handler("work", retry=1)
    async def work(ctx: AsyncContext) -> str:
        await pause()
        if ctx.attempt == 1:
            raise error
        return "done"

    execution = run(app)
    assert execution.content == "done"
    assert execution.attempts[0].error is not None
    assert execution.attempts[0].error.type == type(error).__name__


def test_a_task_that_exits_does_not_end_the_loop(app: App, caplog: pytest.LogCaptureFixture) -> None:
    """Asyncio lets SystemExit in a task of the handler escape from the loop; the loop continues."""

    @app.handler("work", retry=False)
    async def work() -> str:
        async def leave() -> None:
            sys.exit(3)

        with pytest.raises(SystemExit):
            await asyncio.create_task(leave())
        return "done"

    with caplog.at_level(logging.ERROR):
        assert run(app).content == "done"
    assert "tried to end the process" in caplog.text


SETTING: contextvars.ContextVar[str] = contextvars.ContextVar("setting", default="none")
FAST = timedelta(milliseconds=20)
LONG = 3600.0


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
    """An async handler gets an AsyncContext under either name."""

    @app.handler("work")
    async def work(ctx: Context) -> str:
        await pause()
        return type(ctx).__name__

    assert run(app).content == "AsyncContext"


def test_blocking_code_on_the_loop_is_refused_by_name(app: App) -> None:
    """Running a coroutine from the loop's own thread would wait for itself forever."""

    @app.handler("work", retry=False)
    async def work() -> None:
        with Simulation(app, start=START) as inner:
            await AsyncApp(app).create(id="inner", handler="child", schedule=START)
            inner.run_until_idle(DAY)
            (execution,) = inner.executions("inner")
            assert execution.error is not None
            raise ValueError(execution.error.message)

    @app.handler("child", retry=False)
    async def child() -> None: ...

    error = run(app).error
    assert error is not None
    assert "asyncio.to_thread" in error.message or "simulation" in error.message.lower()
