"""Views as files: a list as the API's JSON or as CSV (RFC 4180), and the payload and the result of a run.

A list is sent page by page, each asked for when the one before it has been taken, so a long one needs no more memory
than a short one. It is whole, or its end says why it is not.
"""

from __future__ import annotations

import csv
import io
import json
import re
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from werkzeug.wrappers import Response

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.filters import write_value
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.views.execution_content import find_payload
from cloudsched.domain.own_logger import own_logger
from cloudsched.errors import CloudschedError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

log: Final = own_logger(__name__)

MAX_ROWS: Final = 100_000
"""The most rows of one file."""
PAGE_SIZE: Final = 500
"""The rows that are asked for at a time: as many as the API gives."""

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
    ),
    "sums": ("name", *_AMOUNTS),
    "usage": ("owner", "handler", *_AMOUNTS),
}
_KEYS: Final = ("taskId", "id", "utc", "number", "owner", "handler", "name")
"""The fields that tell a row of any list from the others."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins like this for a formula (owasp.org/www-community/attacks/CSV_Injection)."""
_BOUNDS: Final = ("from", "until", "dueFrom", "dueUntil")
"""The parameters that bound a list in time: beginnings and ends by turns."""
_UNNAMED: Final = frozenset({"calls", "orderBy", "troubleUntil"})
"""The parameters that a file's name leaves out."""
_MEASURED: Final = {"minLateness": "late ", "minDuration": "took "}
"""What a file's name says before the length that a filter asks for."""
_LONGEST_WORD: Final = 40
_PART: Final = 60_000
"""The letters that are sent at a time."""


def send_list(api: Api, visit: Visit, name: str, kind: str, path: str, query: Mapping[str, str | None]) -> Response:
    """Return all rows of a list of the API as a file to download. Raises CloudschedError if the API refuses it."""
    first = api.get(path, **query, pageSize=PAGE_SIZE)
    items = next(each for each in _COLUMNS if each in first)
    rows = _Rows(api, path, query, items, first)
    written = _write_json(items, rows) if kind == "json" else _write_csv(rows, _COLUMNS[items])
    content_type = "application/json" if kind == "json" else "text/csv; charset=utf-8"
    return _send(_stay_in_context(written), f"{name_list(name, query, visit)}.{kind}", content_type)


def name_list(name: str, query: Mapping[str, str | None], visit: Visit) -> str:
    """Return the name of a list's file: what was asked for, and the time that it covers.

    Without bounds it says when it was made. Times are those of the page, without their offset.
    """
    given = {each: text for each, text in query.items() if text and each not in _UNNAMED}
    filters = [_write_filter(each, text, visit) for each, text in given.items() if each not in _BOUNDS]
    start, end = (next((given[each] for each in names if each in given), "") for names in (_BOUNDS[::2], _BOUNDS[1::2]))
    window = _write_bound(end, visit) or _write_bound(visit.now.isoformat(), visit)
    if start:
        window = f"{_write_bound(start, visit)}--{window}"
    words = [name, *(re.sub(r"[^\w.=]+", "-", text).strip("-.")[:_LONGEST_WORD] for text in filters), window]
    return "-".join(filter(None, words))


def _write_filter(name: str, text: str, visit: Visit) -> str:
    """Return the value of a filter as the page writes it, those in capitals in small letters."""
    words = write_value(name, text, visit)
    return _MEASURED.get(name, "") + (words.lower() if text.isupper() else words)


def _write_bound(text: str, visit: Visit) -> str:
    try:
        return parse_instant(text).astimezone(visit.zone).strftime("%Y-%m-%dT%H-%M")
    except ValueError:  # the API takes more than instants, and names are letters
        return re.sub(r"[^\w.=]+", "-", text)[:_LONGEST_WORD]


class _Rows:
    """The rows of a list, each once. Once they have been read, `error` says why some are missing."""

    def __init__(self, api: Api, path: str, query: Mapping[str, str | None], items: str, first: Json) -> None:
        self._api = api
        self._path = path
        self._query = query
        self._items = items
        self._first = first
        self.error = ""
        self._is_cut = False

    def __iter__(self) -> Iterator[Json]:
        seen: set[tuple[object, ...]] = set()  # a row that changes meanwhile may be on two pages
        try:
            for row in self._read():
                key = tuple(row.get(name) for name in _KEYS)
                if key in seen:
                    continue
                if len(seen) == MAX_ROWS:
                    self.error = f"There are more than these {MAX_ROWS:,} rows. Choose fewer with the filters."
                    return
                seen.add(key)
                yield row
            if self._is_cut:
                self.error = "Not everything was looked at: rows are missing, or their numbers are too low. Try again."
        except CloudschedError as error:
            self.error = f"Rows are missing after these {len(seen):,}: {error}"
        except Exception:
            log.exception("a download failed", extra={"action": "view_failed"})
            self.error = f"Rows are missing after these {len(seen):,}. The log has the error."

    def _read(self) -> Iterator[Json]:
        """Yield what the pages have. One of a search may be empty, and not be the last."""
        page = self._first
        while True:
            self._is_cut |= page.get("isComplete") is False
            yield from page[self._items]
            token = page.get("nextPageToken")
            if cut := page.get("completeUntil"):
                self.error = f"Some rows after {cut} are missing: too many tasks are due before. Choose an earlier end."
            if not token:
                return
            page = self._api.get(self._path, **self._query, pageSize=PAGE_SIZE, pageToken=token)


def _write_json(items: str, rows: _Rows) -> Iterator[str]:
    separator = ""
    yield f"{{{json.dumps(items)}: ["
    for row in rows:
        yield f"{separator}\n{json.dumps(row, ensure_ascii=False)}"
        separator = ","
    yield "\n]"
    if rows.error:
        yield f', "error": {json.dumps(rows.error, ensure_ascii=False)}'
    yield "}\n"


def _write_csv(rows: _Rows, columns: tuple[str, ...]) -> Iterator[str]:
    yield _write_line(columns)
    for row in rows:
        yield _write_line(_write_cell(row, column) for column in columns)
    if rows.error:
        yield _write_line([f"ERROR: {rows.error}"])


def _write_line(cells: Iterable[str]) -> str:
    written = io.StringIO()
    csv.writer(written).writerow(cells)
    return written.getvalue()


def _stay_in_context(texts: Iterator[str]) -> Iterator[bytes]:
    """Return texts in parts of some size, each made in the present context, which ends before they are asked for."""
    return _join_parts(texts, copy_context())


def _join_parts(texts: Iterator[str], context: Context) -> Iterator[bytes]:
    part: list[str] = []
    size = 0
    while (text := context.run(next, texts, None)) is not None:
        part.append(text)
        size += len(text)
        if size > _PART:
            yield "".join(part).encode("utf-8", "replace")
            part.clear()
            size = 0
    yield "".join(part).encode("utf-8", "replace")


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


def _send(content: str | Iterator[bytes], name: str, content_type: str) -> Response:
    """Return a file. Browsers that know RFC 6266 take its whole name, others what of it is ASCII."""
    plain = re.sub(r"[^\x20-\x7e]+", "_", name)
    whole = "" if plain == name else f"; filename*=UTF-8''{quote(name, safe='')}"
    headers = {"Content-Disposition": f'attachment; filename="{plain}"{whole}', "Cache-Control": "no-store"}
    return Response(content, content_type=content_type, headers=headers)
