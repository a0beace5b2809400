"""One attempt of one step: calls its function with a timeout, and notes the usage that it reports."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloudsched.engine.durable.async_functions import call_function, is_async
from cloudsched.errors import WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta


@dataclass(slots=True)
class Usage:
    """The usage that a handler reported."""

    queries: int = 0
    tokens: int = 0


class _StepAttempt:
    """One call of a step's function that is asynchronous or has a timeout."""

    def __init__(self) -> None:
        self.has_timed_out = False


_STEP_ATTEMPT: contextvars.ContextVar[_StepAttempt | None] = contextvars.ContextVar("try", default=None)


def require_not_timed_out() -> None:
    """Check that the caller is not the function of a step that timed out.

    Raises:
        WorkflowError: It is, and the handler has continued without it.
    """
    attempt = _STEP_ATTEMPT.get()
    if attempt is not None and attempt.has_timed_out:
        raise WorkflowError(
            "This step took longer than its timeout and was abandoned: it can no longer use its context."
        )


def in_step_attempt() -> bool:
    """Whether the caller belongs to a step's function that is asynchronous or has a timeout."""
    return _STEP_ATTEMPT.get() is not None


def call_with_timeout(function: Callable[[], Any], timeout: timedelta | None) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function and drain the iterator if it returns one; abandon it after `timeout`.

    An asynchronous function runs on the event loop, and is cancelled. Python cannot stop any other from outside: an
    abandoned one continues in its own thread, and its result is ignored.
    The next use of its context raises `WorkflowError` in it.

    Raises:
        TimeoutError: It took longer than `timeout`.
    """
    if is_async(function):
        return _call_async(function, timeout)
    if timeout is None:
        return drain_iterator(call_function(function))
    outcomes: list[tuple[Any, BaseException | None]] = []
    context, attempt = contextvars.copy_context(), _StepAttempt()
    context.run(_STEP_ATTEMPT.set, attempt)

    def work() -> None:
        try:
            outcomes.append((context.run(lambda: drain_iterator(call_function(function))), None))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            outcomes.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(min(timeout.total_seconds(), threading.TIMEOUT_MAX))
    attempt.has_timed_out = True
    if not outcomes:
        raise TimeoutError(f"The step took longer than {timeout}.")
    result, error = outcomes[0]
    if error is not None:
        raise error
    return result


def _call_async(function: Callable[[], Any], timeout: timedelta | None) -> Any:  # noqa: ANN401 - the same
    """Run an asynchronous function on the event loop; it is cancelled when it takes longer than `timeout`."""
    from cloudsched.engine.durable.event_loop import run_coroutine  # noqa: PLC0415 - imports asyncio

    context, attempt = contextvars.copy_context(), _StepAttempt()
    context.run(_STEP_ATTEMPT.set, attempt)
    try:
        return drain_iterator(run_coroutine(function, timeout, context))
    finally:
        attempt.has_timed_out = True


def drain_iterator(result: Any) -> Any:  # noqa: ANN401 - the same
    """Return the result, or a list of all items if it is a generator or another iterator."""
    return list(result) if isinstance(result, Iterator) else result
