"""What a replay that only looks makes of handlers' code: async, with dependencies, stuck, or of an older version."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel
from tests.engine.code_check.test_compare import compare
from tests.engine.harness import DAY, MINUTE

from cloudsched import App, AsyncContext, Context, Depends, RetryPolicy, Schedule, Settings
from cloudsched.engine.code_check import rehearsal
from cloudsched.engine.code_check.compare import CodeReport, Mismatch
from cloudsched.testing import START, Simulation


class Database:
    """What a handler depends on."""

    def save(self, text: str) -> str:
        return text


def open_database() -> Database:
    return Database()


def open_with_context(ctx: Context) -> Database:
    ctx.now()
    return Database()


def look_at(before: Callable[..., Any], after: Callable[..., Any], **options: Any) -> CodeReport:
    """Let a handler run until it waits, and compare that with another function in its place."""
    app, changed = App(Settings()), App(Settings())
    app.handler("work", **options)(before)
    changed.handler("work", **options)(after)
    with Simulation(app) as sim:
        app.create(handler="work", schedule=Schedule.once(START))
        sim.advance(5 * MINUTE)
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
    assert found.cause is Mismatch.STEPS
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


def test_a_step_that_waits_to_be_tried_again_is_not_tried() -> None:
    """Not even if it is overdue, as while its task is paused."""
    tries = list[int]()

    def fail() -> None:
        tries.append(1)
        raise ValueError("not yet")

    def work(ctx: Context) -> None:
        ctx.step("one", str, 1)
        ctx.step("two", fail, retry=RetryPolicy(max_retries=5, first_delay=10 * MINUTE))

    app = App(Settings())
    app.handler("work")(work)
    with Simulation(app) as sim:
        task = app.create(handler="work", schedule=Schedule.once(START))
        sim.advance(MINUTE)
        app.pause(task.id)
        sim.advance(DAY)
        before = len(tries)
        report = compare(app, sim)
    assert before
    assert len(tries) == before
    assert (report.runs, report.differences, report.unknown) == (1, {}, {})


def test_nothing_runs_after_the_last_entry() -> None:
    """What follows it is for the run itself to do."""
    done = list[int]()

    def work(ctx: Context) -> None:
        ctx.step("one", str, 1)
        raise ValueError("the run is to be tried again")

    def changed(ctx: Context) -> None:
        ctx.step("one", str, 1)
        done.append(1)

    report = look_at(work, changed, retry=RetryPolicy(max_retries=5, first_delay=DAY))
    assert (report.runs, report.differences, report.unknown) == (1, {}, {})
    assert not done


def test_a_taken_event_that_the_new_model_refuses_would_fail() -> None:
    """The journal has what was sent; the handler reads it anew in each replay."""

    class Decision(BaseModel):
        is_ok: bool

    class Stricter(Decision):
        by: str

    def make(model: type[Decision]) -> Callable[..., Any]:
        def work(ctx: Context) -> None:
            ctx.step("one", str, 1)
            ctx.wait_for("decision", model)
            raise ValueError("the run is to be tried again")

        return work

    reports = []
    for model in (Decision, Stricter):
        app, changed = App(Settings()), App(Settings())
        again = RetryPolicy(max_retries=5, first_delay=DAY)
        app.handler("work", events={"decision": Decision}, retry=again)(make(Decision))
        changed.handler("work", events={"decision": model}, retry=again)(make(model))
        with Simulation(app) as sim:
            task = app.create(handler="work", schedule=Schedule.once(START))
            sim.advance(MINUTE)
            app.send_event(task.id, "decision", {"is_ok": True})
            sim.advance(MINUTE)
            app.container.registry.replace_handlers(changed.container.registry)
            reports.append(compare(app, sim))
    same, stricter = reports
    assert not same.differences
    (found,) = stricter.differences
    assert found.cause is Mismatch.STEPS
    assert "by" in found.problem
