"""The dashboard inside the local stack: at ``/ui``, and the clock at ``/dev/clock`` on the same port.

A third of what the stack imports is for the dashboard, so it is imported when somebody first opens it.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from werkzeug.wrappers import Request, Response

from cloudsched.dashboard.guard import LOCAL_HOSTS
from cloudsched.domain.local_requests import find_detour, find_foreign_name, find_foreign_page
from cloudsched.errors import CloudschedError, Forbidden, InvalidInput, Unauthenticated, Unavailable

if TYPE_CHECKING:
    from cloudsched.client.client import Client
    from cloudsched.dashboard.application import Dashboard
    from cloudsched.emulator.runtime.clock import MovableClock

MOUNT, CLOCK_PATH = "/ui", "/dev/clock"
_MOVE_TIMEOUT_SECONDS = 600
"""The longest time of a move of the clock: everything on the way runs."""


class StackClock:
    """The stack's clock, moved by the local Cloud Tasks, which delivers what falls due on the way."""

    def __init__(self, clock: MovableClock, address: str, key: str = "") -> None:
        self._clock = clock
        self._address = address
        self._headers = {"X-Api-Key": key} if key else {}

    @property
    def mode(self) -> str:
        """Return whether the clock runs or is frozen, in a word."""
        return "runs" if self._clock.mode == "running" else "stands still"

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        return self._clock.now()

    def move(self, command: dict[str, object]) -> dict[str, object]:
        """Carry out a command of ``/clock``, and return the clock's state."""
        status, content = self.exchange("POST", json.dumps(command))
        if status >= http.client.BAD_REQUEST:
            raise InvalidInput("clock", str(content.get("error", {}).get("message", content)))
        return content

    def exchange(self, method: str, body: str | None) -> tuple[int, dict[str, Any]]:
        """Send a request to ``/clock``. Return the status and the content. Raises Unavailable if nothing answers."""
        connection = http.client.HTTPConnection(self._address, timeout=_MOVE_TIMEOUT_SECONDS)
        try:
            connection.request(method, "/clock", body, self._headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable("The local Cloud Tasks", type(error).__name__) from error
        finally:
            connection.close()


class DashboardMount:
    """Serves ``/ui`` and ``/dev/clock``, and leaves everything else to the API."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application
        self._clock: StackClock | None = None
        self._url = ""
        self._is_open = True
        self._dashboard: WSGIApplication | None = None
        self._opening = threading.Lock()
        self._parts = ExitStack()

    def connect(self, url: str, clock: StackClock, *, is_open: bool) -> None:
        """Say where the API is and which clock it has. Unless the API is open, the page asks for credentials."""
        self._url, self._clock, self._is_open = url, clock, is_open

    def close(self) -> None:
        """Close the connections."""
        self._parts.close()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        path = environ.get("PATH_INFO", "")
        if self._clock is not None and (path == MOUNT or path.startswith(f"{MOUNT}/")):
            inner = {**environ, "SCRIPT_NAME": environ.get("SCRIPT_NAME", "") + MOUNT, "PATH_INFO": path[len(MOUNT) :]}
            return self._open_dashboard(self._clock)(inner, start_response)
        if self._clock is not None and path == CLOCK_PATH:
            return self._serve_clock(self._clock, Request(environ))(environ, start_response)
        return self._application(environ, start_response)

    def _open_dashboard(self, clock: StackClock) -> WSGIApplication:
        """Return the dashboard, made by the first request."""
        with self._opening:
            if self._dashboard is None:
                self._dashboard = self._make_dashboard(clock)
            return self._dashboard

    def _make_dashboard(self, clock: StackClock) -> WSGIApplication:
        from cloudsched.dashboard.application import Dashboard  # noqa: PLC0415 - see the module's docstring
        from cloudsched.dashboard.sign_in import ProcessSessions, SignIn  # noqa: PLC0415 - likewise

        def make_page(client: Client) -> Dashboard:
            place = f"local stack at {self._url.partition('://')[2]}"
            return Dashboard(client, place=place, clock=clock, has_sign_in=not self._is_open)

        if self._is_open:
            return make_page(self._parts.enter_context(_open_client(self._url)))
        sign_in = SignIn(ProcessSessions(lambda key: _open_client(self._url, key), make_page), LOCAL_HOSTS)
        self._parts.callback(sign_in.close)
        return sign_in

    def _serve_clock(self, clock: StackClock, request: Request) -> Response:
        """Show the clock, or move it as ``/clock`` of the local Cloud Tasks does. In browsers, only pages of here may.

        If the stack has keys, all who may call its API see the clock, and only an admin moves it.
        """
        refusal = find_foreign_name(request.host) or find_foreign_page(request.method, dict(request.headers))
        if refusal is None and self._is_open:
            refusal = find_detour(request.headers.keys())
        if refusal is not None:
            return Response(refusal, status=403, mimetype="text/plain")
        if request.method not in {"GET", "POST"}:
            return Response(status=405, headers={"Allow": "GET, POST"})
        try:
            if not self._is_open:
                _check_caller(self._url, request)
            status, content = clock.exchange(request.method, request.get_data(as_text=True) or None)
        except Unauthenticated as error:
            return Response(str(error), status=401, mimetype="text/plain", headers={"WWW-Authenticate": "Bearer"})
        except Forbidden as error:
            return Response(str(error), status=403, mimetype="text/plain")
        except CloudschedError as error:
            return Response(str(error), status=503, mimetype="text/plain")
        return Response(json.dumps(content), status=status, mimetype="application/json")


def _check_caller(url: str, request: Request) -> None:
    """Raise Unauthenticated if the request names nobody, and Forbidden if it moves the clock and is no admin's."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    key = request.headers.get("X-Api-Key") or (token.strip() if scheme.lower() == "bearer" else "")
    if not key or not key.isascii() or not key.isprintable():
        raise Unauthenticated("This stack has keys: send an admin's as X-Api-Key, or a token as Authorization: Bearer.")
    from cloudsched.dashboard.visit import Api  # noqa: PLC0415 - see the module's docstring

    with _open_client(url, key) as client:
        role = Api(client).get("/v1/caller")["role"]
    if request.method == "POST" and role != "admin":
        raise Forbidden("Only an admin may move the clock: it is the same for everybody here.")


def _open_client(url: str, key: str = "") -> Client:
    from cloudsched.client.client import Client  # noqa: PLC0415 - see the module's docstring

    if not key:
        return Client(url)
    return Client(url, key=key) if key.startswith("csk_") else Client(url, token=key)
