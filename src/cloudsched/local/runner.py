"""Run the tasks of a data folder in this process: the queue in memory, what fills it, the sweep, and beside it the API.

At the start, from then on every `LOAD_INTERVAL`, and when the clock was set, the tasks that are due soon are read from
the store and queued in memory, so memory does not grow with the number of tasks, and a restart edits none of them.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self
from wsgiref.types import WSGIApplication

from werkzeug.wrappers import Request, Response

from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.in_process_queue import CLOCK_CHECK_SECONDS, DEFAULT_WORKERS, InProcessDispatcher
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.handler_code import watch_signals
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread, find_faults
from cloudsched.engine.ports.queue import HEAD_START
from cloudsched.engine.sweep.due_work import LOOK_SECONDS, State
from cloudsched.errors import Misconfigured
from cloudsched.local.backup import renew_mark, require_own_file, require_sound_folder
from cloudsched.local.folder_lock import (
    SECRET_FILE_NAME,
    STOPPED_FILE_NAME,
    STORE_FILE_NAME,
    FolderLock,
    HandOverDispatcher,
    HandOverListener,
    open_private,
)
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.domain.transitions.claim import DeliveryResult
    from cloudsched.domain.transitions.commit import Commit, VersionedTask
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.procedure import Procedure
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage

log = own_logger(__name__)

SWEEP_INTERVAL = timedelta(minutes=1)
LOAD_INTERVAL = timedelta(minutes=5)
LOAD_AHEAD = timedelta(minutes=10)
"""The time ahead for which tasks are queued in memory. It exceeds `LOAD_INTERVAL` by a slow load or sweep."""
GRACE = timedelta(seconds=10)
"""The longest time for running handlers to finish when the process is asked to stop."""


def complete_settings(settings: Settings, folder: Path) -> Settings:
    """Return the settings with which a process runs the tasks of a folder, or creates some.

    Raises Misconfigured on Cloud Run.
    """
    if settings.is_deployed:
        raise Misconfigured(
            "K_SERVICE is set: this is Cloud Run, whose instances come and go and have no disk. Deploy functions "
            "instead (docs/run/deploy.md)."
        )
    return dataclasses.replace(
        settings,
        secret=settings.secret or _read_secret(folder),
        store="sqlite",
        data=folder / STORE_FILE_NAME,
        tasks_emulator=None,
        firestore_emulator=None,
        invoker=None,
        fallback=False,
    )


def _read_secret(folder: Path) -> str:
    """Return the folder's secret, made by the first process that asks. The links that it signs outlive the process."""
    path, made = folder / SECRET_FILE_NAME, folder / f"{SECRET_FILE_NAME}.{secrets.token_hex(8)}"
    try:
        if not path.exists():
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another process was first
                os.link(made, path)
            made.unlink()
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise Misconfigured(f"The secret of {folder} cannot be read: {error}. Set CLOUDSCHED_SECRET.") from error


class WindowedDispatcher:
    """A `Dispatcher` that passes on only dispatches that are due before an instant, and drops the others."""

    def __init__(self, queue: Dispatcher) -> None:
        self._queue = queue
        self._end = datetime.min.replace(tzinfo=UTC)

    def accept_until(self, end: datetime) -> None:
        """Accept dispatches that are due up to this instant, which moves back when the clock is set back.

        Call this before the tasks that are due by then are read from the store. A task that is committed before that
        read is found by it, and the dispatch of one that is committed later is accepted here: none is missed.
        """
        self._end = end

    def create(self, message: QueueMessage) -> None:
        """Queue a dispatch that is due soon enough, and drop any other."""
        if message.at <= self._end:
            self._queue.create(message)

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()


def make_queue(app: App, clock: Clock, *, threads: int) -> InProcessDispatcher:
    """Return the queue of a process that runs an app's tasks alone. `threads` is the most handlers at a time."""

    def commit(commits: Sequence[Commit]) -> Sequence[VersionedTask | Exception]:
        store = app.container.store
        assert isinstance(store, SqliteStore)  # noqa: S101 - `complete_settings` says so
        return store.commit_all(commits)

    def deliver(body: bytes, token: str) -> Procedure[DeliveryResult]:
        return app.container.deliver(body, token)

    return InProcessDispatcher(clock, deliver, workers=threads, commit=commit, head_start=HEAD_START)


