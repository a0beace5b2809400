"""Everything that a handler returns or raises is recorded in its execution, and the executor continues."""
# ruff: noqa: ANN401, ARG001 - handlers are written in every way here

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel, field_validator, model_serializer
from tests.engine.harness import HOUR, MINUTE, SECOND, only_run

from cloudsched import App, Cancel, Context, Done, Execution, Fail, Retry, Schedule, Settings, Snooze
from cloudsched.domain.documents.json_limits import MAX_CONTENT
from cloudsched.engine.handlers.context import MAX_NOTICES
from cloudsched.errors import InvalidInput
from cloudsched.testing import Simulation

ROUND: list[Any] = []
ROUND.append(ROUND)


class Speechless(Exception):
    """An exception whose `__str__` raises."""

    def __str__(self) -> str:
        raise RuntimeError("not even that")


class Unsayable(BaseModel):
    """A result that cannot be serialized to JSON."""

    @model_serializer
    def fail(self) -> str:
        raise RuntimeError("no")


class Picky(BaseModel):
    """A payload whose validator has a bug."""

    name: str = "x"

    @field_validator("name")
    @classmethod
    def check_name(cls, value: str) -> str:
        return {"x": value}[value]


def run_handler(handler: Callable[[Context], object], *, retries: int = 1) -> Execution:
    """Return the execution of a one-time task with this handler, after an hour."""
    app = App(Settings())
    app.handler("it", retry=retries)(handler)
    with Simulation(app) as sim:
        task = app.create(handler="it", schedule=Schedule.once(sim.now + MINUTE))
        sim.advance(HOUR)
        execution = only_run(sim, task)
        assert not sim.app.get(task.id).runs
    return execution


def _raises(error: BaseException) -> Callable[[Context], object]:
    def handler(ctx: Context) -> object:
        raise error

    return handler


def _return_always(answer: object) -> Callable[[Context], object]:
    def handler(ctx: Context) -> object:
        return answer

    return handler


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (None, None),
        (Done({"a": 1}), {"a": 1}),
        (Done([[1, [2]], None]), [[1, [2]], None]),
        (datetime(2027, 1, 1, tzinfo=UTC), "2027-01-01T00:00:00Z"),
        ({1: "a"}, {"1": "a"}),
        (Picky(), {"name": "x"}),
    ],
)
def test_a_result_is_stored_as_json(answer: object, content: object) -> None:
    """The return value is the result, with or without Done, converted to JSON."""
    execution = run_handler(_return_always(answer))
    assert (execution.status, execution.content) == ("SUCCEEDED", content)


async def _find() -> str:
    return "found"


async def _list() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(("function", "content"), [(_find, "found"), (_list, [1])])
def test_the_result_of_a_plain_handler_is_awaited(function: Callable[[], object], content: object) -> None:
    """A decorator may hide that a function is ``async def``, or yields asynchronously."""

    def handler(ctx: Context) -> object:
        return function()

    execution = run_handler(handler)
    assert (execution.status, execution.content) == ("SUCCEEDED", content)


