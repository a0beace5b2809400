"""What an attempt had in its variables is freed when it ends, however it ends, and needs no search for garbage."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from datetime import timedelta

import pytest
from tests import held_frames
from tests.held_frames import DURABLE, HOUR, PLAIN

from cloudsched import App, Context, Schedule
from cloudsched.testing import Simulation


@pytest.mark.parametrize("name", [*PLAIN, *DURABLE])
def test_an_attempt_that_has_ended_holds_nothing(name: str) -> None:
    """Failed, suspended, cancelled or put off: nothing that it had is in memory any more."""
    app = App()
    held_frames.register(app, PLAIN | DURABLE)
    with Simulation(app) as sim, held_frames.watch():
        app.create(id="t", handler=name, schedule=Schedule.once(sim.now))
        sim.advance(timedelta(seconds=1))
        assert held_frames.count_made(), "it has run"
        assert held_frames.count_held() == 0


def test_an_attempt_that_took_too_long_or_was_cancelled_holds_nothing(app: App) -> None:
    """Its result is dropped, and what it raises then is, too."""

    def work(ctx: Context) -> None:
        held = held_frames.hold()
        if ctx.task.id == "late":
            sim.advance(2 * HOUR)
        else:
            app.cancel(ctx.task.id)
        ctx.step("one", lambda: str(held))

    app.handler("work", expected_duration=HOUR, retry=False)(work)
    with Simulation(app) as sim, held_frames.watch():
        for task_id in ("late", "cancelled"):
            app.create(id=task_id, handler="work", schedule=Schedule.once(sim.now))
        sim.advance(timedelta(seconds=1))
        assert held_frames.count_made() == 2
        assert held_frames.count_held() == 0


def test_a_generator_that_goes_on_after_an_error_is_not_closed(app: App) -> None:
    """It has caught what a handler raises later."""
    counted, noted = list[int](), list[ValueError]()

    def count() -> Generator[int, ValueError | None, None]:
        number = 0
        while True:
            number += 1
            yield number
            try:
                held_frames.fail()
            except ValueError as error:
                noted.append(error)

    counter = count()
    next(counter)

    @app.handler("work", retry=False)
    def work() -> None:
        counted.append(next(counter))
        raise noted[-1]

    with Simulation(app) as sim:
        for number in range(2):
            app.create(id=f"t-{number}", handler="work", schedule=Schedule.once(sim.now))
            sim.advance(timedelta(seconds=1))
    assert counted == [2, 3]


def test_a_coroutine_that_goes_on_after_an_error_is_not_closed(app: App) -> None:
    """It serves all handlers of the process, and has caught what it gives to one of them."""
    heard, tasks = list[str](), list[asyncio.Task[None]]()
    questions = list[asyncio.Queue[asyncio.Future[str]]]()

    async def answer() -> None:
        for name in ("first", "second"):
            question = await questions[0].get()
            try:
                held_frames.fail()
            except ValueError as error:
                question.set_exception(error)
            heard.append(name)

    @app.handler("ask", retry=False)
    async def ask() -> None:
        if not questions:
            questions.append(asyncio.Queue())
            tasks.append(asyncio.create_task(answer()))
        question: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        await questions[0].put(question)
        await asyncio.wait_for(question, 5)

    with Simulation(app) as sim:
        for number in range(2):
            app.create(id=f"t-{number}", handler="ask", schedule=Schedule.once(sim.now))
            sim.advance(timedelta(seconds=1))
        errors = [app.executions(f"t-{number}").items[0].error for number in range(2)]
    assert [error and error.type for error in errors] == ["ValueError", "ValueError"]
    assert heard == ["first", "second"]
