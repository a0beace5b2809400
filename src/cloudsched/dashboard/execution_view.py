"""An execution: its state, its steps, the chosen step, progress, calls and result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.chart_axis import WHOLE, Move, find_parts, make_moves, read_window, write_window
from cloudsched.dashboard.offered_verbs import Question, explain_retry, fetch_startable, make_retry_question
from cloudsched.dashboard.status import OPEN, Status, shorten, show_status, write_message
from cloudsched.dashboard.task_view import fetch_event_schemas
from cloudsched.dashboard.times import Moment, parse_instant, write_duration
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, task_path, zone_choices
from cloudsched.dashboard.waterfall import Waterfall, WaterfallRow, draw_axis, draw_ground, draw_row, make_waterfall
from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.journal import StepStatus
from cloudsched.domain.transitions.requirements import FINAL_STATUSES

if TYPE_CHECKING:
    from markupsafe import Markup


TIMES: Final = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class StepLine:
    """A row of the waterfall as it is shown."""

    number: int
    kind: str
    name: str
    status: Status
    took: str
    chart: Markup
    href: str
    is_chosen: bool
    hidden: str
    """The chart's content in words, for those who do not see it."""


def write_shown(waterfall: Waterfall, visit: Visit) -> str:
    """Return the part of the time that is shown. Empty for all of it."""
    if waterfall.scale is waterfall.whole:
        return ""
    start, end = (at.astimezone(visit.zone) for at in waterfall.scale.span)
    return f"{start.day} {start:%b %H:%M:%S} to {end.day} {end:%b %H:%M:%S %z}"


def make_step_moves(waterfall: Waterfall, visit: Visit) -> list[Move]:
    """Return the buttons that show another part of the time."""
    whole, (start, end) = waterfall.whole, waterfall.scale.span
    shown = WHOLE if waterfall.scale is whole else (whole.place(start), whole.place(end))
    parts = find_parts(shown, whole.place(waterfall.now) if waterfall.is_open else None)
    moved = replace(visit, query={name: value for name, value in visit.query.items() if name != "row"})
    return make_moves(
        parts, lambda part: write_window(moved, *whole.span, part, "steps", whole.find_instant), home="Show all of it"
    )


def build_lines(rows: Iterable[WaterfallRow], waterfall: Waterfall, visit: Visit, chosen: int) -> list[StepLine]:
    """Return rows as they are shown."""
    ground = draw_ground(waterfall, visit.zone)
    return [_build_line(row, draw_row(row, waterfall.scale, ground), visit, chosen) for row in rows]


def _build_line(row: WaterfallRow, chart: Markup, visit: Visit, chosen: int) -> StepLine:
    status = show_status(row.status)
    count = f" {TIMES} {row.count:,}" if row.count > 1 else ""
    tries = f", {row.tries} attempts" if row.tries > 1 else ""
    waited = f", waited {write_duration(row.waited)}" if row.waited else ""
    return StepLine(
        number=row.number,
        kind=row.kind,
        name=f"{shorten(row.name, 60)}{count}",
        status=status,
        took=write_duration(row.took),
        chart=chart,
        href=visit.with_query(step=str(row.number) if row.number else None),
        is_chosen=bool(row.number) and row.number == chosen,
        hidden=f"{status.word.lower()}{tries}{waited}",
    )


