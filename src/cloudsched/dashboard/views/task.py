"""A task: the reason for its state, its executions, its next occurrences, and its fields."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time, tzinfo
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.forms.task_options import describe_option, name_option
from cloudsched.dashboard.local_instants import EnteredInstant, read_instant, write_notes
from cloudsched.dashboard.offered_verbs import (
    explain_retry,
    fetch_held,
    fetch_startable,
    list_impossible,
    make_question,
    make_retry_question,
)
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.dashboard.status import BAD, show_status
from cloudsched.dashboard.times import find_zone, parse_instant
from cloudsched.dashboard.upcoming import build_upcoming
from cloudsched.dashboard.views.execution_row import build_execution
from cloudsched.dashboard.views.task_history import build_history
from cloudsched.dashboard.visit import UTC_ZONE
from cloudsched.dashboard.words import only_if, shorten
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.policy import TellFailures
from cloudsched.domain.documents.run_counts import is_late
from cloudsched.domain.documents.task import FINAL_STATUSES, TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.explanation.findings import Reason, name_zone_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.offered_verbs import Question
    from cloudsched.dashboard.visit import Visit

PAGE_SIZE: Final = 20
_UPCOMING: Final = 10
_LATE: Final = "Late since"
_HELD_BACK: Final = frozenset({Reason.OVERLAP, Reason.TOO_MANY_RUNS})
"""Why an occurrence starts only once an open run has ended."""
_USUAL: Final = {"overlap": "SKIP", "catchUp": "LATEST"}
_TOLD: Final = complete_table(
    TellFailures,
    {
        TellFailures.FIRST: "of the first in a row",
        TellFailures.EACH: "of each",
        TellFailures.NEVER: "of none",
    },
)
_QUIET: Final = frozenset({Reason.SCHEDULED, Reason.RUNNING})
"""Reasons that are no problem: their evidence is folded."""
_UNCLAIMED: Final = frozenset({Reason.WAITING_FOR_WORKER, Reason.NO_WORKER_LISTENS})
"""Reasons of runs that may have no page yet, because no worker has claimed them."""
_NO_HANDLER: Final = "Nothing would run it: its handler is not registered, so one more run would fail."


def fetch(api: Api, visit: Visit, task_id: str) -> Json:
    """Ask the API for all data on a task."""
    task, etag = api.task(task_id)
    path = task_path(task_id)
    wanted = _read_run_filters(task, visit)
    records = api.get(f"{path}/executions", **wanted, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    history = api.find(f"{path}/history")
    explanation = api.get(f"{path}/explain")
    asked = None
    if at := read_asked(visit, find_zone(task.get("timezone")) or UTC_ZONE):
        asked = api.find(f"{path}/explain", at=at.isoformat())
    schemas = {}
    if _list_awaited(explanation):
        schemas = fetch_event_schemas(api, task)

    return {
        "task": task,
        "etag": etag,
        "explanation": explanation,
        "asked": asked,
        "executions": records,
        "upcoming": api.get(f"{path}/upcoming", count=_UPCOMING)["occurrences"],
        "history": history,
        "mayStart": fetch_startable(api, visit, task),
        "eventSchemas": schemas,
        "held": fetch_held(api, task, explanation),
    }


RUN_FILTERS: Final = ("runStatus", "runsFrom", "runsUntil")
PARAMETERS: Final = (*RUN_FILTERS, "page", "on", "clock", "move", "from", "until")


def _read_run_filters(task: Json, visit: Visit) -> dict[str, str]:
    """Return the filters of the task's executions, as the API takes them."""
    entered = _read_entered(visit.in_zone_of(task))
    bounds = {"from": entered["runsFrom"].iso, "until": entered["runsUntil"].iso}
    return {"status": visit.query.get("runStatus", "").upper(), **bounds}


def _read_entered(visit: Visit) -> dict[str, EnteredInstant]:
    return {name: read_instant(visit.query.get(name, ""), visit.zone) for name in RUN_FILTERS[1:]}


def _list_awaited(explanation: Json) -> list[tuple[str, str]]:
    """Return the events that runs wait for, each with its execution. A finding has the event's name in quotes."""
    found = []
    for finding in explanation["findings"]:
        _, *quoted = finding["sentence"].split("'")
        if finding["reason"] == Reason.WAITING_FOR_EVENT and len(quoted) > 1:
            found.append((quoted[0], finding.get("executionId", "")))
    return found


