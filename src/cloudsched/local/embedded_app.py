"""Run an app's tasks inside the user's own process: queue, sweep and API, started and stopped with it.

Any number of processes may embed an app on the same folder, such as the workers of a web server. One of them
runs the tasks: the one that has the folder's lock. The others create tasks, and hand their dispatches to it.
When it ends, however it ends, another one takes its place within `TAKEOVER_SECONDS`.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.in_process_queue import DEFAULT_WORKERS
from cloudsched.config.imports import require_extra
from cloudsched.config.settings import Settings
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.concurrency.service_threads import ServiceThread
from cloudsched.errors import Misconfigured
from cloudsched.local.runner import FolderRunner
from cloudsched.local.server_processes import call_in_worker, is_master
from cloudsched.local.service import make_application
from cloudsched.local.ui_page import UiPage
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.functions import THREADS, to_asgi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

    from cloudsched.app import App
    from cloudsched.local.embedded_page import EmbeddedPage
    from cloudsched.local.folder_lock import FolderLock
    from cloudsched.local.visitor import Identify
    from cloudsched.web.functions import AsgiApplication

log: Final = own_logger(__name__)

TAKEOVER_SECONDS: Final = 0.5
"""The interval at which a process that does not run the tasks tries to lock the folder, in seconds."""


class Embedded:
    """An app whose tasks run in this process, or in another one that embeds it on the same folder.

    Use it in a ``with``, as the `lifespan` of an ASGI service, or call `start` and `stop`. It takes no
    signals and changes no logging. All of its threads are daemons, and an exit of the interpreter stops it.

    It is a WSGI application, to be mounted under a prefix: the API, and the page. `asgi` is
    the same for ASGI.
    """

    def __init__(
        self, app: App, data: Path, settings: Settings | None, threads: int, page: EmbeddedPage | UiPage | None
    ) -> None:
        self._app = app
        self._data = data
        self._settings = settings
        self._threads = threads
        self._application = make_application(app, is_mounted=True)
        self._page = page
        self._parts: ExitStack | None = None
        self._runner: FolderRunner | None = None
        self._only_creates = False
        self._starting = threading.Lock()
        app.container.how_to_start = (
            f"This app is embedded on {data}, and has not been started. With `scheduler = embedded(app, …)`, "
            "write FastAPI(lifespan=scheduler.lifespan), and in a test `with TestClient(service)`; "
            "or else `with scheduler:`."
        )

    @property
    def is_running(self) -> bool:
        """Return whether this process runs the tasks now."""
        return self._parts is not None and self._runner is not None and self._runner.is_running

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop."""
        self.stop()

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse | None = None, *asgi: object
    ) -> Iterable[bytes]:
        """Serve a request to the API, or for the page, as a WSGI application."""
        if start_response is None or asgi:
            raise TypeError("FastAPI takes scheduler.asgi(), and lifespan=scheduler.lifespan: this serves WSGI.")
        if self._page is not None and self._page.is_for(environ.get("PATH_INFO", "")):
            return self._page(environ, start_response)
        return self._application(environ, start_response)

    def asgi(self, *, threads: int = THREADS) -> AsgiApplication:
        """Return the same as an ASGI application, which serves up to `threads` requests at a time."""
        return to_asgi(self, threads)

    @asynccontextmanager
    async def lifespan(self, _service: object) -> AsyncIterator[None]:
        """Start and stop with an ASGI service: ``FastAPI(lifespan=embedded(app, data="data").lifespan)``."""
        await asyncio.to_thread(self.start)
        try:
            yield
        finally:
            await asyncio.to_thread(self.stop)

    def start(self) -> None:
        """Start. This process runs the tasks unless another one does already.

        If gunicorn loads the web app before it forks its workers (``--preload``), each worker starts instead.

        Raises:
            Misconfigured: The folder cannot be used, the access settings are wrong, the app is in a
                `Simulation`, or the app or the folder is embedded in this process already.
        """
        if self._parts is not None and not self._only_creates:
            raise Misconfigured("This is started already: start it once in each process.")
        self.ensure_started()

    def ensure_started(self) -> None:
        """Start, unless it is started already. See `start`."""
        if is_master():
            self._wait(runs=True)
            return
        with self._starting:
            if self._parts is not None and self._only_creates:
                self._parts.close()
                self._parts = None
            self._begin(runs=True)

    def prepare(self) -> None:
        """Start on the first use of the app, to create tasks only. For a process that does not serve."""
        if self._parts is None:
            self._wait(runs=False)

    def _wait(self, *, runs: bool) -> None:
        """Start on the first use of the app, or in each worker that gunicorn forks."""
        waits_in = os.getpid()

        def begin() -> object:
            if runs and os.getpid() == waits_in:
                raise Misconfigured("This process only starts the server's workers: create tasks in these.")
            with self._starting:
                self._begin(runs=runs)
            return self._app.container

        before: Any = self._app.container
        if isinstance(before, _Unstarted):
            before = before.before
        self._app.container = cast("Any", _Unstarted(before, begin))
        if runs:
            _WAITING.add(self)

    def _begin(self, *, runs: bool) -> None:
        if self._parts is not None:
            return
        _WAITING.discard(self)
        unstarted: Any = self._app.container
        if isinstance(unstarted, _Unstarted):
            self._app.container = unstarted.before
        with ExitStack() as parts:
            self._open(parts, runs=runs)
            self._parts = parts.pop_all()
            self._only_creates = not runs

    def stop(self) -> None:
        """Stop. Handlers that are running get ten seconds. A second call does nothing."""
        with self._starting:
            parts = self._parts
            self._parts = None
            if parts is not None:
                parts.close()

    def forget(self) -> object:
        """Detach what was started, without stopping it: in a forked process it belongs to the parent."""
        parts = self._parts
        self._parts = None
        self._starting = threading.Lock()  # the parent's may be locked
        atexit.unregister(self.stop)
        return parts

    def _open(self, parts: ExitStack, *, runs: bool) -> None:
        app = self._app
        settings = self._settings or Settings.from_environment()
        if isinstance(app.container.clock, ManualClock):
            raise Misconfigured(
                "This app is in a Simulation, which runs its tasks instead. Call your service there without "
                "starting it: by TestClient(service), and not in a `with`."
            )
        if settings.access.is_configured or settings.access.open:
            authenticator_for(settings)  # reports mistakes before anything starts

        runner = FolderRunner(app, self._data, threads=self._threads)
        parts.callback(runner.release)
        _claim_in_process(self, app, runner.lock)
        parts.callback(_ACTIVE.pop, self, None)
        has_lock = runs and runner.lock.acquire()
        parts.enter_context(runner.open(settings))
        parts.callback(runner.end)
        if has_lock:
            runner.begin()
        elif runs:
            runner.lock.require_same_app()
            waiting = ServiceThread("cloudsched-takeover", partial(_take_over, runner))
            waiting.start()
            parts.callback(waiting.join)
            parts.callback(waiting.stop)
        if runs:
            parts.enter_context(runner.watch())

        self._runner = runner
        atexit.register(self.stop)
        parts.callback(atexit.unregister, self.stop)


