"""User code that raises SystemExit or another BaseException fails its attempt and ends no process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, field_serializer, field_validator
from tests.engine.harness import MINUTE, SECOND, create, run, run_to_end

from cloudsched import App, AsyncContext, Context, Depends, Execution, RetryPolicy, Task
from cloudsched.errors import InvalidPayload, StepFailed
from cloudsched.testing import Simulation

TWICE = RetryPolicy(max_retries=1, first_delay=SECOND)


class Result(BaseModel):
    n: int = 1

    @field_serializer("n")
    def dump(self, _: int) -> int:
        sys.exit("no")


def raise_cancelled() -> None:
    async def work() -> None:
        raise asyncio.CancelledError("given up")

    asyncio.run(work())


def exit_in_loop() -> None:
    async def work() -> None:
        sys.exit("given up")

    asyncio.run(work())


def raise_exit_in_group() -> None:
    raise BaseExceptionGroup("given up", [ValueError("x"), SystemExit("y")])


LEAVES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "exits": (lambda: sys.exit("given up"), "SystemExit", "given up"),
    "exits with a number": (lambda: sys.exit(3), "SystemExit", "3"),
    "exits in a loop": (exit_in_loop, "SystemExit", "given up"),
    "is cancelled": (raise_cancelled, "CancelledError", "given up"),
    "exits in a group": (raise_exit_in_group, "BaseExceptionGroup", "given up (2 sub-exceptions)"),
}


@pytest.mark.parametrize("leaves", LEAVES)
def test_a_handler_that_raises_system_exit_has_failed(app: App, leaves: str) -> None:
    """What may pass is retried by the policy, and `sys.exit` is not. The record has type and message; the hook runs."""
    leave, kind, message = LEAVES[leaves]
    told = list[str]()

    def tell(_: Task, execution: Execution) -> None:
        told.append(execution.id)
        leave()

    @app.handler("work", retry=TWICE, on_failure=tell)
    def work() -> None:
        leave()

    execution = run(app, limit=MINUTE)
    assert execution.status == "FAILED"
    assert {each.status for each in execution.attempts} == {"FAILED"}
    assert len(execution.attempts) == (1 if kind == "SystemExit" else 2)
    assert execution.error
    assert execution.error.type == kind
    assert f"{kind}: {message}" in (execution.error.traceback or "")
    assert "leave()" in (execution.error.traceback or "")
    assert told == [execution.id]


@pytest.mark.parametrize("timeout", [None, MINUTE])
@pytest.mark.parametrize("leaves", [each for each in LEAVES if LEAVES[each][1] != "SystemExit"])
def test_a_step_that_is_cancelled_is_retried(app: App, leaves: str, timeout: timedelta | None) -> None:
    """The step is retried by its policy, or raises StepFailed; the handler's attempt continues."""
    leave, kind, message = LEAVES[leaves]
    tries, caught = list[int](), list[StepFailed]()

    @app.handler("work", retry=False)
    def work(ctx: Context) -> str:
        def exit_once() -> str:
            tries.append(1)
            if len(tries) == 1:
                leave()
            return "done"

        try:
            ctx.step("never", leave, retry=False, timeout=timeout)
        except StepFailed as error:
            caught.append(error)
        return str(ctx.step("flaky", exit_once, retry=TWICE, timeout=timeout))

    execution = run(app)
    assert (execution.status, execution.content) == ("SUCCEEDED", "done")
    assert len(execution.attempts) == 1
    assert [(step.name, step.status, step.attempts) for step in execution.steps] == [
        ("never", "FAILED", 1),
        ("flaky", "SUCCEEDED", 2),
    ]
    assert [str(each) for each in caught][:1] == [f"Step 'never' failed: {kind}: {message}"]


@pytest.mark.parametrize("where", ["creates", "runs"])
def test_a_payload_model_that_raises_system_exit_refuses_its_payload(sim: Simulation, app: App, where: str) -> None:
    """Neither the process that creates the task ends, nor the one that runs it."""
    is_strict = [where == "creates"]

    class Payload(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, n: int) -> int:
            return sys.exit("not this one") if is_strict[0] else n

    def work(payload: Payload) -> None:
        """Do nothing."""

    work.__annotations__["payload"] = Payload
    app.handler("work")(work)

    if where == "creates":
        with pytest.raises(InvalidPayload, match="not this one"):
            create(app, payload={"n": 1})
        return
    task = create(app, payload={"n": 1})
    is_strict[0] = True
    execution = run_to_end(sim, task)
    assert execution.error
    assert (execution.status, execution.error.type) == ("FAILED", "InvalidPayload")


def test_a_result_model_that_raises_system_exit_fails_the_attempt(app: App) -> None:
    """The result is treated as one that cannot be stored."""

    @app.handler("work")
    def work() -> Result:
        return Result()

    execution = run(app)
    assert execution.error
    assert (execution.status, execution.error.type) == ("FAILED", "InvalidInput")


