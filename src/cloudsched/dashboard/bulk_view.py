"""One change of many tasks: the count first, then the question, then a task that does it and shows its progress."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.forms import Again, Done, describe_problem
from cloudsched.dashboard.tasks_view import BULK_ACTIONS, FILTERS, read_filters
from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices
from cloudsched.domain.documents.batch_change import BatchAction
from cloudsched.errors import CloudschedError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json

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
    """The filters that choose the tasks, as they are read."""
    chosen: dict[str, str]
    """The same as they are sent."""
    count: int
    may_concern: bool
    """Whether there is any, or may be: counting stopped at a bound."""
    key: str
    back: str
    error: str
    must_type: bool
    """Whether the number has to be typed: what is deleted does not come back."""
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
    """Start the change, if as many tasks as were shown would still be changed."""
    action = _find_action(texts.get("action", ""))
    chosen = {name: texts[name] for name in (*FILTERS, "ids") if texts.get(name)}
    answer = _count(api, action, chosen)
    key = texts.get("key", "")
    if key.isascii() and key.isalnum():
        answer["key"] = key
    if texts.get("count") != str(answer["count"]):
        error = f"Since you looked, the number has changed: it is {answer['count']:,} now. Nothing has been done."
        return Again({**answer, "error": error}, 412)
    if action == BatchAction.DELETE and texts.get("typed", "").strip().replace(",", "") != str(answer["count"]):
        return Again({**answer, "error": "Type the number of tasks to delete them. Nothing has been done."}, 400)
    try:
        content = {"action": action, "filter": _make_filter(chosen)}
        task = api.post(PATH, content, headers={"Idempotency-Key": answer["key"]})
    except CloudschedError as error:
        status, what, then = describe_problem(error)
        return Again({**answer, "error": f"{what} {then}".strip()}, status)
    return Done(f"tasks/{task['id']}", "bulk")


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
        back=_write_query({name: value for name, value in chosen.items() if name != "ids"}, visit),
        error=answer.get("error", ""),
        must_type=answer["action"] == "delete",
        zones=zone_choices(visit),
    )


def _write_query(filters: Mapping[str, str], visit: Visit) -> str:
    changes: dict[str, str | None] = {
        **dict.fromkeys(("action", "ids", "pick", "of", "page", "q")),
        **filters,
    }
    return visit.with_query(**changes)


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
