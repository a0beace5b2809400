"""The verbs that are offered for a task or an execution, and the questions before a manual run or retry.

A verb that is not possible now is shown with the reason. One that the caller may never use is not offered. The API
decides in any case, and a reason only predicts its answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.status import BAD, OPEN, show_status
from cloudsched.dashboard.times import find_instant
from cloudsched.dashboard.words import only_if, shorten
from cloudsched.domain.any_case import to_upper_snake
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.domain.documents.task import FINAL_STATUSES, TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.explanation.findings import Reason
from cloudsched.domain.transitions.retry_execution import RETRYABLE_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_SHOWN: Final = 2000
"""The number of a payload's characters that are shown."""


@dataclass(frozen=True, slots=True)
class Question:
    """The question before a task is run by hand, or an execution is retried."""

    sentence: str
    handler_gets: str
    payload: str
    """The handler's payload. Empty if there is none, or for a task of several handlers."""
    can_change: bool = False
    """True if it can be run with another payload."""


def make_question(task: Json, due: Sequence[datetime], explanation: Json, visit: Visit) -> Question | None:
    """Return the question. None if the caller cannot run the task now."""
    if "trigger" not in task.get("allowedVerbs", ()):
        return None
    children = task.get("children", ())
    handler_gets, payload = _show_payload(task)
    what = "It runs"
    if children:
        what = f"All {len(children)} of its tasks run"
    when = "now"
    if any(each["reason"] == Reason.QUEUE_PAUSED for each in explanation["findings"]):
        when = "when its queue is resumed"
    then = ""
    if due and due[0] <= visit.now:
        then = f" What was due {visit.moment(due[0]).text} has not started yet."
    elif due:
        then = f" The next run is still due {visit.moment(due[0]).text}."
    beside = only_if(task.get("isRunning"), " Another run of it is open and continues beside this one.")
    return Question(
        sentence=f"{what} once, {when}. The schedule stays as it is.{then}{beside}{_write_offer(task)} "
        "You cannot take back a run that has started.",
        handler_gets=handler_gets,
        payload=payload,
        can_change=not children,
    )


def make_retry_question(task: Json, record: Json) -> Question:
    """Return the question for an ended execution of a task."""
    handler_gets, payload = _show_payload(task, record.get("payload"))
    what = "It never started, and now runs once."
    if record.get("startedAt"):
        what = "It gets one more attempt. Recorded steps are kept. What failed runs again, "
        what += "and so does what the handler does outside steps."
    return Question(
        sentence=f"{what}{_write_offer(task)}",
        handler_gets=handler_gets,
        payload=payload,
    )


def _write_offer(task: Json) -> str:
    where = (task.get("pull") or {}).get("queue")
    return only_if(where, f" It is offered to the workers of the queue {where}, and starts when one takes it.")


def _show_payload(task: Json, own: Json | None = None) -> tuple[str, str]:
    """Return a sentence on the handler's payload, and the payload as JSON. Empty for several handlers."""
    if task.get("children"):
        return "", ""
    payload = own
    whose = "this run's own payload"
    if own is None:
        payload = task.get("payload", {})
        whose = "the task's own payload"
    said = f"The handler {task['handler']} gets {whose}"
    if not payload:
        return f"{said}, which is empty.", ""
    return f"{said}:", shorten(json.dumps(payload, indent=2, ensure_ascii=False), _SHOWN)


_LABELS: Final = {Verb.RESUME: "Resume the task", Verb.TRIGGER: "Run now", Verb.PAUSE: "Pause the task"}
"""The verbs whose absence is explained, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Held:
    """The reason why a task's next start would pause it again."""

    reason: str
    is_own: bool
    """True if its own limit is used up, which an edit raises. False if its owner's budget is."""


_NO_BUDGET: Final = Held("The budget is used up: the next start would pause it again.", is_own=False)
_NO_LIMIT: Final = Held("The task's limit of this month is used up: the next start would pause it again.", is_own=True)


@dataclass(frozen=True, slots=True)
class Impossible:
    """Verbs that are not possible now, for one reason."""

    labels: tuple[str, ...]
    reason: str


