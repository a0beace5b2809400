"""Calls functions of users from the event loop: coroutines in tasks of their own, blocking ones in a thread."""

# ruff: noqa: ASYNC109 - a step's timeout, whose task is abandoned

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.engine.durable import event_loop
from cloudsched.engine.durable.async_functions import is_async, make_coroutine_function

if TYPE_CHECKING:
    from cloudsched.engine.durable.event_loop import Blocking

_running = set["asyncio.Task[Any]"]()
"""The running tasks: the event loop alone would let them be collected."""


async def call_on_loop(
    function: Callable[[], Any], blocking: Blocking, context: contextvars.Context, timeout: timedelta | None = None
) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function and await its result. A function that is not asynchronous runs in a thread."""
    if not is_async(function):
        result = await blocking.call(partial(context.run, function))
        if not inspect.isawaitable(result) and not isinstance(result, AsyncIterator):
            return result
        function = make_coroutine_function(result)
    return await run_in_task(function, context.copy(), timeout)


async def run_in_task(
    function: Callable[[], Any], context: contextvars.Context, timeout: timedelta | None = None
) -> Any:  # noqa: ANN401 - the same
    """Await a function's result in a task of its own.

    Raises:
        TimeoutError: It took longer than `timeout`: it was cancelled, and is abandoned unless it ends soon.
    """
    task, outcome = _start(function, context)
    await asyncio.wait({task}, timeout=None if timeout is None else event_loop.limit_seconds(timeout))
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=event_loop.CLEANUP_SECONDS)
        raise TimeoutError(f"The step took longer than {timeout}.")
    return outcome.unwrap()


async def shield(function: Callable[[], Any]) -> event_loop.Outcome:
    """Await a function's result in a task of its own, which goes on if the caller is cancelled."""
    task, outcome = _start(function, contextvars.copy_context())
    await asyncio.wait({task})
    return outcome


def _start(function: Callable[[], Any], context: contextvars.Context) -> tuple[asyncio.Task[None], event_loop.Outcome]:
    outcome = event_loop.Outcome()
    task = asyncio.get_running_loop().create_task(outcome.capture(function), context=context)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task, outcome
