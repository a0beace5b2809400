"""The actions on many tasks: who did what to how many, how far it is, what failed, and what can be taken back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.filters import name_filter, write_value
from cloudsched.dashboard.forms.fields import Again, Submitted
from cloudsched.dashboard.status import BAD, OPEN, Status
from cloudsched.dashboard.views.task_history import name_actor
from cloudsched.dashboard.words import join_phrases, only_if, shorten, write_count
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

PAGE_SIZE: Final = 50
_LOOKED_AT: Final = 20
"""The number of latest actions among which Home and Tasks look for one that can be restored."""
_OFFERED: Final = 3
"""The most restorations that are offered there. The list of actions has all."""
_COUNTS: Final = ("changed", "skipped", "refused")
_TAKEN_BACK_BY: Final[dict[str, str]] = {
    BatchAction.PAUSE: BatchAction.RESUME,
    BatchAction.RESUME: BatchAction.PAUSE,
}
_WAITS: Final = Status("due", "Waits to start", "due")
_STATES: Final = {
    TaskStatus.ACTIVE: Status("run", "Under way", "run"),
    TaskStatus.COMPLETED: Status("ok", "Done", "ok"),
    TaskStatus.CANCELLED: Status("cancel", "Stopped", "ended"),
}
_BOUNDS: Final = {"from": "since", "until": "before"}
"""The words for the times of runs, in a title."""
_RUNS: Final = Status("run", "All tried again, and some are still open", "run")
_TRIED: Final = Status("ok", "Tried again", "ended")
_STILL_OPEN: Final = "Still open"
_FAILED: Final = "Failed now"
_OF_FAILURES: Final = frozenset({"status", "error", "errorType", "minDuration", "minLateness"})
"""The filters that a run no longer matches once it is tried again."""
_PARTLY: Final = Status("fail", "Done in part", "fail")
_BROKEN: Final = Status("fail", "Failed", "fail")


def fetch_list(api: Api, visit: Visit) -> Json:
    """Ask the API for the latest actions. Users have their own."""
    token = visit.query.get("page")
    query = {"handler": BATCH_CHANGE_HANDLER, "orderBy": "createdAt desc", "pageToken": token}
    return api.get("/v1/tasks", **query, pageSize=PAGE_SIZE)


def build_list(answer: Json, visit: Visit) -> Json:
    """Return the list."""
    rows = [_build_row(each, visit) for each in answer["tasks"]]
    sentence = "No action on many tasks has been started."
    if rows:
        sentence = f"{write_count(len(rows), 'action', 'actions')} on many tasks, the latest first."
    return {"title": "Actions", "sentence": sentence, "rows": rows, "next": answer.get("nextPageToken")}


def _write_title(task: Json, visit: Visit) -> str:
    """Return an action's title with its filters in words: the API's has them as it takes them, or has none."""
    payload, title = task["payload"], str(task["title"])
    chosen: Json = payload.get("executions") or payload.get("filter") or {}
    what, has_filters, _ = title.partition(" with ")
    if not chosen or not {"ids", "pauseId"}.isdisjoint(chosen) or not (has_filters or "executions" in payload):
        return title
    wanted = {name: write_value(name, str(text), visit) for name, text in chosen.items() if text}
    times = [f"{_BOUNDS[name]} {wanted.pop(name)}" for name in _BOUNDS if name in wanted]
    others = ", ".join(f"{name_filter(name).lower()} {text}" for name, text in wanted.items())
    return shorten(join_phrases(what, only_if(others, f"with {others}"), *times, separator=" "))


def _find_state(task: Json) -> Status:
    """Return what its task tells of an action."""
    if task["status"] == TaskStatus.ACTIVE and not task.get("runCount"):
        return _WAITS
    return _STATES.get(task["status"], _BROKEN)


def _build_row(task: Json, visit: Visit) -> Json:
    """Return an action of the list. How its retries have ended is on its own page."""
    state = _find_state(task)
    if task["status"] == TaskStatus.COMPLETED and "executions" in task["payload"]:
        state = _TRIED
    return {
        **task,
        "title": _write_title(task, visit),
        "whose": only_if(task["owner"] != SYSTEM_OWNER, task["owner"]),
        "state": state,
        "expected": task["payload"].get("expected"),
    }


def fetch(api: Api, visit: Visit, action_id: str) -> Json:
    """Ask the API for an action: its task, its latest run, who asked for it, and what of it can be taken back."""
    task, etag = api.task(action_id)
    if task["handler"] != BATCH_CHANGE_HANDLER:
        raise NotFound("action", action_id)
    return {
        "action": task,  # no task of a page: nobody has chosen the zone of what runs it
        "etag": etag,
        "by": _find_actor(api, task),
        "record": _find_record(api, action_id),
        "restorable": _count_restorable(api, task),
        "outcomes": _count_outcomes(api, task),
        "origin": find_origin(api, visit, (task["payload"].get("filter") or {}).get("pauseId")),
    }


def find_origin(api: Api, visit: Visit, action_id: str | None) -> Json | None:
    """Return the action that another one takes back: its id, title and time. None if there is none, or no more."""
    known = api.find(task_path(action_id)) if action_id else None
    return known and {"id": known["id"], "title": _write_title(known, visit), "at": known["createdAt"]}


def _find_actor(api: Api, task: Json) -> str:
    """Return who asked for an action: the first of its history."""
    entries = api.list_items(f"{task_path(task['id'])}/history", "entries")
    return name_actor(entries[-1].get("by")) if entries else str(task["owner"])


def _count_outcomes(api: Api, task: Json) -> list[Json]:
    """Return how many of the runs that an action retried are open and how many have failed now, and their lists.

    Empty if it retries none, or is under way.
    """
    chosen = task["payload"].get("executions")
    if chosen is None or task["status"] == TaskStatus.ACTIVE:
        return []
    if "ids" in chosen:
        return _look_at_named(api, chosen["ids"])
    asked = {**chosen, "until": min(filter(None, (chosen.get("until"), task["createdAt"])))}
    found = [_count_open(api, {name: text for name, text in asked.items() if name not in _OF_FAILURES})]
    failures = api.find("/v1/executions/failures", **asked, calls="false")
    if failures is not None:
        number = only_if(failures.get("isAtLeast"), "at least ") + f"{failures['count']:,}"
        found.append({"word": _FAILED, "count": failures["count"], "number": number, "query": urlencode(asked)})
    return found


def _count_open(api: Api, asked: Json) -> Json:
    """Return the number of runs that are open after an attempt that failed: those that an action may have retried."""
    count = 0
    is_cut = False
    for status in sorted(OPEN):
        page = api.get("/v1/executions", **{**asked, "status": status}, calls="false", pageSize=PAGE_SIZE)
        count += sum(any(tried["status"] in BAD for tried in each["attempts"]) for each in page["executions"])
        is_cut |= bool(page.get("nextPageToken"))
    return {"word": _STILL_OPEN, "count": count, "number": f"{only_if(is_cut, 'at least ')}{count:,}", "query": ""}


def _look_at_named(api: Api, named: Iterable[Json]) -> list[Json]:
    chosen = [*named]
    records = (api.find(execution_path(each["taskId"], each["executionId"])) for each in chosen[:PAGE_SIZE])
    counted = Counter(each["status"] for each in records if each is not None)
    counts = {_STILL_OPEN: OPEN, _FAILED: BAD}
    totals = {word: sum(counted[each] for each in statuses) for word, statuses in counts.items()}
    least = only_if(len(chosen) > PAGE_SIZE, "at least ")
    return [
        {"word": word, "count": count, "number": f"{least}{count:,}", "query": ""} for word, count in totals.items()
    ]


def _count_restorable(api: Api, task: Json) -> Json | None:
    """Return for how many tasks an action can be taken back: it has paused or resumed them. None if it did neither."""
    back = _TAKEN_BACK_BY.get(task["payload"].get("action", ""))
    if back is None:
        return None
    content = {"action": back, "filter": {"pauseId": task["id"]}, "dryRun": True}
    return api.post("/v1/tasks/batchChange", content)


def fetch_under_way(api: Api, visit: Visit) -> list[Json]:
    """Ask the API for the latest actions that are under way, and how far each is."""
    query = {"handler": BATCH_CHANGE_HANDLER, "status": TaskStatus.ACTIVE}
    found = []
    for task in api.list_items("/v1/tasks", "tasks", **query, pageSize=_OFFERED):
        done = _sum_up(_find_record(api, task["id"]))
        reached, expected = done["changed"] + done["refused"], task["payload"].get("expected")
        far = "waits to start"
        if _find_state(task) is not _WAITS:
            far = f"is under way: {reached:,} {'so far' if expected is None else f'of {expected:,}'}"
        found.append({"id": task["id"], "title": _write_title(task, visit), "at": task["createdAt"], "underWay": far})
    return found


def _find_record(api: Api, action_id: str) -> Json:
    """Return the latest run of an action. Empty if it has none yet."""
    listed = api.get(f"{task_path(action_id)}/executions", pageSize=1)["executions"]
    return api.get(execution_path(action_id, listed[0]["id"])) if listed else {}


def fetch_restorable(api: Api, visit: Visit) -> list[Json]:
    """Ask the API for the latest actions that still hold tasks paused: how many, since when, and who asked for it."""
    if not visit.may_change:
        return []
    query = {"handler": BATCH_CHANGE_HANDLER, "orderBy": "createdAt desc"}
    pauses = [
        each
        for each in api.list_items("/v1/tasks", "tasks", **query, pageSize=_LOOKED_AT)
        if _stops_everything(each["payload"]) and each["status"] != TaskStatus.ACTIVE
    ]
    counted = ((each, _count_restorable(api, each) or {}) for each in pauses[:_OFFERED])
    return [
        {
            "id": each["id"],
            "said": _write_paused(each, count),
            "by": _find_actor(api, each),
            "at": each["createdAt"],
            "words": _write_number(count),
        }
        for each, count in counted
        if count.get("count")
    ]


def _write_paused(task: Json, count: Json) -> str:
    owner = task["payload"]["filter"].get("owner")
    of_whom = only_if(owner, f" of {owner}")
    is_one = count["count"] == 1 and not count["isAtLeast"]
    return f"{_write_number(count)} {'task' if is_one else 'tasks'}{of_whom} {'is' if is_one else 'are'} paused"


def _stops_everything(payload: Json) -> bool:
    """Return whether an action pauses all active tasks, of everybody or of an owner."""
    chosen = payload.get("filter", {})
    is_pause = payload.get("action") == BatchAction.PAUSE
    return is_pause and chosen.get("status") == TaskStatus.ACTIVE and chosen.keys() <= {"status", "owner"}


def _write_number(count: Json) -> str:
    return f"{count['count']:,}{only_if(count['isAtLeast'], ' or more')}"


def send(api: Api, visit: Visit, texts: Mapping[str, str], action_id: str) -> Submitted | Again:
    """Stop an action. What it has not reached yet stays as it is."""
    if texts.get("verb") != "stop":
        raise InvalidInput("", "An action can only be stopped.", "Choose Stop, or leave the page.")
    fetch(api, visit, action_id)  # its id must be that of an action
    api.post(f"{task_path(action_id)}/cancel", etag=texts.get("etag", ""))
    return Submitted(f"actions/{action_id}", "stopped")


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of an action shows."""
    task, record = answer["action"], answer["record"]
    done = _sum_up(record)
    expected = task["payload"].get("expected")
    is_open = task["status"] == TaskStatus.ACTIVE
    to_do = None
    if is_open and expected is not None:
        to_do = max(0, expected - done["changed"] - done["refused"])

    refusals = done["refusals"]
    state = _find_state(task)
    if task["status"] == TaskStatus.COMPLETED and done["refused"]:
        state = _PARTLY
    elif task["status"] == TaskStatus.COMPLETED:
        state = _describe_outcomes(answer["outcomes"], done) or state
    return {
        **answer,
        "title": _write_title(task, visit),
        "state": state,
        "isOpen": is_open,
        "outdated": () if is_open else ("bulk", "retries"),
        "expected": expected,
        "reached": done["changed"] + done["refused"],
        "toDo": to_do,
        **{name: done[name] for name in _COUNTS},
        "marked": _write_marked(task["payload"], done.get("stayPaused", 0)),
        "refusals": refusals,
        "unnamed": done["refused"] - len(refusals),
        "again": None if is_open else _find_again(task["payload"], refusals),
        "mayStop": is_open and "cancel" in task.get("allowedVerbs", ()),
        "problem": _find_problem(record) if state is _BROKEN else "",
        "whatFor": _name_noun(task["payload"]),
        "isPause": task["payload"].get("action") == BatchAction.PAUSE,
        "isOfNamed": "ids" in (task["payload"].get("filter") or task["payload"].get("executions") or {}),
        **_build_restoration(answer["restorable"], done, task["payload"], is_open=is_open),
    }


