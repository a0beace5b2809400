"""A task: the reason for its state, its life, its executions, its next occurrences, and its fields."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from cloudsched.dashboard.chart_axis import clip, find_parts, make_moves, read_window, write_window
from cloudsched.dashboard.life_chart import Lived, Noted, draw_life, find_span
from cloudsched.dashboard.offered_verbs import (
    explain_retry,
    fetch_startable,
    list_impossible,
    make_question,
    make_retry_question,
)
from cloudsched.dashboard.status import BAD, OPEN, shorten, show_status, write_message
from cloudsched.dashboard.task_options import read_before
from cloudsched.dashboard.times import find_clock_changes, find_zone, parse_instant, write_duration
from cloudsched.dashboard.visit import UTC_ZONE, Api, Json, Visit, task_path
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import Trigger
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.explanation.findings import Reason
from cloudsched.errors import CloudschedError


def build_life(executions: list[Json], due: list[datetime], visit: Visit, noted: Sequence[Noted] = ()) -> Json:
    """Return the life of a task: its chart, the chart's content in words, and the moves along its axis.

    The latest execution is first, and the soonest occurrence.
    """
    lived = [make_lived(each) for each in reversed(executions)]
    start, end = find_span(lived, due, visit.now)
    window = clip(read_window(visit), start, end)
    begin, finish = window or (start, end)
    left, right, now = ((at - start) / (end - start) for at in (begin, finish, visit.now))
    parts = find_parts((left, right), now, least=1 / max(1.0, (end - start).total_seconds()))

    def find_instant(place: float) -> datetime:
        return start + (end - start) * place

    moves = make_moves(
        {
            key: write_window(visit, start, end, part, "life", find_instant) if part else None
            for key, part in parts.items()
        }
    )
    text = _describe(lived, due, visit, noted)
    if window is not None:
        text = f"{visit.moment(begin).text} to {visit.moment(finish).text}"
    return {"chart": draw_life(lived, due, visit.now, visit.zone, window, noted), "text": text, "moves": moves}


def make_lived(record: Json) -> Lived:
    """Return an execution for the chart."""
    start = parse_instant(record.get("startedAt") or record["scheduledFor"])
    finished = parse_instant(record["finishedAt"]) if record.get("finishedAt") else start
    word = show_status(record["status"]).word.lower()
    return Lived(start, None if record["status"] in OPEN else finished, record["status"], word)


_DID: Final = {"EDITED": "edited", "MOVED": "moved", "CANCELLED": "cancelled"}
"""The chart's words for entries in the history, other than pauses."""


def list_noted(history: Json | None, explanation: Json, task: Json, visit: Visit) -> list[Noted]:
    """Return the pauses, edits and skips that a task's life shows besides its executions."""
    noted, paused = [], None
    for entry in reversed((history or {}).get("entries", [])):
        at = parse_instant(entry["at"])
        if entry["action"] == "PAUSED":
            paused = paused or at
        elif entry["action"] in {"RESUMED", "CANCELLED"} and paused is not None:
            noted.append(Noted(paused, "paused", at))
            paused = None
        if word := _DID.get(entry["action"]):
            noted.append(Noted(at, word))
    if task["status"] == TaskStatus.PAUSED:
        noted.append(Noted(paused or parse_instant(task["statusChangedAt"]), "paused", visit.now))
    skipped = (each for each in explanation["findings"] if each["reason"] == Reason.ADJUSTED and each.get("at"))
    next_at = task.get("nextExecutionTime")
    noted += [Noted(parse_instant(each["at"]), "left out") for each in skipped if each["at"] != next_at]
    return noted


def _describe(lived: list[Lived], due: list[datetime], visit: Visit, noted: Sequence[Noted]) -> str:
    parts = [f"{count} {word}" for word, count in Counter(each.word for each in lived).items()]
    parts += [f"left out {visit.moment(each.at).text}" for each in noted if each.word == "left out"]
    if due:
        parts.append(f"next due {visit.moment(due[0]).text}")
    return ", ".join(parts) or "Nothing has run, and nothing is due."


_MOST_SAID: Final = 12
"""The number of a history's schedules that are put into words. Each that is not known yet takes a request."""


def describe_schedules(api: Api, history: Json | None) -> dict[str, str]:
    """Return a history's schedules in words, by their JSON texts, as far as the API reads them."""
    fields = [one for each in (history or {}).get("entries", []) for one in each.get("fields", ())]
    texts = [one[name] for one in fields if one["field"] == "schedule" for name in ("before", "after") if one.get(name)]
    words = {}
    for text in list(dict.fromkeys(texts))[:_MOST_SAID]:
        with suppress(CloudschedError, ValueError):
            words[text] = api.describe(json.loads(text))
    return words


