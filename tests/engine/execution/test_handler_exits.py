"""Code that wants to end more than itself: its attempt has failed, and nothing else."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, field_serializer, field_validator
from tests.engine.harness import create, run

from cloudsched import App, Context, RetryPolicy, Settings
from cloudsched.errors import InvalidPayload, StepFailed
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched import Execution, Task

SECOND = timedelta(seconds=1)
TWICE = RetryPolicy(max_retries=1, first_delay=SECOND)


class Result(BaseModel):
    n: int = 1

    @field_serializer("n")
    def dump(self, _: int) -> int:
        sys.exit("no")


def cancelled() -> None:
    async def work() -> None:
        raise asyncio.CancelledError("given up")

    asyncio.run(work())


def exits_in_a_loop() -> None:
    async def work() -> None:
        sys.exit("given up")

    asyncio.run(work())


def exits_in_a_group() -> None:
    raise BaseExceptionGroup("given up", [ValueError("x"), SystemExit("y")])


LEAVES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "exits": (lambda: sys.exit("given up"), "SystemExit", "given up"),
    "exits with a number": (lambda: sys.exit(3), "SystemExit", "3"),
    "exits in a loop": (exits_in_a_loop, "SystemExit", "given up"),
    "is cancelled": (cancelled, "CancelledError", "given up"),
    "exits in a group": (exits_in_a_group, "BaseExceptionGroup", "given up (2 sub-exceptions)"),
}


@pytest.fixture
def app() -> App:
    return App(Settings())


@pytest.mark.parametrize("leaves", LEAVES)
def test_a_handler_that_raises_system_exit_has_failed(app: App, leaves: str) -> None:
    """At once and under its policy, with its type and what it says; its hook is told."""
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
    assert [(each.number, each.status) for each in execution.attempts] == [(1, "FAILED"), (2, "FAILED")]
    assert execution.error
    assert (execution.error.type, execution.error.message) == (kind, message)
    assert "leave()" in (execution.error.traceback or "")
    assert told == [execution.id]


def test_such_an_end_is_not_tried_again_where_only_others_are(app: App) -> None:
    @app.handler("work", retry=TWICE, retry_on=ConnectionError)
    def work() -> None:
        sys.exit("given up")

    assert len(run(app).attempts) == 1


@pytest.mark.parametrize("timeout", [None, timedelta(minutes=1)])
@pytest.mark.parametrize("leaves", LEAVES)
def test_a_step_that_wants_to_end_more_than_itself_is_tried_again(
    app: App, leaves: str, timeout: timedelta | None
) -> None:
    leave, kind, message = LEAVES[leaves]
    tries, caught = list[int](), list[StepFailed]()

    @app.handler("work", retry=False)
    def work(ctx: Context) -> str:
        def once() -> str:
            tries.append(1)
            if len(tries) == 1:
                leave()
            return "done"

        try:
            ctx.step("never", leave, retry=False, timeout=timeout)
        except StepFailed as error:
            caught.append(error)
        return str(ctx.step("flaky", once, retry=TWICE, timeout=timeout))

    execution = run(app)
    assert (execution.status, execution.content) == ("SUCCEEDED", "done")
    assert len(execution.attempts) == 1
    assert [(step.name, step.status, step.attempts) for step in execution.steps] == [
        ("never", "FAILED", 1),
        ("flaky", "SUCCEEDED", 2),
    ]
    assert [str(each) for each in caught][:1] == [f"Step 'never' failed: {kind}: {message}"]


def test_what_is_not_caught_of_a_step_is_what_a_retry_does_again(app: App) -> None:
    @app.handler("work", retry=False)
    def work(ctx: Context) -> None:
        ctx.step("never", sys.exit, "given up", retry=False)

    execution = run(app)
    assert execution.failure_cause
    assert execution.failure_cause.steps == (1,)


@pytest.mark.parametrize("where", ["creates", "runs"])
def test_a_model_that_wants_to_end_more_than_itself_refuses_its_payload(app: App, where: str) -> None:
    """Nobody's process ends for it: neither that of who creates the task, nor that of who runs it."""
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

    with Simulation(app) as sim:
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


def test_a_result_that_wants_to_end_more_than_itself_cannot_be_kept(app: App) -> None:
    @app.handler("work")
    def work() -> Result:
        return Result()

    execution = run(app)
    assert execution.error
    assert (execution.status, execution.error.type) == ("FAILED", "InvalidInput")


def test_ctrl_c_still_ends_the_process(app: App) -> None:
    """Whoever runs a simulation can stop it."""

    @app.handler("work")
    def work() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(app)
