"""The API of an app in its own process, asked without a socket: by its pages, and by `App` itself."""

from __future__ import annotations

import asyncio
import io
import json
import time
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote_to_bytes, urlencode

from werkzeug.wrappers import Request

from cloudsched.client.flow import ApiRequest, Flow, FlowStep, HttpResponse, JsonResponse, Sleep, parse_response
from cloudsched.client.operations import Operations
from cloudsched.domain.local_requests import find_forwarding_header
from cloudsched.errors import CloudschedError
from cloudsched.web.auth.roles import Caller, Role
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from wsgiref.types import WSGIEnvironment

    from cloudsched.app import App

T = TypeVar("T")
_NAME: Final = "The API of this process"
OWN_CALLER: Final = Caller("code", Role.ADMIN, None)
"""The app's own code."""


class OwnApi:
    """Runs flows on this process's API.

    Args:
        app: The app.
        caller: The caller, or None if the credential says who it is.
        credential: The headers of a WSGI environment that have the credential.
        find_outer: Returns the request that these requests are part of: they have its peer and its name.
    """

    face: Final = "app"

    def __init__(
        self,
        app: App,
        caller: Caller | None,
        credential: Mapping[str, str] | None = None,
        find_outer: Callable[[], WSGIEnvironment] = dict,
    ) -> None:
        self._app = app
        self._caller = caller
        self._credential = credential or {}
        self._find_outer = find_outer

    def run_flow(self, flow: Flow[T]) -> T:
        """Run a flow to its end, and return its result."""
        step = FlowStep(flow, self.face)
        while (wanted := step.next()) is not None:
            if isinstance(wanted, Sleep):
                time.sleep(wanted.seconds)
                continue
            try:
                step.response = self._send(wanted)
            except CloudschedError as error:
                step.error = error
        return step.result

    def _send(self, wanted: ApiRequest) -> JsonResponse:
        request = Request(_write_environ(wanted, self._find_outer(), self._credential))
        answer = serve_api(self._app, request, is_mounted=True, caller=self._caller)
        reason = answer.status.partition(" ")[2]
        return parse_response(HttpResponse(answer.status_code, reason, dict(answer.headers), answer.get_data()), _NAME)


class OwnClient(OwnApi, Operations):
    """All operations of the API on an app of this process, for one caller. It has the methods of `Client`."""

    def acting_for(self, user: str) -> OwnClient:
        """Return the same for a user, with exactly the authority of that user."""
        return OwnClient(self._app, (self._caller or OWN_CALLER).acting_for(user))


class AsyncOwnClient(Operations):
    """An `OwnClient` whose methods are awaited. Each runs in a thread of the event loop's."""

    def __init__(self, client: OwnClient) -> None:
        self._client = client

    async def run_flow_async(self, flow: Flow[T]) -> T:
        """Run a flow to its end, and return its result."""
        return await asyncio.to_thread(self._client.run_flow, flow)


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
        **{f"HTTP_{name.upper().replace('-', '_')}": value for name, value in wanted.headers.items()},
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
