"""The whole HTTP surface as one WSGI or ASGI application, to be mounted in an existing service.

::

    import cloudsched
    from fastapi import FastAPI

    service = FastAPI()
    service.mount("/scheduler", cloudsched.asgi(app))

Below the mount's path, ``/v1/tasks/execute`` takes deliveries, ``/v1/sweep`` sweeps, and everything else is the API.
Set ``CLOUDSCHED_EXECUTOR_URL`` to the mount's address, such as ``https://host/scheduler``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from werkzeug.wrappers import Request

from cloudsched.config.settings import EXECUTE_PATH
from cloudsched.web.functions import serve_api, serve_execute, serve_sweep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from wsgiref.types import WSGIApplication

    from werkzeug.wrappers import Response

    from cloudsched.app import App

    Message = MutableMapping[str, Any]
    AsgiApplication = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Any]

SWEEP_PATH = "/v1/sweep"
"""The path that starts a sweep."""
THREADS = 32
"""How many requests an ASGI application serves at the same time by default."""


def wsgi(app: App) -> WSGIApplication:
    """Return the API, the executor and the sweep as one WSGI application, for Flask, Django, gunicorn and the like.

    Callers are authenticated as they are by the functions, and dispatches by their token. The sweep takes only Cloud
    Scheduler's account (``CLOUDSCHED_SWEEPER``), in the cloud too. It may be mounted under any path (``SCRIPT_NAME``).
    """

    @Request.application
    def respond(request: Request) -> Response:
        path = request.path.rstrip("/")  # Litestar adds one
        if path == EXECUTE_PATH:
            return serve_execute(app, request, is_mounted=True)
        if path == SWEEP_PATH:
            return serve_sweep(app, request, is_mounted=True)
        return serve_api(app, request, is_mounted=True)

    return respond


def asgi(app: App, *, threads: int = THREADS) -> AsgiApplication:
    """Return the API, the executor and the sweep as one ASGI application, for FastAPI, Litestar and the like.

    Requests are served in threads, so they never hold up the event loop. It may be mounted under any path
    (``root_path``). A function of ``functions_framework.aio`` serves it by returning it.

    Args:
        app: The app whose tasks it serves.
        threads: The most requests, handlers included, that are served at the same time; later ones wait.
    """
    from a2wsgi import WSGIMiddleware  # noqa: PLC0415 - functions, which are WSGI, start without it

    return cast("AsgiApplication", WSGIMiddleware(cast("Any", wsgi(app)), workers=threads))
