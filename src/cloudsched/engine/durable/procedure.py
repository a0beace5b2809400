"""Calls of functions of users within a procedure, made in a thread or awaited on the event loop.

`run_procedure` makes them in the caller's thread. `run_on_loop` awaits them, so that no thread waits for them.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.engine.durable.async_functions import PLAIN_TYPES, await_result, call_function

if TYPE_CHECKING:
    from cloudsched.engine.durable.event_loop import Blocking
    from cloudsched.engine.ports.procedure import Procedure

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class UserCall:
    """A call of a user's function, which may be asynchronous. Its result is awaited."""

    function: Callable[[], Any]

    def make(self) -> Any:  # noqa: ANN401 - whatever the function returns
        """Call the function in this thread. An asynchronous one runs on the event loop meanwhile."""
        return call_function(self.function)

    async def make_on_loop(self, blocking: Blocking, context: contextvars.Context) -> Any:  # noqa: ANN401 - the same
        """Call the function on the event loop, or in a thread if it may block."""
        from cloudsched.engine.durable.async_calls import call_on_loop  # noqa: PLC0415 - imports asyncio

        return await call_on_loop(self.function, blocking, context)


@dataclass(frozen=True, slots=True)
class SyncCall(UserCall):
    """A call of a function that is known not to be defined as asynchronous, so that nobody looks at its definition."""

    def make(self) -> Any:  # noqa: ANN401 - the same
        """Call the function in this thread, and await its result if need be."""
        result = self.function()
        return result if type(result) in PLAIN_TYPES else await_result(result)


async def run_on_loop(procedure: Procedure[T], blocking: Blocking) -> T:
    """Run a procedure, and return its result. All of it shares a copy of the caller's context variables."""
    from cloudsched.engine.durable.event_loop import set_blocking  # noqa: PLC0415 - imports asyncio

    context = contextvars.copy_context()
    context.run(set_blocking, blocking)
    advance: Callable[[], UserCall] = partial(next, procedure)
    while True:
        is_finished, value = await blocking.request(partial(context.run, _advance, advance))
        if is_finished:
            result: T = value
            return result
        call: UserCall = value
        try:
            advance = partial(procedure.send, await call.make_on_loop(blocking, context))
        except BaseException as error:  # noqa: BLE001 - raised where the procedure has yielded
            advance = partial(procedure.throw, error)


def _advance(advance: Callable[[], UserCall]) -> tuple[bool, Any]:
    """Return whether the procedure has ended, and its result or else its next call."""
    try:
        return False, advance()
    except StopIteration as stop:
        return True, stop.value