def list_step(step: Json, visit: Visit, child: Json | None = None) -> list[tuple[str, str, bool]]:
    """Return the facts about a step: name, value, and whether a machine reads it. A call's have its payload, too."""
    started = visit.sure(step["startedAt"])
    facts = [("Status", show_status(step["status"]).word, False), ("Started", started.text, False)]
    finished = "Finished, not noticed yet" if step.get("isUnnoticed") else "Finished"
    for name, label in (("finishedAt", finished), ("dueAt", "Due")):
        if step.get(name):
            facts.append((label, visit.sure(step[name]).text, False))
    if step.get("attempts"):
        facts.append(("Attempts", str(step["attempts"]), False))
    for number, each in enumerate(step.get("tries", ()), step.get("attempts", 0) - len(step.get("tries", ())) + 1):
        took = write_duration(parse_instant(each["finishedAt"]) - parse_instant(each["startedAt"]))
        facts.append((f"Try {number}", f"{visit.sure(each['startedAt']).text}, {took}", False))
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
_WAITING: Final = frozenset({ExecutionStatus.SUSPENDED, ExecutionStatus.RETRYING})
"""The statuses in which a later dispatch, which may take several hops, lets an execution go on."""
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
    text = _write_json(content)
    size = len(text.encode())
    words = f"{size:,} bytes" if size < 1000 else f"{size / 1000:,.1f} kB"  # noqa: PLR2004 - a kilobyte
    return Content(
        shorten(text, _SHOWN), words, is_folded=len(text) > FOLDED, download=path if len(text) > FOLDED else ""
    )


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line that the execution has logged."""

    at: Moment
    level: str
    text: str
    step: int
    """The only step that ran then. 0 if there was none, or several."""


_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """An attempt of the handler."""

    number: int
    status: Status
    started: Moment
    took: str
    worker: str
    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class ChannelLine:
    """The progress of the result's delivery by one channel."""

    channel: str
    status: str
    attempts: int
    sent: Moment | None
    reason: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A task in the tree of calls."""

    depth: int
    id: str
    title: str
    status: Status


@dataclass(frozen=True, slots=True)
class ExecutionPage:
    """The view model."""

    task_id: str
    task_title: str
    id: str
    at: Moment
    status: Status
    sentence: str
    tone: str
    hops: list[str]
    """The notes on its dispatch's hops, if it goes on later than the queue can hold a dispatch."""
    facts: list[tuple[str, str]]
    axis: Markup
    lines: list[StepLine]
    gaps: str
    shown: str
    """The part of the time that is shown, if it is not all of it."""
    moves: list[Move]
    scale_href: str
    is_true_scale: bool
    more_steps: str | None
    first_steps: str | None
    is_open: bool
    step: list[tuple[str, str, bool]]
    step_title: str
    step_child: str | None
    retry_from: int | None
    """The chosen step, if the execution may be retried from there."""
    attempts: list[AttemptLine]
    attempts_left_out: int
    progress: list[tuple[Moment, str]]
    log: list[LogRow] | None
    """Its log lines. None if the viewer may not see them."""
    log_left_out: int
    log_note: str
    """The number of lines that are shown, if not all are."""
    levels: list[tuple[str, bool]]
    """The log levels, each with whether it is the lowest that is shown."""
    find: str
    """The text that is searched for in the lines."""
    kept: list[tuple[str, str]]
    """The parameters of the address that the log's form sends along."""
    branches: list[Branch]
    payload: Content | None
    """The payload of its handler."""
    payload_note: str
    """The source of the payload, or the reason why it is not known."""
    result: Content | None
    error: str
    traceback: str
    deliveries: str
    channels: list[ChannelLine]
    awaited: str | None
    has_form: bool
    """True if the awaited event's payload is declared, so that a form asks for its fields."""
    retry_question: Question | None
    """The question before it is retried. None if it cannot be."""
    why_no_retry: str
    """The reason why it cannot be retried now, if it is known."""
    zones: list[ZoneChoice]
    may_change: bool
    role: str


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
        "explanation": api.find(f"{task_path(task_id)}/explain") if record["status"] in _WAITING else None,
        "eventSchemas": fetch_event_schemas(api, task) if _find_awaited(record) else {},
        "deliveries": (api.find(f"{path}/deliveries") or {}).get("deliveries", [])
        if _has_deliveries(task, record)
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
    """Return the event that an execution waits for."""
    names = [each["name"] for each in record.get("steps", []) if (each["kind"], each["status"]) == ("EVENT", "WAITING")]
    return names[-1] if names and record["status"] == "SUSPENDED" else None


def _has_deliveries(task: Json, record: Json) -> bool:
    """Return whether a result is, or was, to be delivered. A request costs as much as reading the execution again."""
    return bool(task.get("deliveryChannels") or record.get("isDelivered"))


