"""Open a data folder in this process, to create tasks in it, and to run them if no other process does."""

from __future__ import annotations

import secrets
import threading
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.in_process_queue import InProcessDispatcher
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.handler_code import watch_signals
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.code_check.stored_work import log_differences
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.engine.ports.queue import HEAD_START
from cloudsched.engine.sweep.due_work import LOOK_SECONDS, ExecutorState
from cloudsched.local.backup import renew_mark, require_own_file, require_sound_folder
from cloudsched.local.data_folder import STOPPED_FILE_NAME, STORE_FILE_NAME, complete_settings, open_private
from cloudsched.local.folder_lock import FolderLock
from cloudsched.local.hand_over import HandOverDispatcher, HandOverListener
from cloudsched.local.maintenance import Maintenance, WindowedDispatcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.domain.transitions.claim import DeliveryResult
    from cloudsched.domain.transitions.commit import Commit, VersionedTask
    from cloudsched.engine.ports.procedure import Procedure

log: Final = own_logger(__name__)

GRACE = timedelta(seconds=10)
"""How long running handlers may take to finish when the process is asked to stop."""


class FolderRunner:
    """An app on a data folder, whose tasks this process runs from `begin` to `end`.

    Any number of processes may `open` the folder. Only the one that holds its `lock` may begin, and only
    while it is open. The others hand their dispatches to that one. At most `threads` handlers run at the same
    time.
    """

    def __init__(self, app: App, data: Path, *, threads: int) -> None:
        self.lock: FolderLock = FolderLock(data, (each.name for each in app.container.registry))
        self.is_running: bool = False
        """True if this process runs the tasks now."""
        self._app = app
        self._clock = SystemClock()
        self._threads = threads
        self._queue = self._make_queue(threads)
        window = WindowedDispatcher(self._queue)
        self._maintenance = Maintenance(app, self._clock, window)
        self._dispatcher = HandOverDispatcher(self.lock.folder, window)
        self._listener: HandOverListener | None = None

    @contextmanager
    def open(self, settings: Settings) -> Iterator[Settings]:
        """Let the app create tasks in the folder for as long as the context lasts.

        Return its settings, completed. The store and the queue that the settings name are not used. Raises
        Misconfigured if the settings are wrong, or the folder's file is not its own or, after a crash, not
        sound.
        """
        settings = complete_settings(settings, self.lock.folder)
        require_own_file(self.lock.folder)
        if self.lock.is_held:
            require_sound_folder(self.lock)
        holder = secrets.token_hex(4) if self.lock.excludes_others else None

        with ExitStack() as parts:
            parts.enter_context(
                self._app.override(settings, dispatcher=self._dispatcher, clock=self._clock, holder=holder)
            )
            container = self._app.container
            container.circuits.places.threads = self._threads
            container.check_settings()
            parts.enter_context(closing(container.store))
            if holder is not None:
                self._listener = HandOverListener(self.lock.folder, container.engine.sender.send_body)
            yield settings

    def begin(self) -> None:
        """Run the tasks: first listen to the other processes, then load the due work from the store."""
        self.lock.was_left_open = False  # from here on, what a crash leaves is this process's own
        if self._listener is not None:
            self._listener.start()
        self._dispatcher.is_running = True
        self._app.apply_declarations()
        container = self._app.container
        store = container.store
        if isinstance(store, SqliteStore):
            renew_mark(store, self.lock.folder / STORE_FILE_NAME)
        with suppress(OSError, UnicodeError):  # none was told to stop
            before = (self.lock.folder / STOPPED_FILE_NAME).read_text("ascii")
            container.executor.stopped_before(before)
        watch_signals()
        self.is_running = True
        self._queue.start()
        self._maintenance.start()
        threading.Thread(
            target=log_differences, args=[container.engine], name="cloudsched-compare", daemon=True
        ).start()

    def end(self) -> None:
        """Stop. The next process finds in the store what is created from now on."""
        self._dispatcher.is_running = False
        if self._listener is not None:
            self._listener.stop()
        if not self.is_running:
            return

        self.is_running = False
        self._note_stop()
        self._maintenance.stop(GRACE)
        if not self._queue.stop(GRACE):
            executor = self._app.container.executor
            names = sorted({repr(each.begun_task.handler) for each in executor.handlers.list_running()})
            executor.release_all()
            log.warning(
                "Handlers are still running after %s and will be stopped; they run again after the next start: %s.",
                GRACE,
                ", ".join(names),
            )

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch whether due work starts, here or in the process that runs the tasks."""
        thread = _Watch(self._app, self._queue, self)
        thread.start()
        try:
            yield
        finally:
            thread.stop()
            thread.join(GRACE.total_seconds())

    def release(self) -> None:
        """Release the folder once no handler is running: the next process takes the leases to be over."""
        if self._queue.stop(timedelta(0)):
            self.lock.release()
        else:
            self.lock.release_after(self._queue.close)

    def _make_queue(self, threads: int) -> InProcessDispatcher:
        def commit(commits: Sequence[Commit]) -> Sequence[VersionedTask | Exception]:
            store = self._app.container.store
            assert isinstance(store, SqliteStore)  # noqa: S101 - `complete_settings` says so
            return store.commit_all(commits)

        def deliver(body: bytes, token: str) -> Procedure[DeliveryResult]:
            return self._app.container.deliver(body, token)

        return InProcessDispatcher(self._clock, deliver, workers=threads, commit=commit, head_start=HEAD_START)

    def _note_stop(self) -> None:
        """Note that this process was asked to stop, so that no handler is blamed for its end."""
        executor = self._app.container.executor
        if executor.holder is None or executor.is_ended_by_handler:
            return
        # On a full disk, what is killed before it has stopped counts as lost.
        with (
            suppress(OSError),
            open(self.lock.folder / STOPPED_FILE_NAME, "w", encoding="ascii", opener=open_private) as file,
        ):
            file.write(executor.holder)


class _Watch(ServiceThread):
    """The thread that watches whether due work starts, and reports it if none does."""

    def __init__(self, app: App, queue: InProcessDispatcher, runner: FolderRunner) -> None:
        super().__init__("cloudsched-watch", self._look)
        self._container = app.container
        self._due_work = app.container.many_tasks.due_work
        self._queue = queue
        self._runner = runner

    @property
    def fault(self) -> str | None:
        """Return since when no due work has started, or what keeps this thread from checking."""
        problem = self._due_work.problem
        return f"finds that due work {problem}" if problem else super().fault

    def _look(self) -> float:
        own = None
        if self._runner.is_running:
            own = ExecutorState(self._container.executor.handlers.describe(), self._queue.is_busy)
        self._due_work.look(own)
        self._container.hanging = self._due_work.state.hanging
        return LOOK_SECONDS
