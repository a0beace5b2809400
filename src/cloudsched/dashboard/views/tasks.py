"""The list of tasks.

Calls are omitted unless they are requested, because the record of the execution that made a call has the call's end.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.charts import draw_runs, write_runs
from cloudsched.dashboard.filters import TASK_FILTERS, TASKS, name_parameters, read_filters, show_filters
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.dashboard.status import OPEN, say_halts, show_status
from cloudsched.dashboard.times import find_instant
from cloudsched.dashboard.views.actions import fetch_notes
from cloudsched.dashboard.words import add_counts, only_if, read_count, write_count
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.domain.documents.run_counts import LATE
from cloudsched.domain.documents.task import MAX_NAME, NeedCause, TaskStatus, Trouble
from cloudsched.domain.responses.count import Count

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

PAGE_SIZE: Final = 50
_OF_TROUBLE: Final = frozenset({"trouble", "troubleUntil", "handler", "owner", "calls"})
"""The filters that the API takes beside a trouble."""
PARAMETERS: Final = name_parameters(TASKS)
_FOLLOWED: Final = 5
"""The number of pages without a task that are passed over, of 1,000 that were read for each."""


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters. A category is a word of its search."""
    found = read_filters(visit, TASKS)
    category = found.pop("category", "")
    words = f"{found.pop('search', '')} {only_if(category, f'category:{category}')}".strip()
    calls = "true" if found.get("trouble") == Trouble.DELIVERY else "false"  # a delivery is a call
    until = found.pop("troubleUntil", (visit.now - LATE).isoformat())
    if found.get("trouble") == Trouble.OVERDUE:
        found["troubleUntil"] = until
    return "/v1/tasks", {"calls": calls, **found, "search": words}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for a page of tasks, or for the next one with any: what no index has is looked for in bounds."""
    path, asked = list_rows(visit)
    page = api.get(path, **asked, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    for _ in range(_FOLLOWED):
        if page["tasks"] or not page.get("nextPageToken"):
            break
        page = api.get(path, **asked, pageSize=PAGE_SIZE, pageToken=page["nextPageToken"])
    return {
        **page,
        "restorable": fetch_notes(api, visit),
        "overview": api.find("/v1/overview", owner=asked.get("owner")),
    }


def build(answer: Json, visit: Visit) -> Json:
    """Return what the list of tasks shows."""
    asked = read_filters(visit, TASKS)
    tasks, token = answer["tasks"], answer.get("nextPageToken")
    offered = [each for each in TASKS if each.name in _OF_TROUBLE] if "trouble" in asked else TASKS
    chosen = {name: asked[name] for name in TASK_FILTERS if name in asked}
    is_of_these = asked.keys() <= {*TASK_FILTERS, "orderBy", "calls"}
    actions = [*BatchAction] if visit.may_change else []
    return {
        **answer,
        "sentence": _write_number(answer, visit),
        "halts": say_halts(answer, tasks),
        "rows": [_build_task(each, visit) for each in tasks],
        "filters": show_filters(visit, offered),
        "next": token,
        "until": list_rows(visit)[1].get("troubleUntil") or None,
        "actions": {each: each.label for each in actions},
        "chosen": chosen if is_of_these else {},
        "all": [*_list_changes(asked)] if actions else [],
    }


def _list_changes(asked: Json) -> list[tuple[str, str]]:
    """Return the changes of all that the list is of: their words, and what their question asks."""
    whose = {name: text for name, text in asked.items() if name in {"owner", "handler"}}
    if asked.keys() <= {"owner"}:
        pause = {"action": BatchAction.PAUSE, "status": TaskStatus.ACTIVE, **whose}
        return [(f"Pause {' of '.join(['everything', *whose.values()])}…", urlencode(pause))]
    if asked.get("trouble") == Trouble.FAILED and whose:
        return [("Retry all of these…", urlencode({"action": BatchAction.RETRY_FAILED, **whose}))]
    return []


def _build_task(task: Json, visit: Visit) -> Json:
    recent = task.get("recentStatuses", ())
    never = "no next run" if task["status"] == TaskStatus.ACTIVE else show_status(task["status"]).word.lower()
    at = find_instant(task, "nextExecutionTime")
    if at and at <= visit.now and (OPEN & {*recent} or (task.get("offeredAt") and task.get("overlap") != "ALLOW")):
        at, never = None, "after its open run"
    return {
        **task,
        "nextExecutionTime": at,
        "note": _write_note(task),
        "isBad": bool(task.get("consecutiveFailures")),
        "words": describe_schedule(task["schedule"], visit.now),
        "recent": draw_runs(recent),
        "recentWords": write_runs(recent),
        "whyNever": never,
    }


def _write_note(task: Json) -> str:
    failures = task.get("consecutiveFailures", 0)
    if failures:
        return f"the last {failures:,} failed" if failures > 1 else "the last one failed"
    if task.get("isRunning"):
        return "runs now"
    if NeedCause.OVERDUE in task.get("needs", ()):
        return "late"
    return only_if(task.get("offeredAt") and not task.get("expiration"), "waits for a worker")


def _write_number(answer: Json, visit: Visit) -> str:
    """Return the number of all tasks that match, if Home has it, or else of those that were found."""
    found, token = len(answer["tasks"]), answer.get("nextPageToken")
    asked = {name: text for name, text in list_rows(visit)[1].items() if text}
    if not found and token:
        return "Nothing was found yet: the next page goes on."
    if not found:
        no_tasks = "No tasks yet. Create the first one, or run “cloudsched demo” to see a year of them."
        return "Nothing matches." if len(asked) > 1 else no_tasks
    count, words = Count(value=found, at_least=bool(token or visit.query.get("page"))), ("task", "tasks")
    overview = answer["overview"]
    if count.at_least and overview:
        if asked.keys() <= {"status", "owner", "calls"}:
            counted = (each for status, each in overview["tasks"].items() if asked.get("status") in {None, status})
            count, words = add_counts(counted), ("task", "tasks, calls included")
        for each in overview["needs"]:
            if each["path"] == "tasks" and each["query"] == asked:
                count = read_count(each["count"])
    return f"{count.write(*words)}."


_LONGEST_FOUND: Final = MAX_NAME
"""The longest text that the API takes."""
_MOST: Final = 20
_LATELY: Final = timedelta(days=7)
_GROUPS: Final = {
    "People": ("owners", "people/"),
    "Handlers": ("handlers", "tasks?handler="),
    "Labels": ("labels", "tasks?label="),
}
"""The groups of names: the API's, and the beginning of the address of each."""


