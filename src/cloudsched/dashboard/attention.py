"""The problems that need somebody: each cause with its count and its oldest task, and the latest tasks of each.

The counts are the store's own (``/v1/overview``), of all tasks. The page reports that there are none only if every
cause was counted to its end, and shows the age of the counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.offered_verbs import RESUME_QUESTION, Question, fetch_startable, make_retry_question
from cloudsched.dashboard.status import BAD, Status, show_status
from cloudsched.dashboard.task_view import build_execution
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.visit import Api, Json, Visit, task_path, write_count
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.transitions.needs import GIVES_UP_SOON, LATE
from cloudsched.domain.transitions.retry_execution import RETRYABLE_STATUSES

_SHOWN, _WAITS, _GROUPED = 5, 100, 100
MAX_QUEUES: Final = 200
"""The number of queues that the API lists. If there are more, some were not checked."""
FRESH: Final = timedelta(seconds=30)
"""Counts that are older are no longer current."""


@dataclass(frozen=True, slots=True)
class Need:
    """A problem that needs somebody."""

    key: str
    status: Status
    title: str
    href: str
    what: str
    """The text after the title."""
    at: str | None
    detail: str
    task_id: str = ""
    execution_id: str = ""
    retry_question: Question | None = None
    """The question before the execution is retried, if that resolves the problem."""
    resume_question: str = ""
    """The question before the task is resumed, if that resolves the problem."""


def fetch_needs(api: Api, visit: Visit, counts: Json | None) -> Json:
    """Ask the API for the latest tasks of each cause for which the overview has counted any."""
    causes = {each["cause"]: each for each in (counts or {}).get("needs", ()) if each["count"]}
    tasks = {name: _list_tasks(api, visit, name) for name in causes if name != NeedCause.OVERDUE}
    failed = [group[0] for group in _group_failed(tasks.get(NeedCause.FAILED, []))[:_SHOWN]]
    return {
        "counts": counts,
        "tasks": tasks,
        "records": {
            each["id"]: api.find(f"{task_path(each['id'])}/executions/{quote(each['lastExecutionId'], safe='')}")
            for each in failed
            if each.get("lastExecutionId")
        },
        "startable": [each["id"] for each in failed if fetch_startable(api, visit, each)],
        "waits": [
            record
            for each in tasks.get(NeedCause.WAITING, ())
            for found in (api.find(f"{task_path(each['id'])}/executions", pageSize=_SHOWN) or {}).get("executions", ())
            if found["status"] == "SUSPENDED"
            and (record := api.find(f"{task_path(each['id'])}/executions/{quote(found['id'], safe='')}"))
        ],
        "lastFailures": [
            each
            for status in sorted(BAD)
            for each in (api.find("/v1/executions", status=status, pageSize=1) or {}).get("executions", ())
        ],
    }


def _group_failed(tasks: Sequence[Json]) -> list[list[Json]]:
    """Return tasks whose last run failed by their handlers, so that many of one do not hide the only one of another."""
    groups: dict[str, list[Json]] = {}
    for task in tasks:
        groups.setdefault(task["handler"], []).append(task)
    return [*groups.values()]


def _list_tasks(api: Api, visit: Visit, cause: str) -> list[Json]:
    size = {NeedCause.FAILED.value: _GROUPED, NeedCause.WAITING.value: _WAITS}.get(cause, _SHOWN)
    found: list[Json] = api.get("/v1/tasks", **filter_by_cause(cause, visit), pageSize=size)["tasks"]
    return found[::-1][:_SHOWN] if cause == NeedCause.WAITING else found


def filter_by_cause(cause: str, visit: Visit) -> dict[str, str]:
    """Return the API's filters for the tasks of a cause. Of those that wait, only some give up soon enough to count."""
    until = {"troubleUntil": (visit.now + GIVES_UP_SOON).isoformat()} if cause == NeedCause.WAITING else {}
    return {"trouble": str(cause), **until}


