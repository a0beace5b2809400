"""What is deployed: three functions, each with an address of its own (see docs/deployment.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import functions_framework

from cloudsched.web.functions import serve_api, serve_execute, serve_sweep
from handlers import app

if TYPE_CHECKING:
    from flask import Request
    from werkzeug.wrappers import Response


@functions_framework.http
def api(request: Request) -> Response:
    """Serve clients."""
    return serve_api(app, request)


@functions_framework.http
def execute(request: Request) -> Response:
    """Run what Cloud Tasks delivers."""
    return serve_execute(app, request)


@functions_framework.http
def sweep(request: Request) -> Response:
    """Repair what was lost; Cloud Scheduler calls this once a minute."""
    return serve_sweep(app, request)