def fetch_startable(api: Api, visit: Visit, task: Json) -> bool:
    """Ask the API whether the caller may ever start a task. The API is asked only if the task's verbs do not tell."""
    verbs = task.get("allowedVerbs", ())
    if not verbs or visit.role != "user" or any(each.traits.starts for each in Verb if each in verbs):
        return bool(verbs)
    handlers = api.list_items("/v1/handlers", "handlers")
    return any(each["name"] == task["handler"] for each in handlers)


def fetch_held(api: Api, task: Json, explanation: Json) -> Held | None:
    """Ask the API whether a budget or the task's own limit is used up, so that its next start would pause it again."""
    is_told = any(each["reason"] == Reason.BUDGET_USED_UP for each in explanation["findings"])
    if task["status"] in FINAL_STATUSES or not (is_told or task["status"] == TaskStatus.PAUSED):
        return None
    budget = api.find(f"/v1/people/{quote(task['owner'], safe='')}/budget")
    if budget is not None and budget["isUsedUp"]:
        return _NO_BUDGET
    return _NO_LIMIT if is_told else None


def list_impossible(task: Json, now: datetime, *, may_start: bool, held: Held | None = None) -> list[Impossible]:
    """Return the verbs that are not possible now, for a task that its caller may change."""
    verbs = task.get("allowedVerbs", ())
    if not verbs:
        return []
    found: dict[str, list[str]] = {}
    if held:
        is_paused = task["status"] == TaskStatus.PAUSED
        found[held.reason] = [_LABELS[verb] for verb in (Verb.RESUME, Verb.TRIGGER) if is_paused or verb in verbs]
    for verb, label in _LABELS.items():
        if held and verb.traits.starts:
            continue
        if verb in verbs or (verb.traits.starts and not may_start):
            continue
        if reason := _find_reason(verb, task, now):
            found.setdefault(reason, []).append(label)
    return [Impossible(tuple(labels), reason) for reason, labels in found.items()]


def _find_reason(verb: Verb, task: Json, now: datetime) -> str:
    status = TaskStatus(task["status"])
    if status in FINAL_STATUSES and verb is not Verb.RESUME:
        return f"The task has ended ({show_status(status).word.lower()}). {_find_way_back(task, now)}"
    if status is TaskStatus.PAUSED and verb is Verb.RESUME:
        return "The only time it was due has passed while it was paused. Give it a new schedule."
    if status is TaskStatus.PAUSED and verb is Verb.TRIGGER:
        return "The task is paused. Resume it to run it."
    if status is TaskStatus.ACTIVE and verb is Verb.TRIGGER:
        return "Too many runs of the task are open. Wait until some of them have ended."
    return ""


def _find_way_back(task: Json, now: datetime) -> str:
    """Return the edit that starts an ended task again."""
    until = find_instant(task, "until")
    if until is not None and until <= now:
        return "Its time is over: give it a later end, or none."
    if task.get("maxRuns") and task.get("runCount", 0) >= task["maxRuns"]:
        return f"It has run as often as it may ({task['maxRuns']:,}). Raise that, or give it a new schedule."
    return "Give it a new schedule to start it again."


def explain_retry(task: Json, execution: Json, *, may_start: bool) -> str:
    """Return the reason why an execution cannot be retried now. Empty if it can be, or has not failed."""
    if not may_start or not task.get("allowedVerbs") or "retry" in execution.get("allowedVerbs", ()):
        return ""
    if execution["status"] in OPEN:
        return "It is still open. It can be retried once it has failed."
    if execution["status"] not in BAD:
        return ""
    if task["status"] == "PAUSED":
        return "Its task is paused. Resume the task to retry it."
    if task["status"] == "CANCELLED":
        return "Its task is cancelled. Give the task a new schedule to start it again."
    return "Too many runs of its task are open. Wait until some of them have ended."


def list_bulk_verbs(task: Json) -> tuple[str, ...]:
    """Return the changes of many tasks that concern this one, as its caller may make them."""
    verbs: Iterable[str] = task.get("allowedVerbs", ())
    has_failed = task.get("consecutiveFailures") or task.get("outcome") in BAD
    if verbs and has_failed and task["status"] in RETRYABLE_STATUSES:
        verbs = (*verbs, BatchAction.RETRY_FAILED)
    return tuple(map(to_upper_snake, verbs))
