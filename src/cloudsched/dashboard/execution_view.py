"""An execution: its state, its steps, the chosen step, progress, calls and result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from urllib.parse import quote

from cloudsched.dashboard.chart_axis import WHOLE, Move, find_parts, make_moves, read_window, write_window
from cloudsched.dashboard.offered_verbs import explain_retry, fetch_startable, make_retry_question
from cloudsched.dashboard.status import OPEN, shorten, show_status, write_message
from cloudsched.dashboard.task_view import fetch_event_schemas
from cloudsched.dashboard.times import parse_instant, write_duration, write_took
from cloudsched.dashboard.visit import Api, Json, Visit, task_path
from cloudsched.dashboard.waterfall import Waterfall, WaterfallRow, draw_axis, draw_ground, draw_row, make_waterfall
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.journal import StepStatus
from cloudsched.domain.documents.task import FINAL_STATUSES

TIMES: Final = "\N{MULTIPLICATION SIGN}"


def write_shown(waterfall: Waterfall, visit: Visit) -> str:
    """Return the part of the time that is shown. Empty for all of it."""
    if waterfall.scale is waterfall.whole:
        return ""
    start, end = (at.astimezone(visit.zone) for at in waterfall.scale.span)
    return f"{start.day} {start:%b %H:%M:%S} to {end.day} {end:%b %H:%M:%S %z}"


def make_step_moves(waterfall: Waterfall, visit: Visit) -> dict[str, Move]:
    """Return the buttons that show another part of the time."""
    whole, (start, end) = waterfall.whole, waterfall.scale.span
    shown = WHOLE if waterfall.scale is whole else (whole.place(start), whole.place(end))
    parts = find_parts(shown, whole.place(waterfall.now) if waterfall.is_open else None)
    moved = replace(visit, query={name: value for name, value in visit.query.items() if name != "row"})
    return make_moves(
        {
            key: write_window(moved, *whole.span, part, "steps", whole.find_instant) if part else None
            for key, part in parts.items()
        }
    )


def build_lines(rows: Iterable[WaterfallRow], waterfall: Waterfall, visit: Visit) -> list[Json]:
    """Return rows as they are shown. Those who do not see the chart have its content in words, as ``hidden``."""
    ground = draw_ground(waterfall, visit.zone)
    lines = []
    for row in rows:
        tries = f", {row.tries} attempts" if row.tries > 1 else ""
        waited = f", waited {write_duration(row.waited)}" if row.waited else ""
        lines.append(
            {
                "number": row.number,
                "kind": row.kind,
                "name": shorten(row.name, 60) + (f" {TIMES} {row.count:,}" if row.count > 1 else ""),
                "status": row.status,
                "took": write_duration(row.took),
                "chart": draw_row(row, waterfall.scale, ground),
                "hidden": f"{show_status(row.status).word.lower()}{tries}{waited}",
            }
        )
    return lines


def list_step(step: Json, visit: Visit, child: Json | None = None) -> list[tuple[str, str, bool]]:
    """Return the facts about a step: name, value, and whether a machine reads it. A call's have its payload, too."""
    started = visit.moment(step["startedAt"])
    facts = [("Status", show_status(step["status"]).word, False), ("Started", started.text, False)]
    finished = "Finished, not noticed yet" if step.get("isUnnoticed") else "Finished"
    for name, label in (("finishedAt", finished), ("dueAt", "Due")):
        if step.get(name):
            facts.append((label, visit.moment(step[name]).text, False))
    if step.get("attempts"):
        facts.append(("Attempts", str(step["attempts"]), False))
    for number, each in enumerate(step.get("tries", ()), step.get("attempts", 0) - len(step.get("tries", ())) + 1):
        facts.append((f"Try {number}", f"{visit.moment(each['startedAt']).text}, {write_took(each)}", False))
    if child is not None and not child.get("children"):
        facts.append(("Payload", shorten(json.dumps(child.get("payload", {}), ensure_ascii=False), 4000), True))
    elif step["kind"] == "STEP":
        facts.append(("Arguments", "not recorded: its handler computes them again", False))
    if "result" in step:
        facts.append(("Result", shorten(json.dumps(step["result"], ensure_ascii=False), 4000), True))
    if step.get("error"):
        facts.append(("Error", f"{step['error']['type']}: {step['error']['message']}", True))
    if step.get("sender"):
        facts.append(("Sent by", str(step["sender"].get("subject", "")), False))
    return facts


ROWS: Final = 180
"""The number of a waterfall's rows that are shown at once."""
_TREE: Final = 100
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

FOLDED: Final = 2000
"""Longer JSON than this is folded."""
_SHOWN: Final = 20_000
"""The number of its characters that are shown. The download has all of it."""


