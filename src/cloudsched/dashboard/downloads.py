"""Views as files: a list as the API's JSON or as CSV (RFC 4180), and the payload and the result of a run."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.views.execution_content import find_payload
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cloudsched.dashboard.api import Api, Json

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "tasks": (
        "id",
        "title",
        "owner",
        "handler",
        "status",
        "labels",
        "nextExecutionTime",
        "runCount",
        "consecutiveFailures",
        "failingSince",
        "lastExecutionId",
    ),
    "executions": (
        "taskId",
        "id",
        "title",
        "owner",
        "handler",
        "status",
        "scheduledFor",
        "startedAt",
        "finishedAt",
        "trigger",
        "message",
        "covers.until",
        "covers.count",
        "error.type",
        "error.message",
        "calledBy.taskId",
    ),
}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins like this for a formula (owasp.org/www-community/attacks/CSV_Injection)."""


def write_file(answer: Json, name: str, kind: str) -> Response:
    """Return the tasks or executions of an answer of the API as a file to download."""
    items = "tasks" if "tasks" in answer else "executions"
    rows = answer[items]
    if kind == "json":
        return _send(json.dumps({items: rows}, ensure_ascii=False, indent=1), f"{name}.json", "application/json")
    return _send(_write_table(rows, _COLUMNS[items]), f"{name}.csv", "text/csv; charset=utf-8")


def _write_table(rows: Iterable[Json], columns: tuple[str, ...]) -> str:
    written = io.StringIO()
    table = csv.writer(written)
    table.writerow(columns)
    table.writerows([_write_cell(row, column) for column in columns] for row in rows)
    return written.getvalue()


def _write_cell(row: Json, column: str) -> str:
    found: object = row
    for name in column.split("."):
        if not isinstance(found, dict) or found.get(name) is None:
            return ""
        found = found[name]
    text = str(found)
    if isinstance(found, list):
        text = " ".join(map(str, found))
    if text.startswith(_FORMULA):
        return f"'{text}"
    return text


def send_result(api: Api, task_id: str, execution_id: str) -> Response:
    """Return the complete result of an execution. Raises NotFound if there is none."""
    record = api.get(execution_path(task_id, execution_id))
    return _send_content(record.get("content"), "result", execution_id)


def send_payload(api: Api, task_id: str, execution_id: str) -> Response:
    """Return the complete payload of an execution. Raises NotFound if it is not known."""
    record = api.get(execution_path(task_id, execution_id))
    task, _ = api.task(task_id)
    payload, _ = find_payload(record, task, api.find(f"{task_path(task_id)}/history"))
    return _send_content(payload, "payload", execution_id)


FILES: Final[dict[str, Callable[..., Response]]] = {"result": send_result, "payload": send_payload}
"""The files by the names of their addresses."""


def _send_content(content: object, what: str, execution_id: str) -> Response:
    if content is None:
        raise NotFound(what, execution_id)
    name = "".join(letter if letter.isalnum() else "-" for letter in execution_id)
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    return _send(text, f"{what}-{name}.json", "application/json; charset=utf-8")


def _send(text: str, name: str, content_type: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(text, content_type=content_type, headers=headers)