@pytest.mark.parametrize(
    "answer",
    [
        object(),
        Unsayable(),
        ROUND,
        float("nan"),
        {"__a__": 1},
        {1: "a", "1": "b"},
        "\ud800",
        2**63,
        "x" * (MAX_CONTENT + 1),
        [1] * 200_000,
        lambda: None,
        Retry("no time", after=5),  # type: ignore[arg-type]
        Retry("never", after=timedelta.max),
        Snooze("tomorrow"),  # type: ignore[arg-type]
        Snooze(datetime(2027, 1, 1, 1)),  # noqa: DTZ001 - a naive one
        Snooze(datetime.max.replace(tzinfo=UTC)),
        Snooze(datetime(2026, 1, 1, tzinfo=UTC)),
        Snooze(-SECOND),
    ],
    ids=lambda answer: str(type(answer)),
)
def test_a_return_value_that_cannot_be_stored_fails_at_once(answer: object) -> None:
    """A retry would change nothing: after one attempt the record is FAILED, with the reason."""
    execution = run_handler(_return_always(answer))
    assert execution.status == "FAILED"
    assert len(execution.attempts) == 1
    assert execution.error
    assert execution.error.message


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        KeyboardInterrupt(),
        Speechless(),
        RecursionError(),
        Exception("\ud800"),
        ExceptionGroup("many", [ValueError()]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_exception_is_retried_and_recorded(error: BaseException) -> None:
    """An exception of any kind is one failed attempt, with its class and the end of its traceback."""
    execution = run_handler(_raises(error))
    assert execution.status == "FAILED"
    assert len(execution.attempts) == 2
    assert execution.error
    assert execution.error.type == type(error).__qualname__
    assert "test_handler_outcomes.py" in (execution.error.traceback or "").splitlines()[1], "it begins at the handler"


def test_a_long_error_is_shortened() -> None:
    """Of an error of megabytes, the record keeps less than 10,000 characters."""
    error = run_handler(_raises(ValueError("x" * 10**6))).error
    assert error
    assert len(error.message) + len(error.traceback or "") < 10_000


@pytest.mark.parametrize(
    ("answer", "status", "attempts"),
    [(Retry("again"), "FAILED", 2), (Fail("no"), "FAILED", 1), (Cancel("no need"), "CANCELLED", 1)],
)
def test_a_returned_outcome_overrides_the_retry_policy(answer: object, status: str, attempts: int) -> None:
    """Retry costs an attempt; Fail and Cancel end the execution at once; the record has the reason."""
    execution = run_handler(_return_always(answer))
    assert (execution.status, len(execution.attempts)) == (status, attempts)
    said = execution.error.message if execution.error else execution.message
    assert said == answer.reason  # type: ignore[attr-defined]


def test_what_a_run_held_is_free_without_a_search_for_garbage() -> None:
    """With thousands of runs a second, such searches would take a good part of the processor's time."""
    held: list[weakref.ref[object]] = []

    def handle(ctx: Context) -> None:
        held.extend(map(weakref.ref, (ctx, ctx.durable_run)))

    gc.disable()
    try:
        run_handler(handle)
        assert [each() for each in held] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("answer", ["done", Retry("again"), Snooze(MINUTE)])
def test_what_follows_a_run_is_in_the_queue_when_it_ends(app: App, sim: Simulation, answer: object) -> None:
    """No sweep is needed for it: that finds only what a crash or the queue has lost."""
    app.handler("it")(_return_always(answer))
    task = app.create(handler="it", schedule=Schedule(rrule="FREQ=DAILY"))
    sim.advance(2 * SECOND)
    assert sim.executions(task.id)
    assert [each.at for each in sim.pending()] == [app.get(task.id).wake_at]


@pytest.mark.parametrize("is_instant", [True, False])
def test_a_snooze_costs_no_attempt_and_ends_exactly_on_time(is_instant: bool) -> None:  # noqa: FBT001 - a parameter
    """A handler that snoozes is called again at exactly that time, as the same attempt, however often it snoozes."""
    seen: list[tuple[datetime, int]] = []

    def handler(ctx: Context) -> object:
        seen.append((ctx.now(), ctx.attempt))
        wait = 7 * MINUTE
        return Snooze(ctx.now() + wait if is_instant else wait) if len(seen) < 4 else "done"

    execution = run_handler(handler, retries=0)
    assert execution.status == "SUCCEEDED"
    assert [at - seen[0][0] for at, _ in seen] == [timedelta(minutes=7) * number for number in range(4)]
    assert {attempt for _, attempt in seen} == {1}
    assert len(execution.attempts) == 1


def test_a_snooze_of_zero_lasts_a_second(app: App, sim: Simulation) -> None:
    """Otherwise nothing would bound how often the handler is called, and the clock would stand still."""
    calls: list[datetime] = []

    @app.handler("it")
    def it(ctx: Context) -> object:
        calls.append(ctx.now())
        return Snooze(timedelta(0))

    app.create(handler="it", schedule=Schedule.once(sim.now + MINUTE))
    sim.advance(2 * MINUTE)
    assert len(calls) == 61


def test_a_snooze_of_a_cancelled_task_is_cancelled(app: App, sim: Simulation) -> None:
    """Nothing wakes up a run of a finished task, so it gets its final record instead of waiting for ever."""

    @app.handler("it")
    def it(ctx: Context) -> object:
        app.cancel(ctx.task.id)
        return Snooze(MINUTE)

    task = app.create(handler="it", schedule=Schedule.once(sim.now + MINUTE))
    sim.advance(MINUTE)
    execution = only_run(sim, task)
    assert (execution.status, sim.app.get(task.id).runs) == ("CANCELLED", ())


def test_progress_and_usage_are_recorded() -> None:
    """They are stored with the result, the usage of both attempts; text that UTF-8 cannot encode is escaped."""

    def handler(ctx: Context) -> object:
        ctx.progress("half \ud800 way")
        ctx.used(queries=2, tokens=3)
        ctx.used(tokens=4)
        ctx.notify("Hi \ud800", "there")
        if ctx.attempt == 1:
            raise ValueError
        return None

    execution = run_handler(handler)
    assert (execution.status, execution.queries, execution.tokens) == ("SUCCEEDED", 4, 14)
    assert execution.progress[-1].text == r"half \ud800 way"


@pytest.mark.parametrize("wrong", [-1, 1.5, 10**30, "3"])
def test_a_usage_that_cannot_be_stored_is_refused_at_once(wrong: Any) -> None:
    """`ctx.used` raises in the handler; the record is not what fails later."""

    def handler(ctx: Context) -> None:
        ctx.used(queries=wrong)

    execution = run_handler(handler)
    assert execution.error
    assert execution.error.type == "ValueError"


def test_the_number_and_size_of_messages_are_limited() -> None:
    """More or larger messages than one commit can hold are refused by `ctx.notify`, where the handler can react."""

    def handler(ctx: Context) -> None:
        for _ in range(MAX_NOTICES):
            ctx.notify("Hi", "there")
        with pytest.raises(InvalidInput):
            ctx.notify("Hi", "there")

    def notify_too_much(ctx: Context) -> None:
        with pytest.raises(InvalidInput):
            ctx.notify("Hi", "x" * (MAX_CONTENT + 1))

    assert run_handler(handler).status == run_handler(notify_too_much).status == "SUCCEEDED"
