"""The built-in handler of tasks that run others in place of a handler of their own: a durable one like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.children import OnChildFailure, gathered
from cloudsched.errors import CallFailed, InvalidInput, LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.children import Child
    from cloudsched.engine.handlers.context import Context


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
    errors = {number: str(failure) for number, failure in failed.items()}
    return gathered(_results(outcomes), errors, range(len(outcomes), len(task.children)))


def _side_by_side(ctx: Context, children: Sequence[Child]) -> list[Any]:
    since = ctx.journal.position + 1
    return _ended(ctx, since, [_begun(ctx, child, []) for child in children])


def _in_order(ctx: Context, children: Sequence[Child]) -> list[Any]:
    outcomes: list[Any] = []
    for child in children:
        since = ctx.journal.position + 1
        outcomes += _ended(ctx, since, [_begun(ctx, child, _results(outcomes))])
        goes_on = ctx.task.on_child_failure is OnChildFailure.CONTINUE
        if isinstance(outcomes[-1], CallFailed) and not goes_on:
            break
    return outcomes


def _begun(ctx: Context, child: Child, results: list[Any]) -> int | CallFailed:
    """Begin a child, and return its number in the journal; or why it cannot begin, as it was recorded."""
    passed = {} if child.results_as is None else {child.results_as: results}
    try:
        return ctx.journal.call(child.handler, {**child.payload, **passed}, child.options())
    except (InvalidInput, LimitExceeded) as refused:
        failure = CallFailed(child.handler, "", "REFUSED", type(refused).__name__, str(refused))
        failure.__cause__ = refused
        return failure


def _ended(ctx: Context, since: int, begun: Sequence[int | CallFailed]) -> list[Any]:
    """Return what came of children, once all of them have ended: their results as they were recorded, or why not."""
    numbers = [each for each in begun if isinstance(each, int)]
    outcomes = dict(zip(numbers, ctx.journal.results(numbers, as_recorded=True), strict=True))
    ctx.journal.told_together(since)
    return [outcomes[each] if isinstance(each, int) else each for each in begun]


def _results(outcomes: Sequence[Any]) -> list[Any]:
    return [None if isinstance(outcome, CallFailed) else outcome for outcome in outcomes]
