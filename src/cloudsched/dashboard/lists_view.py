"""The lists of tasks, of runs, which are the executions of all tasks, and of queues and locks.

The filters are in the address. Calls are left out unless they are requested, because the record of the execution that
made a call has the call's end.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple
from urllib.parse import quote

from cloudsched.dashboard.attention import CAUSES, list_path
from cloudsched.dashboard.forms import Done
from cloudsched.dashboard.life_chart import draw_runs, write_runs
from cloudsched.dashboard.offered_verbs import list_bulk_verbs
from cloudsched.dashboard.status import BAD, OPEN, show_status
from cloudsched.dashboard.task_view import build_execution
from cloudsched.dashboard.visit import Api, Json, Visit, write_count
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import NeedCause, TaskStatus
from cloudsched.errors import NotFound

PAGE_SIZE: Final = 50


class BulkAction(NamedTuple):
    """A change of many tasks at once."""

    label: str
    """The button beside a list."""
    verb: str
    """The button below the question."""
    means: str


BULK_ACTIONS: Final = complete_table(
    BatchAction,
    {
        BatchAction.PAUSE: BulkAction("Pause", "Pause", "Nothing of them starts until they are resumed."),
        BatchAction.RESUME: BulkAction("Resume", "Resume", "They continue with their first occurrence from now."),
        BatchAction.RETRY_FAILED: BulkAction(
            "Retry failed", "Retry", "The last execution of each, which has failed, gets one more attempt."
        ),
        BatchAction.CANCEL: BulkAction(
            "Cancel", "Cancel", "Nothing of them starts any more. Their records are kept. This cannot be undone."
        ),
        BatchAction.DELETE: BulkAction(
            "Delete", "Delete", "They and their executions are gone. This cannot be undone."
        ),
    },
)
TASK_FILTERS: Final = ("status", "handler", "owner", "label", "dueFrom", "dueUntil")
TROUBLE: Final = "trouble"
"""A filter that stands alone, or beside an owner: the reason why tasks need somebody."""
CATEGORY: Final = "category"
"""A filter that no index has. It is searched for like words."""
CATEGORIES: Final = {each: each.capitalize() for each in Category}
_ORDERS: Final = {
    "": "What needs attention first, on each page",
    "nextExecutionTime": "Due soonest",
    "createdAt desc": "Newest",
}


def fetch_tasks(api: Api, visit: Visit) -> Json:
    """Ask the API for one page of the list of tasks. An exact id of a task or of a person opens at once."""
    filters, words = read_task_filters(visit)
    if elsewhere := _find_exact(api, visit, filters, words):
        return {"goTo": elsewhere}
    page = api.get(
        "/v1/tasks",
        **{name: value.upper() if name == "status" else value for name, value in filters.items()},
        trouble=_read_trouble(visit),
        troubleUntil=visit.query.get("troubleUntil"),
        search=shlex.join(words) or None,
        calls=None if visit.query.get("calls") else "false",
        orderBy=visit.query.get("orderBy"),
        pageSize=PAGE_SIZE,
        pageToken=visit.query.get("page"),
    )
    return {
        **page,
        "needs": (api.find("/v1/overview") or {}).get("needs", ()),
        "words": {task["id"]: api.describe(task["schedule"]) for task in page["tasks"]},
    }


def _find_exact(api: Api, visit: Visit, filters: dict[str, str], words: list[str]) -> str | None:
    """Return the page of the task or person whose exact name is searched for. None if there is none."""
    if filters or len(words) != 1 or visit.query.get("page"):
        return None
    word = words[0]
    name = quote(word, safe="")
    if api.find(f"/v1/tasks/{name}") is not None:
        return f"tasks/{name}"
    if (api.find("/v1/tasks", owner=word, pageSize=1) or {}).get("tasks"):
        return f"people/{name}"
    return None


def _read_trouble(visit: Visit) -> str:
    return visit.query.get(TROUBLE, "").upper()


def read_task_filters(visit: Visit) -> tuple[dict[str, str], list[str]]:
    """Return the filters and the words to search for. ``owner:ada`` in the search is a filter, too."""
    filters = {name: visit.query[name] for name in TASK_FILTERS if visit.query.get(name)}
    words = []
    for word in _split(visit.query.get("q", "")):
        name, colon, value = word.partition(":")
        if colon and value and name in TASK_FILTERS:
            filters[name] = value
        else:
            words.append(word)
    if visit.query.get(CATEGORY):
        words.append(f"{CATEGORY}:{visit.query[CATEGORY]}")
    return filters, words


def build_tasks(answer: Json, visit: Visit) -> Json:
    """Return what the list of tasks shows."""
    filters, words = read_task_filters(visit)
    trouble = _read_trouble(visit)
    tasks = list(answer["tasks"])
    if not visit.query.get("orderBy") and not trouble:
        tasks.sort(key=lambda task: not task.get("needs"))  # keeps the API's order otherwise
    tokens = [(f"{name}: {value}", _without(visit, name)) for name, value in filters.items()]
    tokens += [(word, _without(visit, CATEGORY if word.startswith(f"{CATEGORY}:") else None)) for word in words]
    if trouble:
        others = visit.with_query(**{TROUBLE: None, "troubleUntil": None, "page": None})
        tokens.append((f"needs somebody: {trouble.lower()}", others))
    return {
        "sentence": _write_tasks(tasks, words, visit, is_cut=bool(answer.get("nextPageToken"))),
        "rows": [_build_task(task, answer["words"].get(task["id"], "")) for task in tasks],
        "filters": filters,
        "tokens": tokens,
        "chips": _build_chips(answer.get("needs", ()), visit),
        "statuses": {each: show_status(each).word for each in TaskStatus},
        "categories": CATEGORIES,
        "orders": _ORDERS,
        "next": answer.get("nextPageToken"),
        "bulkQuery": {} if words or trouble else filters,
        "bulkActions": {name: row.label for name, row in BULK_ACTIONS.items()} if visit.may_change else {},
        "searched": answer.get("lookedThrough", 0) if words else 0,
    }


def _build_chips(needs: Iterable[Json], visit: Visit) -> list[tuple[str, str, bool]]:
    """Return a chip for each cause that any task has: its text, its address, and whether it is chosen."""
    return [
        (
            f"{said.chip} {each['count']:,}{'+' if each.get('isAtLeast') else ''}",
            list_path(NeedCause(cause), visit).removeprefix("tasks"),
            cause == _read_trouble(visit),
        )
        for cause, said in CAUSES.items()
        for each in needs
        if each["cause"] == cause and each["count"]
    ]


def _build_task(task: Json, words: str) -> Json:
    failures = task.get("consecutiveFailures", 0)
    note = ""
    if failures:
        note = "the last one failed" if failures == 1 else f"the last {failures} failed"
    elif task.get("isRunning"):
        note = "runs now"
    elif task.get("offeredAt"):
        note = "waits for a worker"
    recent = task.get("recentStatuses", ())
    ended = show_status(task["status"]).word.lower()
    return {
        **task,
        "note": note,
        "isBad": bool(failures),
        "words": words,
        "recent": draw_runs(recent),
        "recentWords": write_runs(recent),
        "whyNever": "none to come" if task["status"] == "ACTIVE" else ended,
        "verbs": list_bulk_verbs(task),
    }


def _write_tasks(tasks: list[Json], words: list[str], visit: Visit, *, is_cut: bool) -> str:
    filters = [name for name in (*TASK_FILTERS, CATEGORY) if visit.query.get(name)]
    if not tasks and not words and not filters and not visit.query.get("q") and not visit.query.get("page"):
        return "No tasks yet. Create the first one, or run “cloudsched demo” to see a year of them."
    if not tasks:
        wanted = " ".join(filter(None, [visit.query.get("q"), *(f"{name}:{visit.query[name]}" for name in filters)]))
        if is_cut:
            return f"Nothing matches {wanted} among the tasks that were looked through. The next page goes on."
        return f"Nothing matches {wanted}."
    count = f"{write_count(len(tasks), 'task', 'tasks')}{' on this page' if is_cut else ''}"
    if visit.query.get("orderBy"):
        failed = sum(bool(task.get("consecutiveFailures")) for task in tasks)
        return f"{count}; {failed or 'none'} of them failed last."
    bad = sum(bool(task.get("needs")) for task in tasks)
    return f"{count}, those that need attention first: {bad}." if bad else f"{count}; none needs attention."


def _without(visit: Visit, name: str | None) -> str:
    """Return the address without a filter, wherever it was given. None stands for the words of the search."""
    kept = []
    for word in _split(visit.query.get("q", "")):
        prefix = word.partition(":")[0] if ":" in word and word.partition(":")[0] in (*TASK_FILTERS, CATEGORY) else None
        if prefix != name:
            kept.append(word)
    changes: dict[str, str | None] = {"q": " ".join(kept) or None, "page": None}
    if name is not None:
        changes[name] = None
    return visit.with_query(**changes)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark without its partner
        return text.split()


FILTERS: Final = (
    *("status", "handler", "owner", "label", "category", "error", "errorType", "minDuration", "minLateness"),
)
"""The filters that the API has under these names, beside the window and the calls."""
RETRY_FILTERS: Final = (*FILTERS, "from", "until")
"""The filters that choose the executions to retry."""
WINDOWS: Final[dict[str, tuple[str, timedelta | None]]] = {
    "PT15M": ("15 minutes", timedelta(minutes=15)),
    "PT1H": ("hour", timedelta(hours=1)),
    "PT12H": ("12 hours", timedelta(hours=12)),
    "P1D": ("day", timedelta(days=1)),
    "P7D": ("7 days", timedelta(days=7)),
    "any": ("Any time", None),
}
WINDOW: Final = "PT1H"
"""The default window. Somebody who is called at night asks about the last hour."""
_LONG: Final = {"PT10S": "10 s", "PT1M": "1 min", "PT10M": "10 min", "PT1H": "1 h"}


def read_run_filters(visit: Visit) -> dict[str, str]:
    """Return the filters of the address as the API takes them, with the window as instants."""
    found = {name: visit.query[name].strip() for name in FILTERS if visit.query.get(name, "").strip()}
    for name in ("status", "category"):
        if name in found:
            found[name] = found[name].upper()
    given = {name: visit.query[name] for name in ("from", "until") if visit.query.get(name)}
    _, length = WINDOWS.get(visit.query.get("within") or WINDOW, ("", None))
    if not given and length is not None:
        given["from"] = (visit.now - length).isoformat()
    return {**found, **given}


def fetch_runs(api: Api, visit: Visit) -> Json:
    """Ask the API for a page of executions, and for the failures among them."""
    filters = read_run_filters(visit)
    calls = None if visit.query.get("calls") else "false"
    page = api.get("/v1/executions", **filters, calls=calls, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    status = filters.get("status")
    asks_for_failures = status is None or status in BAD
    return {
        **page,
        "failures": api.get("/v1/executions/failures", **filters, calls=calls) if asks_for_failures else None,
        "filters": filters,
    }


def build_runs(answer: Json, visit: Visit) -> Json:
    """Return what the list of runs shows."""
    filters, failures = answer["filters"], answer["failures"]
    window = "" if visit.query.get("from") or visit.query.get("until") else visit.query.get("within") or WINDOW
    return {
        "sentence": _write_runs(answer, window, visit),
        "rows": [_build_run(each, visit) for each in answer["executions"]],
        "groups": [_build_group(each, filters, visit) for each in (failures or {}).get("groups", ())],
        "failed": _write_failed(failures),
        "window": window if window in WINDOWS else WINDOW,
        "windows": {name: words for name, (words, _) in WINDOWS.items()},
        "statuses": {each: show_status(each).word for each in ExecutionStatus},
        "categories": CATEGORIES,
        "lengths": _LONG,
        "retryQuery": {name: filters[name] for name in RETRY_FILTERS if name in filters},
        "tokens": [
            (f"{name}: {filters[name]}", visit.with_query(**{name: None, "page": None}))
            for name in FILTERS
            if name in filters
        ],
        "next": answer.get("nextPageToken"),
    }


def _build_run(record: Json, visit: Visit) -> Json:
    caller = record.get("calledBy")
    may_pick = record["status"] in BAD and caller is None and visit.may_change
    return {
        **build_execution(record, visit),
        "pick": f"{record['taskId']}/{record['id']}" if may_pick else "",
        "caller": caller,
    }


def _build_group(group: Json, filters: Mapping[str, str], visit: Visit) -> Json:
    """Return a group of failures, with the address and the filters of the failures of its type alone."""
    of_type = {"status" if group["type"] in set(ExecutionStatus) else "errorType": group["type"]}
    return {
        **group,
        "message": group["sample"]["error"].removeprefix(f"{group['type']}: "),
        "href": visit.with_query(**of_type, page=None),
        "retry": {name: text for name, text in {**filters, **of_type}.items() if name in RETRY_FILTERS},
    }


def _write_failed(failures: Json | None) -> str:
    if failures is None or not failures["count"]:
        return ""
    return f"{'at least ' if failures.get('isAtLeast') else ''}{failures['count']:,}"


def _write_runs(answer: Json, window: str, visit: Visit) -> str:
    """Return the number of runs and of failures, and the other runs on this page, in words."""
    failures, listed = answer["failures"], answer["executions"]
    when = _write_window(window, visit)
    others = sum(each["status"] not in BAD for each in listed)
    still = sum(each["status"] in OPEN for each in listed)
    said = []
    if failures is not None:
        said.append(f"{_write_failed(failures).capitalize() or 'Nothing'} failed {when}".strip())
        if others:
            said.append(
                f"{others:,} more on this page, {still:,} of them open" if still else f"{others:,} more on this page"
            )
    elif listed:
        said.append(f"{len(listed):,} on this page, {when}".strip(", "))
    else:
        said.append(f"Nothing matches {when}".strip())
    cut = not listed and answer.get("nextPageToken")
    return f"{'; '.join(said)}.{' Not all was looked through: the next page goes on.' if cut else ''}"


def _write_window(window: str, visit: Visit) -> str:
    words, length = WINDOWS.get(window, ("", None))
    if length is not None:
        return f"in the last {words}"
    return " ".join(
        f"{name} {visit.moment(visit.query[name]).text}" for name in ("from", "until") if visit.query.get(name)
    )


def fetch_queues(api: Api, visit: Visit) -> Json:
    """Ask the API for queues and workers, and for the tasks that wait in the queue that the address names."""
    chosen = visit.query.get("queue", "")
    path = f"/v1/queues/{quote(chosen, safe='')}/tasks"
    return {
        "queues": api.get("/v1/queues")["queues"],
        "workers": api.get("/v1/workers")["workers"],
        "chosen": chosen,
        "dispatch": (api.find("/v1/dispatch-queues") or {}).get("queues", ()) if visit.role == "admin" else (),
        "waiting": api.get(path, pageSize=50, pageToken=visit.query.get("page")) if chosen else {},
    }


def send_queues(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Done:
    """Pause or resume a queue in Cloud Tasks."""
    queue, state = texts.get("queue", ""), "RUNNING" if texts.get("verb") == "resume" else "PAUSED"
    if queue in {"", ".", ".."}:
        raise NotFound("queue", queue)
    api.patch(f"/v1/dispatch-queues/{quote(queue, safe='')}", {"state": state})
    return Done("queues", f"queue-{state.lower()}")


def build_queues(answer: Json, _visit: Visit) -> Json:
    """Return what the page of queues shows."""
    queues = answer["queues"]
    unheard = [each["queue"] for each in queues if each["waiting"] and not each["workers"]]
    waiting = write_count(sum(each["waiting"] for each in queues), "run waits", "runs wait")
    heard = "Every queue in which something waits is served."
    if unheard:
        heard = f"Nobody listens at {', '.join(unheard)}."
    return {**answer, "sentence": f"{waiting}. {heard}"}


def fetch_locks(api: Api, visit: Visit) -> Json:
    """Ask the API for locks."""
    return api.get("/v1/locks", pageToken=visit.query.get("page"), pageSize=50)


def build_locks(answer: Json, _visit: Visit) -> Json:
    """Return what the page of locks shows."""
    locks = answer["locks"]
    waiting = write_count(sum(len(each["waiters"]) for each in locks), "run waits", "runs wait")
    used = f"{write_count(len(locks), 'lock is', 'locks are')} in use, {waiting}."
    return {**answer, "sentence": used if locks else "No lock is held, and nobody waits."}
