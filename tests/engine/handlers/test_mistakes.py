"""Mistakes in a handler that look right: each fails at once, without a retry, and says what to write instead."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import pytest
from tests.engine.harness import HOUR, run

from cloudsched import App, AsyncApp, AsyncContext, Cancel, Context, Done, Fail, Retry, Snooze
from cloudsched.client import AsyncClient, Client
from cloudsched.errors import Unavailable
from cloudsched.testing import Simulation

Any_Context = Any
"""A context of one kind or the other."""


def raise_outcome(outcome: object) -> NoReturn:
    raise outcome  # type: ignore[misc]  # the mistake


def forget(make: Callable[[], object]) -> Callable[[Any_Context], None]:
    """Return a handler whose line lacks its `return`."""

    def call(_: Any_Context) -> None:
        make()

    return call


def raises(make: Callable[[], object]) -> Callable[[Any_Context], object]:
    return lambda _: raise_outcome(make())


OUTCOMES: dict[str, Callable[[], object]] = {
    "retry": lambda: Retry("later"),
    "snooze": lambda: Snooze(HOUR),
    "fail": lambda: Fail("never"),
    "cancel": lambda: Cancel("nothing to do"),
}
MISTAKES: dict[str, tuple[Callable[[Any_Context], object], str]] = {
    **{f"{name} is made": (forget(make), "return ") for name, make in OUTCOMES.items()},
    **{f"{name} is raised": (raises(make), "return ") for name, make in OUTCOMES.items()},
    "retry is made before a result": (lambda _: [Retry("later"), "sent"][1], "return Retry("),
    "done is made": (forget(lambda: Done("x")), "return Done("),
    "a class is raised": (lambda _: raise_outcome(Retry), "return Retry("),
    "a method is returned": (lambda ctx: ctx.call("fine").result, "call.result()"),
    "a method in a result": (lambda ctx: {"is": ctx.call("fine").result}, "call.result()"),
    "a method in a text": (lambda ctx: f"{ctx.call('fine').result}", "call.result()"),
    "a method in a sum": (lambda ctx: ctx.call("fine").result + 1, "call.result()"),
    "a method in a condition": (lambda ctx: "yes" if ctx.call("fine").result else "no", "call.result()"),
    "a method in a payload": (lambda ctx: ctx.call("fine", {"n": ctx.call("fine").result}), "call.result()"),
    "a call in a result": (lambda ctx: {"is": ctx.call("fine")}, "call.result()"),
    "an unknown handler is called": (lambda ctx: ctx.call("fien"), "Did you mean 'fine'?"),
    "it exits": (lambda _: sys.exit(3), "Fail(…)"),
}


def register(app: App, call: Callable[[Any_Context], object], *, is_async: bool) -> None:
    app.handler("fine")(lambda: 1)
    if is_async:

        @app.handler("work", retry=3)
        async def work_async(ctx: AsyncContext) -> object:
            return call(ctx)

        return

    @app.handler("work", retry=3)
    def work(ctx: Context) -> object:
        return call(ctx)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_fails_the_run_at_once_with_its_cure(app: App, mistake: str, *, is_async: bool) -> None:
    """Plain or async, durable or not: retries would only do the same."""
    call, cure = MISTAKES[mistake]
    register(app, call, is_async=is_async)
    execution = run(app)
    assert (execution.status, len(execution.attempts)) == ("FAILED", 1)
    assert execution.error is not None
    assert cure in execution.error.message


def test_the_line_of_a_forgotten_return_is_told(app: App) -> None:
    """By its file and number, also if a function of the handler's module has made the outcome."""

    def later() -> None:
        Retry("later")

    line = later.__code__.co_firstlineno + 1
    register(app, lambda _: later(), is_async=False)
    assert f"{__file__}:{line}" in str(run(app).error)


RIGHT: dict[str, Callable[[Any_Context], object]] = {
    "the second of two": lambda _: [Retry("no"), Done("right")][1],
    "another handler's content": lambda _: Done("right").content,
    "its result": lambda ctx: [ctx.call("say").result(), "right"][1],
}


@pytest.mark.parametrize("way", RIGHT)
def test_an_outcome_may_be_made_on_the_way_to_another(app: App, way: str) -> None:
    """What is returned counts, and a Done may be made for its content."""
    app.handler("say")(lambda: "right")
    register(app, RIGHT[way], is_async=False)
    assert run(app).content == "right"


STEP_MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "returns an outcome": (lambda: Retry("later"), "Return it from the handler"),
    "raises an outcome": (lambda: raise_outcome(Retry("later")), "return Retry("),
    "exits": (lambda: sys.exit(3), "sys.exit(3)"),
}


@pytest.mark.parametrize("mistake", STEP_MISTAKES)
def test_a_mistake_in_a_step_is_not_tried_again(app: App, mistake: str) -> None:
    """Whatever the step's policy is."""
    call, cure = STEP_MISTAKES[mistake]
    done = list[object]()

    def step() -> object:
        done.append(None)
        return call()

    execution = run(app, lambda ctx: ctx.step("one", step, retry=3))
    assert (execution.status, len(done)) == ("FAILED", 1)
    assert cure in str(execution.error)


@pytest.mark.parametrize("kind", ["create", "get", "handle"])
def test_a_blocking_method_on_an_event_loop_warns_at_the_line(app: App, kind: str) -> None:
    """In a route or an async handler, of the app or of a handler's function, with what is awaited instead."""

    @app.handler("fine")
    def fine() -> None: ...

    async def route() -> None:
        task = await AsyncApp(app).create(handler="fine")
        if kind == "create":
            app.create(handler="fine")
        elif kind == "get":
            app.get(task.id)
        else:
            fine.create()

    with Simulation(app), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(route())
    (one,) = warned
    assert one.filename == __file__
    assert f"await AsyncApp(app).{'get' if kind == 'get' else 'create'}(…)" in str(one.message)


def test_a_blocking_client_on_an_event_loop_warns_and_an_async_one_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nobody here to answer either."""
    monkeypatch.setattr("cloudsched.client.connection.FIRST_PAUSE", 0.0)

    async def ask(client: Client | AsyncClient) -> None:
        answer = client.get("none")
        if isinstance(answer, Awaitable):
            await answer

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for kind in (Client, AsyncClient):
            with pytest.raises(Unavailable):
                asyncio.run(ask(kind("http://127.0.0.1:9", key="none", timeout=0.1)))
    (one,) = warned
    assert one.filename == __file__
    assert "AsyncClient" in str(one.message)