def fetch_found(api: Api, visit: Visit) -> Json:
    """Ask the API what the text names."""
    text = visit.query.get("q", "").strip()
    if not text or len(text) > _LONGEST_FOUND:
        return {"tasks": []}
    found = api.get("/v1/search", q=text, pageSize=_MOST)
    if task := found.get("task"):
        return {"goTo": task_path(task["id"]).removeprefix("/v1/")}
    if run := found.get("execution"):
        return {"goTo": execution_path(run["taskId"], run["executionId"]).removeprefix("/v1/")}
    asked = {"error": text, "calls": "false", "from": (visit.now - _LATELY).isoformat()}
    runs = api.get("/v1/executions", **asked, pageSize=2 * PAGE_SIZE)
    return {**found, "runs": {"value": len(runs["executions"]), "atLeast": "nextPageToken" in runs}}


def build_found(answer: Json, visit: Visit) -> Json:
    """Return what was found, in groups, and where else the text may stand."""
    text = visit.query.get("q", "").strip()
    errors = urlencode({"error": text, "from": (visit.now - _LATELY).isoformat()})
    runs = write_count(answer.get("runs", 0), "run", "runs")
    return {
        **answer,
        "sentence": _write_sentence(answer, text),
        "groups": [
            (name, [(each, f"{address}{quote(each, safe='')}") for each in answer[field]])
            for name, (field, address) in _GROUPS.items()
            if answer.get(field)
        ],
        "elsewhere": [
            ("Look for tasks with it in their names or payloads", f"tasks?{urlencode({'search': text})}"),
            (f"{runs} of the last {_LATELY.days} days with it in their errors", f"runs?{errors}"),
        ]
        if "isComplete" in answer
        else [],
    }


def _write_sentence(answer: Json, text: str) -> str:
    if "isComplete" not in answer:
        return f"Type a part of an id, a title, a person, a handler or a label, of at most {_LONGEST_FOUND} letters."
    count = {"value": len(answer["tasks"]), "atLeast": len(answer["tasks"]) == _MOST or not answer["isComplete"]}
    said = f"{write_count(count, 'task', 'tasks')}. "
    if not answer["tasks"] and not any(answer[field] for field, _ in _GROUPS.values()):
        said = f"Nothing is named “{text}”. "
    if answer.get("matchedBy") == "BEGINNINGS":
        return f"{said}Tasks are found by the beginnings of words alone, if they were saved since the index is on."
    return said if answer["isComplete"] else f"{said}Not everything was looked at: type more of the name."
