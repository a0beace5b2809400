"""A manual retry of a durable execution repeats what made it fail, and nothing that had succeeded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.durable.retry_harness import RetryHarness
from tests.engine.harness import DAY, MINUTE, SECOND, Create, Row, Simulate, only_run, register_work_handler

from cloudsched import App, Context, Schedule
from cloudsched.errors import CallFailed, EventTimedOut, NotAllowed, StepFailed
from cloudsched.testing import Simulation


@pytest.fixture
def bench(app: App) -> RetryHarness:
    return RetryHarness(app)


def charge_card_a(bench: RetryHarness, ctx: Context) -> None:
    bench.broken.add("card A")
    try:
        bench.step(ctx, "card A")
    except StepFailed:
        bench.step(ctx, "card B")


def wait_for_approval(_: RetryHarness, ctx: Context) -> None:
    with pytest.raises(EventTimedOut):
        ctx.wait_for("approved", timeout=DAY)


def gather_failed_call(bench: RetryHarness, ctx: Context) -> None:
    bench.broken.add("charge 1")
    ctx.gather(ctx.call("charge", Row(n=1)), ctx.call("charge", Row(n=2)), return_failures=True)


def gather_failed_call_and_step(bench: RetryHarness, ctx: Context) -> None:
    bench.broken.add("charge 1")
    try:
        ctx.call("charge", Row(n=1)).result()
    except CallFailed:
        bench.step(ctx, "in the handling of it")
        bench.raise_if_broken()


@pytest.mark.parametrize("caught", [charge_card_a, wait_for_approval, gather_failed_call, gather_failed_call_and_step])
def test_a_caught_failure_is_not_repeated_by_a_retry(
    bench: RetryHarness, caught: Callable[[RetryHarness, Context], None]
) -> None:
    """A later bug is fixed, and nothing is done twice: neither what failed nor what followed from it."""

    def call(ctx: Context) -> str:
        caught(bench, ctx)
        bench.step(ctx, "ship")
        bench.raise_if_broken()
        return "done"

    execution, again = bench.run_fix_and_retry(call)
    assert execution.content == "done"
    assert again == ([] if caught is not gather_failed_call_and_step else ["ship"])


def test_a_failed_call_is_repeated_without_the_calls_after_it(
    bench: RetryHarness, sim: Simulation, create: Create
) -> None:
    """The second one was made, and runs still: it is waited for, and not made again."""
    bench.broken.add("charge 1")

    @bench.app.handler("nap")
    def nap(ctx: Context) -> str:
        ctx.sleep(DAY)
        return bench.perform("slept")

    def call(ctx: Context) -> list[object]:
        charged, slept = ctx.call("charge", Row(n=1)), ctx.call("nap")
        return [charged.result(), slept.result()]

    register_work_handler(bench.app, call)
    task = create()
    sim.advance(MINUTE)
    bench.broken.clear()
    bench.app.retry(task.id)
    sim.run_until_idle(366 * DAY)
    assert only_run(sim, task).content == [1, "slept"]
    assert len(bench.app.tree(task.id).children) == 3
    assert bench.effects == ["charge 1", "charge 1", "slept"]


@pytest.mark.parametrize("is_waited_for", [True, False])
@pytest.mark.parametrize("mended", [{1}, {3}, {1, 3}])
def test_a_call_that_was_retried_itself_is_not_made_again(
    bench: RetryHarness, sim: Simulation, create: Create, mended: set[int], *, is_waited_for: bool
) -> None:
    """It has succeeded since, or is running; the other failed calls are made again."""
    bench.broken |= {"charge 1", "charge 3"}
    register_work_handler(bench.app, lambda ctx: ctx.gather(*[ctx.call("charge", Row(n=n)) for n in range(4)]))
    task = create()
    sim.run_until_idle(366 * DAY)
    bench.effects.clear()
    bench.broken.clear()
    for child in bench.app.tree(task.id).children:
        if child.task.payload["n"] in mended:
            bench.app.retry(child.task.id)
    if is_waited_for:
        sim.run_until_idle(366 * DAY)
    bench.app.retry(task.id)
    sim.run_until_idle(366 * DAY)
    assert only_run(sim, task).content == [0, 1, 2, 3]
    assert sorted(bench.effects) == ["charge 1", "charge 3"]


def reraise(error: Exception) -> None:
    raise error


def fail_with_message(error: Exception) -> None:
    raise ValueError("no money") from error


def raise_from(error: Exception) -> None:
    try:
        raise error
    except StepFailed:
        raise ValueError("no money")  # noqa: B904 - as handlers do


@pytest.mark.parametrize("left", [reraise, fail_with_message, raise_from])
def test_a_failure_that_is_raised_again_is_the_cause_of_the_execution_failure(
    bench: RetryHarness, left: Callable[[Exception], None]
) -> None:
    """Operations that followed it are dropped with it, or the replay would diverge."""
    bench.broken.add("pay")

    def call(ctx: Context) -> str:
        bench.step(ctx, "reserve")
        try:
            bench.step(ctx, "pay")
        except StepFailed as error:
            if left is not raise_from:
                bench.step(ctx, "give back")
            left(error)
        return bench.step(ctx, "ship")

    execution, again = bench.run_fix_and_retry(call)
    assert (execution.content, again) == ("ship", ["pay", "ship"])


def test_fixed_code_may_replace_the_failed_operation(bench: RetryHarness) -> None:
    bench.broken.add("pay")

    def call(ctx: Context) -> int:
        bench.step(ctx, "reserve")
        if "the code" in bench.broken:
            bench.step(ctx, "pay")
        result: int = ctx.call("charge", Row(n=7)).result()
        return result

    execution, again = bench.run_fix_and_retry(call)
    assert (execution.content, again) == (7, ["charge 7"])


def test_a_repeated_wait_has_its_full_timeout_again(bench: RetryHarness, sim: Simulation, create: Create) -> None:
    register_work_handler(bench.app, lambda ctx: ctx.wait_for("approved", timeout=DAY))
    task = create()
    sim.advance(10 * DAY)
    assert [each.status for each in sim.executions(task.id)] == ["FAILED"]
    bench.app.retry(task.id)
    sim.advance(DAY - MINUTE)
    bench.app.send_event(task.id, "approved", "yes")
    sim.advance(SECOND)
    assert only_run(sim, task).content == "yes"


def test_calls_cancelled_with_their_parent_are_made_again(bench: RetryHarness, sim: Simulation, create: Create) -> None:
    """One retry is enough, as often as that is done; what had succeeded is not called again."""

    @bench.app.handler("nap")
    def nap(ctx: Context) -> str:
        ctx.sleep(DAY)
        return bench.perform("slept")

    def call(ctx: Context) -> list[object]:
        return ctx.gather(ctx.call("charge", Row(n=1)), *[ctx.call("nap") for _ in range(2)])

    register_work_handler(bench.app, call)
    task = create()
    sim.advance(MINUTE)
    for _ in range(2):
        bench.app.cancel(task.id)
        execution = only_run(sim, task)
        bench.app.update(task.id, schedule=Schedule.once(sim.now + 100 * DAY))
        bench.app.retry(task.id, execution.id)
        sim.advance(MINUTE)
    sim.advance(2 * DAY)
    execution = only_run(sim, task)
    assert (execution.status, execution.content) == ("SUCCEEDED", [1, "slept", "slept"])
    assert bench.effects == ["charge 1", "slept", "slept"]


def test_an_ended_call_is_retained_for_a_retry_of_its_parent(
    bench: RetryHarness, simulate: Simulate, create: Create
) -> None:
    """Ended tasks are removed after a week here; a failed parent may read its call's result after a month."""

    def call(ctx: Context) -> int:
        charged = ctx.call("charge", Row(n=1))
        ctx.sleep(20 * DAY)
        bench.raise_if_broken()
        result: int = charged.result()
        return result

    register_work_handler(bench.app, call)
    sim = simulate(retention=7 * DAY)
    task = create(retry={"maxRetries": 0}, retention=100 * DAY)
    sim.advance(50 * DAY)
    bench.broken.clear()
    bench.app.retry(task.id)
    sim.advance(MINUTE)
    assert only_run(sim, task).content == 1
    sim.run_until_idle(366 * DAY)
    assert not bench.app.tasks().items
    assert bench.effects == ["charge 1"]