class FolderRunner:
    """A context that runs the tasks of a folder, which this process has locked.

    The app has this runner's clock, queue and `holder`.
    """

    def __init__(self, app: App, *, threads: int) -> None:
        self._app = app
        self.clock: Clock = SystemClock()
        self._queue = make_queue(app, self.clock, threads=threads)
        self.queue = WindowedDispatcher(self._queue)
        self._maintenance = _Maintenance(app, self.clock, self.queue)

    def __enter__(self) -> Self:
        data, store = self._app.container.settings.data, self._app.container.store
        if data is not None and isinstance(store, SqliteStore):
            renew_mark(store, data)
            with suppress(OSError, UnicodeError):  # none was told to stop
                self._app.container.executor.stopped_before((data.parent / STOPPED_FILE_NAME).read_text("ascii"))
        watch_signals()
        self._queue.start()
        self._maintenance.start()
        return self

    def __exit__(self, *_error: object) -> None:
        executor, data = self._app.container.executor, self._app.container.settings.data
        if executor.holder is not None and data is not None and not executor.is_ended_by_handler:
            stopped = data.parent / STOPPED_FILE_NAME
            # On a full disk, what is killed before it has stopped counts as lost.
            with suppress(OSError), open(stopped, "w", encoding="ascii", opener=open_private) as file:
                file.write(executor.holder)
        self._maintenance.stop()
        if not self._queue.stop(GRACE):
            names = sorted({repr(each.begun_task.handler) for each in executor.handlers.list_running()})
            executor.release_all()
            text = "Handlers are still running after %s and will be stopped; they run again after the next start: %s."
            log.warning(text, GRACE, ", ".join(names))

    @contextmanager
    def watch(self, runs: Callable[[], bool]) -> Iterator[None]:
        """Watch whether due work starts, here or in the process that runs the tasks. `runs` says whether this does."""
        thread = _Watch(self._app, self._queue, runs)
        thread.start()
        try:
            yield
        finally:
            thread.stop()
            thread.join(GRACE.total_seconds())

    def release(self, lock: FolderLock) -> None:
        """Release the folder once no handler is running: the next process takes the leases of this one to be over."""
        if self._queue.stop(timedelta(0)):
            lock.release()
        else:
            lock.release_after(self._queue.close)


class _Watch(ServiceThread):
    """The thread that watches whether due work starts. If none does, that is its fault."""

    def __init__(self, app: App, queue: InProcessDispatcher, runs: Callable[[], bool]) -> None:
        super().__init__("cloudsched-watch", self._look)
        self._container = app.container
        self._due_work = app.container.many_tasks.due_work
        self._queue = queue
        self._runs = runs

    @property
    def fault(self) -> str | None:
        """Return since when due work does not start, or what keeps this thread from looking."""
        problem = self._due_work.problem
        return f"finds that due work {problem}" if problem else super().fault

    def _look(self) -> float:
        own = State(self._container.executor.handlers.describe(), self._queue.is_busy) if self._runs() else None
        self._due_work.look(own)
        self._container.hanging = self._due_work.state.hanging
        return LOOK_SECONDS


class _Interval:
    """An interval that has passed when either clock says so, or when the clock was set back.

    The wall clock may be set, and goes on while the machine sleeps. The monotonic one stands still meanwhile.
    """

    def __init__(self, clock: Clock, length: timedelta) -> None:
        self._clock = clock
        self._length = length
        self._began: tuple[datetime, float] | None = None

    def has_passed(self) -> bool:
        if self._began is None:
            return True
        at, seconds = self._began
        is_over = time.monotonic() - seconds >= self._length.total_seconds()
        return is_over or not timedelta(0) <= self._clock.now() - at < self._length

    def begin(self, at: datetime) -> None:
        self._began = at, time.monotonic()


