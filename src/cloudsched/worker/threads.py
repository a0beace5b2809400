"""Threads that make blocking calls for coroutines, and the threads of one worker."""

from __future__ import annotations

import math
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from cloudsched.engine.durable.event_loop import LoopThread, Request
from cloudsched.engine.ports.service_threads import ServiceThread

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

MAX_SOURCE_THREADS = 8
"""How many calls to the source of work, the store or the API, are made at once."""
MAX_HEARTBEAT_THREADS = 8
"""How many heartbeats are sent at once. They wait for no other call."""


def take(queue: SimpleQueue[T], seconds: float | None) -> T:
    """Take the next item of a queue in the main thread, which alone handles signals.

    A signal that the system gives to another thread does not wake it, so it looks up each second.

    Args:
        queue: The queue.
        seconds: How long to wait for an item; None waits without an end.

    Raises:
        Empty: There was none in time.
    """
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        remaining = deadline - time.monotonic()
        try:
            return queue.get(timeout=min(1.0, max(0.0, remaining)))
        except Empty:
            if remaining <= 1.0:
                raise


class ThreadPool:
    """Threads that start when they are needed, are used again, and end with the process.

    Unlike those of `concurrent.futures` they are daemons: a process need not wait for a handler that hangs.

    Args:
        name: The name of its threads.
        limit: How many threads there may be; further calls wait. Without a limit every call has its thread at once.
    """

    def __init__(self, name: str, limit: int | None = None) -> None:
        self._name = name
        self._limit = limit
        self._lock = threading.Lock()
        self._requests: SimpleQueue[Request | None] = SimpleQueue()
        self._threads = 0
        self._unfinished = 0
        """How many requests wait or are being served."""

    async def call(self, function: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the function returns
        """Let a thread call a function, and return what it returns, or raise what it raises."""
        request = Request(function)
        self.submit(request)
        return await request.result()

    def submit(self, request: Request) -> None:
        """Let a thread serve a request."""
        with self._lock:
            self._unfinished += 1
            is_short = self._threads < self._unfinished and (self._limit is None or self._threads < self._limit)
            self._threads += is_short
            name = f"{self._name}-{self._threads}"
        self._requests.put(request)
        if is_short:
            ServiceThread(name, self._serve_next).start()

    def _serve_next(self) -> float | None:
        request = self._requests.get()
        if request is None:
            return None
        outcome = request.call()
        with self._lock:  # before the answer, which may lead to the next request: this thread can serve that
            self._unfinished -= 1
        request.give(outcome)
        return 0.0

    def close(self) -> None:
        """End the threads, once what was submitted has been served."""
        for _ in range(self._threads):
            self._requests.put(None)


class WorkerThreads:
    """The threads of a running worker, besides the one that polls: as many as it takes for what blocks, and few more.

    Attributes:
        supervisor: Supervises all attempts, on its event loop.
        source: Make the calls to the source of work.
        heartbeats: Renew leases.
        handlers: Run the code of users that may block: one for each plain handler that runs, or plain step of an async
            one.
    """

    def __init__(self) -> None:
        self.supervisor = LoopThread("worker-supervisor")
        self.source = ThreadPool("worker-source", MAX_SOURCE_THREADS)
        self.heartbeats = ThreadPool("worker-heartbeat", MAX_HEARTBEAT_THREADS)
        self.handlers = ThreadPool("worker-handler")
        self.supervisor.start()

    def close(self) -> None:
        """End the threads. Nothing may run any more."""
        for pool in (self.source, self.heartbeats, self.handlers):
            pool.close()
        self.supervisor.stop()