def test_an_execution_whose_steps_are_gone_is_not_retried(
    bench: RetryHarness, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were too many for the record, and their blob was removed: the retry does not run them again."""
    monkeypatch.setattr("cloudsched.engine.durable.archive.MAX_INLINE_STEPS_BYTES", 100)

    def call(ctx: Context) -> None:
        bench.step(ctx, "pay")
        bench.raise_if_broken()

    register_work_handler(bench.app, call)
    task = create(retry={"maxRetries": 0})
    sim.run_until_idle(366 * DAY)
    bench.app.container.blobs.delete(task.id)
    with pytest.raises(NotAllowed, match="missing the steps of that execution"):
        bench.app.retry(task.id)
    sim.run_until_idle(366 * DAY)
    assert bench.effects == ["pay"]


def test_a_retry_does_not_repeat_a_call_whose_task_is_deleted(
    bench: RetryHarness, sim: Simulation, create: Create
) -> None:
    """The call was in progress when its parent failed, so its result is unknown: the parent gets that as an error."""

    @bench.app.handler("slow")
    def slow(ctx: Context) -> None:
        ctx.step("charge", lambda: bench.effects.append("charge"))
        ctx.sleep(9 * DAY)

    def call(ctx: Context) -> str:
        charged = ctx.call("slow")
        ctx.sleep(DAY)
        bench.raise_if_broken()
        with pytest.raises(CallFailed, match="DELETED"):
            charged.result()
        return "done"

    register_work_handler(bench.app, call)
    task = create(retry={"maxRetries": 0})
    sim.advance(2 * DAY)
    bench.app.delete(bench.app.tree(task.id).children[0].task.id)
    bench.broken.clear()
    bench.app.retry(task.id)
    sim.run_until_idle(366 * DAY)
    assert only_run(sim, task).content == "done"
    assert bench.effects == ["charge"]