def build(answer: Json, visit: Visit) -> ExecutionPage:
    """Return the view model of the API's answers, in the task's own zone unless the address names another."""
    record, task = answer["execution"], answer["task"]
    visit = visit.in_zone_of(task)
    is_true = visit.query.get("scale") == "true"
    waterfall = make_waterfall(record, visit.now, true_scale=is_true, window=read_window(visit))
    offset = _read_number(visit.query.get("row"))
    chosen = _read_number(visit.query.get("step"))
    step = next((each for each in record.get("steps", []) if each["number"] == chosen), None)
    error = record.get("error") or {}
    awaited = _find_awaited(record)
    is_open, may_send = record["status"] in OPEN, "sendEvent" in record.get("allowedVerbs", ())
    rows = waterfall.rows[offset : offset + ROWS]
    path = f"tasks/{quote(task['id'], safe='')}/executions/{quote(record['id'], safe='')}"
    payload, payload_note = find_payload(record, task, answer["history"])
    log, is_filtered = (
        _list_log(answer["logs"], record, visit),
        bool(visit.query.get("level") or visit.query.get("find")),
    )
    return ExecutionPage(
        task_id=task["id"],
        task_title=task["title"],
        id=record["id"],
        at=visit.sure(record["scheduledFor"]),
        status=show_status(record["status"]),
        sentence=_write_sentence(record, visit),
        tone=_TONES.get(record["status"], ""),
        hops=_list_hops(answer["explanation"], record),
        facts=_list_facts(record, waterfall),
        axis=draw_axis(waterfall, visit.zone),
        lines=build_lines(rows, waterfall, visit, chosen),
        gaps=waterfall.gaps_text,
        shown=write_shown(waterfall, visit),
        moves=make_step_moves(waterfall, visit),
        scale_href=visit.with_query(scale=None if is_true else "true"),
        is_true_scale=is_true,
        more_steps=visit.with_query(row=str(offset + ROWS)) if len(waterfall.rows) > offset + ROWS else None,
        first_steps=visit.with_query(row=None) if offset else None,
        is_open=is_open,
        step=list_step(step, visit, answer["child"]) if step else [],
        step_title=f"{step['number']}, {step['kind'].lower()} {step.get('name', '')}" if step else "",
        step_child=step.get("child") if step else None,
        retry_from=step["number"] if step and "retry" in record.get("allowedVerbs", ()) else None,
        attempts=[_build_attempt(each, visit) for each in record["attempts"]],
        attempts_left_out=record.get("attemptsLeftOut", 0),
        progress=[(visit.sure(note["at"]), note["text"]) for note in record.get("progress", [])],
        log=log,
        log_left_out=(answer["logs"] or {}).get("leftOut", 0),
        log_note=f"{len(log):,} of {len(answer['logs']['lines']):,} lines" if log is not None and is_filtered else "",
        levels=[(level, level == visit.query.get("level", "").upper()) for level in _LEVELS],
        find=visit.query.get("find", ""),
        kept=[(name, visit.query[name]) for name in ("tz", "step", "scale", "row") if visit.query.get(name)],
        branches=list(_walk(answer["tree"], 0))[1 : _TREE + 1] if answer["tree"] else [],
        payload=None if payload is None else show_content(payload, f"{path}/payload.json"),
        payload_note=payload_note,
        result=None
        if is_open or record.get("content") is None
        else show_content(record["content"], f"{path}/result.json"),
        error=f"{error['type']}: {error['message']}" if error else "",
        traceback=error.get("traceback") or "",
        deliveries=_describe_deliveries(record, task),
        channels=[
            ChannelLine(
                each["channel"].capitalize(),
                each["status"].replace("_", " ").lower(),
                each.get("attempts", 0),
                visit.moment(each.get("sentAt")),
                each.get("reason") or "",
            )
            for each in answer["deliveries"]
        ],
        awaited=awaited if may_send else None,
        has_form=awaited in answer["eventSchemas"],
        retry_question=make_retry_question(task, record) if "retry" in record.get("allowedVerbs", ()) else None,
        why_no_retry=explain_retry(task, record, may_start=answer["mayStart"]),
        zones=zone_choices(visit, task.get("timezone", "UTC")),
        may_change=visit.may_change,
        role=visit.role,
    )


