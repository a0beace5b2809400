"""What becomes of steps and calls that fail in unusual ways: each is recorded once, and as it was."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, model_validator
from tests.engine.harness import DAY, run

from cloudsched import App, Context
from cloudsched.errors import InvalidInput, StepFailed


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Exiting(Exception):
    def __str__(self) -> str:
        raise SystemExit


class Surrogate(Exception):
    def __str__(self) -> str:
        return "half \ud800 way"


def nest_lists(depth: int) -> Any:  # noqa: ANN401 - lists in lists
    return [nest_lists(depth - 1)] if depth else 1


def make_circular_list() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Speechless, "(its text cannot be read)"),
        (Exiting, "(its text cannot be read)"),
        (Surrogate, r"half \ud800 way"),
    ],
)
def test_an_exception_whose_str_raises_is_recorded_as_a_failure(app: App, error: type[Exception], text: str) -> None:
    """It is tried as often as its policy says, and the exception that the handler catches is the same in a replay."""
    done, caught = list[object](), list[str]()

    def pay() -> None:
        done.append(None)
        raise error

    def call(ctx: Context) -> str:
        try:
            ctx.step("pay", pay, retry=False)
        except StepFailed as failure:
            caught.append(str(failure))
        ctx.sleep(DAY)
        return "went on"

    execution = run(app, call)
    assert (execution.content, len(done)) == ("went on", 1), execution.error
    assert caught == [f"Step 'pay' failed: {error.__name__}: {text}"] * 2


UNSTORABLE: dict[str, Callable[[], object]] = {
    "not a number": lambda: float("nan"),
    "a reserved key": lambda: {"__x__": 1},
    "too deep": lambda: nest_lists(17),
    "a circle": make_circular_list,
    "no JSON": object,
    "a surrogate": lambda: "\ud800",
    "too large": lambda: 2**70,
    "a map of its own": lambda: UserDict({1: 2}),
}


@pytest.mark.parametrize("result", UNSTORABLE)
def test_a_step_whose_result_cannot_be_stored_is_not_repeated(app: App, result: str) -> None:
    """Nothing would change but its effect, which would be had once more."""
    done = list[object]()

    def pay() -> object:
        done.append(None)
        return UNSTORABLE[result]()

    execution = run(app, lambda ctx: ctx.step("pay", pay, retry=3))
    assert (execution.status, len(done)) == ("FAILED", 1)
    (step,) = execution.steps
    assert (step.status, step.attempts, step.error and step.error.type) == ("FAILED", 1, "InvalidInput"), step


class Fussy(BaseModel):
    """A payload whose own code breaks."""

    n: int

    @model_validator(mode="after")
    def _raise(self) -> Fussy:
        raise LookupError(f"no {self.n}")


def test_a_call_that_fails_while_it_is_made_is_refused_in_every_replay(app: App) -> None:
    """The refusal has a position in the journal, so that later operations keep theirs."""
    messages = list[str]()

    @app.handler("fussy")
    def fussy(payload: Fussy) -> None:
        """Never be called."""

    def call(ctx: Context) -> str:
        try:
            ctx.call("fussy", {"n": 1})
        except InvalidInput as refused:
            messages.append(str(refused))
        ctx.step("after", lambda: 1)
        ctx.sleep(DAY)
        return "done"

    execution = run(app, call)
    assert execution.content == "done", execution.error
    assert messages == ["payload: makes its model raise LookupError: no 1, in the call of 'fussy'"] * 2


def test_a_step_refused_at_the_journal_limit_leaves_no_gap(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudsched.engine.durable.journal_cursor.MAX_STEPS", 3)

    def call(ctx: Context) -> list[str]:
        errors = []
        for number in range(6):
            try:
                ctx.step(f"{number}", lambda: None)
            except Exception as error:  # noqa: BLE001 - as handlers do
                errors.append(type(error).__name__)
        return errors

    execution = run(app, call, replay=True)
    assert execution.content == ["LimitExceeded"] * 3
    assert [step.number for step in execution.steps] == [1, 2, 3]