def _describe_outcomes(outcomes: Iterable[Json], done: Json) -> Status | None:
    """Return how a retry has ended, if some of it is open or has failed. None if all that is known is well."""
    found = {each["word"]: each for each in outcomes}
    if found.get(_STILL_OPEN, {}).get("count"):
        return _RUNS
    failed = found.get(_FAILED, {"count": 0})
    count, tried = failed["count"], done["changed"]
    if not count:
        return None
    said = f"{failed['number']} of {tried:,} failed again"
    if done["skipped"] or count > tried:  # others have failed, too
        said = f"{failed['number']} {'has' if count == 1 else 'have'} failed now"
    elif count == tried:
        said = "it failed again" if tried == 1 else f"all {tried:,} failed again"
    return Status("fail", f"Done: {said}", "fail")


def _name_noun(payload: Json) -> str:
    return "runs" if "executions" in payload else "tasks"


def _find_problem(record: Json) -> str:
    error: Json = record.get("error") or {}
    return f"{error['type']}: {error['message']}" if error else str(record.get("message") or "")


def _sum_up(record: Json) -> Json:
    """Return how far an action is: as its result says, or else the steps that it has made so far."""
    content = record.get("content")
    if record.get("status") == ExecutionStatus.SUCCEEDED and isinstance(content, dict):
        return content
    counted: Counter[str] = Counter()
    refusals: list[Any] = []
    for step in record.get("steps") or ():
        result = step.get("result")
        if isinstance(result, dict):
            counted.update({name: result.get(name, 0) for name in (*_COUNTS, "stayPaused")})
            refusals += result.get("refusals", ())
    return {**{name: counted[name] for name in (*_COUNTS, "stayPaused")}, "refusals": refusals}