def _take_over(runner: FolderRunner) -> float | None:
    """Take over from the process that runs the tasks if it has ended. If not, check again later."""
    if not runner.lock.acquire():
        return TAKEOVER_SECONDS
    try:
        runner.begin()
    except BaseException:
        runner.end()
        runner.lock.yield_to_others()
        raise
    log.info("This process runs the tasks now.", extra={"action": "taken_over"})
    return None


def embedded(
    app: App,
    data: str | Path,
    *,
    settings: Settings | None = None,
    threads: int = DEFAULT_WORKERS,
    page: bool | Identify | None = None,
) -> Embedded:
    """Return an object that runs an app's tasks inside this process, once it is started. See `Embedded`.

    Args:
        app: The app whose handlers run.
        data: The folder of the store's file, created if necessary.
        settings: The settings, read from the environment if None. The store and the queue that they name are
            not used.
        threads: The most handlers that run at the same time.
        page: By default the page is at ``/ui/`` beside the API, and people sign in to it with a key of the API.
            True serves it at the root instead, and False nowhere. A function of yours that says who looks also
            serves it at the root. It takes the WSGI environ, or the request of Django or Flask, and returns a
            `Visitor`, or None for somebody who may not.
    """
    served: EmbeddedPage | UiPage | None = None
    if page is None:
        served = UiPage(app, Path(data))
    elif page:
        with require_extra("The page of an embedded app", "server"):
            from cloudsched.local.embedded_page import EmbeddedPage  # noqa: PLC0415 - it takes as long as all the rest

        served = EmbeddedPage(app, Path(data), page if callable(page) else None)
    return Embedded(app, Path(data), settings, threads, served)


_ACTIVE: Final[dict[Embedded, tuple[App, FolderLock]]] = {}
"""The embeddings that are started in this process."""
_INHERITED: Final[list[object]] = []
"""The parent's objects, which a forked process must neither use nor close."""


def _claim_in_process(embedding: Embedded, app: App, lock: FolderLock) -> None:
    """Note that an app is embedded.

    Raises Misconfigured if it, or its folder, is embedded in this process already.
    """
    for other, held in _ACTIVE.values():
        if other is app:
            raise Misconfigured(f"This app is embedded in this process already, on {held.folder}. Start it once.")
        if held.folder == lock.folder:
            raise Misconfigured(
                f"Another app is embedded on {lock.folder} in this process. Give each app a folder of its own."
            )
    _ACTIVE[embedding] = (app, lock)


_WAITING: Final[set[Embedded]] = set()
"""The embeddings that gunicorn's workers start, once they are forked."""


class _Unstarted:
    """The parts of an app that is embedded once something needs them."""

    def __init__(self, before: Any, begin: Callable[[], object]) -> None:  # noqa: ANN401 - a container
        self.before = before
        self.registry = before.registry
        self.given_model = before.given_model
        self._begin = begin

    def __getattr__(self, name: str) -> object:
        return getattr(self._begin(), name)


class _Forked:
    """The parts of an app in a process that was forked after it was started: there are none."""

    def __init__(self, registry: object) -> None:
        self.registry = registry

    def __getattr__(self, name: str) -> object:
        raise Misconfigured(
            "cloudsched was embedded before this process was forked, and does not work here. "
            "Start it in each process that the server forks, after the fork."
        )


def _forget_parent() -> None:
    """Drop, in a forked process, what belongs to its parent."""
    for embedding, (app, _) in _ACTIVE.items():
        _INHERITED.extend((embedding.forget(), app.container))
        app.container = cast("Any", _Forked(app.container.registry))
    _ACTIVE.clear()
    for waiting in tuple(_WAITING):
        waiting.forget()
        call_in_worker(waiting.ensure_started)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
