"""An operation that is not awaited does nothing: the run fails, and says what to write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.durable.test_call_handle import MISUSES
from tests.engine.harness import DAY, run

from cloudsched import (
    App,
    AsyncContext,
)
from cloudsched.domain.documents.execution import ExecutionStatus

OPERATIONS: dict[str, Callable[[AsyncContext], Any]] = {
    "ctx.step('charge')": lambda ctx: ctx.step("charge", int),
    "ctx.sleep(…)": lambda ctx: ctx.sleep(DAY),
    "ctx.wait_for('approved')": lambda ctx: ctx.wait_for("approved"),
    "ctx.gather()": lambda ctx: ctx.gather(),
    "ctx.race(…)": lambda ctx: ctx.race(ctx.call("work")),
    "ctx.progress('half')": lambda ctx: ctx.progress("half"),
    "ctx.heartbeat()": lambda ctx: ctx.heartbeat(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_run_fails_and_names_what_was_not_awaited(app: App, name: str) -> None:
    """For good: a retry would forget it again."""

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> str:
        OPERATIONS[name](ctx)
        return "done"

    record = run(app)
    assert record.status is ExecutionStatus.FAILED
    assert len(record.attempts) == 1
    assert record.error is not None
    assert f"never awaited {name}, so it did nothing. Write: await {name}" in record.error.message


@pytest.mark.parametrize("misuse", MISUSES)
def test_it_is_no_value(app: App, misuse: str) -> None:
    """Above all it is not true: an approval that nobody gave."""

    @app.handler("work", retry=0)
    async def work(ctx: AsyncContext) -> None:
        MISUSES[misuse](ctx.wait_for("approved"))

    record = run(app)
    assert record.status is ExecutionStatus.FAILED
    assert record.error is not None
    assert "Write: await ctx.wait_for('approved')" in record.error.message


def test_a_task_may_await_it(app: App) -> None:
    """As any coroutine: in a task, in a task group, later, or in place of the handler's result."""

    @app.handler("work")
    async def work(ctx: AsyncContext) -> object:
        later = ctx.step("one", lambda: 1)
        found = [await asyncio.create_task(ctx.step("two", lambda: 2)), await later]
        async with asyncio.TaskGroup() as group:
            third = group.create_task(ctx.step("three", lambda: 3))
        return ctx.step("all", lambda: [*found, third.result()])

    assert run(app).content == [2, 1, 3]
