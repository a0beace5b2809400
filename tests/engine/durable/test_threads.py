"""What other threads than a durable handler's own may ask of its context."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, run

from cloudsched import App, Context

ASKS: dict[str, Callable[[Context], object]] = {
    "step 's'": lambda ctx: ctx.step("s", lambda: 1),
    "call 'fine'": lambda ctx: ctx.call("fine"),
    "sleep": lambda ctx: ctx.sleep(DAY),
    "event 'go'": lambda ctx: ctx.wait_for("go"),
    "version 'v'": lambda ctx: ctx.version("v", 2),
    "now": lambda ctx: ctx.now(),
    "ctx.uuid()": lambda ctx: ctx.uuid(),
    "ctx.random": lambda ctx: ctx.random,
}


@pytest.fixture
def app(app: App) -> App:
    app.handler("fine")(lambda: "fine")
    return app


def run_in_thread(ask: Callable[[Context], object], ctx: Context) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask, ctx).result()


@pytest.mark.parametrize("ask", ASKS)
def test_durable_operations_are_refused_in_other_threads(app: App, ask: str) -> None:
    """It is refused at once, regardless of earlier operations, and leaves no journal entry."""

    def call(ctx: Context) -> object:
        ctx.step("before", lambda: 1)
        return run_in_thread(ASKS[ask], ctx)

    execution = run(app, call)
    assert (execution.status, len(execution.attempts)) == ("FAILED", 1)
    assert execution.error
    assert execution.error.message.startswith(f"{ask} is requested in another thread than the handler's own")
    assert "ctx.gather" in execution.error.message
    assert [each.name for each in execution.steps] == ["before"]


@pytest.mark.parametrize("timeout", [None, MINUTE])
def test_threads_of_a_step_may_use_what_the_step_may_use(app: App, timeout: timedelta | None) -> None:
    """Nothing is recorded there, and operations refused in the step are refused in its threads, too."""

    def inside(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
        for ask in ("now", "ctx.uuid()", "ctx.random"):
            run_in_thread(ASKS[ask], ctx)
        return run_in_thread(ASKS["step 's'"], ctx)

    execution = run(app, lambda ctx: ctx.step("outer", inside, ctx, timeout=timeout))
    assert execution.error
    assert "step 's' is requested in another thread" in execution.error.message
    assert [(each.name, each.attempts) for each in execution.steps] == [("outer", 1)]
