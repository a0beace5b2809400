"""Call an ``async def`` handler: on the event loop, while threads make its blocking calls."""

from __future__ import annotations

import inspect
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.durable.event_loop import current_blocking, handlers_loop
from cloudsched.engine.durable.suspension import Suspended
from cloudsched.engine.handlers.async_context import AsyncContext
from cloudsched.engine.ports.procedure import throw_into

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.registry import Handler

log: Final = own_logger(__name__)

BLOCKING_SECONDS = 1.0
"""The time that a handler may keep the event loop to itself before a line in the log says so."""


def prepare_async_handler(
    handler: Handler, context: Context, payload: object, values: dict[str, Any]
) -> Callable[[], Any]:
    """Return a coroutine function that calls the handler, and returns what it returns.

    It raises WorkflowError if the handler used its context from several coroutines at once, or left an
    operation unfinished.
    """
    context.durable_run.allow_event_loop(handlers_loop().ident or 0)
    return partial(_run, handler, context, payload, values)


async def _run(handler: Handler, context: Context, payload: object, values: dict[str, Any]) -> object:
    async_context = AsyncContext(context, current_blocking())
    try:
        result = handler.function(*handler.build_arguments(async_context, payload), **values)
        while inspect.isawaitable(result):
            result = await _Watched(result, handler.name)
        if context.durable_run.suspension is not None:  # asyncio.gather has returned it among its results
            raise context.durable_run.suspension
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


class _Watched:
    """Awaits what a handler returned, and logs where it blocked the event loop, and so all other handlers."""

    def __init__(self, awaitable: Awaitable[object], handler: str) -> None:
        self._awaitable = awaitable
        self._handler = handler

    async def _await(self) -> object:
        return await self._awaitable

    def __await__(self) -> Generator[Any, Any, object]:
        coroutine = self._await()
        go_on: Callable[[], Any] = partial(coroutine.send, None)
        while True:
            began = monotonic()
            try:
                yielded = go_on()
            except StopIteration as ended:
                return ended.value
            finally:
                self._note(monotonic() - began)
            try:
                go_on = partial(coroutine.send, (yield yielded))
            except BaseException as error:  # noqa: BLE001 - it is the handler's
                go_on = throw_into(coroutine, error)

    def _note(self, seconds: float) -> None:
        if seconds >= BLOCKING_SECONDS:
            log.warning(
                "handler %r blocked the event loop for %.1f s: no other async handler ran meanwhile. Make blocking "
                "calls in a plain function that ctx.step calls, in asyncio.to_thread, or write a handler without async",
                self._handler,
                seconds,
            )
