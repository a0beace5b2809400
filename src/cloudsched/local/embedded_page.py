"""The page of an embedded app: at the root of the mount, as ``/scheduler/``, beside the API at ``/scheduler/v1``.

It asks the API of this process, without a socket, and nobody reaches more through it than the API would allow them:

* If the web app says who looks (`Identify`), the API is asked as that person, in the role that the web app names.
* If the API has credentials, people sign in with theirs, and each request to the API carries it.
* If it has none, each request to the API has the peer, the name and the forwarding headers of the request for the page.
  So the API decides: an open one admits its own machine, and any other refuses.

The processes of a web server share those who are signed in, in the folder of the store. A session's file is named by
the hash of what the browser keeps, and the key in it is sealed with that: neither alone is worth anything.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote_to_bytes, urlencode
from wsgiref.types import StartResponse, WSGIEnvironment

from werkzeug.wrappers import Request, Response

from cloudsched.client.flow import ApiRequest, ApiResponse, Flow, HttpResponse, parse_response
from cloudsched.dashboard.application import Dashboard
from cloudsched.dashboard.guard import LOCAL_HOSTS
from cloudsched.dashboard.sign_in import SESSION_SECONDS, SESSIONS, SignIn, identify_caller, list_superfluous
from cloudsched.dashboard.visit import Api
from cloudsched.domain.documents.authority import is_subject
from cloudsched.domain.local_requests import find_forwarding_header
from cloudsched.errors import Misconfigured
from cloudsched.web.api.router import API_PATHS
from cloudsched.web.auth.authentication import KEY_PREFIX
from cloudsched.web.auth.roles import Caller, Role, describe_subject
from cloudsched.web.functions import serve_api

if TYPE_CHECKING:
    from cloudsched.app import App

T = TypeVar("T")
FRAMEWORK_REQUEST: Final = "cloudsched.request"
"""The key in the environ for a framework's own request, for `Identify`."""
_OWN: Final = "The API of this process"
_KEPT_PAGES: Final = 200
_ROLES: Final = (Role.USER, Role.READER, Role.VIEWER, Role.ADMIN)
_asked_through: ContextVar[WSGIEnvironment] = ContextVar("asked_through")
"""The request for the page, while it is answered."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody whom the web app has authenticated, and what they may do on the page.

    Attributes:
        name: The person: the owner of tasks as whom a user or a reader acts, and the name in the log.
        role: ``user`` sees and changes their own tasks, ``reader`` sees them, ``viewer`` sees all, ``admin`` changes
            all.

    Raises:
        Misconfigured: There is no such role, or nobody can have that name.
    """

    name: str
    role: str

    def __post_init__(self) -> None:
        """Check both."""
        if self.role not in _ROLES:
            raise Misconfigured(f"A visitor's role is one of {', '.join(_ROLES)}, and not {self.role!r}.")
        if not is_subject(self.name):
            raise Misconfigured(describe_subject(self.name))


if TYPE_CHECKING:
    Identify = Callable[[Any], Visitor | None]
    """Says who looks, given the web app's request, or a WSGI environ. None for somebody who may not."""


class EmbeddedPage:
    """Serves the page of an app that is embedded in this process.

    Without `identify`, people sign in with a key of the API.
    """

    def __init__(self, app: App, data: Path, identify: Identify | None) -> None:
        self._app = app
        self._identify = identify
        self._pages = Pages(app)
        self._sign_in = SignIn(FolderSessions(data.absolute() / "sessions", self._pages), hosts=None)

    @staticmethod
    def is_for(path: str) -> bool:
        """Return whether a path below the mount is the page's, and not the API's."""
        return path.lstrip("/").partition("/")[0] not in API_PATHS

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        token = _asked_through.set(environ)
        try:
            return self._choose(environ)(environ, start_response)
        finally:
            _asked_through.reset(token)

    def _choose(self, environ: WSGIEnvironment) -> SignIn | Dashboard | Response:
        if self._identify is not None:
            visitor = self._identify(environ.get(FRAMEWORK_REQUEST, environ))
            if visitor is None:
                return Response("You may not see this page. Sign in to the app first.", 403, mimetype="text/plain")
            return self._pages.get(visitor)
        if self._app.container.settings.access.is_configured:
            return self._sign_in
        return self._pages.get(None)


