"""The built-in handler of tasks that run others in place of a handler of their own: a durable one like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.children import OnChildFailure
from cloudsched.errors import CallFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.children import Child
    from cloudsched.engine.context import Call, Context


def run_children(ctx: Context) -> dict[str, Any]:
    """Run the task's children; return their results in their order, and what failed or was skipped, by number from 0.

    Raises:
        CallFailed: One of them did not succeed, and the task's policy is to fail.
    """
    task = ctx.task
    outcomes = _side_by_side(ctx, task.children) if task.parallel else _in_order(ctx, task.children)
    failed = {number: outcome for number, outcome in enumerate(outcomes) if isinstance(outcome, CallFailed)}
    if failed and task.on_child_failure is OnChildFailure.FAIL:
        raise next(iter(failed.values()))
    return {
        "results": [None if isinstance(outcome, CallFailed) else outcome for outcome in outcomes],
        "failed": [{"child": number, "error": str(failure)} for number, failure in failed.items()],
        "skipped": list(range(len(outcomes), len(task.children))),
    }


def _side_by_side(ctx: Context, children: Sequence[Child]) -> list[Any]:
    return ctx.gather(*[_begun(ctx, child, []) for child in children], return_failures=True)


def _in_order(ctx: Context, children: Sequence[Child]) -> list[Any]:
    outcomes: list[Any] = []
    for child in children:
        results = [None if isinstance(outcome, CallFailed) else outcome for outcome in outcomes]
        outcomes += ctx.gather(_begun(ctx, child, results), return_failures=True)
        goes_on = ctx.task.on_child_failure is OnChildFailure.CONTINUE
        if isinstance(outcomes[-1], CallFailed) and not goes_on:
            break
    return outcomes


def _begun(ctx: Context, child: Child, results: list[Any]) -> Call:
    passed = {} if child.results_as is None else {child.results_as: results}
    return ctx.call(child.handler, {**child.payload, **passed}, **child.options())