@dataclass(frozen=True, slots=True)
class Content:
    """JSON of a run's payload or result, as it is shown."""

    text: str
    size: str
    is_folded: bool
    download: str
    """The address of the complete content, below the mount. Empty if this is all of it."""


def show_content(content: object, path: str) -> Content:
    """Return JSON as it is shown: long texts folded, very long ones cut."""
    text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)
    size = len(text.encode())
    words = f"{size:,} bytes" if size < 1000 else f"{size / 1000:,.1f} kB"  # noqa: PLR2004 - a kilobyte
    return Content(
        shorten(text, _SHOWN), words, is_folded=len(text) > FOLDED, download=path if len(text) > FOLDED else ""
    )


def fetch(api: Api, visit: Visit, task_id: str, execution_id: str) -> Json:
    """Ask the API for an execution, its task and the calls below it."""
    path = f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}"
    record, task = api.get(path), api.task(task_id)[0]
    tree = api.find(f"{task_path(task_id)}/tree", executionId=execution_id)
    return {
        "execution": _show_ends(record, tree),
        "task": task,
        "mayStart": fetch_startable(api, visit, task),
        "tree": tree,
        "logs": api.find(f"{path}/logs"),
        "child": _fetch_child(api, visit, record),
        "history": api.find(f"{task_path(task_id)}/history") if _may_have_changed(record, task) else None,
        "eventSchemas": fetch_event_schemas(api, task) if _find_awaited(record) else {},
        "deliveries": (api.find(f"{path}/deliveries") or {}).get("deliveries", [])
        if task.get("deliveryChannels") or record.get("isDelivered")  # it costs as much as the execution
        else [],
    }


def _show_ends(record: Json, tree: Json | None) -> Json:
    """Return an open execution whose finished calls are shown as such, before its handler notices them."""
    if record["status"] not in OPEN:
        return record  # what it did not wait for is left as it was then
    calls = [child["task"] for child in (tree or {}).get("children", ())]
    ended = {call["id"]: call for call in calls if call["status"] in FINAL_STATUSES and not call.get("isRunning")}
    steps = []
    for step in record.get("steps", ()):
        if (task := ended.get(step.get("child"))) is not None and step["status"] == "WAITING":
            is_good = task.get("outcome") == ExecutionStatus.SUCCEEDED
            status = StepStatus.SUCCEEDED if is_good else StepStatus.FAILED
            ending = {"status": status, "finishedAt": task["statusChangedAt"], "isUnnoticed": True}
            steps.append({**step, **ending})
        else:
            steps.append(step)
    return {**record, "steps": steps}


def _fetch_child(api: Api, visit: Visit, record: Json) -> Json | None:
    """Ask for the task of the chosen call, which has the call's payload."""
    chosen = _read_number(visit.query.get("step"))
    child = next((each.get("child") for each in record.get("steps", []) if each["number"] == chosen), None)
    return api.find(task_path(child)) if child else None


def _may_have_changed(record: Json, task: Json) -> bool:
    """Return whether an edit may have changed the task's payload since this run."""
    is_own = "payload" in record or record.get("hasUnrecordedPayload")
    return not is_own and not task.get("children") and task["revision"] > 1


