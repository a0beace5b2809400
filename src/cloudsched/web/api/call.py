"""One call of the HTTP API, as the functions that implement its operations see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloudsched.web.api.parse import read_json_object, validate

if TYPE_CHECKING:
    from werkzeug.wrappers import Request

    from cloudsched.app import App
    from cloudsched.domain.documents.document import WireModel
    from cloudsched.web.api.operation import Operation
    from cloudsched.web.api.visibility import Visibility
    from cloudsched.web.auth.roles import Caller


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request, authenticated, with its path and query parsed; the body is parsed on demand."""

    app: App
    """The app, with tasks that the caller may not use hidden."""
    caller: Caller
    visibility: Visibility
    """Checks which tasks the request may use."""
    operation: Operation
    request: Request
    path: dict[str, str]
    query: WireModel

    @property
    def task_id(self) -> str:
        """The task that the path names."""
        return self.path["taskId"]

    def read_content(self) -> dict[str, Any]:
        """Return the body, which is one JSON object."""
        return read_json_object(self.request)

    def read_body(self) -> WireModel:
        """Return the body as an instance of the operation's model."""
        model = self.operation.body
        assert model is not None  # noqa: S101 - only operations with a body call this
        return validate(model, read_json_object(self.request, is_optional=self.operation.body_is_optional))
