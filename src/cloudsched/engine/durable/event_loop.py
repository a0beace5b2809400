"""Runs coroutines on the process's one event loop, while the thread that needs their result waits for it.

The loop lives in a thread of its own for as long as the process, so that pooled clients, which belong to a
loop, survive from one attempt to the next. A coroutine may ask the waiting thread to make a call
(`BlockingCalls.request`): calls that block, or that must stay in one thread, run in the attempt's own thread.
"""

# ruff: noqa: ASYNC109 - a step's timeout, whose task is abandoned

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, Protocol

from cloudsched.domain.in_words import say_duration
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.raised_errors import get_traceback
from cloudsched.domain.transitions.outcome import go_on
from cloudsched.engine.durable.suspension import Suspended
from cloudsched.engine.tracing import attempt_fields
from cloudsched.errors import WorkflowError

if TYPE_CHECKING:
    from datetime import timedelta

log: Final = own_logger(__name__)

CLEANUP_SECONDS = 1.0
"""The seconds that a cancelled coroutine may take to clean up before it is abandoned."""
BLOCKED_SECONDS = 10.0
"""The seconds for which the loop may stand still. After that another takes its place."""
_BLOCKED = f"A blocking call has kept the event loop from turning for {BLOCKED_SECONDS:.0f} s."
HAS_ENDED = "The attempt has ended: its context can no longer be used. Await all that uses it in the handler."
_LOCAL = threading.local()
_BLOCKING: contextvars.ContextVar[Blocking] = contextvars.ContextVar("cloudsched_blocking")
"""The threads that make the blocking calls of the running coroutine."""


