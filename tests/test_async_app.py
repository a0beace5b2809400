"""The app's methods on an event loop: the same ones, and the loop goes on while they work."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from cloudsched import App, AsyncApp

METHODS = sorted(
    name for name, each in vars(AsyncApp).items() if inspect.iscoroutinefunction(each) and name in vars(App)
)
NOT_AWAITED = {
    *("handler", "on_failure", "mail_template", "dependency_overrides", "scheduled", "declared_tasks"),
    *("acting_with", "acting_for", "joining", "limit", "marked", "check", "to_draft", "read_draft"),
    *("face", "run_flow"),
    *("override", "close", "apply_declarations", "deliver", "sweep"),
}
"""What registers something, asks no store, or is done by what runs the app."""
NAME: ContextVar[str] = ContextVar("name", default="")


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - what it returns
    with asyncio.Runner() as runner:
        return runner.run(coroutine)


def test_each_method_that_asks_the_store_can_be_awaited() -> None:
    """With the same parameters; none is left out, and none is only here."""
    public = {name for name in vars(App) if not name.startswith("_")}
    assert set(METHODS) == public - NOT_AWAITED
    assert public >= NOT_AWAITED
    tasks = AsyncApp(App())
    for name in METHODS:
        own = list(inspect.signature(getattr(App, name)).parameters.values())[1:]
        assert list(inspect.signature(getattr(tasks, name)).parameters.values()) == own, name


@pytest.mark.parametrize("name", METHODS)
def test_the_loop_goes_on_while_a_method_works(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the method waits for is done by the loop: were it blocked, that would never come."""
    gate, seen = threading.Event(), []

    def work(_app: App, *arguments: object, **named: object) -> str:
        assert gate.wait(60), "the loop has stood still"
        seen.append((arguments, named, NAME.get()))
        return "done"

    async def call() -> object:
        NAME.set("of the caller")
        working = asyncio.ensure_future(getattr(AsyncApp(app), name)("a", b=1))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not working.done()
        gate.set()
        return await working

    app = App()
    monkeypatch.setattr(App, name, work)
    assert run(call()) == "done"
    assert seen == [(("a",), {"b": 1}, "of the caller")]
