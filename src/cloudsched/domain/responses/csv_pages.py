"""A page of a list as CSV (RFC 4180), with the columns that people read. JSON has all fields."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_AMOUNTS: Final = (
    "executions",
    "queries",
    "estimatedQueries",
    "tokens",
    "estimatedTokens",
    "reads",
    "writes",
    "deletes",
    "queueOperations",
    "requests",
    "dollars",
)
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
        "needs",
        "parent.taskId",
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
    "occurrences": ("taskId", "title", "owner", "handler", "utc", "local", "timezone"),
    "entries": (
        "at",
        "action",
        "by.role",
        "by.subject",
        "taskId",
        "title",
        "owner",
        "executionId",
        "reason",
        "number",
        "fields",
    ),
    "deliveries": ("id", "title", "owner", "channel", "status", "reason", "attempts", "createdAt", "sentAt", "taskId"),
    "sums": ("name", *_AMOUNTS),
    "usage": ("owner", "handler", *_AMOUNTS),
}
"""The columns of each list, by the field of a page that has its items."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins like this for a formula (owasp.org/www-community/attacks/CSV_Injection)."""


def write_csv(page: Mapping[str, Any], *, has_header: bool) -> str | None:
    """Return a page, with the columns' names if it is the first. None if it is no list with columns.

    If rows may be missing, the last line says why.
    """
    items = next((each for each in _COLUMNS if each in page), None)
    if items is None:
        return None
    lines = [[*_COLUMNS[items]]] if has_header else []
    lines += [[_write_cell(row, column) for column in _COLUMNS[items]] for row in page[items]]
    if cut := page.get("completeUntil"):
        lines.append([f"ERROR: Some rows after {cut} are missing. Choose an earlier end."])
    if page.get("isComplete") is False:
        lines.append(["ERROR: Not everything was looked at. Rows are missing, or their numbers are too low."])
    written = io.StringIO()
    csv.writer(written).writerows(lines)
    return written.getvalue()


def _write_cell(row: Mapping[str, Any], column: str) -> str:
    found: Any = row
    for name in column.split("."):
        found = (found or {}).get(name)
    if column == "fields":  # that were changed
        found = [f"{each['field']}: {each.get('before', '-')} → {each.get('after', '-')};" for each in found]
    text = " ".join(map(str, found)) if isinstance(found, list) else str("" if found is None else found)
    return f"'{text}" if text.startswith(_FORMULA) else text