class TimedOut(BaseException):
    """An error such as libraries raise for their time limits."""


RAISED = (KeyboardInterrupt, GeneratorExit, StopIteration, TimedOut, asyncio.CancelledError)
PLACES: dict[str, Callable[[Context, Callable[[], Any]], Any]] = {
    "handler": lambda _, leave: leave(),
    "step": lambda ctx, leave: ctx.step("leave", leave, retry=False),
    "thread of a step": lambda ctx, leave: ctx.step("leave", leave, retry=False, timeout=MINUTE),
    "child": lambda ctx, _: ctx.call("leave", retry=False).result(),
}
ASYNC_PLACES: dict[str, Callable[[AsyncContext, Callable[[], Any]], Any]] = {
    "handler": lambda _, leave: leave(),
    "step": lambda ctx, leave: ctx.step("leave", leave, retry=False),
    "child": lambda ctx, _: ctx.call("leave", retry=False),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", RAISED)
def test_whatever_is_raised_fails_with_its_name(app: App, kind: type[BaseException], place: str) -> None:
    """In the handler itself or in what it calls. The simulation goes on."""

    @app.handler("leave", retry=False)
    def leave() -> None:
        raise kind("given up")

    @app.handler("work", retry=False)
    def work(ctx: Context) -> object:
        return PLACES[place](ctx, leave)

    require_failed(run(app, limit=MINUTE), kind)


@pytest.mark.parametrize("place", ASYNC_PLACES)
@pytest.mark.parametrize("kind", [each for each in RAISED if each is not StopIteration])  # which Python replaces
def test_whatever_a_coroutine_raises_fails_with_its_name(app: App, kind: type[BaseException], place: str) -> None:
    """In the handler itself or in what it awaits."""

    @app.handler("leave", retry=False)
    async def leave() -> None:
        await asyncio.sleep(0)
        raise kind("given up")

    @app.handler("work", retry=False)
    async def work(ctx: AsyncContext) -> object:
        return await ASYNC_PLACES[place](ctx, leave)

    require_failed(run(app, limit=MINUTE), kind)


@pytest.mark.parametrize("kind", [each for each in RAISED if each is not StopIteration])  # which Python replaces
def test_whatever_a_dependency_raises_fails_with_its_name(app: App, kind: type[BaseException]) -> None:
    """When it is closed, after the handler."""

    def open_value() -> Iterator[int]:
        yield 1
        raise kind("given up")

    def work(value: Any) -> None: ...  # noqa: ANN401 - the dependency's

    work.__annotations__["value"] = Annotated[int, Depends(open_value)]
    app.handler("work", retry=False)(work)
    require_failed(run(app, limit=MINUTE), kind)


def require_failed(execution: Execution, kind: type[BaseException]) -> None:
    assert execution.error is not None
    assert (execution.status, len(execution.attempts)) == ("FAILED", 1)
    assert kind.__name__ in f"{execution.error.type}: {execution.error.message}"
    assert "given up" in execution.error.message


@pytest.mark.parametrize("kind", RAISED)
def test_a_hook_may_raise_whatever_it_does(app: App, kind: type[BaseException], caplog: Any) -> None:  # noqa: ANN401 - pytest's
    """It is logged, and changes nothing."""

    def tell(_: Task, __: Execution) -> None:
        raise kind

    @app.handler("work", retry=False, on_failure=tell)
    def work() -> None:
        raise kind

    assert run(app).status == "FAILED"
    assert "The on_failure hook failed" in caplog.text


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def press_ctrl_c_in_loop() -> None:
    async def work() -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(60)

    asyncio.run(work())


@pytest.mark.parametrize("is_step", [False, True])
@pytest.mark.parametrize("interrupt", [press_ctrl_c, press_ctrl_c_in_loop])
def test_a_real_ctrl_c_still_ends_the_process(app: App, interrupt: Callable[[], None], *, is_step: bool) -> None:
    """It arrives while a handler runs in the main thread, as in a simulation."""

    @app.handler("work")
    def work(ctx: Context) -> None:
        if is_step:
            ctx.step("wait", interrupt)
        else:
            interrupt()

    with pytest.raises(KeyboardInterrupt):
        run(app)


def test_a_signal_that_ends_a_server_s_process_ends_it(app: App) -> None:
    """Its handler raises SystemExit, wherever the main thread is."""

    def leave(_number: int, _frame: object) -> None:
        sys.exit(0)

    before = signal.signal(signal.SIGQUIT, leave)

    @app.handler("work")
    def work() -> None:
        signal.raise_signal(signal.SIGQUIT)

    try:
        with pytest.raises(SystemExit):
            run(app)
    finally:
        signal.signal(signal.SIGQUIT, before)
