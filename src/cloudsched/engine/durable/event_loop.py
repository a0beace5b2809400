"""Runs coroutines on the process's one event loop, while the thread that needs their result waits for it.

The loop lives in a thread of its own for as long as the process, so that pooled clients, which belong to a loop,
survive from one attempt to the next. A coroutine may ask the waiting thread to make a blocking call
(`BlockingCalls.request`): what blocks, and what must stay in one thread, happens in the attempt's own thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
import threading
from collections.abc import AsyncIterator
from contextlib import contextmanager
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from cloudsched.errors import WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

log = logging.getLogger(__name__)

CLEANUP_SECONDS = 1.0
"""How long a cancelled coroutine may take to clean up before it is abandoned."""
HAS_ENDED = "The attempt has ended: its context can no longer be used. Await all that uses it in the handler."
_LOCAL = threading.local()


class BlockingCalls:
    """The blocking calls that coroutines ask the creating thread to make while it waits for them."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._messages: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False

    async def request(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the function returns
        """Let the waiting thread call a function, with the context variables of the caller; return its result.

        Raises:
            WorkflowError: The attempt has ended, so that nobody waits any more.
        """
        if threading.get_ident() == self._thread:  # a step's function with a loop of its own
            return function()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._is_closed:
                raise WorkflowError(HAS_ENDED)
            self._messages.put(partial(_answer, answer, partial(contextvars.copy_context().run, function)))
        return await answer

    def put(self, message: Callable[[], None]) -> None:
        """Let the waiting thread call a function that cannot fail. Any thread may call this."""
        self._messages.put(message)

    def serve(self, is_done: Callable[[], bool], seconds: float | None = None) -> None:
        """Make the requested calls until `is_done`, or until nothing was requested for so many seconds."""
        try:
            while not is_done():
                self._messages.get(timeout=seconds)()
        except Empty:
            return

    def close(self) -> None:
        """Refuse every further request, and those that were not served."""
        with self._lock:
            self._is_closed = True
        while not self._messages.empty():
            message = self._messages.get()
            if isinstance(message, partial):
                _answer(message.args[0], _refuse)


def _refuse() -> None:
    raise WorkflowError(HAS_ENDED)


def _answer(answer: asyncio.Future[Any], function: Callable[[], Any]) -> None:
    """Call a function, and hand its result or exception to the coroutine that waits for it."""
    try:
        deliver = partial(answer.set_result, function())
    except BaseException as error:  # noqa: BLE001 - raised again where the coroutine waits
        deliver = partial(answer.set_exception, error)

    def resolve() -> None:
        if not answer.done():
            deliver()

    answer.get_loop().call_soon_threadsafe(resolve)


@contextmanager
def blocking_calls() -> Iterator[BlockingCalls]:
    """Return the calls of this thread; the outermost `with` block of the thread creates and closes them."""
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
        self.result: Any = None
        self.error: BaseException | None = None

    def start(self, loop: asyncio.AbstractEventLoop, context: contextvars.Context, seconds: float | None) -> None:
        """Start the coroutine, and its time limit. Called on the loop."""
        self._task = loop.create_task(self._run(), context=context)
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
        """Whether the coroutine has ended, and so has not run out of time."""
        return self._task is not None and self._task.done()

    def _end(self) -> None:
        self.is_over = True

    async def _run(self) -> None:
        try:
            result = self._function()
            while inspect.isawaitable(result):
                result = await result
            self.result = [item async for item in result] if isinstance(result, AsyncIterator) else result
        except BaseException as error:  # noqa: BLE001 - raised in the waiting thread; none may end the loop
            self.error = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)


def run_coroutine(
    function: Callable[[], Any], timeout: timedelta | None = None, context: contextvars.Context | None = None
) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function on the event loop, await what it returns, and return that, or raise what it raises.

    Args:
        function: Usually a coroutine function, with its arguments.
        timeout: The time limit of a step. After this the coroutine is cancelled; it is abandoned unless it ends within
            `CLEANUP_SECONDS`.
        context: The context variables that it sees; a copy of the caller's if None.

    Raises:
        TimeoutError: It took longer than `timeout`.
        WorkflowError: The caller is itself on the event loop, which would wait for itself.
    """
    thread = _start_loop()
    if threading.get_ident() == thread.ident:
        raise WorkflowError(
            "Blocking code that runs coroutines was called on the event loop, which would then wait for itself. "
            "Call it through asyncio.to_thread."
        )
    seconds = None if timeout is None else min(timeout.total_seconds(), threading.TIMEOUT_MAX)
    with blocking_calls() as calls:
        job = _Job(function, calls)
        start = partial(job.start, thread.loop, context or contextvars.copy_context(), seconds)
        thread.loop.call_soon_threadsafe(start)
        try:
            calls.serve(lambda: job.is_over, seconds)
        except BaseException:  # KeyboardInterrupt, or the end of the server that owns this thread
            thread.loop.call_soon_threadsafe(job.cancel)
            raise
        if not job.has_ended:
            thread.loop.call_soon_threadsafe(job.cancel)
            calls.serve(lambda: job.has_ended, CLEANUP_SECONDS)
            raise TimeoutError(f"The step took longer than {timeout}.")
    if job.error is not None:
        raise job.error
    return job.result


class _LoopThread(threading.Thread):
    """The thread of the event loop. It never ends: a process ends without it."""

    def __init__(self) -> None:
        super().__init__(name="cloudsched-event-loop", daemon=True)
        self.loop = asyncio.new_event_loop()

    def run(self) -> None:
        """Run the loop, and run it again when a task of a handler raises SystemExit or the like out of it."""
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
            except BaseException:
                log.exception("A task on the event loop tried to end the process", extra={"action": "loop_exit"})


_loop_thread: _LoopThread | None = None
_starting = threading.Lock()


def event_loop_thread() -> int:
    """Return the identifier of the event loop's thread."""
    return _start_loop().ident or 0


def _start_loop() -> _LoopThread:
    """Return the event loop's thread, which starts when it is first needed."""
    global _loop_thread  # noqa: PLW0603 - one for the process, as clients belong to their loop
    with _starting:
        if _loop_thread is None:
            _loop_thread = _LoopThread()
            _loop_thread.start()
        return _loop_thread


def _forget_loop() -> None:
    """Forget the parent process's loop after a fork: its thread does not exist in the child."""
    global _loop_thread, _starting
    _loop_thread, _starting = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_loop)
