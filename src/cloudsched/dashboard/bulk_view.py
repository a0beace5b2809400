"""The pages that change many tasks, or retry many failed executions, at once.

Both show the count, then ask the question, then start a task that does it and shows its progress.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.forms import Again, Done, describe_problem
from cloudsched.dashboard.runs_view import RETRY_FILTERS
from cloudsched.dashboard.tasks_view import BULK_ACTIONS, FILTERS, read_filters
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, zone_choices
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.errors import CloudschedError, InvalidInput

if TYPE_CHECKING:
    from cloudsched.dashboard.times import Moment


PATH: Final = "/v1/tasks/batchChange"


@dataclass(frozen=True, slots=True)
class BulkPage:
    """The view model."""

    title: str
    sentence: str
    means: str
    button: str
    action: str
    which: list[tuple[str, str]]
    """The filters that choose the tasks, as people read them."""
    chosen: dict[str, str]
    """The same as the form sends them."""
    count: int
    may_concern: bool
    """True if there are any, or may be, because counting stopped at a bound."""
    key: str
    back: str
    error: str
    must_type: bool
    """True if the number has to be typed, because a deletion is final."""
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API how many tasks would be changed."""
    action = _find_action(visit.query.get("action", ""))
    filters, words = read_filters(visit)
    picked = [each.partition("/")[0] for each in visit.query.get("pick", "").split()]
    ids = visit.query.get("ids", "").split() or list(dict.fromkeys(picked))
    if not ids and visit.query.get("of") == "runs":  # its filters choose executions, and not tasks
        raise InvalidInput("selection", "needs executions: none is ticked", "Tick the executions of the tasks first.")
    if not ids and words:
        problem = "needs tasks: a search by words is no filter of the API"
        raise InvalidInput("selection", problem, "Tick the tasks, or filter by status, handler, owner or label.")
    return _count(api, action, {"ids": " ".join(ids)} if ids else filters)


