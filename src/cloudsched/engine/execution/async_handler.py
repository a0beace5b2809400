"""Call an ``async def`` handler: on the event loop, while threads make its blocking calls."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.engine.durable.event_loop import current_blocking, handlers_loop
from cloudsched.engine.durable.suspend import Suspended
from cloudsched.engine.handlers.async_context import AsyncContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.handler import Handler


def prepare_async_handler(
    handler: Handler, context: Context, payload: object, values: dict[str, Any]
) -> Callable[[], Any]:
    """Return a coroutine function that calls the handler, and returns what it returns.

    It raises WorkflowError if the handler used its context from several coroutines at once, or left an operation
    unfinished.
    """
    context.durable_run.allow_event_loop(handlers_loop().ident or 0)
    return partial(_run, handler, context, payload, values)


async def _run(handler: Handler, context: Context, payload: object, values: dict[str, Any]) -> object:
    async_context = AsyncContext(context, current_blocking())
    try:
        result = handler.function(*handler.build_arguments(async_context, payload), **values)
        while inspect.isawaitable(result):
            result = await result
        async_context.check_complete()  # here, before an operation that is still in progress can end
    except BaseExceptionGroup as group:  # a TaskGroup wraps what is raised in it
        suspension = context.durable_run.suspension
        if suspension is not None and group.subgroup(Suspended) is not None:
            raise suspension from None
        async_context.check_refused(group)
        raise
    finally:
        async_context.close()
    return result
