"""The page that changes many tasks, or retries many failed executions, at once.

It shows the count, then asks the question, then starts a task that does it and shows its progress.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.filters import name_filter, write_value
from cloudsched.dashboard.forms.fields import Again, Submitted, read_key
from cloudsched.dashboard.forms.problems import describe_problem
from cloudsched.dashboard.offered_verbs import BULK_ACTIONS, BulkAction
from cloudsched.dashboard.views.actions import find_origin
from cloudsched.dashboard.views.runs import RETRY_FILTERS
from cloudsched.dashboard.views.task_filters import CATEGORY, TASK_FILTERS, read_task_filters
from cloudsched.dashboard.visit import require_known
from cloudsched.dashboard.words import only_if
from cloudsched.domain.any_case import to_upper_snake
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.errors import CloudschedError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_RETRY: Final = BulkAction(
    "Retry",
    "Retry",
    "would get one more attempt",
    "Recorded steps are kept. What failed runs again, and so does what a handler does outside steps. You cannot take "
    "back an attempt that has started. Runs of paused or cancelled tasks, and calls that other runs made, are left "
    "alone.",
)
RESTORE: Final = BulkAction(
    "Restore",
    "Restore",
    "would be resumed",
    "They run as before the pause, at once or when their own pause ends. What came due in the meantime is skipped.",
)
_ALONE: Final = ("ids", "pauseId")
"""What chooses tasks without the filters of the list: their ids, or the action that has paused or resumed them."""
_NOT_COUNTED: Final = "The number is not known: counting stopped before it found any."
_AND_HELD: Final = ", and what is paused until a budget or a time allows it"
_NOT_RETRIED: Final = "No run that matches can be retried: those of paused or cancelled tasks cannot."
_WITH_CALLS: Final = "The numbers include calls, which the list of tasks hides unless you choose Show calls."
_CHOOSE_TASKS: Final = "Tick tasks, or filter the list first."
_CHOOSE_RUNS: Final = "Tick runs, or filter the list first."
PICK: Final = "pick"
"""The field that names executions one by one, each as ``task/execution``."""
PARAMETERS: Final = ("action", *_ALONE, *TASK_FILTERS, CATEGORY, "q")
RETRY_PARAMETERS: Final = (PICK, "all", "only", *RETRY_FILTERS)
_OF_FORM: Final = ("count", "typed", "key")


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API how many tasks would be changed."""
    action = _find_action(visit.query.get("action", ""))
    if chosen := {name: visit.query[name] for name in _ALONE if visit.query.get(name)}:
        return _count(api, visit, chosen, action)
    filters, words = read_task_filters(visit)
    if words:
        problem = "Tasks that were searched for by words or by category cannot be changed all at once."
        raise InvalidInput("", problem, "Tick them, or filter by status, handler, owner or label.")
    return _count(api, visit, filters, action)


def fetch_retry(api: Api, visit: Visit) -> Json:
    """Ask the API for the number of executions that would be retried, and the first of them."""
    return _count(api, visit, _read_failures(visit.query))


def send(api: Api, visit: Visit, texts: Mapping[str, str]) -> Submitted | Again:
    """Start the change, if the number of tasks is still the one that was shown."""
    require_known(texts, ("action", *_ALONE, *TASK_FILTERS, *_OF_FORM))
    action = _find_action(texts.get("action", ""))
    answer = _count(api, visit, {name: texts[name] for name in (*TASK_FILTERS, *_ALONE) if texts.get(name)}, action)
    return _start(api, answer, texts, said="bulk")


def send_retry(api: Api, visit: Visit, texts: Mapping[str, str]) -> Submitted | Again:
    """Start the retry, if the number of executions is still the one that was shown."""
    require_known(texts, (*RETRY_PARAMETERS, *_OF_FORM))
    return _start(api, _count(api, visit, _read_failures(texts)), texts, said="retries")


def _count(api: Api, visit: Visit, chosen: Mapping[str, str], action: str = "") -> Json:
    """Ask how many tasks an action would change or, without one, how many failed executions would be retried."""
    if not chosen and action:
        raise InvalidInput("", "No task is chosen: that would mean every task there is.", _CHOOSE_TASKS)
    if not chosen:
        raise InvalidInput("", "No run is chosen: that would mean every failure there is.", _CHOOSE_RUNS)
    path, content = _make_request(action, chosen)
    return {
        **api.post(path, {**content, "dryRun": True}),
        "action": action,
        "chosen": dict(chosen),
        "origin": find_origin(api, visit, chosen.get("pauseId")),
        "key": uuid.uuid4().hex,
    }


def _make_request(action: str, chosen: Mapping[str, str]) -> tuple[str, Json]:
    wanted: Json = dict(chosen)
    if "status" in wanted:
        wanted["status"] = wanted["status"].upper()
    if not action:
        pairs = [each.partition("/") for each in wanted.pop(PICK, "").split()]
        if pairs:
            wanted = {"ids": [{"taskId": task, "executionId": execution} for task, _, execution in pairs]}
        return "/v1/executions/batchRetry", {"filter": wanted}
    if "ids" in wanted:
        wanted["ids"] = wanted["ids"].split()
    return "/v1/tasks/batchChange", {"action": action, "filter": wanted}


