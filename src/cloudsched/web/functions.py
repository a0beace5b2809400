"""The functions that are deployed, and all of them as one WSGI or ASGI application.

``api`` serves clients. Where the API is private, ``links`` serves the pages that people open by a link.
``execute`` receives dispatches from Cloud Tasks, which takes 2xx as done and sends again after any other status.
Cloud Scheduler calls ``sweep`` once a minute.

``docs/guides/web-frameworks.md`` mounts an application in an existing service. Below the mount's path,
``/v1/tasks/execute`` takes dispatches, ``/v1/sweep`` sweeps, and everything else is the API. Set
``CLOUDSCHED_EXECUTOR_URL`` to the mount's address, such as ``https://host/scheduler``.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import json
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, cast

from werkzeug.exceptions import MethodNotAllowed
from werkzeug.wrappers import Request, Response

from cloudsched.config.imports import require_extra
from cloudsched.config.settings import EXECUTE_PATH
from cloudsched.engine.tracing import Tracer
from cloudsched.web.api.parse import read_body
from cloudsched.web.api.problems import render_problem
from cloudsched.web.instance_end import release_at_end, watch_functions
from cloudsched.web.waiting_room import serve_with_room

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, MutableMapping
    from wsgiref.types import WSGIApplication

    from cloudsched.app import App
    from cloudsched.web.auth.roles import Caller

    Message = MutableMapping[str, Any]
    AsgiApplication = Callable[
        [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
        Any,
    ]

watch_functions()
TOKEN_HEADER = "X-Cloudsched-Token"  # noqa: S105 - a header's name
"""The header with a dispatch's token."""


def serve_api(
    app: App,
    request: Request,
    *,
    is_mounted: bool = False,
    caller: Caller | None = None,
) -> Response:
    """Serve a client, who has to authenticate unless `caller` is known. See `cloudsched.web.api.router`."""
    from cloudsched.web.api.router import ApiServer  # noqa: PLC0415 - executor and sweep start without it

    with _trace_request(app, request, is_mounted=is_mounted):
        return ApiServer(app, caller=caller).handle(request)


def serve_links(app: App, request: Request) -> Response:
    """Serve the pages that people open by a link: unsubscribing, answers and feeds. All else is 404.

    It is for a public function beside a private API. See ``docs/guides/delivery.md``.
    """
    from cloudsched.web.api.router import ApiServer  # noqa: PLC0415 - the same

    app.container.serves_links_only = True
    with _trace_request(app, request, is_mounted=False):
        return ApiServer(app, only_links=True).handle(request)


def serve_execute(app: App, request: Request, *, is_mounted: bool = False) -> Response:
    """Process a dispatch from the queue.

    The status is 200 with the result, 401 without a valid token, 400 for a signed body that is not a
    dispatch, or 503 if the store or the queue did not respond. After 503, Cloud Tasks sends it again. With
    401, nothing was read or run. `serve_sweep` explains `is_mounted`.
    """
    if request.method != "POST":
        return render_problem(MethodNotAllowed(["POST"]))
    try:
        release_at_end(app.container.executor)
        with _trace_request(app, request, is_mounted=is_mounted):
            verdict = app.deliver(read_body(request), request.headers.get(TOKEN_HEADER, ""))
    except Exception as error:  # noqa: BLE001 - the status tells the queue, and server errors are logged
        return render_problem(error)
    return _json_response({"action": verdict.action, "reason": verdict.reason})


def serve_sweep(app: App, request: Request, *, is_mounted: bool = False) -> Response:
    """Sweep once for Cloud Scheduler, and return what was repaired.

    If the settings name Cloud Scheduler's service account, all other callers get 401. Otherwise, Cloud
    Run's own access control applies in the cloud, and elsewhere `require_sweeper` admits only an open
    machine. An application that mounts it (`is_mounted`) has its own logging, and Cloud Run may not check
    its callers.
    """
    from cloudsched.web.auth.authentication import require_sweeper  # noqa: PLC0415 - only when used

    if request.method != "POST":
        return render_problem(MethodNotAllowed(["POST"]))
    try:
        require_sweeper(app.container.settings, request, is_private=not is_mounted)
        read_body(request)
        release_at_end(app.container.executor)  # it delivers while the queue cannot be reached
        with _trace_request(app, request, is_mounted=is_mounted), app.container.tracer.span("sweep"):
            done = app.container.many_tasks.sweep(app.sweep)
    except Exception as error:  # noqa: BLE001 - the same
        return render_problem(error)
    return _json_response(dataclasses.asdict(done))


def _trace_request(app: App, request: Request, *, is_mounted: bool) -> AbstractContextManager[None]:
    """Run the ``with`` block as part of the request's trace (W3C Trace Context)."""
    from cloudsched.runtime.telemetry import configure_cloud_logging  # noqa: PLC0415 - imported after the app

    if not is_mounted:
        _keep_imports()
    configure_cloud_logging(app.container.settings, is_mounted=is_mounted)
    span = Tracer().span("request", request.headers.get("traceparent", ""))
    if is_mounted or not app.container.settings.is_deployed:
        return span
    return _flush_after(app, span)


@contextmanager
def _flush_after(app: App, span: AbstractContextManager[None]) -> Iterator[None]:
    """Run the ``with`` block as a function's request, and export its trace before the processor stops."""
    try:
        with span:
            yield
    finally:
        app.container.tracer.flush()


@functools.cache
def _keep_imports() -> None:
    """Exempt the imported modules from garbage collection, once. They stay, and searching them takes 15 ms.

    The first search would delay the first request. A mounted application does not call this, since the
    process also has objects of others.
    """
    gc.freeze()


def _json_response(content: object) -> Response:
    return Response(json.dumps(content), 200, {"Content-Type": "application/json"})


SWEEP_PATH = "/v1/sweep"
"""The path that starts a sweep."""
THREADS = 32
"""The default number of requests that an ASGI application serves at the same time."""


def wsgi(app: App) -> WSGIApplication:
    """Return the API, the executor and the sweep as one WSGI application, for Flask, Django, gunicorn and others.

    Callers are authenticated as they are by the functions, and the queue by its token. The sweep takes only
    Cloud Scheduler's account (``CLOUDSCHED_SWEEPER``), in the cloud too. It may be mounted under any path
    (``SCRIPT_NAME``).
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
    """Return the API, the executor and the sweep as one ASGI application, for FastAPI, Litestar and others.

    Requests are served in threads, so they never hold up the event loop. It may be mounted under any path
    (``root_path``). A function of ``functions_framework.aio`` serves it by returning it.

    Args:
        app: The app whose tasks it serves.
        threads: The most requests, handlers included, that are served at the same time. Later ones wait.
    """
    return to_asgi(wsgi(app), threads)


def to_asgi(application: WSGIApplication, threads: int) -> AsgiApplication:
    """Return a WSGI application as an ASGI application. Raises MissingExtra."""
    with require_extra("An ASGI application"):
        from a2wsgi import WSGIMiddleware  # noqa: PLC0415 - functions, which are WSGI, start without it

    served = cast("Any", serve_with_room(application, threads))
    return cast("AsgiApplication", WSGIMiddleware(served, workers=threads))