class Pages:
    """The pages of one app, one for each who looks: each remembers what the API has told it of schedules."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._kept: OrderedDict[object, Dashboard] = OrderedDict()
        self._lock = threading.Lock()

    def identify(self, key: str) -> tuple[str, str]:
        """Return whom the API knows by a key or a token. Raises CloudschedError if it knows nobody."""
        return identify_caller(Api(_OwnApi(self._app, _write_credential(key), None)))

    def get(self, who: Visitor | str | None) -> Dashboard:
        """Return the page of a visitor, of whoever has a key or a token, or of whoever asks without either."""
        with self._lock:
            page = self._kept.pop(who, None) or self._make(who)
            self._kept[who] = page
            if len(self._kept) > _KEPT_PAGES:
                self._kept.popitem(last=False)
            return page

    def _make(self, who: Visitor | str | None) -> Dashboard:
        place = "inside this process"
        if isinstance(who, str):
            return Dashboard(
                _OwnApi(self._app, _write_credential(who), None), place=place, hosts=None, has_sign_in=True
            )
        if who is not None:
            caller = Caller(f"user:{who.name}", Role(who.role), who.name)
            return Dashboard(_OwnApi(self._app, {}, caller), place=place, hosts=None)
        return Dashboard(_OwnApi(self._app, {}, None), place=place, hosts=LOCAL_HOSTS)


class _OwnApi:
    """Asks the API of this process, for the request for the page that is being answered."""

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

    def _send(self, wanted: ApiRequest) -> ApiResponse:
        request = Request(_write_environ(wanted, _asked_through.get(), self._credential))
        answer = serve_api(self._app, request, is_mounted=True, caller=self._caller)
        reason = answer.status.partition(" ")[2]
        return parse_response(HttpResponse(answer.status_code, reason, dict(answer.headers), answer.get_data()), _OWN)


def _write_credential(key: str) -> dict[str, str]:
    return {"HTTP_X_API_KEY": key} if key.startswith(KEY_PREFIX) else {"HTTP_AUTHORIZATION": f"Bearer {key}"}


def _write_environ(wanted: ApiRequest, outer: WSGIEnvironment, credential: Mapping[str, str]) -> WSGIEnvironment:
    """Return a request to the API as a server would hand it over, from where the request for the page came."""
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


class FolderSessions:
    """The people who are signed in, in files of a folder that the processes of a server share."""

    def __init__(self, folder: Path, pages: Pages) -> None:
        self._folder = folder
        self._pages = pages

    def start(self, key: str) -> str:
        """Sign somebody in, and return what the browser keeps. Raises CloudschedError if the API refuses the key."""
        caller = hashlib.sha256(json.dumps(self._pages.identify(key)).encode()).hexdigest()[:16]
        token = f"{secrets.token_urlsafe(32)}.{caller}"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._forget_the_oldest()
        file = self._find_file(token)
        new = file.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_bytes(_seal(key.encode("ascii"), token))
        now = time.time()
        os.utime(new, (now, now))  # our clock's: that of a file system in the network may be another
        new.replace(file)  # whole, or not there
        return token

    def find(self, token: str) -> Dashboard | None:
        """Return the page of a session, None if there is none, or it has ended."""
        file = self._find_file(token)
        try:
            if time.time() - file.stat().st_mtime > SESSION_SECONDS:
                file.unlink(missing_ok=True)
                return None
            key = _seal(file.read_bytes(), token).decode("ascii")
        except (OSError, UnicodeError):
            return None
        return self._pages.get(key)

    def end(self, token: str) -> None:
        """End a session, in all processes."""
        with suppress(OSError):
            self._find_file(token).unlink()

    def close(self) -> None:
        """Do nothing: whoever is signed in stays so when a process ends."""

    def _find_file(self, token: str) -> Path:
        """Return the file of a session. Those of one caller begin alike."""
        name, caller = (hashlib.sha256(each.encode("utf-8", "surrogatepass")) for each in (token, token[-16:]))
        return self._folder / f"{caller.hexdigest()[:16]}{name.hexdigest()}"

    def _forget_the_oldest(self) -> None:
        """Delete the sessions that have ended, and those that leave no room for one more."""
        found = []
        for file in self._folder.iterdir():
            with suppress(OSError):  # another process has deleted it
                found.append((file.stat().st_mtime, file))
        found.sort()
        ended = [file for begun, file in found if time.time() - begun > SESSION_SECONDS]
        left = [(file.name[:16], file) for _, file in found[len(ended) :]]
        for file in (*ended, *list_superfluous(left, SESSIONS - 1)):
            file.unlink(missing_ok=True)


def _seal(text: bytes, token: str) -> bytes:
    """Seal a key with what the browser keeps, or open it: each token seals one key, with as many random bits."""
    pad = hashlib.shake_256(b"cloudsched page\0" + token.encode("utf-8", "surrogatepass")).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, pad, strict=True))
