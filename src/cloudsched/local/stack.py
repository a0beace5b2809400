"""The local stack: API, executor, sweep, a local Cloud Tasks and a store, in one process.

The local Cloud Tasks owns the clock. This process's app uses the same one, and other processes that are started with
`Stack.to_environment` ask for it over HTTP, so moving it moves them all.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from werkzeug.utils import redirect
from werkzeug.wrappers import Request

from cloudsched.adapters.firestore.emulator import INSTALL_HINT, EmulatorNotFound, FirestoreEmulator, find_emulator
from cloudsched.adapters.google.cloud_tasks import list_queue_ids
from cloudsched.adapters.operation_counts import Counts, count_dispatcher, count_store
from cloudsched.app import App
from cloudsched.config.settings import Settings, StoreChoice, StoreKind
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.own_logger import own_logger
from cloudsched.emulator.emulator import CloudTasksEmulator
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.engine.ports.pages import MAX_PAGE
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.service_threads import ServiceThread
from cloudsched.errors import CloudschedError, Misconfigured, StoreUnavailable
from cloudsched.local.dashboard_mount import MOUNT, DashboardMount, StackClock
from cloudsched.local.data_folder import STORE_FILE_NAME, make_private
from cloudsched.local.mailbox import Mailbox, is_mailbox_path, show_mailbox
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.functions import wsgi

INTERVAL = timedelta(minutes=1)
_MIN_INTERVAL = 0.2
"""The least number of real seconds between two sweeps while the clock is being moved."""


class SweepTimer:
    """A context that sweeps in its own thread: every minute, and after the clock jumps by a minute or more.

    While the clock advances a long way it sweeps as often as it can without delaying the clock, and once afterwards.
    """

    def __init__(self, app: App, clock: MovableClock) -> None:
        self._app = app
        self._clock = clock
        self._swept_at = clock.now()
        self._clock_moved = threading.Event()
        self._thread = ServiceThread("cloudsched-sweep", self._wait_and_sweep)

    def __enter__(self) -> Self:
        self._clock.watch(self._clock_moved.set)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._clock.unwatch(self._clock_moved.set)
        self._thread.stop()
        self._clock_moved.set()
        self._thread.join()

    def _wait_and_sweep(self) -> float:
        now = self._clock.now()
        remaining = self._swept_at + INTERVAL - now
        if remaining <= timedelta(0):
            self._app.container.many_tasks.sweep(self._app.sweep)
            self._swept_at = now
            return _MIN_INTERVAL
        self._clock_moved.wait(remaining.total_seconds() if self._clock.mode == "running" else None)
        self._clock_moved.clear()
        return 0.0


log = own_logger(__name__)


@dataclass(frozen=True, slots=True)
class ChosenStore:
    """The chosen store, and why."""

    kind: StoreKind
    reason: str
    """The choice and its reason, and the way to get the other store, for people."""
    address: str | None = None
    """The Firestore emulator's ``host:port``."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A running local stack."""

    app: App
    """The app whose handlers run, connected to the stack's parts."""
    clock: MovableClock
    """The clock that all parts share."""
    counts: Counts
    """The reads, writes and dispatches of the app since the start."""
    emulator: CloudTasksEmulator
    """The local Cloud Tasks."""
    store: ChosenStore
    """The store, and why it was chosen."""
    settings: Settings
    """The settings with which other processes reach the same parts."""
    url: str
    """The base URL of the API and the executor."""
    mover: StackClock
    """Moves the clock, also where the stack has keys."""

    def to_environment(self) -> dict[str, str]:
        """Return the environment variables with which another process finds this stack."""
        return {**self.settings.to_environment(), "CLOUDSCHED_URL": self.url}


