"""An event that was accepted is kept until a run has taken it, whatever ends that run first."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel, field_validator
from tests.engine.harness import DAY, MINUTE

from cloudsched import App, Context, EventTimedOut, Execution, Fail, Overlap, Schedule, Task
from cloudsched.errors import NotAllowed, NotAwaited
from cloudsched.testing import START, Simulation

BROKEN = set[str]()
"""What is wrong with the code that is deployed at the moment."""


class Order(BaseModel):
    """The payload, whose model a release may break."""

    number: int

    @field_validator("number")
    @classmethod
    def check(cls, number: int) -> int:
        if "the payload's model" in BROKEN:
            raise ValueError("a new rule that old payloads break")
        return number


@pytest.fixture
def app() -> App:
    BROKEN.clear()
    app = App()

    @app.handler("order", retry=False, expected_duration=5 * MINUTE)
    def order(ctx: Context, _: Order) -> Any:  # noqa: ANN401 - an answer, or an outcome
        if "the order of steps" in BROKEN:
            ctx.sleep(DAY)
        ctx.step("ask", lambda: None)
        if "what precedes the wait" in BROKEN:
            raise KeyError("a bug")
        if "an outcome" in BROKEN:
            return Fail("a wrong decision")
        first = ctx.wait_for("answer", timeout=7 * DAY)
        if "what follows the wait" in BROKEN:
            raise KeyError("another bug")
        return [first, ctx.wait_for("answer", timeout=7 * DAY)]

    @app.handler("parent", retry=False)
    def parent(ctx: Context) -> Any:  # noqa: ANN401 - the call's result
        return ctx.call(order, Order(number=1)).result()

    @app.handler("grandparent", retry=False)
    def grandparent(ctx: Context) -> Any:  # noqa: ANN401 - the call's result
        return ctx.call(parent).result()

    return app


def create(app: App, handler: str = "order", **fields: Any) -> Task:
    payload = {"number": 1} if handler == "order" else {}
    usual = {"schedule": Schedule.once(START), "payload": payload}
    return app.create(**{**usual, "handler": handler, **fields})


def only_run(app: App, task: Task) -> Execution:
    (run,) = app.executions(task.id).items
    return app.execution(task.id, run.id)


FAULTS = ("the payload's model", "the order of steps", "what precedes the wait", "an outcome", "what follows the wait")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("fails_again", [False, True])
def test_an_answer_that_broken_code_was_sent_is_taken_once_by_the_mended_code(
    app: App, sim: Simulation, fault: str, *, fails_again: bool
) -> None:
    """The run fails, is retried by hand, and goes on with the answer. A second answer is a second one."""
    task = create(app)
    sim.advance(MINUTE)
    BROKEN.add(fault)
    app.send_event(task.id, "answer", "yes")
    sim.advance(MINUTE)
    failed = only_run(app, task)
    assert failed.status == "FAILED"
    assert [each.payload for each in failed.events] == ([] if fault == "what follows the wait" else ["yes"])
    with pytest.raises(NotAwaited):
        app.send_event(task.id, "answer", "to a run that cannot go on")
    if fails_again:
        app.retry(task.id)
        sim.advance(MINUTE)
        assert only_run(app, task).status == "FAILED"
    BROKEN.clear()
    app.retry(task.id)
    sim.advance(MINUTE)
    app.send_event(task.id, "answer", "and more")
    sim.run_until_idle()
    done = only_run(app, task)
    assert (done.status, done.content, done.events) == ("SUCCEEDED", ["yes", "and more"], ())


def test_a_second_click_after_the_retry_changes_nothing(app: App, sim: Simulation) -> None:
    """It is known as the answer that was given before the failure."""
    task = create(app)
    sim.advance(MINUTE)
    BROKEN.add("the order of steps")
    app.send_event(task.id, "answer", "yes")
    sim.advance(MINUTE)
    BROKEN.clear()
    app.retry(task.id)
    app.send_event(task.id, "answer", "yes")
    sim.advance(MINUTE)
    assert app.get(task.id).events == ()
    app.send_event(task.id, "answer", "more")
    sim.run_until_idle()
    assert only_run(app, task).content == ["yes", "more"]


def end_by_cancel(app: App, sim: Simulation, task: Task) -> None:
    app.send_event(task.id, "answer", "yes")
    app.cancel(task.id)
    app.update(task.id, schedule=Schedule.once(sim.now + 30 * DAY))


def end_by_loss(app: App, sim: Simulation, task: Task) -> None:
    """Stand still, as a process that was killed does, and for longer than an attempt may take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloudsched.engine.execution.running_handlers.call_handler", _die)
        app.send_event(task.id, "answer", "yes")
        with pytest.raises(KeyboardInterrupt):
            sim.advance(MINUTE)
    sim.advance(10 * MINUTE)


