"""A task: the reason for its state, its life, its executions, its next occurrences, and its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.chart_axis import Move, clip, find_parts, make_moves, read_window, write_window
from cloudsched.dashboard.life_chart import Lived, Noted, draw_life, find_span
from cloudsched.dashboard.offered_verbs import (
    Impossible,
    Question,
    explain_retry,
    fetch_startable,
    list_impossible,
    make_question,
    make_retry_question,
)
from cloudsched.dashboard.status import BAD, OPEN, Status, shorten, show_status, write_message
from cloudsched.dashboard.task_options import read_before
from cloudsched.dashboard.times import Moment, find_clock_changes, find_zone, parse_instant, write_duration
from cloudsched.dashboard.visit import UTC_ZONE, Api, Json, Visit, ZoneChoice, task_path, zone_choices
from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.execution import Trigger
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.explanation.findings import Reason
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Life:
    """The view model."""

    chart: Markup
    text: str
    """The chart's content in words."""
    moves: list[Move]


def build_life(executions: list[Json], due: list[datetime], visit: Visit, noted: Sequence[Noted] = ()) -> Life:
    """Return the life of a task.

    Args:
        executions: The latest ones, the latest first.
        due: The next occurrences, the soonest first.
        visit: The viewer, in the zone of the axis.
        noted: Pauses, edits and skips.
    """
    lived = [make_lived(each) for each in reversed(executions)]
    start, end = find_span(lived, due, visit.now)
    window = clip(read_window(visit), start, end)
    begin, finish = window or (start, end)

    def place(at: datetime) -> float:
        return (at - start) / (end - start)

    parts = find_parts(
        (place(begin), place(finish)), place(visit.now), least=1 / max(1.0, (end - start).total_seconds())
    )
    moves = make_moves(
        parts, lambda part: write_window(visit, start, end, part, "life", lambda at: start + (end - start) * at)
    )
    text = _describe(lived, due, visit, noted)
    if window is not None:
        text = f"{visit.sure(begin).text} to {visit.sure(finish).text}"
    return Life(draw_life(lived, due, visit.now, visit.zone, window, noted), text, moves)


def make_lived(record: Json) -> Lived:
    """Return an execution for the chart."""
    start = parse_instant(record.get("startedAt") or record["scheduledFor"])
    finished = parse_instant(record["finishedAt"]) if record.get("finishedAt") else start
    return Lived(start, None if record["status"] in OPEN else finished, record["status"], _find_word(record))


def _find_word(record: Json) -> str:
    return show_status(record["status"]).word.lower()


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
    skipped = (each for each in explanation["findings"] if each["reason"] == Reason.CALENDAR and each.get("at"))
    next_at = task.get("nextExecutionTime")
    noted += [Noted(parse_instant(each["at"]), "left out") for each in skipped if each["at"] != next_at]
    return noted


def _describe(lived: list[Lived], due: list[datetime], visit: Visit, noted: Sequence[Noted]) -> str:
    counts: dict[str, int] = {}
    for each in lived:
        counts[each.word] = counts.get(each.word, 0) + 1
    parts = [f"{count} {word}" for word, count in counts.items()]
    parts += [f"left out {visit.sure(each.at).text}" for each in noted if each.word == "left out"]
    if due:
        parts.append(f"next due {visit.sure(due[0]).text}")
    return ", ".join(parts) or "Nothing has run, and nothing is due."


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One entry of the history."""

    at: Moment
    what: str
    who: str
    fields: list[tuple[str, str, str]]
    """The changes of an edit: the field, and its values before and after, if they are shown."""
    execution_id: str | None
    back: str
    """The query of the form that takes it back. Empty if it is not an edit, or if its values are not known."""


_MOST_SAID: Final = 12
"""The number of a history's schedules that are put into words. Each that is not known yet takes a request."""


def say_schedules(api: Api, history: Json | None) -> dict[str, str]:
    """Return a history's schedules in words, by their JSON texts, as far as the API reads them."""
    fields = [one for each in (history or {}).get("entries", []) for one in each.get("fields", ())]
    texts = [one[name] for one in fields if one["field"] == "schedule" for name in ("before", "after") if one.get(name)]
    words = {}
    for text in list(dict.fromkeys(texts))[:_MOST_SAID]:
        with suppress(CloudschedError, ValueError):
            words[text] = api.describe(json.loads(text))
    return words