def send(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Done | Again:
    """Start the change, if the number of tasks is still the one that was shown."""
    action = _find_action(texts.get("action", ""))
    answer = _count(api, action, {name: texts[name] for name in (*FILTERS, "ids") if texts.get(name)})
    content = {"action": action, "filter": _make_filter(answer["chosen"])}
    return _start(api, PATH, content, answer, texts, said="bulk")


def _start(api: Api, path: str, content: Json, answer: Json, texts: Mapping[str, str], said: str) -> Done | Again:
    """Start the task that does it, unless the present number differs from the form's."""
    key = texts.get("key", "")
    if key.isascii() and key.isalnum():
        answer["key"] = key
    if texts.get("count") != str(answer["count"]):
        error = f"Since you looked, the number has changed: it is {answer['count']:,} now. Nothing has been done."
        return Again({**answer, "error": error}, 412)
    typed = texts.get("typed", "").strip().replace(",", "")
    if content.get("action") == BatchAction.DELETE and typed != str(answer["count"]):
        return Again({**answer, "error": "Type the number of tasks to delete them. Nothing has been done."}, 400)
    try:
        task = api.post(path, content, headers={"Idempotency-Key": answer["key"]})
    except CloudschedError as error:
        status, what, then = describe_problem(error)
        return Again({**answer, "error": f"{what} {then}".strip()}, status)
    return Done(f"tasks/{task['id']}", said)


def build(answer: Json, visit: Visit) -> BulkPage:
    """Return the view model of the API's answer."""
    count = answer["count"]
    _, verb, means = BULK_ACTIONS[answer["action"]]
    may_concern = bool(count) or answer["isAtLeast"]
    tasks = f"{count:,}{' or more' if answer['isAtLeast'] else ''} task{'' if count == 1 else 's'}"
    chosen: dict[str, str] = answer["chosen"]
    which = [
        (
            f"{len(value.split()):,} chosen" if name == "ids" else name,
            ", ".join(value.split()) if name == "ids" else value,
        )
        for name, value in chosen.items()
    ]
    return BulkPage(
        title=f"{verb} {tasks}?" if may_concern else "Nothing to change",
        sentence=(
            f"{tasks} would be changed." if may_concern else f"No task can be changed so: {verb.lower()} concerns none."
        ),
        means=means,
        button=f"{verb} {tasks}",
        action=answer["action"],
        which=which,
        chosen=chosen,
        count=count,
        may_concern=may_concern,
        key=answer["key"],
        back=visit.with_query(**{**dict.fromkeys(("action", "ids", "pick", "of", "page", "q")), **chosen, "ids": None}),
        error=answer.get("error", ""),
        must_type=answer["action"] == "delete",
        zones=zone_choices(visit),
    )


def _count(api: Api, action: str, chosen: Mapping[str, str]) -> Json:
    if not chosen:
        problem = "is empty: it would mean every task there is"
        raise InvalidInput("selection", problem, "Tick tasks, or filter the list first.")
    found = api.post(PATH, {"action": action, "filter": _make_filter(chosen), "dryRun": True})
    return {
        "action": action,
        "chosen": dict(chosen),
        "count": int(found["count"]),
        "isAtLeast": bool(found.get("isAtLeast")),
        "key": uuid.uuid4().hex,
    }


def _make_filter(chosen: Mapping[str, str]) -> Json:
    made: Json = {name: value.upper() if name == "status" else value for name, value in chosen.items()}
    if "ids" in made:
        made["ids"] = made["ids"].split()
    return made


def _find_action(name: str) -> str:
    if name not in BULK_ACTIONS:
        raise InvalidInput("action", f"is none of {', '.join(BULK_ACTIONS)}")
    return name


RETRY_PATH: Final = "/v1/executions/batchRetry"
PICK: Final = "pick"
"""The field that names executions one by one, each as ``task/execution``."""


@dataclass(frozen=True, slots=True)
class FirstRow:
    """An execution that would be retried."""

    title: str
    owner: str
    path: str
    at: Moment
    error: str


@dataclass(frozen=True, slots=True)
class RetryPage:
    """The view model."""

    title: str
    sentence: str
    button: str
    first: list[FirstRow]
    left: int
    """The number of further executions, which are not listed."""
    which: list[tuple[str, str]]
    chosen: dict[str, str]
    count: int
    key: str
    error: str
    back: str
    zones: list[ZoneChoice]


def fetch_retry(api: Api, visit: Visit) -> Json:
    """Ask the API for the number of executions that would be retried, and the first of them."""
    return _count_failures(api, _read_chosen(visit.query))


def send_retry(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Done | Again:
    """Start the retry, if the number of executions is still the one that was shown."""
    answer = _count_failures(api, _read_chosen(texts))
    content = {"filter": _make_failure_filter(answer["chosen"])}
    return _start(api, RETRY_PATH, content, answer, texts, said="retries")


def build_retry(answer: Json, visit: Visit) -> RetryPage:
    """Return the view model of the API's answer."""
    count, first = answer["count"], answer["first"]
    executions = f"{count:,}{' or more' if answer['isAtLeast'] else ''} execution{'' if count == 1 else 's'}"
    chosen: dict[str, str] = answer["chosen"]
    return RetryPage(
        title=f"Retry {executions}?" if count else "Nothing to retry",
        sentence=(
            f"{executions} that failed would get one more attempt each." if count else "No failed execution matches."
        ),
        button=f"Retry {executions}",
        first=[
            FirstRow(
                each.get("title") or each["taskId"],
                each["owner"],
                f"tasks/{each['taskId']}/executions/{each['executionId']}",
                visit.sure(each["scheduledFor"]),
                each["error"],
            )
            for each in first
        ],
        left=count - len(first),
        which=[
            (f"{len(text.split()):,} ticked", "") if name == PICK else (name, text) for name, text in chosen.items()
        ],
        chosen=chosen,
        count=count,
        key=answer["key"],
        error=answer.get("error", ""),
        back=visit.with_query(**dict.fromkeys((PICK, "all", "only", "count", "key"))),
        zones=zone_choices(visit),
    )


def _read_chosen(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the choice: the ticked executions, unless the button was that for all."""
    picked = "" if texts.get("all") else " ".join(texts.get(PICK, "").split())
    if not picked and texts.get("only"):
        return {}
    return {PICK: picked} if picked else {name: texts[name] for name in RETRY_FILTERS if texts.get(name)}


def _count_failures(api: Api, chosen: Mapping[str, str]) -> Json:
    if not chosen:
        problem = "is empty: it would mean every failure there is"
        raise InvalidInput("selection", problem, "Tick executions, or filter the list first.")
    found = api.post(RETRY_PATH, {"filter": _make_failure_filter(chosen), "dryRun": True})
    return {
        "chosen": dict(chosen),
        "count": int(found["count"]),
        "isAtLeast": bool(found.get("isAtLeast")),
        "first": found.get("first", []),
        "key": uuid.uuid4().hex,
    }


def _make_failure_filter(chosen: Mapping[str, str]) -> Json:
    if PICK not in chosen:
        return dict(chosen)
    pairs = [each.partition("/") for each in chosen[PICK].split()]
    return {"ids": [{"taskId": task, "executionId": execution} for task, _, execution in pairs]}
