"""Views as files: a list as CSV, and the payload and the result of a run."""

from __future__ import annotations

import json
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Final

from werkzeug.wrappers import Response

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.views.execution import find_payload
from cloudsched.domain.responses.csv_pages import write_csv
from cloudsched.errors import CloudschedError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

PAGE_SIZE: Final = 500
"""The rows that are asked for at a time: as many as the API gives."""


def send_list(api: Api, visit: Visit, name: str, path: str, query: Mapping[str, str | None]) -> Response:
    """Return all rows of a list of the API as CSV to download, page by page. Raises CloudschedError if it refuses."""
    pages = _write_pages(api, path, query, api.get(path, **query, pageSize=PAGE_SIZE))
    # Each is made in the present context, which ends before it is asked for.
    written = iter(partial(copy_context().run, next, pages, None), None)
    return _send(written, f"{name}-{visit.now:%Y-%m-%dT%H-%M}.csv", "text/csv; charset=utf-8")


def _write_pages(api: Api, path: str, query: Mapping[str, str | None], page: Json) -> Iterator[bytes]:
    yield (write_csv(page, has_header=True) or "").encode("utf-8", "replace")
    while token := page.get("nextPageToken"):
        try:
            page = api.get(path, **query, pageSize=PAGE_SIZE, pageToken=token)
        except CloudschedError as error:
            said = str(error).replace('"', "'")
            yield f'"ERROR: Rows are missing from here on: {said}"\r\n'.encode()
            return
        yield (write_csv(page, has_header=False) or "").encode("utf-8", "replace")


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
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content, content_type=content_type, headers=headers)
