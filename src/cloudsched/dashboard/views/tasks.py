"""The list of tasks.

Calls are omitted unless they are requested, because the record of the execution that made a call has the call's end.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.charts.run_marks import draw_runs, write_runs
from cloudsched.dashboard.offered_verbs import list_bulk_verbs
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.dashboard.status import show_status
from cloudsched.dashboard.views.actions import fetch_restorable, fetch_under_way
from cloudsched.dashboard.views.causes import explain_unregistered
from cloudsched.dashboard.views.filtered_needs import (
    build_chips,
    fetch_filtered_needs,
    list_by_handler,
    write_needy,
    write_stopping,
)
from cloudsched.dashboard.views.search import guess_name, show_match
from cloudsched.dashboard.views.task_filters import (
    CATEGORIES,
    CATEGORY,
    TASK_FILTERS,
    TROUBLE,
    list_free_words,
    list_tokens,
    read_task_filters,
    read_trouble,
)
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.domain.documents.task import NeedCause, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

PAGE_SIZE: Final = 50
PARAMETERS: Final = (*TASK_FILTERS, TROUBLE, "troubleUntil", CATEGORY, "q", "payloads", "calls", "orderBy", "page")
_FOLLOWED: Final = 5
"""The number of pages without a task that are passed over, of 1,000 that were read for each."""
_ORDERS: Final = {
    "": "Attention first, page by page",
    "nextExecutionTime": "Due soonest",
    "createdAt desc": "Newest",
}


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    filters, words = read_task_filters(visit)
    trouble = read_trouble(visit)
    has_calls = visit.query.get("calls") or trouble == NeedCause.DELIVERY  # a delivery is a call
    return "/v1/tasks", {
        **filters,
        "status": filters.get("status", "").upper(),
        "trouble": trouble,
        "troubleUntil": visit.query.get("troubleUntil"),
        "search": shlex.join(words),
        "payloads": only_if(words and not visit.query.get("payloads"), "false"),
        "calls": only_if(not has_calls, "false"),
        "orderBy": visit.query.get("orderBy"),
    }


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for one page of the list of tasks. An exact id of a task or of a person opens at once."""
    filters, words = read_task_filters(visit)
    if elsewhere := _find_exact(api, visit, filters, words):
        return {"goTo": elsewhere}

    page = _fetch_page(api, visit, may_follow=not list_free_words(words))
    return {
        **page,
        "restorable": [*fetch_under_way(api, visit), *fetch_restorable(api, visit)],
        "needs": fetch_filtered_needs(api, visit, page["tasks"]),
        "handlers": _list_handlers(api, filters) if not page["tasks"] else [],
    }