def build_history(answer: Json | None, words: Mapping[str, str]) -> list[Json]:
    """Return the rows of the API's answer, the latest first. Empty if the API has no history."""
    return [
        {
            **each,
            "what": each["action"].capitalize() + (f": {each['reason']}" if each.get("reason") else ""),
            "who": (each["by"].get("subject") or "the app's own code") if each.get("by") else "the scheduler",
            "changes": [
                (one["field"], *(words.get(text, text) for text in (one.get("before", ""), one.get("after", ""))))
                for one in each.get("fields", [])
            ],
            "number": each["number"],
            "hasBack": bool(read_before(each.get("fields", []))[0]),
        }
        for each in (answer or {}).get("entries", [])
    ]


PAGE_SIZE: Final = 20
_UPCOMING: Final = 10
NONE: Final = "\N{EN DASH}"
_QUIET: Final = frozenset({Reason.SCHEDULED, Reason.RUNNING})
"""Reasons that are no problem: their evidence is folded."""

_TRIGGERS: Final = complete_table(
    Trigger,
    {
        Trigger.SCHEDULE: "",
        Trigger.MANUAL: "by hand",
        Trigger.BACKFILL: "backfilled",
        Trigger.SNOOZE: "repeated",
    },
)


def fetch(api: Api, visit: Visit, task_id: str) -> Json:
    """Ask the API for all data on a task."""
    task, etag = api.task(task_id)
    path = task_path(task_id)
    records = api.get(f"{path}/executions", pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    history = api.find(f"{path}/history")
    at = read_asked(visit, find_zone(task.get("timezone")) or UTC_ZONE)
    explanation = api.get(f"{path}/explain")
    return {
        "task": task,
        "etag": etag,
        "explanation": explanation,
        "asked": api.find(f"{path}/explain", at=at.isoformat()) if at else None,
        "executions": records,
        "upcoming": api.get(f"{path}/upcoming", count=_UPCOMING)["occurrences"],
        "words": api.describe(task["schedule"]),
        "history": history,
        "scheduleWords": describe_schedules(api, history),
        "mayStart": fetch_startable(api, visit, task),
        "eventSchemas": fetch_event_schemas(api, task) if _list_awaited(explanation) else {},
    }


def _list_awaited(explanation: Json) -> list[tuple[str, str]]:
    return [
        (each["sentence"].split("'")[1], each.get("executionId", ""))
        for each in explanation["findings"]
        if each["reason"] == "WAITING_FOR_EVENT" and each["sentence"].count("'") >= 2  # noqa: PLR2004 - a pair
    ]


def fetch_event_schemas(api: Api, task: Json) -> Json:
    """Ask the API for the schemas of the events that a task's handler has declared."""
    handlers = api.get("/v1/handlers")["handlers"]
    return next((each.get("eventSchemas", {}) for each in handlers if each["name"] == task["handler"]), {})


def read_asked(visit: Visit, zone: tzinfo) -> datetime | None:
    """Return the instant in the address's question, in a zone. Without a time, it is the beginning of the day."""
    day, clock = visit.query.get("on", ""), visit.query.get("clock", "") or "00:00"
    try:
        return datetime.combine(date.fromisoformat(day), time.fromisoformat(clock), zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def build_asked(answer: Json, visit: Visit, zone: str) -> Json:
    """Return the question about a day, and the API's answer. Its findings are empty if nothing was asked."""
    day, clock = visit.query.get("on", ""), visit.query.get("clock", "")
    findings = (answer.get("asked") or {}).get("findings", ())
    asked = f"{shorten(day, 40)} {shorten(clock, 40)}".strip()
    problem = f"{asked} is no day, or none of which something is known." if day and not findings else ""
    return {"day": day, "clock": clock, "zone": zone, "findings": findings, "problem": problem}


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of a task shows."""
    task, explanation, history = answer["task"], answer["explanation"], answer.get("history") or {}
    own_zone = task.get("timezone", "UTC")
    executions = answer["executions"]["executions"]
    due = [parse_instant(each["utc"]) for each in answer["upcoming"]]
    first = explanation["findings"][0] if explanation["findings"] else {"reason": "SCHEDULED"}
    bad = [each for each in executions if each["status"] in BAD]
    retryable = next((each for each in bad if "retry" in each.get("allowedVerbs", ())), None)
    return {
        **answer,
        "title": task["title"],
        "verbs": task.get("allowedVerbs", ()),
        "tone": _find_tone(task, executions),
        "isEvidenceOpen": first["reason"] not in _QUIET and task["status"] != TaskStatus.COMPLETED,
        "asked": build_asked(answer, visit, own_zone),
        "awaited": _list_awaited(explanation),
        "life": build_life(executions, due, visit, list_noted(history, explanation, task, visit)),
        "executions": [build_execution(each, visit) for each in executions],
        "older": answer["executions"].get("nextPageToken"),
        "upcoming": build_upcoming(due, visit, own_zone),
        "facts": _list_facts(task, answer["words"]),
        "history": build_history(history, answer.get("scheduleWords", {})),
        "omittedEntries": history.get("omittedEntries", 0),
        "json": json.dumps(task, indent=2, ensure_ascii=False),
        "retryable": retryable,
        "retryQuestion": make_retry_question(task, retryable) if retryable else None,
        "whyNoRetry": explain_retry(task, bad[0], may_start=answer["mayStart"]) if bad else "",
        "impossible": list_impossible(task, may_start=answer["mayStart"]),
        "question": make_question(task, due, visit),
        "buttons": [each for each in Verb if each in task.get("allowedVerbs", ()) and each.traits.button],
    }


def build_execution(record: Json, visit: Visit) -> Json:
    """Return an execution as a row."""
    due, started, finished = (
        parse_instant(record[name]) if record.get(name) else None
        for name in ("scheduledFor", "startedAt", "finishedAt")
    )
    error = record.get("error")
    outcome = write_message(record, visit)
    if error and record["status"] != "SUSPENDED":  # what a pause holds says so, rather than why it failed before
        outcome = f"{error['type']}: {error['message']}"
    elif record["status"] == "SUCCEEDED" and record.get("content") is not None:
        outcome = json.dumps(record["content"], ensure_ascii=False)
    elif not finished and record.get("progress"):
        outcome = record["progress"][-1]["text"]
    took = None if started is None else (finished or visit.now) - started
    late = None if started is None or due is None else started - due
    return {
        **record,
        "title": record.get("title") or record["taskId"],
        "outcome": shorten(outcome),
        "took": NONE if took is None else write_duration(max(took, timedelta(0))),
        "late": NONE if late is None else write_duration(max(late, timedelta(0))),
        "trigger": _TRIGGERS[record.get("trigger", Trigger.SCHEDULE)],
        "until": record.get("nextAttemptAt") or record.get("leaseUntil"),
        "untilWord": _name_until(record),
    }


def _name_until(record: Json) -> str:
    if not record.get("nextAttemptAt"):
        return "lease ends"
    return "next attempt" if record["status"] == "RETRYING" else "next attempt was due"


def build_upcoming(due: list[datetime], visit: Visit, own_zone: str) -> list[Json]:
    """Return the next occurrences, each with the clock change before it that moves its UTC time, if there is one."""
    zone = find_zone(own_zone) or UTC_ZONE
    rows = []
    before = visit.now
    for at in due:
        is_far = at - before > timedelta(days=1000)
        changes = [] if is_far else find_clock_changes(before, at, zone)
        rows.append({"at": at, "change": changes[-1].describe(zone) if changes else ""})
        before = at
    return rows


def _find_tone(task: Json, executions: list[Json]) -> str:
    if task["status"] == "FAILED" or task.get("consecutiveFailures"):
        return "fail"
    if task["status"] == "PAUSED" or any(each["status"] == "RETRYING" for each in executions):
        return "retry"
    if any(each["status"] == "SUSPENDED" for each in executions):
        return "wait"
    return "run" if task.get("isRunning") else ""


def _list_facts(task: Json, words: str) -> list[tuple[str, str, bool]]:
    schedule = task["schedule"]
    rule = schedule.get("rrule") or schedule.get("at") or json.dumps(schedule)
    retry = task.get("retry") or {}
    facts = [
        ("Owner", task["owner"], False),
        ("Handler", task["handler"], True),
        ("Payload", json.dumps(task.get("payload", {}), ensure_ascii=False), True),
        ("Schedule", words, False),
        ("Rule", str(rule), True),
        ("Labels", ", ".join(task.get("labels", ())) or "none", False),
        ("Retries", f"{retry.get('maxRetries', 0)}", False),
        ("Overlap", str(task.get("overlap", "skip")), False),
        ("Catch-up", str((task.get("catchUp") or {}).get("mode", "latest")), False),
        ("Tells failures", str(task.get("tellFailures", "first")), False),
        ("Lock", task.get("lockKey") or "none", bool(task.get("lockKey"))),
        ("Queue of workers", (task.get("pull") or {}).get("queue") or "none: the executor runs it", False),
        ("Revision", str(task.get("revision", 1)), False),
        ("Scheduled runs so far", f"{task.get('runCount', 0):,}", False),
    ]
    if schedule.get("followsOwner"):
        facts.insert(5, ("Time zone", f"follows {task['owner']} ({task['timezone']})", False))
    if task.get("description"):
        facts.insert(0, ("Description", task["description"], False))
    return facts
