"""What waits for somebody's decision: a run asks, and goes on once it is approved or rejected.

The buttons send what a tap on a link sends, ``{"approved": true}`` or ``{"approved": false}``, perhaps with a note, by
the API's operation for events. So they are offered only where the handler has declared that it takes that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.forms.fields import Again, Submitted
from cloudsched.dashboard.forms.problems import describe_problem
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import NeedCause
from cloudsched.errors import CloudschedError, NotAwaited, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LISTED: Final = 50
_RUNS: Final = 5
"""The number of a task's latest runs that are looked at."""
_WINDOWS: Final = (timedelta(days=3650), timedelta(days=7), timedelta(days=1), timedelta(hours=1))
_MAX_NOTE: Final = 500
"""The most characters of a note, as in answers by a tap."""
_TOO_LATE: Final = (
    "Nobody waits for this answer any more: somebody has answered, the time is over, or the run has ended."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDecision:
    """A wait for an answer."""

    task_id: str
    execution_id: str
    event: str
    title: str
    owner: str
    href: str
    since: str
    waited: str
    until: str | None
    """The instant at which it gives up. None if it never does."""
    may_answer: bool
    """True if the caller may send what it waits for."""
    may_decide: bool
    """True if Approve and Reject are offered."""
    takes_note: bool


def list_first_waits(api: Api, visit: Visit, until: datetime | None = None) -> tuple[list[Json], bool]:
    """Return the tasks whose waits give up first, and whether there are more. The API lists the last ones first."""
    found: list[Json] = []
    is_cut = False
    for window in _WINDOWS:
        end = min(filter(None, [until, visit.now + window]))
        owner = visit.query.get("owner")
        page = api.get(
            "/v1/tasks", trouble=NeedCause.WAITING, troubleUntil=end.isoformat(), owner=owner, pageSize=_LISTED
        )
        if found and not page["tasks"]:
            return found, is_cut
        found = page["tasks"][::-1]
        if not page.get("nextPageToken"):
            return found, is_cut
        is_cut = True
    return found, is_cut


def fetch_waits(api: Api, tasks: Iterable[Json]) -> list[Json]:
    """Ask the API for the suspended executions of tasks, with their steps, and for what their handlers take."""
    handlers = {each["name"]: each for each in api.list_items("/v1/handlers", "handlers")}
    found = []
    for task in tasks:
        for each in api.list_items(f"{task_path(task['id'])}/executions", "executions", pageSize=_RUNS):
            if each["status"] == ExecutionStatus.SUSPENDED and (
                record := api.find(execution_path(task["id"], each["id"]))
            ):
                schemas = handlers.get(task["handler"], {}).get("eventSchemas", {})
                found.append({**record, "task": task, "eventSchemas": schemas})
    return found


def list_decisions(waits: Iterable[Json], visit: Visit) -> list[ShownDecision]:
    """Return the waits for events, those that give up first first."""
    found = [made for record in waits if (made := make_decision(record, record.get("task", {}), visit))]
    return sorted(found, key=lambda each: (each.until is None, parse_instant(each.until or each.since)))


def make_decision(record: Json, task: Json, visit: Visit) -> ShownDecision | None:
    """Return what a suspended execution waits for, if that is an event."""
    steps = (each for each in reversed(record.get("steps", ())) if each["kind"] == "EVENT")
    step = next((each for each in steps if each["status"] == "WAITING"), None)
    if step is None or record["status"] != ExecutionStatus.SUSPENDED or _is_answered(record, step, task):
        return None
    schema = record.get("eventSchemas", {}).get(step["name"])
    may_send = visit.may_change and "sendEvent" in task.get("allowedVerbs", ())
    return ShownDecision(
        task_id=record["taskId"],
        execution_id=record["id"],
        event=step["name"],
        title=record.get("title") or record["taskId"],
        owner=task.get("owner", ""),
        href=f"tasks/{record['taskId']}/executions/{record['id']}",
        since=step["startedAt"],
        waited=write_duration(max(timedelta(0), visit.now - parse_instant(step["startedAt"]))),
        until=step.get("dueAt"),
        may_answer=may_send,
        may_decide=may_send and takes_decision(schema),
        takes_note="note" in (schema or {}).get("properties", {}),
    )


def _is_answered(record: Json, step: Json, task: Json) -> bool:
    """Return whether the answer is there, and the run has not gone on with it yet."""
    return any(
        event["name"] == step["name"] and event.get("executionId") in {None, record["id"]}
        for event in task.get("events", ())
    )


def takes_decision(schema: Mapping[str, Any] | None) -> bool:
    """Return whether a handler has declared that it takes yes or no, and needs no more."""
    if not schema:
        return False
    approved = schema.get("properties", {}).get("approved", {})
    return approved.get("type") == "boolean" and set(schema.get("required", ())) <= {"approved"}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for what waits for a decision, of all owners or of one: with a timeout, and without."""
    tasks, is_cut = list_first_waits(api, visit)
    known = {each["id"] for each in tasks}
    owner = visit.query.get("owner")
    page = api.get("/v1/executions", status=ExecutionStatus.SUSPENDED, owner=owner, pageSize=_LISTED)
    for task_id in dict.fromkeys(each["taskId"] for each in page["executions"]):
        if task_id not in known and (task := api.find(task_path(task_id))):
            tasks.append(task)
    return {"waits": fetch_waits(api, tasks), "isAtLeast": is_cut or bool(page.get("nextPageToken"))}


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
        if len(note) > _MAX_NOTE:
            return Again({**fetch(api, visit), "error": f"A note has at most {_MAX_NOTE} characters. Shorten it."}, 400)
        api.post(path, {"payload": payload, "executionId": texts.get("execution")})
    except NotAwaited:
        return Again({**fetch(api, visit), "error": _TOO_LATE}, 409)
    except CloudschedError as error:
        problem = describe_problem(error)
        return Again({**fetch(api, visit), "error": str(problem)}, problem.status)
    return Submitted("decisions", texts["decision"])


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of decisions shows."""
    rows = list_decisions(answer["waits"], visit)
    count = write_count(len(rows), "run waits", "runs wait")
    said = f"{only_if(answer['isAtLeast'], 'At least ')}{count} for an answer."
    if not rows and not answer["isAtLeast"]:
        said = "Nothing waits for an answer."
    return {
        "title": "Decisions",
        "sentence": said,
        "rows": rows,
        "owner": visit.query.get("owner", ""),
        "error": answer.get("error", ""),
    }
