"""One attempt of one step: calls its function with a timeout, and notes the usage that it reports.

And its threads.
"""

# ruff: noqa: ANN401 - a step's function may return anything

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.journal import StepKind
from cloudsched.domain.in_words import say_duration
from cloudsched.engine.durable.user_calls import UserCall, call_function, call_on_loop, is_async
from cloudsched.errors import WorkflowError

if TYPE_CHECKING:
    from datetime import timedelta

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.durable.event_loop import Blocking


@dataclass(slots=True)
class ReportedUsage:
    """The usage that a handler reported."""

    queries: int = 0
    tokens: int = 0


def sum_entries(entries: Iterable[JournalEntry], *, is_of_calls: bool = False) -> ReportedUsage:
    """Return what the entries of a journal have used: the calls, or all others."""
    counted = [each for each in entries if (each.kind is StepKind.CALL) is is_of_calls]
    return ReportedUsage(sum(each.queries or 0 for each in counted), sum(each.tokens or 0 for each in counted))


class _StepAttempt:
    """One call of a step's function that is asynchronous, has a timeout, or belongs to an async handler."""

    def __init__(self) -> None:
        self.has_timed_out = False


_STEP_ATTEMPT: contextvars.ContextVar[_StepAttempt | None] = contextvars.ContextVar("try", default=None)


def require_not_timed_out() -> None:
    """Check that the caller is not the function of a step that timed out. Raises WorkflowError."""
    attempt = _STEP_ATTEMPT.get()
    if attempt is not None and attempt.has_timed_out:
        raise WorkflowError(
            "This step took longer than its timeout and was abandoned: it can no longer use its context."
        )


def is_in_step_attempt() -> bool:
    """Return whether the caller belongs to a step's function that has a `_StepAttempt`."""
    return _STEP_ATTEMPT.get() is not None


@dataclass(frozen=True, slots=True)
class StepCall(UserCall):
    """One attempt of a step: a call of its function that is abandoned after `timeout`.

    An asynchronous function runs on the event loop, and is cancelled. Python cannot stop any other from
    outside: an abandoned one continues in its own thread, and its result is ignored. The next use of its
    context raises `WorkflowError` in it. Either way it raises TimeoutError.
    """

    timeout: timedelta | None

    def make(self) -> Any:
        """Call the function in this thread, or in one that can be abandoned.

        Drain the iterator if it returns one.
        """
        if not is_async(self.function):
            return _call_plain(partial(call_function, self.function), self.timeout)
        from cloudsched.engine.durable.event_loop import run_coroutine  # noqa: PLC0415 - imports asyncio

        with _step_attempt() as context:
            return drain_iterator(run_coroutine(self.function, self.timeout, context))

    async def make_on_loop(self, blocking: Blocking, context: contextvars.Context) -> Any:
        """Call the function on the event loop, or in a thread if it may block."""
        if is_async(self.function):
            call = self.function
        else:
            call = partial(_call_plain, self.function, self.timeout)
        with _step_attempt(context) as own:
            result = await call_on_loop(call, blocking, own, self.timeout)
            if isinstance(result, Iterator):
                return await blocking.call(partial(list, result))
            return result


@contextmanager
def _step_attempt(context: contextvars.Context | None = None) -> Iterator[contextvars.Context]:
    """Return context variables that belong to one attempt of a step.

    After the block its context is of no use.
    """
    if context is None:
        own = contextvars.copy_context()
    else:
        own = context.copy()
    attempt = _StepAttempt()
    own.run(_STEP_ATTEMPT.set, attempt)
    try:
        yield own
    finally:
        attempt.has_timed_out = True


def _call_plain(function: Callable[[], Any], timeout: timedelta | None) -> Any:
    """Call a function and drain the iterator if it returns one.

    With a timeout, use a thread that can be abandoned.
    """
    if timeout is None:
        return drain_iterator(function())
    outcomes: list[tuple[Any, BaseException | None]] = []
    with _step_attempt() as context:

        def work() -> None:
            try:
                outcomes.append((context.run(lambda: drain_iterator(function())), None))
            except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
                outcomes.append((None, error))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(min(timeout.total_seconds(), threading.TIMEOUT_MAX))
    if not outcomes:
        raise TimeoutError(f"The step took longer than {say_duration(timeout)}.")
    result, error = outcomes.pop()
    if error is not None:
        try:
            raise error
        finally:
            del error  # it holds this function's variables
    return result


def drain_iterator(result: Any) -> Any:
    """Return the result, or a list of all items if it is a generator or another iterator."""
    if isinstance(result, Iterator):
        return list(result)
    return result


@dataclass(slots=True)
class HandlerThread:
    """Knows what it changed, and which threads may request entries: any until the handler's own is known."""

    own: int | None = None
    event_loop: int | None = None
    change: str | None = None
    """The first call, outside of a step, by which the handler changed something before its first recorded
    request."""

    def require_own(self, what: str) -> None:
        """Check that the request comes from the thread of the handler or of its step.

        Raises WorkflowError.
        """
        if self.own is None or threading.get_ident() in {self.own, self.event_loop} or is_in_step_attempt():
            return
        raise WorkflowError(
            f"{what} is requested in another thread than the handler's own, so its order might differ in a replay. "
            "Request it in the handler and pass the result to its threads. To run work in parallel, use ctx.call "
            "and ctx.gather."
        )


def refuse_change(call: str) -> WorkflowError:
    """Return the refusal of a change that a durable handler makes outside of a step."""
    return WorkflowError(
        f"This handler is durable, and calls {call} outside of a step: each of its replays would call it again. Write "
        f"ctx.step({call.rpartition('.')[2]!r}, {call}, …), followed by the arguments of the call. An async handler "
        "awaits that. To run another handler and get its result, write ctx.call."
    )
