"""One process that serves and runs everything: the API, the queue and the sweep, over one SQLite file.

For a laptop or one small server. Nothing but the folder outlives the process.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request

from cloudsched.adapters.in_process_queue import DEFAULT_WORKERS
from cloudsched.local.backup import require_own_file, require_sound_folder
from cloudsched.local.folder_lock import FolderLock
from cloudsched.local.runner import FolderRunner, complete_settings
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
    with ExitStack() as parts:
        runner = FolderRunner(app, threads=threads)
        lock = FolderLock(data)
        lock.require()
        parts.callback(runner.release, lock)
        settings = complete_settings(settings, lock.folder)
        require_own_file(lock.folder)
        require_sound_folder(lock)
        web = parts.enter_context(WebServer(make_application(app), host=host, port=port))
        holder = secrets.token_hex(4) if lock.excludes_others else None
        parts.enter_context(app.override(settings, dispatcher=runner.queue, clock=runner.clock, holder=holder))
        parts.callback(app.container.store.close)
        app.apply_declarations()
        parts.enter_context(runner)
        web.serve()
        parts.callback(web.stop)
        yield Service(app, settings, f"http://{web.address}")


def make_application(app: App, *, is_mounted: bool = False) -> WSGIApplication:
    """Return the API as a WSGI application. The executor and the sweep are called in this process alone."""

    @Request.application
    def answer(request: Request) -> Response:
        return serve_api(app, request, is_mounted=is_mounted)

    return answer
