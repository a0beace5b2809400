"""Run the tasks of a data folder in this process, and serve the API and the page beside it."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request, Response

from cloudsched.adapters.in_process_queue import DEFAULT_WORKERS
from cloudsched.engine.concurrency.service_threads import find_faults
from cloudsched.local.runner import FolderRunner
from cloudsched.local.ui_page import UiPage
from cloudsched.local.wsgi_server import WebServer
from cloudsched.web.auth.authentication import authenticator_for
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

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

    def find_trouble(self) -> str:
        """Return the present problem, and the handlers that hang. Empty if there are none."""
        faults = [f"{name} {fault}" for name, fault in find_faults().items()]
        return "; ".join(filter(None, [*faults, self.app.container.hanging]))


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
    """Serve the API and the page, and run due tasks for as long as the context lasts.

    Only one process at a time may use the folder. The store and the queue that the settings name are not
    used.
    """
    authenticator_for(settings)  # reports mistakes in the access settings before anything starts
    runner = FolderRunner(app, data, threads=threads)
    runner.lock.require()
    with ExitStack() as parts:
        parts.callback(runner.release)
        application = _add_page(make_application(app), UiPage(app, data))
        web = parts.enter_context(WebServer(application, host, port, root_path=root_path))
        settings = parts.enter_context(runner.open(settings))
        parts.callback(runner.end)
        runner.begin()
        parts.enter_context(runner.watch())
        web.serve()
        parts.callback(web.stop)
        yield Service(app, settings, f"http://{web.address}")


def _add_page(api: WSGIApplication, page: UiPage) -> WSGIApplication:
    def choose(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        chosen = page if page.is_for(environ.get("PATH_INFO", "")) else api
        return chosen(environ, start_response)

    return choose


def make_application(app: App, *, is_mounted: bool = False) -> WSGIApplication:
    """Return the API as a WSGI application. The executor and the sweep are called in this process alone."""

    @Request.application
    def answer(request: Request) -> Response:
        return serve_api(app, request, is_mounted=is_mounted)

    return answer