@contextmanager
def run_stack(
    app: App,
    *,
    base: Settings | None = None,
    store: StoreChoice = "auto",
    data: Path | None = None,
    clock: MovableClock | None = None,
    port: int = 0,
    tasks_port: int = 0,
) -> Iterator[Stack]:
    """Run a local stack for as long as the context lasts.

    Settings are taken from `base` where the stack does not decide itself. Without a folder, the embedded store is
    temporary, and without a clock, time follows the system. A port of 0 is a free one.
    """
    base = base or Settings()
    base = dataclasses.replace(base, is_deployed=False, access=dataclasses.replace(base.access, open=True))
    authenticator_for(base)  # reports mistakes in the access settings before the stack starts
    clock = clock or MovableClock()
    counts = Counts()
    with ExitStack() as parts:
        choice = parts.enter_context(open_store(store, address=base.firestore_emulator, is_persistent=data is not None))
        file = _prepare_store_file(data, parts) if choice.kind == "sqlite" else None
        mailbox = Mailbox(base, clock, lambda: app.container.registry.registrations.mail_template)
        dashboard = DashboardMount(_with_pages(wsgi(app), mailbox, base))
        parts.callback(dashboard.close)
        web = parts.enter_context(WebServer(dashboard, port=port))
        is_open = not base.access.is_configured
        control_key = "" if is_open else secrets.token_urlsafe(32)
        emulator = parts.enter_context(_run_cloud_tasks(base, clock, tasks_port, control_key))
        settings = dataclasses.replace(
            base,
            executor_url=f"http://{web.address}",
            public_url=base.public_url or f"http://{web.address}",
            secret=base.secret or secrets.token_urlsafe(32),
            store=choice.kind,
            data=file,
            tasks_emulator=emulator.address,
            firestore_emulator=choice.address,
            invoker=None,
            preferred_channels=True if base.preferred_channels is None else base.preferred_channels,
        )
        opened = App(settings)  # opens the store and the dispatcher that the settings name
        parts.callback(opened.close)
        opened.container.check_settings()
        parts.enter_context(
            app.override(
                settings,
                store=count_store(opened.container.store, counts),
                dispatcher=count_dispatcher(opened.container.dispatcher, counts),
                clock=clock,
            )
        )
        if settings.smtp_url:
            mailbox.pass_on(app.container.senders)
        app.container.replace(senders=mailbox.senders, circuits=opened.container.circuits)
        stack_clock = StackClock(clock, emulator.address, control_key)
        dashboard.connect(f"http://{web.address}", stack_clock, is_open=is_open)
        _redispatch_active_tasks(app)
        app.apply_declarations()
        web.serve()
        parts.callback(web.stop)  # no request may arrive once the app has its own parts back
        parts.callback(emulator.stop)
        parts.enter_context(SweepTimer(app, clock))
        yield Stack(app, clock, counts, emulator, choice, settings, f"http://{web.address}", stack_clock)


def _with_pages(application: WSGIApplication, mailbox: Mailbox, settings: Settings) -> WSGIApplication:
    """Return the application with the mailbox. Its root leads to the dashboard."""

    def respond(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        if request.path == "/":
            return redirect(f"{MOUNT}/")(environ, start_response)
        if is_mailbox_path(request.path):
            return show_mailbox(request, mailbox, settings)(environ, start_response)
        return application(environ, start_response)

    return respond


@contextmanager
def _run_cloud_tasks(
    settings: Settings, clock: MovableClock, port: int, control_key: str
) -> Iterator[CloudTasksEmulator]:
    location = f"projects/{settings.project}/locations/{settings.location}"
    ids = list_queue_ids(settings.queue, settings.queues_per_priority)
    queues = [f"{location}/queues/{each}" for each in ids]
    emulator = CloudTasksEmulator(port=port, clock=clock, queues=queues, control_key=control_key)
    try:
        emulator.start()
    except OSError as error:
        raise Misconfigured(
            f"The local Cloud Tasks cannot listen on port {port}: {error}. Choose another port, or 0 for a free one."
        ) from error
    try:
        yield emulator
    finally:
        emulator.stop()


def _prepare_store_file(data: Path | None, parts: ExitStack) -> Path:
    """Return the embedded store's file. A temporary folder is removed when the stack ends."""
    folder = data or Path(parts.enter_context(TemporaryDirectory(prefix="cloudsched-")))
    try:
        make_private(folder)
    except OSError as error:
        raise Misconfigured(f"The folder {folder} cannot be created: {error}. Name another one.") from error
    return (folder / STORE_FILE_NAME).resolve()


def _redispatch_active_tasks(app: App) -> None:
    """Dispatch the active tasks of a persistent store to the new, empty queue, by an empty edit of each."""
    token: str | None = None
    while True:
        page = app.tasks(TaskQuery(owner=None, status=TaskStatus.ACTIVE), limit=MAX_PAGE, page_token=token)
        for task in page.items:
            try:
                app.patch(task.id, {})
            except CloudschedError as error:
                log.warning("task %s could not be dispatched: %s", task.id, error)
        token = page.next_page_token
        if token is None:
            return


@contextmanager
def open_store(choice: StoreChoice, *, address: str | None, is_persistent: bool) -> Iterator[ChosenStore]:
    """Choose a store, and run the Firestore emulator, if it is that, for as long as the context lasts.

    Only the embedded store is persistent. Raises Misconfigured if the store that was asked for is not available.
    """
    if choice == "firestore" and is_persistent:
        raise Misconfigured("The Firestore emulator stores nothing on disk. Omit --data, or use --store sqlite.")
    if choice == "sqlite" or is_persistent:
        reason = "as --store says" if choice == "sqlite" else "because of --data"
        yield ChosenStore("sqlite", f"SQLite, {reason}")
        return
    found = find_emulator(address)
    reason = found.reason if isinstance(found, EmulatorNotFound) else ""
    if isinstance(found, FirestoreEmulator):
        try:
            found.start()
        except StoreUnavailable as error:
            reason = str(error)
    if isinstance(found, EmulatorNotFound) or reason:
        if choice == "firestore":
            raise Misconfigured(f"There is no Firestore emulator: {reason}. {INSTALL_HINT}")
        yield ChosenStore("sqlite", f"SQLite, because there is no Firestore emulator: {reason}. {INSTALL_HINT}")
        return
    with found:
        yield ChosenStore(
            "firestore",
            f"Google's Firestore emulator on {found.address}: {found.reason}. For the embedded store: --store sqlite",
            found.address,
        )
