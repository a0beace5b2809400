"""What a schedule means, shown before anything is stored: its words, its assumptions, and its next occurrences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.forms.problems import place_faults
from cloudsched.dashboard.forms.task_options import write_schedule
from cloudsched.dashboard.schedule_words import describe_schedule
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.upcoming import build_upcoming
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.errors import CloudschedError, InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_COUNT: Final = 10
"""The number of occurrences that are shown."""


def check_schedule(api: Api, content: Json, errors: dict[str, str]) -> Json | None:
    """Ask the API for the meaning of a schedule. Problems go to `errors`."""
    if "schedule" not in content:
        return None
    body: Json = {name: content[name] for name in ("schedule", "timezone", "owner") if name in content}
    return _ask(lambda: api.post("/v1/schedules/preview", {**body, "count": _COUNT}), errors)


def check_change(api: Api, task: Json, content: Json, errors: dict[str, str]) -> Json | None:
    """Ask the API for a task's new schedule, if words may change the present one. See `check_schedule`."""
    when: Json = {name: content[name] for name in ("schedule", "timezone") if name in content}
    if not when:
        return None

    def ask() -> Json:
        checked = api.patch(task_path(task["id"]), when, query={"validateOnly": "true"})
        return preview_saved(api, checked, task)

    return _ask(ask, errors)


def _ask(ask: Callable[[], Json], errors: dict[str, str]) -> Json | None:
    try:
        return ask()
    except NotFound:  # an owner whom the caller may not see: the task's own request refuses it
        return None
    except InvalidInput as error:
        told = place_faults(error, ("schedule", "timezone"))
        readings = error.readings
        if readings and "timezone" in told:  # they are not in the zone that is meant
            told.pop("schedule", None)
            readings = ()
        for name, said in told.items():
            errors.setdefault(name or "schedule", said)
        if not readings:
            return None
        return {"readings": list(readings)}


def build_check(preview: Json | None, visit: Visit) -> Json | None:
    """Return the reading of a schedule that is shown before anything is stored. None if there is none.

    Words may have several meanings. The description of each has no other one, so the form takes it as words.
    """
    if preview is None:
        return None
    zone = (preview.get("schedule") or {}).get("timezone", "UTC")
    due = [parse_instant(each["utc"]) for each in preview.get("occurrences", [])]
    shown = visit.in_zone_of({"timezone": zone})
    return {
        "description": preview.get("description", ""),
        "assumptions": preview.get("assumptions") or (),
        "rows": build_upcoming(due, shown, zone),
        "visit": shown,
        "readings": preview.get("readings", ()),
    }


def write_words(api: Api, task: Json, now: datetime) -> str:
    """Return a text for the present schedule: the words of its page if they are read as the same, otherwise JSON."""
    schedule = task["schedule"]
    zone = task.get("timezone", "UTC")
    said = describe_schedule(schedule, now).removesuffix(f", {zone}")
    try:
        meant, read = (
            api.post("/v1/schedules/preview", {**each, "owner": task["owner"], "count": _COUNT})
            for each in ({"schedule": schedule}, {"schedule": said, "timezone": zone})
        )
    except CloudschedError:  # words that leave something out, or name a time that is over
        return write_schedule(schedule)
    is_same = _list_calendars(task) == _list_calendars(read) and meant["occurrences"] == read["occurrences"]
    return said if is_same and meant["occurrences"] else write_schedule(schedule)


def preview_saved(api: Api, checked: Json, task: Json | None = None) -> Json:
    """Return the reading of the plan that the API would save, with its calendars, its end and its policies.

    The checked one is the answer to a check, which is the task that would result.
    """
    told = checked.get("readBack") or {}
    notes = [str(each) for each in told.get("assumed", ())]
    if checked["status"] == TaskStatus.PAUSED:
        body = {"schedule": checked["schedule"], "owner": checked["owner"], "count": _COUNT}
        plan = api.post("/v1/schedules/preview", body)
        notes.append("It is paused. This applies once it is resumed.")
    else:
        words = told.get("description") or api.describe(checked["schedule"])
        plan = {"description": words, "occurrences": checked.get("upcoming", ())}
    if lost := sorted(_list_calendars(task or {}) - _list_calendars(checked)):
        notes.append(f"It no longer follows the calendar {' and '.join(lost)}: the new schedule does not name it.")
    return {
        "description": plan.get("description", ""),
        "schedule": {**checked["schedule"], "timezone": checked.get("timezone", "UTC")},
        "occurrences": plan.get("occurrences", ()),
        "assumptions": notes,
    }


def _list_calendars(task: Json) -> set[str]:
    return {each["id"] for each in task.get("schedule", {}).get("calendars", ())}