def build_attention(answer: Json, queues: Sequence[Json], visit: Visit) -> Json:
    """Return the problems, the most urgent cause first, and what to say if there are none.

    ``isAtLeast`` means that there may be more, because something was not counted, or not to its end. The status is a
    tick only if every question was asked and answered.
    """
    counts, tasks = answer["counts"], answer["tasks"]
    known = {each["cause"]: each for each in (counts or {}).get("needs", ())}
    rows = {
        NeedCause.FAILED: [*_build_failed(answer, visit)],
        NeedCause.WAITING: [*_build_waits(answer["waits"], visit)][:_SHOWN],
        NeedCause.OVERDUE: [],
        NeedCause.PAUSED: [*_build_paused(tasks.get("PAUSED", ()))],
        NeedCause.HELD: [*_build_plain(tasks.get("BUDGET", ()), NeedCause.HELD)],
        NeedCause.DELIVERY: [*_build_plain(tasks.get("DELIVERY", ()), NeedCause.DELIVERY)],
    }
    needs: list[Need] = []
    for cause in map(NeedCause, CAUSES):
        if found := known.get(cause.value):
            needs += _build_cause(cause, found, rows[cause], visit)
        if cause is NeedCause.WAITING:
            needs += _build_unheard(queues)
    unheard = sum(1 for each in queues if each["waiting"] and not each["workers"])
    missing = [cause for cause in NeedCause if cause.value not in known]
    cut = [name for name, each in known.items() if each.get("isAtLeast")]
    age = visit.now - parse_instant(counts["countedAt"]) if counts else FRESH
    is_whole = not (missing or cut) and len(queues) < MAX_QUEUES and age < FRESH
    last = max((str(each["scheduledFor"]) for each in answer["lastFailures"]), key=parse_instant, default=None)
    failure = "" if last is None else f" The last failure was {visit.moment(last).relative}."
    if is_whole:
        asked = "just now" if age < timedelta(seconds=1) else f"{write_duration(age)} ago"
        calm = f"Nothing needs you: all tasks were asked {asked}."
    elif counts:
        calm = "Nothing was found that needs you, but not everything was looked at."
    else:
        calm = "It is not known whether anything needs you: the counts did not come."
    return {
        "needs": needs,
        "count": sum(each["count"] for each in known.values()) + unheard,
        "isAtLeast": not is_whole,
        "calm": f"{calm}{failure}",
        "status": show_status("SUCCEEDED") if is_whole else Status("late", "Not known", "retry"),
    }


def _build_cause(cause: NeedCause, found: Json, rows: list[Need], visit: Visit) -> Iterator[Need]:
    """Yield the line of a cause, and some of its tasks. If there is only one task, yield only the task."""
    count, is_at_least = found["count"], bool(found.get("isAtLeast"))
    if not count:
        return
    if count == 1 and rows and not is_at_least:
        yield rows[0]
        return
    said = CAUSES[cause]
    is_delivery = cause is NeedCause.DELIVERY
    title = write_count(count, "result" if is_delivery else "task", "results" if is_delivery else "tasks")
    yield Need(
        key=f"cause {cause}",
        status=said.status,
        title=f"At least {title}" if is_at_least else title,
        href=list_path(cause, visit),
        what=said.one if count == 1 else said.many,
        at=found.get("oldest"),
        detail="Only the latest hundred were dated: some may be older." if found.get("isOldestAtLeast") else "",
    )
    for row in rows:
        yield replace(row, key=f"{cause} {row.key}")


def _build_failed(answer: Json, visit: Visit) -> Iterator[Need]:
    """Yield a row for each handler whose tasks failed last: the task, or their number and the latest."""
    for group in _group_failed(answer["tasks"].get("FAILED", ()))[:_SHOWN]:
        latest, handler = group[0], group[0]["handler"]
        if len(group) == 1:
            yield _build_failed_task(latest, answer, visit)
            continue
        record = answer["records"].get(latest["id"])
        error = "" if record is None else f": {build_execution(record, visit)['outcome']}"
        yield Need(
            key=f"handler {handler}",
            status=show_status("FAILED"),
            title=f"{len(group):,} tasks of {handler}",
            href=f"runs?{urlencode({'handler': handler, 'status': 'FAILED', 'within': 'any'})}",
            what="failed last, the latest to begin",
            at=latest.get("failingSince"),
            detail=f"{latest['title']}{error}",
        )


def _build_failed_task(task: Json, answer: Json, visit: Visit) -> Need:
    record, count = answer["records"].get(task["id"]), task.get("consecutiveFailures", 0)
    in_a_row = f", {count:,} in a row," if count > 1 else ""
    need = Need(
        key=task["id"],
        status=show_status("FAILED"),
        title=task["title"],
        href=f"tasks/{task['id']}",
        what=f"failed{in_a_row}",
        at=task.get("failingSince"),
        detail=task.get("message") or "The record of that run is gone.",
        task_id=task["id"],
    )
    if record is None:
        return need
    status = show_status(record["status"])
    may_retry = task["status"] in RETRYABLE_STATUSES and task["id"] in answer["startable"] and status.css != "ended"
    return replace(
        need,
        key=f"{task['id']} {record['id']}",
        status=status,
        href=f"{need.href}/executions/{record['id']}",
        what=f"{status.word.lower()}{in_a_row}",
        at=record["scheduledFor"],
        detail=build_execution(record, visit)["outcome"],
        execution_id=record["id"],
        retry_question=make_retry_question(task, record) if may_retry else None,
    )