def build_history(answer: Json | None, words: Mapping[str, str], visit: Visit) -> list[HistoryRow]:
    """Return the rows of the API's answer, the latest first. Empty if the API has no history.

    Args:
        answer: The API's answer.
        words: The schedules in it, in words.
        visit: The viewer.
    """
    return [
        HistoryRow(
            at=visit.sure(each["at"]),
            what=each["action"].capitalize() + (f": {each['reason']}" if each.get("reason") else ""),
            who=_name_actor(each.get("by")),
            fields=[
                (one["field"], *(words.get(text, text) for text in (one.get("before", ""), one.get("after", ""))))
                for one in each.get("fields", [])
            ],
            execution_id=each.get("executionId"),
            back=urlencode({"back": number}) if read_before(each.get("fields", []))[0] else "",
        )
        for number, each in number_entries(answer)
    ]


def number_entries(history: Json | None) -> Iterator[tuple[int, Json]]:
    """Yield a history's entries, the latest first, each with its number since the task was created."""
    entries = (history or {}).get("entries", [])
    last = (history or {}).get("omittedEntries", 0) + len(entries)
    yield from ((last - index, each) for index, each in enumerate(entries))


def _name_actor(by: Json | None) -> str:
    if by is None:
        return "the scheduler"
    return str(by.get("subject") or "the app's own code")


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
        Trigger.SNOOZE: "snoozed",
    },
)


@dataclass(frozen=True, slots=True)
class ExecutionRow:
    """An execution in a list."""

    task_id: str
    title: str
    """The title of its task at that time."""
    id: str
    at: Moment
    status: Status
    outcome: str
    took: str
    late: str
    trigger: str
    """The requester. Empty for its schedule."""
    until: Moment | None = None
    """The start of its next attempt, or the end of its lease."""
    until_word: str = ""


@dataclass(frozen=True, slots=True)
class DueRow:
    """A next occurrence."""

    at: Moment
    utc: str
    change: str
    """The clock change before it that moves its UTC time. Empty if there is none."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One of the explanation's findings."""

    sentence: str
    at: Moment | None
    execution_id: str | None


@dataclass(frozen=True, slots=True)
class AskedDay:
    """A question about a day, and its answer."""

    day: str
    clock: str
    """The day and the time of day as they were given."""
    zone: str
    """The zone of that time."""
    evidence: list[Evidence]
    """The evidence of the answer, the most important first. Empty if nothing was asked."""
    problem: str
    """The problem with the question."""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """The view model."""

    id: str
    title: str
    etag: str
    status: Status
    schedule: str
    next: Moment | None
    summary: str
    tone: str
    evidence: list[Evidence]
    is_evidence_open: bool
    asked: AskedDay
    kept: list[tuple[str, str]]
    """The parameters of the address that the question's form sends along."""
    awaited: list[tuple[str, str]]
    """The events that its executions wait for, each with the execution."""
    forms: frozenset[str]
    """The events whose payload its handler has declared, so that a form asks for its fields."""
    verbs: tuple[str, ...]
    life: Life
    executions: list[ExecutionRow]
    older: str | None
    latest: str | None
    upcoming: list[DueRow]
    facts: list[tuple[str, str, bool]]
    """The facts: name, value, and whether a machine reads it."""
    history: list[HistoryRow]
    history_left_out: int
    as_json: str
    can_retry: str | None
    """The latest execution that failed and may be retried."""
    retry_question: Question | None
    """The question before it is retried."""
    why_no_retry: str
    """The reason why no retry is possible now, if there was a failure."""
    impossible: list[Impossible]
    """The verbs that are not possible now, with the reasons."""
    question: Question | None
    """The question before the task is run by hand. None if it cannot be."""
    zones: list[ZoneChoice]
    may_change: bool
    role: str


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
        "scheduleWords": say_schedules(api, history),
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


def build_asked(answer: Json, visit: Visit, zone: str) -> AskedDay:
    """Return the question about a day, and the API's answer."""
    day, clock = visit.query.get("on", ""), visit.query.get("clock", "")
    found = answer.get("asked")
    findings = found["findings"] if found else []
    evidence = [Evidence(each["sentence"], visit.moment(each.get("at")), each.get("executionId")) for each in findings]
    problem = f"{shorten(day, 40)} {shorten(clock, 40)}".strip() if day and not evidence else ""
    return AskedDay(
        day, clock, zone, evidence, f"{problem} is no day, or none of which something is known." if problem else ""
    )