class Blocking(Protocol):
    """The threads that work for one attempt while its coroutine waits on the event loop.

    A function sees the context variables of the caller, who gets its result or error.
    """

    async def request(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the function returns
        """Have a thread call a function of the engine, one after the other.

        Raises WorkflowError after the attempt.
        """

    async def call(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - the same
        """Have a thread call a function of the user, which may take long."""


class Outcome:
    """The result or error of a call, to be handed from one thread or task to another."""

    def __init__(self) -> None:
        self._result: Any = None
        self._error: BaseException | None = None

    def call(self, function: Callable[[], Any]) -> None:
        """Call a function."""
        try:
            self._result = function()
        except BaseException as error:  # noqa: BLE001 - raised again by `unwrap`
            self._error = error

    async def capture(self, function: Callable[[], Any]) -> None:
        """Call a function on the event loop and await its result.

        No error of the function may end the loop.
        """
        try:
            self._result = await await_result(function)
        except BaseException as error:  # noqa: BLE001 - raised again by `unwrap`
            # No variable may have the traceback: it has this function's variables.
            self._error = BaseException.with_traceback(error, getattr(get_traceback(error), "tb_next", None))

    def unwrap(self) -> Any:  # noqa: ANN401 - whatever the function returned
        """Return the call's result or raise its error, once, since a stored error would keep its caller alive."""
        error = self._error
        self._error = None
        if error is not None:
            try:
                raise error
            finally:
                del error
        return self._result


async def await_result(function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function and await its result, collecting the items of an asynchronous iterator in a list."""
    result = function()
    while inspect.isawaitable(result):
        result = await result
    if isinstance(result, AsyncIterator):
        return [item async for item in result]
    return result


class ThreadRequest:
    """A function that a coroutine asks a thread to call, with the coroutine's context variables."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = partial(contextvars.copy_context().run, function)
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Outcome] = self._loop.create_future()

    async def result(self) -> Any:  # noqa: ANN401 - whatever the function returns
        """Wait for the thread, then return the function's result or raise its error."""
        return (await self._answer).unwrap()

    def serve(self) -> None:
        """Call the function, and give its outcome to the coroutine."""
        self.give(self.call())

    def call(self) -> Outcome:
        """Call the function."""
        outcome = Outcome()
        outcome.call(self._function)
        return outcome

    def give(self, outcome: Outcome) -> None:
        """Resume the coroutine with an outcome, if it still waits."""
        with suppress(RuntimeError):  # a loop of the user's own has been closed
            self._loop.call_soon_threadsafe(
                lambda: None if self._answer.done() else self._answer.set_result(outcome),
            )

    def refuse(self) -> None:
        """Tell the coroutine that its attempt has ended."""
        outcome = Outcome()
        outcome.call(_refuse)
        self.give(outcome)


def _refuse() -> None:
    raise WorkflowError(HAS_ENDED)


class BlockingCalls:
    """A `Blocking` whose calls are made by the thread that creates it, while it waits for the coroutines."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._messages: SimpleQueue[ThreadRequest | Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False

    async def request(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the function returns
        """Have the waiting thread call a function, and return its result. Raises WorkflowError."""
        if threading.get_ident() == self._thread:  # a step's function with a loop of its own
            return function()
        request = ThreadRequest(function)
        with self._lock:
            if self._is_closed:
                _refuse()
            self._messages.put(request)
        return await request.result()

    async def call(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - the same
        """Have the waiting thread call a function of the user."""
        return await self.request(function)

    def put(self, message: Callable[[], None]) -> None:
        """Have the waiting thread call a function that cannot fail. Any thread may call this."""
        self._messages.put(message)

    def serve(self, is_done: Callable[[], bool], seconds: float | None = None) -> None:
        """Make the requested calls until `is_done`, or until nothing was requested for `seconds`."""
        try:
            while not is_done():
                message = self._messages.get(timeout=seconds)
                if isinstance(message, ThreadRequest):
                    message.serve()
                else:
                    message()
        except Empty:
            return

    def close(self) -> None:
        """Refuse all further requests, and those that were not served."""
        with self._lock:
            self._is_closed = True
        while not self._messages.empty():
            message = self._messages.get()
            if isinstance(message, ThreadRequest):
                message.refuse()


def set_blocking(blocking: Blocking) -> None:
    """Set the threads that make the blocking calls of code in the current context."""
    _BLOCKING.set(blocking)


def current_blocking() -> Blocking:
    """Return the threads that make the blocking calls of the handler that calls this on the event loop."""
    return _BLOCKING.get()


@contextmanager
def blocking_calls() -> Iterator[BlockingCalls]:
    """Return the calls of this thread. The outermost `with` block of the thread creates and closes them."""
    present: BlockingCalls | None = getattr(_LOCAL, "calls", None)
    if present is not None:
        yield present
        return
    _LOCAL.calls = calls = BlockingCalls()
    try:
        yield calls
    finally:
        _LOCAL.calls = None
        calls.close()


class _Job:
    """One coroutine on the loop, and the thread that waits for it."""

    def __init__(self, function: Callable[[], Any], calls: BlockingCalls) -> None:
        self._function = function
        self._calls = calls
        self._task: asyncio.Task[None] | None = None
        self.is_over = False
        self.refusal: BaseException | None = None
        """Why nobody waits for it any longer."""
        self.fields = attempt_fields.get() or {}
        """The attempt that it belongs to."""
        self.outcome = Outcome()

    def start(
        self,
        loop: asyncio.AbstractEventLoop,
        context: contextvars.Context,
        seconds: float | None,
    ) -> None:
        """Start the coroutine, and its time limit. Called on the loop."""
        self._task = loop.create_task(self.outcome.capture(self._function), context=context)
        self._task.add_done_callback(lambda _: self._calls.put(self._end))
        if seconds is not None:
            timer = loop.call_later(seconds, partial(self._calls.put, self._end))
            self._task.add_done_callback(lambda _: timer.cancel())

    def cancel(self) -> None:
        """Cancel the coroutine. Called on the loop."""
        if self._task is not None:
            self._task.cancel()

    @property
    def has_ended(self) -> bool:
        return self._task is not None and self._task.done()

    def is_blocking(self, running: asyncio.Task[Any]) -> bool:
        """Return whether a task of the loop runs this coroutine, or was started by it, as far as Python tells."""
        get_context = getattr(running, "get_context", None)  # from Python 3.12 on
        return running is self._task or (get_context is not None and get_context().get(_BLOCKING) is self._calls)

    def give_up(self, error: BaseException) -> None:
        """Raise an error in the thread that waits, and let the coroutine end as soon as it can."""
        self.refusal = error
        self._calls.put(self._end)

    def _end(self) -> None:
        self.is_over = True


def run_coroutine(
    function: Callable[[], Any], timeout: timedelta | None = None, context: contextvars.Context | None = None
) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function on the event loop, await its result, and return that or raise its error.

    After `timeout` the coroutine is cancelled, and abandoned unless it ends within `CLEANUP_SECONDS`. It sees
    a copy of the caller's context variables, unless others are given. Raises WorkflowError if the caller is
    itself on the event loop, which would wait for itself.
    """
    thread = handlers_loop()
    if threading.get_ident() == thread.ident:
        raise WorkflowError(
            "Blocking code that runs coroutines was called on the event loop, which would then wait for itself. "
            "Call it through asyncio.to_thread."
        )
    seconds = None if timeout is None else limit_seconds(timeout)
    context = context or contextvars.copy_context()
    with blocking_calls() as calls:
        context.run(set_blocking, calls)
        job = _Job(function, calls)
        start = partial(job.start, thread.loop, context, seconds)
        thread.jobs.add(job)
        thread.loop.call_soon_threadsafe(start)
        try:
            calls.serve(lambda: job.is_over, BLOCKED_SECONDS if seconds is None else seconds)
            while seconds is None and not job.is_over:
                handlers_loop()  # which looks whether the loop turns
                calls.serve(lambda: job.is_over, BLOCKED_SECONDS)
        except BaseException:  # KeyboardInterrupt, or the end of the server that owns this thread
            thread.loop.call_soon_threadsafe(job.cancel)
            raise
        finally:
            thread.jobs.discard(job)
        if job.refusal is not None and not job.has_ended:
            thread.loop.call_soon_threadsafe(job.cancel)
            raise job.refusal
        if not job.has_ended:
            thread.loop.call_soon_threadsafe(job.cancel)
            calls.serve(lambda: job.has_ended, CLEANUP_SECONDS)
            raise TimeoutError(f"The step took longer than {timeout and say_duration(timeout)}.")
    return job.outcome.unwrap()


_running = set["asyncio.Task[Any]"]()
"""The running tasks: the event loop alone would let them be collected."""


async def run_in_task(
    function: Callable[[], Any], context: contextvars.Context, timeout: timedelta | None = None
) -> Any:  # noqa: ANN401 - the same
    """Await a function's result in a task of its own. Raises TimeoutError."""
    task, outcome = _start(function, context)
    await asyncio.wait({task}, timeout=None if timeout is None else limit_seconds(timeout))
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CLEANUP_SECONDS)
        raise TimeoutError(f"The step took longer than {timeout and say_duration(timeout)}.")
    return outcome.unwrap()


async def shield(function: Callable[[], Any]) -> Outcome:
    """Await a function's result in a task of its own, which goes on if the caller is cancelled."""
    task, outcome = _start(function, contextvars.copy_context())
    await asyncio.wait({task})
    return outcome


def _start(function: Callable[[], Any], context: contextvars.Context) -> tuple[asyncio.Task[None], Outcome]:
    outcome = Outcome()
    task = asyncio.get_running_loop().create_task(outcome.capture(function), context=context)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task, outcome


def limit_seconds(timeout: timedelta) -> float:
    """Return a timeout in seconds, at most the longest that a thread can wait."""
    return min(timeout.total_seconds(), threading.TIMEOUT_MAX)


class LoopThread(threading.Thread):
    """The thread of an event loop, which lasts until `stop`. A process does not wait for it to end."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._is_stopped = False
        self.loop = asyncio.new_event_loop()
        self.jobs: set[_Job] = set()
        """The coroutines that threads wait for."""
        self._asked_at: float | None = None
        """The time since which the loop has not responded."""

    def run(self) -> None:
        """Run the loop, and run it again when a task of a handler raises SystemExit or the like out of it."""
        asyncio.set_event_loop(self.loop)
        while not self._is_stopped:
            try:
                self.loop.run_forever()
            except BaseException:
                log.exception(
                    "A task on the event loop tried to end the process",
                    extra={"action": "loop_exit"},
                )
        self.loop.close()

    @property
    def is_blocked(self) -> bool:
        """Return whether its loop has not turned for `BLOCKED_SECONDS` since this was asked first."""
        if self._asked_at is None:
            self._asked_at = self.loop.time()
            self.loop.call_soon_threadsafe(self._answer)
            return False
        return self.loop.time() - self._asked_at >= BLOCKED_SECONDS

    def _answer(self) -> None:
        self._asked_at = None

    def retire(self) -> None:
        """Suspend all coroutines but the one that blocks the loop, so that they go on elsewhere.

        The loop ends once it turns again.
        """
        running = asyncio.current_task(self.loop)
        blocking = [job for job in tuple(self.jobs) if running is not None and job.is_blocking(running)]
        names = [repr(job.fields["handler"]) for job in blocking if "handler" in job.fields]
        who = f" The handler: {', '.join(names)}." if names else ""
        log.error("%s Another loop takes its place.%s", _BLOCKED, who, extra={"action": "loop_blocked"})
        for job in self.jobs.difference(blocking):
            job.give_up(Suspended(go_on(_BLOCKED)) if blocking else TimeoutError(_BLOCKED))
        self.loop.call_soon_threadsafe(self._end_when_idle)

    def _end_when_idle(self) -> None:
        if asyncio.all_tasks(self.loop):
            self.loop.call_later(1.0, self._end_when_idle)
        else:
            self.stop()

    def stop(self) -> None:
        """End the loop and its thread. Nothing may run on it any more. Thread-safe."""
        self._is_stopped = True
        self.loop.call_soon_threadsafe(self.loop.stop)


_loop_thread: LoopThread | None = None
_starting = threading.Lock()


def handlers_loop() -> LoopThread:
    """Return the event loop's thread, which starts when it is first needed. One that blocks is replaced."""
    global _loop_thread  # noqa: PLW0603 - one for the process, as clients belong to their loop
    with _starting:
        if _loop_thread is not None and _loop_thread.is_blocked:
            _loop_thread.retire()
            _loop_thread = None
        if _loop_thread is None:
            _loop_thread = LoopThread("cloudsched-event-loop")
            _loop_thread.start()
        return _loop_thread


def _forget_loop() -> None:
    """Forget the parent process's loop after a fork: its thread does not exist in the child."""
    global _loop_thread, _starting  # noqa: PLW0603 - a process has one loop
    _loop_thread = None
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_forget_loop)
