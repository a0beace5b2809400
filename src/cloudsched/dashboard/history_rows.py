"""What was done with a task by hand, as the task's page lists it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.times import Moment
    from cloudsched.dashboard.visit import Visit


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """One thing that was done."""

    at: Moment
    what: str
    who: str
    fields: list[tuple[str, str, str]]
    """What an edit changed: the field, and its values before and after, if they are shown."""
    execution_id: str | None


def build_history(answer: Json | None, visit: Visit) -> list[HistoryRow]:
    """Return the rows of the API's answer, the latest first; none if the API has no history."""
    return [
        HistoryRow(
            at=visit.sure(each["at"]),
            what=each["action"].capitalize() + (f": {each['reason']}" if each.get("reason") else ""),
            who=_name_actor(each.get("by")),
            fields=[(one["field"], one.get("before", ""), one.get("after", "")) for one in each.get("fields", [])],
            execution_id=each.get("executionId"),
        )
        for each in (answer or {}).get("entries", [])
    ]


def _name_actor(by: Json | None) -> str:
    if by is None:
        return "the scheduler"
    return str(by.get("subject") or "the app's own code")
