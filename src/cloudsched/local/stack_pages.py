"""The pages of the local stack: the dashboard at ``/ui``, and its clock and its mailbox below ``/dev``."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from werkzeug.utils import redirect
from werkzeug.wrappers import Request, Response

from cloudsched.dashboard.guard import LOCAL_HOSTS
from cloudsched.errors import CloudschedError, Forbidden, Unauthenticated
from cloudsched.local.mailbox_page import is_mailbox_path, show_mailbox
from cloudsched.local.stack_guard import require_caller
from cloudsched.local.ui_page import MOUNT, UiPage
from cloudsched.web.functions import wsgi

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from cloudsched.app import App
    from cloudsched.local.embedded_page import EmbeddedPage
    from cloudsched.local.mailbox import Mailbox
    from cloudsched.local.stack_clock import StackClock

CLOCK_PATH: Final = "/dev/clock"
_ONLY_ADMINS: Final = "Only an admin may move the clock: it is the same for everybody here."


class StackPages:
    """Serves the pages, and leaves everything else to the app's API. Set `clock` before it serves.

    `folder` is for those who are signed in to the dashboard.
    """

    clock: StackClock

    def __init__(self, app: App, mailbox: Mailbox, folder: Path) -> None:
        self._app = app
        self._mailbox = mailbox
        self._folder = folder
        self._api = wsgi(app)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        return self._choose(Request(environ))(environ, start_response)

    def _choose(self, request: Request) -> WSGIApplication:
        path = request.path
        if path == "/":
            return redirect(f"{MOUNT}/")
        if UiPage.is_for(path):
            return self._dashboard
        if path == CLOCK_PATH:
            return self._serve_clock(request)
        if is_mailbox_path(path):
            return show_mailbox(request, self._mailbox, self._app.container.settings)
        return self._api

    @cached_property
    def _dashboard(self) -> EmbeddedPage:
        """The dashboard. It is a third of the stack's imports, so it is imported when it is first opened."""
        from cloudsched.local.embedded_page import EmbeddedPage  # noqa: PLC0415 - see above
        from cloudsched.local.own_pages import PageLocation  # noqa: PLC0415 - likewise

        address = urlsplit(self._app.container.settings.executor_url).netloc
        place = PageLocation(f"local stack at {address}", MOUNT, LOCAL_HOSTS, self.clock)
        return EmbeddedPage(self._app, self._folder, None, place)

    def _serve_clock(self, request: Request) -> Response:
        """Show the clock, or move it as ``/clock`` of the local Cloud Tasks does.

        In browsers, only pages of here may. If the stack has keys, all who may call its API see the clock,
        and only an admin moves it.
        """
        only_admins = None if request.method == "GET" else _ONLY_ADMINS
        try:
            require_caller(request, self._app.container.settings, only_admins=only_admins)
            if request.method not in {"GET", "POST"}:
                return Response(status=405, headers={"Allow": "GET, POST"})
            status, content = self.clock.exchange(request.method, request.get_data(as_text=True) or None)
        except Unauthenticated as error:
            return Response(str(error), status=401, mimetype="text/plain", headers={"WWW-Authenticate": "Bearer"})
        except Forbidden as error:
            return Response(str(error), status=403, mimetype="text/plain")
        except CloudschedError as error:
            return Response(str(error), status=503, mimetype="text/plain")
        return Response(json.dumps(content), status=status, mimetype="application/json")
