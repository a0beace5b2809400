"""What a run got and returned, as downloads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from werkzeug.wrappers import Response

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.execution_view import find_payload
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.dashboard.api import Api


def send_result(api: Api, task_id: str, execution_id: str) -> Response:
    """Return all that an execution returned. Raises NotFound if that is nothing."""
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    return _send(record.get("content"), "result", execution_id)


def send_payload(api: Api, task_id: str, execution_id: str) -> Response:
    """Return all that an execution's handler got. Raises NotFound if that is not known."""
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    task, _ = api.task(task_id)
    history = api.find(f"{task_path(task_id)}/history")
    return _send(find_payload(record, task, history)[0], "payload", execution_id)


FILES: Final[dict[str, Callable[..., Response]]] = {"result": send_result, "payload": send_payload}
"""By the names of their addresses."""


def _send(content: object, what: str, execution_id: str) -> Response:
    if content is None:
        raise NotFound(what, execution_id)
    name = f"{what}-{''.join(letter if letter.isalnum() else '-' for letter in execution_id)}.json"
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    response = Response(text, content_type="application/json; charset=utf-8")
    response.headers["Cache-Control"] = "no-store"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