def _write_sentence(record: Json, visit: Visit) -> str:
    status = show_status(record["status"])
    if message := write_message(record, visit):
        return f"{status.word}. {message}"
    if record["status"] == "RETRYING" and record.get("nextAttemptAt"):
        moment = visit.sure(record["nextAttemptAt"])
        return f"Its last attempt failed. The next one starts {moment.text}, {moment.relative}."
    if record.get("error"):
        return f"{status.word} with {record['error']['type']}: {shorten(record['error']['message'])}"
    return f"{status.word}."


def _list_hops(explanation: Json | None, record: Json) -> list[str]:
    return [
        each["sentence"]
        for each in (explanation or {"findings": []})["findings"]
        if each["reason"] == "BEYOND_HORIZON" and each.get("executionId") == record["id"]
    ]


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
    attempts = len(record["attempts"]) + record.get("attemptsLeftOut", 0)
    facts.append(("Attempts that ended", str(attempts)))
    facts.append(("Asked for by", "its schedule" if record.get("trigger") == Trigger.SCHEDULE else "hand"))
    facts.append(("Cost", f"{record.get('queries', 0):,} queries, {record.get('tokens', 0):,} tokens"))
    return facts


def _build_attempt(attempt: Json, visit: Visit) -> AttemptLine:
    error = attempt.get("error") or {}
    took = parse_instant(attempt["finishedAt"]) - parse_instant(attempt["startedAt"])
    return AttemptLine(
        number=attempt["number"],
        status=show_status(attempt["status"]),
        started=visit.sure(attempt["startedAt"]),
        took=write_duration(max(took, timedelta(0))),
        worker=attempt.get("worker") or "the executor",
        error=f"{error['type']}: {shorten(error['message'])}" if error else "",
        traceback=error.get("traceback") or "",
    )


def _walk(tree: Json, depth: int) -> list[Branch]:
    task = tree["task"]
    found = [Branch(depth, task["id"], task["title"], show_status(task.get("outcome") or task["status"]))]
    for child in tree.get("children", []):
        found += _walk(child, depth + 1)
    return found


def _describe_deliveries(record: Json, task: Json) -> str:
    channels = [str(channel).lower() for channel in task.get("deliveryChannels", [])]
    if not channels:
        return "Its result is delivered to nobody: the task names no channels."
    if record.get("isDelivered"):
        return f"Delivered to {', '.join(channels)}."
    return f"Not delivered to all of {', '.join(channels)} yet."


def _list_log(logs: Json | None, record: Json, visit: Visit) -> list[LogRow] | None:
    """Return the lines of the chosen level and above that contain the searched text."""
    if logs is None:
        return None
    level, find = visit.query.get("level", "").upper(), visit.query.get("find", "").lower()
    least = _LEVELS.index(level) if level in _LEVELS else 0
    steps = [
        (
            parse_instant(each["startedAt"]),
            parse_instant(each["finishedAt"]) if each.get("finishedAt") else visit.now,
            each,
        )
        for each in record.get("steps", [])
        if each["kind"] == "STEP"
    ]
    rows = []
    for each in logs["lines"]:
        rank = _LEVELS.index(each["level"]) if each["level"] in _LEVELS else len(_LEVELS)
        if rank < least or (find and find not in f"{each['text']} {each['logger']}".lower()):
            continue
        at = parse_instant(each["at"])
        during = [step["number"] for start, end, step in steps if start <= at <= end]
        number = during[0] if len(during) == 1 else 0
        rows.append(LogRow(visit.sure(at), each["level"], each["text"], number))
    return rows


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
    is_cut = (history or {}).get("omittedEntries", 0) and not any(parse_instant(each["at"]) < began for each in entries)
    if is_cut or (history is None and task["revision"] > 1):
        return None, "Its task has been edited, and it is not kept whether the payload was."
    return task.get("payload", {}), "Its task's payload."


def _write_json(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)


def _read_number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else 0  # noqa: PLR2004 - no number of a step is longer
