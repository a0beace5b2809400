"""What the dashboard answers besides pages: what a run got and returned, as a download; and charts as pictures."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from werkzeug.wrappers import Response

from cloudsched.dashboard import pictures
from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.execution_view import find_payload
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.dashboard.api import Api
    from cloudsched.dashboard.visit import Visit


@dataclass(frozen=True, slots=True)
class File:
    """A file."""

    text: str
    mimetype: str
    name: str
    """Under which a browser stores it; nothing if it shows it."""


def fetch_result(api: Api, _visit: Visit, task_id: str, execution_id: str) -> File:
    """Return all that an execution returned. Raises NotFound if that is nothing."""
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    return _make_json(record.get("content"), "result", execution_id)


def fetch_payload(api: Api, _visit: Visit, task_id: str, execution_id: str) -> File:
    """Return all that an execution's handler got. Raises NotFound if that is not known."""
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    task, _ = api.task(task_id)
    history = api.find(f"{task_path(task_id)}/history")
    return _make_json(find_payload(record, task, history)[0], "payload", execution_id)


def _make_json(content: object, what: str, execution_id: str) -> File:
    if content is None:
        raise NotFound(what, execution_id)
    name = f"{what}-{''.join(letter if letter.isalnum() else '-' for letter in execution_id)}.json"
    return File(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "application/json", name)


_SVG: Final = "image/svg+xml"
FILES: Final[dict[str, Callable[..., File]]] = {
    "result": fetch_result,
    "payload": fetch_payload,
    "life": lambda api, visit, **names: File(pictures.draw_task(api, visit, **names), _SVG, ""),
    "waterfall": lambda api, visit, **names: File(pictures.draw_execution(api, visit, **names), _SVG, ""),
    "days": lambda api, visit: File(pictures.draw_calendar(api, visit), _SVG, ""),
}
"""By the names of their addresses."""


def respond(file: File) -> Response:
    """Return a file as an answer that nothing keeps."""
    response = Response(file.text, content_type=f"{file.mimetype}; charset=utf-8")
    response.headers["Cache-Control"] = "no-store"
    if file.name:
        response.headers["Content-Disposition"] = f'attachment; filename="{file.name}"'
    return response


def find_picture_policy() -> str:
    """Return the policy of a picture that is opened by itself: nothing but its own style."""
    digest = base64.b64encode(hashlib.sha256(pictures.find_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; frame-ancestors 'none'"
