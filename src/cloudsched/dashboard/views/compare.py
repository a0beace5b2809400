"""Two executions of a task side by side: their input, result, error, steps and log, with what differs marked."""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.times import find_instant, parse_instant, write_duration
from cloudsched.dashboard.views.execution_content import find_payload, may_have_changed
from cloudsched.dashboard.views.execution_row import find_lateness
from cloudsched.dashboard.words import only_if, shorten, write_count
from cloudsched.domain.documents.execution import ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LINES: Final = 200
"""The number of lines of each text that are compared."""
_WIDTH: Final = 300
"""The number of characters of each line that are shown."""


def fetch(api: Api, visit: Visit, task_id: str, execution_id: str) -> Json:
    """Ask the API for an execution, and for the one beside it: the latest before it that succeeded."""
    path = task_path(task_id)
    task, _ = api.task(task_id)
    record = api.get(execution_path(task_id, execution_id))
    other_id = visit.query.get("with") or find_good(api, path, record)
    found: Json = {"task": task, "execution": record, "other": None, "logs": [[], []], "history": None}
    if not other_id:
        return found
    other = api.get(execution_path(task_id, other_id))
    found["other"] = other
    found["logs"] = [api.list_items(f"{execution_path(task_id, each['id'])}/logs", "lines") for each in (record, other)]
    if may_have_changed(record, task) or may_have_changed(other, task):
        found["history"] = api.find(f"{path}/history")
    return found


def find_good(api: Api, path: str, record: Json) -> str | None:
    """Return the latest execution before this one that succeeded, or else the first one after it."""
    status = ExecutionStatus.SUCCEEDED
    before = api.get(f"{path}/executions", status=status, pageSize=1, until=record["scheduledFor"])["executions"]
    found = before or api.get(f"{path}/executions", status=status, pageSize=2)["executions"]
    return next((str(each["id"]) for each in found if each["id"] != record["id"]), None)


def build(answer: Json, visit: Visit) -> Json:
    """Return the parts of both, each as rows of two lines."""
    record = answer["execution"]
    other = answer["other"]
    page: Json = {**answer, "title": f"Compare {answer['task']['title']}", "parts": [], "sentence": ""}
    if other is None:
        page["sentence"] = "No run of this task that succeeded was found, so there is nothing to compare with."
        return page
    both = (record, other)
    parts = {
        "Facts": [[*_list_facts(each, visit)] for each in both],
        "Input": [_write_input(each, answer) for each in both],
        "Result": [_write_json(each.get("content")) for each in both],
        "Error": [_write_error(each) for each in both],
        "Steps": [[*_list_steps(each)] for each in both],
        "Log": [[f"{line.get('level', '')} {line.get('text', '')}".strip() for line in log] for log in answer["logs"]],
    }
    page["parts"] = [_build_part(name, *lines) for name, lines in parts.items() if any(lines)]
    differing = [part["name"].lower() for part in page["parts"] if part["count"]]
    page["sentence"] = "The two are the same in everything that is kept."
    if differing:
        page["sentence"] = (
            f"The two differ in {' and '.join(filter(None, (', '.join(differing[:-1]), differing[-1])))}."
        )
    return page


def _list_facts(record: Json, visit: Visit) -> Iterator[str]:
    yield f"status: {show_status(record['status']).word.lower()}"
    late = find_lateness(record)
    if late is not None:
        ended = find_instant(record, "finishedAt") or visit.now
        yield f"started: {visit.moment(record['startedAt']).text}"
        yield f"late by: {write_duration(late)}"
        yield f"took: {write_duration(ended - parse_instant(record['startedAt']))}"
    yield f"attempts: {len(record['attempts']) + record.get('omittedAttempts', 0)}"
    if record.get("handler"):
        yield f"handler: {record['handler']}"


def _write_input(record: Json, answer: Json) -> list[str]:
    payload, note = find_payload(record, answer["task"], answer["history"])
    if payload is None:
        return [note]
    return _write_json(payload)


def _write_json(content: object) -> list[str]:
    if content is None:
        return []
    text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
    return text.splitlines()


def _write_error(record: Json) -> list[str]:
    error = record.get("error")
    if not error:
        return []
    return [f"{error['type']}: {error['message']}", *(error.get("traceback") or "").splitlines()]


def _list_steps(record: Json) -> Iterator[str]:
    for step in record.get("steps", ()):
        yield f"{step['kind'].lower()} {step['name']}: {show_status(step['status']).word.lower()}"


def _build_part(name: str, left: Sequence[str], right: Sequence[str]) -> Json:
    """Return the rows of a part: both lines, and whether they differ."""
    rows: list[tuple[str, str, bool]] = []
    first = [shorten(each, _WIDTH) for each in left[:_LINES]]
    second = [shorten(each, _WIDTH) for each in right[:_LINES]]
    for tag, start, end, begin, stop in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        for index in range(max(end - start, stop - begin)):
            mine = first[start + index] if start + index < end else ""
            theirs = second[begin + index] if begin + index < stop else ""
            rows.append((mine, theirs, tag != "equal"))
    cut = max(len(left), len(right)) > _LINES
    count = sum(differs for _, _, differs in rows)
    said = only_if(count, write_count(count, "line differs", "lines differ")) or "the same"
    return {"name": name, "rows": rows, "count": count, "said": said + only_if(cut, f" in the first {_LINES} lines")}
