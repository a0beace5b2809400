"""A retry by hand does again what made an execution fail, in whatever words its handler has said that it failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.durable.retry_harness import Bench
from tests.engine.harness import DAY, MINUTE, Row, calling, create

from cloudsched import Cancel, Context, Fail, Retry, Schedule
from cloudsched.errors import CallFailed, JournalMismatch, StepFailed
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.broken |= {"charge 1", "charge 3", "pay"}
    return made


def charged(ctx: Context) -> list[Any]:
    return ctx.gather(*[ctx.call("charge", Row(n=n)) for n in range(4)], return_failures=True)


def in_a_group(_: Bench, ctx: Context) -> object:
    outcomes = charged(ctx)
    if failures := [each for each in outcomes if isinstance(each, CallFailed)]:
        ctx.step("report", lambda: None)
        raise ExceptionGroup("some failed", [ValueError("beside them"), ExceptionGroup("of them", failures)])
    return outcomes


def counted(_: Bench, ctx: Context) -> object:
    outcomes = charged(ctx)
    if failures := [each for each in outcomes if isinstance(each, CallFailed)]:
        raise ValueError(f"{len(failures)} of them failed")
    return outcomes


def one_after_the_other(_: Bench, ctx: Context) -> object:
    calls, results, failures = [ctx.call("charge", Row(n=n)) for n in range(4)], [], 0
    for call in calls:
        try:
            results.append(call.result())
        except CallFailed:
            failures += 1
    if failures:
        raise ValueError(f"{failures} of them failed")
    return results


@pytest.mark.parametrize("call", [in_a_group, counted, one_after_the_other])
def test_all_calls_that_failed_are_made_again_by_one_retry(
    bench: Bench, call: Callable[[Bench, Context], object]
) -> None:
    execution, again = bench.retried(lambda ctx: call(bench, ctx))
    assert (execution.content, again) == ([0, 1, 2, 3], ["charge 1", "charge 3"])


def without_a_cause(error: Exception) -> None:
    raise ValueError(f"no money: {error}") from None


def fail(_: Exception) -> Fail:
    return Fail("no money")


def retry(_: Exception) -> Retry:
    return Retry("no money")


@pytest.mark.parametrize("is_outside", [False, True])
@pytest.mark.parametrize("said", [without_a_cause, fail, retry])
def test_whoever_fails_at_once_fails_by_what_it_was_told_last(
    bench: Bench, said: Callable[[Exception], object], *, is_outside: bool
) -> None:
    """Whether the error names it or not, inside its handling or behind it."""

    def call(ctx: Context) -> object:
        bench.step(ctx, "reserve")
        failed: Exception | None = None
        try:
            bench.step(ctx, "pay")
        except StepFailed as error:
            if not is_outside:
                return said(error)
            failed = error
        return bench.step(ctx, "ship") if failed is None else said(failed)

    execution, again = bench.retried(call)
    assert (execution.content, again) == ("ship", ["pay", "ship"])


def test_whoever_cancels_itself_for_a_failure_can_be_retried_like_who_fails(bench: Bench) -> None:
    def call(ctx: Context) -> object:
        try:
            return bench.step(ctx, "pay")
        except StepFailed:
            return Cancel("no money")

    calling(bench.app, call)
    with Simulation(bench.app) as sim:
        task = create(bench.app, schedule=Schedule.every(DAY, start=START))
        sim.advance(MINUTE)
        assert sim.executions(task.id)[0].status == "CANCELLED"
        bench.broken.clear()
        bench.app.retry(task.id)
        sim.advance(MINUTE)
        assert sim.executions(task.id)[0].content == "pay"


def asked_twice(bench: Bench, ctx: Context) -> object:
    call = ctx.call("charge", Row(n=1))
    try:
        call.result()
    except CallFailed:
        bench.step(ctx, "note")
    return call.result()


def gathered_twice(bench: Bench, ctx: Context) -> object:
    calls = [ctx.call("charge", Row(n=n)) for n in range(3)]
    try:
        ctx.gather(*calls[:2])
    except CallFailed:
        bench.step(ctx, "note")
    return ctx.gather(*calls[1:])[0]


@pytest.mark.parametrize("call", [asked_twice, gathered_twice])
def test_a_handler_that_was_told_twice_goes_on_from_the_first_time(
    bench: Bench, call: Callable[[Bench, Context], object]
) -> None:
    """What it did in between followed from the failure."""
    execution, again = bench.retried(lambda ctx: call(bench, ctx))
    assert (execution.content, again) == (1, ["charge 1"]), execution.error


def test_new_code_that_fails_before_the_end_of_its_journal_loses_nothing_of_it(bench: Bench) -> None:
    """It has asked for nothing since it was told of a failure, and yet that is not what made it fail."""
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

    execution, again = bench.retried(call)
    assert (execution.content, again) == ("done", [])


@pytest.mark.parametrize(
    "source",
    [
        "return await Promise.any([tools.pay({n: 1}), tools.pay({n: 2})])",
        "try { return await tools.pay({n: 1}) } catch (cause) { throw new Error('no', {cause}) }",
        "try { return await tools.pay({n: 1}) } catch (e) { await tools.note({}); throw new Error(e.message) }",
        "try { return await tools.pay({n: 1}) } catch (e) { throw 'no money' }",
    ],
)
def test_a_script_may_put_a_failure_into_its_own_words(bench: Bench, source: str) -> None:
    @bench.app.handler("pay", tool=True, retry=False)
    def pay(row: Row) -> int:
        bench.do("pay")
        return row.n

    @bench.app.handler("note", tool=True)
    def note() -> None:
        bench.do("note")

    with Simulation(bench.app) as sim:
        schedule = Schedule.once(START)
        task = bench.app.create(owner="ada", title="S", script={"source": source}, schedule=schedule)
        sim.run_until_idle()
        assert sim.executions(task.id)[0].status == "FAILED"
        bench.did.clear()
        bench.broken.clear()
        bench.app.retry(task.id)
        sim.run_until_idle()
        assert sim.executions(task.id)[0].content == 1
        assert set(bench.did) == {"pay"}
