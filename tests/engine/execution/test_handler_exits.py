"""User code that raises SystemExit or another BaseException fails its attempt and ends no process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer, field_validator
from tests.engine.harness import create, run

from cloudsched import App, Context, Execution, RetryPolicy, Task
from cloudsched.errors import InvalidPayload, StepFailed
from cloudsched.testing import Simulation

SECOND = timedelta(seconds=1)
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

    execution = run(app, limit=timedelta(minutes=1))
    assert execution.status == "FAILED"
    assert {each.status for each in execution.attempts} == {"FAILED"}
    assert len(execution.attempts) == (1 if kind == "SystemExit" else 2)
    assert execution.error
    assert f"{kind}: {message}" in (execution.error.traceback or "")
    assert "leave()" in (execution.error.traceback or "")
    assert told == [execution.id]


@pytest.mark.parametrize("timeout", [None, timedelta(minutes=1)])
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
    sim.run_until_idle()
    (execution,) = sim.executions(task.id)
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


def test_ctrl_c_still_ends_the_process(app: App) -> None:
    """KeyboardInterrupt is not caught, so that a simulation can be stopped."""

    @app.handler("work")
    def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(app)
