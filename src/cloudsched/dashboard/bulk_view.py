"""The page that changes many tasks, or retries many failed executions, at once.

It shows the count, then asks the question, then starts a task that does it and shows its progress.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.forms import Again, Done, describe_problem, read_key
from cloudsched.dashboard.lists_view import BULK_ACTIONS, RETRY_FILTERS, TASK_FILTERS, read_task_filters
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.errors import CloudschedError, InvalidInput

if TYPE_CHECKING:
    from cloudsched.dashboard.visit import Api, Json, Visit

_KEPT: Final = (
    "What their steps have recorded is kept; what failed is done again, and so is what a handler does outside of "
    "steps. An attempt that has started cannot be taken back."
)
PICK: Final = "pick"
"""The field that names executions one by one, each as ``task/execution``."""


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API how many tasks would be changed."""
    action = _find_action(visit.query.get("action", ""))
    filters, words = read_task_filters(visit)
    ids = visit.query.get("ids", "")
    if not ids and words:
        problem = "needs tasks: a search by words is no filter of the API"
        raise InvalidInput("selection", problem, "Tick the tasks, or filter by status, handler, owner or label.")
    return _count(api, {"ids": ids} if ids else filters, action)


def fetch_retry(api: Api, visit: Visit) -> Json:
    """Ask the API for the number of executions that would be retried, and the first of them."""
    return _count(api, _read_failures(visit.query))


def send(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Done | Again:
    """Start the change, if the number of tasks is still the one that was shown."""
    action = _find_action(texts.get("action", ""))
    answer = _count(api, {name: texts[name] for name in (*TASK_FILTERS, "ids") if texts.get(name)}, action)
    return _start(api, answer, texts, said="bulk")


def send_retry(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Done | Again:
    """Start the retry, if the number of executions is still the one that was shown."""
    return _start(api, _count(api, _read_failures(texts)), texts, said="retries")


def _count(api: Api, chosen: Mapping[str, str], action: str = "") -> Json:
    """Ask how many tasks an action would change or, without one, how many failed executions would be retried."""
    if not chosen:
        problem = f"is empty: it would mean every {'task' if action else 'failure'} there is"
        raise InvalidInput(
            "selection", problem, f"Tick {'tasks' if action else 'executions'}, or filter the list first."
        )
    path, content = _make_request(action, chosen)
    return {
        **api.post(path, {**content, "dryRun": True}),
        "action": action,
        "chosen": dict(chosen),
        "key": uuid.uuid4().hex,
    }


def _make_request(action: str, chosen: Mapping[str, str]) -> tuple[str, Json]:
    wanted: Json = dict(chosen)
    if not action:
        pairs = [each.partition("/") for each in wanted.pop(PICK, "").split()]
        ids = [{"taskId": task, "executionId": execution} for task, _, execution in pairs]
        return "/v1/executions/batchRetry", {"filter": {"ids": ids} if ids else wanted}
    if "status" in wanted:
        wanted["status"] = wanted["status"].upper()
    if "ids" in wanted:
        wanted["ids"] = wanted["ids"].split()
    return "/v1/tasks/batchChange", {"action": action, "filter": wanted}


def _start(api: Api, answer: Json, texts: Mapping[str, str], said: str) -> Done | Again:
    """Start the task that does it, unless the present number differs from the form's."""
    answer["key"] = read_key(texts) or answer["key"]
    if texts.get("count") != str(answer["count"]):
        error = f"Since you looked, the number has changed: it is {answer['count']:,} now. Nothing has been done."
        return Again({**answer, "error": error}, 412)
    typed = texts.get("typed", "").strip().replace(",", "")
    if answer["action"] == BatchAction.DELETE and typed != str(answer["count"]):
        return Again({**answer, "error": "Type the number of tasks to delete them. Nothing has been done."}, 400)
    path, content = _make_request(answer["action"], answer["chosen"])
    try:
        task = api.post(path, content, headers={"Idempotency-Key": answer["key"]})
    except CloudschedError as error:
        status, what, then = describe_problem(error)
        return Again({**answer, "error": f"{what} {then}".strip()}, status)
    return Done(f"tasks/{task['id']}", said)


def build(answer: Json, visit: Visit) -> Json:
    """Return what the question shows."""
    action, count, is_at_least = answer["action"], answer["count"], bool(answer.get("isAtLeast"))
    chosen: dict[str, str] = answer["chosen"]
    one, many = ("task", "tasks") if action else ("execution", "executions")
    verb, means = (BULK_ACTIONS[action].verb, BULK_ACTIONS[action].means) if action else ("Retry", _KEPT)
    things = f"{count:,}{' or more' if is_at_least else ''} {one if count == 1 else many}"
    would = "would be changed" if action else "that failed would get one more attempt each"
    nothing = f"No task can be changed so: {verb.lower()} concerns none." if action else "No failed execution matches."
    may_concern = bool(count) or is_at_least  # counting stops at a bound
    dropped = dict.fromkeys(("action", "ids", PICK, "page", "q", "all", "only"))
    kept = {name: text for name, text in chosen.items() if name not in dropped}
    return {
        "error": "",
        "first": (),
        **answer,
        "title": f"{verb} {things}?" if may_concern else f"Nothing to {'change' if action else 'retry'}",
        "sentence": f"{things} {would}." if may_concern else nothing,
        "means": means,
        "button": f"{verb} {things}",
        "list": "tasks" if action else "runs",
        "which": [
            (f"{len(text.split()):,} chosen", ", ".join(text.split()) if name == "ids" else "")
            if name in {"ids", PICK}
            else (name, text)
            for name, text in chosen.items()
        ],
        "mayConcern": may_concern,
        "back": visit.with_query(**{**dropped, **kept}),
    }


def _read_failures(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the choice: the ticked executions, unless the button was that for all."""
    picked = "" if texts.get("all") else " ".join(texts.get(PICK, "").split())
    if not picked and texts.get("only"):
        return {}
    return {PICK: picked} if picked else {name: texts[name] for name in RETRY_FILTERS if texts.get(name)}


def _find_action(name: str) -> str:
    if name not in BULK_ACTIONS:
        raise InvalidInput("action", f"is none of {', '.join(BULK_ACTIONS)}")
    return name
