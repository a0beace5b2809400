"""The problems that need attention: each cause with its count and its oldest task, and the latest tasks of each.

The counts are the store's own (``/v1/overview``), of all tasks. The page reports that there are none only if every
cause was counted to its end, and shows the age of the counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.api import execution_path, task_path
from cloudsched.dashboard.offered_verbs import RESUME_QUESTION, Question, fetch_startable, make_retry_question
from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.views.causes import CAUSES, filter_by_cause, list_path
from cloudsched.dashboard.views.decisions import ShownDecision, fetch_waits, list_decisions, list_first_waits
from cloudsched.dashboard.views.execution_row import build_execution
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.run_counts import RunOutcome
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.explanation.findings import Reason
from cloudsched.domain.transitions.needs import GIVES_UP_SOON
from cloudsched.domain.transitions.retry_execution import RETRYABLE_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_PAUSED: Final = Status("pause", "Paused", "fail")
_GROUPS: Final = 10
"""The most handlers that have a line each."""
_SHOWN: Final = 5
_LISTED: Final = {NeedCause.FAILED.value: 100, NeedCause.WAITING.value: 100}
"""The number of tasks that are requested for a cause, if it is not as many as are shown."""
MAX_QUEUES: Final = 200
"""The number of queues that the API lists. If there are more, some were not checked."""
FRESH: Final = timedelta(seconds=30)
"""Counts that are older are no longer current."""


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


def fetch_needs(api: Api, visit: Visit, counts: Json | None) -> Json:
    """Ask the API for the latest tasks of each cause for which the overview has counted any."""
    needs = [each for each in (counts or {}).get("needs", ()) if each["count"]]
    tasks = {each["cause"]: _list_tasks(api, visit, each) for each in needs if each["cause"] != NeedCause.OVERDUE}
    counted: Json = next((each for each in needs if each["cause"] == NeedCause.FAILED), {})
    listed = {each["id"]: each for each in tasks.get(NeedCause.FAILED, ())}
    wanted = [group["taskId"] for group in list_groups(counted, listed.values())[:_GROUPS]]
    for task_id in wanted:
        if task_id not in listed and (task := api.find(task_path(task_id))):
            listed[task_id] = task
            tasks[NeedCause.FAILED].append(task)
    failed = [listed[each] for each in wanted if each in listed]

    return {
        "counts": counts,
        "tasks": tasks,
        "records": {
            each["id"]: api.find(execution_path(each["id"], each["lastExecutionId"]))
            for each in failed
            if each.get("lastExecutionId")
        },
        "sent": {each["id"]: _find_latest(api, each["id"]) for each in tasks.get(NeedCause.DELIVERY, ())},
        "startable": [each["id"] for each in failed if fetch_startable(api, visit, each)],
        "waits": fetch_waits(api, tasks.get(NeedCause.WAITING, ())),
        "lastFailures": []
        if needs
        else api.list_items("/v1/executions", "executions", outcome=RunOutcome.FAILED, pageSize=1),
    }


def _find_latest(api: Api, task_id: str) -> Json | None:
    """Return the latest execution of a task, which may be open."""
    return next(iter(api.list_items(f"{task_path(task_id)}/executions", "executions", pageSize=1)), None)


def _list_tasks(api: Api, visit: Visit, need: Json) -> list[Json]:
    """Return the latest tasks of a cause. Of those that wait, return those that give up first."""
    cause = need["cause"]
    if "groups" in need and cause == NeedCause.FAILED:
        return []  # one of each group is asked for
    size = _LISTED.get(cause, _SHOWN)
    if cause == NeedCause.WAITING:
        return list_first_waits(api, visit, visit.now + GIVES_UP_SOON)[0][:_SHOWN]
    found: list[Json] = api.get("/v1/tasks", **filter_by_cause(cause, visit), pageSize=size)["tasks"]
    return found


def build_attention(answer: Json, queues: Sequence[Json], visit: Visit) -> Json:
    """Return the problems, the most urgent cause first, and what to say if there are none.

    ``isAtLeast`` means that there may be more, because something was not counted, or not to its end. The status is a
    tick only if every question was asked and answered.
    """
    counts = answer["counts"]
    counted = {each["cause"]: each for each in (counts or {}).get("needs", ())}
    unheard = [each for each in queues if each["waiting"] and not each["workers"]]
    age = FRESH
    if counts:
        age = visit.now - parse_instant(counts["countedAt"])
    is_cut = any(each.get("isAtLeast") for each in counted.values())
    is_whole = counted.keys() >= set(NeedCause) and not is_cut and len(queues) < MAX_QUEUES and age < FRESH

    status = show_status("SUCCEEDED")
    if is_whole:
        asked = "just now" if age < timedelta(seconds=1) else f"{write_duration(age)} ago"
        calm = f"Nothing needs you: all tasks were asked {asked}."
    else:
        status = Status("late", "Not known", "retry")
        calm = "Nothing was found that needs you, but not everything was looked at."
        if not counts:
            calm = "It is not known whether anything needs you: the counts did not come."
    return {
        "needs": [*_build_needs(answer, counted, unheard, visit)],
        "count": _count_needs(counted, (counts or {}).get("causes", ())) + len(unheard),
        "isAtLeast": not is_whole,
        "decisions": bool(counted.get(NeedCause.WAITING, {}).get("count")),
        "calm": calm + _write_last_failure(answer["lastFailures"], visit),
        "status": status,
    }


def _count_needs(counted: Mapping[str, Json], common: Sequence[Json]) -> int:
    """Return the number of what needs somebody. What keeps many tasks from running counts once."""
    left = (_leave_out(NeedCause(cause), found, common) for cause, found in counted.items())
    return len(common) + sum(int(each["count"]) for each in left if each)


def _leave_out(cause: NeedCause, found: Json | None, common: Sequence[Json]) -> Json | None:
    """Return the count of a cause without the tasks that wait for what has a line of its own."""
    if found is None:
        return None
    if cause is NeedCause.OVERDUE and any(each["reason"] == Reason.QUEUE_PAUSED for each in common):
        return None
    if cause is not NeedCause.HELD:
        return found
    waiting = sum(each.get("count", 0) for each in common if each["reason"] == Reason.BUDGET_USED_UP)
    return {**found, "count": max(0, found["count"] - waiting)}


def _write_last_failure(failures: Sequence[Json], visit: Visit) -> str:
    if not failures:
        return ""
    last = max((str(each["scheduledFor"]) for each in failures), key=parse_instant)
    return f" The last failure was {visit.moment(last).relative}."


def _build_needs(answer: Json, counted: dict[str, Json], unheard: Sequence[Json], visit: Visit) -> Iterator[Need]:
    tasks = answer["tasks"]
    delivered = tasks.get(NeedCause.DELIVERY, ())
    rows = {
        NeedCause.FAILED: _build_failed(answer, counted.get(NeedCause.FAILED, {}), visit),
        NeedCause.WAITING: [*_build_waits(answer, visit)][:_SHOWN],
        NeedCause.OVERDUE: (),
        NeedCause.PAUSED: map(_build_paused, tasks.get(NeedCause.PAUSED, ())),
        NeedCause.HELD: (_build_plain(each, NeedCause.HELD) for each in tasks.get(NeedCause.HELD, ())),
        NeedCause.DELIVERY: (_build_delivery(each, answer["sent"].get(each["id"]), visit) for each in delivered),
    }
    common = (answer["counts"] or {}).get("causes", ())
    yield from (_build_common(each, visit) for each in common)
    for cause in map(NeedCause, CAUSES):
        if found := _leave_out(cause, counted.get(cause), common):
            yield from _build_cause(cause, found, [*rows[cause]], visit)
        if cause is NeedCause.WAITING:
            yield from map(_build_unheard, unheard)


def _build_cause(cause: NeedCause, found: Json, rows: Sequence[Need], visit: Visit) -> Iterator[Need]:
    """Yield the line of a cause, and some of its tasks. If there is only one task, yield only the task."""
    count = found["count"]
    is_at_least = bool(found.get("isAtLeast"))
    if not count:
        return
    if count == 1 and rows and not is_at_least:
        yield rows[0]
        return

    said = CAUSES[cause]
    things = write_count(count, "task", "tasks")
    if cause is NeedCause.DELIVERY:
        things = write_count(count, "result", "results")
    yield Need(
        key=f"cause {cause}",
        status=said.status,
        title=only_if(is_at_least, "At least ") + things,
        href=list_path(cause, visit),
        what=said.one if count == 1 else said.many,
        at=found.get("oldest"),
        detail=only_if(found.get("isOldestAtLeast"), "Only the latest hundred were dated: some may be older."),
    )
    for row in rows:
        yield replace(row, key=f"{cause} {row.key}")


def _build_failed(answer: Json, found: Json, visit: Visit) -> Iterator[Need]:
    """Yield a row for each handler whose tasks failed last, the rarest first: the task, or their number."""
    tasks = {each["id"]: each for each in answer["tasks"].get(NeedCause.FAILED, ())}
    for group in list_groups(found, tasks.values())[:_GROUPS]:
        latest = tasks.get(group["taskId"])
        if group["count"] == 1 and latest is not None:
            yield _build_failed_task(latest, answer, visit)
            continue
        handler = group["handler"]
        detail = group["title"]
        if record := answer["records"].get(group["taskId"]):
            detail += f": {build_execution(record, visit)['outcome']}"
        yield Need(
            key=f"handler {handler}",
            status=show_status("FAILED"),
            title=f"{write_count(group['count'], 'task', 'tasks')} of {handler}",
            href=f"tasks?{urlencode({'trouble': 'FAILED', 'handler': handler})}",
            what="failed last, the first",
            at=group.get("oldest"),
            detail=detail,
        )


def list_groups(found: Json, tasks: Iterable[Json]) -> list[Json]:
    """Return the tasks of a cause by handler, the rarest first, as the API counted them, or as they are listed."""
    if "groups" in found:
        return list(found["groups"])
    groups: dict[str, Json] = {}
    for each in tasks:
        group = groups.setdefault(
            each["handler"],
            {"handler": each["handler"], "count": 0, "taskId": each["id"], "title": each["title"]},
        )
        group["count"] += 1
        group["oldest"] = min(filter(None, [group.get("oldest"), each.get("failingSince")]), default=None)
    return sorted(groups.values(), key=lambda group: group["count"])


def _build_failed_task(task: Json, answer: Json, visit: Visit) -> Need:
    count = task.get("consecutiveFailures", 0)
    in_a_row = only_if(count > 1, f", {count:,} in a row,")
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
    record = answer["records"].get(task["id"])
    if record is None:
        return need

    status = show_status(record["status"])
    question = None
    if task["status"] in RETRYABLE_STATUSES and task["id"] in answer["startable"] and status.css != "ended":
        question = make_retry_question(task, record)
    return replace(
        need,
        key=f"{task['id']} {record['id']}",
        status=status,
        href=f"{need.href}/executions/{record['id']}",
        what=f"{status.word.lower()}{in_a_row}",
        at=record["scheduledFor"],
        detail=build_execution(record, visit)["outcome"],
        execution_id=record["id"],
        retry_question=question,
    )


def _build_waits(answer: Json, visit: Visit) -> Iterator[Need]:
    """Yield a row for each wait for an event that gives up soon, the first to do so first."""
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
            detail=f"it has waited for {each.waited}.",
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
        case Reason.NOT_REACHABLE:
            href = f"people/{quote(subject, safe='')}#reach"
            return replace(need, href=href, act=("Mend", href) if visit.may_change else ("", ""))
    href = f"usage?{urlencode({'owner': subject})}#budget-{quote(subject, safe='')}"
    act = ("Raise", href) if visit.role == "admin" and visit.may_change else ("", "")
    listed = f"tasks?{urlencode({'trouble': 'BUDGET', 'owner': subject})}"
    return replace(need, status=show_status("PAUSED"), href=listed, act=act)


def _build_unheard(queue: Json) -> Need:
    """Return the row of a queue in which something waits, and at which no worker listens."""
    waiting = write_count(queue["waiting"], "run waits", "runs wait")
    skill = only_if(queue.get("skill"), f" with the skill {queue.get('skill')}")
    return Need(
        key=f"queue {queue['queue']} {queue.get('skill')}",
        status=Status("offer", "Offered", "retry"),
        title=queue["queue"],
        href=f"queues?{urlencode({'queue': queue['queue']})}",
        what="has nobody who listens, since",
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
        detail=task.get("message") or "Nothing of it starts until somebody resumes it.",
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


def _build_plain(task: Json, cause: NeedCause) -> Need:
    return Need(
        key=f"{cause} {task['id']}",
        status=CAUSES[cause].status,
        title=task["title"],
        href=f"tasks/{task['id']}",
        what=CAUSES[cause].one.removesuffix(","),
        at=None,
        detail=f"Of {task['owner']}. {task.get('message') or ''}".strip(),
        task_id=task["id"],
    )
