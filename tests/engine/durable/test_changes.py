"""Changes that a durable handler makes with an app or a client: in a step, or refused before they are made twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Annotated, Any

import pytest
from sqlalchemy import create_engine
from tests.engine.harness import DAY, HOUR, only_run, register_work_handler, run

from cloudsched import App, AsyncApp, AsyncContext, Context, Depends, Execution, TaskDraft
from cloudsched.client import AsyncClient, Client
from cloudsched.domain.responses.api_responses import Decision, DraftResult
from cloudsched.errors import NotFound
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox
from cloudsched.testing import START, Simulation

OTHER = "other"
"""A task that the handler changes."""
CHANGES: dict[str, tuple[Any, ...]] = {
    "create": (TaskDraft(handler="fine"),),
    "run_now": ("fine",),
    "put": (TaskDraft(handler="fine"),),
    "put_content": ({"handler": "fine"},),
    "update": (OTHER,),
    "patch": (OTHER, {"title": "Changed"}),
    "pause": (OTHER,),
    "resume": (OTHER,),
    "cancel": (OTHER,),
    "cancel_run": (OTHER, "none"),
    "delete": (OTHER,),
    "trigger": (OTHER,),
    "snooze": (OTHER,),
    "skip": (OTHER,),
    "move": (OTHER, "next", "17:20"),
    "put_by_key": ({"handler": "fine"}, ["key"]),
    "retry": (OTHER,),
    "backfill": (OTHER, START - DAY, START),
    "put_person": ("ada",),
    "update_person": ("ada",),
    "send_event": (OTHER, "go"),
    "confirm": (DraftResult(decision=Decision.CREATION),),
}
READS: dict[str, tuple[Any, ...]] = {
    "get": (OTHER,),
    "person": ("ada",),
    "tasks": (),
    "upcoming": (OTHER,),
    "executions": (OTHER,),
    "find_executions": (),
    "execution": (OTHER, "none"),
    "deliveries": (OTHER, "none"),
    "tree": (OTHER,),
    "inbox": ("ada",),
    "draft": ("remind me tomorrow at 9",),
}
NAMED: dict[str, dict[str, Any]] = {"draft": {"timezone": "UTC"}}
METHODS = {name for name, value in vars(AsyncApp).items() if iscoroutinefunction(value) and name in vars(App)}


def observe(app: App, call: Callable[[Context], Any], *, replay: bool = False) -> tuple[Execution, int]:
    """Run a handler beside another task, and return its record and what has been made or changed beside it."""
    app.handler("fine")(lambda: "fine")
    register_work_handler(app, call)
    with Simulation(app, replay=replay) as sim:
        other = app.create(id=OTHER, handler="fine", schedule=START + 300 * DAY)
        task = app.create(handler="work", schedule=START)
        sim.advance_to(START + 30 * DAY)
        found = {each.id: each for each in app.tasks().items if each.id != task.id}
        execution = only_run(sim, task)
        made = len(found.keys() - {OTHER}) + (found.get(OTHER) != other)
        return app.execution(task.id, execution.id), made


def open_session() -> str:
    """Stand for a dependency."""
    raise NotImplementedError


def wait(ctx: Context) -> None:
    ctx.sleep(DAY)


def test_each_method_is_known_to_change_something_or_nothing() -> None:
    """A new method of the app needs a row above: whether replays may repeat it."""
    assert {*CHANGES, *READS} == METHODS


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_durable_handler_changes_nothing_outside_of_a_step(app: App, name: str, *, replay: bool) -> None:
    """The run fails at once, with the line to write, and nothing is changed."""

    def call(ctx: Context) -> None:
        wait(ctx)
        getattr(app, name)(*CHANGES[name])

    execution, made = observe(app, call, replay=replay)
    assert (execution.status, made) == ("FAILED", 0)
    assert len(execution.attempts) == 1
    assert f"ctx.step({name!r}, app.{name}, …)" in str(execution.error)


@pytest.mark.parametrize("replay", [False, True])
def test_a_change_before_the_first_wait_is_made_once(app: App, *, replay: bool) -> None:
    """The handler is not known to be durable then. It fails where it would be replayed, although it catches that."""

    def call(ctx: Context) -> None:
        app.create(handler="fine")
        for _ in range(2):
            try:
                wait(ctx)
            except Exception as error:  # noqa: BLE001 - as a handler that catches too much
                caught = error
        raise caught

    execution, made = observe(app, call, replay=replay)
    assert (execution.status, made) == ("FAILED", 1)
    assert "ctx.step('create', app.create, …)" in str(execution.error)


@pytest.mark.parametrize("name", READS)
def test_a_durable_handler_may_read(app: App, name: str) -> None:
    """Reading changes nothing, however often a replay does it."""

    def call(ctx: Context) -> str:
        wait(ctx)
        try:
            getattr(app, name)(*READS[name], **NAMED.get(name, {}))
        except NotFound:
            return "nothing there"
        wait(ctx)
        return "read"

    assert observe(app, call)[0].status == "SUCCEEDED"


@pytest.mark.parametrize("limit", [None, HOUR])
@pytest.mark.parametrize("replay", [False, True])
def test_a_step_makes_a_change_once(app: App, limit: timedelta | None, *, replay: bool) -> None:
    """As often as the handler is replayed, in its own thread or in that of a step with a timeout."""

    def call(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
        wait(ctx)
        made = ctx.step("create", app.create, timeout=limit, handler="fine", title="Tea")
        wait(ctx)
        return made

    execution, made = observe(app, call, replay=replay)
    assert (execution.status, made) == ("SUCCEEDED", 1), execution.error
    assert isinstance(execution.content, dict)
    assert execution.content["title"] == "Tea"


def test_a_handler_that_is_not_durable_may_change_what_it_likes(app: App) -> None:
    """It is never replayed. Time, UUIDs and messages alone make none durable."""

    def call(ctx: Context) -> str:
        ctx.now()
        app.create(handler="fine", title=str(ctx.uuid()))
        ctx.notify("Made", "one")
        return "made"

    execution, made = observe(app, call)
    assert (execution.status, made) == ("SUCCEEDED", 1), execution.error


@pytest.mark.parametrize("in_step", [False, True])
def test_an_async_handler_changes_something_only_in_a_step(app: App, *, in_step: bool) -> None:
    """Through `AsyncApp`, whose methods run in threads."""
    app.handler("fine")(lambda: "fine")

    @app.handler("work")
    async def work(ctx: AsyncContext) -> None:
        tasks = AsyncApp(app)
        await ctx.sleep(DAY)
        if in_step:
            await ctx.step("create", tasks.create, handler="fine")
        else:
            await asyncio.gather(tasks.create(handler="fine"), return_exceptions=False)
        await ctx.sleep(DAY)

    with Simulation(app) as sim:
        task = app.create(handler="work", schedule=START)
        sim.advance_to(START + 30 * DAY)
        execution = only_run(sim, task)
        made = len(app.tasks().items) - 1
    assert (execution.status, made) == (("SUCCEEDED", 1) if in_step else ("FAILED", 0)), execution.error


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_durable_handler_asks_a_client_for_changes_in_a_step(app: App, kind: type[Client | AsyncClient]) -> None:
    """Over HTTP, too. Nothing is sent: there is no server here to answer."""

    def call(ctx: Context) -> object:
        wait(ctx)
        client = kind("http://127.0.0.1:9", key="none")
        made = client.create(handler="fine")
        return asyncio.run(made) if kind is AsyncClient else made  # type: ignore[arg-type]  # the type says so

    execution = run(app, call)
    assert (execution.status, len(execution.attempts)) == ("FAILED", 1)
    assert "ctx.step('create', client.create, …)" in str(execution.error)


def test_a_dependency_of_a_durable_handler_changes_nothing(app: App) -> None:
    """It is opened anew for each replay."""
    app.handler("fine")(lambda: "fine")
    app.dependency_overrides[open_session] = lambda: app.create(handler="fine").id

    @app.handler("work")
    def work(ctx: Context, *, session: Annotated[str, Depends(open_session)]) -> str:
        ctx.sleep(DAY)
        return session

    with Simulation(app) as sim:
        task = app.create(handler="work", schedule=START)
        sim.advance_to(START + 30 * DAY)
        execution = only_run(sim, task)
        made = len(app.tasks().items) - 1
    assert (execution.status, made) == ("FAILED", 1)


@pytest.mark.parametrize("name", ["create", "cancel"])
def test_a_durable_handler_writes_rows_of_an_outbox_in_a_step(app: App, name: str) -> None:
    """A row is a change, too: a replay would write another one."""
    engine = create_engine("sqlite://")
    outbox = SqlalchemyOutbox(engine, app)
    outbox.create_table()

    def call(ctx: Context) -> None:
        wait(ctx)
        with engine.begin() as connection:
            if name == "create":
                outbox.create(connection, handler="fine")
            else:
                outbox.cancel(connection, OTHER)

    execution, _ = observe(app, call)
    assert execution.status == "FAILED"
    assert f"ctx.step({name!r}, outbox.{name}, …)" in str(execution.error)
    assert not outbox.rows("PENDING")
