"""What waits for somebody's decision: a run asks, and goes on once it is approved or rejected.

The buttons send what a tap on a link sends, ``{"approved": true}`` or ``{"approved": false}``, perhaps with a note, by
the API's operation for events. So they are offered only where the handler has declared that it takes that, and where
the API allows the caller to send it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.filters import OWNER, show_filters
from cloudsched.dashboard.forms.fields import Again, Submitted, describe_problem
from cloudsched.dashboard.times import find_instant, parse_instant
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import NeedCause, TaskStatus
from cloudsched.errors import CloudschedError, NotAwaited, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_MOST: Final = 200
_LISTED: Final = 50
_TOO_LATE: Final = (
    "Nobody waits for this answer any more: somebody has answered, the time is over, or the run has ended."
)


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for what waits, of all owners or of one: first what gives up soon, then what never does."""
    page = api.get("/v1/tasks", trouble=NeedCause.WAITING, owner=visit.query.get("owner"), pageSize=_MOST)
    tasks = sorted(page["tasks"], key=lambda each: each.get("givesUpAt", "never"))
    handlers = {each["name"]: each for each in api.list_items("/v1/handlers", "handlers")}
    waits = []
    for task in tasks[:_LISTED]:
        schemas = handlers.get(task["handler"], {}).get("eventSchemas", {})
        path = f"{task_path(task['id'])}/executions"
        for run in api.list_items(path, "executions", status=ExecutionStatus.SUSPENDED):
            record = api.find(execution_path(task["id"], run["id"])) or {}
            waits.append({**record, "eventSchemas": schemas, "task": task})
    count = {"value": len(tasks), "atLeast": "nextPageToken" in page}
    return {"waits": waits, "count": count, "error": ""}


def find_awaited(record: Json) -> Json | None:
    """Return the wait for an event at which an execution is suspended."""
    steps = reversed(record.get("steps", ()) if record["status"] == ExecutionStatus.SUSPENDED else ())
    return next((each for each in steps if (each["kind"], each["status"]) == ("EVENT", "WAITING")), None)


def make_decision(record: Json, task: Json, visit: Visit) -> Json | None:
    """Return what a suspended execution waits for, if that is an event that nobody has sent."""
    step = find_awaited(record)
    if step is None:
        return None
    sent = ((each["name"], each.get("executionId") or record["id"]) for each in task.get("events", ()))
    if (step["name"], record["id"]) in sent:  # and the run has not gone on with it yet
        return None
    schema = record["eventSchemas"].get(step["name"], {})
    fields = schema.get("properties", {})
    takes_choice = fields.get("approved", {}).get("type") == "boolean" and {*schema.get("required", ())} <= {"approved"}
    until = find_instant(step, "dueAt")
    may_answer = visit.may_change and "sendEvent" in task.get("allowedVerbs", ())
    return {
        "task_id": record["taskId"],
        "execution_id": record["id"],
        "event": step["name"],
        "question": step.get("asked", {}).get("text", ""),
        "title": record.get("title") or record["taskId"],
        "owner": task.get("owner", ""),
        "since": step["startedAt"],
        "until": until,
        "is_over": until is not None and until <= visit.now,
        "is_paused": task["status"] == TaskStatus.PAUSED,
        "may_answer": may_answer,
        "may_decide": may_answer and takes_choice,
        "takes_note": "note" in fields,
    }


def send(api: Api, visit: Visit, texts: Mapping[str, str]) -> Submitted | Again:
    """Approve or reject. The first answer counts: a later one is refused, and the page says so."""
    approved = {"approve": True, "reject": False}.get(texts.get("decision", ""))
    event = texts.get("event", "")
    if approved is None or event in {"", ".", ".."}:
        raise NotFound("decision", event)
    payload: Json = {"approved": approved}
    if note := texts.get("note", "").strip():
        payload["note"] = note
    path = f"{task_path(texts.get('task', ''))}/events/{quote(event, safe='')}"
    try:
        api.post(path, {"payload": payload, "executionId": texts.get("execution")})
    except CloudschedError as error:
        problem = describe_problem(error)
        said = _TOO_LATE if isinstance(error, NotAwaited) else str(problem)
        return Again({**fetch(api, visit), "error": said}, problem.status)
    return Submitted("decisions", texts["decision"])


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of decisions shows, the first to give up first."""
    found = (make_decision(each, each["task"], visit) for each in answer["waits"])
    rows = sorted(
        (each for each in found if each and not each["is_over"]),
        key=lambda each: (each["until"] is None, each["until"] or parse_instant(each["since"])),
    )
    return {**answer, "title": "Decisions", "rows": rows, "filters": show_filters(visit, (OWNER,))}
