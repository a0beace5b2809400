"""The question before many tasks are changed, or many failed executions retried, at once.

It shows what that concerns, then starts a task that does it and shows its progress.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from cloudsched.dashboard.filters import TASK_FILTERS, TASKS, read_filters
from cloudsched.dashboard.forms.fields import Again, Submitted, read_key, refuse
from cloudsched.dashboard.times import read_instant
from cloudsched.dashboard.views.actions import list_filters
from cloudsched.dashboard.views.runs import RETRY_FILTERS
from cloudsched.dashboard.visit import require_known
from cloudsched.dashboard.words import write_count
from cloudsched.domain.any_case import to_upper_snake
from cloudsched.domain.documents.batch_change import RETRY_MEANS, BatchAction
from cloudsched.errors import CloudschedError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_ALONE: Final = ("ids", "pauseId")
"""What chooses tasks without the filters of the list: their ids, or the action that has paused or resumed them."""
PICK: Final = "pick"
"""The field that names executions one by one, each as ``task/execution``."""
PARAMETERS: Final = ("action", *_ALONE, *TASK_FILTERS, "category", "search")
RETRY_PARAMETERS: Final = (PICK, "all", "only", *RETRY_FILTERS)
_OF_FORM: Final = ("count", "typed", "key", "pauseUntil")


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API which tasks would be changed."""
    filters = read_filters(visit, TASKS)
    alone = {name: visit.query[name] for name in _ALONE if visit.query.get(name)}
    if not alone and not filters.keys() <= {*TASK_FILTERS}:
        problem = "Tasks that were searched for by words or by category cannot be changed all at once."
        raise InvalidInput("", problem, "Tick them, or filter by status, handler, owner or label.")
    return _preview(api, alone or filters, visit.query.get("action", ""))


def fetch_retry(api: Api, visit: Visit) -> Json:
    """Ask the API which executions would be retried."""
    return _preview(api, _read_failures(visit.query))


def send(api: Api, visit: Visit, texts: Mapping[str, str]) -> Submitted | Again:
    """Start the change, if the number of tasks is still the one that was shown."""
    require_known(texts, ("action", *_ALONE, *TASK_FILTERS, *_OF_FORM))
    chosen = {name: texts[name] for name in (*TASK_FILTERS, *_ALONE) if texts.get(name)}
    return _start(api, visit, _preview(api, chosen, texts.get("action", "")), texts)


def send_retry(api: Api, visit: Visit, texts: Mapping[str, str]) -> Submitted | Again:
    """Start the retry, if the number of executions is still the one that was shown."""
    require_known(texts, (*RETRY_PARAMETERS, *_OF_FORM))
    return _start(api, visit, _preview(api, _read_failures(texts)), texts)


def _read_failures(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the choice: the ticked executions, unless the button was that for all."""
    picked = " ".join(texts.get(PICK, "").split())
    if picked and not texts.get("all"):
        return {PICK: picked}
    if texts.get("only"):
        return {}
    return {name: texts[name] for name in RETRY_FILTERS if texts.get(name)}


def _preview(api: Api, chosen: Mapping[str, str], action: str | None = None) -> Json:
    """Ask what an action would change or, without one, which failed executions would be retried."""
    wanted: dict[str, Any] = dict(chosen)
    path: str = "/v1/executions/batchRetry"
    content: Json = {"filter": wanted}
    if action is not None:
        action = to_upper_snake(action)
        if action not in set(BatchAction):
            raise InvalidInput("", "There is no such action on many tasks.", "Choose one beside the list of tasks.")
        path, content = "/v1/tasks/batchChange", {"action": action, "filter": wanted}
    if not chosen:
        problem = "Nothing is chosen: that would mean all there is."
        raise InvalidInput("", problem, "Tick some, or filter the list first.")
    if "ids" in wanted:
        wanted["ids"] = wanted["ids"].split()
    if PICK in wanted:
        pairs = [each.partition("/") for each in wanted.pop(PICK).split()]
        wanted["ids"] = [{"taskId": task, "executionId": execution} for task, _, execution in pairs]
    found = api.post(path, {**content, "dryRun": True})
    return {**found, "action": action, "chosen": chosen, "path": path, "content": content, "key": uuid.uuid4().hex}


def _start(api: Api, visit: Visit, answer: Json, texts: Mapping[str, str]) -> Submitted | Again:
    """Start the task that does it, unless the present number differs from the form's."""
    until = read_instant(texts.get("pauseUntil", ""), visit.zone, "pauseUntil")
    answer |= {"key": read_key(texts) or answer["key"], "pauseUntil": until.value}
    try:
        if until.iso:
            answer["content"]["until"] = until.iso  # what is paused already stays as it is
            answer |= api.post(answer["path"], {**answer["content"], "dryRun": True})
        count = str(answer["count"]["value"])
        if "count" not in texts:  # a button elsewhere asks the question
            return Again(answer)
        if texts["count"] != count:
            when = "with this end" if until.iso else "now"
            number = write_count(answer["count"], "", "")
            error = f"The number is {number}{when}, not {texts['count']}. Nothing was done."
            return Again({**answer, "error": error}, 412)
        if answer["action"] == BatchAction.DELETE and texts.get("typed", "").strip().replace(",", "") != count:
            return Again({**answer, "error": "Type the number of tasks to delete them. Nothing was done."}, 400)
        task = api.post(answer["path"], answer["content"], headers={"Idempotency-Key": answer["key"]})
    except CloudschedError as error:
        return refuse(answer, error)
    return Submitted(f"actions/{task['id']}", "bulk")


def build(answer: Json, visit: Visit) -> Json:
    """Return what the question shows."""
    chosen, count = answer["chosen"], answer["count"]
    action = BatchAction(answer["action"] or BatchAction.RETRY_FAILED)
    kept = {name: text for name, text in chosen.items() if name not in {*_ALONE, PICK}}
    rows = "tasks" if answer["action"] else "runs"
    things = write_count(count, rows[:-1], rows) if count["value"] else f"all {rows} that match"
    may_concern = count["value"] or count["atLeast"]
    verb = action.label.split()[0]
    return {
        "error": "",
        "pauseUntil": "",
        **answer,
        "title": f"{verb} {things}?" if may_concern else f"Nothing to {verb.lower()}",
        "button": f"{verb} {things}",
        "mayConcern": may_concern,
        "means": action.means if answer["action"] else RETRY_MEANS,
        "which": list_filters(chosen, visit),
        "hasCalls": answer["action"] and kept and visit.role == "admin",
        "list": rows,
        "back": f"actions/{chosen['pauseId']}" if "pauseId" in chosen else f"{rows}?{urlencode(kept)}",
    }