def _find_again(payload: Json, refusals: Iterable[Json]) -> tuple[str, list[tuple[str, str]]] | None:
    """Return the form that does it again for what failed: its address and fields. None if nothing did."""
    named = [*refusals]
    if not named:
        return None
    if "executions" in payload:
        return "retry", [("pick", f"{each['taskId']}/{each['executionId']}") for each in named if "executionId" in each]
    pause_id = payload["filter"].get("pauseId")
    fields = [("action", payload["action"]), *(("ids", each["taskId"]) for each in named)]
    if pause_id:
        fields.append(("pauseId", pause_id))
    return "bulk", fields


def _write_marked(payload: Json, marked: int) -> str:
    """Return how many tasks were paused before, and stayed so: the action only keeps them from going on, or no more."""
    if not marked:
        return ""
    if payload.get("action") == BatchAction.PAUSE:
        were = write_count(marked, "was already paused and now stays so", "were already paused and now stay so")
        return f"{were} until restored."
    stay = write_count(marked, "stays", "stay")
    return f"{stay} paused, as before the action: by a budget, or until a set time."


def _build_restoration(count: Json | None, done: Json, payload: Json, *, is_open: bool) -> Json:
    """Return how many tasks can be restored, and how many of the others it would leave alone, and why.

    What a resume has left paused is none of those that it resumed.
    """
    if count is None or is_open:
        return {"restore": "", "leftAlone": ""}
    is_pause = payload["action"] == BatchAction.PAUSE
    paused = done["changed"] - (0 if is_pause else done.get("stayPaused", 0))
    gone = 0 if count["isAtLeast"] else max(0, paused - count["count"])
    have = write_count(gone, "task has", "tasks have")
    said = f"{have} been {'resumed, restored' if is_pause else 'paused'}, changed, ended or deleted since."
    return {"restore": _write_number(count) if count["count"] else "", "leftAlone": only_if(gone, said)}
