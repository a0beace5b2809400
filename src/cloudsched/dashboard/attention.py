"""What needs somebody: what failed, waits that give up soon, work that nobody takes, and what failures have paused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.offered_verbs import RESUME_QUESTION, RetryQuestion, fetch_startable, make_retry_question
from cloudsched.dashboard.status import BAD, Status, show_status
from cloudsched.dashboard.task_view import build_execution
from cloudsched.dashboard.tasks_view import needs_attention
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.domain.transitions.requirements import RETRYABLE_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.times import Moment
    from cloudsched.dashboard.visit import Visit

_LISTED, _LOOKED_AT = 8, 20
SOON: Final = timedelta(days=7)
"""A wait that gives up within this time needs somebody."""


@dataclass(frozen=True, slots=True)
class Need:
    """Something that needs somebody."""

    key: str
    status: Status
    title: str
    href: str
    what: str
    """What goes on after the title."""
    at: Moment | None
    detail: str
    task_id: str = ""
    execution_id: str = ""
    retry_question: RetryQuestion | None = None
    """What is asked before the execution is retried, if that resolves it."""
    resume_question: str = ""
    """What is asked before the task is resumed, if that resolves it."""


def fetch_needs(api: Api, visit: Visit, waiting: Sequence[Json]) -> Json:
    """Ask the API for what failed last with its tasks, for what is paused, and for the steps of what waits.

    Args:
        api: The API.
        visit: Who looks.
        waiting: Suspended executions, as lists have them: without their steps.
    """
    failed = [each for status in sorted(BAD) for each in _list(api, "/v1/executions", "executions", status=status)]
    failed.sort(key=lambda each: str(each["scheduledFor"]), reverse=True)
    ids = list(dict.fromkeys(each["taskId"] for each in failed))[:_LISTED]
    tasks = {task_id: api.find(task_path(task_id)) for task_id in ids}
    return {
        "failed": failed,
        "tasks": tasks,
        "startable": [task_id for task_id, task in tasks.items() if task and fetch_startable(api, visit, task)],
        "paused": _list(api, "/v1/tasks", "tasks", status="PAUSED"),
        "waits": [
            record
            for each in waiting[:_LISTED]
            if (record := api.find(f"{task_path(each['taskId'])}/executions/{quote(each['id'], safe='')}"))
        ],
    }


def _list(api: Api, path: str, name: str, **query: str) -> list[Json]:
    return list(api.get(path, **query, pageSize=_LOOKED_AT)[name])


def build_needs(answer: Json, queues: Sequence[Json], visit: Visit) -> list[Need]:
    """Return what needs somebody. A task whose next execution has succeeded since needs nobody."""
    found = [
        *_build_failed(answer, visit),
        *_build_waits(answer["waits"], visit),
        *_build_unheard(queues, visit),
        *_build_paused(answer["paused"]),
    ]
    return found[: _LISTED * 2]


def find_last_failure(answer: Json, visit: Visit) -> Moment | None:
    """Return when something failed last; None if nothing that is known did."""
    return visit.moment(answer["failed"][0]["scheduledFor"]) if answer["failed"] else None


def _build_failed(answer: Json, visit: Visit) -> Iterator[Need]:
    for task_id, task in answer["tasks"].items():
        if task is None or not needs_attention(task) or task["status"] == "PAUSED":
            continue
        record = next(each for each in answer["failed"] if each["taskId"] == task_id)
        row = build_execution(record, visit)
        count = task.get("consecutiveFailures", 0)
        may_retry = task["status"] in RETRYABLE_STATUSES and task_id in answer["startable"]
        yield Need(
            key=f"{task_id} {row.id}",
            status=row.status,
            title=task["title"],
            href=f"tasks/{quote(task_id, safe='')}/executions/{row.id}",
            what=f"{row.status.word.lower()}" + (f", {count:,} in a row," if count > 1 else ""),
            at=row.at,
            detail=row.outcome,
            task_id=task_id,
            execution_id=row.id,
            retry_question=make_retry_question(task, record, is_payload_listed=False) if may_retry else None,
        )


def _build_waits(waits: Sequence[Json], visit: Visit) -> Iterator[Need]:
    found = [
        (parse_instant(step["dueAt"]), step, record)
        for record in waits
        for step in record.get("steps", [])
        if step["kind"] == "EVENT" and step["status"] == "WAITING" and step.get("dueAt")
    ]
    for until, step, record in sorted(found, key=lambda each: each[0]):
        if until - visit.now <= SOON:
            took = write_duration(max(timedelta(0), visit.now - parse_instant(step["startedAt"])))
            yield Need(
                key=f"{record['taskId']} {record['id']}",
                status=show_status("SUSPENDED"),
                title=record.get("title") or record["taskId"],
                href=f"tasks/{quote(record['taskId'], safe='')}/executions/{record['id']}",
                what=f"waits for the event {step['name']}, and gives up",
                at=visit.moment(until),
                detail=f"it has waited for {took}.",
            )


def _build_unheard(queues: Sequence[Json], visit: Visit) -> Iterator[Need]:
    for each in queues:
        if each["waiting"] and not each["workers"]:
            skill = f" with the skill {each['skill']}" if each.get("skill") else ""
            waiting = "1 run waits" if each["waiting"] == 1 else f"{each['waiting']:,} runs wait"
            yield Need(
                key=f"queue {each['queue']} {each.get('skill')}",
                status=Status("offer", "Offered", "retry"),
                title=each["queue"],
                href="queues",
                what="has nobody who listens, since",
                at=visit.moment(each.get("firstSince")),
                detail=f"{waiting} for a worker{skill}.",
            )


def _build_paused(tasks: Sequence[Json]) -> Iterator[Need]:
    for task in tasks:
        failures = task.get("consecutiveFailures", 0)
        if failures:
            yield Need(
                key=f"paused {task['id']}",
                status=show_status("PAUSED"),
                title=task["title"],
                href=f"tasks/{quote(task['id'], safe='')}",
                what="is paused after a failure"
                if failures == 1
                else f"is paused after {failures:,} failures in a row",
                at=None,
                detail=task.get("message") or "Nothing of it starts until somebody resumes it.",
                task_id=task["id"],
                resume_question=RESUME_QUESTION if "resume" in task.get("allowedVerbs", ()) else "",
            )
