"""The API of an app in its own process, asked without a socket: by its pages, and by `App` itself."""

from __future__ import annotations

import io
import json
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes, urlencode

from werkzeug.wrappers import Request

from cloudsched.client.flow import ApiRequest, HttpResponse, JsonResponse, encode_header, parse_response
from cloudsched.domain.local_requests import find_forwarding_header
from cloudsched.web.auth.roles import Caller, Role
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from wsgiref.types import WSGIEnvironment

    from cloudsched.app import App
    from cloudsched.client.local_client import Send

_NAME: Final = "The API of this process"
OWN_CALLER: Final = Caller("code", Role.ADMIN, None)
"""The app's own code."""


def find_sender(app: App, user: str | None = None) -> Send:
    """Return what sends requests to an app's API: for its own code, or for a user. Raises InvalidInput."""
    caller = OWN_CALLER if user is None else OWN_CALLER.acting_for(user)
    return partial(send, app, caller)


def send(
    app: App,
    caller: Caller | None,
    wanted: ApiRequest,
    *,
    credential: Mapping[str, str] | None = None,
    find_outer: Callable[[], WSGIEnvironment] = dict,
) -> JsonResponse:
    """Send a request to this process's API, and return its answer. Raises CloudschedError.

    Args:
        app: The app.
        caller: The caller, or None if the credential says who it is.
        wanted: The request.
        credential: The headers of a WSGI environment that have the credential.
        find_outer: Returns the request that this one is part of: it has its peer and its name.
    """
    request = Request(_write_environ(wanted, find_outer(), credential or {}))
    answer = serve_api(app, request, is_mounted=True, caller=caller)
    reason = answer.status.partition(" ")[2]
    return parse_response(HttpResponse(answer.status_code, reason, dict(answer.headers), answer.get_data()), _NAME)


def _write_environ(wanted: ApiRequest, outer: WSGIEnvironment, credential: Mapping[str, str]) -> WSGIEnvironment:
    """Return a request to the API as a server would hand it over, with the origin of the page request."""
    body = b"" if wanted.content is None else json.dumps(wanted.content).encode()
    kept = {"SCRIPT_NAME", "SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "REMOTE_ADDR", "HTTP_HOST"}
    names = {name: name.removeprefix("HTTP_").replace("_", "-") for name in outer if name.startswith("HTTP_")}
    kept |= {name for name, header in names.items() if find_forwarding_header([header])}
    query = {name: value for name, value in (wanted.query or {}).items() if value is not None}
    return {
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        **{name: value for name, value in outer.items() if name in kept or name == "wsgi.url_scheme"},
        **{
            f"HTTP_{name.upper().replace('-', '_')}": encode_header(name, value)
            for name, value in wanted.headers.items()
        },
        **credential,
        "REQUEST_METHOD": wanted.method,
        "PATH_INFO": unquote_to_bytes(wanted.path).decode("latin-1"),
        "QUERY_STRING": urlencode(query, doseq=True),
        "CONTENT_LENGTH": str(len(body)),
        **({} if wanted.content is None else {"CONTENT_TYPE": "application/json"}),
        "wsgi.version": (1, 0),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": outer.get("wsgi.errors"),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
