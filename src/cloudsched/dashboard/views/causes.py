"""The causes for which tasks need attention: their words, and the lists of their tasks."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.words import only_if
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.task import NeedCause
from cloudsched.domain.explanation.findings import Reason, say_unknown_handler
from cloudsched.domain.transitions.needs import GIVES_UP_SOON, LATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit


@dataclass(frozen=True, slots=True)
class Cause:
    """The words for a cause."""

    status: Status
    chip: str
    """A word or two, before a number."""
    one: str
    """The text after a single task's title."""
    many: str
    """The text after a number of tasks."""


CAUSES: Final = complete_table(
    NeedCause,
    {
        NeedCause.FAILED: Cause(show_status("FAILED"), "Failing", "failed,", "are failing. The first failed"),
        NeedCause.WAITING: Cause(
            show_status("SUSPENDED"),
            f"Waiting for an answer within {GIVES_UP_SOON.days} days",
            "waits for an answer, and gives up",
            f"wait for an answer within {GIVES_UP_SOON.days} days. The first gives up",
        ),
        NeedCause.OVERDUE: Cause(
            Status("late", "Late", "timeout"),
            "Late",
            "is late and has not started: it was due",
            "are late and have not started: the first was due",
        ),
        NeedCause.PAUSED: Cause(
            show_status("PAUSED"),
            "Paused after failures",
            "is paused after a failure,",
            "are paused after failures. The first was paused",
        ),
        NeedCause.HELD: Cause(
            show_status("PAUSED"),
            "Out of budget",
            "is paused: its limit or its owner's budget is used up,",
            "are paused: their limits or budgets are used up. The first was paused",
        ),
        NeedCause.DELIVERY: Cause(
            Status("fail", "Not delivered", "fail"),
            "Not delivered",
            "has not been delivered,",
            "have not been delivered. The first ended",
        ),
    },
)
"""The causes, the most urgent first."""


def write_chip(found: Json) -> str:
    """Return a cause with the number of its tasks, as the API has counted them."""
    return f"{CAUSES[found['cause']].chip} {found['count']:,}{only_if(found.get('isAtLeast'), '+')}"


def name_unregistered(overview: Json | None) -> dict[str, str]:
    """Return the handlers of tasks that are not registered, each with the sentence that says so.

    Their occurrences come, and then nothing does the work.
    """
    unknown = (each for each in (overview or {}).get("causes", ()) if each["reason"] == Reason.UNKNOWN_HANDLER)
    return {each["subject"]: say_unknown_handler(each["subject"]).sentence for each in unknown}


def explain_unregistered(row: Json, unregistered: Mapping[str, str]) -> str:
    """Return why no run of a task can do its work. Empty if one can: workers have code of their own."""
    return only_if(not row.get("pull"), unregistered.get(row["handler"], ""))


def filter_by_cause(cause: str, visit: Visit) -> dict[str, str]:
    """Return the API's filters for the tasks of a cause. Of those that wait, only some give up soon enough to count."""
    if cause == NeedCause.OVERDUE:
        return {"dueUntil": (visit.now - LATE).isoformat()}
    filters = {"trouble": str(cause)}
    if cause == NeedCause.WAITING:
        filters["troubleUntil"] = (visit.now + GIVES_UP_SOON).isoformat()
    return filters


def list_path(cause: str, visit: Visit, of: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the path of the list of a cause's tasks, of an owner or a handler if so.

    Its pages keep the instant that it was asked for at.
    """
    return f"tasks?{urlencode({**filter_by_cause(cause, visit), **of})}"
