"""An execution: its state, its steps, the chosen step, progress, calls and result."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.charts.axis import read_window
from cloudsched.dashboard.charts.legend import WATERFALL, list_legend
from cloudsched.dashboard.charts.waterfall import draw_axis
from cloudsched.dashboard.charts.waterfall_rows import Waterfall, make_waterfall
from cloudsched.dashboard.offered_verbs import explain_retry, fetch_startable, make_retry_question
from cloudsched.dashboard.status import BAD, OPEN, show_delivery, show_status, write_message
from cloudsched.dashboard.times import write_duration
from cloudsched.dashboard.views.compare import find_good
from cloudsched.dashboard.views.decisions import make_decision
from cloudsched.dashboard.views.execution_content import find_payload, may_have_changed, show_content
from cloudsched.dashboard.views.execution_row import find_lateness
from cloudsched.dashboard.views.execution_steps import build_lines, list_step, make_step_moves, read_number, write_shown
from cloudsched.dashboard.views.held_up import fetch_held_up
from cloudsched.dashboard.views.task import fetch_event_schemas
from cloudsched.dashboard.words import join_phrases, only_if, shorten
from cloudsched.domain.documents.delivery_channels import OPEN_DELIVERIES
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.journal import StepStatus
from cloudsched.domain.documents.task import FINAL_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

ROWS: Final = 180
"""The number of a waterfall's rows that are shown at once."""
_TREE: Final = 100
_CALLS: Final = 20
"""The number of the latest calls whose tasks are asked when they started."""
_TONES: Final = complete_table(
    ExecutionStatus,
    {
        ExecutionStatus.RUNNING: "run",
        ExecutionStatus.RETRYING: "retry",
        ExecutionStatus.SUSPENDED: "wait",
        ExecutionStatus.SUCCEEDED: "",
        ExecutionStatus.FAILED: "fail",
        ExecutionStatus.TIMED_OUT: "fail",
        ExecutionStatus.CANCELLED: "",
        ExecutionStatus.EXPIRED: "",
        ExecutionStatus.SKIPPED: "",
    },
)
"""The colour of the sentence's box for each status."""
_SUMS: Final = {
    "ran": "Ran for",
    "calls": "Its calls ran for",
    "worker": "Its calls waited to start for",
    "lock": "Waited for its lock",
    "retry": "Between attempts",
    "wait": "Suspended for",
    "lost": "Not reported for",
    "queue": "Queued for",
}
"""The names of the parts into which all of its time is divided."""


def fetch(api: Api, visit: Visit, task_id: str, execution_id: str) -> Json:
    """Ask the API for an execution, its task and the calls below it."""
    path = execution_path(task_id, execution_id)
    record = api.get(path)
    task, _ = api.task(task_id)
    tree = api.find(f"{task_path(task_id)}/tree", executionId=execution_id)

    answer = {
        "execution": _show_calls(api, record, tree),
        "task": task,
        "mayStart": fetch_startable(api, visit, task),
        "tree": tree,
        "logs": api.find(f"{path}/logs"),
        "child": _fetch_child(api, visit, record),
        "history": None,
        "eventSchemas": {},
        "deliveries": [],
        "heldUp": fetch_held_up(api, visit, record),
        "hasGood": record["status"] in BAD and find_good(api, task_path(task_id), record) is not None,
    }
    if record["status"] in OPEN:
        answer["cursor"] = hash_record(record)
    if may_have_changed(record, task):
        answer["history"] = api.find(f"{task_path(task_id)}/history")
    if _find_awaited(record):
        answer["eventSchemas"] = fetch_event_schemas(api, task)
    if task.get("deliveryChannels") or record.get("isDelivered"):  # it costs as much as the execution
        answer["deliveries"] = api.list_items(f"{path}/deliveries", "deliveries")
    return answer


