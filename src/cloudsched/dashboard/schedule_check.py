"""A schedule read back: what it means, what was assumed, and when it runs next."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cloudsched.dashboard.task_view import DueRow, build_upcoming
from cloudsched.dashboard.times import parse_instant
from cloudsched.errors import AmbiguousSchedule, CloudschedError, InvalidInput, NotFound

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

COUNT: Final = 10


@dataclass(frozen=True, slots=True)
class Reading:
    """One of the meanings of words that have several."""

    label: str
    description: str
    schedule: str
    """As JSON text, which the form takes as the schedule."""


@dataclass(frozen=True, slots=True)
class ScheduleCheck:
    """What is shown of a schedule before anything is stored."""

    description: str
    assumptions: tuple[str, ...]
    rows: list[DueRow]
    zone: str
    readings: list[Reading]


def check_schedule(api: Api, content: Json, errors: dict[str, str]) -> Json | None:
    """Ask the API what a schedule means; what is wrong with it goes to `errors`.

    Args:
        api: The API.
        content: A task whose ``schedule`` is text with its ``timezone`` beside it, or JSON.
        errors: What is wrong, by field.
    """
    if "schedule" not in content:
        return None
    body: dict[str, Any] = {name: content[name] for name in ("schedule", "timezone", "owner") if name in content}
    try:
        return api.post("/v1/schedules/preview", {**body, "count": COUNT})
    except AmbiguousSchedule as error:
        errors["schedule"] = error.problem
        return {"readings": list(error.readings)}
    except NotFound:  # an owner whom the caller may not see: the task's own request refuses it
        return None
    except InvalidInput as error:
        name = "timezone" if error.field in {"timezone", "schedule.timezone"} else "schedule"
        errors.setdefault(name, write_error(error))
        return None


def write_error(error: CloudschedError) -> str:
    """Return what is wrong without the path, which the field shows itself."""
    text = str(error)
    return text.removeprefix(f"{error.field}: ") if isinstance(error, InvalidInput) else text


def build_check(preview: Json | None, visit: Visit) -> ScheduleCheck | None:
    """Return what is shown of the API's answer; None if there is none."""
    if preview is None:
        return None
    occurrences = preview.get("occurrences", [])
    zone = (preview.get("schedule") or {}).get("timezone", "UTC")
    readings = [
        Reading(
            str(each.get("label", "")), str(each.get("description", "")), json.dumps(each["schedule"], sort_keys=True)
        )
        for each in preview.get("readings", [])
    ]
    due = [parse_instant(each["utc"]) for each in occurrences]
    shown = visit.in_zone_of({"timezone": zone})
    assumptions = tuple(map(str, preview.get("assumptions") or ()))
    return ScheduleCheck(
        str(preview.get("description", "")), assumptions, build_upcoming(due, shown, zone), shown.zone.key, readings
    )
