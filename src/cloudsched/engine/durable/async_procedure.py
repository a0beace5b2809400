"""Runs procedures from the event loop: what blocks goes to a thread, what users wrote as coroutines is awaited."""

from __future__ import annotations

import contextvars
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.engine.durable.event_loop import set_blocking
from cloudsched.engine.durable.procedure import make_thrower

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.durable.event_loop import Blocking
    from cloudsched.engine.durable.procedure import Procedure, UserCall

T = TypeVar("T")


async def run_on_loop(procedure: Procedure[T], blocking: Blocking) -> T:
    """Run a procedure, and return its result. All of it shares a copy of the caller's context variables."""
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
            advance = make_thrower(procedure, error)


def _advance(advance: Callable[[], UserCall]) -> tuple[bool, Any]:
    """Return whether the procedure has ended, and its result or else its next call."""
    try:
        return False, advance()
    except StopIteration as stop:
        return True, stop.value
