"""The page of an app that runs in this process: at the root of its mount, as ``/scheduler/``, beside the API.

* If the web app says who looks (`Identify`), the API is asked as that person, in the role that the web app
  names.
* If the API has credentials, people sign in with theirs, and each request to the API carries it.
* If it is open to its own machine, it is asked as if the request for the page had been sent to it.
* Otherwise the page is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from cloudsched.dashboard.sign_in import SignIn
from cloudsched.local.folder_sessions import FolderSessions
from cloudsched.local.own_pages import PageLocation, Pages, ask_through
from cloudsched.local.visitor import FRAMEWORK_REQUEST
from cloudsched.web.api.router import API_PATHS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from cloudsched.app import App
    from cloudsched.local.visitor import Identify


_CLOSED: Final = (
    "This page is closed, because nobody may use it yet. Set CLOUDSCHED_API_KEYS, CLOUDSCHED_FIREBASE_PROJECT or "
    "CLOUDSCHED_SERVICE_ACCOUNTS, and people sign in; on your own machine, CLOUDSCHED_OPEN=on lets you in without a "
    "key. A web app that runs cloudsched may say who looks: embedded(app, data, page=your_function)."
)


class EmbeddedPage:
    """Serves the page of an app that runs in this process.

    Without `identify`, people sign in with a key of the API. The folder `data` remembers who has.
    """

    def __init__(self, app: App, data: Path, identify: Identify | None, place: PageLocation = PageLocation()) -> None:  # noqa: B008 - frozen
        self._app = app
        self._identify = identify
        self._mount = place.mount
        self._pages = Pages(app, place)
        self._sign_in = SignIn(FolderSessions(data.absolute() / "sessions", self._pages), place.hosts)

    @staticmethod
    def is_for(path: str) -> bool:
        """Return whether a path below the mount is the page's, and not the API's."""
        return path.lstrip("/").partition("/")[0] not in API_PATHS

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        own = {
            **environ,
            "SCRIPT_NAME": environ.get("SCRIPT_NAME", "") + self._mount,
            "PATH_INFO": environ.get("PATH_INFO", "").removeprefix(self._mount),
        }
        with ask_through(environ):  # the API's own path does not have the mount
            return self._choose(own)(own, start_response)

    def _choose(self, environ: WSGIEnvironment) -> WSGIApplication:
        if self._identify is not None:
            visitor = self._identify(environ.get(FRAMEWORK_REQUEST, environ))
            if visitor is None:
                return Response("You may not see this page. Sign in to the app first.", 403, mimetype="text/plain")
            return self._pages.get(visitor)
        access = self._app.container.settings.access
        if access.is_configured:
            return self._sign_in
        if not access.open:
            return Response(_CLOSED, 503, mimetype="text/plain")
        return self._pages.get(None)
