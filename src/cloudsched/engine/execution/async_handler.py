"""Call an ``async def`` handler: on the event loop, while the attempt's thread makes its blocking calls."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.engine.durable.event_loop import blocking_calls, event_loop_thread, run_coroutine
from cloudsched.engine.durable.suspend import Suspended
from cloudsched.engine.handlers.async_context import AsyncContext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.registry import Handler


def run_async_handler(handler: Handler, context: Context, payload: object, values: dict[str, Any]) -> object:
    """Return what the handler returns, or raise what it raises.

    Raises:
        WorkflowError: It used its context from several coroutines at once, or left an operation unfinished.
    """
    context.durable_run.allow_event_loop(event_loop_thread())
    with blocking_calls() as calls:
        async_context = AsyncContext(context, calls)
        arguments = handler.build_arguments(async_context, payload)
        try:
            result: object = run_coroutine(partial(_run, partial(handler.function, **values), arguments, async_context))
        except BaseExceptionGroup as group:  # a TaskGroup wraps what is raised in it
            suspension = context.durable_run.suspension
            if suspension is not None and group.subgroup(Suspended) is not None:
                raise suspension from None
            async_context.check_refused(group)
            raise
    return result


async def _run(function: Callable[..., Any], arguments: Sequence[object], context: AsyncContext) -> object:
    result = function(*arguments)
    while inspect.isawaitable(result):
        result = await result
    context.check_complete()  # here, before an operation that is still in progress can end
    return result
