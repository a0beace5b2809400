"""The rows of what needs attention: a line for each cause, and below it those that one act resolves.

What failed, and what failures have paused, has a line for each handler, the rarest first: the task, or the number
of its tasks with the true oldest. So many tasks of one handler do not hide the only one of another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.offered_verbs import RESUME_QUESTION, Question, make_retry_question
from cloudsched.dashboard.status import BAD, OFFERED, OPEN, Status, show_status
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.views.causes import CAUSES, list_path
from cloudsched.dashboard.views.decisions import ShownDecision, list_decisions
from cloudsched.dashboard.views.execution_row import build_execution
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.explanation.findings import Reason
from cloudsched.domain.transitions.edits import SAID_OF_SPEC
from cloudsched.domain.transitions.needs import GIVES_UP_SOON

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

_PAUSED: Final = Status("pause", "Paused", "fail")
_OF_HANDLER: Final = "handler "
"""The beginning of the keys of rows that count the tasks of a handler."""
GROUPS: Final = 10
"""The most handlers of a cause that have a line each."""
SHOWN: Final = 5
"""The most tasks of a cause that have a line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A problem that needs attention."""

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
    act: tuple[str, str] = ("", "")
    """The words and the address of the form that resolves the problem."""
    queue: str = ""
    """The queue that is resumed, if that resolves the problem."""
    decision: ShownDecision | None = None
    """The answer that resolves the problem."""
    is_part: bool = False
    """True for some of those that the row above it counts."""


def build_needs(answer: Json, counted: Mapping[str, Json], unheard: Sequence[Json], visit: Visit) -> Iterator[Need]:
    """Yield the rows, the most urgent cause first: what many tasks have in common, and then each cause."""
    tasks = answer["tasks"]
    counted = {cause: leave_out(NeedCause(cause), found, answer) for cause, found in counted.items()}
    common = list_common(answer["counts"])
    yield from (_build_common(each, visit) for each in common)

    budgets = {each["subject"] for each in common if each["reason"] == Reason.BUDGET_USED_UP}
    held = [each for each in tasks.get(NeedCause.HELD, ()) if each["owner"] not in budgets]
    paused = list_paused(common)
    late = [each for each in tasks.get(NeedCause.OVERDUE, ()) if each["priority"] not in paused]
    delivered = tasks.get(NeedCause.DELIVERY, ())
    rows = {
        NeedCause.FAILED: _build_groups(NeedCause.FAILED, answer, counted, visit),
        NeedCause.WAITING: _build_waits(answer, counted, visit),
        NeedCause.OVERDUE: map(_build_overdue, late[:SHOWN]),
        NeedCause.PAUSED: _build_groups(NeedCause.PAUSED, answer, counted, visit),
        NeedCause.HELD: (_build_plain(each, NeedCause.HELD) for each in held[:SHOWN]),
        NeedCause.DELIVERY: (_build_delivery(each, answer["sent"].get(each["id"]), visit) for each in delivered),
    }
    for cause in map(NeedCause, CAUSES):
        if found := counted.get(cause):
            yield from _build_cause(cause, found, [*rows[cause]], visit)
        if cause is NeedCause.WAITING:
            yield from map(_build_unheard, unheard)


def list_common(counts: Json | None) -> Sequence[Json]:
    """Return what many tasks have in common, as the overview has it."""
    found: Sequence[Json] = (counts or {}).get("causes", ())
    return found


def list_unheard(queues: Sequence[Json]) -> list[Json]:
    """Return the queues in which something waits, and at which no worker listens."""
    return [each for each in queues if each["waiting"]["value"] and not each["workers"]]


def list_paused(common: Sequence[Json]) -> set[str]:
    """Return the priorities whose queue is paused."""
    return {priority for each in common for priority in each.get("priorities") or ()}


def leave_out(cause: NeedCause, found: Json, answer: Json) -> Json:
    """Return the count of a cause without the tasks that wait for what has a line of its own."""
    common = list_common(answer["counts"])
    if cause is NeedCause.FAILED:
        unknown = {each["subject"]: each["count"] for each in common if each["reason"] == Reason.UNKNOWN_HANDLER}
        return _leave_out_handlers(found, unknown)
    if cause not in {NeedCause.OVERDUE, NeedCause.HELD}:
        return found
    if cause is NeedCause.HELD:
        waiting = sum(each.get("count", 0) for each in common if each["reason"] == Reason.BUDGET_USED_UP)
        return {**found, "count": max(0, found["count"] - waiting)}
    late = answer["tasks"].get(cause, ())
    others = [each for each in late if each["priority"] not in list_paused(common)]
    if len(others) == len(late):
        return found
    oldest = others[0]["nextExecutionTime"] if others else None
    return {**found, "count": max(0, found["count"] - len(late) + len(others)), "oldest": oldest}


def _leave_out_handlers(found: Json, told: Mapping[str, int]) -> Json:
    """Return the count of a cause without the tasks of handlers that have a line of their own, which tells so many.

    If more tasks fail than that, some have ended, which that line does not count: they stay.
    """
    gone = [each for each in found.get("groups", ()) if each["count"] <= told.get(each["handler"], 0)]
    if not gone:
        return found
    groups = [each for each in found["groups"] if each not in gone]
    count = max(0, found["count"] - sum(each["count"] for each in gone))
    return {**found, "count": count, "groups": groups, "oldest": min((each["oldest"] for each in groups), default=None)}


def _build_cause(cause: NeedCause, found: Json, rows: Sequence[Need], visit: Visit) -> Iterator[Need]:
    """Yield the line of a cause, and some of its tasks. If there is only one task or handler, yield only its line."""
    count = found["count"]
    is_at_least = bool(found.get("isAtLeast"))
    if not count:
        return
    is_told = len(rows) == 1 and (count == 1 or rows[0].key.startswith(_OF_HANDLER))
    if is_told and not is_at_least:
        yield rows[0]
        return

    said = CAUSES[cause]
    things = write_count(count, "task", "tasks")
    if cause is NeedCause.DELIVERY:
        things = write_count(count, "result", "results")
    handlers = len(found.get("groups", ()))
    yield Need(
        key=f"cause {cause}",
        status=said.status,
        title=only_if(is_at_least, "At least ") + things,
        href=list_path(cause, visit),
        what=said.one if count == 1 else said.many,
        at=found.get("oldest"),
        detail=only_if(handlers > GROUPS, f"They are of {handlers} handlers. The {GROUPS} rarest follow."),
    )
    for row in rows:
        yield replace(row, key=f"{cause} {row.key}", is_part=True)


def _build_groups(cause: NeedCause, answer: Json, counted: Mapping[str, Json], visit: Visit) -> Iterator[Need]:
    """Yield a row for each handler of a cause, the rarest first: the task, or their number."""
    tasks = {each["id"]: each for each in answer["tasks"].get(cause, ())}
    for group in list_groups(counted, cause):
        task = tasks.get(group["taskId"])
        if group["count"] == 1 and task is not None:
            yield _build_failed_task(task, answer, visit) if cause is NeedCause.FAILED else _build_paused(task)
            continue
        detail = group.get("title") or ""
        if record := answer["records"].get(group["taskId"]):
            detail += f": {build_execution(record, visit)['outcome']}"
        yield _build_group(cause, group, detail + _name_latest(group, answer["latest"][cause]), visit)


def _name_latest(group: Json, latest: Mapping[str, Sequence[Json]]) -> str:
    """Return the titles of a handler's latest tasks after that of its oldest."""
    titles = [each["title"] for each in latest.get(group["handler"], ()) if each["id"] != group["taskId"]]
    return only_if(titles, f" · the latest: {', '.join(titles)}")


