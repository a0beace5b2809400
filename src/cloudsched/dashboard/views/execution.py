"""The page of an execution: its state and what can be done, its steps, what it got, and what came of it."""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.charts import find_span, list_rows
from cloudsched.dashboard.forms.fields import hash_text
from cloudsched.dashboard.offered_verbs import explain_retry, fetch_startable, make_retry_question
from cloudsched.dashboard.status import BAD, OPEN, shorten_error, show_status, write_message
from cloudsched.dashboard.times import find_instant, find_took, parse_instant, write_duration, write_took
from cloudsched.dashboard.views.decisions import find_awaited, make_decision
from cloudsched.dashboard.views.runs import TRIGGERS, find_lateness, find_until
from cloudsched.dashboard.views.task import name_actor
from cloudsched.dashboard.words import only_if, shorten
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.run_counts import LATE
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.verbs import EDITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit


ROWS: Final = 180
"""The number of steps that are shown at once."""
_SHOWN: Final = 20_000
"""The number of characters of a payload or a result that are shown. The download has all of it."""


def fetch(api: Api, visit: Visit, task_id: str, execution_id: str) -> Json:
    """Ask the API for an execution and its task."""
    path = execution_path(task_id, execution_id)
    record = api.get(path)
    task, _ = api.task(task_id)
    answer = {
        "execution": record,
        "task": task,
        "mayStart": fetch_startable(api, visit, task),
        "logs": api.find(f"{path}/logs"),
        "history": fetch_edits(api, record, task),
        "eventSchemas": api.find_handler(task["handler"]).get("eventSchemas", {}) if find_awaited(record) else {},
        "told": api.find(f"{path}/deliveries") if _may_be_told(record, task) else None,
        "why": _fetch_why(api, visit, record, task),
        "hasGood": record["status"] in BAD and find_good(api, task_path(task_id), record) is not None,
    }
    if record["status"] in OPEN:
        answer["cursor"] = hash_record(record)
    return answer


def _may_be_told(record: Json, task: Json) -> bool:
    """Return whether anybody may have been told of a run. To ask who was costs as much as the run."""
    is_failure = record["status"] not in {*OPEN, ExecutionStatus.SUCCEEDED}
    return is_failure or any(task.get(each) for each in ("deliveryChannels", "onCompletion", "ping"))


def find_good(api: Api, path: str, record: Json) -> str | None:
    """Return the latest execution before this one that succeeded, or else the first one after it."""
    status = ExecutionStatus.SUCCEEDED
    before = api.get(f"{path}/executions", status=status, pageSize=1, until=record["scheduledFor"])["executions"]
    found = before or api.get(f"{path}/executions", status=status, pageSize=2)["executions"]
    return next((str(each["id"]) for each in found if each["id"] != record["id"]), None)


def hash_record(record: Json) -> str:
    """Return a text that changes with an execution, for pages that show it as it goes on."""
    return hash_text(json.dumps(record, sort_keys=True))


