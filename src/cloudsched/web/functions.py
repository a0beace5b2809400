"""The three functions as they are deployed: each takes a request and gives an answer.

``api`` serves clients. ``execute`` is where Cloud Tasks delivers; its answers are meant for the queue, to which 2xx
means done and anything else means again. ``sweep`` is called by Cloud Scheduler once a minute.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from werkzeug.exceptions import MethodNotAllowed
from werkzeug.wrappers import Response

from cloudsched.engine.ports.tracing import Tracer
from cloudsched.runtime.telemetry import configure_cloud_logging
from cloudsched.web.api.parse import read_body
from cloudsched.web.api.problems import render_problem
from cloudsched.web.auth.authentication import require_account

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from werkzeug.wrappers import Request

    from cloudsched.app import App

TOKEN_HEADER = "X-Cloudsched-Token"  # noqa: S105 - a header's name
"""Where a dispatch carries its token."""


def serve_api(app: App, request: Request) -> Response:
    """Answer a client; see `cloudsched.web.api.router`."""
    from cloudsched.web.api.router import Api  # noqa: PLC0415 - the other two functions start without it

    with _trace_request(app, request):
        return Api(app).handle(request)


def serve_execute(app: App, request: Request) -> Response:
    """Answer a delivery of the queue.

    200 with what it came to; 401 without a right token, and nothing was read or run; 400 for a signed body that is no
    dispatch; 503 if the store or the queue did not answer, so that Cloud Tasks delivers it again.
    """
    if request.method != "POST":
        return render_problem(MethodNotAllowed(["POST"]))
    try:
        with _trace_request(app, request):
            verdict = app.deliver(read_body(request), request.headers.get(TOKEN_HEADER, ""))
    except Exception as error:  # noqa: BLE001 - told to the queue by its status, and logged if it is ours
        return render_problem(error)
    return _json_response({"action": verdict.action, "reason": verdict.reason})


def serve_sweep(app: App, request: Request) -> Response:
    """Answer Cloud Scheduler: sweep once, and say what was repaired.

    401 to all others, if the settings name the service account that it comes with; else Cloud Run alone sees to that.
    """
    if request.method != "POST":
        return render_problem(MethodNotAllowed(["POST"]))
    try:
        if (sweeper := app.settings.access.sweeper) is not None:
            require_account(app.settings, request, sweeper)
        read_body(request)
        with _trace_request(app, request), app.tracer.span("sweep"):
            done = app.sweep()
    except Exception as error:  # noqa: BLE001 - the same
        return render_problem(error)
    return _json_response(dataclasses.asdict(done))


def _trace_request(app: App, request: Request) -> AbstractContextManager[None]:
    """Do what is in the ``with`` as a part of the trace that the request belongs to, by W3C Trace Context."""
    configure_cloud_logging(app.settings)
    return Tracer().span("request", request.headers.get("traceparent", ""))


def _json_response(content: object) -> Response:
    return Response(json.dumps(content), 200, {"Content-Type": "application/json"})
