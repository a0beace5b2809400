"""The pages of the app that runs in this process. They ask its API without a socket.

Nobody reaches more through them than the API would allow. Each request to the API carries the credential of
whoever looks, or it is made for somebody whom the web app has authenticated. Without either, it has the peer,
the name and the forwarding headers of the request for the page. So the API decides: an open one admits its
own machine, and any other refuses.
"""

from __future__ import annotations

import io
import json
import threading
from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote_to_bytes, urlencode

from werkzeug.wrappers import Request

from cloudsched.client.flow import ApiRequest, Flow, HttpResponse, JsonResponse, parse_response
from cloudsched.dashboard.api import Api
from cloudsched.dashboard.application import Dashboard
from cloudsched.dashboard.guard import LOCAL_HOSTS
from cloudsched.dashboard.sign_in import identify_caller
from cloudsched.domain.local_requests import find_forwarding_header
from cloudsched.web.auth.authentication import KEY_PREFIX
from cloudsched.web.auth.roles import Caller, Role
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from wsgiref.types import WSGIEnvironment

    from cloudsched.app import App
    from cloudsched.dashboard.local_clock import LocalClock
    from cloudsched.local.visitor import Visitor

T = TypeVar("T")
_OWN: Final = "The API of this process"
_KEPT_PAGES: Final = 200
_asked_through: ContextVar[WSGIEnvironment] = ContextVar("asked_through")


@dataclass(frozen=True, slots=True)
class PageLocation:
    """Where an app serves its pages."""

    name: str = "inside this process"
    """The place, for people."""
    mount: str = ""
    """The path of the pages below the API's own."""
    hosts: frozenset[str] | None = None
    """The host names that requests may use. None if a proxy checks them."""
    clock: LocalClock | None = None
    """A clock that they show and move."""


class Pages:
    """The pages of one app, one for each caller. Each caches the API's answers about schedules."""

    def __init__(self, app: App, place: PageLocation) -> None:
        self._app = app
        self._place = place
        self._kept: OrderedDict[object, Dashboard] = OrderedDict()
        self._lock = threading.Lock()

    def identify(self, key: str) -> tuple[str, str]:
        """Return the caller that a key or a token identifies. Raises CloudschedError if it identifies none."""
        return identify_caller(Api(_OwnApi(self._app, _write_credential(key), None)))

    def get(self, who: Visitor | str | None) -> Dashboard:
        """Return the page for a visitor, for the holder of a key or a token, or for an anonymous caller."""
        with self._lock:
            page = self._kept.pop(who, None) or self._make(who)
            self._kept[who] = page
            if len(self._kept) > _KEPT_PAGES:
                self._kept.popitem(last=False)
            return page

    def _make(self, who: Visitor | str | None) -> Dashboard:
        hosts = self._place.hosts
        credential = dict[str, str]()
        caller = None
        if isinstance(who, str):
            credential = _write_credential(who)
        elif who is not None:
            caller = Caller(f"user:{who.name}", Role(who.role), who.name)
        else:
            hosts = LOCAL_HOSTS
        return Dashboard(
            _OwnApi(self._app, credential, caller),
            place=self._place.name,
            clock=self._place.clock,
            hosts=hosts,
            has_sign_in=isinstance(who, str),
        )


@contextmanager
def ask_through(environ: WSGIEnvironment) -> Iterator[None]:
    """Answer a page request within this context. The page's requests to the API have the same origin."""
    token = _asked_through.set(environ)
    try:
        yield
    finally:
        _asked_through.reset(token)


class _OwnApi:
    """Sends requests to this process's API, on behalf of the page request that is being answered."""

    def __init__(self, app: App, credential: Mapping[str, str], caller: Caller | None) -> None:
        self._app = app
        self._credential = credential
        self._caller = caller

    def run_flow(self, flow: Flow[T]) -> T:
        """Return what a flow of the dashboard returns. It has one request, and never waits."""
        wanted = next(flow)
        assert isinstance(wanted, ApiRequest)  # noqa: S101 - see above
        try:
            flow.send(self._send(wanted))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # the flow's own
        raise AssertionError("The flow has asked twice.")

    def _send(self, wanted: ApiRequest) -> JsonResponse:
        request = Request(_write_environ(wanted, _asked_through.get(), self._credential))
        answer = serve_api(self._app, request, is_mounted=True, caller=self._caller)
        reason = answer.status.partition(" ")[2]
        return parse_response(HttpResponse(answer.status_code, reason, dict(answer.headers), answer.get_data()), _OWN)


def _write_credential(key: str) -> dict[str, str]:
    return {"HTTP_X_API_KEY": key} if key.startswith(KEY_PREFIX) else {"HTTP_AUTHORIZATION": f"Bearer {key}"}


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