def _fetch_why(api: Api, visit: Visit, record: Json, task: Json) -> str:
    """Return what the API's explanation says of a run that does not go on, or that began late or waited for an attempt.

    Empty for all others, and for one that its task's pause holds: its message says so.
    """
    at = None
    if ended := find_instant(record, "finishedAt"):
        at = record["scheduledFor"]
        took = find_took(record, ended)
        is_told = took is not None and ended - parse_instant(at) - took > LATE
    else:
        until = find_until(record)
        is_told = until is not None and until < visit.now
    found = api.list_items(f"{task_path(task['id'])}/explain", "findings", at=at) if is_told else []
    return next((str(each["sentence"]) for each in found if each.get("executionId") == record["id"]), "")


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of an execution shows."""
    record = answer["execution"]
    task = answer["task"]
    verbs = record.get("allowedVerbs", ())
    payload, note = find_payload(record, task, answer["history"])
    step = next(({**each} for each in record.get("steps", ()) if str(each["number"]) == visit.query.get("step")), None)
    rows = list_rows(record, visit.now)
    decision = make_decision({**record, "eventSchemas": answer["eventSchemas"]}, task, visit)
    is_open = record["status"] in OPEN
    held_up = only_if(is_open, answer["why"])
    once = only_if(task["status"] == TaskStatus.PAUSED, " once its task is resumed")
    if decision and decision["is_over"]:
        held_up = f"The time for an answer is over: it times out{once}"
    if decision is None and (answered := find_awaited(record)):
        held_up = f"It was answered, and goes on{once}"
        for each in filter(None, (*rows, step)):
            if each["number"] == answered["number"]:
                each["status"] = "ANSWERED"
    row = visit.query.get("row", "")
    offset = int(row) if row.isdecimal() and len(row) < 6 else 0  # noqa: PLR2004 - no number of a step is longer
    return {
        **answer,
        "title": f"{task['title']}, {visit.moment(record['scheduledFor']).text}",
        "sentence": _write_sentence(record, visit, held_up),
        "facts": [*_list_facts(record, visit)],
        "why": decision and decision["question"] if is_open else answer["why"],
        "isOpen": is_open,
        "span": find_span(record, visit.now),
        "rows": rows[offset : offset + ROWS],
        "moreRows": str(offset + ROWS) if len(rows) > offset + ROWS else None,
        "step": step,
        "stepFacts": [*_list_step(step, visit)] if step else [],
        "parts": [
            ("payload", note if payload != {} else "", write_json(payload)),
            ("result", "", write_json(record.get("content"))),
        ],
        "awaited": decision["event"] if decision and "sendEvent" in verbs else None,
        "decision": decision,
        "retryQuestion": make_retry_question(task, record) if "retry" in verbs else None,
        "whyNoRetry": explain_retry(task, record, may_start=answer["mayStart"]),
        "mayCancel": "cancelRun" in verbs,
    }


def _write_sentence(record: Json, visit: Visit, held_up: str) -> str:
    """Return the headline. Of a run that failed it begins with its error, whatever else there is to say."""
    parts = [show_status(record["status"]).word, held_up or write_message(record, visit)]
    if error := record.get("error"):
        if record["status"] in BAD:
            parts[0] += f" with {shorten_error(error)}"
        elif not parts[1] and record["status"] in OPEN:
            parts[1] = f"An earlier attempt ended with {shorten_error(error)}"
    if record["status"] == ExecutionStatus.RETRYING and record.get("nextAttemptAt") and not held_up:
        moment = visit.moment(record["nextAttemptAt"])
        parts.append(f"The next attempt starts {moment.text}, {moment.relative}")
    if parts[1].startswith(parts[0]):
        del parts[0]
    return "".join(f"{each.rstrip('.')}. " for each in filter(None, parts)).replace("….", "…").rstrip()


def _list_facts(record: Json, visit: Visit) -> Iterator[tuple[str, str]]:
    late = find_lateness(record)
    if late is not None:
        yield "Start delay", write_duration(late)
        yield "Took", write_took(record, visit.now)
    if record.get("nextAttemptAt") and (goes_on := find_until(record)) and goes_on > visit.now:
        yield "Goes on by", visit.moment(goes_on).text
    if trigger := TRIGGERS[record.get("trigger", Trigger.SCHEDULE)]:
        yield "Started", trigger
    for name in ("queries", "tokens"):
        if record.get(name):
            yield name.capitalize(), f"{record[name]:,}"


def _list_step(step: Json, visit: Visit) -> Iterator[tuple[str, str]]:
    """Yield the facts about a step."""
    yield "Status", show_status(step["status"]).word
    for name, field in {"Started": "startedAt", "Finished": "finishedAt", "Due": "dueAt"}.items():
        if step.get(field):
            yield name, visit.moment(step[field]).text
    if question := step.get("asked", {}).get("text"):
        yield "Question", question
    if step.get("attempts"):
        yield "Attempts", str(step["attempts"])
    for each in step.get("tries", ()):
        yield "Tried", f"{visit.moment(each['startedAt']).text}, {write_took(each, visit.now)}"
    if "result" in step:
        yield "Result", write_json(step["result"])
    if step.get("error"):
        yield "Error", f"{step['error']['type']}: {step['error']['message']}"
    if step.get("sender"):
        yield "Sent by", name_actor(step["sender"])


def write_json(content: object) -> str:
    """Return a payload or a result as JSON, and a text as it is. Empty if there is none."""
    if content is None or content == {}:
        return ""
    text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
    return shorten(text, _SHOWN)


def fetch_edits(api: Api, record: Json, task: Json) -> Json | None:
    """Ask for the task's history if an edit may have changed its payload since this run."""
    is_own = "payload" in record or record.get("hasUnrecordedPayload")
    if is_own or task.get("children") or task["revision"] <= 1:
        return None
    return api.find(f"{task_path(task['id'])}/history")


