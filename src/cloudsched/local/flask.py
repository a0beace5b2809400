"""cloudsched inside a Flask app: `Cloudsched(service, app, data="data")`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from werkzeug.serving import is_running_from_reloader
from werkzeug.wrappers import Response

from cloudsched.adapters.in_process_queue import DEFAULT_WORKERS
from cloudsched.config.imports import require_extra
from cloudsched.errors import Misconfigured
from cloudsched.local.embedded_app import Embedded, embedded
from cloudsched.local.server_processes import is_loaded_by_server
from cloudsched.local.visitor import FRAMEWORK_REQUEST

with require_extra("cloudsched.local.flask", "server"):
    import click
    from flask import Blueprint, Flask, request
    from flask.cli import FlaskGroup, run_command
    from flask.helpers import get_debug_flag

if TYPE_CHECKING:
    from pathlib import Path

    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.local.visitor import Identify

NAME: Final = "cloudsched"
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Cloudsched:
    """Runs an app's tasks inside the processes that serve a Flask app, and has the API and the page.

    A server that loads the Flask app starts it. The known ones, such as gunicorn and ``flask run``, do it at
    once, any other with the first request. Other commands, such as ``flask shell``, and programs that import
    the Flask app only create tasks, and tests start nothing (``TESTING``).

    Args:
        service: The Flask app. Without one, call `init_app`.
        app: The app whose handlers run.
        data: The folder of its store, ``CLOUDSCHED_DATA`` of the Flask app's config if None.
        url_prefix: The prefix of the API and the page. None serves neither.
        page: Where the page is, and who says who looks. See `cloudsched.embedded`. A function takes Flask's
            request.
        settings: As for `cloudsched.embedded`.
        threads: As for `cloudsched.embedded`.

    Attributes:
        blueprint: The API and the page, below the prefix. They check callers and the origin of forms by
            themselves, so an extension that checks all forms has to leave them out:
            ``csrf.exempt(scheduler.blueprint)``.
    """

    def __init__(
        self,
        service: Flask | None = None,
        app: App | None = None,
        *,
        data: str | Path | None = None,
        url_prefix: str | None = "/scheduler",
        page: bool | Identify | None = None,
        settings: Settings | None = None,
        threads: int = DEFAULT_WORKERS,
    ) -> None:
        if app is None:
            raise Misconfigured("Cloudsched needs the app whose handlers run: Cloudsched(app=app, data=…).")

        self._embed = partial(embedded, app, settings=settings, threads=threads, page=page)
        self._data = data
        self._url_prefix = url_prefix
        self._embedding: Embedded | None = None

        self.blueprint: Blueprint = Blueprint(NAME, __name__, url_prefix=url_prefix)
        for rule in ("/", "/<path:path>"):
            self.blueprint.add_url_rule(rule, view_func=self._serve, methods=_METHODS, provide_automatic_options=False)
        if service is not None:
            self.init_app(service)

    @property
    def embedding(self) -> Embedded:
        """Return what runs the tasks. Raises Misconfigured before `init_app`."""
        if self._embedding is None:
            raise Misconfigured("Cloudsched belongs to no Flask app yet: call init_app.")
        return self._embedding

    def init_app(self, service: Flask) -> None:
        """Run the tasks inside the processes that serve a Flask app. An app's tasks run inside one.

        Raises:
            Misconfigured: No folder is named, or this belongs to a Flask app already.
        """
        if self._embedding is not None:
            raise Misconfigured("Cloudsched belongs to a Flask app already: make one for each app of yours.")
        data = self._data
        if data is None:
            data = service.config.get("CLOUDSCHED_DATA")
        if data is None:
            raise Misconfigured("Name the folder of the store: data, or CLOUDSCHED_DATA of the Flask app's config.")
        self._embedding = self._embed(data)
        service.extensions[NAME] = self
        if self._url_prefix is not None:
            service.register_blueprint(self.blueprint)
        self._embedding.prepare()
        if not service.testing and _is_serving():
            self._embedding.ensure_started()

        @service.before_request
        def start() -> None:
            if not service.testing:
                self.embedding.ensure_started()

    def _serve(self, path: str = "") -> Response:
        environ = {**request.environ, FRAMEWORK_REQUEST: request}
        mount = request.path.removesuffix(path).rstrip("/")
        environ["SCRIPT_NAME"] = (request.root_path.rstrip("/") + mount).encode().decode("latin-1")
        environ["PATH_INFO"] = f"/{path}".encode().decode("latin-1")
        response = Response.from_app(self.embedding, environ)
        if response.content_length is not None:  # a download has no length, and is sent part by part
            response.make_sequence()
        return response


def _is_serving() -> bool:
    """Return whether this process is going to serve what it loads right now."""
    context = click.get_current_context(silent=True)
    if context is None or not isinstance(context.find_root().command, FlaskGroup):
        return is_loaded_by_server()
    if context.command is not run_command:
        return False
    reloads = context.params.get("reload")
    if reloads is None:
        reloads = get_debug_flag()
    return is_running_from_reloader() or not reloads
