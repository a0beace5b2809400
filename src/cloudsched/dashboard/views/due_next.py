"""The tasks that are due next on Home, each once: the soonest ones, and those that busy ones would hide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.upcoming import BUSY
from cloudsched.dashboard.views.causes import explain_unregistered

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

LISTED: Final = 8
"""The most tasks. If more are due, half of them occur at most `BUSY` times a day."""


def fetch_due_next(api: Api, visit: Visit, until: datetime) -> Json:
    """Ask the API for the tasks that are due next before an instant, and for the first of all, whenever it is.

    A task whose open run has left its next occurrences behind is found by its occurrences only.
    """
    near = {"from": visit.soonest, "until": until.isoformat()}
    listed = api.get("/v1/tasks", dueFrom=visit.soonest, orderBy="nextExecutionTime", pageSize=LISTED)["tasks"]
    known = {each["id"]: each for each in listed}
    soon = {name: each["nextExecutionTime"] for name, each in known.items()}
    soon |= _list_first(api, near)
    soonest = [each for each in _sort(soon) if parse_instant(soon[each]) < until]
    rare: dict[str, str] = {}
    if len(soonest) >= LISTED:
        found = _list_first(api, {**near, "mostPerDay": str(BUSY)})
        rare = {each: found[each] for each in [*found][: LISTED // 2]}
    first = [each for each in soonest if each not in rare][: LISTED - len(rare)]
    chosen = {each: soon[each] for each in first} | rare
    tasks = {each: known.get(each) or api.find(task_path(each)) for each in chosen}
    return {
        "due": [{**task, "due": chosen[each]} for each in _sort(chosen) if (task := tasks[each])],
        "next": listed[:1],
    }


def _list_first(api: Api, query: Mapping[str, str]) -> dict[str, str]:
    """Return when each of the tasks of the next occurrences is due first."""
    found: dict[str, str] = {}
    for each in api.get("/v1/occurrences", **query, pageSize=LISTED)["occurrences"]:
        found.setdefault(each["taskId"], each["utc"])
    return found


def _sort(due: Mapping[str, str]) -> list[str]:
    return sorted(due, key=lambda each: (parse_instant(due[each]), each))


def build_due(task: Json, unregistered: Mapping[str, str], visit: Visit) -> Json:
    """Return the row of a task: when it is due, how often, and whether nothing would run it."""
    return {
        "taskId": task["id"],
        "title": task["title"],
        "utc": task["due"],
        "inVain": explain_unregistered(task, unregistered),
        "words": describe_schedule(task["schedule"], visit.now),
    }