def _build_waits(waits: Sequence[Json], visit: Visit) -> Iterator[Need]:
    found = [
        (parse_instant(step["dueAt"]), step, record)
        for record in waits
        for step in record.get("steps", [])
        if step["kind"] == "EVENT" and step["status"] == "WAITING" and step.get("dueAt")
    ]
    for until, step, record in sorted(found, key=lambda each: each[0]):
        if until - visit.now < GIVES_UP_SOON:
            took = write_duration(max(timedelta(0), visit.now - parse_instant(step["startedAt"])))
            yield Need(
                key=f"{record['taskId']} {record['id']}",
                status=show_status("SUSPENDED"),
                title=record.get("title") or record["taskId"],
                href=f"tasks/{record['taskId']}/executions/{record['id']}",
                what=f"waits for the event {step['name']}, and gives up",
                at=until.isoformat(),
                detail=f"it has waited for {took}.",
            )


def _build_unheard(queues: Sequence[Json]) -> Iterator[Need]:
    for each in queues:
        if each["waiting"] and not each["workers"]:
            skill = f" with the skill {each['skill']}" if each.get("skill") else ""
            waiting = write_count(each["waiting"], "run waits", "runs wait")
            yield Need(
                key=f"queue {each['queue']} {each.get('skill')}",
                status=Status("offer", "Offered", "retry"),
                title=each["queue"],
                href=f"queues?{urlencode({'queue': each['queue']})}",
                what="has nobody who listens, since",
                at=each.get("firstSince"),
                detail=f"{waiting} for a worker{skill}.",
            )


def _build_paused(tasks: Sequence[Json]) -> Iterator[Need]:
    for task in tasks:
        failures = task.get("consecutiveFailures", 0)
        yield Need(
            key=f"paused {task['id']}",
            status=show_status("PAUSED"),
            title=task["title"],
            href=f"tasks/{task['id']}",
            what="is paused after a failure," if failures == 1 else f"is paused after {failures:,} failures in a row,",
            at=task.get("statusChangedAt"),
            detail=task.get("message") or "Nothing of it starts until somebody resumes it.",
            task_id=task["id"],
            resume_question=RESUME_QUESTION if "resume" in task.get("allowedVerbs", ()) else "",
        )


def _build_plain(tasks: Sequence[Json], cause: NeedCause) -> Iterator[Need]:
    for task in tasks:
        yield Need(
            key=f"{cause} {task['id']}",
            status=CAUSES[cause].status,
            title=task["title"],
            href=f"tasks/{task['id']}",
            what=CAUSES[cause].one.removesuffix(","),
            at=None,
            detail=f"Of {task['owner']}. {task.get('message') or ''}".strip(),
            task_id=task["id"],
        )


@dataclass(frozen=True, slots=True)
class Cause:
    """The words for a cause."""

    status: Status
    chip: str
    """A word or two, before a number."""
    one: str
    """The text after a single task's title."""
    many: str
    """The text after a number of tasks."""


CAUSES: Final = complete_table(
    NeedCause,
    {
        NeedCause.FAILED: Cause(show_status("FAILED"), "Failed last", "failed last,", "failed last, the first of them"),
        NeedCause.WAITING: Cause(
            show_status("SUSPENDED"),
            "Give up soon",
            "waits for an event, and gives up",
            "wait for events and give up soon, the first",
        ),
        NeedCause.OVERDUE: Cause(
            Status("late", "Late", "timeout"),
            "Late",
            "is late and has not started: it was due",
            "are late and have not started: the first was due",
        ),
        NeedCause.PAUSED: Cause(
            show_status("PAUSED"),
            "Paused after failures",
            "is paused after a failure,",
            "are paused after failures, the first",
        ),
        NeedCause.HELD: Cause(
            show_status("PAUSED"),
            "Without budget",
            "is paused: its owner's budget is used up,",
            "are paused: their owners' budgets are used up, the first",
        ),
        NeedCause.DELIVERY: Cause(
            Status("fail", "Not delivered", "fail"),
            "Not delivered",
            "has not been delivered,",
            "have not been delivered, the first",
        ),
    },
)
"""The causes, the most urgent first."""


def list_path(cause: NeedCause, visit: Visit) -> str:
    """Return the path of the list of a cause's tasks. Its pages keep the instant that it was asked for at."""
    if cause is NeedCause.OVERDUE:
        return f"tasks?{urlencode({'dueUntil': (visit.now - LATE).isoformat()})}"
    return f"tasks?{urlencode(filter_by_cause(cause, visit))}"
