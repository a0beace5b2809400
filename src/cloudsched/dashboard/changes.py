"""Whether a page would look different now: what its script asks instead of the page itself, for one read."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from cloudsched.dashboard.api import task_path

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api


def find_cursor(api: Api, task_id: str | None = None, execution_id: str | None = None) -> str:
    """Return a text that is another one once the page should be fetched again.

    Args:
        api: The API.
        task_id: The task whose open execution the page shows; None for all other pages.
        execution_id: The execution: its progress does not change the task, so it is read itself while it is open.
    """
    if task_id is None or execution_id is None:
        return str(api.get("/v1/changes")["cursor"])
    record = api.get(f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}")
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