def build(answer: Json, visit: Visit) -> TaskPage:
    """Return the view model of the API's answers, in the task's own zone unless the address names another."""
    task = answer["task"]
    own_zone = task.get("timezone", "UTC")
    visit = visit.in_zone_of(task)
    executions = answer["executions"]["executions"]
    due = [parse_instant(each["utc"]) for each in answer["upcoming"]]
    more = answer["executions"].get("nextPageToken")
    explanation = answer["explanation"]
    first = explanation["findings"][0] if explanation["findings"] else {"reason": "SCHEDULED"}
    bad = [each for each in executions if each["status"] in BAD]
    retryable = next((each for each in bad if "retry" in each.get("allowedVerbs", ())), None)
    return TaskPage(
        id=task["id"],
        title=task["title"],
        etag=answer["etag"],
        status=show_status(task["status"]),
        schedule=answer["words"],
        next=visit.moment(task.get("nextExecutionTime")),
        summary=explanation["summary"],
        tone=_find_tone(task, executions),
        evidence=[
            Evidence(each["sentence"], visit.moment(each.get("at")), each.get("executionId"))
            for each in explanation["findings"]
        ],
        is_evidence_open=first["reason"] not in _QUIET and task["status"] != TaskStatus.COMPLETED,
        asked=build_asked(answer, visit, own_zone),
        kept=[(name, visit.query[name]) for name in ("tz",) if visit.query.get(name)],
        awaited=_list_awaited(explanation),
        forms=frozenset(answer["eventSchemas"]),
        verbs=tuple(task.get("allowedVerbs", ())),
        life=build_life(executions, due, visit, list_noted(answer.get("history"), answer["explanation"], task, visit)),
        executions=[build_execution(each, visit) for each in executions],
        older=visit.with_query(page=more) if more else None,
        latest=visit.with_query(page=None) if visit.query.get("page") else None,
        upcoming=build_upcoming(due, visit, own_zone),
        facts=_list_facts(task, answer["words"]),
        history=build_history(answer.get("history"), answer.get("scheduleWords", {}), visit),
        history_left_out=(answer.get("history") or {}).get("omittedEntries", 0),
        as_json=json.dumps(task, indent=2, ensure_ascii=False),
        can_retry=retryable["id"] if retryable else None,
        retry_question=make_retry_question(task, retryable) if retryable else None,
        why_no_retry=explain_retry(task, bad[0], may_start=answer["mayStart"]) if bad else "",
        impossible=list_impossible(task, may_start=answer["mayStart"]),
        question=make_question(task, due, visit),
        zones=zone_choices(visit, own_zone),
        may_change=visit.may_change,
        role=visit.role,
    )


def build_execution(record: Json, visit: Visit) -> ExecutionRow:
    """Return an execution as a row."""
    due, started, finished = (_instant(record, name) for name in ("scheduledFor", "startedAt", "finishedAt"))
    error = record.get("error")
    outcome = write_message(record, visit)
    if error and record["status"] != "SUSPENDED":  # what a pause holds says so, rather than why it failed before
        outcome = f"{error['type']}: {error['message']}"
    elif record["status"] == "SUCCEEDED" and record.get("content") is not None:
        outcome = shorten(json.dumps(record["content"], ensure_ascii=False))
    elif not finished and record.get("progress"):
        outcome = record["progress"][-1]["text"]
    took = None if started is None else (finished or visit.now) - started
    late = None if started is None or due is None else started - due
    return ExecutionRow(
        task_id=record["taskId"],
        title=record.get("title") or record["taskId"],
        id=record["id"],
        at=visit.sure(record["scheduledFor"]),
        status=show_status(record["status"]),
        outcome=shorten(outcome),
        took=NONE if took is None else write_duration(max(took, timedelta(0))),
        late=NONE if late is None else write_duration(max(late, timedelta(0))),
        trigger=_TRIGGERS[record.get("trigger", Trigger.SCHEDULE)],
        until=visit.moment(record.get("nextAttemptAt") or record.get("leaseUntil")),
        until_word=_name_until(record),
    )


def _name_until(record: Json) -> str:
    if not record.get("nextAttemptAt"):
        return "lease ends"
    return "next attempt" if record["status"] == "RETRYING" else "next attempt was due"


def build_upcoming(due: list[datetime], visit: Visit, own_zone: str) -> list[DueRow]:
    """Return the next occurrences, each with the clock change before it, if there is one."""
    zone = find_zone(own_zone) or UTC_ZONE
    rows = []
    before = visit.now
    for at in due:
        is_far = at - before > timedelta(days=1000)
        changes = [] if is_far else find_clock_changes(before, at, zone)
        text = changes[-1].describe(zone) if changes else ""
        rows.append(DueRow(visit.sure(at), f"{at:%d %b %H:%M} UTC", text))
        before = at
    return rows


def _instant(record: Json, name: str) -> datetime | None:
    return parse_instant(record[name]) if record.get(name) else None


def _find_tone(task: Json, executions: list[Json]) -> str:
    """Return the colour of the sentence's box."""
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
