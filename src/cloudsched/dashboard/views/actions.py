"""The actions on many tasks: who did what to how many, how far it is, what failed, and what can be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.filters import name_filter, write_value
from cloudsched.dashboard.forms.fields import Again, Submitted
from cloudsched.dashboard.status import Status
from cloudsched.dashboard.times import find_instant
from cloudsched.dashboard.views.task import name_actor
from cloudsched.dashboard.words import write_count
from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.batch_change import BatchAction, BatchState
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LOOKED_AT: Final = 20
"""The number of latest actions among which Home and Tasks look."""
_OFFERED: Final = 3
"""The most of them that are shown there."""
_BACK: Final[dict[str, str]] = {BatchAction.PAUSE: BatchAction.RESUME, BatchAction.RESUME: BatchAction.PAUSE}
"""The action that takes back another one."""
_STATES: Final = {
    TaskStatus.ACTIVE: Status("run", "Under way", "run"),
    TaskStatus.CANCELLED: Status("cancel", "Stopped", "ended"),
    BatchState.DONE: Status("ok", "Done", "ok"),
    BatchState.DONE_IN_PART: Status("fail", "Done in part", "fail"),
}
_WAITS: Final = Status("due", "Waits to start", "due")
_TRIED: Final = Status("ok", "Tried again", "ended")
"""Of a retry: how the runs end is not known by then."""
_BROKEN: Final = Status("fail", "Failed", "fail")


def fetch_list(api: Api, visit: Visit) -> Json:
    """Ask the API for the latest actions. Users have their own."""
    return _fetch_latest(api, pageSize=50, pageToken=visit.query.get("page"))


def _fetch_latest(api: Api, **query: Any) -> Json:
    return api.get("/v1/tasks", handler=BATCH_CHANGE_HANDLER, orderBy="createdAt desc", **query)


def build_list(answer: Json, visit: Visit) -> Json:
    """Return the list."""
    rows = [
        {
            **_build_action(each),
            "whose": each["owner"] if each["owner"] != SYSTEM_OWNER else "",
            "filters": ", ".join(map(": ".join, list_filters(_find_chosen(each), visit))),
        }
        for each in answer["tasks"]
    ]
    return {"title": "Actions", "rows": rows, "next": answer.get("nextPageToken")}


def _build_action(task: Json) -> Json:
    """Return an action as its record tells it, in a list and on its page."""
    outcome = task["payload"].get("outcome", {})
    of_runs = "executions" in task["payload"]
    is_retry = of_runs or task["payload"]["action"] == BatchAction.RETRY_FAILED
    state = _STATES.get(outcome.get("state") if task["status"] == TaskStatus.COMPLETED else task["status"], _BROKEN)
    if task["status"] == TaskStatus.ACTIVE and not outcome:
        state = _WAITS
    elif is_retry and state is _STATES[BatchState.DONE]:
        state = _TRIED
    return {
        **task,
        "state": state,
        "outcome": outcome,
        "ofRuns": of_runs,
        "isRetry": is_retry,
    }


def _find_chosen(task: Json) -> Json:
    payload = task["payload"]
    until = {"pausedUntil": payload["until"]} if "until" in payload else {}
    chosen: Json = payload.get("executions") or {**payload.get("filter", {}), **until}
    return chosen


def list_filters(chosen: Mapping[str, Any], visit: Visit) -> list[tuple[str, str]]:
    """Return what chooses tasks or runs, as names and values in words. Those that are named one by one have none."""
    return [
        (name_filter(name), write_value(name, str(value), visit))
        for name, value in chosen.items()
        if name not in {"ids", "pick", "pauseId"}
    ]


def fetch(api: Api, visit: Visit, action_id: str) -> Json:
    """Ask the API for an action: its task, its latest run, who asked for it, and what of it can be taken back."""
    task, etag = api.task(action_id)
    if task["handler"] != BATCH_CHANGE_HANDLER:
        raise NotFound("action", action_id)
    back = _BACK.get(task["payload"].get("action", "")) if visit.may_change else None
    return {
        "action": task,  # no task of a page: nobody has chosen the zone of what runs it
        "etag": etag,
        "by": _find_actor(api, task),
        "record": next(iter(api.get(f"{task_path(action_id)}/executions", pageSize=1)["executions"]), {}),
        "back": back,
        "restorable": _count_restorable(api, action_id, back) if back and task["status"] != TaskStatus.ACTIVE else None,
    }


def _count_restorable(api: Api, action_id: str, back: str) -> Json:
    """Ask the API how many tasks of an action can be taken back now."""
    content = {"action": back, "filter": {"pauseId": action_id}, "dryRun": True}
    return {**api.post("/v1/tasks/batchChange", content)["count"]}


def _find_actor(api: Api, task: Json) -> str:
    """Return who asked for an action: the first of its history."""
    entries = api.list_items(f"{task_path(task['id'])}/history", "entries")
    return name_actor(entries[-1].get("by")) if entries else str(task["owner"])


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
    action = _build_action(task)
    chosen = _find_chosen(task)
    refusals = (record.get("content") or {}).get("refusals", ())
    error = record.get("error")
    return {
        **answer,
        **action,
        "isOpen": task["status"] == TaskStatus.ACTIVE,
        "which": list_filters(chosen, visit),
        "gone": _count_gone(action["outcome"].get("changed"), answer["restorable"]),
        "pauseId": chosen.get("pauseId"),
        "runs": chosen.get("ids", ()) if action["ofRuns"] else (),
        "runsQuery": urlencode(chosen) if action["ofRuns"] and "ids" not in chosen else "",
        "refusals": refusals,
        "again": _list_again(task["payload"], refusals),
        "problem": f"{error['type']}: {error['message']}" if error and action["state"] is _BROKEN else "",
    }


def _count_gone(changed: Json | None, restorable: Json | None) -> Json | None:
    """Return how many of the tasks that an action has changed cannot be taken back. None if that is not known."""
    if not changed or not restorable or restorable["atLeast"]:
        return None
    return {**changed, "value": changed["value"] - restorable["value"]}


def _list_again(payload: Json, refusals: list[Json]) -> Json:
    """Return the fields of the form that does it again for what failed."""
    if "executions" in payload:
        return {"pick": " ".join(f"{each['taskId']}/{each['executionId']}" for each in refusals)}
    ids = " ".join(each["taskId"] for each in refusals)
    return {"action": payload["action"], "pauseId": payload["filter"].get("pauseId"), "ids": ids}


def fetch_notes(api: Api, visit: Visit) -> list[Json]:
    """Ask the API for the latest actions that are under way, or have paused many of which some can be restored."""
    found: list[Json] = []
    for each in map(_build_action, _fetch_latest(api, pageSize=_LOOKED_AT)["tasks"]):
        changed = each["outcome"].get("changed")
        if each["status"] == TaskStatus.ACTIVE:
            said = each["state"].word.lower()
            if changed:
                said = f"is {said}: {write_count(changed, 'is', 'are')} done"
            found.append({**each, "said": said})
        elif (
            visit.may_change
            and changed
            and _pauses_many(each["payload"], visit)
            and _count_restorable(api, each["id"], BatchAction.RESUME)["value"]
        ):
            said = "has paused tasks"
            found.append({**each, "said": said, "by": _find_actor(api, each)})
    return found[:_OFFERED]


def _pauses_many(payload: Json, visit: Visit) -> bool:
    """Return whether an action has paused more than one task, and that has not ended yet."""
    end = find_instant(payload, "until")
    is_pause = payload.get("action") == BatchAction.PAUSE and (end is None or end > visit.now)
    return is_pause and payload["outcome"]["changed"]["value"] > 1