class _Maintenance:
    """Keeps the queue filled, and sweeps, in a thread each.

    Nobody waits for the first load, which reads all that was running: what is created before it is found by it. The
    first sweep waits for it, but not if it fails.
    """

    def __init__(self, app: App, clock: Clock, window: WindowedDispatcher) -> None:
        self._app = app
        self._clock = clock
        self._window = window
        self._load_interval = _Interval(clock, LOAD_INTERVAL)
        self._sweep_interval = _Interval(clock, SWEEP_INTERVAL)
        self._has_tried_to_load = threading.Event()
        self._threads = ServiceThread("cloudsched-load", self._load), ServiceThread("cloudsched-sweep", self._sweep)

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        for each in self._threads:
            each.stop()
        self._has_tried_to_load.set()
        for each in self._threads:
            if each.ident is not None:
                each.join(GRACE.total_seconds())

    def _load(self) -> float:
        if self._load_interval.has_passed():
            try:
                now = self._clock.now()
                until = now + LOAD_AHEAD
                self._window.accept_until(until)
                count = self._app.container.sweeper.resend(until)
            finally:
                self._has_tried_to_load.set()
            self._load_interval.begin(now)
            log.debug("loaded", extra={"action": "loaded", "dispatched": count})
        return CLOCK_CHECK_SECONDS

    def _sweep(self) -> float:
        self._has_tried_to_load.wait()
        if self._sweep_interval.has_passed():
            now = self._clock.now()
            self._app.container.many_tasks.sweep(self._app.sweep)
            self._sweep_interval.begin(now)
        return CLOCK_CHECK_SECONDS


@dataclass(frozen=True, slots=True)
class Service:
    """A running service."""

    app: App
    """The app whose handlers run."""
    settings: Settings
    """Its settings, with the store's file."""
    url: str
    """The base URL of the API."""

    def find_trouble(self) -> str:
        """Return what keeps it from its work now, and which handlers hang. Empty if nothing does."""
        faults = [f"{name} {fault}" for name, fault in find_faults().items()]
        hanging = self.app.container.hanging
        return "; ".join([*faults, hanging] if hanging else faults)


@contextmanager
def run_service(
    app: App,
    settings: Settings,
    *,
    data: Path,
    host: str = "127.0.0.1",
    port: int = 0,
    threads: int = DEFAULT_WORKERS,
    root_path: str = "",
) -> Iterator[Service]:
    """Serve the API and run due tasks for as long as the context lasts.

    Only one process at a time may use the folder. The store and the queue that the settings name are not used.
    """
    authenticator_for(settings)  # reports mistakes in the access settings before anything starts
    with ExitStack() as parts:
        runner = FolderRunner(app, threads=threads)
        lock = FolderLock(data, (each.name for each in app.container.registry))
        lock.require()
        parts.callback(runner.release, lock)
        settings = complete_settings(settings, lock.folder)
        require_own_file(lock.folder)
        require_sound_folder(lock)
        web = parts.enter_context(WebServer(make_application(app), host, port, root_path=root_path))
        holder = secrets.token_hex(4) if lock.excludes_others else None
        dispatcher = HandOverDispatcher(lock.folder, runner.queue)
        dispatcher.is_running = True
        parts.enter_context(app.override(settings, dispatcher=dispatcher, clock=runner.clock, holder=holder))
        app.container.check_settings()
        parts.callback(app.container.store.close)
        if holder is not None:  # for processes that handlers fork
            listener = HandOverListener(lock.folder, app.container.engine.sender.send_body)
            listener.start()
            parts.callback(listener.stop)
        app.apply_declarations()
        parts.enter_context(runner)
        parts.enter_context(runner.watch(lambda: True))
        web.serve()
        parts.callback(web.stop)
        yield Service(app, settings, f"http://{web.address}")


def make_application(app: App, *, is_mounted: bool = False) -> WSGIApplication:
    """Return the API as a WSGI application. The executor and the sweep are called in this process alone."""

    @Request.application
    def answer(request: Request) -> Response:
        return serve_api(app, request, is_mounted=is_mounted)

    return answer