def list_groups(counted: Mapping[str, Json], cause: NeedCause) -> list[Json]:
    """Return the tasks of a cause by handler, as many as have a line, the rarest first."""
    return list(counted.get(cause, {}).get("groups", ()))[:GROUPS]


def _build_group(cause: NeedCause, group: Json, detail: str, visit: Visit) -> Need:
    """Return the row of a handler's tasks."""
    handler = group["handler"]
    count = group["count"]
    said = CAUSES[cause]
    return Need(
        key=f"{_OF_HANDLER}{handler}",
        status=said.status,
        title=f"{write_count(count, 'task', 'tasks')} of {handler}",
        href=list_path(cause, visit, {"handler": handler}),
        what=said.one if count == 1 else said.many,
        at=group.get("oldest"),
        detail=detail,
    )


def _build_failed_task(task: Json, answer: Json, visit: Visit) -> Need:
    count = task.get("consecutiveFailures", 0)
    need = Need(
        key=task["id"],
        status=show_status("FAILED"),
        title=task["title"],
        href=f"tasks/{task['id']}",
        what=_write_failed("failed", task, visit),
        at=task.get("failingSince"),
        detail=task.get("message") or "The record of that run is gone.",
        task_id=task["id"],
    )
    record = answer["records"].get(task["id"])
    if record is None:
        return need

    status = show_status(record["status"])
    question = None
    may_retry = "retry" in record.get("allowedVerbs", ()) and task["id"] in answer["startable"]
    if may_retry and record["status"] in BAD:
        question = make_retry_question(task, record)
    return replace(
        need,
        key=f"{task['id']} {record['id']}",
        status=status,
        href=f"{need.href}/executions/{record['id']}",
        what=(
            f"is tried again after {write_count(count, 'failure', 'failures in a row')}; it was due"
            if record["status"] in OPEN
            else _write_failed(status.word.lower(), task, visit)
        ),
        at=record["scheduledFor"] if record["status"] in OPEN else record.get("finishedAt", record["scheduledFor"]),
        detail=build_execution(record, visit)["outcome"],
        execution_id=record["id"],
        retry_question=question,
    )


