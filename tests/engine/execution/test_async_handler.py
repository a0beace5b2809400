"""An async handler that blocks the event loop, and so all others, is named in the log."""

from __future__ import annotations

import pytest
from tests.engine.harness import run

from cloudsched import (
    App,
    AsyncContext,
)
from cloudsched.engine.execution import async_handler


@pytest.mark.parametrize(("seconds", "is_named"), [(8.0, True), (0.5, False)])
@pytest.mark.parametrize("fails", [False, True])
def test_the_handler_and_the_seconds_are_named(
    app: App,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    seconds: float,
    *,
    is_named: bool,
    fails: bool,
) -> None:
    """Whether it returns or raises, before or after it has awaited something."""
    now = [0.0]
    monkeypatch.setattr(async_handler, "monotonic", lambda: now[0])

    @app.handler("work", retry=0)
    async def work(ctx: AsyncContext) -> None:
        await ctx.step("first", int)
        now[0] += seconds  # as time.sleep would
        if fails:
            raise ValueError

    run(app)
    lines = [each.message for each in caplog.records if "blocked the event loop" in each.message]
    assert [line.startswith("handler 'work' blocked the event loop for 8.0 s") for line in lines] == [True] * is_named
