"""The function that `benchmarks.api` measures: the API as it is deployed, with one handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import functions_framework
from pydantic import BaseModel

from cloudsched import App
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from flask import Request
    from werkzeug.wrappers import Response

app = App()


class Site(BaseModel):
    """The handler's payload."""

    url: str


@app.handler("check")
def check(site: Site) -> str:
    """Return the URL."""
    return site.url


@functions_framework.http
def api(request: Request) -> Response:
    """Serve the HTTP API."""
    return serve_api(app, request)
