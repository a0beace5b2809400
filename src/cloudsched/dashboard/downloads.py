"""Downloads: a list as the API's own JSON or as CSV (RFC 4180), and the payload and the result of a run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import quote

from werkzeug.wrappers import Response

from cloudsched.dashboard.execution_view import find_payload
from cloudsched.dashboard.visit import Api, Json, task_path
from cloudsched.errors import NotFound

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "tasks": (
        *("id", "title", "owner", "handler", "status", "labels", "nextExecutionTime", "runCount"),
        *("consecutiveFailures", "failingSince", "lastExecutionId"),
    ),
    "executions": (
        *("taskId", "id", "title", "owner", "handler", "status", "scheduledFor", "startedAt", "finishedAt"),
        *("trigger", "message", "covers.until", "covers.count", "error.type", "error.message", "calledBy.taskId"),
    ),
}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins like this for a formula (owasp.org/www-community/attacks/CSV_Injection)."""


def write_file(answer: Json, name: str, kind: str) -> Response:
    """Return the tasks or executions of an answer of the API as a file to download."""
    items = "tasks" if "tasks" in answer else "executions"
    if kind == "json":
        text, mimetype = json.dumps({items: answer[items]}, ensure_ascii=False, indent=1), "application/json"
    else:
        text, mimetype = _write_table(answer[items], _COLUMNS[items]), "text/csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}.{kind}"', "Cache-Control": "no-store"}
    return Response(text, mimetype=mimetype, headers=headers)


def _write_table(rows: Iterable[Json], columns: tuple[str, ...]) -> str:
    written = io.StringIO()
    table = csv.writer(written)
    table.writerow(columns)
    table.writerows([_write_cell(row, column) for column in columns] for row in rows)
    return written.getvalue()


def _write_cell(row: Json, column: str) -> str:
    found: object = row
    for name in column.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    text = "" if found is None else " ".join(map(str, found)) if isinstance(found, list) else str(found)
    return f"'{text}" if text.startswith(_FORMULA) else text


def send_result(api: Api, task_id: str, execution_id: str) -> Response:
    """Return the complete result of an execution. Raises NotFound if there is none."""
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    return _send(record.get("content"), "result", execution_id)


def send_payload(api: Api, task_id: str, execution_id: str) -> Response:
    """Return the complete payload of an execution. Raises NotFound if it is not known."""
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    task, _ = api.task(task_id)
    history = api.find(f"{task_path(task_id)}/history")
    return _send(find_payload(record, task, history)[0], "payload", execution_id)


FILES: Final[dict[str, Callable[..., Response]]] = {"result": send_result, "payload": send_payload}
"""The files by the names of their addresses."""


def _send(content: object, what: str, execution_id: str) -> Response:
    if content is None:
        raise NotFound(what, execution_id)
    name = f"{what}-{''.join(letter if letter.isalnum() else '-' for letter in execution_id)}.json"
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    response = Response(text, content_type="application/json; charset=utf-8")
    response.headers["Cache-Control"] = "no-store"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
