"""A manual retry repeats what made an execution fail, however its handler reported the failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.durable.retry_harness import RetryHarness
from tests.engine.harness import DAY, MINUTE, Create, Row, only_run, register_work_handler

from cloudsched import App, Cancel, Context, Fail, Retry, Schedule
from cloudsched.errors import CallFailed, JournalMismatch, StepFailed
from cloudsched.testing import START, Simulation


@pytest.fixture
def bench(app: App) -> RetryHarness:
    made = RetryHarness(app)
    made.broken |= {"charge 1", "charge 3", "pay"}
    return made


def gather_charges(ctx: Context) -> list[Any]:
    return ctx.gather(*[ctx.call("charge", Row(n=n)) for n in range(4)], return_failures=True)


def raise_exception_group(_: RetryHarness, ctx: Context) -> object:
    outcomes = gather_charges(ctx)
    if failures := [each for each in outcomes if isinstance(each, CallFailed)]:
        ctx.step("report", lambda: None)
        raise ExceptionGroup("some failed", [ValueError("beside them"), ExceptionGroup("of them", failures)])
    return outcomes


def raise_failure_count(_: RetryHarness, ctx: Context) -> object:
    outcomes = gather_charges(ctx)
    if failures := [each for each in outcomes if isinstance(each, CallFailed)]:
        raise ValueError(f"{len(failures)} of them failed")
    return outcomes


def fail_sequentially(_: RetryHarness, ctx: Context) -> object:
    calls, results, failures = [ctx.call("charge", Row(n=n)) for n in range(4)], [], 0
    for call in calls:
        try:
            results.append(call.result())
        except CallFailed:
            failures += 1
    if failures:
        raise ValueError(f"{failures} of them failed")
    return results


@pytest.mark.parametrize("call", [raise_exception_group, raise_failure_count, fail_sequentially])
def test_all_calls_that_failed_are_made_again_by_one_retry(
    bench: RetryHarness, call: Callable[[RetryHarness, Context], object]
) -> None:
    execution, again = bench.run_fix_and_retry(lambda ctx: call(bench, ctx))
    assert (execution.content, again) == ([0, 1, 2, 3], ["charge 1", "charge 3"])


def raise_without_cause(error: Exception) -> None:
    raise ValueError(f"no money: {error}") from None


def fail(_: Exception) -> Fail:
    return Fail("no money")


def retry(_: Exception) -> Retry:
    return Retry("no money")


@pytest.mark.parametrize("is_outside", [False, True])
@pytest.mark.parametrize("end_with", [raise_without_cause, fail, retry])
def test_an_immediate_failure_is_caused_by_the_last_failure_seen(
    bench: RetryHarness, end_with: Callable[[Exception], object], *, is_outside: bool
) -> None:
    """Whether the error names it or not, inside its handling or behind it."""

    def call(ctx: Context) -> object:
        bench.step(ctx, "reserve")
        failed: Exception | None = None
        try:
            bench.step(ctx, "pay")
        except StepFailed as error:
            if not is_outside:
                return end_with(error)
            failed = error
        return bench.step(ctx, "ship") if failed is None else end_with(failed)

    execution, again = bench.run_fix_and_retry(call)
    assert (execution.content, again) == ("ship", ["pay", "ship"])


def test_a_handler_that_cancels_after_a_failure_can_be_retried(
    bench: RetryHarness, sim: Simulation, create: Create
) -> None:
    def call(ctx: Context) -> object:
        try:
            return bench.step(ctx, "pay")
        except StepFailed:
            return Cancel("no money")

    register_work_handler(bench.app, call)
    task = create(schedule=Schedule.every(DAY, start=START))
    sim.advance(MINUTE)
    assert only_run(sim, task).status == "CANCELLED"
    bench.broken.clear()
    bench.app.retry(task.id)
    sim.advance(MINUTE)
    assert only_run(sim, task).content == "pay"


def test_new_code_that_fails_during_the_replay_keeps_the_journal(bench: RetryHarness) -> None:
    """The failed step was the last thing it used, and yet that step is not why it fails now."""
    began = list[None]()

    def call(ctx: Context) -> str:
        began.append(None)
        try:
            bench.step(ctx, "pay")
        except StepFailed:
            if len(began) == 2:
                raise JournalMismatch(2, "x", "y") from None
            bench.step(ctx, "card B")
        ctx.sleep(MINUTE)
        return "done"

    execution, again = bench.run_fix_and_retry(call)
    assert (execution.content, again) == ("done", [])
