"""Two executions of a task as one text: what both have, and what only one of them has, line by line."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.times import write_took
from cloudsched.dashboard.views.execution import fetch_edits, find_good, find_payload, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

LINES: Final = 400
"""The number of lines of each execution that are compared."""


def fetch(api: Api, visit: Visit, task_id: str, execution_id: str) -> Json:
    """Ask the API for an execution, and for the one beside it: the latest before it that succeeded."""
    task, _ = api.task(task_id)
    record = api.get(execution_path(task_id, execution_id))
    other = visit.query.get("with") or find_good(api, task_path(task_id), record)
    ids = [other, execution_id] if other else [execution_id]
    both = [api.get(execution_path(task_id, each)) for each in ids]
    logs = [api.list_items(f"{execution_path(task_id, each)}/logs", "lines") for each in ids]
    return {"task": task, "both": both, "logs": logs, "history": fetch_edits(api, both[0], task)}


def build(answer: Json, visit: Visit) -> Json:
    """Return the lines, each with a sign: ``-`` for those of the other execution alone, ``+`` for those of this one."""
    both = answer["both"]
    texts = [[*_write(*each, answer, visit)] for each in zip(both, answer["logs"], strict=True)]
    said = "No other run of this task that succeeded was found, so there is nothing to compare with."
    lines: list[str] = []
    if len(both) > 1:
        said = f"The first {LINES} lines of each." if max(map(len, texts)) > LINES else ""
        old, new = (each[:LINES] for each in texts)
        lines = [*unified_diff(old, new, n=LINES, lineterm="")][3:] or [f" {each}" for each in old]
    return {
        **answer,
        "title": f"Compare {answer['task']['title']}",
        "said": said,
        "execution": both[-1],
        "other": both[0],
        "lines": [(each[0], each[1:]) for each in lines],
    }


def _write(record: Json, log: list[Json], answer: Json, visit: Visit) -> Iterator[str]:
    payload, note = find_payload(record, answer["task"], answer["history"])
    error = record.get("error") or {}
    yield f"Status: {show_status(record['status']).word.lower()}"
    yield f"Started: {visit.moment(record['startedAt']).text if record.get('startedAt') else 'never'}"
    yield f"Took: {write_took(record, visit.now)}"
    yield f"Attempts: {len(record['attempts']) + record.get('omittedAttempts', 0)}"
    yield f"Payload: {note}"
    yield from write_json(payload).splitlines()
    yield from ["Result:", *write_json(record.get("content")).splitlines()]
    if error:
        yield f"Error: {error['type']}: {error['message']}"
        yield from (error.get("traceback") or "").splitlines()
    for step in record.get("steps", ()):
        yield f"{step['kind'].capitalize()} {step['name']}: {show_status(step['status']).word.lower()}"
    yield from (f"{each.get('level', '')} {each.get('text', '')}".strip() for each in log)