def _write_failed(word: str, task: Json, visit: Visit) -> str:
    """Return what became of the last run, and of those before it, in words that an instant follows."""
    count = task.get("consecutiveFailures", 0)
    since = task.get("failingSince")
    if count < 2 or since is None:  # noqa: PLR2004 - the last one alone
        return word
    return f"failed {count:,} times in a row since {visit.moment(since).text}, the last"


def _build_waits(answer: Json, counted: Mapping[str, Json], visit: Visit) -> Iterator[Need]:
    """Yield a row for each wait for an event that gives up soon, the first to do so first.

    Handlers of which none of these is have a line below them, so that many waits of one do not hide another's.
    """
    shown = [*_list_waits(answer, visit)][:SHOWN]
    yield from shown
    handlers = {each["id"]: each["handler"] for each in answer["tasks"].get(NeedCause.WAITING, ())}
    seen = {handlers.get(each.task_id) for each in shown}
    for group in list_groups(counted, NeedCause.WAITING):
        if group["handler"] not in seen:
            yield _build_group(NeedCause.WAITING, group, group.get("title") or "", visit)


def _list_waits(answer: Json, visit: Visit) -> Iterator[Need]:
    for each in list_decisions(answer["waits"], visit):
        if each.until is None or parse_instant(each.until) - visit.now >= GIVES_UP_SOON:
            return
        what = f"waits for the event {each.event}, and gives up"
        if each.may_decide:
            what = "waits for your decision, and gives up"
        yield Need(
            key=f"{each.task_id} {each.execution_id}",
            status=show_status("SUSPENDED"),
            title=each.title,
            href=each.href,
            what=what,
            at=each.until,
            detail=f"It has waited for {each.waited}.",
            task_id=each.task_id,
            decision=each,
        )