def _start(api: Api, answer: Json, texts: Mapping[str, str], said: str) -> Submitted | Again:
    """Start the task that does it, unless the present number differs from the form's."""
    answer["key"] = read_key(texts) or answer["key"]
    count = str(answer["count"])
    if "count" not in texts:  # a button elsewhere asks the question
        return Again(answer)
    if texts.get("count") != count:
        error = f"The number has changed since you looked: it is now {answer['count']:,}. Nothing was done."
        return Again({**answer, "error": error}, 412)
    typed = texts.get("typed", "").strip().replace(",", "")
    if answer["action"] == BatchAction.DELETE and typed != count:
        return Again({**answer, "error": "Type the number of tasks to delete them. Nothing was done."}, 400)

    path, content = _make_request(answer["action"], answer["chosen"])
    try:
        task = api.post(path, content, headers={"Idempotency-Key": answer["key"]})
    except CloudschedError as error:
        problem = describe_problem(error)
        return Again({**answer, "error": str(problem)}, problem.status)
    return Submitted(f"actions/{task['id']}", said)


def build(answer: Json, visit: Visit) -> Json:
    """Return what the question shows."""
    chosen: dict[str, str] = answer["chosen"]
    asked = _Confirmation.of_tasks(answer) if answer["action"] else _Confirmation.of_executions(answer)
    dropped = dict.fromkeys(("action", *_ALONE, PICK, "page", "q", "all", "only"))
    kept = {name: text for name, text in chosen.items() if name not in dropped}
    is_unknown = not answer["count"] and bool(answer.get("isAtLeast"))
    button = f"{asked.action.verb} {'all that match' if is_unknown else asked.things}"

    shown = {
        "error": "",
        "first": (),
        "leftAlone": (),
        **answer,
        "title": asked.nothing,
        "sentence": asked.why_nothing,
        "means": asked.action.means,
        "button": button,
        "list": asked.list,
        "note": only_if(answer["action"] and kept, _WITH_CALLS),
        "which": [*_list_chosen(chosen, visit, only_if(answer.get("stayPaused"), _AND_HELD))],
        "mayConcern": bool(answer["count"]) or is_unknown,
        "back": visit.with_query(**{**dropped, **kept}),
    }
    if shown["mayConcern"]:
        shown["title"] = f"{button}?"
        counted = f"{asked.things} {asked.action.would}{_write_paused(answer)}."
        shown["sentence"] = _NOT_COUNTED if is_unknown else counted
    return shown


def _write_paused(answer: Json) -> str:
    """Return how many of the tasks are active, and how many are paused already and would have gone on."""
    count = answer.get("stayPaused", 0)
    if not count:
        return ""
    whose, it, stays = ("whose pause", "it", "stays") if count == 1 else ("whose pauses", "them", "stay")
    return (
        f": {answer['count'] - count:,} active, and {count:,} {whose} would otherwise end without you, as when a "
        f"budget is raised. {'It' if count == 1 else 'They'} {stays} paused until you restore {it}"
    )


@dataclass(frozen=True, slots=True)
class _Confirmation:
    """The words of the question."""

    action: BulkAction
    things: str
    nothing: str
    why_nothing: str
    list: str
    """The list that leads here."""

    @classmethod
    def of_tasks(cls, answer: Json) -> _Confirmation:
        action = BULK_ACTIONS[answer["action"]]
        if "pauseId" in answer["chosen"] and answer["action"] == BatchAction.RESUME:
            action = RESTORE
        verb = action.verb.lower()
        things = _write_things(answer, "task", "tasks")
        return cls(action, things, f"Nothing to {verb}", f"There is no task to {verb}.", "tasks")

    @classmethod
    def of_executions(cls, answer: Json) -> _Confirmation:
        things = _write_things(answer, "run", "runs")
        return cls(_RETRY, things, "Nothing to retry", _NOT_RETRIED, "runs")


def _write_things(answer: Json, one: str, many: str) -> str:
    count = answer["count"]
    return f"{count:,}{only_if(answer.get('isAtLeast'), ' or more')} {one if count == 1 else many}"


def _list_chosen(chosen: Mapping[str, str], visit: Visit, besides: str = "") -> Iterator[tuple[str, str]]:
    """Yield what is chosen as names and values, other than the action that is taken back.

    Tasks are named one by one, and executions only counted. What a pause concerns `besides` stands with the status.
    """
    for name, text in chosen.items():
        each = text.split()
        if name == "ids":
            yield f"{len(each):,} chosen", ", ".join(each)
        elif name == PICK:
            yield f"{len(each):,} chosen", ""
        elif name != "pauseId":
            yield name_filter(name), write_value(name, text, visit) + only_if(name == "status", besides)


def _read_failures(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the choice: the ticked executions, unless the button was that for all."""
    picked = " ".join(texts.get(PICK, "").split())
    if picked and not texts.get("all"):
        return {PICK: picked}
    if texts.get("only"):
        return {}
    return {name: texts[name] for name in RETRY_FILTERS if texts.get(name)}


def _find_action(name: str) -> str:
    action: str = to_upper_snake(name)
    if action not in BULK_ACTIONS:
        names = ", ".join(row.label for row in BULK_ACTIONS.values())
        raise InvalidInput("", f"There is no such action on many tasks. There are: {names}.", _CHOOSE_TASKS)
    return action
