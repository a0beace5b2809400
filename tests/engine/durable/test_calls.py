"""What a durable handler may rely on when it calls other handlers."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic.alias_generators import to_camel
from tests.engine.harness import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Create,
    elsewhere,
    only_run,
    register_work_handler,
    run,
    run_to_end,
)

from cloudsched import App, Context, RetryPolicy, Schedule
from cloudsched.domain.documents import journal as limits
from cloudsched.domain.transitions.commit import Committed
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.engine.ports.procedure import Procedure
from cloudsched.errors import InvalidInput, WorkflowError
from cloudsched.testing import START, Simulation


def test_a_call_that_ends_while_its_parent_suspends_resumes_it_at_once(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notification comes while the parent holds its lease; the parent does not wait for its poll a minute later."""
    app.handler("fine")(lambda: "fine")
    register_work_handler(app, lambda ctx: ctx.call("fine").result())
    task = create()
    finish = Attempt.finish

    def finish_late(held: Attempt, *arguments: Any) -> Procedure[Committed | None]:
        if held.task.id == task.id:
            sim.queue.deliver_due()
        return finish(held, *arguments)

    monkeypatch.setattr(Attempt, "finish", finish_late)
    execution = run_to_end(sim, task)
    assert (execution.content, execution.finished_at) == ("fine", START)


def test_an_early_dispatch_of_an_earlier_suspension_is_not_sent_on(app: App, sim: Simulation, create: Create) -> None:
    """Each of a hundred events leaves one dispatch behind; none of them becomes another one."""

    def call(ctx: Context) -> int:
        for _ in range(15):
            ctx.wait_for("more", timeout=MINUTE)
        ctx.sleep(DAY)
        return 1

    register_work_handler(app, call)
    task = create()
    sim.advance(SECOND)
    for _ in range(15):
        app.send_event(task.id, "more")
        sim.advance(SECOND)
    before = len(sim.queue.deliveries)
    sim.advance(23 * HOUR)
    late = [each.result.action for each in sim.queue.deliveries[before:] if each.result]
    assert late == ["dropped"] * 15


def test_a_user_task_with_the_id_of_a_call_is_not_taken_for_the_call(app: App, sim: Simulation, create: Create) -> None:
    """The ids of calls can be worked out; a task that has one already is not taken for the call."""
    app.handler("fine")(lambda: "fine")
    register_work_handler(app, lambda ctx: ctx.call("fine").result())
    task = create(id="parent")
    taken = limits.call_id("parent", "20270101T000000Z", 1, 1)
    create(id=taken, owner="eve", handler="fine", schedule=Schedule.once(START + DAY))
    execution = run_to_end(sim, task)
    assert execution.error
    assert taken in execution.error.message


def test_a_call_that_its_owner_cancels_or_deletes_fails_in_its_parent(
    app: App, sim: Simulation, create: Create
) -> None:
    @app.handler("forever")
    def forever(ctx: Context) -> None:
        ctx.wait_for("never")

    register_work_handler(
        app, lambda ctx: [f.status for f in ctx.gather(*[ctx.call("forever") for _ in "ab"], return_failures=True)]
    )
    task = create()
    sim.advance(MINUTE)
    first, second = app.tree(task.id).children
    app.cancel(first.task.id)
    app.delete(second.task.id)
    sim.advance(MINUTE)
    execution = only_run(sim, task)
    assert execution.content == ["CANCELLED", "DELETED"]


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("kind", [ConnectionError, WorkflowError])
def test_a_call_started_before_an_exception_is_made_once(
    app: App, sim: Simulation, create: Create, kind: type[Exception], retries: int, *, is_down: bool
) -> None:
    """Whatever ends the handler, however many attempts follow, and also if the queue does not answer just then."""
    did = list[int]()
    app.handler("alert")(lambda: did.append(1))

    def call(ctx: Context) -> None:
        ctx.step("a", lambda: setattr(sim.queue, "is_down", is_down))
        ctx.call("alert")
        raise kind("no line")

    register_work_handler(app, call)
    task = create(retry=RetryPolicy(max_retries=retries))
    sim.advance(20 * SECOND)
    sim.queue.is_down = False
    execution = run_to_end(sim, task)
    (made,) = app.tree(task.id).children
    assert (execution.status, did) == ("FAILED", [1])
    assert execution.error
    assert execution.error.type == kind.__name__
    assert len(execution.attempts) == (1 if kind is WorkflowError else retries + 1)
    assert execution.steps[-1].child == made.task.id


def test_a_handler_that_fails_in_a_cancelled_task_makes_no_call(app: App, sim: Simulation, create: Create) -> None:
    app.handler("alert")(lambda: None)

    def call(ctx: Context) -> None:
        ctx.step("a", lambda: 1)
        ctx.call("alert")
        elsewhere(app.cancel, ctx.task.id)
        raise ConnectionError("no line")

    register_work_handler(app, call)
    task = create()
    execution = run_to_end(sim, task)
    assert (execution.status, app.tree(task.id).children) == ("CANCELLED", ())
    assert execution.attempts[0].error
    assert execution.attempts[0].error.type == "ConnectionError"


@pytest.mark.parametrize(
    "fields",
    [
        {"schedule": Schedule.once(START + DAY)},
        {"schedule": None},
        {"id": "mine"},
        {"retry": 21},
        {"retry": "often"},
        {"lock_kee": "press"},
    ],
)
def test_a_call_refuses_fields_that_it_cannot_have(app: App, fields: dict[str, Any]) -> None:
    """Schedule and id of a call are fixed; other fields are not dropped silently."""
    app.handler("fine")(lambda: 1)
    refused = list[str]()

    def call(ctx: Context) -> None:
        try:
            ctx.call("fine", **fields)
        except InvalidInput as error:
            refused.append(error.field)

    execution = run(app, call)
    assert {field.split(".")[0] for field in refused} == {to_camel(name) for name in fields}
    assert (execution.status, [step.child for step in execution.steps]) == ("SUCCEEDED", [None])
