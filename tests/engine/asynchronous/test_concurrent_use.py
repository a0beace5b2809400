"""The order of a handler's operations is the journal's key: those that are awaited together are made in turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, create, run, run_to_end

from cloudsched import App, AsyncContext
from cloudsched.domain.documents.journal import StepKind
from cloudsched.engine.handlers.operation_turns import LATECOMER_SECONDS, OperationTurns
from cloudsched.errors import EventTimedOut, WorkflowError
from cloudsched.testing import Simulation


async def nothing() -> None:
    pass


ASKS: dict[str, tuple[Callable[[AsyncContext], Any], str]] = {
    "call": (lambda ctx: ctx.call("child"), "ctx.call('child')"),
    "now": (lambda ctx: ctx.now(), "ctx.now()"),
    "uuid": (lambda ctx: ctx.uuid(), "ctx.uuid()"),
    "random": (lambda ctx: ctx.random, "ctx.random"),
    "version": (lambda ctx: ctx.version("v", 2), "ctx.version('v')"),
}


async def ask(ctx: AsyncContext, name: str) -> None:
    ASKS[name][0](ctx)


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("swallowed", [False, True])
@pytest.mark.parametrize("name", ASKS)
def test_what_is_not_awaited_is_refused_during_an_operation(
    app: App, name: str, *, swallowed: bool, replay: bool
) -> None:
    """By name, for good (no retry helps), and even if the handler swallows the refusal."""
    app.handler("child")(lambda: None)

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> str:
        if ctx.attempt > 1:
            return "was retried"
        await asyncio.gather(ctx.step("first", nothing), ask(ctx, name), return_exceptions=swallowed)
        return "went on"

    execution = run(app, replay=replay)
    assert execution.status == "FAILED"
    assert execution.error is not None
    assert execution.error.type == "WorkflowError"
    expected = f"{ASKS[name][1]} is requested while ctx.step('first') is in progress. The journal records the order"
    assert execution.error.message.startswith(expected)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("replay", [False, True])
def test_concurrent_operations_are_made_once_and_in_turn(app: App, seed: int, *, replay: bool) -> None:
    """However long the code between them takes in a replay, each gets its own result again."""
    random = Random(seed)  # noqa: S311 - the same plan each time
    chance = Random(-seed)  # noqa: S311 - other pauses in each attempt
    made = list[str]()
    in_progress = set[str]()

    async def make(name: str) -> str:
        assert not in_progress
        in_progress.add(name)
        await asyncio.sleep(chance.choice([0, 0.001]))
        in_progress.remove(name)
        made.append(name)
        return name

    async def make_all(ctx: AsyncContext, plan: list[Any], path: str = "") -> list[Any]:
        """Make a sequence of operations, and of plans that run side by side."""
        found: list[Any] = []
        for number, each in enumerate(plan):
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            name = f"{path}{number}"
            if isinstance(each, list):
                parts = (make_all(ctx, part, f"{name}{letter}") for letter, part in zip("abc", each, strict=False))
                found.append(await asyncio.gather(*parts))
            elif each == "sleep":
                await ctx.sleep(HOUR)
            elif each == "wait":
                with pytest.raises(EventTimedOut):
                    await ctx.wait_for(name, timeout=HOUR)
            else:
                found.append(await ctx.step(name, make, name))
        return found

    def write_plan(depth: int) -> list[Any]:
        kinds = ["step", "step", "sleep", "wait", *(["parts"] if depth else [])]
        chosen = ["step", *random.choices(kinds, k=random.randrange(1, 4))]
        return [[write_plan(depth - 1) for _ in range(3)] if each == "parts" else each for each in chosen]

    plan = ["step", [write_plan(1) for _ in range(3)], "step"]

    @app.handler("work", retry=False)
    async def work(ctx: AsyncContext) -> list[Any]:
        return await make_all(ctx, plan)

    execution = run(app, replay=replay)
    assert execution.status == "SUCCEEDED", execution.error
    steps = [each.name for each in execution.steps if each.kind == "STEP"]
    assert made == steps
    assert len(set(made)) == len(made)
    assert sorted(_flatten(execution.content)) == sorted(made)


def _flatten(found: Any) -> Iterator[str]:  # noqa: ANN401 - lists in lists
    if isinstance(found, str):
        yield found
        return
    for each in found:
        yield from _flatten(each)


def test_a_task_group_awaits_steps_in_turn(app: App) -> None:
    """Each of them has its own result."""

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ctx.step(each, str.upper, each)) for each in "abc"]
        return [each.result() for each in tasks]

    assert run(app).content == ["A", "B", "C"]


@pytest.mark.parametrize("replay", [False, True])
def test_a_step_that_fails_beside_others_leaves_them_their_turn(app: App, *, replay: bool) -> None:
    """Its error is the handler's to catch. Those that were queued behind it are made."""

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> list[str]:
        steps = [ctx.step(each, int, each, retry=False) for each in ("1", "two", "3")]
        found = await asyncio.gather(*steps, return_exceptions=True)
        return [str(each) if isinstance(each, int) else type(each).__name__ for each in found]

    assert run(app, replay=replay).content == ["1", "StepFailed", "3"]


@pytest.mark.parametrize("replay", [False, True])
def test_an_operation_that_is_cancelled_in_the_queue_never_begins(app: App, *, replay: bool) -> None:
    """Those behind it move up."""

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> list[object]:
        first, second, third = (asyncio.ensure_future(ctx.step(each, str, each)) for each in "abc")
        await asyncio.sleep(0)
        second.cancel()
        return [await first, await third, second.cancelled()]

    execution = run(app, replay=replay)
    assert execution.content == ["a", "c", True]
    assert [each.name for each in execution.steps] == ["a", "c"]


