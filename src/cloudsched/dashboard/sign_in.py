"""A page that asks for a key. Everybody acts with their own key.

Other users of a machine reach its local servers, too, so such a page must not act with the operator's key for every
caller. The browser keeps a random name of the session, in a cookie that no script reads and no other site sends
(``HttpOnly``, ``SameSite=Strict``), and never gets the key itself. Browsers send cookies to all ports of a host, so the
cookie is for the page's path only, is worth nothing to another server, and ends with the session.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlencode

from werkzeug.wrappers import Request, Response

from cloudsched.dashboard.guard import find_refusal, finish
from cloudsched.dashboard.rendering import TEMPLATES, find_entrance, find_root, send_page
from cloudsched.dashboard.static_files import serve_file
from cloudsched.dashboard.words import only_if
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

    from cloudsched.dashboard.application import Dashboard

SESSIONS: Final = 100
"""The number of browsers that may be signed in. One more signs out the oldest session of the caller who has the
most."""
SESSION_SECONDS: Final = 12 * 3600
SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"
_LONGEST_KEY: Final = 4096
_LONGEST_ADDRESS: Final = 2000
_NOT_KEPT: Final = (
    "Your key is right, but your browser did not send back the cookie that says so. Allow cookies for this site. If a "
    "proxy stands before it, it must pass on Set-Cookie and Cookie, and leave the cookie's path alone."
)


class Sessions(Protocol):
    """The signed-in people."""

    def start(self, key: str) -> str:
        """Sign somebody in. Return the browser's token. Raises CloudschedError if the API refuses the key."""
        ...

    def find(self, token: str) -> Dashboard | None:
        """Return the page of a session. None if there is none, or it has ended."""
        ...

    def end(self, token: str) -> None:
        """End a session, if there is one."""
        ...


class SignIn:
    """Asks for a key, and serves the pages with it."""

    def __init__(self, sessions: Sessions, hosts: frozenset[str] | None) -> None:
        self._sessions = sessions
        self._hosts = hosts

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        request = Request(environ)
        return finish(request, self._respond(request))(environ, start_response)

    def _respond(self, request: Request) -> Response:  # noqa: PLR0911 - one answer for each kind of request
        refusal = find_refusal(request, self._hosts, has_sign_in=True)
        if refusal is not None:
            return Response(refusal, status=HTTPStatus.FORBIDDEN, mimetype="text/plain")
        if entrance := find_entrance(request):
            return entrance
        if request.path == SIGN_IN and request.method == "POST":
            return self._sign_in(request)

        token = request.cookies.get(_cookie_name(request), "")
        if request.path == SIGN_OUT and request.method == "POST":
            self._sessions.end(token)
            return self._ask(request, "You are signed out.", HTTPStatus.OK)
        page = self._sessions.find(token)
        if request.path == SIGN_IN and "then" in request.args:  # it has just been answered
            if page is None:
                return self._ask(request, _NOT_KEPT)
            return Response(status=HTTPStatus.SEE_OTHER, headers={"Location": f"./{_find_way_back(request)}"})
        if request.path.startswith("/static/"):
            return serve_file(request.path.removeprefix("/static/"))
        if page is None:
            return self._ask(request, "Who are you?")
        response = page.respond(request)
        if response.status_code == HTTPStatus.UNAUTHORIZED:  # the key has been taken back since
            self._sessions.end(token)
            return self._ask(request, "The key is no longer valid.")
        return response

    def _sign_in(self, request: Request) -> Response:
        key = request.form.get("key", "").strip()
        if not key or len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable():
            return self._ask(request, "That is no key.")
        try:
            token = self._sessions.start(key)
        except CloudschedError as error:
            return self._ask(request, str(error))
        self._sessions.end(request.cookies.get(_cookie_name(request), ""))
        then = urlencode({"then": _find_way_back(request)})
        response = Response(status=HTTPStatus.SEE_OTHER, headers={"Location": f".{SIGN_IN}?{then}"})
        response.set_cookie(
            _cookie_name(request),
            token,
            max_age=SESSION_SECONDS,
            path=None,  # that of the form, as the browser knows it: a proxy may have removed a part
            secure=request.is_secure,
            httponly=True,
            samesite="Strict",
        )
        return response

    def _ask(self, request: Request, what: str, status: HTTPStatus = HTTPStatus.UNAUTHORIZED) -> Response:
        then = _find_wish(request)[:_LONGEST_ADDRESS]
        text = TEMPLATES.get_template("sign_in.html").render(root=find_root(request), what=what, then=then)
        return send_page(text, status)


def _find_wish(request: Request) -> str:
    """Return the address that somebody wants to see, below the mount."""
    if request.path == SIGN_IN:
        return request.values.get("then", "")
    if request.path == SIGN_OUT:
        return ""
    query = request.query_string.decode("latin-1")
    return request.path.lstrip("/") + only_if(query, f"?{query}")


def _cookie_name(request: Request) -> str:
    """Return the cookie's name. It has the port, since the pages of all ports of a host share their cookies."""
    _, colon, port = request.host.rpartition(":")
    return f"cloudsched-session-{port if colon else 'page'}"


def _find_way_back(request: Request) -> str:
    """Return the address of the first request, relative to the mount, and never one elsewhere."""
    then = _find_wish(request)
    path = then.partition("?")[0]
    is_below = len(then) <= _LONGEST_ADDRESS and then.isascii() and then.isprintable() and "\\" not in then
    if not is_below or then.startswith("/") or ":" in path or ".." in path.split("/"):
        return ""
    return then
