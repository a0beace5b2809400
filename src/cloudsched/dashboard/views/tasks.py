"""The list of tasks.

Calls are omitted unless they are requested, because the record of the execution that made a call has the call's end.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.charts.run_marks import draw_runs, write_runs
from cloudsched.dashboard.offered_verbs import BULK_ACTIONS, list_bulk_verbs
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.views.actions import fetch_restorable
from cloudsched.dashboard.views.causes import CAUSES, list_path, write_chip
from cloudsched.dashboard.views.search import guess_name
from cloudsched.dashboard.views.task_filters import (
    CATEGORIES,
    CATEGORY,
    list_named,
    list_tokens,
    read_task_filters,
    read_trouble,
)
from cloudsched.dashboard.words import join_phrases, only_if, write_count
from cloudsched.domain.documents.task import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

PAGE_SIZE: Final = 50
_ORDERS: Final = {
    "": "Needs attention first",
    "nextExecutionTime": "Due soonest",
    "createdAt desc": "Newest",
}


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    filters, words = read_task_filters(visit)
    return "/v1/tasks", {
        **filters,
        "status": filters.get("status", "").upper(),
        "trouble": read_trouble(visit),
        "troubleUntil": visit.query.get("troubleUntil"),
        "search": shlex.join(words),
        "payloads": only_if(words and not visit.query.get("payloads"), "false"),
        "calls": only_if(not visit.query.get("calls"), "false"),
        "orderBy": visit.query.get("orderBy"),
    }


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for one page of the list of tasks. An exact id of a task or of a person opens at once."""
    filters, words = read_task_filters(visit)
    if elsewhere := _find_exact(api, visit, filters, words):
        return {"goTo": elsewhere}

    path, asked = list_rows(visit)
    page = api.get(path, **asked, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    return {
        **page,
        "restorable": fetch_restorable(api, visit),
        "needs": api.list_items("/v1/overview", "needs"),
        "handlers": _list_handlers(api, filters) if not page["tasks"] else [],
    }


def _list_handlers(api: Api, filters: dict[str, str]) -> list[str]:
    """Return the names that a misspelt handler may mean."""
    if "handler" not in filters:
        return []
    return [each["name"] for each in api.list_items("/v1/handlers", "handlers")]


def _find_exact(api: Api, visit: Visit, filters: dict[str, str], words: list[str]) -> str | None:
    """Return the page of the task or person whose exact name is searched for. None if there is none."""
    if filters or len(words) != 1 or visit.query.get("page"):
        return None
    word = words[0]
    name = quote(word, safe="")
    if api.find(f"/v1/tasks/{name}") is not None:
        return f"tasks/{name}"
    if api.list_items("/v1/tasks", "tasks", owner=word, pageSize=1):
        return f"people/{name}"
    return None


def build(answer: Json, visit: Visit) -> Json:
    """Return what the list of tasks shows."""
    filters, words = read_task_filters(visit)
    tasks = list(answer["tasks"])
    if not visit.query.get("orderBy") and not read_trouble(visit):
        tasks.sort(key=lambda task: not task.get("needs"))  # keeps the API's order otherwise

    shown = {
        "sentence": _write_sentence(tasks, words, visit, is_cut=bool(answer.get("nextPageToken")))
        + _write_total(answer, filters, words),
        "restorable": answer.get("restorable", ()),
        "rows": [_build_task(task, visit) for task in tasks],
        "guess": guess_name(filters.get("handler", ""), answer["handlers"]),
        "filters": filters,
        "tokens": list_tokens(visit),
        "chips": [*_build_chips(answer.get("needs", ()), visit)],
        "statuses": {each: show_status(each).word for each in TaskStatus},
        "categories": CATEGORIES,
        "orders": _ORDERS,
        "next": answer.get("nextPageToken"),
        "bulkQuery": filters,
        "bulkActions": {},
        "searched": 0,
        "mayLookFurther": _may_look_further(words, visit) and not answer.get("nextPageToken"),
    }
    if words or read_trouble(visit):
        shown["bulkQuery"] = {}
    if words:
        shown["searched"] = answer.get("lookedThrough", 0)
    if visit.may_change:
        shown["bulkActions"] = {name: row.label for name, row in BULK_ACTIONS.items()}
    return shown


def _may_look_further(words: Sequence[str], visit: Visit) -> bool:
    """Return whether words were looked for in names only, rather than in payloads and in fields of these."""
    are_names = not any(word.startswith(("payload.", f"{CATEGORY}:")) for word in words)
    return bool(words) and are_names and not visit.query.get("payloads")


def _build_chips(needs: Iterable[Json], visit: Visit) -> Iterable[tuple[str, str, bool]]:
    """Yield a chip for each cause that any task has: its text, its address, and whether it is chosen."""
    counted = {each["cause"]: each for each in needs if each["count"]}
    for cause in CAUSES:
        if cause in counted:
            href = list_path(cause, visit).removeprefix("tasks")
            yield write_chip(counted[cause]), href, cause == read_trouble(visit)


def _build_task(task: Json, visit: Visit) -> Json:
    recent = task.get("recentStatuses", ())
    why_never = "no next run"
    if task["status"] != TaskStatus.ACTIVE:
        why_never = show_status(task["status"]).word.lower()
    return {
        **task,
        "note": _write_note(task),
        "isBad": bool(task.get("consecutiveFailures")),
        "words": describe_schedule(task["schedule"], visit.now),
        "recent": draw_runs(recent),
        "recentWords": write_runs(recent),
        "whyNever": why_never,
        "verbs": list_bulk_verbs(task),
    }


def _write_note(task: Json) -> str:
    failures = task.get("consecutiveFailures", 0)
    if failures > 1:
        return f"the last {failures} failed"
    if failures:
        return "the last one failed"
    if task.get("isRunning"):
        return "runs now"
    return only_if(task.get("offeredAt"), "waits for a worker")


def _write_sentence(tasks: list[Json], words: list[str], visit: Visit, *, is_cut: bool) -> str:
    if not tasks:
        return _explain_nothing(words, visit, is_cut=is_cut)
    count = write_count(len(tasks), "task", "tasks") + only_if(is_cut, " on this page")
    if visit.query.get("orderBy"):
        failed = sum(bool(task.get("consecutiveFailures")) for task in tasks)
        return f"{count}; {failed or 'none'} of them failing."
    needy = sum(bool(task.get("needs")) for task in tasks)
    if needy:
        come = "needs attention and comes first" if needy == 1 else "need attention and come first"
        return f"{count}; {needy} of them {come}."
    return f"{count}; none needs attention."


def _write_total(answer: Json, filters: Mapping[str, str], words: Sequence[str]) -> str:
    """Return how many of all tasks need attention, if the list goes on: a page has those of its own first."""
    count = sum(each["count"] for each in answer.get("needs", ()))
    if filters or words or not count or not answer.get("nextPageToken"):
        return ""
    at_least = any(each.get("isAtLeast") for each in answer["needs"])
    return f" Of all tasks, {write_count(count, 'needs', 'need', is_at_least=at_least)} attention."


def _explain_nothing(words: list[str], visit: Visit, *, is_cut: bool) -> str:
    searched = visit.query.get("q", "")
    named = list_named(visit)
    if not (words or named or searched or visit.query.get("page")):
        return "No tasks yet. Create the first one, or run “cloudsched demo” to see a year of them."
    wanted = join_phrases(searched, *(f"{name}:{visit.query[name]}" for name in named), separator=" ")
    if is_cut:
        return f"Nothing matches {wanted} among the tasks searched so far. The next page goes on."
    return f"Nothing matches {wanted}."