def find_payload(record: Json, task: Json, history: Json | None) -> tuple[object, str]:
    """Return a run's payload, None if it is not known, and its source, or the reason why it is not known."""
    if record.get("hasUnrecordedPayload"):
        return None, "It had its own payload, which was too large to keep beside the result."
    if "payload" in record:
        return record["payload"], "It had its own payload."
    if task.get("children"):
        return None, "It runs other tasks, each with a payload of its own."

    began = parse_instant(record.get("startedAt") or record["scheduledFor"])
    entries = (history or {}).get("entries", [])
    since = [each for each in entries if parse_instant(each["at"]) >= began]
    edited = {field["field"] for each in since if each["action"] in EDITS for field in each.get("fields", ())}
    if not edited.isdisjoint({"payload", "handler"}):
        return None, "The task's payload was edited since, and the old one was not kept."
    numbers = [*(each["number"] for each in entries), 0]  # from 1, the latest first
    is_whole = numbers[0] - len(since) <= numbers[len(since)]
    if (history is None and task["revision"] > 1) or not is_whole:
        return None, "The task was edited since. Whether its payload changed was not recorded."
    return task.get("payload", {}), "The task's payload."


LINES: Final = 400
"""The number of lines of each execution that are compared."""


def fetch_comparison(api: Api, visit: Visit, task_id: str, execution_id: str) -> Json:
    """Ask the API for an execution, and for the one beside it: the latest before it that succeeded."""
    task, _ = api.task(task_id)
    record = api.get(execution_path(task_id, execution_id))
    other = visit.query.get("with") or find_good(api, task_path(task_id), record)
    ids = [other, execution_id] if other else [execution_id]
    both = [api.get(execution_path(task_id, each)) for each in ids]
    logs = [api.list_items(f"{execution_path(task_id, each)}/logs", "lines") for each in ids]
    return {"task": task, "both": both, "logs": logs, "history": fetch_edits(api, both[0], task)}


def build_comparison(answer: Json, visit: Visit) -> Json:
    """Return the lines, each with a sign: ``-`` for those of the other execution alone, ``+`` for those of this one."""
    both = answer["both"]
    texts = [[*_write(*each, answer, visit)] for each in zip(both, answer["logs"], strict=True)]
    said = "No other run of this task that succeeded was found, so there is nothing to compare with."
    lines: list[str] = []
    if len(both) > 1:
        said = f"The first {LINES} lines of each." if max(map(len, texts)) > LINES else ""
        old, new = (each[:LINES] for each in texts)
        lines = [*unified_diff(old, new, n=LINES, lineterm="")][3:] or [f" {each}" for each in old]
    return {
        **answer,
        "title": f"Compare {answer['task']['title']}",
        "said": said,
        "execution": both[-1],
        "other": both[0],
        "lines": [(each[0], each[1:]) for each in lines],
    }


def _write(record: Json, log: list[Json], answer: Json, visit: Visit) -> Iterator[str]:
    payload, note = find_payload(record, answer["task"], answer["history"])
    error = record.get("error") or {}
    yield f"Status: {show_status(record['status']).word.lower()}"
    yield f"Started: {visit.moment(record['startedAt']).text if record.get('startedAt') else 'never'}"
    yield f"Took: {write_took(record, visit.now)}"
    yield f"Attempts: {len(record['attempts']) + record.get('omittedAttempts', 0)}"
    yield f"Payload: {note}"
    yield from write_json(payload).splitlines()
    yield from ["Result:", *write_json(record.get("content")).splitlines()]
    if error:
        yield f"Error: {shorten_error(error)}"
    for step in record.get("steps", ()):
        yield f"{step['kind'].capitalize()} {step['name']}: {show_status(step['status']).word.lower()}"
    yield from (f"{each.get('level', '')} {each.get('text', '')}".strip() for each in log)
