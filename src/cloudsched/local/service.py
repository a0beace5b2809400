"""One process that serves and runs everything: the API, the queue and the sweep, over one SQLite file.

For a laptop or one small server. Nothing but the file outlives the process. At the start, and from then on every
`LOAD_INTERVAL`, the tasks that are due soon are read from it and queued in memory, so memory does not grow with the
number of tasks, and a restart edits none of them.
"""

from __future__ import annotations

import dataclasses
import logging
import secrets
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request

from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.in_process_queue import DEFAULT_WORKERS, InProcessDispatcher
from cloudsched.errors import CloudschedError, Misconfigured
from cloudsched.local.folder_lock import FolderLock
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from wsgiref.types import WSGIApplication

    from werkzeug.wrappers import Response

    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage


class WindowedDispatcher:
    """A `Dispatcher` that passes on only dispatches that are due before an instant, and drops the others.

    Args:
        queue: The queue that delivers.
    """

    def __init__(self, queue: Dispatcher) -> None:
        self._queue = queue
        self._end = datetime.min.replace(tzinfo=UTC)

    def accept_until(self, end: datetime) -> None:
        """Accept dispatches that are due up to this instant; it never moves back.

        Call this before the tasks that are due by then are read from the store. A task that is committed before that
        read is found by it, and the dispatch of one that is committed later is accepted here: none is missed.
        """
        self._end = max(self._end, end)

    def create(self, message: QueueMessage) -> None:
        """Queue a dispatch that is due soon enough; drop another.

        Raises:
            QueueUnavailable: The queue was closed.
        """
        if message.at <= self._end:
            self._queue.create(message)

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()


log = logging.getLogger(__name__)

STORE_FILE_NAME = "tasks.db"
"""The store's file name in its folder."""
SWEEP_INTERVAL = timedelta(minutes=1)
LOAD_INTERVAL = timedelta(minutes=5)
LOAD_AHEAD = timedelta(minutes=10)
"""How far ahead tasks are queued in memory. It exceeds `LOAD_INTERVAL` by the time that a slow load or sweep takes."""
RETRY_INTERVAL = timedelta(seconds=5)
"""When a load that failed is repeated."""
GRACE = timedelta(seconds=10)
"""How long handlers that are running may take to finish when the process is asked to stop."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    app: App
    """The app whose handlers run."""
    settings: Settings
    """Its settings, with the store's file."""
    url: str
    """The base URL of the API."""


@contextmanager
def run_service(
    app: App,
    settings: Settings,
    *,
    data: Path,
    host: str = "127.0.0.1",
    port: int = 0,
    threads: int = DEFAULT_WORKERS,
) -> Iterator[Service]:
    """Serve the API and run due tasks for as long as the context lasts.

    Args:
        app: The app whose handlers run.
        settings: The app's settings; the store and the queue that they name are not used.
        data: The folder of the store's file. Only one process at a time may use it.
        host: The address to listen on.
        port: The port to listen on; 0 for a free one.
        threads: The most handlers that run at the same time.

    Raises:
        Misconfigured: The folder or the address cannot be used, or the access settings are wrong.
    """
    authenticator_for(settings)  # reports mistakes in the access settings before anything starts
    if settings.is_deployed:
        raise Misconfigured(
            "K_SERVICE is set: this is Cloud Run, whose instances come and go and have no disk. Deploy functions "
            "instead (docs/how-to/deployment.md)."
        )
    with ExitStack() as parts:
        clock = SystemClock()
        queue = InProcessDispatcher(clock, app.deliver, workers=threads)
        lock = FolderLock(data)
        lock.require()
        parts.callback(_release, lock, queue)
        settings = dataclasses.replace(
            settings,
            secret=settings.secret or secrets.token_urlsafe(32),  # dispatches never leave this process
            store="sqlite",
            data=lock.folder / STORE_FILE_NAME,
            tasks_emulator=None,
            firestore_emulator=None,
            invoker=None,
            fallback=False,
        )
        holder = secrets.token_hex(4) if lock.excludes_others else None
        window = WindowedDispatcher(queue)
        web = parts.enter_context(WebServer(_make_application(app), host=host, port=port))
        parts.enter_context(app.override(settings, dispatcher=window, clock=clock, holder=holder))
        parts.callback(app.container.store.close)
        app.apply_declarations()
        parts.enter_context(_run_queue(queue))
        parts.enter_context(_Maintenance(app, window))
        web.serve()
        parts.callback(web.stop)
        yield Service(app, settings, f"http://{web.address}")


def _make_application(app: App) -> WSGIApplication:
    """Return the API as a WSGI application. The executor and the sweep are called in this process alone."""

    @Request.application
    def answer(request: Request) -> Response:
        return serve_api(app, request)

    return answer


@contextmanager
def _run_queue(queue: InProcessDispatcher) -> Iterator[None]:
    queue.start()
    try:
        yield
    finally:
        if not queue.stop(GRACE):
            log.warning(
                "Handlers are still running after %s and will be stopped; they run again after the next start.", GRACE
            )


def _release(lock: FolderLock, queue: InProcessDispatcher) -> None:
    """Release the folder once no handler is running: the next process takes the leases of this one to be over."""
    if queue.stop(timedelta(0)):
        lock.release()
    else:
        lock.release_after(queue.close)


class _Maintenance:
    """A context that keeps the queue filled and sweeps, in a thread of its own. The first load is done on entry."""

    def __init__(self, app: App, window: WindowedDispatcher) -> None:
        self._app = app
        self._window = window
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="maintenance", daemon=True)
        self._next_load = 0.0
        self._next_sweep = 0.0

    def __enter__(self) -> None:
        self._load()
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._stopped.set()
        self._thread.join(GRACE.total_seconds())

    def _work(self) -> None:
        while not self._stopped.is_set():
            if time.monotonic() >= self._next_load:
                self._load()
            if time.monotonic() >= self._next_sweep:
                self._sweep()
            self._stopped.wait(max(0.0, min(self._next_load, self._next_sweep) - time.monotonic()))

    def _load(self) -> None:
        until = self._app.container.clock.now() + LOAD_AHEAD
        self._window.accept_until(until)
        self._next_load = time.monotonic() + LOAD_INTERVAL.total_seconds()
        try:
            count = self._app.container.sweeper.resend(until)
        except CloudschedError as error:
            self._next_load = time.monotonic() + RETRY_INTERVAL.total_seconds()
            log.warning("due tasks could not be loaded: %s", error)
        else:
            log.debug("loaded", extra={"action": "loaded", "dispatched": count})

    def _sweep(self) -> None:
        self._next_sweep = time.monotonic() + SWEEP_INTERVAL.total_seconds()
        try:
            self._app.container.many_tasks.sweep(self._app.sweep)
        except CloudschedError as error:  # the next sweep tries again
            log.warning("the sweep failed: %s", error)