def fetch_event_schemas(api: Api, task: Json) -> Json:
    """Ask the API for the schemas of the events that a task's handler has declared."""
    schemas: Json = api.find_handler(task["handler"]).get("eventSchemas", {})
    return schemas


def read_asked(visit: Visit, zone: tzinfo) -> datetime | None:
    """Return the instant in the address's question, in a zone. Without a time, it is the beginning of the day."""
    day = visit.query.get("on", "")
    clock = visit.query.get("clock", "") or "00:00"
    try:
        return datetime.combine(date.fromisoformat(day), time.fromisoformat(clock), zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def build_asked(answer: Json, visit: Visit, zone: str) -> Json:
    """Return the question about a day, and the API's answer. Its findings are empty if nothing was asked."""
    day = visit.query.get("on", "")
    clock = visit.query.get("clock", "")
    findings = (answer.get("asked") or {}).get("findings", ())
    problem = ""
    if day and not findings:
        asked = f"{shorten(day, 40)} {shorten(clock, 40)}".strip()
        problem = f"{asked} is not a day that anything is known about."
    return {"day": day, "clock": clock, "zone": zone, "findings": _write_findings(findings), "problem": problem}


def _write_findings(findings: Sequence[Json]) -> list[Json]:
    """Return findings that are shown together, with their zone once."""
    sentences = name_zone_once([each["sentence"] for each in findings])
    return [{**each, "sentence": sentence} for each, sentence in zip(findings, sentences, strict=True)]


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of a task shows."""
    task = answer["task"]
    verbs = task.get("allowedVerbs", ())
    explanation = answer["explanation"]
    history = answer.get("history") or {}
    held = answer.get("held")
    possible = [each for each in Verb if each in verbs and not (held and each.traits.starts)]
    own_zone = task.get("timezone", "UTC")
    words = describe_schedule(task["schedule"], visit.now)
    executions = answer["executions"]["executions"]
    due = [parse_instant(each["utc"]) for each in answer["upcoming"]]
    next_word = _name_next(task, explanation, visit)

    return {
        **answer,
        **_build_retry(answer),
        "title": task["title"],
        "words": words,
        "verbs": verbs,
        "tone": _find_tone(task, executions) or only_if(next_word == _LATE, "retry"),
        "findings": _write_findings(explanation["findings"]),
        "isEvidenceOpen": _has_problem(explanation) and task["status"] != TaskStatus.COMPLETED,
        "asked": build_asked(answer, visit, own_zone),
        "awaited": _list_awaited(explanation),
        "nothing": _describe_nothing(task, due),
        "executions": [build_execution(each, visit) for each in executions],
        "recorded": {each["id"] for each in executions},
        "unclaimed": _UNCLAIMED,
        "runFilters": {name: visit.query[name] for name in RUN_FILTERS if visit.query.get(name)},
        "runStatuses": {each: show_status(each).word for each in ExecutionStatus},
        "entered": _read_entered(visit),
        "runsNote": write_notes(*_read_entered(visit).values()),
        "older": answer["executions"].get("nextPageToken"),
        "upcoming": build_upcoming(due, visit, own_zone),
        "moved": _read_moved(visit),
        "facts": [*_list_facts(task, words)],
        "history": build_history(history, task, visit),
        "omittedEntries": history.get("omittedEntries", 0),
        "json": json.dumps(task, indent=2, ensure_ascii=False),
        "impossible": list_impossible(task, visit.now, may_start=answer["mayStart"], held=held),
        "mayRaise": visit.may_change and visit.role == "admin",
        "question": None if held else _warn(make_question(task, due, explanation, visit), explanation),
        "buttons": [each for each in possible if each.traits.button],
        "hasEnded": task["status"] in FINAL_STATUSES,
        "nextWord": next_word,
    }


def _describe_nothing(task: Json, due: list[datetime]) -> str:
    """Return what there is instead of runs."""
    if task.get("offeredAt"):
        return "Nothing has run yet: a run waits for a worker."
    return "Nothing has run yet." if due else "Nothing has run, and nothing is due."


def _read_moved(visit: Visit) -> str:
    """Return the occurrence that the address asks to move, if it is ahead. Empty for the next one."""
    try:
        at = datetime.fromisoformat(visit.query.get("move", ""))
        return at.astimezone(UTC).isoformat() if at.tzinfo is not None and at > visit.now else ""
    except (ValueError, OverflowError):
        return ""


def _has_problem(explanation: Json) -> bool:
    """Return whether the first finding is about something that is not as it should be."""
    return any(each["reason"] not in _QUIET for each in explanation["findings"][:1])


def _build_retry(answer: Json) -> Json:
    """Return the latest execution that can be retried, with the question before that, or why none can be."""
    task, held, may_start = answer["task"], answer.get("held"), answer["mayStart"]
    bad = [each for each in answer["executions"]["executions"] if each["status"] in BAD]
    found: Json = {"retryable": None, "retryQuestion": None, "whyNoRetry": ""}
    if bad and held and may_start and task.get("allowedVerbs"):
        return {**found, "whyNoRetry": held.reason}
    retryable = next((each for each in bad if "retry" in each.get("allowedVerbs", ())), None)
    if retryable:
        question = _warn(make_retry_question(task, retryable), answer["explanation"])
        found |= {"retryable": retryable, "retryQuestion": question}
    if bad:
        found["whyNoRetry"] = explain_retry(task, bad[0], may_start=may_start)
    return found


def _warn(question: Question | None, explanation: Json) -> Question | None:
    """Return the question before a run. If the handler is not registered, it says so instead of what would run."""
    is_unknown = any(each["reason"] == Reason.UNKNOWN_HANDLER for each in explanation["findings"])
    return replace(question, sentence=_NO_HANDLER) if question and is_unknown else question


def _name_next(task: Json, explanation: Json, visit: Visit) -> str:
    """Return the words before a task's next time, which may be past. What waits for an open run is not late."""
    at = task.get("nextExecutionTime")
    if task["status"] != TaskStatus.ACTIVE or not at or not is_late(parse_instant(at), visit.now):
        return "Next:"
    return "Due since" if any(each["reason"] in _HELD_BACK for each in explanation["findings"]) else _LATE


def _find_tone(task: Json, executions: list[Json]) -> str:
    statuses = {each["status"] for each in executions}
    if task["status"] == TaskStatus.FAILED or task.get("consecutiveFailures"):
        return "fail"
    if task["status"] == TaskStatus.PAUSED or ExecutionStatus.RETRYING in statuses:
        return "retry"
    if ExecutionStatus.SUSPENDED in statuses:
        return "wait"
    if task.get("isRunning"):
        return "run"
    return ""


def _list_facts(task: Json, words: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the facts about a task: name, value, and whether a machine reads it."""
    schedule = task["schedule"]
    if task.get("description"):
        yield "Description", task["description"], False
    yield "Owner", task["owner"], False
    yield "Handler", task["handler"], True
    yield "Payload", json.dumps(task.get("payload", {}), ensure_ascii=False), True
    yield "Schedule", words, False
    yield "Rule", str(schedule.get("rrule") or schedule.get("at") or json.dumps(schedule)), True
    if schedule.get("followsOwner"):
        yield "Time zone", f"follows {task['owner']} ({task['timezone']})", False
    yield "Labels", ", ".join(task.get("labels", ())) or "none", False
    yield "Retries", str(_find_part(task, "retry", "maxRetries", 0)), False
    for name in ("overlap", "catchUp"):
        yield name_option(name), describe_option(name, task.get(name) or _USUAL[name]), False
    yield "Notifies of failures", _TOLD[TellFailures(task.get("tellFailures", "FIRST"))], False
    yield "Lock", task.get("lockKey") or "none", bool(task.get("lockKey"))
    yield "Worker queue", _find_part(task, "pull", "queue", "") or "none, the executor runs it", False
    yield "Revision", str(task.get("revision", 1)), False
    yield "Scheduled runs so far", f"{task.get('runCount', 0):,}, without what was skipped", False


def _find_part(task: Json, name: str, part: str, default: object) -> Any:  # noqa: ANN401 - any JSON
    """Return a part of a field of a task, which may have neither."""
    return (task.get(name) or {}).get(part, default)