def hash_record(record: Json) -> str:
    """Return a text that changes with an execution, for pages that show it as it goes on."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def _show_calls(api: Api, record: Json, tree: Json | None) -> Json:
    """Return an execution whose calls have the times at which their tasks started.

    Those of an open one that have finished are shown as such, before its handler notices them.
    """
    children = {child["task"]["id"]: child["task"] for child in (tree or {}).get("children", ())}
    is_open = record["status"] in OPEN  # what others did not wait for is left as it was then
    calls = [step for step in record.get("steps", ()) if step.get("child") in children]
    started = {step["child"]: _find_child_start(api, step["child"]) for step in calls[-_CALLS:]}

    def show(step: Json) -> Json:
        call = children.get(step.get("child"))
        if call is None:
            return step
        shown = {**step, "childStartedAt": started.get(call["id"])}
        if not is_open or step["status"] != StepStatus.WAITING:
            return shown
        if call["status"] in FINAL_STATUSES and not call.get("isRunning"):
            status = StepStatus.FAILED
            if call.get("outcome") == ExecutionStatus.SUCCEEDED:
                status = StepStatus.SUCCEEDED
            return {**shown, "status": status, "finishedAt": call["statusChangedAt"], "isUnnoticed": True}
        if not (call.get("isRunning") or started.get(call["id"])):
            waits = "waits for a worker" if call.get("offeredAt") else "has not started"
            return {**shown, "hasNotStarted": waits}
        return shown

    return {**record, "steps": [show(step) for step in record.get("steps", ())]}


def _find_child_start(api: Api, child: str) -> str | None:
    found = api.list_items(f"{task_path(child)}/executions", "executions", pageSize=1)
    return next((each.get("startedAt") for each in found), None)


def _find_step(record: Json, visit: Visit) -> Json | None:
    """Return the chosen step."""
    chosen = read_number(visit.query.get("step"))
    return next((each for each in record.get("steps", []) if each["number"] == chosen), None)


def _fetch_child(api: Api, visit: Visit, record: Json) -> Json | None:
    """Ask for the task of the chosen call, which has the call's payload."""
    step = _find_step(record, visit)
    if step is None or not step.get("child"):
        return None
    return api.find(task_path(step["child"]))


