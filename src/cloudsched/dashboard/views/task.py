"""A task: the reason for its state, its executions, its next occurrences, its fields, and its history."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time, tzinfo
from itertools import groupby
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.forms.take_back import describe_value, is_so
from cloudsched.dashboard.forms.task_options import name_option, read_before
from cloudsched.dashboard.offered_verbs import (
    explain_impossible,
    explain_retry,
    fetch_held,
    fetch_startable,
    make_question,
    make_retry_question,
)
from cloudsched.dashboard.schedule_words import build_upcoming, describe_schedule
from cloudsched.dashboard.status import BAD, find_block, show_status
from cloudsched.dashboard.times import find_zone, parse_instant
from cloudsched.dashboard.views.runs import build_execution
from cloudsched.dashboard.visit import TOLD, UTC_ZONE
from cloudsched.dashboard.words import only_if, shorten
from cloudsched.domain.documents.authority import say_subject
from cloudsched.domain.documents.task import FINAL_STATUSES, NeedCause, TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.explanation.findings import Reason
from cloudsched.domain.explanation.moves import find_move

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.offered_verbs import Question
    from cloudsched.dashboard.visit import Visit

PAGE_SIZE: Final = 20
_UPCOMING: Final = 10
PARAMETERS: Final = ("page", "on", "clock", "move")
_QUIET: Final = frozenset({Reason.SCHEDULED, Reason.RUNNING})
"""Reasons that are no problem: their evidence is folded."""
_UNCLAIMED: Final = frozenset({Reason.WAITING_FOR_WORKER, Reason.NO_WORKER_LISTENS, Reason.DUE, Reason.SCHEDULED})
"""Reasons of runs that may have no page yet, because nothing has begun them."""
_NO_HANDLER: Final = "Nothing would run it: its handler is not registered, so one more run would fail."
_FACTS: Final = (
    *("description", "handler", "payload", "timezone", "labels", "priority", "retry", "overlap", "catchUp", "jitter"),
    *("expiration", "tellFailures", "lockKey", "pull", "deliveryChannels", "until", "maxRuns", "maxQueriesPerMonth"),
    *("maxTokensPerMonth", "revision"),
)
"""The fields that a task's page has under their own names, if they are set."""


def fetch(api: Api, visit: Visit, task_id: str) -> Json:
    """Ask the API for all data on a task."""
    task, etag = api.task(task_id)
    path = task_path(task_id)
    explanation = api.get(f"{path}/explain")
    asked = None
    if at := read_asked(visit, find_zone(task.get("timezone")) or UTC_ZONE):
        asked = api.find(f"{path}/explain", at=at.isoformat())
    return {
        "task": task,
        "etag": etag,
        "explanation": explanation,
        "asked": asked,
        "runs": api.get(f"{path}/executions", pageSize=PAGE_SIZE, pageToken=visit.query.get("page")),
        "due": [parse_instant(each["utc"]) for each in api.get(f"{path}/upcoming", count=_UPCOMING)["occurrences"]],
        "history": api.find(f"{path}/history") or {},
        "mayStart": fetch_startable(api, visit, task),
        "held": fetch_held(api, task, explanation),
    }


