"""What is offered for a task or an execution: what the API allows, and what is not possible now, with the reason.

What the caller may never do is not offered. The API decides in any case; a reason only says what it would answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.status import BAD, OPEN, show_status
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.allowed_verbs import STARTING_VERBS, Verb
from cloudsched.domain.transitions.requirements import FINAL_STATUSES, RETRYABLE_STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LABELS: Final = {Verb.RESUME: "Resume the task", Verb.TRIGGER: "Run now", Verb.PAUSE: "Pause the task"}
"""The verbs whose absence is explained, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """Verbs that are not possible now, for one reason."""

    labels: tuple[str, ...]
    reason: str


def fetch_startable(api: Api, visit: Visit, task: Json) -> bool:
    """Ask the API whether the caller may ever start a task; only where its verbs do not tell."""
    verbs = task.get("allowedVerbs", ())
    if not verbs or visit.role != "user" or STARTING_VERBS & set(verbs):
        return bool(verbs)
    handlers = (api.find("/v1/handlers") or {}).get("handlers", ())
    return any(each["name"] == task["handler"] for each in handlers)


def list_impossible(task: Json, *, may_start: bool) -> list[Impossible]:
    """Return what is not possible now with a task that its caller may change."""
    verbs = task.get("allowedVerbs", ())
    if not verbs:
        return []
    found: dict[str, list[str]] = {}
    for verb, label in _LABELS.items():
        if verb in verbs or (verb in STARTING_VERBS and not may_start):
            continue
        if reason := _find_reason(verb, TaskStatus(task["status"])):
            found.setdefault(reason, []).append(label)
    return [Impossible(tuple(labels), reason) for reason, labels in found.items()]


def _find_reason(verb: Verb, status: TaskStatus) -> str:
    if status in FINAL_STATUSES and verb is not Verb.RESUME:
        return f"The task has ended ({show_status(status).word.lower()}). Give it a new schedule to start it again."
    if status is TaskStatus.PAUSED and verb is Verb.RESUME:
        return "The task is paused past its only instant. Give it a new schedule."
    if status is TaskStatus.PAUSED and verb is Verb.TRIGGER:
        return "The task is paused. Resume it to run it."
    if status is TaskStatus.ACTIVE and verb is Verb.TRIGGER:
        return "Too many runs of the task are open. Wait until some of them have ended."
    return ""


def explain_retry(task: Json, execution: Json, *, may_start: bool) -> str:
    """Return why an execution cannot be retried now; nothing if it can be, or if there is nothing to retry."""
    if not may_start or not task.get("allowedVerbs") or "retry" in execution.get("allowedVerbs", ()):
        return ""
    if execution["status"] in OPEN:
        return "It is still open and goes on by itself."
    if execution["status"] not in BAD:
        return ""
    if task["status"] == "PAUSED":
        return "Its task is paused. Resume that to retry it."
    if task["status"] == "CANCELLED":
        return "Its task is cancelled. Give that a new schedule to start it again."
    return "Too many runs of its task are open. Wait until some of them have ended."


def list_bulk_verbs(task: Json) -> tuple[str, ...]:
    """Return the changes of many tasks that concern this one, as its caller may make them."""
    verbs: Iterable[str] = task.get("allowedVerbs", ())
    has_failed = bool(task.get("consecutiveFailures")) or task.get("outcome") in BAD
    may_retry = bool(verbs) and has_failed and task["status"] in RETRYABLE_STATUSES
    return (*verbs, "retryFailed") if may_retry else tuple(verbs)
