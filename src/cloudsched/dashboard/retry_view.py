"""Many failed executions retried at once: the count and the first ten, the question, then a task that shows how far."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.forms import Again, Done, describe_problem
from cloudsched.dashboard.runs_view import RETRY_FILTERS
from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices
from cloudsched.errors import CloudschedError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.times import Moment

PATH: Final = "/v1/executions/batchRetry"
PICK: Final = "pick"
"""The field that names executions one by one, each as ``task/execution``."""


@dataclass(frozen=True, slots=True)
class FirstRow:
    """One of those that would be retried."""

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
    """How many more there are than are named."""
    which: list[tuple[str, str]]
    chosen: dict[str, str]
    count: int
    key: str
    error: str
    back: str
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API how many executions would be retried, and which come first."""
    return _count(api, _read_chosen(visit.query))


def send(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Done | Again:
    """Start the retry, if as many executions as were shown would still be retried."""
    chosen = _read_chosen(texts)
    answer = _count(api, chosen)
    key = texts.get("key", "")
    if key.isascii() and key.isalnum():
        answer["key"] = key
    if texts.get("count") != str(answer["count"]):
        error = f"Since you looked, the number has changed: it is {answer['count']:,} now. Nothing has been done."
        return Again({**answer, "error": error}, 412)
    try:
        task = api.post(PATH, {"filter": _make_filter(chosen)}, headers={"Idempotency-Key": answer["key"]})
    except CloudschedError as error:
        status, what, then = describe_problem(error)
        return Again({**answer, "error": f"{what} {then}".strip()}, status)
    return Done(f"tasks/{task['id']}", "retries")


def build(answer: Json, visit: Visit) -> RetryPage:
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
    """Return what is chosen: what is ticked, unless the button was that for all."""
    picked = "" if texts.get("all") else " ".join(texts.get(PICK, "").split())
    if not picked and texts.get("only"):
        return {}
    return {PICK: picked} if picked else {name: texts[name] for name in RETRY_FILTERS if texts.get(name)}


def _count(api: Api, chosen: Mapping[str, str]) -> Json:
    if not chosen:
        problem = "is empty: it would mean every failure there is"
        raise InvalidInput("selection", problem, "Tick executions, or filter the list first.")
    found = api.post(PATH, {"filter": _make_filter(chosen), "dryRun": True})
    return {
        "chosen": dict(chosen),
        "count": int(found["count"]),
        "isAtLeast": bool(found.get("isAtLeast")),
        "first": found.get("first", []),
        "key": uuid.uuid4().hex,
    }


def _make_filter(chosen: Mapping[str, str]) -> Json:
    if PICK not in chosen:
        return dict(chosen)
    pairs = [each.partition("/") for each in chosen[PICK].split()]
    return {"ids": [{"taskId": task, "executionId": execution} for task, _, execution in pairs]}