def _die(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("end", [end_by_cancel, end_by_loss])
def test_an_answer_survives_the_end_of_its_run(
    app: App, sim: Simulation, end: Callable[[App, Simulation, Task], None]
) -> None:
    """A cancelled or lost run has it in its record, and a retry of that run takes it."""
    task = create(app)
    sim.advance(MINUTE)
    run = only_run(app, task)
    end(app, sim, task)
    ended = app.execution(task.id, run.id)
    assert ended.status.is_final
    app.retry(task.id, run.id)
    sim.advance(MINUTE)
    app.send_event(task.id, "answer", "more", execution_id=run.id)
    sim.advance(MINUTE)
    assert app.execution(task.id, run.id).content == ["yes", "more"]


@pytest.mark.parametrize("handler", ["parent", "grandparent"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_call_keeps_its_answer_through_the_retry_of_its_caller(
    app: App, sim: Simulation, handler: str, fault: str
) -> None:
    """The call is retried where it failed, and asks nobody again."""
    task = create(app, handler)
    sim.advance(MINUTE)
    tree = app.tree(task.id)
    while tree.children:
        (tree,) = tree.children
    call = tree.task
    BROKEN.add(fault)
    app.send_event(call.id, "answer", "yes")
    sim.advance(5 * MINUTE)
    assert only_run(app, task).status == "FAILED"
    BROKEN.clear()
    app.retry(task.id)
    sim.advance(5 * MINUTE)
    app.send_event(call.id, "answer", "more")
    sim.run_until_idle()
    assert only_run(app, task).content == ["yes", "more"]


def send_from_outside(app: App, task: Task, answer: str) -> Task:
    """Send an event as another process does, while the handler runs."""
    with ThreadPoolExecutor(1) as others:
        return others.submit(app.send_event, task.id, "answer", answer).result()


def test_an_answer_in_time_counts_although_the_run_looks_only_when_time_is_over(app: App, sim: Simulation) -> None:
    """It is accepted after the run has read its task, and before it records that nobody answered."""
    sent = list[object]()

    @app.handler("deadline")
    def wait(ctx: Context) -> object:
        (run,) = app.get(task.id).runs
        deadline = None if run.resumed_from is None else run.resumed_from.deadline
        if deadline is not None and sim.now >= deadline and not sent:
            now, sim.clock.at = sim.now, deadline - MINUTE  # the clock of whoever takes the answer
            sent.append(send_from_outside(app, task, "just in time"))
            sim.clock.at = now
        try:
            return ctx.wait_for("answer", timeout=DAY)
        except EventTimedOut:
            ctx.sleep(DAY)
            return "nobody answered"

    task = create(app, "deadline", payload={})
    sim.advance(2 * DAY)
    assert sent
    assert only_run(app, task).content == "just in time"


def test_no_answer_is_accepted_once_the_run_has_recorded_that_time_is_over(app: App, sim: Simulation) -> None:
    """Whoever takes it, by a clock that is slow, is refused as late."""
    refused = list[NotAwaited]()

    @app.handler("deadline")
    def wait(ctx: Context) -> object:
        try:
            return ctx.wait_for("answer", timeout=DAY)
        except EventTimedOut:
            now, sim.clock.at = sim.now, START + DAY - MINUTE
            with pytest.raises(NotAwaited) as late:
                send_from_outside(app, task, "too late")
            refused.append(late.value)
            sim.clock.at = now
            return "nobody answered"

    task = create(app, "deadline", payload={})
    sim.advance(2 * DAY)
    assert only_run(app, task).content == "nobody answered"
    assert refused


def test_a_retry_that_has_no_room_for_its_events_is_refused_first(app: App, sim: Simulation) -> None:
    """The record keeps them, and is retried once others have been taken."""
    task = create(app, schedule=Schedule.every(DAY, start=START), overlap=Overlap.ALLOW, max_runs=2)
    sim.advance(MINUTE)
    (first,) = app.executions(task.id).items
    BROKEN.add("the order of steps")
    app.send_event(task.id, "answer", "yes", execution_id=first.id)
    sim.advance(MINUTE)
    BROKEN.clear()
    sim.advance(DAY)
    second = next(each for each in app.executions(task.id).items if each.id != first.id)
    for number in range(20):
        app.send_event(task.id, "other", number, execution_id=second.id, early=True)
    with pytest.raises(NotAllowed, match="full of 20 events"):
        app.retry(task.id, first.id)
    assert app.execution(task.id, first.id).events
