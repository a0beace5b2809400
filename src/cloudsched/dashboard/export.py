"""What a list shows as a file: the API's own JSON, or a table as CSV (RFC 4180)."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.dashboard.api import Json

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
"""With these a spreadsheet takes a text for a formula (owasp.org/www-community/attacks/CSV_Injection)."""


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
