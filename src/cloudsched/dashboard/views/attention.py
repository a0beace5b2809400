"""The problems that need attention: each cause with its count and its oldest task, and the latest tasks of each.

The counts are the store's own (``/v1/overview``), of all tasks. The page reports that there are none only if every
cause was counted to its end, and shows the age of the counts.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.offered_verbs import fetch_startable
from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.views.causes import filter_by_cause
from cloudsched.dashboard.views.decisions import fetch_waits, list_first_waits
from cloudsched.dashboard.views.need_rows import (
    SHOWN,
    build_needs,
    leave_out,
    list_common,
    list_groups,
    list_paused,
    list_unheard,
)
from cloudsched.dashboard.words import only_if
from cloudsched.domain.documents.run_counts import RunOutcome
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.transitions.needs import GIVES_UP_SOON

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_BY_HANDLER: Final = (NeedCause.FAILED, NeedCause.PAUSED)
"""The causes of which the tasks are asked for that have been so longest, one of each handler."""
_NAMED: Final = 2
"""The latest tasks that the line of a handler names: a read each."""
_LISTED: Final = {NeedCause.HELD.value: 100, NeedCause.OVERDUE.value: 25}
"""The number of tasks that are requested for a cause, if some of them have no line."""
_MOST_LATE: Final = 200
"""The number of late tasks that are requested while a queue is paused: the API counts fewer."""
MAX_QUEUES: Final = 200
"""The number of queues that the API lists. If there are more, some were not checked."""
FRESH: Final = timedelta(seconds=30)
"""Counts that are older are no longer current."""


def fetch_needs(api: Api, visit: Visit, counts: Json | None) -> Json:
    """Ask the API for some tasks of each cause for which the overview has counted any."""
    counted = {each["cause"]: each for each in (counts or {}).get("needs", ()) if each["count"]}
    sizes = _LISTED
    if list_paused(list_common(counts)):
        sizes = {**_LISTED, NeedCause.OVERDUE.value: _MOST_LATE}
    tasks = {cause: _list_tasks(api, visit, counted, cause, sizes.get(cause, SHOWN)) for cause in counted}
    failed = tasks.get(NeedCause.FAILED, ())
    return {
        "counts": counts,
        "tasks": tasks,
        "latest": {cause: _list_latest(api, counted, cause) for cause in _BY_HANDLER},
        "records": {
            each["id"]: api.find(execution_path(each["id"], each["lastExecutionId"]))
            for each in failed
            if each.get("lastExecutionId")
        },
        "sent": {each["id"]: _find_latest(api, each["id"]) for each in tasks.get(NeedCause.DELIVERY, ())},
        "startable": [each["id"] for each in failed if fetch_startable(api, visit, each)],
        "waits": fetch_waits(api, tasks.get(NeedCause.WAITING, ())),
        "lastFailures": []
        if counted
        else api.list_items("/v1/executions", "executions", outcome=RunOutcome.FAILED, pageSize=1),
    }


def _find_latest(api: Api, task_id: str) -> Json | None:
    """Return the latest execution of a task, which may be open."""
    return next(iter(api.list_items(f"{task_path(task_id)}/executions", "executions", pageSize=1)), None)


def _list_latest(api: Api, counted: Mapping[str, Json], cause: NeedCause) -> dict[str, list[Json]]:
    """Return by handler the latest of its tasks, so that one among many that have needed somebody for long is named."""
    handlers = [group["handler"] for group in list_groups(counted, cause) if group["count"] > 1]
    asked: dict[str, Any] = {"trouble": cause.value, "pageSize": _NAMED}
    return {each: api.list_items("/v1/tasks", "tasks", handler=each, **asked) for each in handlers}


def _list_tasks(api: Api, visit: Visit, counted: Mapping[str, Json], cause: str, size: int) -> list[Json]:
    """Return the tasks of a cause that may have a line: of each handler, or the latest, or those that give up first."""
    if cause in _BY_HANDLER:
        oldest = [task_path(group["taskId"]) for group in list_groups(counted, NeedCause(cause))]
        return [*filter(None, map(api.find, oldest))]
    if cause == NeedCause.WAITING:
        return list_first_waits(api, visit, visit.now + GIVES_UP_SOON)[0][:SHOWN]
    found: list[Json] = api.get("/v1/tasks", **filter_by_cause(cause, visit), pageSize=size)["tasks"]
    if cause == NeedCause.OVERDUE:
        found = [each for each in found if cause in each.get("needs", ())]
    return found


def build_attention(answer: Json, queues: Sequence[Json], visit: Visit) -> Json:
    """Return the problems, the most urgent cause first, and what to say if there are none.

    ``isAtLeast`` means that there may be more, because something was not counted, or not to its end. The status is a
    tick only if every question was asked and answered.
    """
    counts = answer["counts"]
    counted = {each["cause"]: each for each in (counts or {}).get("needs", ())}
    unheard = list_unheard(queues)
    age = FRESH
    if counts:
        age = visit.now - parse_instant(counts["countedAt"])
    is_cut = any(each.get("isAtLeast") for each in counted.values())
    is_whole = counted.keys() >= set(NeedCause) and not is_cut and len(queues) < MAX_QUEUES and age < FRESH

    status = show_status("SUCCEEDED")
    if is_whole:
        asked = only_if(age >= timedelta(seconds=1), f" {write_duration(age)} ago")
        calm = f"Nothing needs you. All tasks were checked{asked}."
    else:
        status = Status("late", "Not known", "retry")
        calm = "Nothing found that needs you, but not everything was checked."
        if not counts:
            calm = "Whether anything needs you is not known: the counts are missing."
    return {
        "needs": [*build_needs(answer, counted, unheard, visit)],
        "count": _count_needs(counted, answer) + len(unheard),
        "isAtLeast": not is_whole,
        "decisions": bool(counted.get(NeedCause.WAITING, {}).get("count")),
        "calm": calm + _write_last_failure(answer["lastFailures"], visit),
        "status": status,
    }


def _count_needs(counted: Mapping[str, Json], answer: Json) -> int:
    """Return the number of what needs somebody. What keeps many tasks from running counts once."""
    left = (leave_out(NeedCause(cause), found, answer) for cause, found in counted.items())
    return len(list_common(answer["counts"])) + sum(int(each["count"]) for each in left if each)


def _write_last_failure(failures: Sequence[Json], visit: Visit) -> str:
    if not failures:
        return ""
    last = max((str(each["scheduledFor"]) for each in failures), key=parse_instant)
    return f" The last failure was {visit.moment(last).relative}."
