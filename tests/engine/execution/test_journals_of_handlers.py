"""Which runs have a journal: those of handlers whose code can get the context, which alone records anything."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest

from cloudsched import App, Context, Depends, Schedule
from cloudsched.engine.durable.durable_run import DurableRun
from cloudsched.engine.durable.journal_cursor import JournalCursor
from cloudsched.engine.durable.replay import Replay
from cloudsched.engine.execution.claimed_run import ClaimedRun
from cloudsched.engine.execution.durable_services import DurableServices
from cloudsched.testing import Simulation

AT = datetime(2027, 6, 1, 9, tzinfo=UTC)


def get_context(ctx: Context) -> Context:
    return ctx


def get_nothing() -> None:
    return None


def plain() -> None:
    pass


def with_payload(payload: dict[str, Any]) -> None:
    pass


def with_context(ctx: Context) -> None:
    ctx.step("greet", str)


def with_dependency(ctx: Annotated[Context, Depends(get_context)]) -> None:
    ctx.step("greet", str)


def with_other_dependency(nothing: Annotated[None, Depends(get_nothing)]) -> None:
    pass


async def asynchronous() -> None:
    pass


@pytest.mark.parametrize(
    ("function", "has_journal"),
    [
        (plain, False),
        (with_payload, False),
        (asynchronous, False),
        (with_context, True),
        (with_dependency, True),
        (with_other_dependency, True),
    ],
)
def test_a_run_has_a_journal_if_its_handler_may_get_the_context(
    function: Callable[..., object], monkeypatch: pytest.MonkeyPatch, *, has_journal: bool
) -> None:
    """A dependency may hand the context on, whatever its own parameters are: one of its own may take it."""
    made: list[DurableRun] = []
    create = DurableServices.create_durable_run

    def create_noted(services: DurableServices, claimed_run: ClaimedRun) -> DurableRun:
        made.append(create(services, claimed_run))
        return made[-1]

    monkeypatch.setattr(DurableServices, "create_durable_run", create_noted)
    app = App()
    app.handler("h")(function)
    with Simulation(app, start=AT) as sim:
        task = app.create(owner="ada", title="T", handler="h", schedule=Schedule.once(AT + timedelta(minutes=1)))
        sim.advance(timedelta(minutes=2))
        assert [each.status for each in sim.executions(task.id)] == ["SUCCEEDED"]
    assert [isinstance(each, Replay) for each in made] == [has_journal]


def report_progress(ctx: Context) -> None:
    ctx.progress("half way")
    ctx.used(queries=1)
    ctx.notify("Hello", str(ctx.uuid()))
    ctx.random.random()
    ctx.time_left()


def ask_the_time(ctx: Context) -> None:
    ctx.now()


def sleep_an_hour(ctx: Context) -> None:
    ctx.sleep(timedelta(hours=1))


@pytest.mark.parametrize(
    ("function", "opened"), [(report_progress, 0), (ask_the_time, 1), (with_context, 1), (sleep_an_hour, 2)]
)
def test_a_journal_is_opened_once_an_attempt_needs_it(
    function: Callable[..., object], opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is recorded needs one; an attempt that resumes has one from its beginning."""
    made: list[JournalCursor] = []
    begin = JournalCursor.__init__

    def begin_noted(cursor: JournalCursor, *arguments: Any) -> None:
        made.append(cursor)
        begin(cursor, *arguments)

    monkeypatch.setattr(JournalCursor, "__init__", begin_noted)
    app = App()
    app.handler("h")(function)
    with Simulation(app, start=AT) as sim:
        task = app.create(owner="ada", title="T", handler="h", schedule=Schedule.once(AT + timedelta(minutes=1)))
        sim.advance(timedelta(hours=2))
        assert [each.status for each in sim.executions(task.id)] == ["SUCCEEDED"]
    assert len(made) == opened


def test_a_handler_that_loses_its_context_still_replays_what_was_recorded() -> None:
    """The journal tells that the code has changed while the run slept; without it the handler would just succeed."""
    before, after = App(), App()

    @before.handler("h")
    def sleeper(ctx: Context) -> str:
        ctx.sleep(timedelta(hours=1))
        return "slept"

    @after.handler("h")
    def hasty() -> str:
        return "did not sleep"

    with Simulation(before, start=AT) as sim:
        task = before.create(owner="ada", title="T", handler="h", schedule=Schedule.once(AT + timedelta(minutes=1)))
        sim.advance(timedelta(minutes=2))
        before.container.registry.replace_handlers(after.container.registry)
        sim.advance(timedelta(hours=2))
        execution = sim.executions(task.id)[0]
    assert execution.status == "FAILED"
    assert execution.error is not None
    assert execution.error.type == "JournalMismatch"
