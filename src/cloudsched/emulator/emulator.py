"""The emulator as one object: assembles the parts and runs them in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

from cloudsched.emulator.api.tasks_service import CloudTasksService, list_methods
from cloudsched.emulator.http.control import Control
from cloudsched.emulator.http.rest import DEFAULT_FUNCTIONS_URL, RestGateway
from cloudsched.emulator.http.server import EmulatorServer, Gate
from cloudsched.emulator.model.faults import Faults
from cloudsched.emulator.model.queues import Queues
from cloudsched.emulator.runtime.attempt_history import Attempt, History
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.emulator.runtime.dispatcher import DEFAULT_LIMIT, DEFAULT_TARGET_TIMEOUT, QueueDispatcher
from cloudsched.emulator.runtime.http_sender import HttpSender
from cloudsched.emulator.runtime.tokens import TokenIssuer, TokenMode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from datetime import datetime, timedelta


class CloudTasksEmulator:
    """A local Cloud Tasks.

    Every method may be called from any thread except the emulator's own. As a context manager it starts
    and stops.

    Args:
        host: The address to listen on.
        port: The port to listen on, 0 for a free one.
        clock: The clock that it uses, by default a running one of its own.
        queues: The full names of queues to create at startup, with Google's defaults.
        auto_create_queues: True to create a missing queue with its first task, rather than refuse the task.
        functions_url: The URL of a Firebase function, with {project}, {location} and {function}.
        faults: The faults to inject.
        tokens: The kind of OIDC and OAuth tokens to issue: `valid`, `wrongAudience`, `expired` or `missing`.
        patience: The real time that an advance of the clock waits for a target that does not respond.
        control_key: The key that requests for the control API send as `X-Api-Key`. By default they need none.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: MovableClock | None = None,
        queues: Iterable[str] = (),
        *,
        auto_create_queues: bool = False,
        functions_url: str = DEFAULT_FUNCTIONS_URL,
        faults: Faults | None = None,
        tokens: TokenMode = "valid",
        patience: timedelta = DEFAULT_TARGET_TIMEOUT,
        control_key: str = "",
    ) -> None:
        self.clock: MovableClock = clock or MovableClock()
        self._host = host
        self._port = port
        self._declared = tuple(queues)
        self._functions_url = functions_url
        self._patience = patience
        self._gate = Gate(host, control_key)
        self._auto_create_queues = auto_create_queues
        self._faults = faults or Faults()
        self._history = History()
        self._tokens = TokenIssuer(tokens)

        # While it runs.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._dispatcher: QueueDispatcher | None = None
        self._stopping: asyncio.Event | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    # Start and stop
    # ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start serving, and return once it is listening.

        Raises:
            OSError: if the address is not available.
            BadQueue: if one of the queues to create has no valid name.
            RuntimeError: if it is already running.
        """
        if self._thread is not None:
            raise RuntimeError("The emulator is already running.")
        ready: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._main,
            args=(ready,),
            name="cloud-tasks-emulator",
            daemon=True,
        )
        self._thread.start()
        try:
            ready.result()
        except BaseException:
            self._thread.join()
            self._thread = None
            raise

    def stop(self) -> None:
        """Stop serving and abandon attempts in progress. Does nothing if it is not running."""
        if self._thread is None:
            return
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._thread = None

    @property
    def address(self) -> str:
        """The address for both gRPC and REST: `host:port`."""
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
        queues = Queues(self._auto_create_queues, self._faults)
        queues.create_missing(self._declared, self.clock.now())

        # What is opened is closed in the opposite order, also if the start fails half-way.
        async with AsyncExitStack() as stack:
            sender = HttpSender(self._tokens.make_authorization, self.clock.now)
            stack.push_async_callback(sender.close)
            dispatcher = QueueDispatcher(queues, self.clock, sender, self._history, self._patience)
            stack.push_async_callback(dispatcher.close)
            methods = list_methods(CloudTasksService(queues, self.clock.now, dispatcher.start))
            rest = RestGateway(methods, lambda name: len(queues.get_queue(name).tasks), self._functions_url)
            control = Control(self.clock, dispatcher, queues, self._history, self._tokens)
            listener = EmulatorServer(methods, rest, control, self._gate, dispatcher.wake)
            stack.push_async_callback(listener.close)
            self._port = await listener.listen(self._host, self._port)

            self._dispatcher = dispatcher
            self.clock.watch(self._on_clock_changed)
            stack.callback(self._detach)
            dispatcher.wake()
            ready.set_result(None)
            await self._stopping.wait()

    def _detach(self) -> None:
        self._dispatcher = None
        self.clock.unwatch(self._on_clock_changed)

    def _on_clock_changed(self) -> None:
        dispatcher = self._dispatcher
        loop = self._loop
        if dispatcher is None or loop is None:
            return
        if threading.current_thread() is self._thread:
            dispatcher.on_clock_changed()
        else:
            loop.call_soon_threadsafe(dispatcher.on_clock_changed)

    # Time
    # --------------------------------------------------------------------------------------------------------

    def advance(self, by: timedelta) -> int:
        """Move the clock forward and deliver everything that falls due on the way, each at its own instant.

        Returns:
            The number of delivered dispatches.

        Raises:
            ValueError: if the clock would go back.
            ClockBusy: if the clock is already being moved.
        """
        return self._call(lambda dispatcher: dispatcher.advance(by))

    def advance_to(self, instant: datetime) -> int:
        """Move the clock forward to an instant. See `advance`."""
        if instant.tzinfo is None:
            raise ValueError(f"{instant!r} has no time zone; an instant needs one, for example UTC.")
        return self._call(lambda dispatcher: dispatcher.advance_to(instant))

    def run_until_idle(self, limit: int = DEFAULT_LIMIT) -> int:
        """Move the clock from dispatch to dispatch until there is nothing left to deliver.

        Returns:
            The number of delivered dispatches.

        Raises:
            NotIdle: if that many dispatches were delivered and there are still more.
            ClockBusy: if the clock is already being moved.
        """
        return self._call(lambda dispatcher: dispatcher.run_until_idle(limit))

    # What happened
    # -----------------------------------------------------------------------------------------------

    def attempts(self, queue: str = "", task: str = "") -> list[Attempt]:
        """Return the attempts, oldest first: all, or those of a queue (full name) or task (full name or id)."""
        return self._history.attempts(queue, task)

    # Faults and tokens
    # -------------------------------------------------------------------------------------------

    def inject(self, faults: Faults) -> None:
        """Inject these faults from now on, or none with `Faults()`."""

        async def set_faults(dispatcher: QueueDispatcher) -> int:
            dispatcher.queues.set_faults(faults)
            return 0

        self._call(set_faults)

    def _call(self, call: Callable[[QueueDispatcher], Coroutine[Any, Any, int]]) -> int:
        dispatcher = self._dispatcher
        loop = self._loop
        if dispatcher is None or loop is None:
            raise RuntimeError("The emulator is not running.")
        if threading.current_thread() is self._thread:
            raise RuntimeError("The emulator cannot be called from its own thread; call it from another one.")
        return asyncio.run_coroutine_threadsafe(call(dispatcher), loop).result()
