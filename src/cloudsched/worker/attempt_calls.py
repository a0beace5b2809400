"""The blocking calls of one async attempt in a worker: no thread waits for its coroutine."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from cloudsched.engine.durable.event_loop import HAS_ENDED, Request
from cloudsched.errors import WorkflowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.handlers.context import Context
    from cloudsched.worker.threads import WorkerThreads


class AttemptCalls:
    """A `Blocking` that shares its threads with the worker's other attempts.

    Args:
        threads: The worker's threads.
        context: The attempt's context, which is told the thread that serves each request.
    """

    def __init__(self, threads: WorkerThreads, context: Context) -> None:
        self._threads = threads
        self._context = context
        self._lock = threading.Lock()
        self._waiting: deque[Request] = deque()
        self._is_serving = False
        self._is_closed = False

    async def request(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the function returns
        """Let a thread call a function of the engine, after the requests before it.

        Raises:
            WorkflowError: The attempt has ended.
        """

        def call() -> Any:  # noqa: ANN401 - the same
            self._context.durable_run.bind_thread()
            return function()

        request = _Link(call, self._serve_next)
        with self._lock:
            if self._is_closed:
                raise WorkflowError(HAS_ENDED)
            if self._is_serving:
                self._waiting.append(request)
            else:
                self._is_serving = True
                self._threads.source.submit(request)
        return await request.result()

    async def call(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - the same
        """Let a thread call a function of the user, which may take long."""
        return await self._threads.handlers.call(function)

    def close(self) -> None:
        """Refuse every further request, and those that wait."""
        with self._lock:
            self._is_closed = True
            waiting = list(self._waiting)
            self._waiting.clear()
        for request in waiting:
            request.refuse()

    def _serve_next(self) -> None:
        with self._lock:
            if self._waiting:
                self._threads.source.submit(self._waiting.popleft())
            else:
                self._is_serving = False


class _Link(Request):
    """A request that is followed by the next one of its attempt."""

    def __init__(self, function: Callable[[], Any], then: Callable[[], None]) -> None:
        super().__init__(function)
        self._then = then

    def call(self) -> Any:  # noqa: ANN401 - an outcome
        """Call the function, and let the next request be served."""
        try:
            return super().call()
        finally:
            self._then()
