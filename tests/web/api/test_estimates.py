"""What one run of a handler uses as a rule: its tasks have it unless they say it themselves."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.engine.usage.harness import create_hourly
from tests.web.callers import HOUR
from tests.web.conftest import Call, fetch

from cloudsched import App, Context, Settings
from cloudsched.engine.handlers.registry import Declaration
from cloudsched.errors import Misconfigured
from cloudsched.testing import Simulation

HOURS = 3


app = App(Settings())


@app.handler("spend", query_per_execution=2, tokens_per_execution=500, access="users")
def spend(ctx: Context) -> None:
    ctx.used(queries=1)


@app.handler("parent")
def parent(ctx: Context) -> Any:  # noqa: ANN401 - what its call returns
    return ctx.call("spend")


app.handler("free")(lambda: None)


@pytest.mark.parametrize("option", ["query_per_execution", "tokens_per_execution"])
@pytest.mark.parametrize("value", [-1, -0.1, True, math.nan, math.inf, 10**30, 10**400, "2", [2]])
def test_what_is_no_estimate_is_refused_at_import(option: str, value: object) -> None:
    """With the handler, the option and what to give instead."""
    with pytest.raises(Misconfigured, match=rf"'it': {option} .*give a number"):
        App(Settings()).handler("it", **{option: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, (2, 500)),
        ({"query_per_execution": 9.0}, (9, 500)),
        ({"query_per_execution": 0.0, "tokens_per_execution": 0.0}, (0, 0)),
    ],
)
def test_a_task_has_its_own_estimate_or_its_handlers(
    sim: Simulation, own: dict[str, float], expected: tuple[float, float]
) -> None:
    """None at all is one's own estimate, too."""
    task = sim.app.create(owner="ada", handler="spend", **own)  # type: ignore[arg-type]
    assert (task.query_per_execution, task.tokens_per_execution) == expected


def test_usage_counts_it_beside_what_was_reported(sim: Simulation, call: Call) -> None:
    """So both can be compared, for each handler and owner."""
    create_hourly(sim)
    for _ in range(HOURS):
        sim.advance(HOUR)
    total = fetch(call, "/v1/usage?owner=ada")["total"]
    assert (total["queries"], total["estimatedQueries"], total["estimatedTokens"]) == (HOURS, 2 * HOURS, 500 * HOURS)


def test_an_edit_keeps_it_and_none_restores_the_handlers(sim: Simulation) -> None:
    """As for every field that a handler gives."""
    task = sim.app.create(owner="ada", handler="spend", query_per_execution=9.0)
    assert sim.app.update(task.id, title="Other").query_per_execution == 9
    assert sim.app.update(task.id, query_per_execution=None).query_per_execution == 2


def test_a_call_of_a_handler_has_its_estimate(sim: Simulation) -> None:
    """Whatever made the task."""
    task = sim.app.create(owner="ada", handler="parent")
    sim.advance(HOUR)
    (child,) = sim.app.tree(task.id).children
    assert child.task.query_per_execution == 2


def test_a_declared_task_gets_the_estimate_of_its_new_handler(sim: Simulation) -> None:
    """It left the field to its handler, and another one costs another amount."""
    app = sim.app
    for handler, expected in (("spend", 2), ("free", 0)):
        app.container.registry.registrations.declarations.clear()
        app.container.registry.declare(Declaration("t", handler, "every day at 9", None, "system", None))
        app.apply_declarations()
        assert app.get("t").query_per_execution == expected


def test_whoever_may_name_a_handler_sees_its_estimate(call: Call) -> None:
    """Before a task is made."""
    shown = {each["name"]: each for each in fetch(call, "/v1/handlers")["handlers"]}
    assert (shown["spend"]["queryPerExecution"], shown["spend"]["tokensPerExecution"]) == (2, 500)
    assert "queryPerExecution" not in shown["free"]
