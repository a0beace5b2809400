"""Calls functions of users that may be asynchronous. A synchronous function does not import asyncio."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import FunctionType
from typing import Any, Final

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
    if is_async(function):
        from cloudsched.engine.durable.event_loop import run_coroutine  # noqa: PLC0415 - imports asyncio

        return run_coroutine(function)
    return await_result(function())


def await_result(result: Any) -> Any:  # noqa: ANN401 - whatever a function returned
    """Return the final result of a function that turned out to be asynchronous only when it was called."""
    if type(result) in PLAIN_TYPES:
        return result
    if inspect.isawaitable(result) or isinstance(result, AsyncIterator):
        return call_function(make_coroutine_function(result))
    return result


async def _await(result: Any) -> Any:  # noqa: ANN401 - the same
    return result


def make_coroutine_function(result: Any) -> Callable[[], Any]:  # noqa: ANN401 - the same
    """Return a coroutine function that returns an awaitable or an asynchronous iterator, which is then awaited."""
    return partial(_await, result)
