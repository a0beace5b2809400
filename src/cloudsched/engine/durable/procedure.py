"""Procedures: engine code that calls functions of users, written once for plain and for async callers.

A procedure is a generator. It does its own work, which may block, between its yields, and yields a `UserCall` where a
function of the user is to be called. `run_procedure` makes these calls in the caller's thread. `run_on_loop`, in
`async_procedure.py`, awaits them on the event loop, so that no thread waits for them.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

if TYPE_CHECKING:
    from contextvars import Context as ContextVariables

    from cloudsched.engine.durable.event_loop import Blocking


_PLAIN_TYPES: Final = frozenset({type(None), bool, int, float, str, dict, list, tuple})
"""What most functions return, and nobody awaits."""
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
    """Call a function, on the event loop if it is asynchronous, and return what it finally returns."""
    if is_async(function):
        from cloudsched.engine.durable.event_loop import run_coroutine  # noqa: PLC0415 - imports asyncio

        return run_coroutine(function)
    return await_result(function())


def await_result(result: Any) -> Any:  # noqa: ANN401 - whatever a function returned
    """Return what a function finally returns that turned out to be asynchronous only when it was called."""
    if type(result) in _PLAIN_TYPES:
        return result
    if inspect.isawaitable(result) or isinstance(result, AsyncIterator):
        return call_function(make_coroutine_function(result))
    return result


async def _await(result: Any) -> Any:  # noqa: ANN401 - the same
    return result


def make_coroutine_function(result: Any) -> Callable[[], Any]:  # noqa: ANN401 - the same
    """Return a coroutine function that returns an awaitable or an asynchronous iterator, which is then awaited."""
    return partial(_await, result)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class UserCall:
    """A call of a user's function, which may be asynchronous; its result is awaited."""

    function: Callable[[], Any]

    def make(self) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call the function in this thread; one that is asynchronous runs on the event loop meanwhile."""
        return call_function(self.function)

    async def make_on_loop(self, blocking: Blocking, context: ContextVariables) -> Any:  # noqa: ANN401 - the same
        """Call the function on the event loop; one that may block runs in a thread."""
        from cloudsched.engine.durable.async_calls import call_on_loop  # noqa: PLC0415 - imports asyncio

        return await call_on_loop(self.function, blocking, context)


@dataclass(frozen=True, slots=True)
class SyncCall(UserCall):
    """A call of a function that is known not to be defined as asynchronous, so that nobody looks at its definition."""

    def make(self) -> Any:  # noqa: ANN401 - the same
        """Call the function in this thread; what it returns may still have to be awaited."""
        return await_result(self.function())


Procedure: TypeAlias = Generator[UserCall, Any, T]


def run_procedure(procedure: Procedure[T]) -> T:
    """Run a procedure in this thread, and return its result."""
    advance: Callable[[], UserCall] = partial(next, procedure)
    while True:
        try:
            call = advance()
        except StopIteration as stop:
            result: T = stop.value
            return result
        try:
            advance = partial(procedure.send, call.make())
        except BaseException as error:  # noqa: BLE001 - raised where the procedure has yielded
            advance = make_thrower(procedure, error)


def make_thrower(procedure: Procedure[Any], error: BaseException) -> Callable[[], UserCall]:
    """Return a function that raises an exception where the procedure has yielded."""
    return lambda: procedure.throw(error)