def _find_awaited(record: Json) -> str | None:
    names = [each["name"] for each in record.get("steps", []) if (each["kind"], each["status"]) == ("EVENT", "WAITING")]
    return names[-1] if names and record["status"] == "SUSPENDED" else None


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of an execution shows."""
    record, task = answer["execution"], answer["task"]
    is_true = visit.query.get("scale") == "true"
    waterfall = make_waterfall(record, visit.now, true_scale=is_true, window=read_window(visit))
    offset, chosen = (_read_number(visit.query.get(name)) for name in ("row", "step"))
    step = next((each for each in record.get("steps", []) if each["number"] == chosen), None)
    awaited = _find_awaited(record)
    is_open, verbs = record["status"] in OPEN, record.get("allowedVerbs", ())
    path = f"tasks/{task['id']}/executions/{record['id']}"
    payload, payload_note = find_payload(record, task, answer["history"])
    result = None if is_open else record.get("content")
    return {
        **answer,
        "title": f"{task['title']}, {visit.moment(record['scheduledFor']).text}",
        "sentence": _write_sentence(record, visit),
        "tone": _TONES.get(record["status"], ""),
        "facts": _list_facts(record, waterfall),
        "axis": draw_axis(waterfall, visit.zone),
        "lines": build_lines(waterfall.rows[offset : offset + ROWS], waterfall, visit),
        "chosen": chosen,
        "about": "; ".join(filter(None, [write_shown(waterfall, visit), waterfall.gaps_text])),
        "moves": make_step_moves(waterfall, visit),
        "isTrueScale": is_true,
        "moreRows": str(offset + ROWS) if len(waterfall.rows) > offset + ROWS else None,
        "isOpen": is_open,
        "step": step,
        "stepFacts": list_step(step, visit, answer["child"]) if step else [],
        "retryFrom": step["number"] if step and "retry" in verbs else None,
        "branches": list(_walk(answer["tree"], 0))[1 : _TREE + 1] if answer["tree"] else [],
        "payload": None if payload is None else show_content(payload, f"{path}/payload.json"),
        "payloadNote": payload_note,
        "result": None if result is None else show_content(result, f"{path}/result.json"),
        "delivered": _describe_deliveries(record, task, are_known=bool(answer["deliveries"])),
        "awaited": awaited if "sendEvent" in verbs else None,
        "retryQuestion": make_retry_question(task, record) if "retry" in verbs else None,
        "whyNoRetry": explain_retry(task, record, may_start=answer["mayStart"]),
    }


def _write_sentence(record: Json, visit: Visit) -> str:
    status = show_status(record["status"])
    if message := write_message(record, visit):
        return f"{status.word}. {message}"
    if record["status"] == "RETRYING" and record.get("nextAttemptAt"):
        moment = visit.moment(record["nextAttemptAt"])
        return f"Its last attempt failed. The next one starts {moment.text}, {moment.relative}."
    if record.get("error"):
        return f"{status.word} with {record['error']['type']}: {shorten(record['error']['message'])}"
    return f"{status.word}."


_SUMS: Final = {
    "ran": "A function ran for",
    "calls": "Its calls ran for",
    "lock": "Waited for its lock",
    "retry": "Waited to try again",
    "wait": "Suspended for",
    "queue": "Queued for",
}
"""The names of the parts into which all of its time is divided."""


def _list_facts(record: Json, waterfall: Waterfall) -> list[tuple[str, str]]:
    due = parse_instant(record["scheduledFor"])
    started = parse_instant(record["startedAt"]) if record.get("startedAt") else None
    facts = []
    if started is not None:
        facts.append(("Late by", write_duration(max(started - due, timedelta(0)))))
        facts.append(("In all", write_duration(sum(waterfall.sums.values(), timedelta(0)))))
        facts += [
            (_SUMS[name], write_duration(length)) for name, length in waterfall.sums.items() if length or name == "ran"
        ]
    attempts = len(record["attempts"]) + record.get("omittedAttempts", 0)
    facts.append(("Attempts that ended", str(attempts)))
    facts.append(("Asked for by", "its schedule" if record.get("trigger") == Trigger.SCHEDULE else "hand"))
    facts.append(("Cost", f"{record.get('queries', 0):,} queries, {record.get('tokens', 0):,} tokens"))
    return facts


def _walk(tree: Json, depth: int) -> list[tuple[int, Json]]:
    found = [(depth, tree["task"])]
    for child in tree.get("children", []):
        found += _walk(child, depth + 1)
    return found


def _describe_deliveries(record: Json, task: Json, *, are_known: bool) -> str:
    channels = [str(channel).lower() for channel in task.get("deliveryChannels", [])]
    if not channels:
        return "Its result is delivered to nobody: the task names no channels."
    if record.get("isDelivered"):
        return f"Delivered to {', '.join(channels)}."
    if not are_known:
        return f"Nothing of it was to be delivered to {', '.join(channels)}, or how far that came is not kept."
    return f"Not delivered to all of {', '.join(channels)} yet."


def find_payload(record: Json, task: Json, history: Json | None) -> tuple[object, str]:
    """Return a run's payload, None if it is not known, and its source, or the reason why it is not known."""
    if record.get("hasUnrecordedPayload"):
        return None, "It had a payload of its own, which was too large to be kept beside the result."
    if "payload" in record:
        return record["payload"], "It had this payload for itself."
    if task.get("children"):
        return None, "It runs other tasks, each with a payload of its own."
    began = parse_instant(record.get("startedAt") or record["scheduledFor"])
    entries = (history or {}).get("entries", [])
    later = [each for each in entries if each["action"] == "EDITED" and parse_instant(each["at"]) >= began]
    if any(field["field"] in {"payload", "handler"} for each in later for field in each.get("fields", ())):
        return None, "Its task's payload has been edited since, and what it was is not kept."
    since = sum(parse_instant(each["at"]) >= began for each in entries)
    next_before = entries[since]["number"] if since < len(entries) else 0
    is_cut = bool(entries) and entries[0]["number"] - since > next_before
    if is_cut or (history is None and task["revision"] > 1):
        return None, "Its task has been edited, and it is not kept whether the payload was."
    return task.get("payload", {}), "Its task's payload."


def _read_number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else 0  # noqa: PLR2004 - no number of a step is longer
