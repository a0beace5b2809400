"""The verbs of a task's page: what is asked before them, why some are not possible now, and what carries them out.

Which there are, and their words, is in the table of verbs (`cloudsched.domain.documents.verbs`). The API decides in any
case, and a reason only predicts its answer.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pydantic.alias_generators import to_camel

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.forms.fields import read_json
from cloudsched.dashboard.status import BAD, OPEN, show_status
from cloudsched.dashboard.times import find_instant
from cloudsched.dashboard.words import only_if, shorten
from cloudsched.domain.documents import receipt
from cloudsched.domain.documents.task import FINAL_STATUSES, NeedCause, TaskStatus
from cloudsched.domain.documents.verbs import Verb
from cloudsched.domain.explanation.findings import Reason
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

RESUMED_IN_VAIN: Final = "resumed-in-vain"
"""What is done if a task is resumed while its budget or its limit is used up."""
_SHOWN: Final = 2000
"""The number of a payload's characters that are shown."""
_JSON: Final = ("fromStep", "payload")
"""The fields of forms that are not texts."""


def act(api: Api, task_id: str, word: str, form: Mapping[str, str]) -> str:
    """Do a verb with one task, and return the name of what the page then says, in `routes.DONE`.

    Raises NotFound if pages have no such verb.
    """
    known = {each.word: each for each in Verb if each.traits.done and each is not Verb.EDIT}
    verb = known.get(word)
    if verb is None:
        raise NotFound("verb", word)
    path = task_path(task_id)
    if verb is Verb.DELETE:
        api.delete(path)
        return word

    etag = form.get("etag", "")
    headers = {}
    if not etag:  # a state names the request, too
        headers["Idempotency-Key"] = str(uuid.uuid4())
    event = quote(form.get("event", ""), safe="")
    answer = api.post(path + verb.path.format(event=event), _read_body(verb, form), etag=etag, headers=headers)
    doubts = answer.get("receipt", {}).get("doubts", ())
    if verb is Verb.RESUME and any(each["reason"] == receipt.Reason.BUDGET_USED_UP for each in doubts):
        return RESUMED_IN_VAIN
    return word


def _read_body(verb: Verb, form: Mapping[str, str]) -> dict[str, object] | None:
    """Return a verb's request, from its button and from the fields of its form. None if it has no fields."""
    traits = verb.traits
    if traits.body is None:
        return None
    body: dict[str, object] = dict(traits.button.body) if traits.button else {}
    for name in map(to_camel, traits.body.model_fields):
        if form.get(name):
            body[name] = read_json(form[name]) if name in _JSON else form[name]
    return body


@dataclass(frozen=True, slots=True)
class Question:
    """The question before a task is run by hand, or an execution is retried."""

    sentence: str
    handler_gets: str
    payload: str
    """The handler's payload. Empty if there is none, or for a task of several handlers."""


def make_question(task: Json, due: Sequence[datetime], explanation: Json, visit: Visit) -> Question:
    """Return the question before a task is run now."""
    is_held = any(each["reason"] == Reason.QUEUE_PAUSED for each in explanation["findings"])
    when = "when its queue is resumed" if is_held else "now"
    then = ""
    if due:
        said = "What was due {} has not started yet." if due[0] <= visit.now else "The next run is still due {}."
        then = f" {said.format(visit.moment(due[0]).text)}"
    beside = only_if(task.get("isRunning"), " Another run of it is open and continues beside this one.")
    return Question(
        f"It runs once, {when}. The schedule stays as it is.{then}{beside}{_write_offer(task)} "
        "You cannot take back a run that has started.",
        *_show_payload(task),
    )


def make_retry_question(task: Json, record: Json) -> Question:
    """Return the question for an ended execution of a task."""
    what = "It never started, and now runs once."
    if record.get("startedAt"):
        what = "It gets one more attempt. Recorded steps are kept. What failed runs again, "
        what += "and so does what the handler does outside steps."
    return Question(f"{what}{_write_offer(task)}", *_show_payload(task, record.get("payload")))


def _write_offer(task: Json) -> str:
    where = (task.get("pull") or {}).get("queue")
    return only_if(where, f" It is offered to the workers of the queue {where}, and starts when one takes it.")


def _show_payload(task: Json, own: Json | None = None) -> tuple[str, str]:
    """Return a sentence on the handler's payload, and the payload as JSON. Empty for several handlers."""
    if task.get("children"):
        return "", ""
    payload = task.get("payload", {}) if own is None else own
    said = f"The handler {task['handler']} gets {'the task' if own is None else 'this run'}'s own payload"
    if not payload:
        return f"{said}, which is empty.", ""
    return f"{said}:", shorten(json.dumps(payload, indent=2, ensure_ascii=False), _SHOWN)


@dataclass(frozen=True, slots=True)
class Held:
    """The reason why a task's next start would pause it again."""

    reason: str
    is_own: bool
    """True if its own limit is used up, which an edit raises. False if its owner's budget is."""


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
    then = "is used up: the next start would pause it again."
    if budget is not None and budget["isUsedUp"] and NeedCause.LIMITED not in task.get("needs", ()):
        return Held(f"The budget {then}", is_own=False)
    return Held(f"The task's limit of this month {then}", is_own=True) if is_told else None


def explain_impossible(task: Json, now: datetime, held: Held | None, *, may_start: bool) -> tuple[list[str], str]:
    """Return the buttons that are not possible now, and why, for a task that its caller may change."""
    verbs = task.get("allowedVerbs", ())
    status = TaskStatus(task["status"])
    wanted = [Verb.TRIGGER]
    if status in FINAL_STATUSES:
        wanted.append(Verb.PAUSE)
        way_back = only_if(Verb.EDIT in verbs, f" {_find_way_back(task, now)}")
        reason = f"The task has ended ({show_status(status).word.lower()}).{way_back}"
    elif held:
        reason = held.reason
    elif status is TaskStatus.ACTIVE:
        reason = "Too many runs of the task are open. Wait until some of them have ended."
    elif Verb.RESUME in verbs:
        reason = "The task is paused. Resume it to run it."
    else:
        reason = "The only time it was due has passed while it was paused. Give it a new schedule."
    if status is TaskStatus.PAUSED:
        wanted.append(Verb.RESUME)
    missing = [each for each in wanted if each not in verbs or (held and each.traits.starts)]
    labels = [
        each.traits.button.label for each in missing if each.traits.button and (may_start or not each.traits.starts)
    ]
    return labels if verbs else [], reason


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
        return "Its task is paused. It can be retried once that is resumed."
    if task["status"] == "CANCELLED":
        return "Its task is cancelled. Give the task a new schedule to start it again."
    return "Too many runs of its task are open. Wait until some of them have ended."