def test_each_operation_has_the_whole_time_to_come() -> None:
    """However long those before it were awaited: it is not taken for another one too early."""
    journal = [(StepKind.STEP, each) for each in "ab"]
    turns = OperationTurns(lambda: journal[0] if journal else None)
    begun = list[str]()

    async def make(name: str, after: float) -> None:
        await asyncio.sleep(after * LATECOMER_SECONDS)
        await turns.take(name, (StepKind.STEP, name))
        begun.append(name)
        del journal[:1]
        turns.give_back()

    async def make_all() -> None:
        other = asyncio.create_task(make("other", 0))  # waits for both of them
        await asyncio.gather(make("a", 0.6), make("b", 1.4))
        await other

    loop = _QuickLoop()
    try:
        loop.run_until_complete(make_all())
    finally:
        loop.close()
    assert begun == ["a", "b", "other"]


class _QuickLoop(asyncio.SelectorEventLoop):
    """A loop on which nobody waits: its clock goes to the next timer at once."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        selector: Any = vars(self)["_selector"]
        select = selector.select

        def go_on(timeout: float | None) -> Any:  # noqa: ANN401 - of the selector
            self._now += timeout or 0.0
            return select(0)

        selector.select = go_on

    def time(self) -> float:
        return self._now


@pytest.mark.parametrize("replay", [False, True])
def test_code_that_asks_for_something_else_beside_others_is_told(app: App, *, replay: bool) -> None:
    """The journal's next operation is awaited for a moment only."""
    names = ["a", "b"]

    @app.handler("work", retry=False)
    async def work(ctx: AsyncContext) -> None:
        await asyncio.gather(*(ctx.step(each, nothing) for each in names))
        await ctx.sleep(DAY)

    with Simulation(app, replay=replay) as sim:
        task = create(app)
        sim.advance(HOUR)
        names[:] = ["a", "other"]
        execution = run_to_end(sim, task, 3 * DAY)
    assert execution.error is not None
    assert execution.error.type == "JournalMismatch"


@pytest.mark.parametrize("replay", [False, True])
def test_a_task_group_beside_one_operation_is_allowed(app: App, *, replay: bool) -> None:
    """A suspension passes through the group; what runs beside the operation is the handler's own matter."""
    beside = list[str]()

    async def work_beside() -> None:
        await asyncio.sleep(0)
        beside.append("x")

    @app.handler("work", retry=False)
    async def work(ctx: AsyncContext) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(work_beside())
            await ctx.sleep(DAY)
            return "slept"

    assert run(app, replay=replay).content == "slept"
    assert beside


def test_an_operation_left_behind_is_refused(app: App) -> None:
    """A handler that returns before its step has ended would lose that step."""
    has_returned = threading.Event()

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> str:
        tasks.append(asyncio.create_task(ctx.step("left", has_returned.wait, 30)))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, has_returned.set)
        return "done"

    tasks = list[asyncio.Task[bool]]()
    execution = run(app)
    assert execution.error is not None
    assert execution.error.message == "The handler returned while ctx.step('left') was in progress: await it."


def test_a_step_cancelled_from_outside_is_still_in_progress(app: App) -> None:
    """asyncio.wait_for cannot undo a step: what follows it is refused, and names the step."""

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> str:
        release = threading.Event()
        with suppress(TimeoutError):
            await asyncio.wait_for(ctx.step("slow", lambda: release.wait(60)), 0.01)
        try:
            await ctx.step("next", nothing)
        finally:
            release.set()
        return "done"

    execution = run(app)
    assert execution.error is not None
    assert "ctx.step('next') is requested while ctx.step('slow') is in progress" in execution.error.message


def test_calls_may_be_started_side_by_side_and_awaited_together(app: App) -> None:
    """Starting calls takes no time, so their order is certain; asyncio.gather awaits one result after the other."""
    app.handler("child")(lambda: "x")

    @app.handler("work", retry=False)
    async def work(ctx: AsyncContext) -> object:
        calls = ctx.call("child"), ctx.call("child")
        return await (ctx.gather(*calls) if ctx.task.title == "Own" else asyncio.gather(*calls))

    with Simulation(app) as sim:
        tasks = [create(app, title=each) for each in ("Own", "Of asyncio")]
        sim.run_until_idle(DAY)
        assert [sim.executions(each.id)[0].content for each in tasks] == [["x", "x"]] * 2


def test_operations_inside_a_step_are_refused(app: App) -> None:
    """As in plain handlers, with the same message."""

    @app.handler("work", retry=3)
    async def work(ctx: AsyncContext) -> str:
        async def inside() -> None:
            await ctx.sleep(DAY)

        try:
            await ctx.step("outer", inside)
        except Exception as error:  # noqa: BLE001 - looked at below
            return str(error)
        return "allowed"

    assert "A step cannot contain other operations" in str(run(app).content)


def test_a_context_is_of_no_use_after_its_attempt(app: App) -> None:
    """A task that outlives its handler is refused instead of waiting forever."""
    told = list[str]()

    @app.handler("work")
    async def work(ctx: AsyncContext) -> None:
        async def outlive() -> None:
            await asyncio.to_thread(has_ended.wait, 30)
            try:
                await ctx.progress("late")
            except WorkflowError as error:
                told.append(str(error))
            over.set()

        tasks.append(asyncio.create_task(outlive()))

    tasks, has_ended, over = list[object](), threading.Event(), threading.Event()
    with Simulation(app) as sim:
        create(app)
        sim.run_until_idle(DAY)
        has_ended.set()
        assert over.wait(60)
    assert told == ["The attempt has ended: its context can no longer be used. Await all that uses it in the handler."]
