"""What a replay that only looks makes of handlers' code: async, with dependencies, stuck, or of an older version."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

import pytest
from tests.engine.code_check.test_changed_code import compare

from cloudsched import App, AsyncContext, Context, Depends, Schedule, Settings
from cloudsched.engine.code_check import rehearsal
from cloudsched.engine.code_check.compare import Cause, Report
from cloudsched.testing import START, Simulation

DAY = timedelta(days=1)


class Database:
    """What a handler depends on."""

    def save(self, text: str) -> str:
        return text


def open_database() -> Database:
    return Database()


def open_with_context(ctx: Context) -> Database:
    ctx.now()
    return Database()


def look_at(before: Callable[..., Any], after: Callable[..., Any]) -> Report:
    """Let a handler run until it waits, and compare that with another function in its place."""
    app, changed = App(Settings()), App(Settings())
    app.handler("work")(before)
    changed.handler("work")(after)
    with Simulation(app) as sim:
        app.create(owner="ada", title="Work", handler="work", schedule=Schedule.once(START))
        sim.run_until_idle(timedelta(minutes=5))
        (task,) = app.tasks().items
        assert task.runs[0].steps
        app.container.registry.replace_handlers(changed.container.registry)
        return compare(app, sim)


def test_an_async_handler_is_replayed() -> None:
    """In its own way: on the event loop, with awaited requests."""

    async def work(ctx: AsyncContext) -> None:
        await ctx.step("one", str, 1)
        await ctx.step("two", str, 2)
        await ctx.sleep(DAY)

    async def swapped(ctx: AsyncContext) -> None:
        await ctx.step("two", str, 2)
        await ctx.step("one", str, 1)

    assert not look_at(work, work).differences
    (found,) = look_at(work, swapped).differences
    assert found.cause is Cause.STEPS
    assert found.problem == "Step 1 was step 'one' when it was recorded, and is step 'two' now."


def test_a_dependency_may_be_handed_to_steps() -> None:
    """It is not opened. What is made of it between steps is not known, nor what it asks of the context itself."""

    def work(ctx: Context, db: Annotated[Database, Depends(open_database)]) -> None:
        ctx.step("save", db.save, "x")
        ctx.sleep(DAY)

    def uses_it(ctx: Context, db: Annotated[Database, Depends(open_database)]) -> None:
        if db.save("x"):
            ctx.step("save", db.save, "x")
        ctx.sleep(DAY)

    def asks(ctx: Context, db: Annotated[Database, Depends(open_with_context)]) -> None:
        ctx.step("save", db.save, "x")
        ctx.sleep(DAY)

    report = look_at(work, work)
    assert not report.differences
    assert not report.unknown
    for each in (uses_it, asks):
        report = look_at(each, each)
        assert not report.differences
        assert report.unknown


def test_code_that_does_not_end_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison goes on without it."""
    monkeypatch.setattr(rehearsal, "MAX_SECONDS", 0.05)
    never, is_over = threading.Event(), threading.Event()

    def work(ctx: Context) -> None:
        ctx.step("one", str, 1)
        ctx.step("two", str, 2)
        ctx.sleep(DAY)

    def stuck(ctx: Context) -> None:
        ctx.step("one", str, 1)
        never.wait()
        is_over.set()

    try:
        report = look_at(work, stuck)
    finally:
        never.set()
        assert is_over.wait(60)
    assert not report.differences
    assert any("did not end" in each for each in report.unknown)


def test_an_older_version_is_waited_for() -> None:
    """After a rollback the run waits for the code that it began with, and would wait for ever."""

    def make(newest: int) -> Callable[..., Any]:
        def work(ctx: Context) -> None:
            ctx.version("better", newest)
            ctx.step("one", str, 1)
            ctx.sleep(DAY)

        return work

    assert not look_at(make(2), make(3)).differences
    (found,) = look_at(make(2), make(1)).differences
    assert "waits for code with version 2" in found.problem


def test_a_handler_that_takes_no_context_any_more_would_fail() -> None:
    """It is not called to find that out."""

    def work(ctx: Context) -> None:
        ctx.step("one", str, 1)
        ctx.sleep(DAY)

    def plain() -> None:
        pytest.fail("it was called")

    (found,) = look_at(work, plain).differences
    assert found.cause is Cause.STEPS
