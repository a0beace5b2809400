"""The built-in durable handler of tasks that have children in place of a handler of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.children import Child, OnChildFailure, gather_results
from cloudsched.engine.durable.calls import end_round, start_call, start_round, wait_for_results
from cloudsched.errors import CallFailed, InvalidInput, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.engine.handlers.context import Context

_WHAT = "a task with children"


def run_children(ctx: Context) -> dict[str, Any]:
    """Run the task's children. Return their results, and which failed or were skipped. Raises CallFailed."""
    task = ctx.task
    if task.parallel:
        outcomes = _run_in_parallel(ctx, task.children)
    else:
        outcomes = _run_in_order(ctx, task.children)
    failed = {number: outcome for number, outcome in enumerate(outcomes) if isinstance(outcome, CallFailed)}
    if failed and task.on_child_failure is OnChildFailure.FAIL:
        raise next(iter(failed.values()))
    errors = {number: failure.for_owners for number, failure in failed.items()}
    return gather_results(_successful_results(outcomes), errors, range(len(outcomes), len(task.children)))


def _run_in_parallel(ctx: Context, children: Sequence[Child]) -> list[Any]:
    since = ctx.durable_run.perform(_WHAT, start_round)
    return _wait_for_children(ctx, since, [_start_child(ctx, child, []) for child in children])


def _run_in_order(ctx: Context, children: Sequence[Child]) -> list[Any]:
    outcomes: list[Any] = []
    for child in children:
        since = ctx.durable_run.perform(_WHAT, start_round)
        outcomes += _wait_for_children(ctx, since, [_start_child(ctx, child, _successful_results(outcomes))])
        goes_on = ctx.task.on_child_failure is OnChildFailure.CONTINUE
        if isinstance(outcomes[-1], CallFailed) and not goes_on:
            break
    return outcomes


def _start_child(ctx: Context, child: Child, results: list[Any]) -> int | CallFailed:
    """Start a child and return its number in the journal, or the recorded reason why it cannot start."""
    if child.results_as is None:
        passed = {}
    else:
        passed = {child.results_as: results}
    try:
        payload = {**child.payload, **passed}
        return ctx.durable_run.perform(
            _WHAT,
            start_call,
            child.handler,
            payload,
            child.to_call_fields(),
        ).number
    except (InvalidInput, LimitExceeded) as refused:
        failure = CallFailed(child.handler, "", "REFUSED", type(refused).__name__, str(refused))
        failure.__cause__ = refused
        return failure


def _wait_for_children(ctx: Context, since: int, started_calls: Sequence[int | CallFailed]) -> list[Any]:
    numbers = [each for each in started_calls if isinstance(each, int)]
    results = ctx.durable_run.perform(_WHAT, wait_for_results, numbers, as_recorded=True)
    outcomes = dict(zip(numbers, results, strict=True))
    ctx.durable_run.perform(_WHAT, end_round, since)
    return [outcomes[each] if isinstance(each, int) else each for each in started_calls]


def _successful_results(outcomes: Sequence[Any]) -> list[Any]:
    return [None if isinstance(outcome, CallFailed) else outcome for outcome in outcomes]
