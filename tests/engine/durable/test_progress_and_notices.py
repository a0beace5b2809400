"""What a durable handler reports besides its result is recorded once, however often it is replayed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.engine.harness import DAY, MINUTE, Create, Simulate, register_work_handler, run, run_to_end

from cloudsched import App, Context
from cloudsched.domain.documents.execution import Execution
from cloudsched.errors import StepFailed


def message_texts(execution: Execution) -> list[str]:
    assert execution.status == "SUCCEEDED", execution.error
    return [step.text for step in execution.progress]


@pytest.mark.parametrize("replay", [False, True])
def test_progress_is_recorded_once_and_costs_a_replay_nothing(app: App, *, replay: bool) -> None:
    """This includes progress from steps, repeated texts, and progress of an attempt that fails later."""
    failed = list[object]()

    def inside(ctx: Context) -> None:
        ctx.progress("inside")

    def call(ctx: Context) -> None:
        ctx.progress("begins")
        ctx.step("first", inside, ctx)
        for day in range(3):
            ctx.progress("a day")
            ctx.sleep(DAY)
            ctx.progress(f"day {day} is over")
            ctx.step("day", lambda: None)
        if not failed:
            failed.append(None)
            raise ConnectionError("no")
        ctx.progress("ends")

    register_work_handler(app, call)
    days = [text for day in range(3) for text in ("a day", f"day {day} is over")]
    assert message_texts(run(app, replay=replay)) == ["begins", "inside", *days, "ends"]


def test_progress_in_a_replay_renews_a_lease_that_is_half_over(app: App, simulate: Simulate, create: Create) -> None:
    """A handler that computes for a long time between steps reports progress to keep its lease, in every replay."""
    left = list[timedelta]()

    def call(ctx: Context) -> None:
        for _ in range(4):
            sim.clock.advance(2 * MINUTE)
            ctx.progress("still at it")
            left.append(ctx.time_left())
            ctx.step("s", lambda: None)
        ctx.sleep(DAY)

    register_work_handler(app, call)
    sim = simulate(time_limit=DAY / 24)
    task = create()
    execution = run_to_end(sim, task, 366 * DAY)
    assert len(message_texts(execution)) == 4
    assert len(execution.attempts) == 1
    assert left[:4] == [5 * MINUTE] * 4
    assert left[4:] == [3 * MINUTE, 5 * MINUTE, 3 * MINUTE, 5 * MINUTE]


@pytest.mark.parametrize("replay", [False, True])
def test_the_usage_of_steps_is_part_of_the_usage_of_the_execution(app: App, *, replay: bool) -> None:
    """Usage counts in all attempts, even failed ones; no replay counts it again, in steps or beside them."""
    tries = list[object]()

    def ask(ctx: Context) -> None:
        ctx.used(queries=1, tokens=1000)
        tries.append(None)
        if len(tries) < 3:
            raise ConnectionError("no")

    def fail(ctx: Context) -> None:
        ctx.used(tokens=50)
        raise ValueError

    def call(ctx: Context) -> None:
        ctx.used(tokens=3)
        ctx.step("ask", ask, ctx, retry=3)
        ctx.sleep(DAY)
        with pytest.raises(StepFailed):
            ctx.step("fail", fail, ctx, retry=False, timeout=MINUTE)
        ctx.step("more", ctx.used, queries=5)
        ctx.sleep(DAY)
        ctx.used(queries=10)

    execution = run(app, call, replay=replay)
    assert execution.status == "SUCCEEDED", execution.error
    assert (execution.queries, execution.tokens) == (3 + 5 + 10, 3000 + 50 + 3)
    assert [(step.queries, step.tokens) for step in execution.steps if step.kind == "STEP"] == [
        (3, 3000),
        (None, 50),
        (5, None),
    ]


@pytest.mark.parametrize("replay", [False, True])
def test_a_notice_inside_a_step_is_refused_and_one_beside_it_is_sent_once(
    app: App, simulate: Simulate, create: Create, *, replay: bool
) -> None:
    """The attempt that succeeds puts it into the inbox, and does not call the step."""
    messages = list[str]()

    def call(ctx: Context) -> None:
        try:
            ctx.step("tell", ctx.notify, "Inside", "x")
        except StepFailed as failure:
            messages.append(str(failure))
        ctx.notify("Beside", "x")
        ctx.sleep(DAY)

    register_work_handler(app, call)
    sim = simulate(replay=replay)
    create()
    sim.run_until_idle()
    assert [message.title for message in sim.inbox("ada")] == ["Beside"]
    refusal = "A step cannot contain other operations: move ctx.notify out of it, into the handler."
    assert set(messages) == {f"Step 'tell' failed: WorkflowError: {refusal}"}
