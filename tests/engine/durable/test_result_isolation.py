"""A durable handler may modify the objects that it receives without changing what is recorded."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, Create, Simulate, register_work_handler, run_to_end

from cloudsched import App, Context
from cloudsched.testing import Simulation

ORDER: dict[str, Any] = {"total": 100, "lines": [{"price": 60}, {"price": 40}], "open": ["a", "b"]}


def order() -> dict[str, Any]:
    return deepcopy(ORDER)


SOURCES: dict[str, Callable[[Context], Any]] = {
    "a step": lambda ctx: ctx.step("find", order),
    "a call": lambda ctx: ctx.call("find").result(),
    "a call within": lambda ctx: ctx.call("wrap").result()["order"],
    "a gathered call": lambda ctx: ctx.gather(ctx.call("find"))[0],
    "an event": lambda ctx: ctx.wait_for("order"),
    "an event within": lambda ctx: ctx.wait_for("wrapped")["order"],
}


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_a_handler_that_changes_a_result_changes_only_its_copy(
    app: App, simulate: Simulate, create: Create, source: str, *, replay: bool
) -> None:
    """Every replay and every reader of the record receives what was recorded."""
    seen, paid = list[object](), list[int]()

    @app.handler("find")
    def find() -> Any:  # noqa: ANN401 - without an annotation to read it by
        return order()

    app.handler("wrap")(lambda: {"order": order()})

    def call(ctx: Context) -> int:
        found = SOURCES[source](ctx)
        seen.append(deepcopy(found))
        found["total"] += 20
        found["lines"][0]["price"] = 0
        names = []
        while found["open"]:
            names.append(ctx.step("do", lambda name: name, found["open"].pop()))
        ctx.sleep(DAY)
        ctx.step("pay", lambda: paid.append(found.pop("total")))
        return len(names)

    register_work_handler(app, call)
    sim = simulate(replay=replay)
    task = create()
    sim.advance(MINUTE)
    if "event" in source:
        wrapped = "within" in source
        app.send_event(task.id, "wrapped" if wrapped else "order", {"order": order()} if wrapped else order())
    execution = run_to_end(sim, task)
    assert (execution.status, execution.content) == ("SUCCEEDED", 2), execution.error
    recorded = execution.steps[0].result
    assert paid == [120]
    assert seen == [ORDER] * len(seen)
    assert recorded in ({"order": ORDER}, ORDER)


def test_the_payload_of_a_call_is_captured_when_it_is_made(app: App, sim: Simulation, create: Create) -> None:
    """Its task is made later, when something depends on it."""
    given = list[object]()

    @app.handler("take")
    def take(payload: dict[str, Any]) -> None:
        given.append(payload)

    def call(ctx: Context) -> None:
        payload = {"order": order()}
        handle = ctx.call("take", payload, source={"context": payload})
        payload["order"]["lines"][0]["price"] = 0
        handle.result()

    register_work_handler(app, call)
    task = create()
    sim.run_until_idle()
    (branch,) = app.tree(task.id).children
    assert branch.task.source
    assert branch.task.source.context == {"order": ORDER}
    assert given == [{"order": ORDER}]
