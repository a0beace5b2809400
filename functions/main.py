"""The functions to deploy, each with its own URL (see docs/run/deploy.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import functions_framework

from cloudsched.web.functions import serve_api, serve_execute, serve_links, serve_sweep
from handlers import app

if TYPE_CHECKING:
    from flask import Request
    from werkzeug.wrappers import Response


@functions_framework.http
def api(request: Request) -> Response:
    """Serve the API to clients."""
    return serve_api(app, request)


@functions_framework.http
def links(request: Request) -> Response:
    """Serve what people open by a link: unsubscribe, feeds. For the public, where the API is private."""
    return serve_links(app, request)


@functions_framework.http
def execute(request: Request) -> Response:
    """Run the tasks that Cloud Tasks delivers."""
    return serve_execute(app, request)


@functions_framework.http
def sweep(request: Request) -> Response:
    """Repair lost dispatches and crashed runs; Cloud Scheduler calls this once a minute."""
    return serve_sweep(app, request)
