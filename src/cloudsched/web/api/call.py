"""One call of the HTTP API, as the functions that implement its operations see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloudsched.web.api.parse import read_json_object
from cloudsched.web.auth.authentication import is_open_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from werkzeug.wrappers import Request

    from cloudsched.app import App
    from cloudsched.engine.ports.authority import Authority
    from cloudsched.web.api.visibility import Visibility
    from cloudsched.web.auth.roles import Caller


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request, authenticated, with its path parsed."""

    app: App
    """The app, with tasks that the caller may not use hidden."""
    caller: Caller
    authority: Authority
    """What the caller may do below; the app has it as well."""
    visibility: Visibility
    """Checks which tasks the request may use."""
    request: Request
    path: dict[str, str]
    build_document: Callable[[tuple[str, ...] | None, str], dict[str, Any]]
    """Builds the OpenAPI document; it needs all operations, so none of them can import it."""

    @property
    def task_id(self) -> str:
        """The task that the path names."""
        return self.path["taskId"]

    @property
    def public_root(self) -> str | None:
        """The beginning of links to the API; None if nobody has said under which address people reach it.

        What a request says about that (``Host``) is its sender's claim: a link made of it could lead anywhere, with the
        secret that is in it. It counts only where the API is open, and then names this machine.
        """
        settings = self.app.container.settings
        if settings.public_url:
            return settings.public_url
        return self.request.url_root.rstrip("/") if is_open_to(settings, self.request) else None

    def read_content(self) -> dict[str, Any]:
        """Return the body, which is one JSON object."""
        return read_json_object(self.request)