def _find_awaited(record: Json) -> str | None:
    """Return the event that a suspended execution waits for."""
    if record["status"] != ExecutionStatus.SUSPENDED:
        return None
    steps = reversed(record.get("steps", []))
    return next((each["name"] for each in steps if (each["kind"], each["status"]) == ("EVENT", "WAITING")), None)


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of an execution shows."""
    record = answer["execution"]
    task = answer["task"]
    verbs = record.get("allowedVerbs", ())
    path = f"tasks/{task['id']}/executions/{record['id']}"
    payload, payload_note = find_payload(record, task, answer["history"])

    shown = {
        **answer,
        **_build_steps(answer, visit),
        "title": f"{task['title']}, {visit.moment(record['scheduledFor']).text}",
        "sentence": _write_sentence(record, visit, answer["heldUp"]),
        "tone": _TONES.get(record["status"], ""),
        "isOpen": record["status"] in OPEN,
        "hasStarted": record["status"] in OPEN or bool(record.get("startedAt")),
        "branches": [*_walk(answer["tree"])][1 : _TREE + 1],
        "payload": show_content(payload, f"{path}/payload.json"),
        "payloadNote": payload_note,
        "result": None,
        "deliveries": [{**each, "word": show_delivery(each["status"]).word.lower()} for each in answer["deliveries"]],
        "delivered": _describe_deliveries(record, task, answer["deliveries"]),
        "awaited": None,
        "decision": None,
        "retryQuestion": None,
        "whyNoRetry": explain_retry(task, record, may_start=answer["mayStart"]),
    }
    if not shown["isOpen"]:
        shown["result"] = show_content(record.get("content"), f"{path}/result.json")
    if "sendEvent" in verbs:
        shown["awaited"] = _find_awaited(record)
        shown["decision"] = make_decision({**record, "eventSchemas": answer["eventSchemas"]}, task, visit)
    if "retry" in verbs:
        shown["retryQuestion"] = make_retry_question(task, record)
    return shown


def _build_steps(answer: Json, visit: Visit) -> Json:
    """Return what the waterfall shows, and the chosen step."""
    record = answer["execution"]
    is_true = visit.query.get("scale") == "true"
    waterfall = make_waterfall(record, visit.now, true_scale=is_true, window=read_window(visit))
    offset = read_number(visit.query.get("row"))
    axis = draw_axis(waterfall, visit.zone)
    lines = build_lines(waterfall.rows[offset : offset + ROWS], waterfall, visit)

    shown: Json = {
        "facts": [*_list_facts(record, waterfall)],
        "axis": axis,
        "lines": lines,
        "legend": list_legend(WATERFALL, [axis, *(line["chart"] for line in lines)]),
        "about": join_phrases(write_shown(waterfall, visit), waterfall.gaps_text, separator="; "),
        "moves": make_step_moves(waterfall, visit),
        "isTrueScale": is_true,
        "moreRows": None,
        "chosen": read_number(visit.query.get("step")),
        "step": _find_step(record, visit),
        "stepFacts": [],
        "retryFrom": None,
    }
    if len(waterfall.rows) > offset + ROWS:
        shown["moreRows"] = str(offset + ROWS)
    if step := shown["step"]:
        shown["stepFacts"] = [*list_step(step, visit, answer["child"])]
        if "retry" in record.get("allowedVerbs", ()):
            shown["retryFrom"] = step["number"]
    return shown


def _write_sentence(record: Json, visit: Visit, held_up: str) -> str:
    status = show_status(record["status"])
    if held_up:
        return f"{status.word}. {held_up}"
    if message := write_message(record, visit):
        return f"{status.word}. {message}"
    if record["status"] == ExecutionStatus.RETRYING and record.get("nextAttemptAt"):
        moment = visit.moment(record["nextAttemptAt"])
        return f"Its last attempt failed. The next one starts {moment.text}, {moment.relative}."
    if record.get("error") and record["status"] in OPEN:
        error = record["error"]
        return f"{status.word}. An earlier attempt ended with {error['type']}: {shorten(error['message'])}"
    if record.get("error"):
        return f"{status.word} with {record['error']['type']}: {shorten(record['error']['message'])}"
    return f"{status.word}."


def _list_facts(record: Json, waterfall: Waterfall) -> Iterator[tuple[str, str]]:
    late = find_lateness(record)
    if late is not None:
        yield "Late by", write_duration(late)
        yield "Total", write_duration(sum(waterfall.sums.values(), timedelta(0)))
        for name, length in waterfall.sums.items():
            if length or name == "ran":
                yield _SUMS[name], write_duration(length)
    yield "Attempts ended", str(len(record["attempts"]) + record.get("omittedAttempts", 0))
    asked_by = "its schedule" if record.get("trigger") == Trigger.SCHEDULE else "hand"
    yield "Started by", asked_by
    queries, tokens = record.get("queries", 0), record.get("tokens", 0)
    yield "Queries and tokens", f"{queries:,} queries, {tokens:,} tokens" if queries or tokens else "none recorded"


def _walk(tree: Json | None, depth: int = 0) -> Iterator[tuple[int, Json]]:
    if tree is None:
        return
    yield depth, tree["task"]
    for child in tree.get("children", []):
        yield from _walk(child, depth + 1)


def _describe_deliveries(record: Json, task: Json, deliveries: Sequence[Json]) -> str:
    channels = ", ".join(str(channel).lower() for channel in task.get("deliveryChannels", []))
    if not channels:
        return "The result is not delivered: the task names no channels."
    if record.get("isDelivered"):
        return f"Delivered to {channels}."
    if not deliveries:
        return f"Nothing was to be delivered to {channels}, or the record of it is gone."
    may_arrive = any(each["status"] in OPEN_DELIVERIES for each in deliveries)
    return f"Not delivered to {only_if(', ' in channels, 'all of ')}{channels}{only_if(may_arrive, ' yet')}."
