"""The emulator as one object: assembles the parts and runs them in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cloudsched.emulator.board import Board
from cloudsched.emulator.clock import MovableClock
from cloudsched.emulator.control import Control
from cloudsched.emulator.deliver import Courier, plan
from cloudsched.emulator.front import Front
from cloudsched.emulator.history import Attempt, History
from cloudsched.emulator.methods import task_methods
from cloudsched.emulator.queue import QueueConfig
from cloudsched.emulator.rest import DEFAULT_FUNCTIONS_URL, Rest
from cloudsched.emulator.runner import DEFAULT_LIMIT, DEFAULT_PATIENCE, Runner
from cloudsched.emulator.service import TaskCalls

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from datetime import datetime, timedelta

T = TypeVar("T")


class CloudTasksEmulator:
    """A local Cloud Tasks.

    Every method may be called from any thread but the emulator's own. Used as a context manager it starts and stops.

    Args:
        host: The address to listen on.
        port: The port to listen on; 0 for a free one.
        clock: The time it keeps; its own, running, if none is given.
        queues: The full names of queues to create at the start.
        auto_create_queues: Whether a task for a missing queue creates the queue instead of being refused.
        app_engine: Where App Engine targets are found, such as `http://127.0.0.1:8080`.
        functions_url: Where a Firebase function is found, with {project}, {location} and {function}.
        patience: For how much real time an advance of the clock waits for a silent target.
        seed: For the ids of tasks without a name; unset, they differ from run to run.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: MovableClock | None = None,
        queues: Iterable[str] | None = None,
        *,
        auto_create_queues: bool = False,
        app_engine: str = "",
        functions_url: str = DEFAULT_FUNCTIONS_URL,
        patience: timedelta = DEFAULT_PATIENCE,
        seed: int | None = None,
    ) -> None:
        self.clock = clock or MovableClock()
        self._host = host
        self._port = port
        self._queues = tuple(queues or ())
        self._app_engine = app_engine
        self._functions_url = functions_url
        self._patience = patience
        self._random = SystemRandom() if seed is None else Random(seed)  # noqa: S311 - ids, not secrets
        self._board = Board(auto_create_queues=auto_create_queues)
        self._history = History()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._runner: Runner | None = None
        self._stopping: asyncio.Event | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<CloudTasksEmulator {self.address if self._thread else 'stopped'}>"

    # Its life --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to serve; returns once it listens.

        Raises:
            OSError: if the address cannot be had.
            RuntimeError: if it is running.
        """
        if self._thread is not None:
            raise RuntimeError("The emulator is running already.")
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._main, args=(ready,), name="cloud-tasks-emulator", daemon=True)
        self._thread.start()
        try:
            ready.result()
        except BaseException:
            self._thread.join()
            self._thread = None
            raise

    def stop(self) -> None:
        """Stop serving; attempts that are under way are given up. Does nothing if it is not running."""
        if self._thread is None:
            return
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    @property
    def address(self) -> str:
        """`host:port`, for gRPC and REST alike."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    def _main(self, ready: Future[None]) -> None:
        try:
            asyncio.run(self._serve(ready))
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def _serve(self, ready: Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        for name in self._queues:
            if name not in self._board.queues:
                self._board.create_queue(name, QueueConfig(), self.clock.now())
        courier = Courier()
        runner = self._runner = Runner(
            self._board,
            self.clock,
            plan=lambda dispatch: plan(dispatch, self._app_engine, lambda _token, _url: ""),
            send=lambda request: courier.send(request, self.clock.now),
            history=self._history,
            patience=self._patience,
        )
        methods = task_methods(TaskCalls(self._board, self.clock.now, runner.start, self._random))
        front = Front(methods, Rest(methods, self._functions_url), Control(self.clock, runner), runner.kick)
        self.clock.watch(self._clock_changed)
        try:
            self._port = await front.listen(self._host, self._port)
            runner.kick()
            ready.set_result(None)
            await self._stopping.wait()
        finally:
            self.clock.unwatch(self._clock_changed)
            await front.close()
            await runner.close()
            await courier.close()
            self._runner = None

    def _clock_changed(self) -> None:
        runner, loop = self._runner, self._loop
        if runner is None or loop is None:
            return
        if threading.current_thread() is self._thread:
            runner.clock_changed()
        else:
            loop.call_soon_threadsafe(runner.clock_changed)

    # Time ------------------------------------------------------------------------------------------------------

    def advance(self, by: timedelta) -> int:
        """Move the clock forward, delivering all that is due on the way, each at its own instant.

        Returns:
            How many dispatches were delivered.

        Raises:
            ValueError: if it would go back.
            ClockBusy: if the clock is being moved already.
        """
        return self._call(lambda runner: runner.advance_to(self.clock.now() + by))

    def advance_to(self, instant: datetime) -> int:
        """Move the clock forward to an instant; see `advance`."""
        if instant.tzinfo is None:
            raise ValueError(f"{instant!r} has no time zone; an instant needs one, such as UTC.")
        return self._call(lambda runner: runner.advance_to(instant))

    def run_until_idle(self, limit: int = DEFAULT_LIMIT) -> int:
        """Move the clock from dispatch to dispatch until nothing is left that could be delivered.

        Returns:
            How many dispatches were delivered.

        Raises:
            NotIdle: if that many dispatches were delivered and there are still more.
            ClockBusy: if the clock is being moved already.
        """
        return self._call(lambda runner: runner.run_until_idle(limit))

    # What happened ---------------------------------------------------------------------------------------------

    def attempts(self, queue: str = "", task: str = "") -> list[Attempt]:
        """Every attempt so far, oldest first; all, or those of a queue (full name) or a task (full name or id)."""
        return self._history.attempts(queue, task)

    def _call(self, call: Callable[[Runner], Coroutine[Any, Any, T]]) -> T:
        runner, loop = self._runner, self._loop
        if runner is None or loop is None:
            raise RuntimeError("The emulator is not running.")
        if threading.current_thread() is self._thread:
            raise RuntimeError("The emulator cannot wait for itself; call it from another thread.")
        return asyncio.run_coroutine_threadsafe(call(runner), loop).result()
