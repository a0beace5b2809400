"""Lazy results of a step or a handler do their work when they are read: within that step or handler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, run

from cloudsched import App, Context


def generate_values(read: Callable[[int], object]) -> Iterator[object]:
    for number in range(3):
        yield read(number)


LAZY: dict[str, Callable[[Callable[[int], object]], object]] = {
    "generator": generate_values,
    "map": lambda read: map(read, range(3)),
    "slice": lambda read: islice(map(read, range(9)), 3),
    "two of them": lambda read: map(read, generate_values(lambda number: number)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("timeout", [None, HOUR])
@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("kind", LAZY)
def test_the_items_of_a_generator_belong_to_its_step(
    app: App, kind: str, timeout: timedelta | None, *, replay: bool
) -> None:
    """If reading it fails, the step is retried; its operations leave no other entries, and its usage is counted."""
    tries = list[int]()

    def call(ctx: Context) -> Any:  # noqa: ANN401 - as the step returns it
        def read(number: int) -> int:
            ctx.now()
            ctx.used(tokens=5)
            tries.append(number)
            if tries == [0, 1]:
                raise ConnectionError("no line")
            return number

        pages = ctx.step("pages", lambda: LAZY[kind](read), timeout=timeout)
        ctx.sleep(DAY)
        return pages

    execution = run(app, call, replay=replay)
    assert (execution.content, tries) == ([0, 1, 2], [0, 1, 0, 1, 2])
    assert [(step.kind, step.attempts) for step in execution.steps] == [("STEP", 2), ("SLEEP", 0)]
    assert execution.tokens == 25


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"rows": rows}])
def test_a_returned_generator_may_use_durable_operations(
    app: App, wrap: Callable[[object], object], *, replay: bool
) -> None:
    """It is suspended there, and replayed, as anywhere."""
    done = list[str]()

    def call(ctx: Context) -> object:
        def rows() -> Iterator[object]:
            yield ctx.step("second", done.append, "second")
            ctx.sleep(DAY)
            yield 3

        ctx.step("first", done.append, "first")
        return wrap(rows())

    execution = run(app, call, replay=replay)
    assert execution.status == "SUCCEEDED", execution.error
    assert execution.content == wrap([None, 3])
    assert done == ["first", "second"]
    assert [step.kind for step in execution.steps] == ["STEP", "STEP", "SLEEP"]
