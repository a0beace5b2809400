"""Calls functions of users, which may be asynchronous, in a thread or on the event loop.

`run_procedure` makes the calls of a procedure in the caller's thread. `run_on_loop` awaits them, so that no
thread waits for them. A synchronous function does not import asyncio.
"""

# ruff: noqa: ASYNC109 - a step's timeout, whose task is abandoned

from __future__ import annotations

import contextvars
import inspect
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cloudsched.engine.ports.procedure import LongCall, Procedure, throw_into, to_thrown

if TYPE_CHECKING:
    from datetime import timedelta

    from cloudsched.engine.durable.event_loop import Blocking

T = TypeVar("T")

PLAIN_TYPES: Final = frozenset({type(None), bool, int, float, str, dict, list, tuple})
"""The types that most functions return, and that need no await."""
_ASYNC_FLAGS: Final = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calls return a coroutine or an asynchronous iterator, as far as the definition says."""
    while isinstance(function, partial):
        function = function.func
    if type(function) is FunctionType and not function.__dict__:  # plain: neither decorated nor marked
        return bool(function.__code__.co_flags & _ASYNC_FLAGS)
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    candidates = (function, inspect.unwrap(function), getattr(function, "__call__", None))  # noqa: B004 - may be async
    return any(is_kind(each) for is_kind in kinds for each in candidates)


def call_function(function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function, on the event loop if it is asynchronous, and return its final result."""
    if not is_async(function):
        result = function()
        if not needs_await(result):
            return result
        function = make_coroutine_function(result)
    from cloudsched.engine.durable.event_loop import run_coroutine  # noqa: PLC0415 - imports asyncio

    return run_coroutine(function)


def needs_await(result: object) -> bool:
    """Return whether a function turned out to be asynchronous only when it was called."""
    return type(result) not in PLAIN_TYPES and (inspect.isawaitable(result) or isinstance(result, AsyncIterator))


async def _await(result: Any) -> Any:  # noqa: ANN401 - whatever a function returned
    return result


def make_coroutine_function(result: Any) -> Callable[[], Any]:  # noqa: ANN401 - the same
    """Return a coroutine function that returns an awaitable or asynchronous iterator, to be awaited then."""
    return partial(_await, result)


async def call_on_loop(
    function: Callable[[], Any],
    blocking: Blocking,
    context: contextvars.Context,
    timeout: timedelta | None = None,
) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function and await its result. A function that is not asynchronous runs in a thread."""
    from cloudsched.engine.durable.event_loop import run_in_task  # noqa: PLC0415 - imports asyncio

    if not is_async(function):
        result = await blocking.call(partial(context.run, function))
        if not needs_await(result):
            return result
        function = make_coroutine_function(result)
    return await run_in_task(function, context.copy(), timeout)


@dataclass(frozen=True, slots=True)
class UserCall:
    """A call of a user's function, which may be asynchronous. Its result is awaited."""

    function: Callable[[], Any]

    def make(self) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call the function in this thread. An asynchronous one runs on the event loop meanwhile."""
        return call_function(self.function)

    async def make_on_loop(self, blocking: Blocking, context: contextvars.Context) -> Any:  # noqa: ANN401 - the same
        """Call the function on the event loop, or in a thread if it may block."""
        return await call_on_loop(self.function, blocking, context)


async def run_on_loop(procedure: Procedure[T], blocking: Blocking) -> T:
    """Run a procedure, and return its result. All of it shares a copy of the caller's context variables."""
    from cloudsched.engine.durable.event_loop import set_blocking  # noqa: PLC0415 - imports asyncio

    context = contextvars.copy_context()
    context.run(set_blocking, blocking)
    advance: Callable[[], LongCall | UserCall] = partial(next, procedure)
    try:
        while True:
            is_finished, value = await blocking.request(partial(context.run, _advance, advance))
            if is_finished:
                result: T = value
                return result
            try:
                advance = partial(procedure.send, await _make(value, blocking, context))
            except BaseException as error:  # noqa: BLE001 - raised where the procedure has yielded
                advance = throw_into(procedure, to_thrown(error))
            del value  # it may hold an error, and an error holds this function's variables
    finally:
        context.run(procedure.close)  # it has ended, unless nothing makes its requests any more


async def _make(call: LongCall | UserCall, blocking: Blocking, context: contextvars.Context) -> Any:  # noqa: ANN401 - whatever is called
    if isinstance(call, LongCall):
        return await blocking.call(partial(context.run, call.make))
    return await call.make_on_loop(blocking, context)


def _advance(advance: Callable[[], LongCall | UserCall]) -> tuple[bool, Any]:
    try:
        return False, advance()
    except StopIteration as stop:
        return True, stop.value
