"""Misuse in durable handlers and steps: it raises an explanatory error, and the handler fails even if it catches it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, Create, register_work_handler, run, run_to_end

from cloudsched import App, Context
from cloudsched.engine.durable.durable_run import CallHandle
from cloudsched.errors import StepFailed, WorkflowError
from cloudsched.testing import START, Simulation

INSIDE: dict[str, tuple[Callable[[Context, CallHandle[Any]], object], str]] = {
    "step": (lambda ctx, _: ctx.step("inner", lambda: 1), "step 'inner'"),
    "call": (lambda ctx, _: ctx.call("fine"), "call 'fine'"),
    "result": (lambda _, handle: handle.result(), "call 'fine'"),
    "gather": (lambda ctx, call: ctx.gather(call, call), "call 'fine'"),
    "gather nothing": (lambda ctx, _: ctx.gather(), "call"),
    "sleep": (lambda ctx, _: ctx.sleep(DAY), "sleep"),
    "wait_for": (lambda ctx, _: ctx.wait_for("go"), "event 'go'"),
    "version": (lambda ctx, _: ctx.version("better", 2), "version 'better'"),
}


@pytest.mark.parametrize("limit", [None, HOUR])
@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("ask", INSIDE)
def test_durable_operations_are_refused_inside_a_step(
    app: App, ask: str, limit: timedelta | None, *, replay: bool
) -> None:
    """The step fails at once and for good: its function is not called again."""
    done, messages = list[object](), list[str]()

    app.handler("fine")(lambda: "fine")

    def call(ctx: Context) -> str:
        handle = ctx.call("fine")

        def inside() -> object:
            done.append(None)
            return INSIDE[ask][0](ctx, handle)

        try:
            ctx.step("outer", inside, retry=3, timeout=limit)
        except StepFailed as failure:
            messages.append(str(failure))
        ctx.sleep(DAY)
        return str(handle.result())

    execution = run(app, call, replay=replay)
    assert (execution.status, execution.content) == ("SUCCEEDED", "fine"), execution.error
    assert len(done) == 1
    expected = f"A step cannot contain other operations: move {INSIDE[ask][1]} out of it, into the handler."
    assert set(messages) == {f"Step 'outer' failed: WorkflowError: {expected}"}
    assert [step.kind for step in execution.steps] == ["CALL", "STEP", "SLEEP"]


@pytest.mark.parametrize("ask", INSIDE)
def test_a_suspended_handler_gets_no_more_results(app: App, ask: str) -> None:
    """Its finally block gets none either: its operations would take the position of the next ones in the journal."""
    began = list[object]()

    app.handler("fine")(lambda: "fine")

    def call(ctx: Context) -> str:
        began.append(None)
        handle = ctx.call("fine")
        try:
            ctx.sleep(DAY)
        finally:
            if len(began) == 1:
                INSIDE[ask][0](ctx, handle)
        ctx.step("after", lambda: 1)
        return "done"

    execution = run(app, call)
    assert execution.content == "done", execution.error
    assert [step.kind for step in execution.steps] == ["CALL", "SLEEP", "STEP"]


SWALLOWING: dict[str, Callable[[Context], object]] = {
    "and ends": lambda _: None,
    "and asks on": lambda ctx: ctx.sleep(DAY),
    "and takes a step": lambda ctx: ctx.step("another", lambda: 1),
    "and calls": lambda ctx: ctx.call("fine"),
    "and asks the time": lambda ctx: ctx.now(),
}


@pytest.mark.parametrize("then", SWALLOWING)
def test_a_diverging_replay_stops_even_if_the_mismatch_is_caught(app: App, then: str) -> None:
    began, effects = list[object](), list[str]()

    @app.handler("fine")
    def fine() -> None:
        effects.append("fine")

    def call(ctx: Context) -> str:
        began.append(None)
        try:
            ctx.step("first" if len(began) == 1 else "changed", effects.append, "first")
        except Exception:  # noqa: BLE001 - as a handler does that goes on without an unimportant step
            assert len(began) == 2
        if len(began) == 1:
            ctx.step("second", effects.append, "second")
            ctx.sleep(DAY)
        SWALLOWING[then](ctx)
        return "went on"

    execution = run(app, call)
    assert execution.error
    assert (execution.status, execution.error.type) == ("FAILED", "JournalMismatch")
    assert execution.error.message.startswith("Step 1 was step 'first' when it was recorded, and is step 'changed' now")
    assert effects == ["first", "second"]
    assert [step.name for step in execution.steps] == ["first", "second", ""]


SAID: dict[str, Callable[[Context], object]] = {
    "now": lambda ctx: ctx.now(),
    "uuid": lambda ctx: ctx.uuid(),
    "random": lambda ctx: ctx.random.random(),
    "step": lambda ctx: ctx.step("inner", lambda: 1),
    "call": lambda ctx: ctx.call("work"),
    "gather": lambda ctx: ctx.gather(),
    "sleep": lambda ctx: ctx.sleep(DAY),
    "version": lambda ctx: ctx.version("v", 2),
    "progress": lambda ctx: ctx.progress("late"),
    "heartbeat": lambda ctx: ctx.heartbeat(),
    "notify": lambda ctx: ctx.notify("Late", "x"),
    "used": lambda ctx: ctx.used(tokens=1000),
}


@pytest.mark.parametrize("during", ["the handler", "another step"])
@pytest.mark.parametrize("ask", SAID)
def test_a_timed_out_step_can_no_longer_report(
    app: App, sim: Simulation, create: Create, ask: str, during: str
) -> None:
    """Whatever it asks of its context stops it, and neither the journal nor the record knows of it."""
    goes_on, ended = threading.Event(), threading.Event()
    stopped = list[BaseException]()

    def outlast_timeout(ctx: Context) -> None:
        goes_on.wait()
        try:
            SAID[ask](ctx)
        except BaseException as error:
            stopped.append(error)
            raise
        finally:
            ended.set()

    def release_step() -> None:
        goes_on.set()
        assert ended.wait(60)

    def call(ctx: Context) -> Any:  # noqa: ANN401 - a number by chance
        with suppress(StepFailed):
            ctx.step("slow", outlast_timeout, ctx, timeout=timedelta(milliseconds=20), retry=False)
        if during == "the handler":
            release_step()
            ctx.step("next", lambda: 1)
        else:
            ctx.step("next", release_step)
        return ctx.random.random()

    register_work_handler(app, call)
    task = create()
    execution = run_to_end(sim, task)
    assert execution.status == "SUCCEEDED", execution.error
    assert [(step.number, step.name) for step in execution.steps] == [(1, "slow"), (2, "next")]
    assert (execution.tokens, execution.progress, sim.inbox("ada")) == (0, (), [])
    assert execution.finished_at == START
    (error,) = stopped
    assert isinstance(error, WorkflowError)
    assert "took longer than its timeout and was abandoned" in str(error)
