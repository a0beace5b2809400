"""The page at ``/ui/`` beside an API, imported when it is first opened: it takes as long as all the rest."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from cloudsched.config.imports import require_extra
from cloudsched.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from wsgiref.types import StartResponse, WSGIEnvironment

    from cloudsched.app import App
    from cloudsched.local.embedded_page import EmbeddedPage

MOUNT: Final = "/ui"


class UiPage:
    """Serves the page of an app that runs in this process. The folder `data` remembers who has signed in."""

    def __init__(self, app: App, data: Path) -> None:
        self._app = app
        self._data = data

    @staticmethod
    def is_for(path: str) -> bool:
        """Return whether a path below the API's mount is the page's."""
        return path == MOUNT or path.startswith(f"{MOUNT}/")

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        try:
            page = self._page
        except MissingExtra as error:
            return Response(str(error), status=503, mimetype="text/plain")(environ, start_response)
        return page(environ, start_response)

    @cached_property
    def _page(self) -> EmbeddedPage:
        with require_extra("The page", "server"):
            from cloudsched.local.embedded_page import EmbeddedPage  # noqa: PLC0415 - see the module
            from cloudsched.local.own_pages import PageLocation  # noqa: PLC0415 - likewise

        return EmbeddedPage(self._app, self._data, None, PageLocation(mount=MOUNT))
