"""The tasks that are due next on Home, each once: the soonest ones, and those that busy ones would hide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.calendar.entries import BUSY
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.dashboard.times import parse_instant

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

LISTED: Final = 8
"""The most tasks. If more are due, half of them occur at most `BUSY` times a day."""


def fetch_due_next(api: Api, visit: Visit, until: datetime) -> Json:
    """Ask the API for the tasks that are due next before an instant, and for the first of all, whenever it is."""
    soonest = api.get("/v1/tasks", dueFrom=visit.soonest, orderBy="nextExecutionTime", pageSize=LISTED)["tasks"]
    due = [each for each in soonest if parse_instant(each["nextExecutionTime"]) < until]
    if len(due) == LISTED:
        rare = _list_rare(api, visit, until, {each["id"] for each in due})
        due = sorted([*due[: LISTED - len(rare)], *rare], key=lambda each: parse_instant(each["nextExecutionTime"]))
    return {"due": due, "next": soonest[:1]}


def _list_rare(api: Api, visit: Visit, until: datetime, known: set[str]) -> list[Json]:
    """Return other tasks that occur a few times a day, the soonest first."""
    near = {"from": visit.soonest, "until": until.isoformat(), "mostPerDay": str(BUSY)}
    page = api.get("/v1/occurrences", **near, pageSize=LISTED)
    names = dict.fromkeys(each["taskId"] for each in page["occurrences"] if each["taskId"] not in known)
    found = (api.find(task_path(name)) for name in [*names][: LISTED // 2])
    soonest = parse_instant(visit.soonest)
    return [each for each in found if each and parse_instant(each.get("nextExecutionTime", visit.soonest)) > soonest]


def build_due(task: Json, visit: Visit) -> Json:
    """Return the row of a task: when it is due, and how often."""
    return {
        "taskId": task["id"],
        "title": task["title"],
        "utc": task["nextExecutionTime"],
        "words": describe_schedule(task["schedule"], visit.now),
    }
