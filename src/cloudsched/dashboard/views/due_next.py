"""The tasks that are due next on Home, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.views.causes import explain_unregistered

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

LISTED: Final = 8
"""The most tasks."""


def fetch_due_next(api: Api, visit: Visit, until: datetime) -> Json:
    """Ask the API for the tasks that are due next before an instant, and for the first of all, whenever it is.

    A task whose open run has left its next occurrences behind is found by its occurrences only.
    """
    near = {"from": visit.soonest, "until": until.isoformat()}
    first = api.get("/v1/occurrences", **near, pageSize=LISTED)["occurrences"]
    listed = api.get("/v1/tasks", dueFrom=visit.soonest, orderBy="nextExecutionTime", pageSize=LISTED)["tasks"]
    rows = {each["id"]: {**each, "taskId": each["id"], "utc": each["nextExecutionTime"]} for each in listed}
    rows |= {each["taskId"]: each for each in reversed(first)}
    due = sorted(rows.values(), key=lambda each: (parse_instant(each["utc"]), each["taskId"]))
    return {"due": [each for each in due[:LISTED] if parse_instant(each["utc"]) < until], "next": listed[:1]}


def build_due(row: Json, unregistered: Mapping[str, str]) -> Json:
    """Return a task's next occurrence, and whether nothing would run it."""
    return {**row, "inVain": explain_unregistered(row, unregistered)}
