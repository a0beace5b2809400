"""The local stack: API, executor, sweep, a local Cloud Tasks and a store, in one process.

The local Cloud Tasks owns the clock. This process's app uses the same one, and other processes that are
started with `Stack.to_environment` ask for it over HTTP, so moving it moves them all.
"""

from __future__ import annotations

import dataclasses
import secrets
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from cloudsched.adapters.google.cloud_tasks import list_queue_ids
from cloudsched.adapters.operation_counts import Counts, count_dispatcher, count_store
from cloudsched.config.settings import Settings, StoreChoice
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.own_logger import own_logger
from cloudsched.emulator.emulator import CloudTasksEmulator
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.storage.pages import MAX_PAGE, iterate_pages
from cloudsched.errors import CloudschedError, Misconfigured
from cloudsched.local.data_folder import STORE_FILE_NAME, make_private
from cloudsched.local.mailbox import Mailbox
from cloudsched.local.maintenance import SWEEP_INTERVAL, IntervalTimer, sweep
from cloudsched.local.stack_clock import StackClock
from cloudsched.local.stack_pages import StackPages
from cloudsched.local.store_choice import ChosenStore, open_store
from cloudsched.local.wsgi_server import WebServer
from cloudsched.people.wiring import PeopleWiring
from cloudsched.web.auth.authentication import authenticator_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.app import App

log: Final = own_logger(__name__)

SWEEP_PAUSE_SECONDS = 0.2
"""The interval at which the clock, which may be moved at any time, is read, in real seconds."""


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
    """Moves the clock, with the key if the stack has one."""

    @property
    def port(self) -> int:
        """The port of the API and the executor."""
        return int(self.url.rpartition(":")[2])

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

    Settings are taken from `base` where the stack does not decide itself. Without a folder, the embedded
    store is temporary, and without a clock, time follows the system. A port of 0 is a free one.
    """
    base = base or Settings()
    base = dataclasses.replace(base, is_deployed=False, access=dataclasses.replace(base.access, open=True))
    authenticator_for(base)  # reports mistakes in the access settings before the stack starts
    clock = clock or MovableClock()
    counts = Counts()
    control_key = secrets.token_urlsafe(32) if base.access.is_configured else ""

    with ExitStack() as parts:
        choice = parts.enter_context(open_store(store, address=base.firestore_emulator, is_persistent=data is not None))
        scratch = Path(parts.enter_context(TemporaryDirectory(prefix="cloudsched-")))
        file = _prepare_store_file(data or scratch) if choice.kind == "sqlite" else None
        mailbox = Mailbox(base, clock, lambda: app.container.registry.registrations.mail_template)
        pages = StackPages(app, mailbox, scratch)
        web = parts.enter_context(WebServer(pages, port=port))
        url = f"http://{web.address}"
        emulator = _start_cloud_tasks(base, clock, tasks_port, control_key)
        parts.callback(emulator.stop)
        settings = dataclasses.replace(
            base,
            executor_url=url,
            public_url=base.public_url or url,
            secret=base.secret or secrets.token_urlsafe(32),
            store=choice.kind,
            data=file,
            tasks_emulator=emulator.address,
            firestore_emulator=choice.address,
            invoker=None,
            preferred_channels=True if base.preferred_channels is None else base.preferred_channels,
        )

        parts.enter_context(app.override(settings, clock=clock))
        container = app.container
        parts.callback(container.close)
        container.check_settings()
        if settings.smtp_url:
            mailbox.pass_on(PeopleWiring.of(container).senders)
        container.replace(
            store=count_store(container.store, counts),
            dispatcher=count_dispatcher(container.dispatcher, counts),
            listener=None,
        )
        PeopleWiring.of(container).replace(senders=mailbox.senders)
        _redispatch_active_tasks(app)
        app.apply_declarations()

        pages.clock = StackClock(clock, emulator.address, control_key)
        web.serve()
        parts.callback(web.stop)  # no request may arrive once the app has its own parts back
        parts.callback(emulator.stop)
        interval = IntervalTimer(clock, SWEEP_INTERVAL, lambda: 0.0)  # nothing comes due while the clock stands still
        sweeper = ServiceThread("cloudsched-sweep", partial(_sweep_if_due, app, interval))
        sweeper.start()
        parts.callback(sweeper.join)
        parts.callback(sweeper.stop)
        yield Stack(app, clock, counts, emulator, choice, settings, url, pages.clock)


def _sweep_if_due(app: App, interval: IntervalTimer) -> float:
    """Sweep often while the clock advances a long way, without delaying it, and once afterwards."""
    interval.call_if_over(partial(sweep, app))
    return SWEEP_PAUSE_SECONDS


def _start_cloud_tasks(settings: Settings, clock: MovableClock, port: int, control_key: str) -> CloudTasksEmulator:
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
    return emulator


def _prepare_store_file(folder: Path) -> Path:
    try:
        make_private(folder)
    except OSError as error:
        raise Misconfigured(f"The folder {folder} cannot be created: {error}. Name another one.") from error
    return (folder / STORE_FILE_NAME).resolve()


def _redispatch_active_tasks(app: App) -> None:
    """Dispatch the active tasks of a persistent store to the new, empty queue, by an empty edit of each.

    An edit plans from the present clock, which may have been a year ahead when the store was used before.
    """
    query = TaskQuery(owner=None, status=TaskStatus.ACTIVE)
    for page in iterate_pages(lambda token: app.tasks(query, limit=MAX_PAGE, page_token=token)):
        for task in page.items:
            try:
                app.patch(task.id, {})
            except CloudschedError as error:
                log.warning("task %s could not be dispatched: %s", task.id, error)
