"""Arguments of a durable handler's operations: invalid ones are refused at once, and leave no journal entry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, Create, register_work_handler, run

from cloudsched import App, Context
from cloudsched.errors import InvalidInput
from cloudsched.testing import START, Simulation

_FAR = datetime.max.replace(tzinfo=UTC)
_WEST = timezone(timedelta(hours=-5))
_NO_WAITS = (60, 0.5, "P1D", None, datetime(2027, 1, 2), _FAR, datetime(9998, 12, 31, 22, tzinfo=_WEST), timedelta.max)  # noqa: DTZ001


def register_asking_handler(app: App, ask: Callable[[Context], object], messages: list[str]) -> None:
    """Let the handler make the call, catch the refusal, and continue through a step and a replay."""

    def call(ctx: Context) -> str:
        try:
            ask(ctx)
        except InvalidInput as refused:
            messages.append(str(refused))
        ctx.step("after", lambda: 1)
        ctx.sleep(DAY)
        return "done"

    register_work_handler(app, call)


def _sleep(wait: Any, ctx: Context) -> None:  # noqa: ANN401 - also what is no wait
    ctx.sleep(wait)


def _wait_with_timeout(wait: Any, ctx: Context) -> None:  # noqa: ANN401 - also what is no limit
    ctx.wait_for("x", timeout=wait)


REFUSED: dict[str, tuple[Callable[[Context], object], str]] = {
    **{f"sleep {wait!r}"[:60]: (partial(_sleep, wait), "until: ") for wait in _NO_WAITS},
    **{
        f"timeout {wait!r}"[:60]: (partial(_wait_with_timeout, wait), "timeout: is ")
        for wait in (60, _FAR, timedelta.max, _FAR - START)
    },
    "no event": (lambda ctx: ctx.wait_for("order/42 paid"), "event: is 'order/42 paid' (Up to 128 letters"),
    "step's limit": (lambda ctx: ctx.step("s", lambda: 1, timeout=60), "timeout: is 60 (Give a timedelta"),  # type: ignore[call-overload]
    "no function": (lambda ctx: ctx.step("s", 3), "function: is 3, which cannot be called (Give the function itself"),  # type: ignore[call-overload]
    "step's retry": (lambda ctx: ctx.step("s", lambda: 1, retry="x"), "retry: is 'x' (Give a RetryPolicy, a number"),  # type: ignore[call-overload]
    "a list of calls": (lambda ctx: ctx.gather([]), "calls.0: is [] (Pass what ctx.call returned as separate"),  # type: ignore[call-overload]
    "no time": (lambda ctx: ctx.step("s", lambda: 1, timeout=timedelta(0)), "timeout: is 0:00:00"),
    "long name": (lambda ctx: ctx.step("s" * 201, lambda: 1), "name: is 'sss"),
    "surrogate": (lambda ctx: ctx.step("\ud800", lambda: 1), "name: has a lone surrogate"),
    "version's name": (lambda ctx: ctx.version("v" * 201, 2), "name: is 'vvv"),
    "version": (lambda ctx: ctx.version("v", "2"), "newest: is '2'"),  # type: ignore[arg-type]
    "large version": (lambda ctx: ctx.version("v", 2**70), "newest: is 11805"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_invalid_argument_is_refused_at_once_and_leaves_no_gap_in_the_journal(app: App, case: str) -> None:
    """The same in the replay, so a handler that catches it gets to its end."""
    ask, expected = REFUSED[case]
    messages = list[str]()
    register_asking_handler(app, ask, messages)
    execution = run(app)
    assert (execution.status, execution.content) == ("SUCCEEDED", "done"), execution.error
    assert [(step.number, step.kind) for step in execution.steps] == [(1, "STEP"), (2, "SLEEP")]
    assert len(messages) == 2
    assert messages[0] == messages[1]
    assert messages[0].startswith(expected)


@pytest.mark.parametrize(
    "wait",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(5 * HOUR)),
        START - DAY,
        timedelta.min,
        timedelta(0),
    ],
    ids=repr,
)
def test_a_sleep_until_the_past_ends_at_once(app: App, wait: Any) -> None:  # noqa: ANN401 - both
    execution = run(app, lambda ctx: ctx.sleep(wait))
    assert (execution.status, execution.finished_at) == ("SUCCEEDED", START), execution.error
    assert execution.steps[0].due_at == START


@pytest.mark.parametrize("far", [datetime(9998, 12, 31, tzinfo=UTC), 300_000 * DAY], ids=repr)
def test_a_sleep_of_centuries_is_possible_and_can_be_cancelled(
    app: App, sim: Simulation, create: Create, far: datetime | timedelta
) -> None:
    register_work_handler(app, lambda ctx: ctx.sleep(far))
    task = create()
    sim.advance(DAY)
    assert [each.status for each in sim.executions(task.id)] == ["SUSPENDED"]
    assert app.cancel(task.id).status == "CANCELLED"


def test_a_replay_uses_the_recorded_instant(app: App) -> None:
    """An instant in another zone is stored in UTC; a replay ignores its own argument."""
    waits = iter([datetime(2027, 1, 2, tzinfo=_WEST), START + 900 * DAY])
    execution = run(app, lambda ctx: ctx.sleep(next(waits)))
    assert execution.finished_at == START + 29 * HOUR