def _fetch_page(api: Api, visit: Visit, *, may_follow: bool) -> Json:
    """Return a page, or the next one with any task, as far as `_FOLLOWED` of them say.

    A filter that no index has is looked for in a bounded number of tasks.
    """
    path, asked = list_rows(visit)
    page = api.get(path, **asked, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    for _ in range(_FOLLOWED if may_follow else 0):
        if page["tasks"] or not page.get("nextPageToken"):
            break
        page = api.get(path, **asked, pageSize=PAGE_SIZE, pageToken=page["nextPageToken"])
    return page


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
    if read_trouble(visit) == NeedCause.WAITING and _is_whole(answer, visit):
        tasks.reverse()  # the API's first is the last to give up

    needs = answer["needs"]
    shown = {
        "sentence": _write_sentence(tasks, visit, is_whole=_is_whole(answer, visit), is_calm=needs["isCalm"])
        if tasks
        else _explain_nothing(visit, is_cut=bool(answer.get("nextPageToken"))),
        "stopping": write_stopping(needs),
        "needy": write_needy(needs, visit) if tasks else {},
        "restorable": answer.get("restorable", ()),
        "rows": [
            {**_build_task(task, needs, visit), "match": show_match(task, list_free_words(words))} for task in tasks
        ],
        "guess": guess_name(filters.get("handler", ""), answer["handlers"]),
        "filters": filters,
        "tokens": list_tokens(visit),
        "chips": build_chips(needs, visit),
        "handlers": list_by_handler(needs, visit),
        "retryAll": _write_retry(filters, visit),
        "everything": _build_everything(visit),
        "statuses": {each: show_status(each).word for each in TaskStatus},
        "categories": CATEGORIES,
        "mayHideCalls": read_trouble(visit) != NeedCause.DELIVERY,
        "orders": _ORDERS,
        "next": answer.get("nextPageToken"),
        "bulkQuery": filters,
        "bulkActions": {},
        "isSearch": bool(words),
        "searched": 0,
        "mayLookFurther": _may_look_further(words, visit) and not answer.get("nextPageToken"),
    }
    if words or read_trouble(visit):
        shown["bulkQuery"] = {}
    if list_free_words(words):
        shown["searched"] = answer.get("lookedThrough", 0)
    if visit.may_change:
        shown["bulkActions"] = {each: each.label for each in BatchAction}
    return shown


def _may_look_further(words: Sequence[str], visit: Visit) -> bool:
    """Return whether words were looked for in names only, rather than in payloads and in fields of these."""
    are_names = not any(word.startswith(("payload.", f"{CATEGORY}:")) for word in words)
    return bool(words) and are_names and not visit.query.get("payloads")


def _write_retry(filters: Mapping[str, str], visit: Visit) -> str:
    """Return what the question before the failing tasks of a handler or an owner are retried asks, or nothing."""
    may_retry = visit.may_change and read_trouble(visit) == NeedCause.FAILED
    return urlencode({"action": BatchAction.RETRY_FAILED.value, **filters}) if may_retry and filters else ""


def _build_everything(visit: Visit) -> Json | None:
    """Return the button that pauses everything, or everything of the owner that is shown. None under other filters."""
    filters, words = read_task_filters(visit)
    if words or read_trouble(visit) or filters.keys() - {"owner"}:
        return None
    query = {"action": "pause", "status": TaskStatus.ACTIVE.value, **filters}
    return {"words": " of ".join(["everything", *filters.values()]), "query": urlencode(query)}


def _build_task(task: Json, needs: Json, visit: Visit) -> Json:
    recent = task.get("recentStatuses", ())
    is_active = task["status"] == TaskStatus.ACTIVE
    return {
        **task,
        "note": _write_note(task),
        "isBad": bool(task.get("consecutiveFailures")),
        "words": describe_schedule(task["schedule"], visit.now),
        "recent": draw_runs(recent),
        "recentWords": write_runs(recent),
        "whyNever": "no next run" if is_active else show_status(task["status"]).word.lower(),
        "inVain": only_if(is_active, explain_unregistered(task, needs["unregistered"])),
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
    if NeedCause.OVERDUE in task.get("needs", ()):
        return "late"
    return only_if(task.get("offeredAt"), "waits for a worker")


def _is_whole(answer: Json, visit: Visit) -> bool:
    """Return whether a page has all tasks that match."""
    return not answer.get("nextPageToken") and not visit.query.get("page")


def _write_sentence(tasks: list[Json], visit: Visit, *, is_whole: bool, is_calm: bool) -> str:
    """Return what the page has, and in what order. Only of a list that is whole is nothing left out.

    That none needs attention is said only if it is calm: nothing else is known to keep tasks from running, or what
    they say from arriving.
    """
    count = write_count(len(tasks), "task", "tasks") + only_if(not is_whole, " on this page")
    if trouble := read_trouble(visit):
        first = "latest to need attention"
        if trouble == NeedCause.WAITING:
            first = "first to give up" if is_whole else "last to give up"
        return f"{count}, the {first} first."
    if visit.query.get("orderBy"):
        failed = sum(bool(task.get("consecutiveFailures")) for task in tasks)
        return f"{count}; {failed or 'none'} of them failing."
    needy = sum(bool(task.get("needs")) for task in tasks)
    come = "needs attention and comes first" if needy == 1 else "need attention and come first"
    if needy == len(tasks) > 1:
        return f"{count}; all of them need attention."
    if needy:
        return f"{count}; {needy} of them {come}{only_if(not is_whole, ' on it')}."
    none = only_if(is_calm, f"; none {only_if(not is_whole, 'of these ')}needs attention")
    return f"{count}{none}."


def _explain_nothing(visit: Visit, *, is_cut: bool) -> str:
    wanted = ", ".join(text for text, _ in list_tokens(visit))
    if is_cut:
        return f"Nothing matches {wanted} among the tasks searched so far. The next page goes on."
    if visit.query.get("page"):
        return "Nothing more matches."
    if wanted:
        return f"Nothing matches {wanted}."
    if visit.query.get("orderBy") == "nextExecutionTime":
        return "No task has a next run."
    return "No tasks yet. Create the first one, or run “cloudsched demo” to see a year of them."
