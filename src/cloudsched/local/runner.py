"""Run the tasks of a data folder in this process: the queue in memory, what fills it, and the sweep.

At the start, and from then on every `LOAD_INTERVAL`, the tasks that are due soon are read from the store and queued in
memory, so memory does not grow with the number of tasks, and a restart edits none of them.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import secrets
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.in_process_queue import InProcessDispatcher
from cloudsched.errors import CloudschedError, Misconfigured

if TYPE_CHECKING:
    from pathlib import Path

    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.engine.ports.queue import Dispatcher, QueueMessage
    from cloudsched.local.folder_lock import FolderLock

log = logging.getLogger(__name__)

STORE_FILE_NAME = "tasks.db"
"""The store's file name in its folder."""
SECRET_FILE_NAME = "secret"  # noqa: S105 - a file's name
"""The file with the secret of a folder whose settings name none."""
SWEEP_INTERVAL = timedelta(minutes=1)
LOAD_INTERVAL = timedelta(minutes=5)
LOAD_AHEAD = timedelta(minutes=10)
"""How far ahead tasks are queued in memory. It exceeds `LOAD_INTERVAL` by the time that a slow load or sweep takes."""
RETRY_INTERVAL = timedelta(seconds=5)
"""When a load that failed is repeated."""
GRACE = timedelta(seconds=10)
"""How long handlers that are running may take to finish when the process is asked to stop."""


def complete_settings(settings: Settings, folder: Path) -> Settings:
    """Return the settings with which a process runs the tasks of a folder, or creates some.

    Raises:
        Misconfigured: This is Cloud Run, or the folder's secret cannot be read.
    """
    if settings.is_deployed:
        raise Misconfigured(
            "K_SERVICE is set: this is Cloud Run, whose instances come and go and have no disk. Deploy functions "
            "instead (docs/how-to/deployment.md)."
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
    """Return the folder's secret, made by the first process that asks; the links that it signs outlive the process."""
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


class FolderRunner:
    """A context that runs the tasks of a folder, which this process has locked.

    Args:
        app: The app whose handlers run; it has this runner's clock, queue and `holder`.
        threads: The most handlers that run at the same time.
    """

    def __init__(self, app: App, *, threads: int) -> None:
        self._app = app
        self.clock = SystemClock()
        self._queue = InProcessDispatcher(self.clock, app.deliver, workers=threads)
        self.queue = WindowedDispatcher(self._queue)
        self._maintenance = _Maintenance(app, self.queue)

    def __enter__(self) -> Self:
        self._queue.start()
        self._maintenance.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._maintenance.stop()
        if not self._queue.stop(GRACE):
            log.warning(
                "Handlers are still running after %s and will be stopped; they run again after the next start.", GRACE
            )

    def release(self, lock: FolderLock) -> None:
        """Release the folder once no handler is running: the next process takes the leases of this one to be over."""
        if self._queue.stop(timedelta(0)):
            lock.release()
        else:
            lock.release_after(self._queue.close)


class _Maintenance:
    """Keeps the queue filled and sweeps, in a thread of its own.

    Nobody waits for the first load, which reads all that was running: what is created before it is found by it.
    """

    def __init__(self, app: App, window: WindowedDispatcher) -> None:
        self._app = app
        self._window = window
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="maintenance", daemon=True)
        self._next_load = 0.0
        self._next_sweep = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.ident is not None:
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