def _build_common(cause: Json, visit: Visit) -> Need:
    """Return the line of what keeps many tasks from running, in the sentence of their explanations."""
    reason = cause["reason"]
    subject = cause.get("subject") or ""
    need = Need(
        key=f"{reason} {subject}",
        status=show_status("FAILED"),
        title=cause["sentence"],
        href="queues",
        what="",
        at=None,
        detail="",
    )
    match reason:
        case Reason.QUEUE_PAUSED:
            may_resume = visit.role == "admin" and visit.may_change
            return replace(need, status=_PAUSED, queue=only_if(may_resume, subject))
        case Reason.UNKNOWN_HANDLER:
            return replace(need, href=f"tasks?{urlencode({'handler': subject, 'status': 'ACTIVE'})}")
        case Reason.NO_ANSWER:
            return replace(need, href="deliveries")
        case Reason.NOT_REACHABLE:
            href = f"people/{quote(subject, safe='')}#reach"
            return replace(need, href=href, act=("Mend", href) if visit.may_change else ("", ""))
    href = f"usage?{urlencode({'owner': subject})}#budget-{quote(subject, safe='')}"
    act = ("Raise…", href) if visit.role == "admin" and visit.may_change else ("", "")
    listed = list_path(NeedCause.HELD, visit, {"owner": subject})
    return replace(need, status=show_status("PAUSED"), href=listed, act=act)


def _build_unheard(queue: Json) -> Need:
    """Return the row of a queue in which something waits, and at which no worker listens."""
    waiting = write_count(queue["waiting"], "run waits", "runs wait")
    skill = only_if(queue.get("skill"), f" with the skill {queue.get('skill')}")
    return Need(
        key=f"queue {queue['queue']} {queue.get('skill')}",
        status=OFFERED,
        title=queue["queue"],
        href=f"queues?{urlencode({'queue': queue['queue']})}",
        what="has work waiting and no worker. The first began to wait",
        at=queue.get("firstSince"),
        detail=f"{waiting} for a worker{skill}.",
    )


def _build_paused(task: Json) -> Need:
    failures = task.get("consecutiveFailures", 0)
    what = "is paused after a failure,"
    if failures != 1:
        what = f"is paused after {failures:,} failures in a row,"
    return Need(
        key=f"paused {task['id']}",
        status=show_status("PAUSED"),
        title=task["title"],
        href=f"tasks/{task['id']}",
        what=what,
        at=task.get("statusChangedAt"),
        detail=task.get("message") or "It starts nothing until somebody resumes it.",
        task_id=task["id"],
        resume_question=only_if("resume" in task.get("allowedVerbs", ()), RESUME_QUESTION),
    )


def _build_delivery(task: Json, record: Json | None, visit: Visit) -> Need:
    """Return the row of a result that has not arrived, with its reason, and whether it is tried again."""
    need = replace(_build_plain(task, NeedCause.DELIVERY), href=f"deliveries?{urlencode({'owner': task['owner']})}")
    if record is None:
        return replace(need, detail=f"To {task['owner']}.")
    row = build_execution(record, visit)
    detail = f"To {task['owner']}: {row['outcome']}"
    if record.get("nextAttemptAt"):
        tried = visit.moment(record["nextAttemptAt"]).relative
        return replace(need, status=show_status("RETRYING"), detail=f"{detail} It is tried again {tried}.")
    return replace(need, at=record.get("finishedAt"), detail=detail)


def _build_overdue(task: Json) -> Need:
    need = _build_plain(task, NeedCause.OVERDUE)
    return replace(need, what=CAUSES[NeedCause.OVERDUE].one, at=task.get("nextExecutionTime"))


def _build_plain(task: Json, cause: NeedCause) -> Need:
    message = str(task.get("message") or "")
    return Need(
        key=f"{cause} {task['id']}",
        status=CAUSES[cause].status,
        title=task["title"],
        href=f"tasks/{task['id']}",
        what=CAUSES[cause].one.removesuffix(","),
        at=None,
        detail=f"Owner {task['owner']}. {only_if(message not in SAID_OF_SPEC, message)}".strip(),
        task_id=task["id"],
    )
