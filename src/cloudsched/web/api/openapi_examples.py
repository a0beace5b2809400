"""The examples in ``/openapi.json``, which `openapi_examples.json` has: requests by body, and a response by schema.

Tests validate each against its schema, and each request against the model that parses it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Json = dict[str, Any]


@cache
def _load() -> Json:
    content: Json = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return content


def build_request_examples(handlers: Sequence[str] | None) -> dict[str, dict[str, Json]]:
    """Return the examples of each operation with a body, by their names.

    Args:
        handlers: The names of the app's handlers where the API is open: then a new task names its owner, and one of
            these. None where callers must authenticate.
    """
    owner = {} if handlers is None else {"owner": "ada"}
    report, work = _load()["tasks"]["report"], _load()["tasks"]["work"]
    render = {"summary": "Work for a pool of workers", "value": {**work, **owner}}
    tasks = {"work": render}
    if handlers is None or handlers:
        handler = {} if handlers is None or "report" in handlers else {"handler": handlers[0]}
        weekly = {"summary": "A report every weekday at nine", "value": {**report, **handler, **owner}}
        tasks = {"report": weekly, "work": render}
    batch = {"summary": "Several tasks", "value": {"tasks": [each["value"] for each in tasks.values()]}}
    return {"create_task": tasks, "batch_create_tasks": {"batch": batch}, **_load()["requests"]}


def response_example(schema: str) -> Json:
    """Return the example of a response with this schema."""
    example: Json = _load()["responses"][schema]
    return example