def read_asked(visit: Visit, zone: tzinfo) -> datetime | None:
    """Return the instant in the address's question, in a zone. Without a time, it is the beginning of the day."""
    day = visit.query.get("on", "")
    clock = visit.query.get("clock", "") or "00:00"
    try:
        return datetime.combine(date.fromisoformat(day), time.fromisoformat(clock), zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of a task shows."""
    task, held, explanation = answer["task"], answer["held"], answer["explanation"]
    verbs = task.get("allowedVerbs", ())
    findings = explanation["findings"]
    runs = answer["runs"]["executions"]
    first, *rest = findings
    block = find_block(findings)
    is_failing = NeedCause.FAILED in task.get("needs", ())
    asked = (answer["asked"] or {}).get("findings", ())
    day = f"{visit.query.get('on', '')} {visit.query.get('clock', '')}".strip()
    return {
        **answer,
        **_build_retry(answer),
        "title": task["title"],
        "words": describe_schedule(task["schedule"], visit.now),
        "verbs": verbs,
        "isFailing": is_failing,
        "inVain": block,
        "look": show_status(TaskStatus.FAILED if is_failing else task["status"]),
        "first": first,
        "evidence": [
            (next(alike), [*alike]) for _, alike in groupby(rest, lambda each: TOLD.sub("", each["sentence"]))
        ],
        "isEvidenceOpen": first["reason"] not in _QUIET and task["status"] != TaskStatus.COMPLETED,
        "askedFindings": asked,
        "askedProblem": only_if(day and not asked, f"{shorten(day, 40)} is not a day that anything is known about."),
        "awaited": _list_awaited(findings, runs),
        "unclaimed": _UNCLAIMED,
        "rows": [build_execution(each, visit) for each in runs],
        "recorded": {each["id"] for each in runs},
        "older": answer["runs"].get("nextPageToken"),
        "upcoming": build_upcoming(answer["due"], visit, task.get("timezone", "UTC")),
        "moved": _read_moved(visit),
        "facts": [*_list_facts(task, visit)],
        "entries": build_history(answer["history"], task, visit),
        "impossible": explain_impossible(task, visit.now, held, may_start=answer["mayStart"]),
        "mayRaise": visit.may_change and visit.role == "admin",
        "question": _warn(make_question(task, answer["due"], explanation, visit), explanation),
        "possible": [
            each for each in Verb if each in verbs and each.traits.button and not (held and each.traits.starts)
        ],
        "hasEnded": task["status"] in FINAL_STATUSES,
        "next": _name_next(task, visit, block),
    }


def _list_awaited(findings: list[Json], runs: list[Json]) -> list[tuple[str, str]]:
    """Return the runs that wait for an event, each behind its time, if that is known."""
    times = {each["id"]: each["scheduledFor"] for each in runs}
    return sorted(
        (times.get(each["executionId"], ""), each["executionId"])
        for each in findings
        if each["reason"] == Reason.WAITING_FOR_EVENT
    )


def _read_moved(visit: Visit) -> str:
    """Return the occurrence that the address asks to move, if it is ahead. Empty for the next one."""
    try:
        at = datetime.fromisoformat(visit.query.get("move", ""))
        return at.astimezone(UTC).isoformat() if at.tzinfo is not None and at > visit.now else ""
    except (ValueError, OverflowError):
        return ""


def _build_retry(answer: Json) -> Json:
    """Return the latest execution that can be retried, with the question before that, or why none can be."""
    task, held, may_start = answer["task"], answer["held"], answer["mayStart"]
    bad = [each for each in answer["runs"]["executions"] if each["status"] in BAD]
    retryable = next((each for each in bad if "retry" in each.get("allowedVerbs", ()) and not held), None)
    why = ""
    if bad and not retryable:
        is_held = held and may_start and task.get("allowedVerbs")
        why = held.reason if is_held else explain_retry(task, bad[0], may_start=may_start)
    question = retryable and _warn(make_retry_question(task, retryable), answer["explanation"])
    return {"retryable": retryable, "retryQuestion": question, "whyNoRetry": why}


def _warn(question: Question, explanation: Json) -> Question:
    """Return the question before a run. If the handler is not registered, it says so instead of what would run."""
    is_unknown = any(each["reason"] == Reason.UNKNOWN_HANDLER for each in explanation["findings"])
    return replace(question, sentence=_NO_HANDLER) if is_unknown else question


def _name_next(task: Json, visit: Visit, block: str) -> str:
    """Return the words before a task's next time, which may be past. What waits for an open run is not late."""
    if NeedCause.OVERDUE in task.get("needs", ()):
        return "Late since"
    at = task.get("nextExecutionTime")
    if at and parse_instant(at) <= visit.now:
        return "Due since"
    return "Due" if block else "Next:"


def _list_facts(task: Json, visit: Visit) -> Iterator[tuple[str, str]]:
    """Yield the facts about a task: names and values."""
    schedule = task["schedule"]
    yield "Rule", str(schedule.get("rrule") or schedule.get("at") or json.dumps(schedule))
    if schedule.get("followsOwner"):
        yield "Its zone", f"follows {task['owner']} ({task['timezone']})"
    for name in _FACTS:
        if name == "payload":
            yield "Payload", json.dumps(task.get(name, {}), ensure_ascii=False)
        elif task.get(name):
            yield name_option(name), describe_value(name, task[name], visit)


def build_history(answer: Json, task: Json, visit: Visit) -> list[Json]:
    """Return the rows of the API's answer, the latest first. Empty if the API has no history.

    What the task already has again is not offered to be taken back.
    """
    entries = answer.get("entries", [])
    return [{**build_entry(each, visit), "hasBack": _has_back(each, task)} for each in entries]


def _has_back(entry: Json, task: Json) -> bool:
    values, _ = read_before(entry.get("fields", []))
    return any(not is_so(task, name, value) for name, value in values.items())


def build_entry(entry: Json, visit: Visit) -> Json:
    """Return the row of one entry, with its schedules in words."""
    fields = entry.get("fields", [])
    reason = entry.get("reason") or ""
    return {
        **entry,
        "what": entry["action"].capitalize().replace("_", " "),
        "said": only_if(reason, f"“{reason}”" if entry.get("by") else reason),
        "who": name_actor(entry.get("by")),
        "changes": [_build_change(each, visit) for each in fields],
    }


def _build_change(field: Json, visit: Visit) -> tuple[str, str, str]:
    """Return a field's name, and what it was before and after, in words. Of a move it says which run was moved."""
    name, before, after = field["field"], field.get("before") or "", field.get("after") or ""
    if name == "schedule":
        move = find_move(before, after)
        if move.is_whole:
            return "Run", *move.write()
    return name_option(name), _describe(name, before, visit), _describe(name, after, visit)


def _describe(name: str, text: str, visit: Visit) -> str:
    """Return a value of the history, which is JSON or a word, as people write it. Empty if it is not known."""
    try:
        return describe_value(name, json.loads(text), visit)
    except ValueError:
        return text


def name_actor(by: Json | None) -> str:
    """Return who did something, as the filter of changes takes it."""
    return say_subject(by.get("subject")) if by else "the scheduler"
